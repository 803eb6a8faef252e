"""`conversations.json` of a ChatGPT export: a tree of messages under `mapping`."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, name, text_of


def matches(row: Any) -> bool:
    """Recognise a conversation by its mapping."""
    return isinstance(row, dict) and isinstance(row.get("mapping"), dict)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every text and every chain of thought of the assistant, except messages to tools."""
    found, id = groups(row, source.by), name(row)
    for node in row["mapping"].values():
        message = node.get("message")
        if message is None or message["author"]["role"] != "assistant":
            continue
        if message.get("recipient") not in (None, "all"):
            continue
        content, about = message["content"], message.get("metadata") or {}
        told = {**found, **groups(about)}
        details = about.get("finish_details")
        if isinstance(details, dict):
            told.update(groups({"finish_reason": details.get("type")}))
        if content["content_type"] in ("text", "multimodal_text"):
            text = text_of(content.get("parts")) or ""
            if text or not about.get("is_visually_hidden_from_conversation"):  # Hidden and empty: a tool call follows.
                yield Message(text, None, id, told)
        elif content["content_type"] == "thoughts":
            thoughts = [thought.get("content") or "" for thought in content.get("thoughts") or ()]
            if any(thoughts):
                yield Message(None, "\n".join(thoughts), id, told)


FORMAT = Format("chatgpt", "conversations.json of a ChatGPT export", matches, messages)
