"""Reads the rows of an evaluation from its files, and gives the rows the ids that the work folder uses."""

import re
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path

from ..errors import ArgumentError
from .run_folder import digest
from .tasks import BadRow, Task, read_tasks, spread

_BY_LINE = re.compile(r"(tasks|prompts):\d+")  # the id of a row that has no id in its file


def read_rows(
    files: Mapping[str, str | Path | None], limit: int | None, *, allow_code: bool = False
) -> tuple[dict[str, Task], dict[str, list[BadRow]]]:
    """Return (id -> row, role -> bad rows). ``files``: role -> file, with the roles "tasks" and "prompts".

    ``limit`` as in `spread`, ``allow_code`` as in `read_tasks`. ArgumentError if a file has no row, and if two rows
    have the same id. LzsError if a file cannot be read.
    """
    rows: dict[str, Task] = {}
    bad: dict[str, list[BadRow]] = {}
    for name, path in files.items():
        if path is None:
            continue
        found, bad[name] = read_tasks(path, name, allow_code=allow_code)
        if not found:
            reason = f"line {bad[name][0].line}: {bad[name][0].reason}" if bad[name] else "it is empty"
            raise ArgumentError(f"{path} has no {name}: {reason}")
        for task in spread(found, limit):
            if task.id in rows:
                raise ArgumentError(f"a task and a prompt have the same id, {task.id!r}: give one of them another id")
            rows[task.id] = task
    if not rows:
        raise ArgumentError("nothing to do: give tasks, prompts or both")
    return rows, bad


def known(rows: Iterable[Task], before: Mapping[str, str]) -> dict[str, Task]:
    """Return id -> row, with the ids that a work folder uses. ``before``: the `RunFolder.rows` of the folder.

    A row without an id in its file is named by its line number, which changes if an earlier line is removed. Such a row
    keeps the id that the folder has for the same prompt. A new row gets an id that no other row has or had.
    """
    given = list(rows)
    digests = {task.id: digest(task.prompt) for task in given}
    names = {
        task.id: task.id for task in given if not _BY_LINE.fullmatch(task.id) or before.get(task.id) == digests[task.id]
    }
    free: dict[tuple[str, str], list[str]] = {}
    for name, seen in before.items():
        if name not in names and (by_line := _BY_LINE.fullmatch(name)):
            free.setdefault((by_line[1], seen), []).append(name)
    for task in given:
        if task.id not in names and (same := free.get((task.id.split(":")[0], digests[task.id]))):
            names[task.id] = same.pop(0)
    taken = set(names.values())
    for task in given:
        if task.id not in names:
            role = task.id.split(":")[0]
            unused = (f"{role}:{n}" for n in count(1) if not {f"{role}:{n}"} & (taken | before.keys() | digests.keys()))
            names[task.id] = next(unused) if task.id in taken else task.id
            taken.add(names[task.id])
    return {names[task.id]: task for task in given}
