"""Paths of `--field`: `output.text`, `choices[*].message.content`, `messages[role=assistant].content`."""

import re
from typing import Any, NamedTuple

from ...errors import ArgumentError
from .decode import unpacked


class Where(NamedTuple):
    """A condition: the step selects the objects (alone or in a list) that have ``value`` under ``key``."""

    key: str
    value: str | None  # None means any value


Path = tuple[str | int | Where | None, ...]  # steps: a key, an index, a condition, or None for all elements

_STEP = re.compile(
    r"""\.?(?P<key>[^.\[\]"']+)|\[(?P<index>-?\d+)\]|\[(?P<all>\*)\]|\[(?P<quote>["'])(?P<odd>.+?)(?P=quote)\]"""
    r"""|\[(?P<where>[^\[\]="']+)=(?P<mark>["']?)(?P<value>[^\[\]"']*)(?P=mark)\]"""
)


def parse(text: str) -> Path:
    """Return the steps of a path. If the text is not a path, ValueError names the position of the fault."""
    steps: list[str | int | Where | None] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (at == 0 and text.startswith(".")) or (at and found["key"] and text[at] != "."):
            raise ArgumentError(
                f"field {text!r} is not a path (at character {at}): write it like choices[*].message.content"
            )
        if found["where"]:
            steps.append(Where(found["where"].strip(), found["value"].strip()))
        else:
            steps.append(
                None if found["all"] else int(found["index"]) if found["index"] else found["key"] or found["odd"]
            )
        at = found.end()
    if not steps:
        raise ArgumentError("field is empty: write it like choices[*].message.content")
    return tuple(steps)


def values(row: Any, path: Path) -> list[Any]:
    """Return all values at a path in a row, in order; [] if there are none. JSON inside texts is parsed on the way."""
    found = [row]
    for step in path:
        found = list(map(unpacked, found))
        if step is None:
            found = [inside for value in found if isinstance(value, list) for inside in value]
        elif isinstance(step, Where):
            every = [one for value in found for one in (value if isinstance(value, list) else [value])]
            found = [one for one in every if isinstance(one, dict) and step.value in (None, _told(one.get(step.key)))]
        elif isinstance(step, int):
            found = [value[step] for value in found if isinstance(value, list) and -len(value) <= step < len(value)]
        else:
            found = [value[step] for value in found if isinstance(value, dict) and step in value]
    return found


def anything(path: Path) -> Path:
    """Return a path whose conditions accept any value."""
    return tuple(Where(step.key, None) if isinstance(step, Where) else step for step in path)


def _told(value: Any) -> str:
    return (
        {True: "true", False: "false", None: "null"}[value]
        if value is None or value is True or value is False
        else str(value)
    )
