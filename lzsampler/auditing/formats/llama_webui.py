"""Exports of llama.cpp's web UI: sessions in the STS format (JSONL, or a zip of JSONL files), and older JSON.

The messages of a session form a tree. All answers of the tree are read, since the user may have regenerated an answer.
"""

import re
from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import cut_out, groups, name, turn

# For some months of 2026, the web UI put such tags around reasoning, and around tool calls with their results.
_MARK = re.compile("<<<(reasoning_content_start|AGENTIC_TOOL_CALL_START)>>>")
_ENDS = {
    "reasoning_content_start": re.compile("<<<reasoning_content_end>>>"),
    "AGENTIC_TOOL_CALL_START": re.compile("<<<AGENTIC_TOOL_CALL_END>>>"),
}


def matches(row: Any) -> bool:
    """Recognise a session by the type of its first line, and an older conversation by `conv`."""
    if not isinstance(row, dict):
        return False
    if row.get("type") == "session":
        return "harness" in row or "currNode" in row
    return isinstance(row.get("conv"), dict) and isinstance(row.get("messages"), list)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the answer on a line of a session, or all answers of an older conversation."""
    if "conv" in row:
        for message in row["messages"]:
            made = turn(message, groups(message, source.by), name(row["conv"]))
            if made is not None:
                yield _without_marks(made)
        return
    if row["type"] == "session":
        source.state["session"] = groups(row, source.by)
    elif row["type"] == "message":
        message = row["message"]
        found = {**source.state.get("session", {}), **groups(message, source.by)}
        made = turn(message, found, name(message) or name(row))
        if made is not None:
            yield made


def _without_marks(message: Message) -> Message:
    if message.answer is None or "<<<" not in message.answer:
        return message
    answer, blocks = cut_out(message.answer, _MARK, _ENDS)
    return message._replace(
        reasoning=message.reasoning or "".join(blocks["reasoning_content_start"]) or None, answer=answer
    )


FORMAT = Format(
    "llama-webui",
    "exports of llama.cpp's web UI: STS sessions, older JSON",
    matches,
    messages,
    cut=False,
)
