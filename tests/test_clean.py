"""Clean texts are not called loops, and loops are found: a sample of what bench/audit_rates.py measures whole."""

import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
sys.path.append(str(BENCH))

from audit_rates import MARKS, MARKUP, WRITING, is_found  # noqa: E402
from clean import packed, sample  # noqa: E402
from lzsampler import Report, audit  # noqa: E402
from lzsampler.auditing.units import changing_numbers, collapsed_length, is_prose, plain_letters  # noqa: E402
from negatives import Piece  # noqa: E402
from planted import Planted, planted_elsewhere, planted_in_the_middle  # noqa: E402

SENTENCE = "The keeper of the lighthouse lit the lamp. "


@pytest.fixture(scope="module")
def audited() -> list[tuple[Piece, Report]]:
    return [(piece, audit(piece.text)) for piece in sample()]


def loops(found: Report) -> bool:
    return found.looping


def is_stuck(found: Report) -> bool:
    return any(finding.rule == "LZR011" for finding in found.findings)


@pytest.mark.parametrize("alarm", [loops, is_stuck])
def test_how_often_clean_texts_loop_or_are_stuck(
    audited: list[tuple[Piece, Report]], alarm: Callable[[Report], bool]
) -> None:
    """At most 0.3 % of all, 0.5 % of markup and data, and none of sentences, in a fifth of the suite."""
    pieces = [piece for piece, _ in audited]
    alarms = [piece for piece, found in audited if alarm(found)]
    assert len(pieces) > 2000
    assert len(alarms) <= 0.003 * len(pieces), Counter(piece.kind for piece in alarms)

    def of(pieces: list[Piece], kinds: tuple[str, ...]) -> int:
        return sum(piece.kind in kinds for piece in pieces)

    assert of(alarms, MARKUP) <= 0.005 * of(pieces, MARKUP)
    assert of(alarms, WRITING) == 0


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    for piece in packed():
        made.setdefault(piece.kind, []).append(piece.text)
    return made


def missed(samples: Iterator[Planted]) -> list[str]:
    return [sample.text[sample.start :][: sample.period] for sample in samples if not is_found(sample)]


def test_few_copies_in_the_middle_of_books_are_found() -> None:
    assert missed(planted_in_the_middle(seed=21, n=60)) == []


@pytest.mark.parametrize("kind", ["Chinese", "Chinese verse", "Japanese", "Russian", "verse"])
def test_few_copies_of_sentences_are_found(kind: str, texts: dict[str, list[str]]) -> None:
    assert missed(planted_elsewhere(texts[kind], seed=22, n=40, few=(3, 12), without=MARKS)) == []


@pytest.mark.parametrize("kind", MARKUP)
def test_copies_of_data_are_found_at_the_end_and_when_they_are_many(kind: str, texts: dict[str, list[str]]) -> None:
    assert missed(planted_elsewhere(texts[kind], seed=23, n=40, few=(12, 20))) == []


