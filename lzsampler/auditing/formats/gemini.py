"""Answers of Google's Gemini API, through google-genai or REST, and of Vertex AI. Answers may be streamed.

In a batch, each line has an answer under `response`. The chunks of a streamed answer share one `responseId`, and only
the last chunk has a finish reason. `streamGenerateContent` returns an array of chunks.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..reading.format import Format, Message, NoTextError, Source
from ..reading.messages import content, groups

_IDS = ("responseId", "response_id")


def matches(row: Any) -> bool:
    """Recognise an answer by its candidates. An answer without candidates is recognised by its prompt feedback."""
    if not isinstance(row, dict):
        return False
    candidates = row.get("candidates")
    if isinstance(candidates, list) and candidates:
        first = candidates[0]
        return isinstance(first, dict) and (
            "content" in first or bool({"finishReason", "finish_reason"} & first.keys())
        )
    return bool({"promptFeedback", "prompt_feedback"} & row.keys())


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every complete candidate. Add a chunk of a stream to the earlier chunks."""
    if not matches(row):
        raise KeyError("candidates")
    id = next((row[key] for key in _IDS if isinstance(row.get(key), str)), None)
    found = groups(row, source.by)
    open_: dict[Any, Message] = source.state.setdefault("open", {})
    if not row.get("candidates"):
        raise NoTextError(f"there is no answer: {row.get('promptFeedback') or row.get('prompt_feedback')}")
    for candidate in row["candidates"]:
        reason = candidate.get("finishReason") or candidate.get("finish_reason")
        told = {**found, **groups({"finish_reason": reason})}
        parts: Any = (candidate.get("content") or {}).get("parts") or []
        reasoning, answer = content(parts)
        if answer is None and reasoning is None and any(isinstance(part, Mapping) for part in parts):
            continue  # The candidate only calls functions.
        made = Message(answer or "", reasoning, None, told, source.state.get("number"))
        key = (id, candidate.get("index") or 0)
        if before := open_.pop(key, None):
            made = before._replace(
                answer=(before.answer or "") + (answer or ""),
                reasoning=((before.reasoning or "") + (reasoning or "")) or None,
                groups={**before.groups, **told},
            )
        if reason or id is None:
            yield made
        else:
            open_[key] = made


def finish(source: Source) -> Iterator[Message]:
    """Yield the answers that were cut off."""
    yield from source.state.pop("open", {}).values()


FORMAT = Format(
    "gemini", "answers of Google's Gemini API and Vertex AI", matches, messages, cut=False, session=True, finish=finish
)
