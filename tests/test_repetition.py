"""The largest run of a text and its line of figures; the rest is in test_findings and test_metrics."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lzsampler.auditing.repetition import Run, largest_run, repetition


def slow_largest_run(text: str, min_count: int) -> Run | None:
    """The definition, read aloud."""
    best: Run | None = None
    for period in range(1, len(text) // min_count + 1):
        start = 0
        while start + period < len(text):
            end = start
            while end + period < len(text) and text[end] == text[end + period]:
                end += 1
            length, unit = end + period - start, text[start : start + period]
            counts = len({c for c in unit if not c.isspace()}) >= 2 or length >= 100
            repeats = length >= min_count * period and counts
            if repeats and (best is None or length > best.length):
                best = Run(start, period, length // period, length, unit)
            start = end + 1
    return best


def composed(rng: random.Random) -> str:
    """Noise with repeated stretches in it, shorter and longer than the runs that are looked for first."""
    alphabet = rng.choice(["ab", "ab c", "abcdefgh \n", "aé\U0001f600 "])
    parts = ["".join(rng.choice(alphabet) for _ in range(rng.randrange(100)))]
    for _ in range(rng.randrange(4)):
        unit = "".join(rng.choice(alphabet) for _ in range(rng.choice([1, 2, 5, 20, 63, 64, 65, 66, 95, 130])))
        copies = rng.choice([2, 2, 2.5, 3, 7, 19.9, 20, 21.3])
        parts.append((unit * (int(copies) + 1))[: int(len(unit) * copies)])
        parts.append("".join(rng.choice(alphabet) for _ in range(rng.randrange(30))))
    return "".join(parts)[:1200]


@pytest.mark.parametrize("seed", range(25))
def test_largest_run_is_that_of_the_definition(seed: int) -> None:
    text = composed(random.Random(seed))
    for min_count in (2, 3, 20):
        assert largest_run(text, min_count) == slow_largest_run(text, min_count)


@given(st.text("ab ", max_size=60), st.integers(2, 5))
def test_largest_run_of_short_texts(text: str, min_count: int) -> None:
    assert largest_run(text, min_count) == slow_largest_run(text, min_count)


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("", None),
        ("a", None),
        ("abcdef", None),
        ("abab", Run(0, 2, 2, 4, "ab")),
        ("xababay", Run(1, 2, 2, 5, "ab")),
        ("no no no!", Run(0, 3, 2, 8, "no ")),
        ("aaaaaaaa", None),  # a unit with one character
        ("-" * 99, None),
        ("so " + "!" * 100, Run(3, 1, 100, 100, "!")),
        ("- - - - - - ", None),
        (" \n \n \n", None),  # white space only
        ("äöäöäö", Run(0, 2, 3, 6, "äö")),  # characters, not bytes
    ],
)
def test_examples(text: str, run: Run | None) -> None:
    assert largest_run(text) == run


def test_the_run_that_covers_most_wins() -> None:
    sentence = "The penalty takes that information out of the distribution, every time. "
    text = "ha " * 10 + "and " + sentence * 2
    run = largest_run(text)
    assert run is not None
    assert (run.period, run.count, run.length) == (
        len(sentence),
        2,
        2 * len(sentence) + 1,
    )  # the space before it is a match
    assert text[run.start : run.start + run.period] == run.unit


def test_min_count_below_two_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2, got 1"):
        largest_run("abc", 1)


def test_repetition_puts_them_together() -> None:
    looped = repetition("Well, " + "that is that. " * 30)
    assert looped.run is not None
    assert (looped.run.period, looped.run.count, looped.loops) == (14, 30, True)
    assert looped.rep4 == pytest.approx(1 - 4 / 88)  # of 91 words
    assert looped.zlib_ratio is not None
    assert looped.zlib_ratio > 8
    plain = repetition("One two three.")
    assert (plain.run, plain.loops, plain.rep4) == (None, False, 0.0)


def test_100_kilobytes_take_seconds_at_most() -> None:
    """Measured: 15 to 80 ms here. A backtracking regular expression takes 100 s for the same."""
    rng = random.Random(0)
    words = ["".join(rng.choice("etaoinshrdlu") for _ in range(rng.randrange(2, 9))) for _ in range(2000)]
    clean = " ".join(rng.choice(words) for _ in range(20_000))[:100_000]
    for text in (
        clean,
        clean[:50_000] + "I am a man, and " * 3125,
        "".join(f"Item {i}: the same\n" for i in range(5000)),
    ):
        start = time.process_time()
        repetition(text)
        assert time.process_time() - start < 15
