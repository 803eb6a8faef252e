"""Conversations of messages {"role", "content"} or similar. A row is a conversation or a single message."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import (
    CONVERSATIONS,
    conversation_key,
    groups,
    is_conversation,
    is_message,
    is_model,
    name,
    role_of,
    turn,
    turns,
    unfolded,
)
from . import completion


def matches(row: Any) -> bool:
    """Recognise a conversation by its list of messages, and a single message by its role and content."""
    if isinstance(row, list):
        return is_conversation(row)
    if not isinstance(row, dict):
        return False
    if row.get("messages") == [] or conversation_key(row) is not None:
        return True
    return is_message(row)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every message of the model.

    If the last message is not the model's and the row has an answer under another key, yield only this answer.
    """
    if isinstance(row, list):
        yield from turns(row, {}, None)
        return
    found, id = groups(row, source.by), name(row)
    key = "messages" if isinstance(row.get("messages"), list) else conversation_key(row)
    if key is not None:
        said = row[key]
        if said and isinstance(said[-1], dict) and not is_model(unfolded(said[-1])) and completion.strong(row):
            yield from completion.messages(row, source)
        else:
            yield from turns(said, found, id)
    elif "messages" in row:
        yield from turns(row["messages"], found, id)
    elif role_of(message := unfolded(row)) is None:
        raise TypeError("the row has neither messages nor a role")
    elif (made := turn(message, {**found, **groups(message)}, id)) is not None:
        yield made


FORMAT = Format(
    "openai-chat",
    "conversations: messages of {role, content}",
    matches,
    messages,
    columns=(*CONVERSATIONS, *completion.STRONG),
)
