"""`lzsampler.probe` against a server that is honest, those that lie, and the server of llama-cpp-python."""

import importlib.util
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lzsampler import LzsError, probe
from lzsampler._values import noun
from lzsampler.probing.checks import CHECKS
from lzsampler.probing.client import Client, _message, _why, base_of
from lzsampler.probing.endpoint import Endpoint, _logprobs
from lzsampler.probing.finding import Probe
from lzsampler.probing.server_texts import Texts, permutation_p
from lzsampler.probing.window import Window, _copies, _spelt, window
from probed import Behaviour, server

PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")


def probed(behaviour: Behaviour, endpoint: Any = "completions", **settings: Any) -> Probe:
    with server(behaviour) as url:
        return probe(url, endpoints=(endpoint,), **settings)


def answers(found: Probe) -> dict[str, str]:
    return {finding.check: finding.answer for finding in found.findings}


def wrong(found: Probe) -> list[str]:
    return [finding.check for finding in found.wrong]


# -- the honest server --


@pytest.fixture(scope="module", params=["completions", "chat"])
def honest(request: pytest.FixtureRequest) -> Probe:
    return probed(Behaviour(), request.param)


def test_a_certificate_that_is_not_trusted_is_no_plain_http() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    assert _why(error).startswith("its certificate is not trusted (self-signed certificate); SSL_CERT_FILE=FILE names")


def test_an_honest_server_is_found_honest(honest: Probe) -> None:
    assert honest.ok, honest.wrong
    assert honest.model == "made-up"
    expected = dict.fromkeys([check for check in CHECKS if check != "repeat_penalty_prompt"], "yes")
    expected |= {"logprobs": "no", "repeat_penalty": "no"}  # it gives none, and refuses that name
    if honest.findings[0].endpoint == "completions":
        assert answers(honest) == expected
    else:  # the words around the prompt may leave something open, and nothing is wrong for it
        assert all(answers(honest)[check] in (answer, "cannot tell") for check, answer in expected.items())
    assert "HTTP 400: Unknown parameter: 'repeat_penalty'." in honest.find("repeat_penalty").evidence


def test_all_checks_are_named(honest: Probe) -> None:
    assert {finding.check for finding in honest.findings} <= set(CHECKS)
    assert all(
        len(finding.evidence.splitlines()) == 1 and finding.question.endswith("?") for finding in honest.findings
    )
    made = honest.to_json()
    assert made["ok"] is True
    assert made["findings"][0].keys() == {"endpoint", "check", "question", "answer", "evidence", "wrong", "value"}


def test_both_endpoints_are_asked_and_one_that_is_missing_is_left_out() -> None:
    with server(Behaviour(chat=False)) as url:
        found = probe(url)
    assert {finding.endpoint for finding in found.findings} == {"completions"}
    with pytest.raises(KeyError):
        found.find("window", "chat")


# -- servers that lie --


@pytest.mark.parametrize("name", PENALTIES)
def test_a_penalty_that_is_ignored(name: str) -> None:
    found = probed(Behaviour(ignores=(name,)))
    assert wrong(found) == [name]
    assert found.find(name).answer == "no"
    assert "texts are the same with and without" in found.find(name).evidence
    assert all(found.find(other).answer == "yes" for other in PENALTIES if other != name)


def test_penalties_that_look_at_generated_tokens_only() -> None:
    found = probed(Behaviour(history="generated", logprobs="after"))
    assert found.ok
    assert [found.find(f"{name}_prompt").answer for name in PENALTIES] == ["no", "no", "no"]
    blind = probed(Behaviour(history="generated"))
    assert [blind.find(f"{name}_prompt").answer for name in PENALTIES[:2]] == ["no", "no"]
    assert blind.find("presence_penalty_prompt").answer != "yes"


def window_of(behaviour: Behaviour) -> Window:
    """Return what is found out about the window alone; the texts without penalties are not needed for it."""
    with server(behaviour) as url:
        endpoint = Endpoint(Client(url), "completions", None)
        counts = behaviour.history == "all"
        return window(Texts(endpoint, {}), repetition=PENALTIES[0], frequency=True, bias=True, prompt_counts=counts)


