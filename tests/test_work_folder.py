"""The folder that an audit works in: what is written comes back, whole parts only, and for the same audit only."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora import audited, finding
from lzsampler import LzsError
from lzsampler.auditing.audit_files import load
from lzsampler.auditing.coverage import Coverage
from lzsampler.auditing.records import Audited, BadRecord
from lzsampler.auditing.summary import Summary
from lzsampler.auditing.work_folder import VERSION, Outcome, WorkFolder
from lzsampler.util.files import locked

MANIFEST: dict[str, Any] = {
    "tasks": 2,
    "settings": {"rules": {"copies": 20}, "by": ["model"]},
    "inputs": {"a.jsonl": [130, 1], "b.jsonl": [7, 2]},
    "cuts": "c0ffee",
    "bad": [],
    "passed": Coverage().pack(),
}


def folder(path: Path, **changes: Any) -> WorkFolder:
    made = WorkFolder(path, lasting=True)
    made.begin({**MANIFEST, **changes})
    return made


def write(work: WorkFolder, task: int, *items: Audited | BadRecord, skipped: int = 0) -> Summary:
    summary = Summary({}, ("model",))
    with work.part(task, summary, skipped=skipped) as part:
        for item in items:
            part.add(item)
    return summary


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    records = [
        audited(
            0, finding(unit="\ud800 half a pair\0\n"), finding(rule="LZR011"), texts=(("answer", "ends in \udfff"),)
        ),
        audited(1),
        audited(2, finding(rule="LZR020", copies=20.5, share=1 / 3), finding(field="reasoning"), metrics={"x": 0.3}),
    ]
    work = folder(tmp_path / "deep" / "work")
    summaries = [write(work, 1, *records[1:]), write(work, 0, records[0], BadRecord("a", 3, "no"))][::-1]
    assert list(work.audited()) == [records[0], records[2]]
    assert list(work.outcomes()) == [
        Outcome("a.jsonl", f"r{i}", i != 1, i == 0, number=i, model=f"m{i % 2}") for i in range(3)
    ]
    assert list(work.summaries()) == [replace(summary, by=()) for summary in summaries]
    assert [work.records(task) for task in (0, 1)] == [1, 2]


def test_a_part_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    work = folder(tmp_path)

    def interrupted() -> None:
        with work.part(0, Summary({}), skipped=0) as part:
            part.add(audited(0, finding()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == ["audit.json"]
    assert not work.is_done(0)
    write(work, 0, audited(0))
    assert work.is_done(0)
    with pytest.raises(LzsError, match="is not complete, 1 of 2 parts are missing"):
        list(work.summaries())


def test_a_part_with_something_left_out_is_done_again(tmp_path: Path) -> None:
    work = folder(tmp_path)
    write(work, 0, audited(0), skipped=1)
    assert not work.is_done(0)
    write(work, 0, audited(0))
    assert work.is_done(0)


def test_many_outcomes(tmp_path: Path) -> None:
    work = folder(tmp_path, tasks=1)
    write(work, 0, *[audited(i) for i in range(2500)])
    assert [outcome.id for outcome in work.outcomes()] == [f"r{i}" for i in range(2500)]
    assert list(work.audited()) == []


def test_numbers_of_numpy_are_refused_at_once(tmp_path: Path) -> None:
    """They would come back as something else, or not: findings are plain numbers."""
    with pytest.raises(TypeError, match="int64"):
        write(folder(tmp_path), 0, audited(0, finding(start=np.int64(3))))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": {"rules": {"copies": 8}, "by": ["model"]}}, 'rules was {"copies": 20}, now {"copies": 8}'),
        ({"settings": {"rules": {"copies": 20}, "by": []}}, 'by was ["model"], now []'),
        ({"inputs": {"a.jsonl": [131, 1], "b.jsonl": [7, 2]}}, "a.jsonl has changed"),
        ({"inputs": {"a.jsonl": [130, 1]}}, "b.jsonl is gone"),
        ({"inputs": {**MANIFEST["inputs"], "c": [1, 1]}}, "c is new"),
        ({"cuts": "deca"}, "its files are divided in another way"),
    ],
)
def test_another_audit_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    folder(tmp_path)
    with pytest.raises(LzsError) as error:
        folder(tmp_path, **changes)
    assert str(error.value) == f"{tmp_path} contains another audit ({said}): choose another folder, or delete this one"


def test_another_version_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path)
    monkeypatch.setattr("lzsampler.auditing.work_folder.__version__", "9.9")
    with pytest.raises(LzsError, match=r"it was made by lzsampler \d[\d.]+, this is 9\.9"):
        folder(tmp_path)


def test_a_folder_of_another_format_is_refused_by_name(tmp_path: Path) -> None:
    """One that was begun before summaries counted stuck records had a KeyError behind it, or was called damaged."""
    work = folder(tmp_path, tasks=1)
    write(work, 0, audited(0, finding()))
    old = json.loads((tmp_path / "audit.json").read_bytes()) | {"version": 2}
    (tmp_path / "audit.json").write_text(json.dumps(old))
    part = json.loads((tmp_path / "000000.json").read_bytes())
    del part["summary"]["total"]["stuck"]
    (tmp_path / "000000.json").write_text(json.dumps(part))
    said = (
        f"{tmp_path} was made by another version of lzs audit (folder format 2, this one reads {VERSION}): "
        "choose another folder, or delete this one and audit again"
    )
    for read in (lambda: folder(tmp_path, tasks=1), lambda: load(tmp_path), lambda: list(work.outcomes())):
        with pytest.raises(LzsError) as error:
            read()
        assert str(error.value) == said


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(LzsError, match="is not empty and contains no audit"):
        folder(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]
    with pytest.raises(FileExistsError):
        folder(tmp_path / "thesis.tex")


def test_a_lock_alone_is_an_empty_folder(tmp_path: Path) -> None:
    work = WorkFolder(tmp_path, lasting=False)
    with locked(tmp_path), pytest.raises(LzsError, match="is using"), locked(tmp_path):
        pass
    with locked(tmp_path):
        work.begin(MANIFEST)
    assert work.is_one()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "000000.json-0123.tmp").write_text("half")
    folder(tmp_path)
    assert os.listdir(tmp_path) == ["audit.json"]


def test_damage_is_told(tmp_path: Path) -> None:
    work = folder(tmp_path, tasks=1)
    write(work, 0, audited(0, finding()))
    part = tmp_path / "000000.jsonl.gz"
    whole = part.read_bytes()
    for broken in (whole[:-5], whole[:40], b"", whole[:30] + b"?" + whole[31:], gzip.compress(b'{"audited": [')):
        part.write_bytes(broken)
        with pytest.raises(LzsError, match=r"000000\.jsonl\.gz is damaged"):
            list(work.audited())
    (tmp_path / "audit.json").write_text("{")
    with pytest.raises(LzsError, match=r"audit\.json is damaged"):
        work.manifest()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("audit.json", b"[]"),
        ("audit.json", b"{}"),
        ("audit.json", b'{"tasks": "x"}'),
        ("audit.json", b"[" * 100_000),
        ("000000.json", b"{}"),
        ("000000.json", b"7"),
        ("000000.jsonl.gz", gzip.compress(b'{"outcomes":5}\n', mtime=0)),
        ("000000.jsonl.gz", gzip.compress(b'{"outcomes":[[1]]}\n', mtime=0)),
        ("000000.jsonl.gz", gzip.compress(b'{"audited":[1]}\n', mtime=0)),
    ],
)
def test_json_of_another_shape_is_damage(tmp_path: Path, name: str, content: bytes) -> None:
    """It was a KeyError, a TypeError or an AssertionError with a traceback."""
    work = folder(tmp_path, tasks=1)
    write(work, 0, audited(0, finding()))
    (tmp_path / name).write_bytes(content)

    def everything() -> None:
        work.is_done(0)
        work.records(0)
        list(work.summaries())
        list(work.audited())
        list(work.outcomes())

    with pytest.raises(LzsError, match=rf"{name} is damaged: delete the folder and audit again"):
        everything()


def test_a_process_killed_before_its_first_file_leaves_a_folder_that_can_be_used(tmp_path: Path) -> None:
    """The file that was being written made the folder one that "contains no audit"."""
    (tmp_path / "lock").touch()
    (tmp_path / ".lzs-0123456789abcdef.tmp").touch()
    assert folder(tmp_path).is_one()


def test_parts_are_plain_json(tmp_path: Path) -> None:
    """Reading somebody's folder runs nothing of theirs."""
    work = folder(tmp_path)
    write(work, 0, audited(0, finding()))
    for path in tmp_path.iterdir():
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in data.splitlines() if path.suffix == ".gz" else [data]:
            json.loads(line)
