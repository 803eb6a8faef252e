"""Any JSON, JSONL or Parquet: the texts at a path that the user gives (`--field`)."""

from collections.abc import Callable, Iterator
from typing import Any

from .format import Format, Message, NoTextError, Source
from .messages import groups, name, text_of
from .path import parse, values


def format_of(field: str) -> Format:
    """Return the format that reads the texts at a path in every row. ValueError if it is not a path."""
    path = parse(field)
    if path[0] is None and len(path) > 1:  # [*].text of an array: its elements are the rows
        path = path[1:]
    columns = (path[0],) if isinstance(path[0], str) else ()
    return Format("field", f"texts at {field}", _anything, _messages(field, path), columns=columns)


def _anything(row: Any) -> bool:
    return True


def _messages(field: str, path: tuple[str | int | None, ...]) -> Callable[[Any, Source], Iterator[Message]]:
    def messages(row: Any, source: Source) -> Iterator[Message]:
        found = values(row, path)
        if not found:
            raise NoTextError(f"there is nothing at {field}")
        told, id = (groups(row, source.by), name(row)) if isinstance(row, dict) else ({}, None)
        for i, value in enumerate(found):
            if value is None:
                raise NoTextError(f"there is null at {field}")
            for text in value if isinstance(value, list) and all(isinstance(v, str) for v in value) else [value]:
                yield Message(text_of(text) or "", None, id, told, i)

    return messages