@pytest.mark.parametrize("history", ["all", "generated"])
@pytest.mark.parametrize("width", [1, 2, 20, 64, 100, 200])
def test_a_window_by_the_clock(width: int, history: str) -> None:
    """It runs where the bias comes before the penalty."""
    found = window_of(Behaviour(window=width, history=history, bias_first=True))
    assert (found.answer, found.tokens) == ("no", width)
    assert found.evidence.endswith(
        f"by repetition_penalty for {width} {noun(width, 'token')}, and then no more (two pairs of biased tokens)"
    )


@pytest.mark.parametrize("history", ["all", "generated"])
@pytest.mark.parametrize("width", [20, 64, 100, 200])
def test_a_window_by_the_run(width: int, history: str) -> None:
    """It is what is left where the bias comes after the penalty, which then does not outweigh it."""
    found = window_of(Behaviour(window=width, history=history))
    assert (found.answer, found.tokens) == ("no", width)
    assert found.evidence.startswith("a frequency_penalty ends a run of token ")


@pytest.mark.parametrize("bias_first", [False, True])
def test_no_window_and_one_that_is_wider_than_the_texts(bias_first: bool) -> None:
    for width in (0, 300):
        found = window_of(Behaviour(window=width, bias_first=bias_first))
        assert found.answer == "yes"
        assert found.tokens is not None
        assert 220 < found.tokens < 256
        assert found.evidence.endswith(" tokens, the whole length tested")


def test_a_window_without_logit_bias() -> None:
    """The prompt makes the run, and is counted with it."""
    for behaviour in (Behaviour(window=40, ignores=("logit_bias",)), Behaviour(ignores=("logit_bias",))):
        found = probed(behaviour)
        assert found.find("logit_bias").answer == "no"
        seen = found.find("window")
        assert (seen.answer, seen.value) == (("no", 40) if behaviour.window else ("yes", seen.value))
        assert seen.value is not None
        assert behaviour.window or seen.value > 200


def test_a_window_that_is_shorter_than_can_be_measured_is_not_invented() -> None:
    found = window_of(Behaviour(window=1))
    assert (found.answer, found.tokens) == ("cannot tell", None)


def test_a_seed_that_is_ignored() -> None:
    found = probed(Behaviour(ignores=("seed",)))
    assert wrong(found) == ["seed"]
    assert all(found.find(name).answer == "yes" for name in PENALTIES)


def test_one_seed_for_all() -> None:
    found = probed(Behaviour(always={"seed": 5}))
    assert wrong(found) == ["seed"]
    assert "which is not the greedy one" in found.find("seed").evidence


def test_a_temperature_that_is_ignored() -> None:
    assert wrong(probed(Behaviour(always={"temperature": 1.0}))) == ["temperature_0"]


@pytest.mark.parametrize(
    ("name", "strength"), [("repetition_penalty", 1.1), ("frequency_penalty", 0.5), ("presence_penalty", 1.5)]
)
def test_a_hidden_default(name: str, strength: float) -> None:
    found = probed(Behaviour(defaults={name: strength}))
    assert wrong(found) == ["default"]
    assert found.find("default").evidence.startswith(f"{name} {strength:g}: 11 texts are the same with that")


def test_a_hidden_default_of_an_odd_strength() -> None:
    evidence = probed(Behaviour(defaults={"repetition_penalty": 1.73})).find("default").evidence
    assert evidence.startswith("repetition_penalty applies, with none of the strengths 1.02, ")


def test_a_penalty_that_cannot_be_switched_off() -> None:
    """Only logprobs from before the penalties can show it: the token that is chosen is not the likeliest."""
    found = probed(Behaviour(always={"presence_penalty": 1.0}, logprobs="before"))
    assert wrong(found) == ["default", "presence_penalty"]
    assert "though" in found.find("default").evidence


def test_logprobs_before_and_after_the_penalties() -> None:
    before, after = (probed(Behaviour(logprobs=logprobs)) for logprobs in ("before", "after"))
    assert (before.find("logprobs").answer, after.find("logprobs").answer) == ("no", "yes")
    assert before.find("logprobs").evidence.endswith("they are from before the penalties")
    assert before.ok
    assert after.ok
    # The prompt has its word 20 times: frequency_penalty=0.05 takes one logit.
    assert 'frequency_penalty=0.05 moves " 1" by -1.00 at token 0' in after.find("frequency_penalty").evidence
    assert "presence_penalty=0.5 moves" in after.find("presence_penalty").evidence
    assert "by -0.50 at" in after.find("presence_penalty").evidence


