"""Chats of SillyTavern: JSONL with a header line, then a line for each message. Swipes are versions of a message."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import ONE_CHAT, Format, Message, Source
from ..reading.messages import groups

_HEADER = {"user_name", "character_name", "chat_metadata"}  # A header has at least one of these keys.


def matches(row: Any) -> bool:
    """Recognise a chat by its header. If the header is damaged, recognise the chat by a message."""
    if not isinstance(row, dict):
        return False
    return {"user_name", "character_name"} <= row.keys() or {"is_user", "mes"} <= row.keys()


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield all swipes of a message of the character.

    The greeting of the character's card and the system's notes are not from the model. Texts that the user wrote for a
    character by a command (`api` is "manual") are not from the model either. `is_system` alone does not show that the
    system wrote a message: it also marks messages hidden from the prompt.
    """
    if "mes" not in row:
        if not row.keys() & _HEADER:
            raise KeyError("mes")
        return
    if row.get("is_user"):
        source.state["asked"] = True
        return
    about = row.get("extra") or {}
    generated = row.get("gen_started") or about.get("api")
    if not (generated or (source.state.get("asked") and not row.get("is_system"))):
        return
    swipes, details = row.get("swipes") or [], row.get("swipe_info") or []
    current = row.get("swipe_id") or 0
    if not swipes:
        swipes, details, current = [row["mes"]], [{"extra": about}], 0
    for i, swipe in enumerate(swipes):
        extra = about if i == current else (details[i].get("extra") or {} if i < len(details) else {})
        if extra.get("api") == "manual":
            continue
        text = row["mes"] if i == current else swipe
        yield Message(text, extra.get("reasoning") or None, None, groups(extra, source.by), None, ONE_CHAT)


FORMAT = Format("sillytavern", "chats of SillyTavern, all swipes", matches, messages, cut=False)
