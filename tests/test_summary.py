"""The figures of an audit: what counts, and that adding up in parts gives the same as all at once."""

import json
import random
from pathlib import Path
from statistics import median

import pytest

from corpora import audited, finding
from lzsampler.auditing.records import Audited, BadRecord
from lzsampler.auditing.summary import LISTED, POINTS, WORST, Summary, loops, wasted_tokens
from lzsampler.util.stats import wilson


def summary_of(records: list[Audited | BadRecord], by: tuple[str, ...] = ()) -> Summary:
    whole, part = Summary({"copies": 20}, by), Summary({}, by)
    for record in records:
        part.add(record)
    whole.merge(part)
    return whole


def test_counts_rates_and_medians() -> None:
    summary = summary_of(
        [
            audited(0),
            audited(1, finding(share=0.5, period=7, wasted_tokens=10)),
            audited(2, finding(rule="LZR020")),
            audited(3, finding(share=0.1, period=3, wasted_tokens=5), finding(rule="LZR010", wasted_tokens=0)),
            BadRecord("b.jsonl", 7, "no JSON"),
        ],
        by=("model",),
    )
    made = summary.to_json()
    assert {key: made[key] for key in ("version", "records", "looping", "loop_rate", "bad_records", "bad_rate")} == {
        "version": 1,
        "records": 4,
        "looping": 2,
        "loop_rate": 0.5,
        "bad_records": 1,
        "bad_rate": 0.2,
    }
    assert made["interval"] == list(wilson(2, 4))
    assert (made["literal"], made["literal_rate"]) == (1, 0.25)
    assert (made["wasted_tokens"], made["characters"]) == (15, 520)
    assert (made["median_start"], made["median_period"]) == (0.3, 5.0)
    assert made["rules"] == {"copies": 20}
    assert made["rule_counts"] == {"LZR001": 2, "LZR010": 1, "LZR020": 1}
    assert made["metrics"] == pytest.approx({"rep4": 0.15, "zlib_ratio": 1.5})
    assert made["bad"] == [{"file": "b.jsonl", "line": 7, "reason": "no JSON"}]
    assert [group["group"] for group in made["groups"]] == [{"model": "m0"}, {"model": "m1"}]
    assert [group["looping"] for group in made["groups"]] == [0, 2]
    assert made["groups"][0]["median_start"] is None
    json.dumps(made, allow_nan=False)


def test_of_nothing() -> None:
    made = summary_of([]).to_json()
    assert (made["records"], made["loop_rate"], made["bad_rate"], made["interval"]) == (0, 0.0, 0.0, [0.0, 1.0])
    assert (made["groups"], made["metrics"], made["median_period"]) == ([], {}, None)


def test_loops_are_the_largest_and_all_waste_counts() -> None:
    record = audited(
        0,
        finding(start=0, end=100, wasted_tokens=20),
        finding(start=2, end=100, wasted_tokens=19, rule="LZR003", level="line"),
        finding(start=100, end=150, wasted_tokens=8, rule="LZR004"),
        finding(start=90, end=120, wasted_tokens=9, rule="LZR005", level="word"),
        finding(start=0, end=100, wasted_tokens=7, field="reasoning"),
        finding(start=500, end=900, wasted_tokens=90, rule="LZR020"),
    )
    assert [f.wasted_tokens for f in loops(record)] == [20, 8, 7]
    assert wasted_tokens(record) == 20 + 19 + 8 + 9 + 7


def test_loops_are_disjoint_whatever_was_found() -> None:
    rng = random.Random(7)
    for _ in range(200):
        found = []
        for _ in range(rng.randrange(1, 30)):
            start = rng.randrange(60)
            found.append(finding(start=start, end=start + rng.randrange(1, 20), wasted_tokens=rng.randrange(9)))
        expected: list[tuple[int, int]] = []
        for f in sorted(found, key=lambda f: (-f.wasted_tokens, f.rule, f.start)):
            if all(f.end <= start or end <= f.start for start, end in expected):
                expected.append((f.start, f.end))
        assert [(f.start, f.end) for f in loops(audited(0, *found))] == expected


def test_the_first_loop_is_that_of_the_reasoning() -> None:
    late, early = finding(start=900, share=0.9, field="reasoning", period=9), finding(start=10, share=0.1, period=4)
    summary = summary_of([audited(0, early, late)])
    assert (list(summary.total.starts), list(summary.total.periods)) == ([0.9], [9])
    assert summary.points == [(9, 20.0)]


def test_a_key_that_a_record_does_not_have() -> None:
    made = summary_of([audited(0, groups={}), audited(1)], by=("model", "file")).to_json()
    assert [group["group"] for group in made["groups"]] == [
        {"model": None, "file": "a.jsonl"},
        {"model": "m1", "file": "a.jsonl"},
    ]


def many(n: int) -> list[Audited | BadRecord]:
    rng = random.Random(8)
    records: list[Audited | BadRecord] = []
    for i in range(n):
        if rng.random() < 0.1:
            records.append(BadRecord("a.jsonl", i + 1, f"broken {i}"))
        elif rng.random() < 0.8:
            records.append(audited(i, finding(wasted_tokens=rng.randrange(40), share=rng.random(), period=i)))
        else:
            records.append(audited(i, metrics={"rep4": rng.random()}))
    return records


def test_parts_merge_to_the_whole() -> None:
    """Counts, medians, the worst, the bad and the sample of points are those of all records, however they are cut."""
    records = many(9000)
    made = []
    for size in (9000, 1000, 77):
        whole = Summary({}, ("model",))
        for start in range(0, len(records), size):
            part = Summary({}, ("model",))
            for record in records[start : start + size]:
                part.add(record)
            whole.merge(part)
        made.append(whole)
    good = [record for record in records if isinstance(record, Audited)]
    looping = [record for record in good if record.looping]
    assert len(looping) > POINTS
    for whole in made:
        assert whole.total.looping == len(looping)
        assert whole.to_json()["median_start"] == median(record.findings[0].share for record in looping)
        assert [bad.line for bad in whole.bad] == [r.line for r in records if isinstance(r, BadRecord)][:LISTED]
        worst = sorted(looping, key=lambda record: -record.findings[0].wasted_tokens)[:WORST]
        assert [record.id for record in whole.worst] == [record.id for record in worst]
        assert all(record.texts == () for record in whole.worst)
        assert len(whole.points) == POINTS
        periods = [period for period, _ in whole.points]
        assert periods == sorted(periods)
        assert periods == [period for period, _ in made[0].points]
        assert whole.metrics == pytest.approx(made[0].metrics, rel=1e-12)
    quarters = [sum(4 * i // 9000 == quarter for i, _ in made[0].points) for quarter in range(4)]
    assert min(quarters) > POINTS / 4 * 0.9  # of all records, not of the first


def test_every_key_is_documented() -> None:
    text = (Path(__file__).parents[1] / "docs" / "audit_summary.md").read_text("utf-8")
    made = summary_of([audited(0, finding()), BadRecord("a", 1, "b")], by=("model",)).to_json()
    keys = {*made, *made["groups"][0], *made["bad"][0]}
    assert {key for key in keys if f"`{key}`" not in text} == set()


def test_means_are_those_of_the_records_that_were_measured() -> None:
    made = Summary({})
    for i, metrics in enumerate(({"rep4": 0.2, "zlib_ratio": 2.0}, {}, {"rep4": 0.4})):
        made.add(audited(i, metrics=metrics))
    whole = Summary({})
    whole.merge(made)
    for summary in (made, whole):
        assert summary.to_json()["metrics"] == pytest.approx({"rep4": 0.3, "zlib_ratio": 2.0})
