"""Chats of text-generation-webui: pairs [user, model] under `internal`. `visible` has the same pairs as HTML."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import ONE_CHAT, Format, Message, Source

_GREETING = "<|BEGIN-VISIBLE-CHAT|>"  # the user's text in the pair with the greeting of the character's card


def matches(row: Any) -> bool:
    """Recognise a chat by its two histories, whose keys are `internal` and `visible`, or `data` and `data_visible`."""
    return isinstance(row, dict) and ({"internal", "visible"} <= row.keys() or {"data", "data_visible"} <= row.keys())


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield all saved versions of every answer. The model did not write the greeting."""
    about = row.get("metadata") or {}
    for i, (user, answer) in enumerate(row["internal"] if "internal" in row else row["data"]):
        if user == _GREETING:
            continue
        versions = (about.get(f"assistant_{i}") or {}).get("versions") or [{"content": answer}]
        for version in versions:
            yield Message(version["content"], None, None, {}, i, ONE_CHAT)


FORMAT = Format("textgen-webui", "chats of text-generation-webui", matches, messages)
