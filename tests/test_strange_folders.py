"""Work folders that somebody else made: whatever is in them, reading one works or is an error in one line."""

import gzip
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lzsampler
from corpora import corpus
from lzsampler import LzsError, Params, Results, audit_files, save
from lzsampler.auditing.audit_files import load
from lzsampler.errors import ArgumentError
from lzsampler.reports.eval_markdown import markdown_table

VALUES: list[Any] = [
    None, True, False, 0, -1, 1e308, float("nan"), float("inf"), 10**30, 2**63, "", "x", "\ud800", [], {}, [1], ["a"],
    {"a": 1}, [[[]]], "\x1b[31m", 1.5, "9" * 5000,
]  # fmt: skip


def mutated(value: Any, draw: random.Random) -> Any:
    """A value of JSON with one part replaced or taken out."""
    value = json.loads(json.dumps(value))
    at, key = value, None
    inner: Any = value
    while isinstance(inner, dict | list) and inner and (key is None or draw.random() < 0.8):
        at, key = inner, draw.choice(list(inner)) if isinstance(inner, dict) else draw.randrange(len(inner))
        inner = at[key]
    if isinstance(at, dict) and draw.random() < 0.15:
        del at[key]
    elif key is not None:
        at[key] = draw.choice(VALUES)
    return value


def changed(path: Path, draw: random.Random) -> None:
    """Change one value of a file of JSON, JSON Lines or packed JSON Lines."""
    if path.suffix == ".json":
        path.write_text(json.dumps(mutated(json.loads(path.read_text()), draw)))
        return
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = data.decode().splitlines()
    at = draw.randrange(len(lines))
    lines[at] = json.dumps(mutated(json.loads(lines[at]), draw))
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)


def copies(folder: Path, to: Path, names: list[str], n: int) -> Iterator[Path]:
    """Yield a copy of a folder with one value changed, n times."""
    draw = random.Random(1)
    for _ in range(n):
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(folder, to)
        changed(to / draw.choice(names), draw)
        yield to


def read_or_refused(read: Callable[[Path], object], folder: Path) -> bool:
    """Whether a folder was read; an error has one line. Any other exception fails the test."""
    try:
        read(folder)
    except (LzsError, ArgumentError) as error:
        said = str(error)
    else:
        return True
    assert "\n" not in said
    return False


def use_audit(folder: Path) -> None:
    made = load(folder)
    json.dumps(made.summary.to_json(), allow_nan=False)
    records, outcomes = list(made), list(made.outcomes())
    assert records or not made.summary.total.looping
    for name in ("out.html", "out.csv", "out.jsonl"):
        save(made, folder / name)
    lzsampler.compare(outcomes, outcomes).to_json()


def use_results(folder: Path) -> None:
    results = Results.read(folder)
    markdown_table(results)
    json.dumps(results.to_json(), allow_nan=False)
    save(results, folder / "out.html")


def test_audits(tmp_path: Path) -> None:
    audit_files(corpus(tmp_path / "in", files=1), resume=tmp_path / "work").close()
    assert read_or_refused(use_audit, tmp_path / "work")
    names = ["audit.json", "000000.json", "000000.jsonl.gz"]
    read = [read_or_refused(use_audit, copy) for copy in copies(tmp_path / "work", tmp_path / "copy", names, 400)]
    assert not all(read)


def test_a_number_of_tasks_that_nobody_could_count(tmp_path: Path) -> None:
    audit_files(corpus(tmp_path / "in", files=1), resume=tmp_path / "work").close()
    manifest = tmp_path / "work" / "audit.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "tasks": 2**62}))
    with pytest.raises(LzsError, match=r"is not complete, 4,611,\S+ of"):
        load(tmp_path / "work")


def test_evaluations(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    from lzsampler.evaluation.grid import Grid, Setting
    from lzsampler.models import default_model, default_prompts, default_tasks

    settings = (Setting("none", "none", Params(temperature=0.0)), Setting("lz", "lz-paper", Params(lz_penalty=0.15)))
    grid = Grid("small", settings, max_tokens=8)
    files: dict[str, Any] = {"tasks": default_tasks(), "prompts": default_prompts()}
    lzsampler.evaluate(default_model(), tmp_path / "work", **files, grid=grid, limit=2, n_ctx=256, n_threads=1)
    assert read_or_refused(use_results, tmp_path / "work")
    names = ["run.json", "transcripts.jsonl"]
    read = [read_or_refused(use_results, copy) for copy in copies(tmp_path / "work", tmp_path / "copy", names, 400)]
    assert not all(read)
