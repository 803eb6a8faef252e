"""`lzs probe`: the table, JSON, the exit status, and what is never printed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from probed import Behaviour, server

LZS = str(Path(sys.executable).with_name("lzs"))


def lzs(*arguments: str, **changed: str) -> "subprocess.CompletedProcess[str]":
    left_out = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "OPENAI_API_KEY")
    env = {**{name: value for name, value in os.environ.items() if name not in left_out}, **changed}
    return subprocess.run([LZS, "probe", *arguments], capture_output=True, text=True, timeout=300, env=env)


def against(behaviour: Behaviour, *arguments: str, **changed: str) -> "subprocess.CompletedProcess[str]":
    with server(behaviour) as url:
        return lzs(url, "--endpoint", "completions", *arguments, **changed)


def test_an_honest_server() -> None:
    done = against(Behaviour(), COLUMNS="80")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].endswith(" requests")
    assert ", model made-up: " in lines[0]
    assert lines[2:4] == ["completions", f"{'check':27}{'answer':8}evidence"]
    assert lines[-1] == "Everything that was requested seems to be applied."
    assert any(line.startswith("frequency_penalty          yes     ") for line in lines)
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() for line in lines)


def test_a_server_that_lies() -> None:
    behaviour = Behaviour(ignores=("frequency_penalty",), defaults={"repetition_penalty": 1.1})
    done = against(behaviour, "-q")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[1] == "completions"
    assert [line.split()[0] for line in lines if " no ! " in line] == ["default", "frequency_penalty"]
    full = against(behaviour)
    assert full.stdout.splitlines()[-1] == "Not as requested: default (completions), frequency_penalty (completions)"


def test_without_a_terminal_each_check_has_a_line_when_it_ends() -> None:
    """A log of a job shows that something happens; the table comes at the end only."""
    behaviour = Behaviour(ignores=("frequency_penalty",))
    done = against(behaviour, "--json")
    found = json.loads(done.stdout)["findings"]
    assert done.stderr.splitlines() == [
        f"lzs: completions, {row['check']}: {row['answer']}{' !' if row['wrong'] else ''}" for row in found
    ]
    assert "lzs: completions, frequency_penalty: no !" in done.stderr


def test_json_and_require() -> None:
    done = against(Behaviour(window=64), "--json", "--require", "window", "--require", "seed")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "lzs: --require: the answer is not yes for window")
    made = json.loads(done.stdout)
    assert (made["ok"], made["model"], made["version"]) == (True, "made-up", 1)
    assert next(row["value"] for row in made["findings"] if row["check"] == "window") == 64
    unknown = lzs("http://localhost", "--require", "windows")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("lzs: --require takes the name of a check (unknown_parameters, temperature_0, ")


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_the_key_is_sent_and_never_printed(by: str) -> None:
    given: dict[str, Any] = {"OPENAI_API_KEY": "sk-secret"} if by == "environment" else {}
    flags = ["--api-key", "sk-secret"] if by == "flag" else []
    done = against(Behaviour(key="sk-secret"), "-v", *flags, **given)
    assert done.returncode == 0
    assert "lzs: POST /completions {" in done.stderr
    assert '"frequency_penalty": 2.0' in done.stderr
    assert "sk-secret" not in done.stdout + done.stderr
    refused = against(Behaviour(key="another"), "-v", *flags, **given)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].endswith("/v1 refuses this API key (HTTP 401)")
    assert "sk-secret" not in refused.stdout + refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["localhost:8000"], "url must be an address such as http://localhost:8000/v1, got 'localhost:8000'"),
        (["http://localhost", "--timeout", "0"], "--timeout must be above 0 and at most 86400 seconds, got 0.0"),
        (["http://localhost", "--timeout", "nan"], "--timeout must be above 0 and at most 86400 seconds, got nan"),
        (["http://localhost", "--timeout", "1e300"], "--timeout must be above 0 and at most 86400 seconds, got 1e+300"),
        (["http://localhost", "--timeout", "x"], "--timeout must be a number, got 'x'"),
        (["http://localhost", "--api-key", "a\nb"], "--api-key must be printable ASCII characters without line ends"),
        ([], "Missing argument 'URL'."),
    ],
)
def test_wrong_arguments_are_one_line(arguments: list[str], message: str) -> None:
    done = lzs(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == f"lzs: {message}"


def drips(handler: Any) -> None:
    """Write an answer whose pieces come in time, and whose end does not."""
    handler.send(200, b"", 1000)
    with suppress(OSError):
        for _ in range(100):
            handler.wfile.write(b" ")
            time.sleep(0.05)


def floods(handler: Any) -> None:
    handler.send(200, b"", 2**40)
    with suppress(OSError):
        for _ in range(1000):
            handler.wfile.write(b" " * 2**20)


TROUBLE: dict[str, tuple[Callable[[Any], object], str]] = {
    "no answer": (
        lambda h: h.wfile.write(b"SSH-2.0-server\r\n"),
        "URL does not answer as an HTTP server: Server disconnected without sending a response\n",
    ),
    "no HTTP": (
        lambda h: h.wfile.write(b"SSH-2.0-server\r\n\r\n"),
        "URL does not answer as an HTTP server: illegal status line: 'SSH-2.0-server'",
    ),
    "redirect": (
        lambda h: h.send(301, b"", Location="https://there/v1"),
        "URL redirects to https://there/v1: give the",
    ),
    "huge": (floods, "URL sent an answer of more than 16 MiB"),
    "huge refusal": (lambda h: h.send(400, b"no " * 2**23), "URL refuses a plain request: HTTP 400"),
    "slow": (drips, "URL did not answer in 0.5 seconds: give a longer --timeout"),
    "no UTF-8": (lambda h: h.send(200, b'{"choices": "\xff\xfe"}'), "URL/models does not answer with JSON but with"),
    "steering": (
        lambda h: h.send(200, b"<html>\x1b[31m"),
        "URL/models does not answer with JSON but with '<html> [31m'",
    ),
}


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_is_one_line_and_status_2(name: str) -> None:
    answer, message = TROUBLE[name]
    with server(Behaviour(answer=answer)) as url:
        done = lzs(url, *(["--timeout", "0.5"] if name == "slow" else []))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.replace(url, "URL").startswith(f"lzs: {message}")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1", "cannot connect to http://127.0.0.1:1/v1: nothing listens there"),
        ("http://例え.invalid", "cannot connect to http://xn--r8jz45g.invalid/v1: no such host"),
    ],
)
def test_no_server(url: str, message: str) -> None:
    done = lzs(url)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"lzs: {message}\n")


def test_an_answer_that_no_terminal_can_show() -> None:
    """Half of a surrogate pair, which JSON may name and UTF-8 may not hold."""
    half = b'{"choices": [{"text": "a \\ud800"}], "data": [{"id": "m\\ud800"}]}'
    for how in ("-v", "--json"):
        done = against(Behaviour(answer=lambda handler: handler.send(200, half)), how)  # type: ignore[attr-defined]
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
        assert done.stderr.splitlines()[-1] == "lzs: the probe could not decide for any penalty; the evidence says why"
        if how == "--json":
            assert json.loads(done.stdout)["ok"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm(number: int, status: int) -> None:
    asked = threading.Event()

    def waits(handler: Any) -> None:
        asked.set()
        time.sleep(2)

    with (
        server(Behaviour(answer=waits)) as url,
        subprocess.Popen([LZS, "probe", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert asked.wait(60)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (status, "")
    assert "Traceback" not in err
    assert err.count("\n") <= 1


def test_what_a_server_writes_does_not_steer_the_terminal() -> None:
    evil = b'{"choices": [{"text": "\\u001b[2J\\u202e evil"}], "data": [{"id": "m\\u001b[2J"}]}'
    done = against(Behaviour(answer=lambda handler: handler.send(200, evil)), "-v")  # type: ignore[attr-defined]
    assert done.returncode == 2  # every prompt gets the same text
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout + done.stderr


def test_colours() -> None:
    done = against(Behaviour(ignores=("presence_penalty",)), "--color", "always", "-q")
    assert "\x1b[1;31mno !" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.endswith(" ")]
