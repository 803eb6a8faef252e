"""Answers of llama-server's native /completion."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, name, written

_KEYS = {"stop_type", "tokens_predicted", "generation_settings", "stopped_limit"}


def matches(row: Any) -> bool:
    """Recognise an answer by `content` and by a key that only this server uses."""
    return isinstance(row, dict) and "content" in row and bool(_KEYS & row.keys())


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the answer, with `stop_type` as its finish reason. KeyError for a row without content."""
    if "content" not in row:
        raise KeyError("content")
    found = groups({**row, "finish_reason": row.get("stop_type")}, source.by)
    if row.get("stopped_limit") is True:  # Older servers have no stop_type, but a key for each finish reason.
        found["finish_reason"] = "length"
    made = written(row, found, name(row))
    if made is not None:
        yield made


FORMAT = Format("llama-server", "answers of llama-server's /completion", matches, messages)
