"""Transcripts that `lzs generate --save` or `lzs eval` wrote (docs/transcript.md)."""

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from ..reading.format import Format, Message, NoTextError, Source
from ..reading.messages import groups, name, written


def matches(row: Any) -> bool:
    """Recognise a transcript by the version of the program that wrote it."""
    return isinstance(row, dict) and "lzsampler" in row and "messages" in row


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the last message. Earlier messages of the assistant are part of the prompt.

    A transcript of `lzs eval` has its kind, setting, task, prompt and seed under `eval`. The id consists of prompt,
    setting and seed. Two evaluations are compared by this id. All texts of a prompt count as one conversation. Texts of
    the same prompt and seed under different settings are counterparts (`Message.counterpart`).

    A conversation of `lzs generate -cnv` has a transcript for each answer, and the answers are its turns.
    """
    if row.get("finish_reason") == "failed":
        raise NoTextError(f"the request failed: {row['error']}")
    ours = row.get("eval", {})
    found = groups({**row["settings"], **row, **ours, "model": row["model"]["name"]}, source.by)
    id = f"{ours['prompt']}, {ours['setting']}, seed {ours['seed']}" if ours else name(row)
    is_turn = not ours and "prompt" not in row  # With a "prompt", the model continues a text.
    made = written(row["messages"][-1], found, id, is_turn=is_turn)
    if made is None:
        return
    if ours:
        made = made._replace(conversation=ours["prompt"], counterpart=f"{ours['prompt']}, seed {ours['seed']}")
    elif is_turn:
        made = made._replace(conversation=_conversation(row["messages"], id, source.state))
    yield made


def _conversation(said: list[Any], id: str | None, state: dict[str, Any]) -> str:
    """Return the id of the first transcript of a conversation. ``said``: all messages of the current transcript.

    A transcript continues an earlier transcript if its messages are those of the earlier transcript, followed by a
    question and an answer.
    """
    conversations: dict[bytes, str] = state.setdefault("conversations", {})
    whole = _digest(said)
    of = conversations.get(_digest(said[:-2])) or id or whole.hex()
    conversations[whole] = of
    return of


def _digest(said: list[Any]) -> bytes:
    return blake2b(json.dumps(said, sort_keys=True).encode("ascii"), digest_size=16).digest()


FORMAT = Format("lzs", "transcripts of lzs generate --save", matches, messages, cut=False, session=True)
