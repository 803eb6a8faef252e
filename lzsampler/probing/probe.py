"""`probe`: sends requests to find out what an OpenAI-compatible server does with penalties and seeds."""

from collections.abc import Callable, Sequence

from ..errors import ArgumentError, LzsError
from .checks import Checks
from .client import Client, NotThere, OnRequest, Refused
from .endpoint import PATHS, Endpoint, Kind
from .finding import Finding, Probe
from .server_texts import GREEDY

_LONGEST_TIMEOUT = 86_400  # seconds; operating systems accept at most some weeks


def probe(
    url: str,
    *,
    model: str | None = None,
    api_key: str | None = None,
    timeout: float = 60.0,
    endpoints: Sequence[Kind] = ("completions", "chat"),
    on_request: OnRequest | None = None,
    on_step: Callable[[str], object] | None = None,
    on_finding: Callable[[Finding], object] | None = None,
) -> Probe:
    """Find out what a server with OpenAI's interface does with penalties, defaults and seeds.

    The probe sends a few hundred requests of at most 256 tokens, one at a time. docs/probe.md explains each check.

    ``url``: the server's address, such as ``http://localhost:8000/v1``. ``model``: the name of a model; None means the
    first model that the server lists. ``api_key``: a key that is sent only to this server. ``timeout``: seconds for one
    answer, at most a day. ``endpoints``: the endpoints to test. Endpoints that the server lacks are left out.
    ``on_request`` is called after each request with method, path, body (or None) and the outcome in one line.
    ``on_step`` is called with the name of each step before the step. ``on_finding`` is called with each finding as soon
    as it is known.

    Raises ValueError for a bad argument. Raises LzsError if the server cannot be reached, refuses the key, does not
    answer in time, or does not have OpenAI's interface.
    """
    if not 0 < timeout <= _LONGEST_TIMEOUT:
        raise ArgumentError(f"timeout must be above 0 and at most {_LONGEST_TIMEOUT} seconds, got {timeout!r}")
    if not endpoints or any(kind not in PATHS for kind in endpoints):
        raise ArgumentError(f"endpoints must be some of {', '.join(PATHS)}, got {endpoints!r}")
    client = Client(url, api_key=api_key, timeout=timeout, on_request=on_request)
    name = model if model is not None else _first_model(client)
    findings: list[Finding] = []
    missing: NotThere | None = None
    found = False
    for kind in endpoints:
        endpoint = Endpoint(client, kind, name)
        try:
            endpoint.ask("Once upon a time", tokens=1, **GREEDY)
        except NotThere as error:
            missing = error
            continue
        except Refused as error:
            raise LzsError(f"{client.shown} refuses a plain request: {error}") from None
        found = True
        for finding in Checks(endpoint, on_step or (lambda _: None)).run():
            findings.append(finding)
            if on_finding is not None:
                on_finding(finding)
    if not found:
        raise LzsError(f"{client.shown} has no {' and no '.join(PATHS[k] for k in endpoints)} ({missing})")
    return Probe(client.base, name, client.requests, tuple(findings))


def _first_model(client: Client) -> str | None:
    """Return the first model that the server lists; None if the server has no list."""
    try:
        listed = client.get("/models").get("data")
    except Refused:
        return None
    first = listed[0] if isinstance(listed, list) and listed else None
    name = first.get("id") if isinstance(first, dict) else None
    return name if isinstance(name, str) else None
