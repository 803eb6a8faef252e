"""Conversations of LM Studio, `~/.lmstudio/conversations/**/<time>.conversation.json` (0.3 and 0.4)."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import MODEL, content, finished, groups, scalar


def matches(row: Any) -> bool:
    """Recognise a conversation by the versions of its messages."""
    messages = row.get("messages") if isinstance(row, dict) else None
    if not isinstance(messages, list):
        return False
    return (bool(messages) and isinstance(messages[0], dict) and "versions" in messages[0]) or (
        not messages and "systemPrompt" in row
    )


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every version of every answer. The thinking steps of a version become one text of reasoning."""
    found = groups(row, source.by)
    for message in row["messages"]:
        for version in message["versions"]:
            if version["role"] in MODEL:
                yield _version(version, found)


def _version(version: Any, found: dict[str, str]) -> Message:
    if version.get("type") != "multiStep":
        reasoning, answer = content(version["content"])
        return Message(answer or "", reasoning, None, found)
    parts: dict[bool, list[str]] = {True: [], False: []}
    told = {**found, **groups({"model": (version.get("senderInfo") or {}).get("senderName")})}
    for step in version["steps"]:
        if step.get("type") != "contentBlock":  # The step is a status or a tool call.
            continue
        thinking = (step.get("style") or {}).get("type") == "thinking"
        reasoning, answer = content(step["content"])
        parts[True].append(reasoning or "")
        parts[thinking].append(answer or "")
        told.update(_generation(step.get("genInfo") or {}))
    return Message("".join(parts[False]), "".join(parts[True]) or None, None, told)


def _generation(info: Any) -> dict[str, str]:
    found = groups({"model": info.get("identifier") or info.get("indexedModelIdentifier")})
    reason = (info.get("stats") or {}).get("stopReason")
    if isinstance(reason, str):
        found["finish_reason"] = finished(reason)
    for setting in (info.get("predictionConfig") or {}).get("fields") or ():
        key = str(setting.get("key")).rpartition(".")[2]
        value = scalar(setting.get("value"))
        if key in ("temperature", "seed") and value is not None:
            found[key] = value
    return found


FORMAT = Format("lm-studio", "conversations of LM Studio", matches, messages)
