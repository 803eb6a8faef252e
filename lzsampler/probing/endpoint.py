"""`Endpoint`: asks an endpoint of a server, completions or chat, for the continuation of a prompt."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from ..errors import LzsError
from .client import Client

Kind = Literal["completions", "chat"]
PATHS: dict[Kind, str] = {"completions": "/completions", "chat": "/chat/completions"}

_CONTINUE = "Continue this text. Write only the continuation:\n\n"


@dataclass(frozen=True)
class Answer:
    """A server's answer. A value that the server did not send is None.

    ``chosen``: text and log-probability of each chosen token. ``best``: for each position, the log-probabilities of the
    likeliest tokens, by the text of the token.
    """

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    chosen: tuple[tuple[str, float], ...] | None = None
    best: tuple[dict[str, float], ...] | None = None


class Endpoint:
    """An endpoint of a server. ``model``: the model to ask for; None means the server's default."""

    def __init__(self, client: Client, kind: Kind, model: str | None) -> None:
        self.client = client
        self.kind: Kind = kind
        self.model = model

    def ask(self, prompt: str, *, tokens: int, logprobs: int = 0, **parameters: Any) -> Answer:
        """Return the server's continuation of a prompt. It has at most ``tokens`` tokens.

        ``logprobs``: the number of likeliest tokens to ask for at each position. ``parameters``: further members of the
        request. Raises the errors of `Client.post`, and LzsError for an answer that is not a completion.
        """
        body: dict[str, Any] = {} if self.model is None else {"model": self.model}
        if self.kind == "chat":
            body["messages"] = [{"role": "user", "content": _CONTINUE + prompt}]
            asked: dict[str, Any] = {"logprobs": True, "top_logprobs": logprobs}
        else:
            body["prompt"] = prompt
            asked = {"logprobs": logprobs}
        body |= {"max_tokens": tokens, **(asked if logprobs else {}), **parameters}
        return _answer(self.client.post(PATHS[self.kind], body), self)


def _answer(found: dict[str, Any], endpoint: Endpoint) -> Answer:
    where = f"{endpoint.client.base}{PATHS[endpoint.kind]}"
    choices = found.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        what = "an empty list of choices" if choices == [] else "no choices"
        raise LzsError(f"{where} answers with {what}: not an answer of an OpenAI-compatible server")
    choice = choices[0]
    text = _text(choice)
    if text is None:
        raise LzsError(f"{where} answers with a choice without a text: not an answer of an OpenAI-compatible server")
    usage = found.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    chosen, best = _logprobs(choice.get("logprobs"))
    return Answer(text, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")), chosen, best)


def _text(choice: dict[str, Any]) -> str | None:
    message = choice.get("message")
    if isinstance(message, dict):
        parts = [message.get(key) for key in ("reasoning_content", "reasoning", "content")]
        return "".join(part for part in parts if isinstance(part, str))
    text = choice.get("text")
    return text if isinstance(text, str) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _logprobs(given: Any) -> tuple[tuple[tuple[str, float], ...] | None, tuple[dict[str, float], ...] | None]:
    """Return `Answer.chosen` and `Answer.best`, from either of the two usual forms; (None, None) for any other form.

    Tokens of probability 0 are left out of `Answer.best`.
    """
    try:
        if isinstance(given.get("content"), list):  # Chat endpoints and llama-server's completions have this form.
            rows = given["content"]
            chosen = [(row["token"], float(row["logprob"])) for row in rows]
            best = [{top["token"]: float(top["logprob"]) for top in row.get("top_logprobs") or ()} for row in rows]
        else:
            chosen = [(token, float(n)) for token, n in zip(given["tokens"], given["token_logprobs"], strict=True)]
            best = [{token: float(n) for token, n in top.items()} for top in given["top_logprobs"]]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None, None
    best = [{token: n for token, n in top.items() if isfinite(n)} for top in best]
    return (tuple(chosen), tuple(best)) if chosen and len(chosen) == len(best) and all(best) else (None, None)
