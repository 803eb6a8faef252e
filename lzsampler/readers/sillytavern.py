"""Chats of SillyTavern: JSONL, a header line and a message on each other line, with its swipes."""

from collections.abc import Iterator
from typing import Any

from .format import Format, Message, Source
from .messages import groups


def matches(row: Any) -> bool:
    """Tell a chat by its header, or by a message where the header is damaged."""
    if not isinstance(row, dict):
        return False
    return {"user_name", "character_name"} <= row.keys() or {"is_user", "mes"} <= row.keys()


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield a message of the character with all its swipes; the card's greeting was written by no model."""
    if "mes" not in row:
        return
    if row.get("is_user"):
        source.state["asked"] = True
        return
    about = row.get("extra") or {}
    generated = source.state.get("asked") or row.get("gen_started") or about.get("api")
    if row.get("is_system") or not generated:
        return
    swipes, details = row.get("swipes") or [], row.get("swipe_info") or []
    current = row.get("swipe_id") or 0
    if not swipes:
        swipes, details, current = [row["mes"]], [{"extra": about}], 0
    for i, swipe in enumerate(swipes):
        extra = about if i == current else (details[i].get("extra") or {} if i < len(details) else {})
        text = row["mes"] if i == current else swipe
        yield Message(text, extra.get("reasoning") or None, None, groups(extra, source.by))


FORMAT = Format("sillytavern", "chats of SillyTavern, all swipes", matches, messages, cut=False)
