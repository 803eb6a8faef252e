"""Joins the chunks of streamed answers. Each chunk is on a line or in a server-sent event.

`curl` saves such streams, and some clients log every chunk (openai, llama_cpp.server, vLLM). The module reads the
streams of OpenAI-compatible servers, ollama, OpenAI's Responses, Anthropic, Cohere, llama-server's /completion,
text-generation-inference and the AI SDK.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..reading.format import Format, Message, NoTextError, Source
from ..reading.messages import content, groups, name, reasoning_beside
from . import openai_response

_ANTHROPIC = {
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
}
_COHERE = {"message-start", "content-start", "content-delta", "content-end", "message-end"}
_AI_SDK = {"start", "text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"}
_REMEMBERED = 1000  # maximum number of finished answers that are remembered (`_chunk`)
_LAST = ("response.completed", "response.incomplete", "response.failed")


@dataclass
class _Answer:
    """One answer, with the texts of the chunks read so far."""

    id: str | None
    number: int
    groups: dict[str, str] = field(default_factory=dict)
    reasoning: list[str] = field(default_factory=list)
    answer: list[str] = field(default_factory=list)
    calls: bool = False

    def message(self) -> Message | None:
        """Return the answer so far; None if it only calls tools."""
        reasoning, answer = "".join(self.reasoning), "".join(self.answer)
        if self.calls and not reasoning and not answer:
            return None
        return Message(answer, reasoning or None, self.id, self.groups, self.number)


def _kind(row: Any) -> str:
    """Return the kind of stream to which a row belongs; "" if a row is not part of a stream."""
    if not isinstance(row, dict):
        return ""
    choices, kind = row.get("choices"), row.get("type")
    if isinstance(choices, list):
        first = choices[0] if choices else None
        if row.get("object") == "chat.completion.chunk" or (isinstance(first, dict) and "delta" in first):
            return "chunk"
        text = row.get("object") == "text_completion" and isinstance(first, dict) and not first.get("finish_reason")
        return "text" if text else ""
    if isinstance(row.get("done"), bool) and ("response" in row or isinstance(row.get("message"), dict)):
        return "ollama"
    if isinstance(kind, str):
        if kind in _ANTHROPIC and (kind != "message_start" or "message" in row):
            return "anthropic"
        if kind.startswith("response.") and ("response" in row or "sequence_number" in row or "delta" in row):
            return "responses"
        if kind in _COHERE and ("delta" in row or "index" in row):
            return "cohere"
        if kind in _AI_SDK:
            return "ai-sdk"
    if isinstance(row.get("stop"), bool) and isinstance(row.get("content"), str) and "messages" not in row:
        return "llama-server"
    token = row.get("token")
    return "tgi" if isinstance(token, dict) and "text" in token and "generated_text" in row else ""


def matches(row: Any) -> bool:
    """Recognise a chunk of an answer by its kind. The last chunk of a stream may have the form of a whole answer."""
    kind = _kind(row)
    return bool(kind) and not (kind in ("ollama", "llama-server") and row.get("done", row.get("stop")))


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Add a chunk to its answer. Yield each answer that the chunk ends."""
    kind = _kind(row)
    open_: dict[Any, _Answer] = source.state.setdefault("open", {})
    if kind == "" and isinstance(row, dict) and row.get("object") == "text_completion":
        # The last chunk of a text completion has a finish reason, so `_kind` does not recognise it.
        kind = "text" if any(key[0] == row.get("id") for key in open_) else ""
    if kind in ("chunk", "text"):
        yield from _chunk(row, source, open_)
    elif kind == "" and openai_response.matches(row):  # This answer was not streamed.
        yield from openai_response.messages(row, source)
    elif kind == "":
        if isinstance(row, dict) and row.get("error"):
            raise NoTextError(f"the request failed: {str(row['error'])[:200]}")
        raise TypeError("it is not a chunk of a stream")
    else:
        yield from _EVENTS[kind](row, source, open_)


def finish(source: Source) -> Iterator[Message]:
    """Yield the answers that were cut off."""
    for answer in source.state.pop("open", {}).values():
        if (made := answer.message()) is not None:
            yield made


def _of(open_: dict[Any, _Answer], key: Any, row: Any, source: Source) -> _Answer:
    answer = open_.get(key)
    if answer is None:
        id = name(row)
        answer = open_[key] = _Answer(id, source.state.get("number", 0))
    answer.groups.update(groups(row, source.by))
    return answer


def _ended(open_: dict[Any, _Answer], key: Any) -> Iterator[Message]:
    if key in open_ and (made := open_.pop(key).message()) is not None:
        yield made


def _add(answer: _Answer, piece: Any) -> None:
    """Add the text and the reasoning of a delta or message to an answer."""
    if any(piece.get(key) for key in ("tool_calls", "function_call")):
        answer.calls = True
    inside, text = content(piece.get("content"))
    answer.reasoning.append(reasoning_beside(piece) or inside or "")
    answer.answer.append(text or "")


