"""Answers of OpenAI-compatible servers and of ollama: chat and text completions, the Responses API, and Batch output.

The row is the answer, or has the answer under `response.body` (Batch of OpenAI, vLLM and Together) or `response`.
"""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, NoTextError, Source
from ..reading.messages import groups, items, name, written


def _body(row: dict[str, Any]) -> Any:
    response = row.get("response")
    if isinstance(response, dict):
        return response.get("body", response)
    return row


def _has_turns(choices: list[Any]) -> bool:
    """Return whether choices have the form of MT-Bench. They are then not from a server."""
    return bool(choices) and isinstance(choices[0], dict) and "turns" in choices[0]


def matches(row: Any) -> bool:
    """Recognise an answer by `choices`, `output` or ollama's `message`, and a failed request by its `custom_id`."""
    if not isinstance(row, dict):
        return False
    body = _body(row)
    if isinstance(body, dict) and (
        (isinstance(body.get("choices"), list) and not _has_turns(body["choices"]))
        or (body.get("object") == "response" and isinstance(body.get("output"), list))
        or (isinstance(body.get("message"), dict) and ("done" in body or "done_reason" in body))
    ):
        return True
    return "custom_id" in row and "response" in row


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every choice."""
    body = _body(row)
    if row.get("error") or not isinstance(body, dict) or body.get("error"):
        error = row.get("error") or (body.get("error") if isinstance(body, dict) else None)
        said = error.get("message") if isinstance(error, dict) else error
        raise NoTextError(f"the request failed: {said or 'there is no answer'}")
    found, id = groups(body, source.by), name(row) or name(body)
    if body is not row:
        found = {**groups(row, source.by), **found}
    if isinstance(body.get("output"), list):
        yield _response(body, found, id)
        return
    for choice in body.get("choices", [body]):
        if "delta" in choice:
            raise NoTextError("it is a chunk of a stream: read the file with --format stream")
        told = {**found, **groups({"finish_reason": choice.get("finish_reason")})}
        message = choice.get("message")
        made = Message(choice["text"], None, id, told) if message is None else written(message, told, id)
        if made is not None:
            yield made


def _response(body: dict[str, Any], found: dict[str, str], id: str | None) -> Message:
    reasoning, answer = items(body["output"])
    why = body.get("incomplete_details") or {}
    if body.get("status") == "incomplete" and why.get("reason"):
        found.update(groups({"finish_reason": why["reason"]}))
    return Message("".join(answer), "".join(reasoning) or None, id, found)


FORMAT = Format(
    "openai-response",
    "answers of an OpenAI-compatible server, and Batch output",
    matches,
    messages,
)
