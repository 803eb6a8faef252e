"""A server of OpenAI's interface whose model and whose lies are known, for the tests of `lzsampler.probe`.

The model is made up: 512 words, logits that follow from the last two words, and a leaning to go on as the text did
before after the same word. Sampling is that of `lzsampler.Sampler`.
"""

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from lzsampler import Params, Sampler

N_VOCAB = 512
_TEXT = """
1 A B C D the cat sat on mat, Once upon a time there was king who had three sons, and The house
stood at end of road, road red blue green no Continue this text. Write only continuation:
"""
_WORDS = _TEXT.split()
SAMPLING = [
    *("repetition_penalty", "frequency_penalty", "presence_penalty", "dry_multiplier", "lz_penalty"),
    *("min_p", "top_k", "top_p", "temperature", "seed"),
]
KNOWN = [*SAMPLING, "logit_bias", "logprobs", "top_logprobs", "max_tokens", "prompt", "messages", "model"]


@dataclass
class Behaviour:
    """What a server does. As it is made it is honest: it counts prompt and text, and refuses what it does not know.

    ``ignores``: parameters that it takes and does nothing with; ``unknown``: whether unknown ones are taken, too.
    ``defaults``: what holds where a request is silent, ``always``: what holds whatever a request says. ``window``: as
    ``penalty_window`` of `Params`. ``bias_first``: `logit_bias` is added before the penalties, as in llama.cpp,
    and not after them, as in ours. ``logprobs``: "after" the penalties, "before" them, or none (None). ``drift``: the
    noise on the logits, another in each request, as of a server that is not deterministic. ``answer``: what stands in
    the place of an answer (status, headers, body), at all requests or, with ``late``, after that many.
    """

    ignores: tuple[str, ...] = ()
    unknown: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)
    always: dict[str, Any] = field(default_factory=dict)
    history: str = "all"
    window: int = 0
    bias_first: bool = False
    logprobs: str | None = None
    drift: float = 0.0
    answer: Callable[[BaseHTTPRequestHandler], object] | None = None
    chat: bool = True
    completions: bool = True
    key: str = ""
    count: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)


def token_of(word: str) -> int:
    return _WORDS.index(word) if word in _WORDS else len(_WORDS) + zlib.crc32(word.encode()) % (N_VOCAB - len(_WORDS))


def word_of(token: int) -> str:
    return _WORDS[token] if token < len(_WORDS) else f"w{token}"


_NOISE: dict[tuple[int, ...], Any] = {}


def logits_of(tokens: list[int]) -> Any:
    """Return the model's logits: likely words are near each other, and what came after the last word before leads."""
    last = tuple(tokens[-2:])
    if last not in _NOISE:
        _NOISE[last] = np.random.default_rng(last).normal(0, 2, N_VOCAB).astype(np.float32)
    row: Any = _NOISE[last].copy()
    row[: len(_WORDS)] += 3
    for at in range(len(tokens) - 2, -1, -1):
        if tokens[at] == tokens[-1]:
            row[tokens[at + 1]] += 9
            break
    return row


def given_of(body: dict[str, Any], behaviour: Behaviour) -> dict[str, Any]:
    return {**behaviour.defaults, **{k: v for k, v in body.items() if k not in behaviour.ignores}, **behaviour.always}


def params_of(given: dict[str, Any], behaviour: Behaviour) -> Params:
    fields = {name: given[name] for name in SAMPLING if given.get(name) is not None}
    if "seed" not in fields:
        fields["seed"] = behaviour.count
    return Params(**fields, history=behaviour.history, penalty_window=behaviour.window)  # type: ignore[arg-type]


