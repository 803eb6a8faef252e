"""`evaluate`: a grid of settings over tasks and prompts, one transcript each, and the figures of it all.

A work folder holds `run.json` (what was asked for), `transcripts.jsonl` (docs/transcript.md, with an ``eval`` key; a
line as each text ends) and, when all are there, `results.json`. Going on with a folder does what is missing, no more.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from . import __version__
from ._check import LzsError
from .generate import Generation
from .grid import Grid, Setting, read_grid
from .llama.chain import ChainSampler
from .model import Model
from .parallel import Request, generate_many
from .reports.files import replacing
from .tasks import BadRow, Task, read_tasks
from .transcript import TranscriptFile, record, to_line

VERSION = 1  # of run.json and results.json
_NOT_THE_SAME_TWICE = ("id", "created", "timings")  # keys of a transcript that two runs of one grid would differ in


@dataclass
class Counts:
    """Texts of one setting: ``answered`` of them are tasks, ``right`` of these; ``looping`` of all of them."""

    texts: int = 0
    looping: int = 0
    answered: int = 0
    right: int = 0
    tokens: int = 0
    kinds: dict[str, list[int]] = field(default_factory=dict)  # kind of task: [right, answered]


@dataclass(frozen=True)
class Results:
    """What `evaluate` found. ``counts``: by the settings' names, in the grid's order; ``bad``: rows that were no tasks.

    ``outcomes``: of each text, by (setting, prompt, seed): (it loops, it is right; None where there is no answer).
    """

    grid: Grid
    counts: Mapping[str, Counts]
    outcomes: Mapping[tuple[str, str, int], tuple[bool, bool | None]]
    bad: Mapping[str, Sequence[BadRow]]


Key = tuple[str, str, int]  # name of the setting, id of the prompt or task, seed


def evaluate(
    model: str | Path,
    out: str | Path,
    *,
    tasks: str | Path | None = None,
    prompts: str | Path | None = None,
    grid: Grid | str | Path = "quick",
    limit: int | None = None,
    n_ctx: int | None = None,
    n_parallel: int = 16,
    n_threads: int | None = None,
    resume: bool = False,
    on_text: Callable[[int, int], object] | None = None,
) -> Results:
    """Write a text for every setting, prompt and seed of a grid, and return what became of them.

    ``out``: the work folder; it must not exist, or with ``resume`` be one of the same model, grid, tasks and prompts.
    ``tasks`` and ``prompts``: JSON Lines (`read_tasks`); the first ``limit`` rows of each. ``n_parallel``: texts
    decoded at a time (`generate_many`); ``on_text`` is called with (done, all) after each. Settings that draw have a
    text a seed, greedy ones one text. Every text is on the disk when it ends; a damaged line of a folder that is
    resumed is named in the results, and its text made anew.

    Raises ValueError for arguments, a grid or a folder that do not fit, LzsError for files, the model and the disk.
    """
    chosen = grid if isinstance(grid, Grid) else read_grid(grid)
    rows, bad = _rows({"tasks": tasks, "prompts": prompts}, limit)
    folder = _Folder(Path(out), resume=resume)
    with Model(model, n_ctx=n_ctx) as opened:
        folder.claim(_manifest(opened, chosen, rows))
        done, damaged = folder.transcripts()
        if damaged:
            bad["transcripts"] = damaged
        keys = [key for key in _keys(chosen, rows) if key not in done]
        total = len(keys) + len(done)
        settings = {setting.name: setting for setting in chosen.settings}
        requests = (_request(opened, key, settings[key[0]], rows[key[1]], chosen.n_predict) for key in keys)
        with TranscriptFile(folder.path / "transcripts.jsonl") as file:
            for request, generation in generate_many(opened, requests, n_parallel=n_parallel, n_threads=n_threads):
                transcript = _transcript(opened, request, settings[request.id[0]], rows[request.id[1]], generation)
                file.append(transcript)
                done[request.id] = transcript
                if on_text is not None:
                    on_text(len(done), total)
    results = _results(chosen, rows, done, bad)
    folder.finish([done[key] for key in _keys(chosen, rows)], to_json(results))
    return results


def to_json(results: Results) -> dict[str, Any]:
    """Return results.json: ``version``, ``grid``, ``settings`` (name, kind, strength, temperature and the counts)."""
    return {
        "version": VERSION,
        "lzsampler": __version__,
        "grid": results.grid.name,
        "settings": [
            {
                "name": setting.name,
                "kind": setting.kind,
                "strength": setting.strength,
                "temperature": setting.params.temperature,
                **asdict(results.counts[setting.name]),
            }
            for setting in results.grid.settings
        ],
        "bad_rows": {name: [asdict(row) for row in rows] for name, rows in results.bad.items()},
    }


# ---- what there is to do ----


def _rows(
    files: Mapping[str, str | Path | None], limit: int | None
) -> tuple[dict[str, Task], dict[str, Sequence[BadRow]]]:
    rows: dict[str, Task] = {}
    bad: dict[str, Sequence[BadRow]] = {}
    for name, path in files.items():
        if path is None:
            continue
        found, bad[name] = read_tasks(path)
        if not found:
            raise ValueError(f"{path} has no {name}: {bad[name][0].reason if bad[name] else 'it is empty'}")
        for task in found[:limit]:
            if task.id in rows:
                raise ValueError(f"the id {task.id!r} is in the tasks and in the prompts")
            rows[task.id] = task
    if not rows:
        raise ValueError("nothing to do: give tasks, prompts or both")
    return rows, bad


def _keys(grid: Grid, rows: Mapping[str, Task]) -> Iterator[Key]:
    """By prompt first, so that settings share its cache."""
    for row in rows:
        for setting in grid.settings:
            for seed in grid.seeds[:1] if setting.params.temperature == 0 else grid.seeds:
                yield setting.name, row, seed


def _request(model: Model, key: Key, setting: Setting, task: Task, n_predict: int) -> Request:
    params = replace(setting.params, seed=key[2])
    sampler = (lambda: ChainSampler(model.llm, params, setting.dry)) if setting.dry else None
    return Request(key, task.prompt, params, n_predict=n_predict, sampler=sampler)


def _transcript(model: Model, request: Request, setting: Setting, task: Task, generation: Generation) -> dict[str, Any]:
    """Return the transcript of a text without what no two runs have in common."""
    whole = record(model, request.prompt, request.params, generation, n_predict=request.n_predict)
    right = None if task.answer is None else task.right(generation.content)
    ours = {
        "setting": setting.name,
        "kind": setting.kind,
        "prompt": task.id,
        "task": task.kind,
        "seed": request.id[2],
        "answer": task.answer,
        "right": right,
        "dry": dict(setting.dry),
    }
    return {"eval": ours, **{name: value for name, value in whole.items() if name not in _NOT_THE_SAME_TWICE}}


def _key(transcript: Mapping[str, Any]) -> Key:
    ours = transcript["eval"]
    return str(ours["setting"]), str(ours["prompt"]), int(ours["seed"])


def _results(
    grid: Grid, rows: Mapping[str, Task], done: Mapping[Key, Mapping[str, Any]], bad: Mapping[str, Sequence[BadRow]]
) -> Results:
    counts = {setting.name: Counts() for setting in grid.settings}
    outcomes: dict[Key, tuple[bool, bool | None]] = {}
    for key in _keys(grid, rows):
        transcript, task, count = done[key], rows[key[1]], counts[key[0]]
        looping, right = bool(transcript["repetition"]["loops"]), transcript["eval"]["right"]
        outcomes[key] = looping, right
        count.texts += 1
        count.looping += looping
        count.tokens += transcript["usage"]["completion_tokens"]
        if right is not None:
            count.answered += 1
            count.right += right
            kind = count.kinds.setdefault(task.kind, [0, 0])
            kind[0] += right
            kind[1] += 1
    return Results(grid, counts, outcomes, bad)


# ---- the work folder ----


def _manifest(model: Model, grid: Grid, rows: Mapping[str, Task]) -> dict[str, Any]:
    """Return what a folder is for: whatever may change a text or an outcome."""
    tasks = [asdict(task) for task in rows.values()]
    return {
        "version": VERSION,
        "model": {"file": model.path.name, "sha256": _sha256(model.path)},
        "n_ctx": model.n_ctx,
        "grid": json.loads(json.dumps(asdict(grid))),
        "rows": hashlib.sha256(json.dumps(tasks, sort_keys=True).encode()).hexdigest(),
    }


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    return digest.hexdigest()


class _Folder:
    """A work folder, which is one run's alone."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = path
        exists = (path / "run.json").exists()
        if exists and not resume:
            raise ValueError(f"{path} is there already: --resume goes on with it, another folder begins anew")
        if not exists and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ValueError(f"{path} is there already and is no folder of an evaluation: give another one")
        self._exists = exists

    def claim(self, manifest: dict[str, Any]) -> None:
        """Make the folder this run's, or see that it is; ValueError that names what has changed."""
        file = self.path / "run.json"
        if not self._exists:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise LzsError(f"cannot write to {self.path}: {error.strerror}") from error
            with replacing(file) as out:
                out.write(_json(manifest))
            return
        try:
            there = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise LzsError(f"cannot read {file}: {error}") from error
        names = {"model": "model", "n_ctx": "context", "grid": "grid", "rows": "tasks or prompts", "version": "format"}
        changed = [names[name] for name in manifest if there.get(name) != manifest[name]]
        if changed:
            raise ValueError(f"{self.path} was begun with another {' and '.join(changed)}: results are never mixed")

    def transcripts(self) -> tuple[dict[Key, dict[str, Any]], list[BadRow]]:
        """Return what is done, and the damaged lines; a last one that was cut off is taken away without a word."""
        file = self.path / "transcripts.jsonl"
        if not file.exists():
            return {}, []
        try:
            data = file.read_bytes()
        except OSError as error:
            raise LzsError(f"cannot read {file}: {error.strerror}") from error
        *lines, rest = data.split(b"\n")
        if rest:
            os.truncate(file, len(data) - len(rest))
        done, damaged = {}, []
        for number, line in enumerate(lines, 1):
            try:
                transcript = json.loads(line)
                done[_key(transcript)] = transcript
            except (ValueError, KeyError, TypeError, RecursionError):
                damaged.append(BadRow(number, "damaged: made anew"))
        return done, damaged

    def finish(self, transcripts: list[dict[str, Any]], results: dict[str, Any]) -> None:
        """Put the transcripts into the grid's order, so that two runs give the same files, and write the results."""
        with replacing(self.path / "transcripts.jsonl") as out:
            out.writelines((to_line(transcript) + "\n").encode("utf-8") for transcript in transcripts)
        with replacing(self.path / "results.json") as out:
            out.write(_json(results))


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode("utf-8")
