"""A path into JSON for `--field`: `output.text`, `choices[*].message.content`, `["a key"][0]`."""

import re
from typing import Any

Path = tuple[str | int | None, ...]  # keys, indexes, None for all elements

_STEP = re.compile(
    r"""\.?(?P<key>[^.\[\]"']+)|\[(?P<index>-?\d+)\]|\[(?P<all>\*)\]|\[(?P<quote>["'])(?P<odd>.+?)(?P=quote)\]"""
)


def parse(text: str) -> Path:
    """Return the steps of a path. ValueError, with the place, if it is not a path."""
    steps: list[str | int | None] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (at == 0 and text.startswith(".")) or (at and found["key"] and text[at] != "."):
            raise ValueError(
                f"field {text!r} is not a path (at character {at}): write it like choices[*].message.content"
            )
        steps.append(None if found["all"] else int(found["index"]) if found["index"] else found["key"] or found["odd"])
        at = found.end()
    if not steps:
        raise ValueError("field is empty: write it like choices[*].message.content")
    return tuple(steps)


def values(row: Any, path: Path) -> list[Any]:
    """Return all values at a path in a row, in order; none if a step leads nowhere."""
    found = [row]
    for step in path:
        if step is None:
            found = [inside for value in found if isinstance(value, list) for inside in value]
        elif isinstance(step, int):
            found = [value[step] for value in found if isinstance(value, list) and -len(value) <= step < len(value)]
        else:
            found = [value[step] for value in found if isinstance(value, dict) and step in value]
    return found
