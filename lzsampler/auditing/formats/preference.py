"""Pairs of answers to the same prompt: DPO data sets, OpenAI's preference fine-tuning, and votes between two models in
an arena.

Models wrote both answers, so each answer becomes a record. With `--by side`, the two answers are in different groups.
"""

import re
from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, name
from .completion import answers

PAIRS = (
    ("chosen", "rejected"),
    ("preferred_output", "non_preferred_output"),
    ("conversation_a", "conversation_b"),
    ("response_a", "response_b"),
    ("answer_a", "answer_b"),
    ("output_a", "output_b"),
    ("completion_a", "completion_b"),
    ("response_0", "response_1"),
    ("response_j", "response_k"),
    ("output_1", "output_2"),
)
_MODELS = {"a": "model_a", "b": "model_b"}
# The label of a speaker in a conversation that is stored as one text, as in Anthropic's HH-RLHF.
_SPEAKER = re.compile(r"(?:\A|\n\n)(Human|Assistant): ?")


def _pair(row: Any) -> tuple[str, str] | None:
    if not isinstance(row, dict):
        return None
    return next((pair for pair in PAIRS if all(isinstance(row.get(key), str | list | dict) for key in pair)), None)


def matches(row: Any) -> bool:
    """Recognise a pair by its two keys."""
    return _pair(row) is not None


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the answers of both sides. If a side is a conversation, yield every message of the model."""
    pair = _pair(row)
    if pair is None:
        raise TypeError("the row has no pair of answers")
    found, id = groups(row, source.by), name(row)
    for side in pair:
        told = {**found, **groups({"model": row.get(_MODELS.get(side[-1], ""))}), "side": side}
        value = row[side]
        if isinstance(value, str) and len(said := _SPEAKER.split(value)) > 1:
            value = [text for speaker, text in zip(said[1::2], said[2::2], strict=True) if speaker == "Assistant"]
        yield from answers(value, told, id)


FORMAT = Format("preference", "pairs of answers: chosen and rejected, or of two models", matches, messages)
