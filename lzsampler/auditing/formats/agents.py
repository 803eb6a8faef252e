"""Sessions of the agent Claude Code: `~/.claude/projects/*/*.jsonl`, and the output of `--output-format stream-json`.

Each block of an answer (thinking, text, a tool call) is on a line of its own and becomes a record of its own.
"""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, turn

_SESSION = ("sessionId", "session_id")
# Types of lines without a session, and the key that such a line has instead.
_OTHERS = {"summary": "leafUuid", "file-history-snapshot": "messageId"}
_ANOTHER_MODEL = "<synthetic>"  # messages of the program itself, such as errors of the API


def matches(row: Any) -> bool:
    """Recognise a line by its type and its session."""
    if not isinstance(row, dict) or not isinstance(row.get("type"), str):
        return False
    return any(isinstance(row.get(key), str) for key in _SESSION) or _OTHERS.get(row["type"], "") in row


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the model's text on a line; from a result line only if no answer came before it."""
    if not matches(row) and row["type"] != "stream_event":
        raise KeyError("sessionId")
    id = next((row[key] for key in _SESSION if isinstance(row.get(key), str)), None)
    if row["type"] == "assistant":
        message = row["message"]
        if message.get("model") == _ANOTHER_MODEL:
            return
        source.state["answered"] = True
        made = turn(message, {**groups(row, source.by), **groups(message)}, id)
        if made is not None:
            yield made
    elif row["type"] == "result" and isinstance(row.get("result"), str) and not source.state.get("answered"):
        yield Message(row["result"], None, id, groups(row, source.by))


FORMAT = Format(
    "claude-code", "sessions of Claude Code, and its stream-json", matches, messages, cut=False, session=True
)
