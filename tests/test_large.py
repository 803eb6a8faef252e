"""Long texts: the same is found whether or not the middle of a loop is looked at, and memory stays bounded."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import PROSE
from lzsampler import audit
from lzsampler.auditing import findings
from lzsampler.auditing.metrics import words
from lzsampler.auditing.middle import Middle, middle_of
from lzsampler.auditing.normalized import characters_before, to_bytes, whole_characters
from lzsampler.auditing.rules import Rules
from lzsampler.auditing.scan import runs

WORDS = ["so", "it", "goes", "on", "ä", "7", "NULL", "über", "and", "then", "x,"]
_text = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
_loop = st.tuples(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), st.integers(3, 200)).map(
    lambda pair: f"{pair[0]} " * pair[1]
)


SMALL: dict[str, Any] = {
    "copies": 5,
    "length": 12,
    "length_copies": 3,
    "near_copies": 4,
    "stuck_score": 10,
    "stuck_ngram": 4,
}


@settings(max_examples=300)
@given(st.lists(st.one_of(_text, _loop), max_size=4).map("\n".join), st.integers(2, 4), st.integers(8, 60))
def test_the_same_is_found_without_the_middle_of_a_loop(text: str, count: int, window: int) -> None:
    rules = {**SMALL, "stuck_count": count, "stuck_window": window}
    whole = audit(text, **rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "_LONG_TEXT", 0)
        assert audit(text, **rules) == whole


def test_the_texts_of_that_test_have_middles() -> None:
    """Words, other white space, numbers and lines repeat on both sides of a loop, and go on through it."""
    rng = random.Random(9)
    n = 0
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(300):
            unit = " ".join(rng.choices(WORDS, k=rng.randrange(1, 4))) + rng.choice([" ", "\n", " \n"])
            other = unit.replace(" ", "  ").replace("7", "8").title()
            parts = [rng.choice([other, unit, "and so on "]) * rng.randrange(4), unit * rng.randrange(60, 200)]
            parts += [other * rng.randrange(5), rng.choice(["", "the end", unit * 3])]
            text = "".join(parts)
            rules = {**SMALL, "stuck_count": rng.randrange(2, 4), "stuck_window": 20}
            patch.setattr(findings, "_LONG_TEXT", 1 << 30)
            whole = audit(text, **rules)
            patch.setattr(findings, "_LONG_TEXT", 0)
            assert audit(text, **rules) == whole
            data = to_bytes(text)
            found = runs(data, min_copies=3, min_length=12)
            n += middle_of(data, found, Rules(**rules)).copies > 0
    assert n > 200


def test_the_middle_of_a_run_is_most_of_it() -> None:
    text = b"A beginning. " + b"on and on it goes, " * 100_000
    middle = middle_of(text, runs(text, min_copies=3, min_length=100), Rules())
    assert (middle.end - middle.start) == 19 * middle.copies > 0.9 * len(text)
    assert (middle.words, middle.lines, middle.normalized) == (5, 0, 19)
    assert len(words(text[13 : middle.start])) >= 4096 + 12 + 96
    assert middle.left_out(text) == text[: middle.start] + text[middle.end :]
    assert middle.places(np.array([0, middle.start, middle.start + 1])).tolist() == [0, middle.start, middle.end + 1]
    many = b" ".join(b"%d" % i for i in range(3000)) + b" "
    for unit in (b"onandonitgoes", many, b" "):  # no words, more of them than a window, and no word at all
        text = unit * 200
        assert middle_of(text, runs(text, min_copies=3, min_length=100), Rules()) == Middle()
    text = b"so it is, " * 1000 + bytes(range(33, 127)) * 200  # less than half of a text, and no words in the rest
    assert middle_of(text, runs(text, min_copies=3, min_length=100), Rules()) == Middle()


def test_characters_are_counted_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(4)
    for block in (1, 2, 7, 64, 1 << 20):
        monkeypatch.setattr("lzsampler.auditing.normalized._BLOCK", block)
        for _ in range(30):
            text = "".join(rng.choices("aé€😀", k=rng.randrange(1, 60)))
            data = to_bytes(text)
            begins = [i for i, byte in enumerate(data) if byte & 0xC0 != 0x80] + [len(data)]
            at = np.array([[rng.choice(begins) for _ in range(5)] for _ in range(2)], np.int64)
            expected = [[len(data[:i].decode()) for i in row] for row in at.tolist()]
            assert characters_before(data, at).tolist() == expected
            start = np.array([rng.randrange(len(data) + 1) for _ in range(4)], np.int64)
            end = np.maximum(start, np.array([rng.randrange(len(data) + 1) for _ in range(4)], np.int64))
            for low, high, i, j in zip(start, end, *whole_characters(data, start, end), strict=True):
                inside = [place for place in begins if low <= place <= high]
                assert not inside or (i, j) == (inside[0], max(inside[-1], inside[0]))


MEASURE = """
import json, resource, sys
from lzsampler import audit_files
with audit_files(sys.argv[1], workers=1) as made:  # what is loaded once, and the tables
    assert made.summary.total.looping == 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with audit_files(sys.argv[2], workers=1) as made:
    (found,) = [f for record in made for f in record.findings if f.rule == "LZR001"]
print(json.dumps([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, found.start, found.end]))
"""


def test_memory_for_a_line_that_repeats_itself(tmp_path: Path) -> None:
    """The text, the text as UTF-8, and a byte for each character of the loop; it was 7.5 times the text."""
    pytest.importorskip("resource")
    unit, before = "and the ship went on, as if nobody had ever been on board, ", PROSE[:2000]
    for name, copies in (("small.jsonl", 100), ("large.jsonl", 400_000)):
        (tmp_path / name).write_text(json.dumps({"response": before + copies * unit}) + "\n")
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "small.jsonl"), str(tmp_path / "large.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kilobytes, start, end = json.loads(done.stdout)
    assert start <= 2000
    assert end == 2000 + 400_000 * len(unit)
    assert kilobytes * 1024 < 4.5 * end


READ = """
import resource, sys
from lzsampler.auditing.reading.read import read
from lzsampler.auditing.reading.shard import find
for path in sys.argv[1:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (shard,), _ = find(path)
    assert sum(1 for _ in read(shard)) == 2
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("key", ["prompt", "response"])
def test_reading_a_long_line_takes_twice_its_size(tmp_path: Path, key: str) -> None:
    """Its bytes and its text; it was three times its size, and four times for a list of many messages."""
    pytest.importorskip("resource")
    for name, n in (("small.jsonl", 10), ("large.jsonl", 6_000_000)):
        row = {"prompt": "q", "response": "a", key: "so it goes " * n}
        (tmp_path / name).write_text(json.dumps(row) + "\n")
    command = [sys.executable, "-c", READ, str(tmp_path / "small.jsonl"), str(tmp_path / "large.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 2.5 * (tmp_path / "large.jsonl").stat().st_size
