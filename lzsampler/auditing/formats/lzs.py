"""Our own transcripts, as `lzs generate --save` writes them (docs/transcript.md)."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, name, written


def matches(row: Any) -> bool:
    """Recognise a transcript by the version of the program that wrote it."""
    return isinstance(row, dict) and "lzsampler" in row and "messages" in row


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the last message: those of the assistant before it are a part of the prompt.

    A transcript of `lzs eval` names its kind, setting, task, prompt and seed under `eval`. Its id is made of those that
    make it one of a kind, so that two evaluations can be compared; all texts of a prompt count as one conversation.
    Texts of the same prompt and seed are counterparts under any setting.
    """
    ours = row.get("eval", {})
    found = groups({**row["settings"], **row, **ours, "model": row["model"]["name"]}, source.by)
    id = f"{ours['prompt']}, {ours['setting']}, seed {ours['seed']}" if ours else name(row)
    made = written(row["messages"][-1], found, id)
    if made is not None and ours:
        made = made._replace(conversation=ours["prompt"], counterpart=f"{ours['prompt']}, seed {ours['seed']}")
    if made is not None:
        yield made


FORMAT = Format("lzs", "transcripts of lzs generate --save", matches, messages)
