"""`lzs probe`: the table, JSON, the exit status, and what is never printed."""

import json
import os
import subprocess
import sys
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
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].endswith(" requests")
    assert ", model made-up: " in lines[0]
    assert lines[2:4] == ["completions", f"{'check':27}{'answer':8}evidence"]
    assert lines[-1] == "What was asked is applied as far as can be seen."
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
    assert full.stdout.splitlines()[-1] == "Not as asked: default (completions), frequency_penalty (completions)"


def test_json_and_require() -> None:
    done = against(Behaviour(window=64), "--json", "--require", "window", "--require", "seed")
    assert (done.returncode, done.stderr) == (1, "lzs: --require window\n")
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
        (["http://localhost", "--timeout", "x"], "--timeout must be a number, got 'x'"),
        (["http://localhost", "--api-key", "a\nb"], "--api-key must be printable ASCII characters without line ends"),
        ([], "Missing argument 'URL'."),
    ],
)
def test_wrong_arguments_are_one_line(arguments: list[str], message: str) -> None:
    done = lzs(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == f"lzs: {message}"


def test_trouble_is_one_line_and_status_2() -> None:
    html = Behaviour(answer=lambda handler: handler.send(200, b"<html>\x1b[31m"))  # type: ignore[attr-defined]
    done = against(html)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "does not answer with JSON but with '<html> [31m'" in done.stderr


def test_what_a_server_writes_does_not_steer_the_terminal() -> None:
    evil = b'{"choices": [{"text": "\\u001b[2J\\u202e evil"}], "data": [{"id": "m\\u001b[2J"}]}'
    done = against(Behaviour(answer=lambda handler: handler.send(200, evil)), "-v")  # type: ignore[attr-defined]
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout + done.stderr


def test_colours() -> None:
    done = against(Behaviour(ignores=("presence_penalty",)), "--color", "always", "-q")
    assert "\x1b[1;31mno !" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.endswith(" ")]
