"""Where a degenerate stretch begins: neighbours that are too short to count as loops belong to it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lzsampler import audit_files, audit_texts
from lzsampler.auditing.findings import audit_record
from lzsampler.auditing.records import Audited, Field, Record, fields_of
from lzsampler.auditing.rules import Rules
from lzsampler.auditing.summary import begins, loops
from lzsampler.reports.audit_terminal import terminal_table
from lzsampler.reports.samples import sample

PROSE = "Once upon a time there was a small town by the sea, where nobody had ever seen a ship with red sails. "
# As in the excerpts of arXiv 2504.20131 under a frequency penalty: runs of 17 to 19 copies, with words between them.
CHANGING = "".join(
    f"{unit} " * copies + f"{words} "
    for unit, copies, words in (
        ("no", 19, "but"),
        ("wait", 18, "hm"),
        ("so be it", 8, "and then"),
        ("the answer is", 18, "Therefore we say that it is"),
        ("let me think again about this", 17, "ok"),
        ("perhaps not", 18, "end"),
    )
)


def audited(text: str) -> Audited:
    return audit_record(Record("", 0, "", fields_of(text)), Rules())


def test_a_text_that_loops_from_its_first_word() -> None:
    made = audited(CHANGING)
    assert made.onset == 0.0
    assert min(finding.share for finding in made.findings) > 0.1
    assert audit_texts([CHANGING]).to_json()["median_start"] == 0.0


def test_after_prose_it_begins_where_the_prose_ends() -> None:
    made = audited(PROSE * 2 + CHANGING)
    assert made.onset is not None
    assert made.onset * len(PROSE * 2 + CHANGING) == pytest.approx(2 * len(PROSE), abs=3)


@pytest.mark.parametrize(
    ("before", "joins"),
    [
        ("ha " * 10, True),
        ("ha " * 10 + "he said. ", True),
        ("ha " * 10 + PROSE, False),  # what lies between is longer than the copies
        ("ha " * 3, False),  # three copies, 9 characters
        ("-" * 40 + "\n", False),  # a ruler: no letter
        ("= - " * 12, False),
        (PROSE, False),
    ],
)
def test_neighbours(before: str, joins: bool) -> None:
    text = before + "It is what it is. " * 12
    onset = audited(text).onset
    assert onset is not None
    assert (onset * len(text) < 2) == joins or before == ""


def test_offsets_are_in_characters_and_fields_apart() -> None:
    russian = "да нет " * 7 + "и это всё что я могу сказать. " * 12
    assert audited(russian).onset == 0.0
    reasoning = "<think>" + PROSE + "It is what it is. " * 12 + "</think>" + CHANGING
    found = audited(reasoning)
    assert found.onset == pytest.approx(len(PROSE) / (len(PROSE) + 216), abs=0.02)  # of the reasoning
    assert audited(PROSE).onset is None


def test_of_tokens() -> None:
    rng = np.random.default_rng(0)
    tokens = np.concatenate((rng.integers(100, 900, 50), [1, 2] * 6, [7], [3, 4, 5] * 40)).astype(np.int32)
    made = audit_record(Record("", 0, "", (Field("answer", "", tokens),)), Rules())
    assert made.onset == 50 / tokens.size


def test_rules_that_are_not_reported_have_no_onset() -> None:
    assert audit_record(Record("", 0, "", fields_of(CHANGING)), Rules(select=("LZR010",))).onset is None


def test_every_report_says_the_same_place(tmp_path: Path) -> None:
    """A short loop, and then the longest: the table said where the first begins, the list of the worst the other."""
    text = "It was a large, large house, " + "green, and " * 12 + "so " + "blue, " * 200
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "x", "response": text}))
    with audit_files(tmp_path / "a.jsonl", workers=1) as made:
        (record,) = made
        largest = loops(record)[0]
        assert largest.share > 0.1 > begins(record, largest) == record.onset
        table = terminal_table(made.summary, 110)
        shown = sample(record, 1, ()).row["share"]
    place = f"{100 * begins(record, largest):.0f} %"
    assert f" from {place} p=6" in table
    assert f" {place} " in table.split("Worst loops")[0]
    assert shown == round(begins(record, largest), 4)
    other = replace(record, findings=(replace(largest, field="reasoning"), replace(largest, share=0.5)))
    assert begins(other, other.findings[1]) == 0.5
