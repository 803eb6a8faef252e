"""Exports of Open WebUI: chats with a tree of messages. Its `<details type="reasoning">` is reasoning."""

import html
import re
from collections.abc import Iterator
from typing import Any

from .format import Format, Message, Source
from .messages import groups, name, turn

# As its middleware writes them: the lines quoted, in newer versions escaped; without an end while it still thinks.
_DETAILS = re.compile(
    r'<details type="reasoning"[^>]{0,200}>\s{0,9}<summary>[^<]{0,200}</summary>\n?(.*?)(?:\n?</details>\n?|\Z)', re.S
)
_QUOTE = re.compile(r"^> ?", re.M)


def _history(row: Any) -> Any:
    chat = row.get("chat") if isinstance(row.get("chat"), dict) else row
    return chat.get("history")


def matches(row: Any) -> bool:
    """Tell a chat by its history, under `chat` or, in old exports, at the top."""
    if not isinstance(row, dict):
        return False
    history = _history(row)
    return isinstance(history, dict) and isinstance(history.get("messages"), dict)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every answer of the tree, in the order of the file."""
    found, id = groups(row, source.by), name(row)
    for message in _history(row)["messages"].values():
        made = turn(message, {**found, **groups(message, source.by)}, id)
        if made is not None:
            yield _without_details(made)


def _without_details(message: Message) -> Message:
    text = message.answer
    if message.reasoning is not None or text is None or "<details" not in text:
        return message
    thoughts = [_QUOTE.sub("", html.unescape(thought)) for thought in _DETAILS.findall(text)]
    if not thoughts:
        return message
    return message._replace(reasoning="\n".join(thoughts), answer=_DETAILS.sub("", text))


FORMAT = Format("open-webui", "chats exported from Open WebUI", matches, messages)
