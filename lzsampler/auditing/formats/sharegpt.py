"""Conversations in ShareGPT's form: `conversations` of messages {"from", "value"}, or a list of such messages."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, name, turn, turns

_KEYS = ("conversations", "conversation")
_PAIRS = (("human", "assistant"), ("input", "output"), ("user", "assistant"))  # keys of question and answer


def matches(row: Any) -> bool:
    """Recognise a conversation by its key, and a bare list or a single message by the keys of a message."""
    if isinstance(row, dict):
        return any(isinstance(row.get(key), list) for key in _KEYS) or {"from", "value"} <= row.keys()
    return isinstance(row, list) and bool(row) and isinstance(row[0], dict) and {"from", "value"} <= row[0].keys()


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every message of the model."""
    if isinstance(row, list):
        return turns(row, {}, None)
    if "from" in row:
        made = turn(row, groups(row, source.by), name(row))
        return iter(() if made is None else (made,))
    said = row[next((key for key in _KEYS if key in row), _KEYS[0])]
    if isinstance(said, list) and said and isinstance(said[0], dict):
        for asked, answered in _PAIRS:
            if {asked, answered} <= said[0].keys():
                return (Message(pair[answered], None, name(row), groups(row, source.by)) for pair in said)
    return turns(said, groups(row, source.by), name(row))


FORMAT = Format(
    "sharegpt",
    "conversations of {from, value}, also of {role, content}",
    matches,
    messages,
    columns=_KEYS,
)
