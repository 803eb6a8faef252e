"""All runs of a text: the C scanner against the twin, on texts made to mislead it, and from Python."""

import random
import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from lzsampler.auditing.scan import Runs, Text, runs
from words import fibonacci, thue_morse

RULES = ((2, 0), (2, 12), (3, 0), (3, 25), (4, 64), (8, 0), (20, 0), (20, 40))
TOKEN_IDS = np.array([0, -1, 2**31 - 1, -(2**31)], np.int32)


def found(data: Text, min_copies: int, min_length: int, max_period: int = 0) -> list[reference.Repetition]:
    made = runs(data, min_copies=min_copies, min_length=min_length, max_period=max_period)
    return [
        reference.Repetition(*row)
        for row in zip(made.period.tolist(), made.start.tolist(), made.length.tolist(), strict=True)
    ]


def de_bruijn(order: int) -> bytes:
    """Every word of this length of two letters once."""
    word, seen = [0] * order, {(0,) * order}
    while True:
        for bit in (1, 0):
            last = (*word[len(word) - order + 1 :], bit)
            if last not in seen:
                seen.add(last)
                word.append(bit)
                break
        else:
            return bytes(word)


def texts(rng: random.Random, n: int) -> Iterator[bytes]:
    """Random texts of 0..3 as bytes: noise, words of theory, and powers of units planted in them."""
    for _ in range(n):
        size = rng.choice((rng.randrange(12), rng.randrange(60), rng.randrange(301)))
        letters = rng.randrange(1, 5)
        kind = rng.randrange(10)
        if kind == 0:
            yield bytes(fibonacci(size))
        elif kind == 1:
            yield bytes(thue_morse(size))
        elif kind == 2:
            yield bytes([0]) * (size // 2) + bytes([1]) + bytes([0]) * rng.randrange(size // 2 + 1)
        elif kind < 6:
            yield bytes(rng.randrange(letters) for _ in range(size))
        else:
            text = b""
            while len(text) < size:
                unit = bytes(rng.randrange(letters) for _ in range(rng.choice((1, 2, 3, 7, 8, 9, 30, 70))))
                copies = rng.choice((2, 2.5, 3, 7.9, 8, 20))
                text += bytes(rng.randrange(letters) for _ in range(rng.randrange(20)))
                text += (unit * int(copies + 1))[: int(len(unit) * copies)]
            yield text[:300]


def test_20000_random_texts() -> None:
    rng = random.Random(5)
    n_texts = n_runs = 0
    for text in texts(rng, 20_000):
        everything = reference.runs(text, 2, 0)
        tokens = TOKEN_IDS[np.frombuffer(text, np.uint8)]
        for min_copies, min_length in RULES:
            expected = [run for run in everything if run.length >= max(min_copies * run.period, min_length)]
            assert found(text, min_copies, min_length) == expected
            assert found(tokens, min_copies, min_length) == expected
            n_runs += len(expected)
        max_period = rng.randrange(1, 20)
        assert found(text, 2, 0, max_period) == [run for run in everything if run.period <= max_period]
        n_texts += 1
    assert n_texts == 20_000
    assert n_runs > 300_000


@given(st.text("ab", max_size=200), st.integers(2, 5), st.integers(0, 40), st.integers(0, 30))
def test_short_texts(text: str, min_copies: int, min_length: int, max_period: int) -> None:
    expected = reference.runs(text.encode(), min_copies, min_length, max_period)
    assert found(text.encode(), min_copies, min_length, max_period) == expected


def slow_runs(text: npt.NDArray[np.uint8], min_copies: int, min_length: int) -> list[reference.Repetition]:
    """The twin for texts of 20,000 letters: the same by numpy."""
    extents: dict[tuple[int, int], int] = {}
    for period in range(1, text.size // min_copies + 1):
        differs = np.flatnonzero(text[period:] != text[:-period])
        edges = np.concatenate(([-1], differs, [text.size - period]))
        lengths = np.diff(edges) - 1 + period
        for i in np.flatnonzero(lengths >= max(min_copies * period, min_length)):
            extents.setdefault((int(edges[i]) + 1, int(lengths[i])), period)
    return sorted(reference.Repetition(period, *extent) for extent, period in extents.items())


def sparse(n: int, gap: int, unit: int = 1) -> bytes:
    """A loop of ``unit`` letters of which one is odd, with letters that break it at random places."""
    rng = np.random.default_rng(gap)
    text = np.zeros(n, np.uint8)
    text[::unit] = 1
    text[rng.random(n) < 1 / gap] = 2
    return text.tobytes()


HOSTILE = {
    "all equal": b"a" * 20_000,
    "a^n b a^n": b"a" * 10_000 + b"b" + b"a" * 10_000,
    "a^n b a^n c a^n": b"a" * 7_000 + b"b" + b"a" * 7_000 + b"c" + b"a" * 7_000,
    "w^n x w^n": (b"a" * 199 + b"b") * 50 + b"c" + (b"a" * 199 + b"b") * 50,
    "Fibonacci": bytes(fibonacci(20_000)),
    "Thue-Morse": bytes(thue_morse(20_000)),
    "de Bruijn": de_bruijn(14),
    "random bits": np.random.default_rng(0).integers(0, 2, 20_000).astype(np.uint8).tobytes(),
    "mostly one letter": sparse(20_000, 700),
    "a broken loop": sparse(20_000, 3000, 40),
    "a broken long loop": sparse(20_000, 3000, 300),
    "nested loops": ((b"ab" * 100 + b"c") * 10 + b"d") * 9,
    "one letter and its lengths": b"".join(b"a" * i + b"b" for i in range(200)),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(("min_copies", "min_length"), [(2, 64), (3, 0), (20, 0)])
def test_hostile_texts(name: str, min_copies: int, min_length: int) -> None:
    text = np.frombuffer(HOSTILE[name], np.uint8)
    expected = slow_runs(text, min_copies, min_length)
    assert found(text, min_copies, min_length) == expected
    assert found(text.astype(np.int32) - 100, min_copies, min_length) == expected


@pytest.mark.parametrize("period", [1, 2, 31, 100, 1000, 33_333, 250_000])
@pytest.mark.parametrize("tokens", [False, True])
def test_a_planted_loop_is_found_where_it_is(period: int, tokens: bool) -> None:
    rng = np.random.default_rng(period)
    text = rng.integers(-(2**31), 2**31, 1_000_000, np.int32) if tokens else rng.integers(32, 127, 1_000_000, np.uint8)
    length = max(3 * period + period // 2, 70)
    text[12_345 : 12_345 + length] = np.resize(text[12_345 : 12_345 + period], length)
    text[12_344] = text[12_344 + period] ^ 1
    text[12_345 + length] = text[12_345 + length - period] ^ 1
    assert found(text.astype(np.int32) if tokens else text.astype(np.uint8), 3, 64) == [(period, 12_345, length)]


def test_more_runs_than_there_was_room_for() -> None:
    words = [bytes([97 + i % 7]) * 40 + bytes([i % 256, i // 256 % 256]) for i in range(5000)]
    text = b"".join(words)
    made = runs(text, min_copies=20, min_length=40)
    assert len(made.start) >= 5000
    assert np.all(made.length >= np.maximum(40, 20 * made.period))
    assert np.all(np.diff(made.start) > 0)
    assert np.all(made.period == 1)


def test_result() -> None:
    made = runs(b"-no no no no!", min_copies=2, min_length=4)
    assert isinstance(made, Runs)
    assert (made.start.tolist(), made.length.tolist(), made.period.tolist()) == ([1], [11], [3])
    assert {array.dtype for array in made} == {np.dtype(np.int64)}
    assert (made.length / made.period).tolist() == [11 / 3]


@pytest.mark.parametrize(
    "data",
    [
        b"xabababab",
        bytearray(b"xabababab"),
        memoryview(b"xabababab"),
        memoryview(b"x-a-b-a-b-a-b-a-b")[::2],
        np.frombuffer(b"xabababab", np.uint8),
        np.frombuffer(b"xabababab", np.uint8).astype(np.int32),
        np.frombuffer(b"babababax", np.uint8)[::-1],
    ],
)
def test_what_a_text_may_be(data: Text) -> None:
    assert found(data, 4, 0) == [(2, 1, 8)]


@pytest.mark.parametrize("data", [b"", np.empty(0, np.uint8), np.empty(0, np.int32), b"a", np.ones(1, np.int32)])
def test_nothing_to_find(data: Text) -> None:
    assert found(data, 2, 0) == []


@pytest.mark.parametrize(
    ("data", "rules", "message"),
    [
        ("abab", {}, "bytes or an array of uint8 or int32, got str"),
        ([1, 2], {}, "bytes or an array of uint8 or int32, got list"),
        (np.arange(4.0), {}, "bytes or an array of uint8 or int32, got float64"),
        (np.arange(4), {}, "got int64"),
        (np.zeros((2, 2), np.uint8), {}, r"one dimension, got shape \(2, 2\)"),
        (b"abab", {"min_copies": 1}, "min_copies must be from 2 to"),
        (b"abab", {"min_copies": 2.5}, "min_copies must be an integer, got 2.5"),
        (b"abab", {"min_length": -1}, "min_length must be from 0 to"),
        (b"abab", {"max_period": -1}, "max_period must be from 0 to"),
    ],
)
def test_what_is_refused(data: Text, rules: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        runs(data, **{"min_copies": 2, "min_length": 0, **rules})


def test_huge_rules_find_nothing() -> None:
    assert found(b"ab" * 100, 2**64 - 1, 0) == []
    assert found(b"ab" * 100, 2, 2**64 - 1) == []
    assert found(b"ab" * 100, 2, 0, 2**64 - 1) == [(2, 0, 200)]


def test_two_threads_at_once() -> None:
    text = np.random.default_rng(1).integers(0, 256, 3_000_000, np.uint8)
    text[1000:2000] = 7
    results: list[list[reference.Repetition]] = []
    threads = [threading.Thread(target=lambda: results.append(found(text, 2, 64))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    assert results[0] == results[1] != []