def test_logprobs_in_a_chat() -> None:
    assert probed(Behaviour(logprobs="after"), "chat").find("logprobs").answer == "yes"


def test_what_a_server_does_not_know_and_takes_all_the_same() -> None:
    extras = ("dry_multiplier", "lz_penalty", "min_p", "top_k")
    found = probed(Behaviour(unknown=True, ignores=extras))
    assert found.ok, "only what every server is expected to have counts"
    assert found.find("unknown_parameters").answer == "no"
    assert all(found.find(name).answer == "no" for name in extras)
    assert found.find("repeat_penalty").evidence.endswith("this server calls it repetition_penalty")


def test_neither_name_of_the_repetition_penalty_does_anything() -> None:
    found = probed(Behaviour(unknown=True, ignores=("repetition_penalty",)))
    assert wrong(found) == ["repetition_penalty", "repeat_penalty"]


def test_a_server_that_repeats_no_text() -> None:
    """The permutation test still shows a penalty, and does not say that there is none."""
    found = probed(Behaviour(drift=2.0, ignores=("seed", "presence_penalty")))
    assert wrong(found) == ["temperature_0", "seed"]
    assert found.find("frequency_penalty").answer == "yes"
    assert "permutation test p = " in found.find("frequency_penalty").evidence
    assert found.find("presence_penalty").answer == "cannot tell"
    assert "a seed or temperature 0 that repeats would decide" in found.find("presence_penalty").evidence


def test_a_text_that_never_changes_tells_nothing() -> None:
    canned = {"choices": [{"text": "I am sorry, but I cannot go on with this."}]}
    found = probed(Behaviour(answer=says(canned)))
    told = ("default", *PENALTIES, "window", "top_k")
    assert {found.find(check).answer for check in told} == {"cannot tell"}
    assert found.ok


def says(answer: Any) -> Callable[[Any], object]:
    return lambda handler: handler.send(200, json.dumps(answer).encode())


# -- trouble --


def troubled(behaviour: Behaviour, **settings: Any) -> str:
    with server(behaviour) as url, pytest.raises(LzsError) as raised:
        probe(url, **settings)
    line = str(raised.value)
    assert "\n" not in line
    return line.replace(url, "URL")


