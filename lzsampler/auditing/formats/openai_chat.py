"""Conversations in OpenAI's form: `messages` of {"role", "content"}, one conversation a row, or one message a row."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, name, turn, turns


def matches(row: Any) -> bool:
    """Recognise a conversation by `messages`, a single message by its role and content."""
    if not isinstance(row, dict):
        return False
    messages = row.get("messages")
    if isinstance(messages, list):
        return not messages or (isinstance(messages[0], dict) and bool({"role", "from"} & messages[0].keys()))
    return isinstance(row.get("role"), str) and "content" in row


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every message of the assistant."""
    found, id = groups(row, source.by), name(row)
    if "messages" in row:
        yield from turns(row["messages"], found, id)
    elif "role" not in row and "from" not in row:
        raise TypeError("the row has neither messages nor a role")
    elif (made := turn(row, found, id)) is not None:
        yield made


FORMAT = Format(
    "openai-chat",
    "conversations: messages of {role, content}",
    matches,
    messages,
    columns=("messages",),
)
