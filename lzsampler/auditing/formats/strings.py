"""Texts without keys, as JSON Lines or arrays, and objects {prompt: answer}."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import kind_of

_LONG = 80  # minimum mean length of the answers in an object; names and settings are shorter


def matches(row: Any) -> bool:
    """Recognise a text, a list of texts, or an object of at least two texts that are as long as answers."""
    if isinstance(row, dict):
        texts = [value for value in row.values() if isinstance(value, str)]
        return len(row) > 1 and len(texts) == len(row) and sum(map(len, texts)) >= _LONG * len(texts)
    return isinstance(row, str) or (isinstance(row, list) and bool(row) and all(isinstance(one, str) for one in row))


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every text. In an object, the key of a text is its id."""
    if isinstance(row, str):
        yield Message(row)
        return
    if not matches(row):
        raise TypeError(f"the row is {kind_of(row)}, not a text or an object of texts")
    for i, (key, text) in enumerate(row.items() if isinstance(row, dict) else ((None, text) for text in row)):
        yield Message(text, None, key, number=i)


FORMAT = Format(
    "strings", "texts without keys: an array, one per line, {prompt: answer}", matches, messages, whole=True
)
