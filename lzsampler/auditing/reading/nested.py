"""Finds rows inside other objects: `{"results": [rows]}`, `{"key": ..., "response": row}`, or any other object."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .format import Format, Message, NoTextError, Source
from .messages import groups, name

_DEPTH, _LOOKED_AT = 5, 300  # maximum depth of the examined values, and maximum number of them
# Keys of a model's input or of the description of a run. A model wrote nothing under these keys.
_GIVEN = {
    "request", "requests", "input", "inputs", "prompt", "prompts", "question", "questions", "system", "tools",
    "tool_calls", "usage", "config", "configs", "settings", "args", "arguments", "metadata", "modelinput",
    "model_input", "vars", "testcase", "test_case", "reference", "references", "context", "expected", "gold",
    "target", "label", "labels", "schema", "parameters", "body", "docs", "doc", "dataset", "metrics", "scores",
    "logprobs", "gradingresult", "adapter_spec", "environment",
}  # fmt: skip
# A list under one of these keys is taken as rows, even if `Format.is_certain` denies it.
_ROWS = {
    "results", "data", "rows", "items", "records", "samples", "examples", "entries", "instances", "responses",
    "outputs", "generations", "completions", "predictions", "answers", "train", "test", "validation", "logs",
    "runs", "spans", "events", "observations", "traces",
}  # fmt: skip

Path = tuple[str | None, ...]  # steps: a key, or None for all elements of a list or all values of an object


def shown(path: Path) -> str:
    """Return a path in the form of `--field`."""
    return "".join("[*]" if step is None else f".{step}" for step in path).removeprefix(".")


def places(row: Any) -> Iterator[tuple[Path, Any, bool]]:
    """Yield (path, value, whether the value is in a list of rows) for the values inside a row, the outermost first.

    Only the first three elements of a list are examined.
    """
    waiting: deque[tuple[Path, Any, bool]] = deque([((), row, False)])
    looked_at = 0
    while waiting and looked_at < _LOOKED_AT:
        path, value, listed = waiting.popleft()
        looked_at += 1
        if path:
            yield path, value, listed
        if len(path) >= _DEPTH:
            continue
        if isinstance(value, dict):
            if _is_table(value):
                waiting.extend(((*path, None), inside, True) for inside in list(value.values())[:2])
                continue
            waiting.extend(
                ((*path, key), inside, listed and not isinstance(inside, list))
                for key, inside in value.items()
                if isinstance(inside, dict | list) and key.lower() not in _GIVEN
            )
        elif isinstance(value, list) and path:
            rows = bool(path) and isinstance(path[-1], str) and path[-1].lower() in _ROWS
            waiting.extend(((*path, None), inside, listed or rows) for inside in value[:3])


def _is_table(value: dict[str, Any]) -> bool:
    """Return whether the values of an object are rows with the same keys, or lists of such rows."""
    rows = list(value.values())
    if len(rows) > 1 and all(isinstance(row, list) and row for row in rows[:5]):
        rows = [row[0] for row in rows[:5]]
    if len(rows) < 2 or not all(isinstance(row, dict) and row for row in rows[:5]):
        return False
    return all(row.keys() == rows[0].keys() for row in rows[1:5]) or all(key.isdigit() for key in list(value)[:5])


def inside(row: Any, path: Path) -> list[tuple[Any, Mapping[str, Any]]]:
    """Return the values at a path, each with the innermost object that contains it."""
    found: list[tuple[Any, Mapping[str, Any]]] = [(row, {})]
    for step in path:
        deeper: list[tuple[Any, Mapping[str, Any]]] = []
        for value, around in found:
            if step is None:
                if isinstance(value, dict):
                    deeper += [(one, {"id": key}) for key, one in value.items()]
                elif isinstance(value, list):
                    deeper += [(one, around) for one in value]
            elif isinstance(value, dict) and value.get(step) is not None:
                deeper.append((value[step], value))
        found = deeper
    return found


def within(format: Format, path: Path) -> Format:
    """Return a format that reads the rows at a path inside each row of a file."""

    def matches(row: Any) -> bool:
        return any(format.matches(value) for value, _ in inside(row, path))

    def messages(row: Any, source: Source) -> Iterator[Message]:
        found = inside(row, path)
        if not found:
            nothing = f"there is nothing at {shown(path)}, where the other rows have {format.name}"
            raise NoTextError(_failure(row) or nothing)
        outside = groups(row, source.by) if isinstance(row, dict) else {}
        id = name(row) if isinstance(row, dict) else None
        listed = None in path
        silent: NoTextError | None = None
        told = False
        for i, (value, around) in enumerate(found):
            here = {**outside, **(groups(around, source.by) if around is not row else {})}
            own = name(around)
            try:
                for message in format.messages(value, source):
                    told = True
                    yield message._replace(
                        id=message.id if message.id is not None else own if own is not None else id,
                        groups={**here, **message.groups} if here else message.groups,
                        number=i if listed and message.number is None else message.number,
                    )
            except NoTextError as error:
                silent = error
            except (TypeError, KeyError, AttributeError) as error:
                if (failure := _failure(value)) is None:
                    raise
                silent = NoTextError(failure)
                silent.__cause__ = error
        if silent is not None and (not told or not listed):
            raise silent
        if silent is not None:
            raise NoTextError(f"some of the {len(found)} rows at {shown(path)} have no text of a model: {silent}")

    return replace(format, matches=matches, messages=messages, columns=())


def _failure(row: Any) -> str | None:
    """Return the error message in a row of a failed request; None if the row has no error message."""
    waiting = deque([(row, 0)])
    while waiting:
        value, depth = waiting.popleft()
        if not isinstance(value, dict) or depth > _DEPTH:
            continue
        error = value.get("error")
        said = error.get("message", error.get("error")) if isinstance(error, dict) else error
        said = said.get("message") if isinstance(said, dict) else said
        if isinstance(said, str) and said:
            return f"the request failed: {said[:200]}"
        waiting.extend((one, depth + 1) for one in value.values())
    return None
