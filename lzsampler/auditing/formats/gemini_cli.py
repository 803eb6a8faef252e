"""Sessions of Gemini CLI, `~/.gemini/tmp/*/chats/session-*.json`. From 2026 on, sessions are .jsonl files with a line
for each message.

When a message grows, its line appears again with the same id. Only the last line with this id is read.
"""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, turn, turns

_SESSION = {"sessionId", "projectHash"}


def matches(row: Any) -> bool:
    """Recognise a session by its project, and a message by the type "gemini"."""
    return isinstance(row, dict) and (row.keys() >= _SESSION or (row.get("type") == "gemini" and "content" in row))


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the answers of a whole session. If the row is one line of a session, keep its answer for `finish`."""
    if row.keys() >= _SESSION:
        source.state["id"] = str(row["sessionId"])
        if "messages" in row:
            yield from turns(row["messages"], groups(row, source.by), str(row["sessionId"]))
        return
    if row.get("type") is None and not any(str(key).startswith("$") for key in row):
        raise KeyError("type")
    if row.get("type") == "gemini":
        found = groups(row, source.by)
        made = turn(row, found, source.state.get("id"))
        if made is not None:
            kept = source.state.setdefault("open", {})
            before = kept.get(row.get("id"))
            number = before.number if before else source.state.get("number")
            kept[row.get("id", len(kept))] = made._replace(number=number)


def finish(source: Source) -> Iterator[Message]:
    """Yield the answers that `messages` kept."""
    yield from source.state.pop("open", {}).values()


FORMAT = Format("gemini-cli", "sessions of Gemini CLI", matches, messages, cut=False, session=True, finish=finish)
