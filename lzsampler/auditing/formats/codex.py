"""Sessions of Codex CLI: `~/.codex/sessions/**/rollout-*.jsonl`, and the output of `codex exec --json`.

Reasoning is a separate item, and belongs to the answer or tool call that follows it.
"""

from collections.abc import Iterator
from typing import Any

from ..reading.format import ONE_CHAT, Format, Message, Source
from ..reading.messages import content, groups

_ROLLOUT = {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
_EVENTS = ("thread.", "turn.", "item.")
_CALLS = {"function_call", "local_shell_call", "custom_tool_call", "web_search_call", "tool_search_call"}
_DONE = {"command_execution", "mcp_tool_call", "file_change", "web_search", "todo_list"}


def matches(row: Any) -> bool:
    """Recognise a line of a rollout by its type and payload, and an event by its type."""
    if not isinstance(row, dict):
        return False
    kind = row.get("type")
    if isinstance(row.get("msg"), dict) and isinstance(row["msg"].get("type"), str):  # exec --json before 0.40
        return str(row["msg"]["type"]).startswith(("agent_", "task_", "session_", "token_"))
    if not isinstance(kind, str):
        return False
    if isinstance(row.get("payload"), dict):
        return kind in _ROLLOUT or "timestamp" in row
    return kind.startswith(_EVENTS) and (kind.startswith("turn.") or "item" in row or "thread_id" in row)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield an answer with the reasoning before it, or reasoning that is followed by a tool call."""
    state = source.state
    if isinstance(row.get("msg"), dict):
        item = row["msg"]
        if item["type"] == "agent_reasoning":
            state.setdefault("thoughts", []).append(item["text"])
        elif item["type"] == "agent_message":
            yield _answer(item["message"], source)
        return
    if not matches(row) and row["type"] not in ("message", "reasoning", *_CALLS, "function_call_output"):
        raise KeyError("payload")
    item = row.get("payload") or row.get("item") or row
    kind = item.get("type")
    if row["type"] in ("session_meta", "thread.started"):
        state["id"] = item.get("id") or item.get("thread_id")
    elif row["type"] == "turn_context":
        state["groups"] = groups(item, source.by)
    elif row["type"] == "turn.completed":
        yield from finish(source)
    elif row["type"] in ("event_msg", "world_state", "compacted", "item.started", "item.updated"):
        return  # The line repeats other lines, or is an incomplete item.
    elif kind == "reasoning":
        told, plain = content([{**part, "type": "reasoning"} for part in item.get("content") or ()])
        told = told or plain or content(item.get("summary"))[0] or item.get("text")
        if told:
            state.setdefault("thoughts", []).append(told)
    elif kind == "agent_message":
        yield _answer(item["text"], source)
    elif kind == "message" and item["role"] == "assistant":
        yield _answer(content(item["content"])[1] or "", source)
    elif kind in _CALLS or kind in _DONE or kind == "message":
        yield from finish(source)
        if source.turns and kind != "message":
            yield _answer(None, source)._replace(calls=item)


def finish(source: Source) -> Iterator[Message]:
    """Yield reasoning that is not followed by an answer."""
    if source.state.get("thoughts"):
        yield _answer(None, source)


def _answer(text: Any, source: Source) -> Message:
    state = source.state
    reasoning = "\n".join(state.pop("thoughts", ())) or None
    id = state["id"] if isinstance(state.get("id"), str) else None
    of = ONE_CHAT if id is None else None
    return Message(text, reasoning, id, state.get("groups", {}), state.get("number"), of, is_turn=True)


FORMAT = Format(
    "codex", "sessions of Codex CLI, and its exec --json", matches, messages, cut=False, session=True, finish=finish
)