def test_texts_of_a_model_that_loop_are_found() -> None:
    with gzip.open(BENCH / "data" / "loops.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [audit(json.loads(line)["text"]).looping for line in lines]
    assert (sum(found), len(found)) == (107, 108)  # in the other one, functions that are numbered call each other


# ---- rule by rule ----

ROW = '<span class="icon-bar"></span>\n'


@pytest.mark.parametrize(
    ("unit", "copies", "looping"),
    [
        (SENTENCE, 3, True),
        ("他走到窗前看着外面的雨，心里想着一个人远方的家乡和过去的那些日子了。", 3, True),
        ("Он подошёл к окну и долго смотрел на дождь. ", 3, True),
        (ROW, 12, False),  # 31 * 12 = 372 characters
        (ROW, 13, True),
        ("| ---: ", 15, False),
        ("I really think so. ", 6, True),
        ("I certainly agree. ", 7, False),  # three words
        ("I certainly agree. ", 8, True),
        ("std::swap(a); ", 19, False),
        ("std::swap(a); ", 20, True),
        ("NULL, ", 66, False),  # constants, 396 characters
        ("NULL, ", 68, True),
        ("0xff, ", 60, False),  # data with digits, 360 characters
        ("0xff, ", 70, True),
        ("0, 1, ", 200, False),  # no letters
        ("const unsigned char *,\n" + " " * 30, 6, False),  # white space counts as one character
    ],
)
def test_copies_in_the_middle_of_a_text(unit: str, copies: int, looping: bool) -> None:
    around = "A page of something else, which says what it has to say once and goes on. " + "".join(
        f"It has {name}s. " for name in ("cat", "dog", "door", "hill", "lake", "boat", "road", "lamp")
    )
    while len(around) < 2 * len(unit * copies):
        around += f"Then number {len(around)} of them went to see what {len(around) * 7919 % 1000} had done. "
    text = around + "\n" + unit * copies + "\n" + "And that is all there is."
    made = audit(text, near=False)
    assert made.looping == looping, made.findings


@pytest.mark.parametrize(("unit", "looping"), [(ROW, True), ("10, 20, 30, 40, ", True), ("| ---: ", False)])
def test_copies_that_end_a_text_or_make_up_half_of_it(unit: str, looping: bool) -> None:
    copies = -(-102 // len(unit))
    assert audit("A list of them:\n\n" * 3 + unit * copies).looping == looping
    half = "x" * 40 + unit * copies + "y" * 40
    assert audit(half).looping == looping


@pytest.mark.parametrize(
    ("line", "n", "looping"),
    [
        ("{0}. Gold is used in the towers of the city.\n", 9, True),
        ("{0}. Botswana (Botswana)\n", 26, True),  # the numbers of a list say nothing
        ("{0}. Botswana (Botswana)\n", 12, False),
        ("Botswana {0}\n", 26, False),  # a name with a number
        ("Row {0} of the table. ", 60, True),
        ("Row {0} of the table. ", 19, False),
        ("{0} + 7 = {1}, write {1}, carry 0. ", 30, False),
        ("windows-{0}, ", 60, False),
        ("(Reading database ... {0}%\r", 60, False),
    ],
)
def test_near_copies(line: str, n: int, looping: bool) -> None:
    text = "Here it begins.\n" + "".join(line.format(i, i + 7) for i in range(1, n + 1))
    made = audit(text)
    assert made.looping == looping, made.findings
    assert {finding.rule for finding in made.findings if finding.rule.startswith("LZR00")} <= {"LZR004"}


def test_what_units_are_made_of() -> None:
    assert is_prose("“I am not afraid,” he said--and went out.\n", 4)
    assert is_prose("大多数情况下,我们使用散列函数;这样很好。", 4)
    assert not is_prose("green, and green, and ", 3)
    assert is_prose("green, and green, and ", 2)
    assert not is_prose('<td class="no">&nbsp;</td> yes it is so', 1)
    assert plain_letters("The x_1 of os.path is (here) 12 \u0662 don't") == len("The") + len("of") + len("is") + len(
        "don't"
    )
    assert plain_letters("第1章 检查总和。") == 12
    assert [collapsed_length(unit) for unit in ("ab", "a \n b ", "  a ", " ")] == [2, 4, 2, 1]
    assert changing_numbers(["1. a 5\n", "2. a 5\n", "3. a 6\n"], [True, True, True]) == 0.5
    assert changing_numbers(["1. a 5 ", "2. a 5 ", "3. a 6 "], [True, False, False]) == 1.5


def test_a_hostile_text_of_near_copies_is_not_slow() -> None:
    """Each candidate is looked at in a bounded part, and their places are found together."""
    text = "".join(f"item {i % 10}, " * 9 + f"{chr(97 + i % 26) * (i % 31)}; " for i in range(3000))
    assert audit(text).metrics["rep4"] > 0
