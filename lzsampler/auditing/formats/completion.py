"""Rows with a prompt and what came of it: `completion`, `response`, `output` and the like, or `text` alone."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, NoTextError, Source
from ..reading.messages import groups, name, turn

_ANSWERS = (
    "completion",
    "response",
    "output",
    "generated_text",
    "generation",
    "completions",
    "responses",
    "outputs",
    "generations",
    "model_output",
    "text",
)
_REASONING = ("reasoning_content", "reasoning", "thinking")


def matches(row: Any) -> bool:
    """Recognise a row by one of the keys that hold an answer."""
    return isinstance(row, dict) and any(isinstance(row.get(key), str | list) for key in _ANSWERS)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the answer, or each of several; a list of messages is a conversation."""
    key = next((key for key in _ANSWERS if row.get(key) is not None), None)
    if key is None:
        raise NoTextError(f"the row has none of {', '.join(_ANSWERS)}")
    found, id = groups(row, source.by), name(row)
    reasoning = next((row[key] for key in _REASONING if isinstance(row.get(key), str)), None)
    answers = row[key]
    for answer in answers if isinstance(answers, list) else [answers]:
        if isinstance(answer, str):
            yield Message(answer, reasoning, id, found)
        elif isinstance(answer.get("text"), str):  # vLLM's RequestOutput and the like
            yield Message(answer["text"], None, id, {**found, **groups(answer)})
        elif (made := turn(answer, found, id)) is not None:
            yield made


FORMAT = Format(
    "completion",
    "rows with a prompt and its completion, response or output, or with a text",
    matches,
    messages,
    columns=(*_ANSWERS, *_REASONING),
)
