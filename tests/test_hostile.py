"""Two hundred hostile files: each is read as far as it goes and has a reason, and nothing of the others is lost."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hostile import LIMIT, Hostile, cases, lines
from lzsampler import audit_files
from lzsampler.auditing.reading import decode
from lzsampler.auditing.reading.read import read
from lzsampler.auditing.reading.shard import find
from lzsampler.auditing.records import BadRecord, Record
from transcripts import everything

pytest.importorskip("pyarrow")
pytest.importorskip("yaml")
pytest.importorskip("orjson")

LOOP = "I will look at it again. " * 30
GOOD = {"a-good.jsonl": 5, "cut-good.jsonl": 7, "mixed-good.json": 3, "row-good.csv": 2, "zz-good.txt": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Hostile]]:
    """All hostile files in one folder, with good ones among them, in which every text loops."""
    folder = tmp_path_factory.mktemp("hostile")
    found = cases()
    for case in found:
        case.make(folder / case.name)
    for name, n in GOOD.items():
        rows: list[dict[str, Any]] = [{"id": f"good {i}", "response": LOOP} for i in range(n)]
        told = {
            "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
            "json": json.dumps(rows),
            "csv": "id,response\n" + "".join(f"{row['id']},{row['response']}\n" for row in rows),
            "txt": LOOP,
        }
        (folder / name).write_text(told[name.rpartition(".")[2]])
    return folder, found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "MAX_LINE", LIMIT)
    monkeypatch.setattr(decode, "MAX_DOCUMENT", LIMIT)


def test_there_are_two_hundred(made: tuple[Path, list[Hostile]]) -> None:
    assert len({case.name for case in made[1]}) == len(made[1]) >= 200


@pytest.mark.usefixtures("small")
def test_each_has_its_reason(made: tuple[Path, list[Hostile]]) -> None:
    folder, found = made
    wrong = []
    for case in found:
        records, bad = everything(folder / case.name)
        reasons = [one.reason for one in bad]
        fits = any(re.search(case.reason, reason) for reason in reasons) if case.reason else not reasons
        if not fits or case.records not in (-1, len(records)):
            wrong.append((case.name, case.reason, reasons, case.records, len(records)))
        assert all(reason and "\n" not in reason and "Traceback" not in reason for reason in reasons), case.name
    assert wrong == []


@pytest.mark.usefixtures("small")
def test_nothing_of_the_rest_is_lost(made: tuple[Path, list[Hostile]]) -> None:
    folder, found = made
    passed: list[BadRecord] = []
    find(folder, passed=passed)
    with audit_files(folder, workers=1) as audit:
        looping = [record for record in audit if record.looping and "good" in record.file]
        summary = audit.summary
    assert len(looping) == sum(GOOD.values())
    files = summary.coverage.to_json()
    named = {each["file"] for each in files["unread"]} | {one.file for one in passed}
    for case in found:
        path = str(folder / case.name)
        said = not case.reason or any(name.startswith(path) for name in named)
        assert said or case.name == "empty-folder.jsonl", case.name  # which holds nothing that could be lost
    least = sum(case.records for case in found if case.records > 0)
    assert summary.total.records >= least + sum(GOOD.values())


# -- files that change while they are read --


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(40))
    for size in (1 << 20, 500):
        path.write_bytes(lines(40))
        shards, _ = find(path, shard_bytes=size)
        with path.open("ab") as file:
            file.write(lines(2))
        found = [item for shard in shards for item in read(shard)]
        assert sum(isinstance(item, Record) for item in found) == 40
        (bad,) = [item for item in found if isinstance(item, BadRecord)]
        said = f"it has grown while it was read: the last {len(lines(2))} bytes were not audited"
        assert (bad.file, bad.reason) == (str(path), said)


def test_a_line_that_is_being_written_is_read_when_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(3)[:-20])
    shards, _ = find(path)
    path.write_bytes(lines(3))
    (shard,) = shards
    found = list(read(shard))
    assert [type(item) for item in found[1:]] == [Record] * 3


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    """As by a program that begins its log anew."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(40))
    shards, _ = find(path, shard_bytes=500)
    path.write_bytes(lines(10))
    found = [item for shard in shards for item in read(shard)]
    assert sum(isinstance(item, Record) for item in found) == 10
    bad = [item for item in found if isinstance(item, BadRecord)]
    assert all("it has become shorter while it was read" in one.reason for one in bad)
    missing = sum(int(re.sub(r"\D", "", one.reason.partition(":")[2])) for one in bad)
    assert missing == len(lines(40)) - len(lines(10))


def test_a_file_that_is_gone_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines())
    (shard,), _ = find(path)
    path.unlink()
    assert [item.reason for item in read(shard) if isinstance(item, BadRecord)] == [
        "it cannot be read: No such file or directory"
    ]
