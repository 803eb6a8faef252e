"""Exports of llama.cpp's web UI: sessions in the STS format (JSONL, a zip of several), and its older JSON.

A session's messages form a tree: every answer in it was written by the model, the ones that were tried again as well.
"""

from collections.abc import Iterator
from typing import Any

from .format import Format, Message, Source
from .messages import groups, name, turn


def matches(row: Any) -> bool:
    """Tell a session by the type of its first line, the older form by `conv`."""
    if not isinstance(row, dict):
        return False
    if row.get("type") == "session":
        return "harness" in row or "currNode" in row
    return isinstance(row.get("conv"), dict) and isinstance(row.get("messages"), list)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the answer on a line of a session, or all of an older conversation."""
    if "conv" in row:
        for message in row["messages"]:
            made = turn(message, groups(message, source.by), name(row["conv"]))
            if made is not None:
                yield made
        return
    if row["type"] == "session":
        source.state["session"] = groups(row, source.by)
    elif row["type"] == "message":
        message = row["message"]
        found = {**source.state.get("session", {}), **groups(message, source.by)}
        made = turn(message, found, name(message) or name(row))
        if made is not None:
            yield made


FORMAT = Format(
    "llama-webui",
    "exports of llama.cpp's web UI: STS sessions, older JSON",
    matches,
    messages,
    cut=False,
)