def complete(body: dict[str, Any], behaviour: Behaviour) -> dict[str, Any]:
    text = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
    prompt = [token_of(word) for word in text.split()]
    given = given_of(body, behaviour)
    bias = {int(token): float(n) for token, n in (given.get("logit_bias") or {}).items() if int(token) < N_VOCAB}
    params = params_of(given, behaviour)
    if not behaviour.bias_first:
        params = replace(params, logit_bias=bias)
    sampler = Sampler(N_VOCAB, params)
    penalised = Sampler(N_VOCAB, replace(params, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0))
    sampler.prime(prompt)
    penalised.prime(prompt)
    noise = np.random.default_rng(behaviour.count)
    made: list[int] = []
    rows = []
    for _ in range(body.get("max_tokens", 16)):
        row = logits_of(prompt + made)
        for token, n in bias.items() if behaviour.bias_first else ():
            row[token] += n
        if behaviour.drift:
            row += noise.normal(0, behaviour.drift, N_VOCAB).astype(np.float32)
        shown = row.copy()
        if behaviour.logprobs == "after":
            penalised.process(row, out=shown)
        rows.append(shown - np.logaddexp.reduce(shown))
        made.append(sampler.step(row))
        penalised.accept(made[-1])
    answer = "".join(f" {word_of(token)}" for token in made)
    choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
    choice |= {"message": {"role": "assistant", "content": answer}} if "messages" in body else {"text": answer}
    if behaviour.logprobs and body.get("logprobs"):
        choice["logprobs"] = logprobs_of(made, rows, body)
    usage = {"prompt_tokens": len(prompt), "completion_tokens": len(made), "total_tokens": len(prompt) + len(made)}
    return {"object": "text_completion", "choices": [choice], "usage": usage}


def logprobs_of(made: list[int], rows: list[Any], body: dict[str, Any]) -> dict[str, Any]:
    names = [f" {word_of(token)}" for token in made]
    chosen = [float(row[token]) for row, token in zip(rows, made, strict=True)]
    n = body.get("top_logprobs", body["logprobs"])
    best = [{f" {word_of(i)}": float(row[i]) for i in np.argsort(row)[::-1][:n]} for row in rows]
    if "messages" not in body:
        return {"tokens": names, "token_logprobs": chosen, "top_logprobs": best}
    tops = [[{"token": token, "logprob": number} for token, number in top.items()] for top in best]
    parts = zip(names, chosen, tops, strict=True)
    return {"content": [{"token": token, "logprob": n, "top_logprobs": top} for token, n, top in parts]}


class _Handler(BaseHTTPRequestHandler):
    behaviour: Behaviour

    def do_GET(self) -> None:
        self.respond(200, {"object": "list", "data": [{"id": "made-up", "object": "model"}]}, "/v1/models")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.behaviour.count += 1
        self.behaviour.bodies.append(body)
        unknown = [name for name in body if name not in KNOWN]
        if unknown and not self.behaviour.unknown:
            self.respond(400, {"error": {"message": f"Unknown parameter: {unknown[0]!r}."}})
            return
        paths = {"/v1/completions": self.behaviour.completions, "/v1/chat/completions": self.behaviour.chat}
        self.respond(
            *((200, complete(body, self.behaviour)) if paths.get(self.path) else (404, {"detail": "Not Found"}))
        )

    def respond(self, status: int, answer: dict[str, Any], path: str = "") -> None:
        if self.behaviour.key and self.headers["Authorization"] != f"Bearer {self.behaviour.key}":
            status, answer = 401, {"error": {"message": "Invalid API key"}}
        elif self.behaviour.answer is not None:
            self.behaviour.answer(self)
            return
        self.send(status, json.dumps(answer).encode())

    def send(self, status: int, data: bytes, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def server(behaviour: Behaviour) -> Iterator[str]:
    """Yield the address of a server."""
    handler = type("Handler", (_Handler,), {"behaviour": behaviour})
    listening = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_address[1]}/v1"
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def waits(seconds: float) -> Callable[[BaseHTTPRequestHandler], object]:
    """Return an answer that comes late."""
    return lambda handler: time.sleep(seconds)
