"""`RunFolder`: the files of an evaluation so far. `evaluate` continues them, and `Results` reads them.

`run.json` describes the run. `transcripts.jsonl` (docs/transcript.md, with an ``eval`` key) and `timings.jsonl` get a
line when a text ends. `failed.jsonl` gets a line when a text fails, `judge.jsonl` when a text is judged, and
`costs.jsonl` when a reference text is scored. Timings have their own file because they differ in every run.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from .._check import INT32_MAX, token_array
from ..errors import ArgumentError, LzsError
from ..util.files import LOCKS, UNFINISHED, replacing
from ..util.typed import of

VERSION = 1  # version of the formats of run.json and results.json
RUN, TRANSCRIPTS, TIMINGS, JUDGED = "run.json", "transcripts.jsonl", "timings.jsonl", "judge.jsonl"
COSTS, FAILED = "costs.jsonl", "failed.jsonl"
_FILES = frozenset((".html", ".json", ".jsonl", ".csv", ".parquet", ".sarif"))  # suffixes refused in a folder's name
_CHANGED = {
    "model": "model",
    "n_ctx": "context",
    "grid": "grid",
    "version": "format",
    "flash_attn": "attention",
}

Key = tuple[str, str, int]
"""The identity of a text of a run: the name of the setting, the id of the prompt or task, and the seed."""


class Line(NamedTuple):
    """A line of a file. ``number``: its number, from 1. ``key`` and ``row``: None if the line is damaged."""

    number: int
    data: bytes
    key: Key | None
    row: dict[str, Any] | None


class RunFolder:
    """A work folder, which belongs to one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def _claim(self, manifest: Mapping[str, Any], *, resume: bool) -> None:
        self.check(resume=resume)
        if (self.path / RUN).exists():
            there = self.manifest()
            changed = [
                f"{said} ({_change(_about(there, name), _about(manifest, name))})"
                for name, said in _CHANGED.items()
                if there.get(name) != manifest.get(name)
            ]
            if changed:
                raise ArgumentError(
                    f"{self.path} was started with another {' and '.join(changed)}: continue it as it was started, or "
                    "give another folder as out="
                )
            for name in (TRANSCRIPTS, TIMINGS, JUDGED, COSTS):
                self._cut_rest(self.path / name)
            (self.path / FAILED).unlink(missing_ok=True)  # the run tries failed texts again
        self.write(RUN, manifest)

    @contextmanager
    def claimed(self, manifest: Mapping[str, Any], *, resume: bool) -> Iterator[None]:
        """Claim a locked folder for a run. With ``resume``, the folder may already hold this run.

        If the folder holds a different run, ValueError names the differences. If ValueError or LzsError ends the block
        of a new run before the run has a text, the run's files are removed.
        """
        new = not (self.path / RUN).exists()
        self._claim(manifest, resume=resume)
        try:
            yield
        except (ValueError, LzsError):
            if new and not any(self.lines(TRANSCRIPTS)):
                for name in (RUN, TRANSCRIPTS, TIMINGS, FAILED):
                    (self.path / name).unlink(missing_ok=True)
            raise

    def check(self, *, resume: bool) -> None:
        """Raise ValueError unless the path can be a new folder, or, with ``resume``, is the folder of a run."""
        exists = (self.path / RUN).exists()
        if exists and not resume:
            raise ArgumentError(
                f"{self.path} already exists: give resume=True to continue it, or another folder as out="
            )
        if not self.path.exists() and self.path.suffix.lower() in _FILES:
            raise ArgumentError(
                f"{self.path} would be a folder, but its name ends like the name of a file: give "
                "another folder as out= (it will have report.html and results.json)"
            )
        if exists or not self.path.exists():
            return
        if not self.path.is_dir() or any(not _is_ours(file.name) for file in self.path.iterdir()):
            raise ArgumentError(f"{self.path} exists and is not an evaluation folder: give another folder as out=")

    def manifest(self) -> dict[str, Any]:
        """Return run.json."""
        file = self.path / RUN
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise LzsError(f"cannot read {file}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise LzsError(f"cannot read {file}: {error}") from error
        if not isinstance(found, dict):
            raise LzsError(f"cannot read {file}: it is not a JSON object")
        return found

    def rows(self) -> dict[str, str]:
        """Return id -> `digest` for all rows that runs of this folder have had so far, in the order of their numbers.

        The result is empty for a new folder, and for a folder of an older version.
        """
        found = self.manifest().get("rows") if (self.path / RUN).exists() else {}
        return {str(name): str(seen) for name, seen in found.items()} if isinstance(found, dict) else {}

    def is_current(self) -> Callable[[Line], bool]:
        """Return a function that says whether the row of a line is in use and still has the prompt of the line.

        The function's argument is a line of transcripts.jsonl.
        """
        manifest = self.manifest()
        rows, used = manifest.get("rows"), manifest.get("used")
        if not isinstance(rows, dict) or not isinstance(used, list):
            return lambda line: line.row is not None  # an older version, in which rows never change
        now = {name: rows.get(name) for name in map(str, used)}
        return lambda line: line.key is not None and line.row is not None and now.get(line.key[1]) == asked(line.row)

    def lines(self, name: str) -> Iterator[Line]:
        """Yield the complete lines of a file, in the order they were written; nothing if there is no file.

        A last line without a line end is incomplete: a process is still writing it, or was killed.
        """
        file = self.path / name
        if not file.exists():
            return
        try:
            with file.open("rb") as opened:
                for number, data in enumerate(opened, 1):
                    if data.endswith(b"\n"):
                        yield _line(number, data)
        except OSError as error:
            raise LzsError(f"cannot read {file}: {error.strerror}") from error

    def sort(self, name: str, keys: Iterable[Key]) -> None:
        """Sort the lines of a file by key, so that two runs give the same file.

        If several lines have the same key, only the last line is kept. Lines with keys outside ``keys`` come last. A
        later run may use their texts.
        """
        file = self.path / name
        if not file.exists():
            return
        places: dict[Key, tuple[int, int]] = {}
        at = 0
        for line in self.lines(name):
            if line.key is not None:
                places[line.key] = at, len(line.data)
            at += len(line.data)
        first = [key for key in keys if key in places]
        rest = places.keys() - set(first)
        with file.open("rb") as unsorted, replacing(file) as out:
            for key in (*first, *(key for key in places if key in rest)):
                start, size = places[key]
                unsorted.seek(start)
                out.write(unsorted.read(size))

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a JSON file. If the write fails, the former file stays unchanged."""
        with replacing(self.path / name) as out:
            out.write((json.dumps(value, indent=1) + "\n").encode("utf-8"))

    def _cut_rest(self, file: Path) -> None:
        """Remove an incomplete last line, because the next line would be appended to it."""
        if not file.exists():
            return
        try:
            size = file.stat().st_size
            with file.open("rb") as opened:
                whole = sum(len(line) for line in opened if line.endswith(b"\n"))
            if whole < size:
                os.truncate(file, whole)
        except OSError as error:
            raise LzsError(f"cannot read {file}: {error.strerror}") from error


def _about(manifest: Mapping[str, Any], name: str) -> str:
    """Return a short form of a value in run.json that must not change."""
    value = manifest.get(name)
    if name == "grid" and isinstance(value, dict):
        return f"{value.get('name')} with max_tokens={value.get('max_tokens')}"
    if name == "model" and isinstance(value, dict):
        return str(value.get("file"))
    if isinstance(value, bool):
        return f"{name}={'on' if value else 'off'}"
    return f"{name}={value}"


def _change(before: str, now: str) -> str:
    return f"{before}, which has changed since" if before == now else f"{before}, now {now}"


def _is_ours(name: str) -> bool:
    """Return whether a killed run can leave a file of this name in a new folder."""
    return name in LOCKS or name.endswith(UNFINISHED)


def digest(prompt: str | Sequence[Mapping[str, Any]]) -> str:
    """Return a hash of a prompt, to recognize its row later."""
    return blake2b(json.dumps(prompt, sort_keys=True).encode(), digest_size=8).hexdigest()


def asked(transcript: Mapping[str, Any]) -> str:
    """Return the `digest` of the prompt of a transcript."""
    return digest(transcript["prompt"] if "prompt" in transcript else transcript["messages"][:-1])


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    return digest.hexdigest()


def _line(number: int, data: bytes) -> Line:
    try:
        row = json.loads(data.decode("utf-8"))  # decoded first, because json.loads would also take UTF-16
        ours = row.get("eval", row)  # a row of timings has the key at its top level
        if ours is not row:
            _check_transcript(row)
        return Line(number, data, (str(ours["setting"]), str(ours["prompt"]), int(ours["seed"])), row)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
        return Line(number, data, None, None)


def _check_transcript(row: Mapping[str, Any]) -> None:
    """Raise an error of any kind if fields that the results need are missing."""
    ours, answer = row["eval"], row["messages"][-1]
    _ = of(ours["kind"], str), of(ours["task"], str), of(ours["answer"], str | None), of(ours["right"], bool | None)
    _ = of(answer["content"], str), of(answer.get("reasoning_content"), str | None)
    _ = of(row["usage"]["completion_tokens"], int), of(row["repetition"]["loops"], bool)
    _ = of(row.get("finish_reason") or "", str).encode(), token_array("tokens", row["tokens"], INT32_MAX)
