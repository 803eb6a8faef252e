"""LZR011: stretches of a text that say nothing new, whether or not they have a period."""

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora import transcript
from lzsampler import Params, Sampler, StuckDetection, audit, audit_texts
from lzsampler.auditing.findings import audit_record
from lzsampler.auditing.records import Field, Finding, Record
from lzsampler.auditing.rules import Rules
from lzsampler.auditing.stuck import stretches
from planted import prose

BEFORE = prose(random.Random(1), 2000).strip() + "\n\n"
SENTENCE = (
    "the old keeper of the lighthouse climbed the narrow stairs and lit the lamp while the wind blew from the sea"
)


def lighthouse(copies: int = 30) -> str:
    """The same sentence again and again, with another end each time, so that nothing repeats with a period."""
    ends = random.Random(2).choices(["he slept", "he wept", "he sang", "he read", "nobody came", "it rained"], k=copies)
    return "".join(f"On day {i} {SENTENCE}, and {end}. " for i, end in enumerate(ends))


def stuck(text: str) -> list[Finding]:
    return [finding for finding in audit(text).findings if finding.rule == "LZR011"]


def test_a_sentence_under_rising_numbers_with_other_ends() -> None:
    text = BEFORE + lighthouse()
    made = audit(text)
    (found,) = stuck(text)
    assert not made.looping
    assert (found.level, found.tail, found.share) == ("word", True, found.start / len(text))
    third = text.index("On day 2")
    assert third <= found.start <= third + len("On day 2 ")  # the third copy is the first that is nothing new
    assert text[found.start :].startswith("the old keeper")
    assert text[: found.end].endswith(text.rstrip()[-1])
    assert found.copies == pytest.approx(28, rel=0.5)
    assert found.wasted_tokens > 0.6 * (found.end - found.start) / 4


def test_offsets_are_characters() -> None:
    ascii_text = BEFORE + lighthouse()
    text = ascii_text.replace("e", "é")
    (one,), (other,) = stuck(ascii_text), stuck(text)
    assert (one.start, one.end, one.copies) == (other.start, other.end, other.copies)


def test_a_text_that_goes_on_is_stuck_in_the_middle() -> None:
    text = BEFORE + lighthouse() + prose(random.Random(3), 3000)
    (found,) = stuck(text)
    assert not found.tail
    assert found.end <= len(BEFORE) + len(lighthouse()) + 100


def test_a_loop_is_not_reported_again() -> None:
    made = audit(BEFORE + f"{SENTENCE}. " * 30)
    assert made.looping
    assert {finding.rule for finding in made.findings} == {"LZR001"}


def test_a_paragraph_that_comes_again_with_changes_is_stuck_in_the_middle_of_a_long_text() -> None:
    """In the third copy, which is the whole stretch, most words come only once."""
    words = prose(random.Random(6), 900).split()[:130]
    copies = []
    for changed in (30, 60, 90):
        copies.append(" ".join([*words[:changed], f"instead{changed}", *words[changed + 1 :]]))
    text = BEFORE + "\n\n".join(copies) + "\n\n" + prose(random.Random(7), 6000)
    (found,) = stuck(text)
    assert not found.tail
    assert found.end - found.start < 2 * len(copies[0])


def test_data_is_not_stuck_in_the_middle_of_a_text_but_at_its_end_or_where_it_is_half_of_it() -> None:
    """Equal cells and zeros come again rightly: what else a text says decides."""
    rng = random.Random(8)
    cells = "".join(f"| {row} | {' | '.join(rng.choices(['yes', 'no'], [19, 1], k=12))} |\n" for row in range(20))
    page = prose(random.Random(9), len(cells) + 1000)
    assert stuck(page + "\n\n" + cells + "\n" + page) == []
    assert len(stuck(page + "\n\n" + cells)) == 1
    assert len(stuck("A table:\n\n" + cells + "\nThat is all.\n")) == 1


def test_what_is_copied_once_is_not_stuck() -> None:
    assert stuck(BEFORE + BEFORE) == []
    assert stuck(BEFORE) == []


def test_it_can_be_switched_off() -> None:
    text = BEFORE + lighthouse()
    for off in (audit(text, stuck_score=0), audit(text, ignore="LZR011"), audit(text, levels="char")):
        assert "LZR011" not in {finding.rule for finding in off.findings}


