"""The format of `--field`: reads the texts at a given path, in any JSON, JSONL, CSV, Parquet or database."""

from collections.abc import Callable, Iterator
from typing import Any

from .decode import unpacked
from .format import Format, Message, NoTextError, Source
from .messages import REASONING, content, groups, is_message, name, unfolded, written
from .path import Path, anything, parse, values


def format_of(field: str) -> Format:
    """Return the format that reads the texts at a path in every row. ValueError if ``field`` is not a path."""
    path = parse(field)
    columns = (path[0],) if isinstance(path[0], str) else ()
    return Format("field", f"texts at {field}", _anything, _messages(field, path), columns=columns)


def _anything(row: Any) -> bool:
    return True


def _messages(field: str, path: Path) -> Callable[[Any, Source], Iterator[Message]]:
    elements = path[1:] if path[0] is None else path  # In the path [*].text, [*] stands for the rows.

    def messages(row: Any, source: Source) -> Iterator[Message]:
        found = _found(row, elements) or _found(row, path)
        if not found:
            if any(values(row, anything(steps)) for steps in (elements, path)):
                return  # A condition of the path excludes the row.
            raise NoTextError(f"there is nothing at {field}")
        told, id = (groups(row, source.by), name(row)) if isinstance(row, dict) else ({}, None)
        for i, (value, beside) in enumerate(found):
            if value is None and beside is None:
                raise NoTextError(f"there is null at {field}")
            for text in value if isinstance(value, list) and all(isinstance(v, str) for v in value) else [value]:
                if is_message(text):
                    made = written(unfolded(text), told, id)
                    yield from () if made is None else (made._replace(number=i),)
                else:
                    reasoning, answer = content(text)
                    yield Message(answer or "", reasoning or beside, id, told, i)

    return messages


def _found(row: Any, path: Path) -> list[tuple[Any, str | None]]:
    """Return (value, reasoning or None) for each value at a path.

    The reasoning is under another key of the object that contains the value.
    """
    key = path[-1] if path else None
    if not isinstance(key, str) or key in REASONING:
        return [(value, None) for value in values(row, path)]
    return [
        (around[key], _beside(around))
        for around in map(unpacked, values(row, path[:-1]))
        if isinstance(around, dict) and key in around
    ]


def _beside(around: dict[str, Any]) -> str | None:
    for key in REASONING:
        if around.get(key) and isinstance(around[key], str | list):
            reasoning, plain = content(around[key])
            return reasoning or plain
    return None
