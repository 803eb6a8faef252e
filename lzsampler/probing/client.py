"""The HTTP client of `probe`: sends and receives JSON. Any failure of a server becomes a one-line error.

A probe sends one request at a time. Each request has its own connection, and no request is retried.
"""

import json
import re
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from threading import Timer
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from .._values import shown
from ..errors import ArgumentError, ArgumentTypeError, LzsError

OnRequest = Callable[[str, str, "dict[str, Any] | None", str], object]

_LONGEST_ANSWER = 16 * 2**20  # maximum size of an answer in bytes
_BYTES = re.compile(r"bytearray\(b(.*)\)")  # how h11's messages show input that h11 does not understand
_SHOWN = 200  # maximum length of an error's message in characters
_ENDINGS = ("/chat/completions", "/completions", "/models", "/v1")  # users often copy such endings with the address


class Refused(LzsError):  # noqa: N818 (the name says what the server did)
    """The server answered a request with an error. ``status``: the HTTP status. ``reason``: the server's message."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"HTTP {status}{': ' if reason else ''}{reason}")


class NotThere(Refused):
    """The server has nothing at this path (404, 405, 501)."""


class _Deadline:
    """A time limit for a whole request. After ``seconds`` the connection is cut. httpx limits only the time of each
    read or write.

    ``passed``: whether the connection was cut. The data that was received before the cut may look like a whole answer.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._socket: socket.socket | None = None
        self._timer = Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> "_Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def trace(self, event: str, about: dict[str, Any]) -> None:
        """Keep the socket of a connection. httpx calls this function for its extension "trace"."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = about["return_value"].get_extra_info("socket")

    def _cut(self) -> None:
        self.passed = True
        with suppress(OSError, AttributeError):  # The socket may not be open yet, or may be closed.
            self._socket.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]


class Client:
    """A client of the server at an address.

    ``url``: the address, with or without ``/v1``. ``timeout``: seconds for a whole answer. ``on_request`` is called
    after each request with method, path, body and outcome, none of which contains the key. ``requests``: the number of
    requests. ``shown``: the address for messages, with a note if /v1 was added. ValueError for a malformed address, or
    a key that cannot be sent.
    """

    def __init__(
        self, url: str, *, api_key: str | None = None, timeout: float = 60.0, on_request: OnRequest | None = None
    ) -> None:
        self.base = base_of(url)
        path = urlsplit(url.strip()).path.rstrip("/")
        self._added = (
            "" if not path or path.endswith(_ENDINGS) else f" (with /v1 added to {self.base.removesuffix('/v1')})"
        )
        self.shown = f"{self.base}{self._added}"
        self.timeout = timeout
        self.requests = 0
        self._on_request = on_request
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        self.has_key = bool(api_key)
        if api_key:
            if not (api_key.isascii() and api_key.isprintable()):
                raise ArgumentError("api_key must be printable ASCII characters without line ends")
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._tls = ssl.create_default_context()  # trusts the system's certificates, and not httpx's own list

    def get(self, path: str) -> dict[str, Any]:
        """Return the object at a path below ``/v1``. Raises the errors of `post`."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send an object to a path below ``/v1`` and return the answer.

        Raises `NotThere` or `Refused` if the server answers with an error, and LzsError for every other failure.
        """
        return self._ask("POST", path, body)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        self.requests += 1
        outcome = ""
        try:
            data = self._read(method, path, None if body is None else json.dumps(body).encode("utf-8"))
            answer = _object(data, f"{self.base}{path}{self._added}")
            # Some servers report an error with status 200.
            if answer.get("error") and not {"choices", "data"} & answer.keys():
                raise Refused(200, _clean(_message(data)))
            outcome = json.dumps(answer, ensure_ascii=False)
            return answer
        except LzsError as error:
            outcome = str(error)
            raise
        finally:
            if self._on_request is not None:
                self._on_request(method, path, body, outcome)

    def _read(self, method: str, path: str, sent: bytes | None) -> bytes:
        answered = False
        with _Deadline(self.timeout) as deadline, self._opened() as client:
            more: dict[str, Any] = {"content": sent, "headers": self._headers, "extensions": {"trace": deadline.trace}}
            try:
                with client.stream(method, f"{self.base}{path}", **more) as response:
                    answered = True
                    if not response.is_success:
                        raise self._failure(response)
                    data = self._body(response)
                    if deadline.passed:
                        raise self._too_slow()
                    return data
            except httpx.HTTPError as error:
                if deadline.passed or isinstance(error, httpx.TimeoutException):
                    raise self._too_slow() from None
                if isinstance(error, httpx.ConnectError):
                    raise LzsError(f"cannot connect to {self.shown}: {_why(error)}") from None
                if isinstance(error, httpx.RemoteProtocolError) and "location header" in str(error):
                    raise LzsError(
                        f"{self.shown} redirects to a malformed address: give the address of the server itself"
                    ) from None
                if answered:
                    raise LzsError(f"{self.shown} closed the connection in the middle of an answer") from None
                raise LzsError(f"{self.shown} does not answer as an HTTP server: {_why(error)}") from None

    def _opened(self) -> httpx.Client:
        """Return a client that uses the proxy that Python's urllib finds in the environment.

        httpx itself refuses usual values of NO_PROXY, such as "::1". For proxies other than HTTP, httpx needs another
        package.
        """
        parts = urlsplit(self.base)
        proxy = None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
        try:
            return httpx.Client(verify=self._tls, timeout=self.timeout, trust_env=False, proxy=proxy)
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise LzsError(
                f"the proxy {_clean(str(proxy))} of {parts.scheme.upper()}_PROXY cannot be used: {_why(error)}"
            ) from None

    def _body(self, response: httpx.Response) -> bytes:
        data = bytearray()
        for piece in response.iter_raw():
            data += piece
            if len(data) > _LONGEST_ANSWER:
                raise LzsError(f"{self.shown} sent an answer of more than {_LONGEST_ANSWER // 2**20} MiB")
        return bytes(data)

    def _too_slow(self) -> LzsError:
        return LzsError(f"{self.shown} did not answer in {self.timeout:g} seconds: give a longer --timeout")

    def _failure(self, response: httpx.Response) -> LzsError:
        status = response.status_code
        if 300 <= status < 400:
            # Redirects are not followed. Another server must not get the key, and only the given server is tested.
            there = response.headers.get("Location") or "another address"
            return LzsError(f"{self.shown} redirects to {_clean(there)}: give the address of the server itself")
        if status in (401, 403):
            what = "refuses this API key" if self.has_key else "asks for an API key: give --api-key"
            return LzsError(f"{self.shown} {what} (HTTP {status})")
        if status == 429:
            return LzsError(f"{self.shown} has had too many requests (HTTP 429): try again later")
        reason = ""
        with suppress(httpx.HTTPError, LzsError):  # If the body cannot be read, the error has only the status.
            reason = _clean(_message(self._body(response)))
        if status == 503:
            return LzsError(f"{self.shown} is not ready ({Refused(status, reason)}): try again later")
        return (NotThere if status in (404, 405, 501) else Refused)(status, reason)


def base_of(url: str) -> str:
    """Return the address of a server up to and including ``/v1``, with the host in ASCII (IDNA).

    ValueError if ``url`` is not an HTTP address.
    """
    if not isinstance(url, str):
        raise ArgumentTypeError(f"url must be a string, got {shown(url)}")
    try:
        parts = urlsplit(url.strip())
        _ = httpx.URL(url.strip()).host  # httpx may refuse addresses that urlsplit accepts.
        host = (parts.hostname or "").encode("idna").decode("ascii")
        known = parts.scheme in ("http", "https") and (parts.port or 1) > 0 and host != "" and parts.path.isascii()
        known = known and all(c.isprintable() and not c.isspace() for c in url.strip())
    except (ValueError, httpx.InvalidURL):
        known = False
    if not known:
        raise ArgumentError(f"url must be an address such as http://localhost:8000/v1, got {url!r}")
    if "@" in parts.netloc:
        raise ArgumentError("url must not contain a name or password: give the key as --api-key")
    path = parts.path.rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending)
    netloc = parts.netloc if parts.netloc.isascii() else host if parts.port is None else f"{host}:{parts.port}"
    return urlunsplit((parts.scheme, netloc, path + "/v1", "", ""))


def _object(data: bytes, where: str) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        start = _clean(data[:60].decode("utf-8", "replace"))
        raise LzsError(
            f"{where} does not answer with JSON but with {start!r}: not an OpenAI-compatible server"
        ) from None
    if not isinstance(answer, dict):
        raise LzsError(f"{where} answers with JSON that is not an object: not an OpenAI-compatible server")
    return answer


def _message(data: bytes) -> str:
    """Return the message in an error's body. OpenAI has {"error": {"message"}}, FastAPI has {"detail"}."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")
    for key in ("error", "detail", "message"):
        if isinstance(said, dict) and key in said:
            said = said[key]
    if isinstance(said, list) and said and isinstance(said[0], dict):  # FastAPI's list of errors
        where, what = said[0].get("loc"), said[0].get("msg")
        if isinstance(where, list):
            return f"{'.'.join(map(str, where))}: {what}"
    return said if isinstance(said, str) else json.dumps(said)


def _clean(text: str) -> str:
    line = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(line.split())[:_SHOWN]


def _why(error: BaseException) -> str:
    system: BaseException | None = error
    while system is not None and not isinstance(system, OSError):  # httpx wraps the OSError twice.
        system = system.__cause__ or system.__context__
    error = system or error
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, socket.gaierror):
        return "no such host"
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message or str(error)
        return f"its certificate is not trusted ({reason}); SSL_CERT_FILE=FILE names the certificate that signed it"
    if isinstance(error, ssl.SSLError):
        return f"TLS fails ({error.reason or error}); is it http:// rather than https://?"
    return _clean(_BYTES.sub(r"\1", str(error))).rstrip(".") or type(error).__name__