def test_tokens_without_a_text() -> None:
    rng = random.Random(4)
    sentence = list(range(40))
    tokens = [500 + i for i in range(100)]
    for _ in range(20):
        tokens += [*sentence, rng.randrange(1000, 2000), rng.randrange(1000, 2000)]
    made = audit_record(Record("f", 0, "0", (Field("answer", "", np.array(tokens, np.int32)),)), Rules())
    (found,) = made.findings
    assert (found.rule, found.level, found.start) == ("LZR011", "token", 100 + 2 * 42)
    assert found.wasted_tokens > 500
    assert not made.looping


def test_the_summary_counts_it() -> None:
    texts = [(BEFORE, {"model": "a"}), (BEFORE + lighthouse(), {"model": "b"}), (f"{SENTENCE}. " * 30, {"model": "b"})]
    made = audit_texts(texts, by="model")
    assert (made.total.stuck, made.total.looping, made.stuck_rate) == (1, 1, 1 / 3)
    rows = made.to_json()
    assert (rows["stuck"], rows["stuck_rate"], rows["rule_counts"]["LZR011"]) == (1, 1 / 3, 1)
    assert rows["stuck_interval"][0] < 1 / 3 < rows["stuck_interval"][1]
    assert [group["stuck"] for group in rows["groups"]] == [0, 1]


def test_a_comparison_counts_it(tmp_path: Path) -> None:
    """On the command line, and only where there is one: it says nothing about whether B is worse."""
    for name, text in (("a", BEFORE), ("b", BEFORE + lighthouse())):
        (tmp_path / name).write_text(transcript(0, text) + transcript(1, BEFORE), encoding="utf-8")

    def said(b: str) -> str:
        command = [str(Path(sys.executable).with_name("lzs")), "diff", "a", b]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True).stdout

    assert said("b").splitlines()[:2] == [
        "A  a: 0 of 2 records loop, 0 %; 0 are stuck (LZR011)",
        "B  b: 0 of 2 records loop, 0 %; 1 is stuck (LZR011)",
    ]
    assert "stuck" not in said("a")


# -- the scan --


def offline(ids: Sequence[int], setting: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    threshold, ngram, min_count, weight, window = setting
    found = stretches(
        np.array(ids, np.int32), threshold=threshold, ngram=ngram, min_count=min_count, weight=weight, window=window
    )
    return [tuple(row) for row in np.stack(found, 1).tolist()]


def twin(ids: Sequence[int], setting: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """The definition, word by word: (start, end, old, score) of every stretch."""
    threshold, ngram, min_count, weight, window = setting
    old_ends = [False] * len(ids)
    for end in range(ngram, len(ids) + 1):
        gram = list(ids[end - ngram : end])
        before = [e for e in range(max(ngram, end - window), end) if list(ids[e - ngram : e]) == gram]
        old_ends[end - 1] = len(before) >= min_count - 1
    found, score, start, best = [], 0, 0, (0, 0)
    flags = [any(old_ends[i : i + ngram]) for i in range(len(ids))]
    for i, old in enumerate([*flags, None]):
        if old:
            if score == 0:
                start, best = i, (0, 0)
            score += 1
            best = max(best, (score, i + 1))
        elif old is not None:
            score = max(0, score - weight)
        if best[0] >= threshold and (old is None or best[0] - score >= threshold):
            found.append((start, best[1], sum(flags[start : best[1]]), best[0]))
            score, best = 0, (0, 0)
    return found


@given(
    st.lists(st.integers(0, 2), max_size=60),
    st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(2, 4), st.integers(0, 4), st.integers(1, 60)),
)
def test_the_scan_against_its_twin(ids: list[int], setting: tuple[int, ...]) -> None:
    assert offline(ids, setting) == twin(ids, setting)


@given(
    st.lists(st.integers(0, 2), max_size=60),
    st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(2, 4), st.integers(0, 4), st.integers(1, 60)),
)
def test_it_finds_first_what_the_sampler_finds(ids: list[int], setting: tuple[int, ...]) -> None:
    sampler = Sampler(3, Params(stuck_detection=StuckDetection(*setting)))
    for token in ids:
        sampler.accept(token)
    found = offline(ids, setting)
    assert (sampler.stuck is None) == (not found)
    if sampler.stuck is not None:
        assert sampler.stuck.start == found[0][0]


def test_many_stretches() -> None:
    """More of them than there is room for in the first scan."""
    rng = random.Random(5)
    ids: list[int] = []
    for i in range(200):
        ids += [*([3 * i, 3 * i + 1] * 10), *(rng.randrange(10_000, 10**6) for _ in range(40))]
    assert len(offline(ids, (10, 2, 3, 1, 100))) == 200
