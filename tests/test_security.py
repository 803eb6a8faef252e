"""SECURITY.md: each kind of file that is read has a hostile test; and tasks, which have no other."""

import json
import re
from pathlib import Path

import pytest

from lzsampler.auditing.reading.shard import _DATA
from lzsampler.evaluation.tasks import read_tasks

ROOT = Path(__file__).parents[1]
ROWS = [line.split("|")[1:-1] for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_each_kind_of_file_has_a_test(row: list[str]) -> None:
    file, _, with_, worst, test = (cell.strip() for cell in row)
    assert file
    assert with_
    assert worst
    path, _, name = test.strip("`").partition("::")
    assert not name or re.search(rf"^def {name}\b", (ROOT / path).read_text(), re.MULTILINE), test
    assert (ROOT / path).is_file()


def test_every_container_is_in_the_table() -> None:
    told = (ROOT / "SECURITY.md").read_text().casefold()
    others = {".jsonl": "json lines", ".ndjson": "json lines", ".traj": "json", ".sse": "events"}
    others |= {".yml": "yaml", ".db": "sqlite"}
    for ending in _DATA:
        assert others.get(ending, ending.removeprefix(".").removesuffix("3")) in told, ending


HOSTILE = {
    b"[" * 1_000_000: "not JSON",
    b'{"prompt": "q", "answer": ' + b"9" * 100_000 + b"}": "not JSON",
    b'{"prompt": "q", "answer": NaN, "compare": "number"}': "is not a number",
    b'{"prompt": "q", "answer": 1e999, "compare": "number"}': "is not a number",
    b'{"prompt": "\\ud800"}': "half of a surrogate pair",
    b"\xff\xfe{": "not UTF-8",
    b'{"prompt": "q", "answer": "(", "compare": "regex"}': "not a regular expression",
    b'{"prompt": "q", "answer": "' + b"(" * 100_000 + b'", "compare": "regex"}': "not a regular expression",
    b'{"prompt": "q", "answer": "' + b"9" * 100_000 + b'", "compare": "several"}': "must be a number, a colon",
    b'{"prompt": {"a": 1}}': "must be a text",
    b'{"prompt": [], "compare": ["os", "system"], "answer": "a"}': "compare must be one of",
    b'{"messages": [5]}': "must have a role and a content",
    b"5": "must be an object",
}


def test_hostile_tasks_are_bad_rows(tmp_path: Path) -> None:
    good = json.dumps({"prompt": "q", "answer": "a"}).encode()
    for bad, reason in HOSTILE.items():
        (tmp_path / "tasks.jsonl").write_bytes(good + b"\n" + bad + b"\n" + good)
        tasks, rows = read_tasks(tmp_path / "tasks.jsonl")
        assert len(tasks) == 2, bad[:60]
        assert [row.line for row in rows] == [2], bad[:60]
        assert reason in rows[0].reason, bad[:60]
        assert len(rows[0].reason) < 500, bad[:60]