ANSWERS: dict[str, tuple[Any, str]] = {
    "500": (lambda h: h.send(500, b'{"error": {"message": "no memory"}}'), "a plain request: HTTP 500: no memory"),
    "503": (lambda h: h.send(503, b"busy"), "URL is not ready (HTTP 503: busy): try again later"),
    "an error with 200": (lambda h: h.send(200, b'{"error": {"message": "no memory"}}'), "HTTP 200: no memory"),
    "malformed JSON": (lambda h: h.send(200, b'{"choices": [{"te'), "does not answer with JSON but with"),
    "not JSON": (lambda h: h.send(200, b"<html>hello"), "does not answer with JSON but with '<html>hello': not an"),
    "not an object": (lambda h: h.send(200, b"[1, 2]"), "answers with JSON that is not an object"),
    "truncated": (lambda h: h.send(200, b'{"choices"', 500), "closed the connection in the middle of an answer"),
    "a redirect": (lambda h: h.send(307, b"", Location="http://there/v1"), "redirects to http://there/v1: give"),
    "empty choices": (lambda h: h.send(200, b'{"choices": []}'), "answers with an empty list of choices"),
    "no choices": (lambda h: h.send(200, b'{"hello": 1}'), "answers with no choices"),
    "no text": (lambda h: h.send(200, b'{"choices": [{"index": 0}]}'), "answers with a choice without a text"),
    "nothing there": (lambda h: h.send(404, b"Not Found"), "has no /completions and no /chat/completions (HTTP 404"),
    "too many": (lambda h: h.send(429, b""), "has had too many requests (HTTP 429)"),
    "hung up": (lambda h: None, "does not answer as an HTTP server"),
    "deep JSON": (lambda h: h.send(200, b"[" * 200_000), "does not answer with JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_trouble_is_one_line(name: str) -> None:
    answer, message = ANSWERS[name]
    assert message in troubled(Behaviour(answer=answer))


def test_a_server_that_breaks_down_in_the_middle() -> None:
    class Failing(Behaviour):
        @property
        def answer(self) -> Any:
            return (lambda h: h.send(200, b"<html>")) if self.count > 30 else None

        @answer.setter
        def answer(self, value: Any) -> None:
            pass

    assert "does not answer with JSON" in troubled(Failing())


def test_a_server_that_is_slow() -> None:
    """In beginning to answer, and in going on: each piece comes in time, the whole does not."""

    def silent(handler: Any) -> None:
        time.sleep(1)

    def drips(handler: Any) -> None:
        handler.send(200, b"", 1000)
        for _ in range(100):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return
            time.sleep(0.05)

    def header(handler: Any) -> None:
        feed(handler, b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 100)

    def for_ever(handler: Any) -> None:
        feed(handler, b"HTTP/1.1 100 Continue\r\n\r\n" * 10)

    def feed(handler: Any, data: bytes) -> None:
        with suppress(OSError):
            for i in range(len(data)):
                handler.wfile.write(data[i : i + 1])
                time.sleep(0.02)

    for answer in (silent, drips, header, for_ever):
        line = troubled(Behaviour(answer=answer), timeout=0.2, model="m")
        assert line == "URL did not answer in 0.2 seconds: give a longer --timeout"


def test_answers_that_no_server_gives() -> None:
    """Numbers that are no floats, and an error that is not of FastAPI's form: both were tracebacks."""
    logprobs = _logprobs({"tokens": ["a"], "token_logprobs": [0], "top_logprobs": [{"a": 10**400}]})
    assert logprobs == (None, None)
    assert _message(b'{"detail": [{"loc": 5, "msg": 1}]}') == '[{"loc": 5, "msg": 1}]'
    assert _message(b'{"detail": [{"loc": ["body", 5], "msg": "no"}]}') == "body.5: no"


def test_the_key() -> None:
    assert troubled(Behaviour(key="secret")) == "URL asks for an API key: give --api-key (HTTP 401)"
    assert troubled(Behaviour(key="secret"), api_key="wrong-key") == "URL refuses this API key (HTTP 401)"
    seen: list[str] = []
    found = probed(Behaviour(key="secret"), api_key="secret", on_request=lambda *about: seen.append(repr(about)))
    assert found.ok
    assert len(seen) == found.requests
    assert "secret" not in repr(found) + "".join(seen)
    with pytest.raises(ValueError, match="api_key must be printable ASCII") as raised:
        probe("http://localhost", api_key="secret\n")
    assert "secret" not in str(raised.value)


def test_no_server() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(LzsError, match=f"cannot connect to {url}/v1: nothing listens there"):
            probe(url)
    with pytest.raises(LzsError, match=r"no-such-host\.invalid/v1: no such host"):
        probe("http://no-such-host.invalid")


@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize("value", ["localhost,::1,fe80::/10", "[::1]", "é", "*"])
def test_hosts_without_a_proxy_are_asked_themselves(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(LzsError, match=r"cannot connect to http://127.0.0.1:9/v1: nothing listens there"):
        probe("http://127.0.0.1:9/v1")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "garbage://x", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_one_line(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(LzsError, match=r"^the proxy .* of HTTP_PROXY cannot be used: "):
        probe("http://h.invalid/v1")


def test_the_address_that_was_given_is_said() -> None:
    """A message about /v2/v1 alone leaves open where it comes from."""
    with server(Behaviour(answer=ANSWERS["nothing there"][0])) as url:
        for given, shown in (
            ("/v2", "/v2/v1 (with /v1 added to GIVEN)"),
            ("/v2/v1", "/v2/v1"),
            ("/v2/v1/completions", "/v2/v1"),
            ("", "/v1"),
        ):
            address = url.removesuffix("/v1") + given
            with pytest.raises(LzsError) as raised:
                probe(address)
            start = url.removesuffix("/v1") + shown.replace("GIVEN", address)
            assert str(raised.value).startswith(f"{start} has no /completions and no /chat/completions (HTTP 404")


def test_the_page_says_how_many_requests_there_are() -> None:
    page = (Path(__file__).parents[1] / "docs" / "probe.md").read_text(encoding="utf-8")
    told = re.search(r"some (\d+) to (\d+) requests for each endpoint", page)
    assert told is not None
    for behaviour in (Behaviour(), Behaviour(history="generated"), Behaviour(ignores=("seed",), unknown=True)):
        with server(behaviour) as url:
            for kind in ("completions", "chat"):
                assert int(told[1]) <= probe(url, endpoints=(kind,)).requests <= int(told[2])


def test_addresses() -> None:
    bases = ("http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/chat/completions")
    assert {base_of(url) for url in bases} == {"http://h:1/v1"}
    assert base_of("https://h/api/v1/completions?x=1") == "https://h/api/v1"
    assert base_of("http://例え.invalid:80") == "http://xn--r8jz45g.invalid:80/v1"
    assert base_of("http://[::1]:80") == "http://[::1]:80/v1"
    for url in ("localhost:8000", "", "ftp://h", "http://", "http://h:x", "file:///etc/passwd", "http://xn--a"):
        with pytest.raises(ValueError, match="url must be an address such as http://localhost:8000/v1, got"):
            probe(url)
    with pytest.raises(ValueError, match="must not contain a name or password") as raised:
        probe("http://me:secret@h")
    assert "secret" not in str(raised.value)


def test_bad_arguments() -> None:
    for timeout in (0, -1, float("nan"), float("inf"), 1e300):
        with pytest.raises(ValueError, match="timeout must be above 0 and at most 86400 seconds, got"):
            probe("http://h", timeout=timeout)
    for endpoints in ((), ("chats",)):
        with pytest.raises(ValueError, match="endpoints must be some of completions, chat, got"):
            probe("http://h", endpoints=endpoints)  # type: ignore[arg-type]


def test_the_model_is_asked_for() -> None:
    behaviour = Behaviour()
    assert probed(behaviour, model="other").model == "other"
    assert {body["model"] for body in behaviour.bodies} == {"other"}


# -- parts --


def test_permutation_p() -> None:
    assert permutation_p([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == pytest.approx(2 / 20)
    assert permutation_p([1.0, 1.0], [1.0, 1.0]) == 1


def test_texts_of_copies() -> None:
    assert _copies(" the the the") == ("the ", 3)
    assert _copies("ababab") == ("ab", 3)
    assert _copies(" \n") == ("", 0)
    assert _copies("\ufffd\ufffd") == ("", 0)
    assert _spelt(" the cat the", "the", "cat") == ["the", "cat", "the"]
    assert _spelt("thethere", "the", "there") == ["the", "there"]
    assert _spelt("the dog", "the", "cat") == []


# -- the server of llama-cpp-python --

_NEEDED = ("llama_cpp", "fastapi", "uvicorn", "sse_starlette", "starlette_context", "pydantic_settings")


@pytest.fixture(scope="module")
def llama_server() -> Iterator[str]:
    for package in _NEEDED:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}: pip install 'llama-cpp-python[server]'")
    from lzsampler.models import default_model

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(default_model()), "--port", str(port)]
    command += ["--n_ctx", "1024", "--n_threads", "1", "--verbose", "false"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
    ) as process:
        try:
            for _ in range(600):
                assert process.poll() is None, "the server ended"
                try:
                    with urllib.request.urlopen(f"http://localhost:{port}/v1/models"):
                        break
                except OSError:
                    time.sleep(0.1)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()


def test_the_server_of_llama_cpp_python(llama_server: str) -> None:
    """Its schema has repeat_penalty 1.1, its window is llama.cpp's 64, and samplers there do not see the prompt."""
    found = probe(llama_server, endpoints=("completions",))
    assert wrong(found) == ["default"]
    assert found.find("default").evidence.startswith("repeat_penalty 1.1: 11 texts are the same with that")
    assert (found.find("window").answer, found.find("window").value) == ("no", 64)
    yes = ("temperature_0", "seed", "repeat_penalty", *PENALTIES[1:], "top_k", "min_p", "logit_bias")
    assert {check: found.find(check).answer for check in yes} == dict.fromkeys(yes, "yes")
    no = [
        *("unknown_parameters", "logprobs", "repetition_penalty", "dry_multiplier", "lz_penalty"),
        *("repeat_penalty_prompt", "frequency_penalty_prompt"),
    ]
    assert {check: found.find(check).answer for check in no} == dict.fromkeys(no, "no")
    assert found.find("logprobs").evidence.endswith("they are from before the penalties")
