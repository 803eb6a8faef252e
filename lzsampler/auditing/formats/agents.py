"""Sessions of the agent Claude Code: `~/.claude/projects/*/*.jsonl`, and the output of `--output-format stream-json`.

Each block of an answer (thinking, text, a tool call) is on a separate line and becomes a separate record.
"""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, turn

_SESSION = ("sessionId", "session_id")
# Types of lines that have no session id, and the key that such a line has instead.
_OTHERS = {"summary": "leafUuid", "file-history-snapshot": "messageId"}
_ANOTHER_MODEL = "<synthetic>"  # the `model` of messages that the program itself writes, such as errors of the API


def matches(row: Any) -> bool:
    """Recognise a line by its type and its session."""
    if not isinstance(row, dict) or not isinstance(row.get("type"), str):
        return False
    return any(isinstance(row.get(key), str) for key in _SESSION) or _OTHERS.get(row["type"], "") in row


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the model's text on a line. The text of a result line is read only if no answer came before the line."""
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