def _chunk(row: Any, source: Source, open_: dict[Any, _Answer]) -> Iterator[Message]:
    finished: dict[Any, None] = source.state.setdefault("finished", {})
    for choice in row["choices"]:
        key = (row.get("id"), choice.get("index", 0))
        delta = choice.get("delta")
        # Some servers send further chunks after the chunk with the finish reason. A new answer with the same id has a
        # role or a text.
        if key in finished:
            if not (choice.get("text") or (isinstance(delta, dict) and any(delta.get(k) for k in ("role", "content")))):
                continue
            del finished[key]
        answer = _of(open_, key, row, source)
        if isinstance(delta, dict):
            _add(answer, delta)
        elif isinstance(choice.get("message"), dict):
            _add(answer, choice["message"])
        else:
            answer.answer.append(choice.get("text") or "")
        reason = choice.get("finish_reason")
        if reason:
            answer.groups.update(groups({"finish_reason": reason}))
            yield from _ended(open_, key)
            finished[key] = None
            if len(finished) > _REMEMBERED:
                del finished[next(iter(finished))]


def _ollama(row: Any, source: Source, open_: dict[Any, _Answer]) -> Iterator[Message]:
    message = row.get("message")
    key = ("ollama", row.get("model"), isinstance(message, dict))
    answer = _of(open_, key, row, source)
    if isinstance(message, dict):
        _add(answer, message)
    else:
        _add(answer, {"content": row.get("response"), "thinking": row.get("thinking")})
    if row["done"]:
        yield from _ended(open_, key)


def _anthropic(row: Any, source: Source, open_: dict[Any, _Answer]) -> Iterator[Message]:
    kind = row["type"]
    if kind == "message_start":
        yield from _ended(open_, "anthropic")  # If the previous answer has not ended, it was cut off.
        _of(open_, "anthropic", row["message"], source)
    elif kind == "message_stop":
        yield from _ended(open_, "anthropic")
    elif kind == "ping" or kind == "content_block_stop":
        return
    else:
        answer = _of(open_, "anthropic", {}, source)
        piece = row.get("delta") or row.get("content_block") or {}
        answer.groups.update(groups({"finish_reason": piece.get("stop_reason")}))
        answer.calls |= piece.get("type") in ("tool_use", "input_json_delta")
        answer.reasoning.append(piece.get("thinking") or "")
        answer.answer.append(piece.get("text") or "")


def _responses(row: Any, source: Source, open_: dict[Any, _Answer]) -> Iterator[Message]:
    kind, whole = row["type"], row.get("response")
    if kind == "response.created":
        yield from _ended(open_, "responses")
        _of(open_, "responses", whole or {}, source)
    elif kind in _LAST:
        answer = open_.pop("responses", None)
        number = answer.number if answer else source.state.get("number", 0)
        if isinstance(whole, dict) and whole.get("output"):
            for made in openai_response.messages(whole, source):
                yield made._replace(number=number)
        elif answer is not None and (made_ := answer.message()) is not None:
            yield made_
    elif kind.endswith(".delta") and isinstance(row.get("delta"), str):
        answer = _of(open_, "responses", {}, source)
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            answer.answer.append(row["delta"])
        elif kind.startswith("response.reasoning"):
            answer.reasoning.append(row["delta"])


def _cohere(row: Any, source: Source, open_: dict[Any, _Answer]) -> Iterator[Message]:
    kind = row["type"]
    if kind == "message-start":
        yield from _ended(open_, "cohere")
    answer = _of(open_, "cohere", row if kind == "message-start" else {}, source)
    if kind == "content-delta":
        piece = row["delta"]["message"]["content"]
        answer.reasoning.append(piece.get("thinking") or "")
        answer.answer.append(piece.get("text") or "")
    elif kind == "message-end":
        answer.groups.update(groups(row.get("delta") or {}))
        yield from _ended(open_, "cohere")


def _ai_sdk(row: Any, source: Source, open_: dict[Any, _Answer]) -> Iterator[Message]:
    kind = row["type"]
    if kind == "start":
        yield from _ended(open_, "ai-sdk")
    answer = _of(open_, "ai-sdk", {"id": row.get("messageId")}, source)
    if kind.endswith("-delta"):
        text = row.get("delta") or row.get("text") or row.get("textDelta") or ""
        (answer.reasoning if kind.startswith("reasoning") else answer.answer).append(text)


def _llama_server(row: Any, source: Source, open_: dict[Any, _Answer]) -> Iterator[Message]:
    key = ("llama-server", row.get("index"))
    answer = _of(open_, key, row, source)
    answer.answer.append(row["content"])
    if row["stop"]:
        answer.groups.update(groups({"finish_reason": row.get("stop_type")}))
        yield from _ended(open_, key)


def _tgi(row: Any, source: Source, open_: dict[Any, _Answer]) -> Iterator[Message]:
    answer = _of(open_, "tgi", row.get("details") or {}, source)
    if not row["token"].get("special"):
        answer.answer.append(row["token"]["text"])
    if row["generated_text"] is not None:
        answer.answer[:] = [row["generated_text"]]
        yield from _ended(open_, "tgi")


_EVENTS = {
    "ollama": _ollama,
    "anthropic": _anthropic,
    "responses": _responses,
    "cohere": _cohere,
    "ai-sdk": _ai_sdk,
    "llama-server": _llama_server,
    "tgi": _tgi,
}

FORMAT = Format(
    "stream",
    "streams of OpenAI-compatible servers, ollama and others; chunks are joined",
    matches,
    messages,
    cut=False,
    session=True,
    finish=finish,
)
