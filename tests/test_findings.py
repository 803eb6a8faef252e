"""What counts as a loop: against the twin, on planted loops, and case by case."""

import os
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lzsampler
import reference_audit as twin
from lzsampler.auditing.findings import MOST, audit, audit_record
from lzsampler.auditing.records import Field, Finding, Level, Record
from lzsampler.auditing.rules import Rules
from planted import planted

SENTENCE = "The quick brown fox jumps over the lazy dog. "
CHAR_ONLY: dict[str, Any] = {"levels": ("char",), "near": False}


def stretches(findings: tuple[Finding, ...], *rules: str) -> list[tuple[int, int, int]]:
    return [(f.start, f.end, f.period) for f in findings if f.rule in rules]


def only(findings: tuple[Finding, ...]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


# ---- against the twin ----


def texts(seed: int) -> Iterator[str]:
    """Noise with powers of units in it; letters of one to four bytes, cases, digits, white space, lone surrogates."""
    rng = random.Random(seed)
    for _ in range(25):
        letters = rng.choice(
            ["ab", "ab \n", "aB1 ", "aéx", "éè \U0001f600\U0001f601", "\ud800\ud801a", "019 a", "ÀàЖж0٣ \u2003"]
        )
        parts = []
        for _ in range(rng.randrange(1, 5)):
            unit = "".join(rng.choices(letters, k=rng.choice((1, 2, 2, 3, 5, 8, 20, 40))))
            copies = rng.choice((1, 2.9, 3, 3.5, 5, 7, 19.9, 20, 20.5, 24))
            parts.append((unit * (int(copies) + 1))[: int(len(unit) * copies)])
            parts.append("".join(rng.choices(letters, k=rng.randrange(20))))
        yield "".join(parts)[:900]


def covered(stretch: tuple[int, ...], claimed: list[tuple[int, int, int]], size: int) -> bool:
    mask = np.zeros(size, np.bool_)
    for start, end, _ in claimed:
        mask[start:end] = True
    return 2 * int(mask[stretch[0] : stretch[1]].sum()) >= stretch[1] - stretch[0]


@pytest.mark.parametrize("seed", range(16))
def test_exact_loops_are_those_of_the_twin(seed: int) -> None:
    n_loops = 0
    for text in texts(seed):
        for copies, length, length_copies in ((20, 100, 3), (5, 30, 2), (4, 10, 6)):
            rules = {
                "copies": copies,
                "length": length,
                "length_copies": length_copies,
                "literal_copies": 7,
                **CHAR_ONLY,
            }
            expected = {
                loop
                for loop in twin.significant_loops(text, copies, length, length_copies)
                if twin.is_loop(text, loop, copies, length)
            }
            made = audit(text, **rules)
            found = stretches(made.findings, "LZR001", "LZR002")
            assert set(found) <= expected
            assert made.looping == bool(expected) == bool(found)
            assert all(covered(loop, found, len(text)) for loop in expected)
            assert made.literal == bool(twin.literal_loops(text, 7))
            n_loops += len(found)
    assert n_loops > 30


@pytest.mark.parametrize("seed", range(8))
def test_near_loops_are_those_of_the_twin(seed: int) -> None:
    n_loops = 0
    for text in texts(100 + seed):
        normalized, places = twin.normalized(text)
        expected = set()
        for loop in twin.significant_loops(normalized, 5, 30, 4):
            edges = [loop.start + i * loop.period for i in range(min(8, (loop.end - loop.start) // loop.period) + 1)]
            copies = [text[places[one] : places[other]] for one, other in pairwise(edges)]
            changing, many = twin.changing_numbers(copies), loop.end - loop.start >= 5 * loop.period
            letters = sum(map(len, twin.plain_words(copies[0])))
            small = any((c.isalpha() and not c.isupper()) or c >= "\U0001f000" for c in copies[0]) or not many
            if (
                small
                and letters >= (max(2, 12 * changing) if many else 20 * max(1, changing))
                and (len({c for c in normalized[loop.start : loop.start + loop.period] if c.isalpha()}) >= 2)
            ):
                start = places[loop.start]
                expected.add((start, places[loop.end], places[loop.start + loop.period] - start))
        made = audit(text, copies=5, length=30, near_copies=4, levels=())
        found = stretches(made.findings, "LZR004")
        assert set(found) <= expected
        assert made.looping == bool(expected)
        assert all(covered(loop, found, len(text)) for loop in expected)
        n_loops += len(found)
    assert n_loops > 3


def test_every_planted_loop_is_found() -> None:
    """Start within one unit, the very period, the very end or beyond it by less than a unit."""
    for i, sample in enumerate(planted(seed=1, n=400)):
        made = audit(sample.text)
        hits = [f for f in made.findings if f.rule in ("LZR001", "LZR002") and f.period == sample.period]
        assert any(
            sample.start - sample.period < f.start <= sample.start and sample.end <= f.end < sample.end + sample.period
            for f in hits
        ), (i, sample[1:], made.findings)


# ---- case by case ----


def test_a_tail_loop() -> None:
    text = "Once. " + SENTENCE * 5 + SENTENCE[:10] + " \n"
    made = audit(text)
    found = only(made.findings)
    assert (made.looping, made.literal) == (True, False)
    assert (found.rule, found.level, found.field) == ("LZR001", "char", "answer")
    assert (found.start, found.period, text[found.start : found.start + found.period]) == (4, len(SENTENCE), found.unit)
    assert found.end == 6 + 5 * len(SENTENCE) + 10
    assert (found.tail, found.share) == (True, 4 / len(text))
    assert found.copies == (found.end - 4) / len(SENTENCE)
    assert found.wasted_tokens == round((found.end - 4 - len(SENTENCE)) / 4)


def test_a_middle_loop() -> None:
    found = only(audit("Well: " + "ha, " * 30 + "and it goes on.").findings)
    assert (found.rule, found.tail, found.start, found.period, found.copies) == ("LZR002", False, 5, 4, 30.25)


def test_offsets_count_code_points() -> None:
    text = "\U0001f600 naïve: " + "né\U0001f600 " * 25
    found = only(audit(text).findings)
    assert (found.start, found.end, found.period, found.unit) == (8, len(text), 4, " né\U0001f600")


@pytest.mark.parametrize(("copies", "looping"), [(19, False), (20, True)])
def test_twenty_copies(copies: int, looping: bool) -> None:
    assert audit("xy" * copies).looping == looping
    assert audit("xy" * copies).literal == looping


@pytest.mark.parametrize(
    ("text", "looping"), [("abcdefghij" * 9, False), ("abcdefghij" * 10, True), (SENTENCE * 2, False)]
)
def test_a_hundred_characters_and_three_copies(text: str, looping: bool) -> None:
    assert audit(text).looping == looping


@pytest.mark.parametrize("text", ["-" * 99, " " * 99, "a" + " \n" * 49, "= " * 49, "no\n" + "\t" * 30])
def test_rulers_and_indentation_are_literal_loops_only(text: str) -> None:
    made = audit(text)
    assert (made.looping, made.literal) == (False, True)
    assert only(made.findings).rule == "LZR020"


@pytest.mark.parametrize(("letters", "looping"), [(15, False), (16, True)])
@pytest.mark.parametrize(
    ("level", "gaps"), [("word", (" ", "   ", "\t \t ", "\n  ", "\u3000\u3000", "      ")), ("line", None)]
)
def test_white_space_between_units_makes_no_loop_long(
    letters: int, looping: bool, level: Level, gaps: tuple[str, ...] | None
) -> None:
    """Three copies of two units of 15 or 16 letters, one character between two: 95 or 101 characters."""
    units = ["é" * (letters - 2) + "xy", "\U0001f600" * (letters - 3) + "abc"] * 3
    between = gaps or ("\n", "  \n  ", "\n" + " " * 40, " \n", "\n ", "")
    text = "".join(unit + gap for unit, gap in zip(units, between, strict=True))
    assert audit(text, levels=level, near=False).looping == looping


def test_one_literal_finding_a_field_the_longest() -> None:
    found = only(audit("a\n" + "-" * 30 + "\nb\n" + "=" * 90 + "\nc").findings)
    assert (found.rule, found.start, found.end, found.unit) == ("LZR020", 35, 125, "=")


def test_a_line_loop() -> None:
    rng = random.Random(1)
    text = "List:\n" + "".join(f"- apples and pears{' ' * rng.randrange(9)}\n" for _ in range(24))
    found = only(audit(text, levels="line").findings)
    assert (found.rule, found.level, found.start, found.copies) == ("LZR003", "line", 6, 24.0)
    assert (found.unit.rstrip(), found.period, found.tail) == ("- apples and pears", text.index("-", 7) - 6, True)


def test_a_word_loop() -> None:
    rng = random.Random(1)
    text = "So " + "".join(
        f"never{rng.choice((' ', '  ', chr(10)))}again{rng.choice(' ' + chr(10))}" for _ in range(24)
    )
    found = only(audit(text, near=False).findings)
    assert (found.rule, found.level, found.start, found.copies) == ("LZR005", "word", 3, 24.0)


def test_a_near_loop() -> None:
    steps = "".join(f"Step {i}: check the sum again. " for i in range(8, 30))
    found = only(audit("Now: " + steps).findings)
    assert (found.rule, found.level, found.tail) == ("LZR004", "char", True)
    assert found.start == 4
    assert found.unit == " Step 8: check the sum again."
    assert found.copies == pytest.approx(22, abs=0.1)
    assert not audit("Now: " + steps, near=False).looping


@pytest.mark.parametrize(
    "text", ["1.5, 2.75, 13.0, " * 2 + "9.25, 3.5, 4.0, 1.75, 2.0, 3.25, " * 4, "| 1 | 22 | 3 |\n" * 3]
)
def test_tables_of_numbers_are_no_near_loops(text: str) -> None:
    numbers = "".join(f"{i * 7919 % 1000 / 10}, " for i in range(60))
    assert not audit(numbers).looping
    assert not any(f.rule == "LZR004" for f in audit(text).findings)


def test_an_exact_loop_is_not_reported_again() -> None:
    made = audit("intro\n" + "the same line of text\n" * 30, tokenizer=by_character)
    assert only(made.findings).rule == "LZR001"
    # the near loop that goes on around it is more than twice as long
    around = "".join(f"Row {i} of the table. " for i in range(60)) + "Row 7 of the table. " * 6
    assert {f.rule for f in audit(around).findings} == {"LZR001", "LZR004"}
    both = audit(around).findings
    assert sum(f.wasted_tokens for f in both) <= len(around) / 4


def test_the_longest_loop_claims_those_inside_it() -> None:
    unit = "ab" * 25 + "c. "
    found = only(audit(unit * 4, **CHAR_ONLY).findings)
    assert found.period == len(unit)


def by_character(text: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A tokenizer: two characters a token."""
    ids = [ord(text[i]) << 8 ^ ord(text[min(i + 1, len(text) - 1)]) for i in range(0, len(text), 2)]
    return np.array(ids, np.int32), np.arange(0, len(text), 2)


def test_tokens_of_a_tokenizer() -> None:
    text = "ab" + "the same " * 40
    made = audit(text, tokenizer=by_character, levels="token", near=False)
    found = only(made.findings)
    assert (found.rule, found.level, found.start, found.end, found.period) == ("LZR006", "token", 2, len(text), 18)
    assert found.wasted_tokens == len(by_character(text[20:])[0])
    exact = only(audit(text, tokenizer=by_character).findings)
    assert (exact.rule, exact.wasted_tokens) == ("LZR001", (len(text) - 11) // 2)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_tokens_without_a_text(kind: Any) -> None:
    made = audit(kind([5, 6, 7] + [100, 101, 102] * 9))
    found = only(made.findings)
    assert (made.looping, made.literal) == (True, False)
    assert (found.rule, found.start, found.end, found.period, found.copies) == ("LZR006", 3, 30, 3, 9.0)
    assert (found.unit, found.wasted_tokens, found.tail) == ("100 101 102", 24, True)
    assert audit(kind([1, 2] * 20)).literal


def test_high_rep4_without_a_loop() -> None:
    phrases = ["the answer is not yet known", "we must check the sum again", "so let me think about it once more"]
    word = "0"
    for _ in range(6):  # a word of three letters without squares
        word = "".join({"0": "012", "1": "02", "2": "1"}[letter] for letter in word)
    text = " ".join(phrases[int(letter)] for letter in word)
    made = audit(text, near=False, ignore="LZR011")
    found = only(made.findings)
    assert (made.looping, found.rule, found.start, found.end) == (False, "LZR010", 0, len(text))
    assert found.copies == pytest.approx(1 / (1 - made.metrics["rep4"]))
    assert audit(text, near=False, rep4=0.999, stuck_score=0).findings == ()


def test_select_and_ignore() -> None:
    text = "-" * 40 + "\n" + SENTENCE * 5
    assert {f.rule for f in audit(text).findings} == {"LZR001", "LZR020"}
    chosen = audit(text, select=["LZR020"])
    assert ([f.rule for f in chosen.findings], chosen.looping, chosen.literal) == (["LZR020"], False, True)
    ignored = audit(text, ignore="LZR020")
    assert ([f.rule for f in ignored.findings], ignored.looping, ignored.literal) == (["LZR001"], True, True)


def test_a_record_of_two_fields() -> None:
    fields = (Field("reasoning", "Hm. " + "Wait, " * 40), Field("answer", "Fine, thanks."))
    made = audit_record(Record("f.jsonl", 3, "x/2", fields, {"model": "m"}), Rules())
    assert (made.file, made.number, made.id, dict(made.groups)) == ("f.jsonl", 3, "x/2", {"model": "m"})
    assert (only(made.findings).field, made.looping, made.literal) == ("reasoning", True, True)
    assert made.characters == sum(len(field.text) for field in fields)
    assert dict(made.texts) == {field.name: field.text for field in fields}
    assert made.metrics == twin.metrics([field.text for field in fields])
    clean = audit_record(Record("f", 0, "0", fields[1:]), Rules())
    assert (clean.findings, clean.texts, clean.looping) == ((), (), False)


@pytest.mark.parametrize("text", ["", " ", "\x00", "a", "\ud800", "\n" * 5])
def test_hardly_any_text(text: str) -> None:
    made = audit(text)
    assert (made.looping, made.literal, made.findings) == (False, False, ())
    assert audit_record(Record("", 0, "", ()), Rules()).findings == ()


@given(st.text(max_size=300), st.integers(2, 4))
def test_findings_lie_in_their_text(text: str, copies: int) -> None:
    for f in audit(text * copies, copies=copies, literal_copies=copies, length=1, length_copies=2).findings:
        assert 0 <= f.start < f.end <= len(text) * copies
        assert 0 < f.period < f.end - f.start
        assert f.copies >= 2.0
        assert 0 <= f.share < 1
        assert f.wasted_tokens >= 0


def test_hostile_texts() -> None:
    assert audit("a" * 3_000_000).literal
    assert only(audit("ab" * 1_500_000).findings).end == 3_000_000
    assert only(audit("\U0001f600x" * 500_000).findings).end == 1_000_000
    many = "".join(f"{chr(0x4E00 + i % 9000)}x" * 20 + "-" for i in range(5000))
    assert len([f for f in audit(many, near=False).findings if f.rule == "LZR002"]) == MOST


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"copies": 1}, "copies must be from 2 to 2147483647, got 1"),
        ({"literal_copies": 2.5}, "literal_copies must be an integer, got 2.5"),
        ({"length": 0}, "length must be from 1 to 2147483647, got 0"),
        ({"length_copies": True}, "length_copies must be an integer, got True"),
        ({"levels": "page"}, "levels must be one or more of char, word, line, token; got 'page'"),
        ({"select": ["LZR999"]}, "select must be one or more of LZR001, LZR002, .*; got 'LZR999'"),
        ({"ignore": 5}, "ignore must be one or more of LZR001, LZR002, .*; got 5"),
        ({"near": 1}, "near must be True or False, got 1"),
        ({"rep4": 0}, "rep4 must be above 0 and at most 1, got 0"),
        ({"rep4": float("nan")}, "rep4 must be above 0 and at most 1, got nan"),
    ],
)
def test_rules_are_checked(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        audit("text", **rules)


def test_other_data_is_refused() -> None:
    with pytest.raises(ValueError, match="decode bytes first"):
        audit(b"text")
    with pytest.raises(ValueError, match=r"^tokens\[1\] = -1 is not a token"):
        audit([3, -1])
    file = ".*Path.*: audit_files reads files"
    for other, shown in ((5, "5"), (None, "None"), ({"a": 1}, r"\{'a': 1\}"), (Path("x"), file)):
        with pytest.raises(TypeError, match=f"^audit takes a text or tokens, got {shown}$"):
            audit(other)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no_such_rule"):
        audit("text", no_such_rule=1)  # type: ignore[call-arg]


def test_a_text_is_never_looked_for_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("{}")
    with monkeypatch.context() as patch:
        for name in ("stat", "open", "access"):
            patch.setattr(os, name, None)
        assert not audit(str(path)).looping


def test_the_package_exports_it() -> None:
    assert lzsampler.audit is audit
    assert isinstance(lzsampler.audit("text"), lzsampler.Report)
    with pytest.raises(AttributeError, match="no_such_name"):
        lzsampler.no_such_name  # noqa: B018


@pytest.mark.parametrize(("size", "reported"), [(124, False), (125, False), (126, False), (127, True), (128, True)])
def test_a_stretch_of_which_half_is_claimed_is_not_reported_again(size: int, reported: bool) -> None:
    """20 copies that are exact claim 63 characters; as words, whatever is between them, ``size`` characters repeat."""
    gaps = ["  ", "\n", " \n", "\t", "\n\n"] * 3 + ["   "] * 2
    text = "ab " * 20 + "".join("ab" + gap for gap in gaps)
    text += " " * (size - 2 - len(text)) + "ab\nend"
    made = audit(text, levels=["char", "word"], near=False)
    found = [(finding.rule, finding.start, finding.end) for finding in made.findings]
    assert found == [("LZR002", 0, 63)] + [("LZR005", 0, size)] * reported
