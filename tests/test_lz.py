"""The LZ penalty against the authors' outputs, the twin and the code it is derived from."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lzsampler
from lzsampler import Params, Sampler
from lzsampler.params import Formula
from reference_lz import code_length_costs, lz_bits, lz_costs, lz_prices

VECTORS = Path(__file__).parent / "vectors"
GOLDEN: list[dict[str, Any]] = [
    json.loads(line) for line in (VECTORS / "lz_reference_shared.jsonl").read_text().splitlines()
]
FORMULAS: tuple[Formula, ...] = ("rate", "distance", "codelength")
PUBLISHED: tuple[Formula, ...] = ("rate", "distance")
TOLERANCE = 1e-4


def assert_bits(ours: dict[int, float], expected: dict[int, float]) -> None:
    """Zeros may be left out, by either side."""
    for token in ours.keys() | expected.keys():
        assert ours.get(token, 0.0) == pytest.approx(expected.get(token, 0.0), abs=TOLERANCE), f"token {token}"


def core_bits(history: Any, n_vocab: int, window: int, buffer: int, formula: Formula) -> dict[int, float]:
    tokens, bits = lzsampler.lz_bits(history, n_vocab, window=window, buffer=buffer, formula=formula)
    assert tokens.dtype == np.int32
    assert bits.dtype == np.float32
    assert (np.diff(tokens) > 0).all()
    assert (bits != 0).all()
    return dict(zip(tokens.tolist(), bits.tolist(), strict=True))


def sampler_bits(sampler: Sampler) -> dict[int, float]:
    """Bits of a sampler at strength 1 and no other penalty."""
    tokens, repeat, bias = sampler.edits()
    assert (repeat == 1).all()
    return dict(zip(tokens.tolist(), (-bias).tolist(), strict=True))


# ---- the authors' released versions ----


def test_golden_is_what_the_tests_expect() -> None:
    assert len(GOLDEN) == 120
    assert sum(len(case["rate_bits"]) > 0 for case in GOLDEN) > 60
    assert max(len(case["history"]) for case in GOLDEN) > max(case["window"] for case in GOLDEN)


@pytest.mark.parametrize("formula", PUBLISHED)
@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_golden_by_lz_bits(number: int, formula: Formula) -> None:
    case = GOLDEN[number]
    expected = {int(t): bits for t, bits in case[f"{formula}_bits"].items()}
    arguments = (case["history"], case["n_vocab"], case["window"], case["buffer"], formula)
    assert_bits(core_bits(*arguments), expected)
    assert_bits(lz_bits(*arguments), expected)


@pytest.mark.parametrize("formula", PUBLISHED)
@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_golden_by_a_sampler_with_rewinds(number: int, formula: Formula) -> None:
    case = GOLDEN[number]
    params = Params(lz_penalty=1.0, lz_window=case["window"], lz_buffer=case["buffer"], lz_formula=formula)
    sampler = Sampler(case["n_vocab"], params)
    rng = np.random.default_rng(number)
    history: list[int] = case["history"]
    at = 0
    while at < len(history):
        if rng.random() < 0.1:  # a wrong turn, taken back
            wrong = rng.integers(case["n_vocab"], size=rng.integers(1, 2 * case["buffer"] + 2)).tolist()
            for token in wrong:
                sampler.accept(token)
            sampler.rewind(len(wrong))
        if rng.random() < 0.1:  # back into the text itself
            back = int(rng.integers(0, at + 1)) if rng.random() < 0.03 else min(at, int(rng.integers(0, 4)))
            sampler.rewind(back)
            at -= back
        sampler.accept(history[at])
        at += 1
    assert_bits(sampler_bits(sampler), {int(t): bits for t, bits in case[f"{formula}_bits"].items()})


@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_code_length_on_the_golden_histories(number: int) -> None:
    case = GOLDEN[number]
    arguments = (case["history"], case["n_vocab"], case["window"], case["buffer"])
    ours = core_bits(*arguments, "codelength")
    assert_bits(ours, lz_bits(*arguments, "codelength"))
    log_vocab = math.log2(case["n_vocab"])
    assert_bits(ours, {t: log_vocab - cost for t, cost in code_length_costs(*arguments).items()})


# ---- any history ----


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], int, int, int]:
    """(history, n_vocab, window, buffer), with windows and lengths at the edges and texts that repeat."""
    n_vocab = draw(st.sampled_from([1, 2, 3, 5, 33, 4096]))
    buffer = draw(st.sampled_from([1, 2, 3, 4, 8, 32]))
    window = draw(st.sampled_from([buffer + 1, buffer + 2, 2 * buffer + 1, 64, 512]).filter(lambda w: w > buffer))
    token = st.integers(0, min(n_vocab, 4) - 1) | st.just(n_vocab - 1)
    unit = draw(st.lists(token, min_size=1, max_size=12))
    text = draw(st.lists(token, max_size=20)) + unit * draw(st.integers(0, 12)) + draw(st.lists(token, max_size=6))
    edge = draw(st.sampled_from([0, buffer, buffer + 1, window - 1, window, window + 1, len(text)]))
    return (text * (edge // len(text) + 1))[:edge] if text else [], n_vocab, window, buffer


@settings(derandomize=True, max_examples=400, deadline=None)
@given(cases(), st.sampled_from(FORMULAS))
@example(([0, 1, 0, 1, 0, 1], 2, 3, 2), "rate")
@example(([0] * 600, 1, 512, 32), "codelength")
def test_lz_bits_equal_the_twin(case: tuple[list[int], int, int, int], formula: Formula) -> None:
    history, n_vocab, window, buffer = case
    assert_bits(core_bits(history, n_vocab, window, buffer, formula), lz_bits(*case, formula))


@settings(derandomize=True, max_examples=300, deadline=None)
@given(cases())
@example(([0, 1, 2, 0, 1, 0, 1], 64, 512, 2))
def test_code_length_equals_the_code(case: tuple[list[int], int, int, int]) -> None:
    log_vocab = math.log2(case[1])
    direct = code_length_costs(*case)
    assert_bits(core_bits(*case, "codelength"), {t: log_vocab - cost for t, cost in direct.items()})
    assert {t: min(cost, log_vocab) for t, cost in lz_costs(case[0], *case[2:], "codelength").items()} == pytest.approx(
        direct, abs=1e-9
    )


@settings(derandomize=True, max_examples=100, deadline=None)
@given(cases(), st.sampled_from(FORMULAS), st.data())
def test_a_sampler_equals_lz_bits_at_every_token(
    case: tuple[list[int], int, int, int], formula: Formula, data: st.DataObject
) -> None:
    history, n_vocab, window, buffer = case
    sampler = Sampler(n_vocab, Params(lz_penalty=1.0, lz_window=window, lz_buffer=buffer, lz_formula=formula))
    checked = data.draw(st.sets(st.integers(1, max(1, len(history))), max_size=5)) | {len(history)}
    for n, token in enumerate(history, 1):
        sampler.accept(token)
        if n in checked:
            assert sampler_bits(sampler) == core_bits(history[:n], n_vocab, window, buffer, formula)


# ---- matches that must have a length ----


@settings(derandomize=True, max_examples=400, deadline=None)
@given(
    cases(),
    st.sampled_from(FORMULAS),
    st.integers(2, 9),
    st.sets(st.integers(0, 3), max_size=2),
    st.sets(st.integers(0, 5), max_size=4),
    st.sets(st.integers(0, 5), max_size=2),
    st.data(),
)
@example(([0, 1, 2, 0, 1, 2, 0, 1], 64, 512, 8), "rate", 3, {1}, {0}, {5}, None)
@example(([0, 1, 2, 1, 0, 1, 2, 2, 1, 0, 1] * 9, 64, 512, 8), "rate", 3, {1}, {0}, {5}, None)
@example(([0, 1, 2, 1, 0, 3, 2, 2, 1, 0, 1] * 30, 64, 512, 8), "codelength", 4, {1}, {0}, {5}, None)
def test_long_matches_equal_the_twin(
    case: tuple[list[int], int, int, int],
    formula: Formula,
    min_match: int,
    breakers: set[int],
    numbers: set[int],
    marks: set[int],
    data: Any,
) -> None:
    history, n_vocab, window, buffer = case
    min_match = min(min_match, buffer + 1)
    lists = [{token for token in tokens if token < n_vocab} for tokens in (breakers, numbers, marks)]
    params = Params(
        lz_penalty=1.0,
        lz_window=window,
        lz_buffer=buffer,
        lz_formula=formula,
        lz_min_match=min_match,
        lz_breakers=tuple(lists[0]),
        lz_numbers=tuple(lists[1]),
        lz_marks=tuple(lists[2]),
    )
    sampler = Sampler(n_vocab, params)
    checked = {len(history)} | (data.draw(st.sets(st.integers(1, max(1, len(history))), max_size=5)) if data else set())
    for n, token in enumerate(history, 1):
        sampler.accept(token)
        if n in checked:
            expected = lz_prices(history[:n], n_vocab, window, buffer, formula, min_match, *lists)
            assert_bits(sampler_bits(sampler), expected)
    back = data.draw(st.integers(0, len(history))) if data else len(history) // 2
    sampler.rewind(back)
    left = history[: len(history) - back]
    assert_bits(sampler_bits(sampler), lz_prices(left, n_vocab, window, buffer, formula, min_match, *lists))


def test_a_frame_that_came_often_is_dearer() -> None:
    """Twelve matches cost what one does, 34 nearly three times as much, and 57 or more, were they near, eight times."""
    one = math.log2(4096) - (math.log2(4 + 1) + math.log2(3)) / 3
    for copies, times in ((2, 1.0), (12, 1.0), (13, 13 / 12), (33, 2.75), (34, 2.89), (57, 8.0), (200, 8.0)):
        sampler = Sampler(4096, Params(lz_penalty=1.0, lz_min_match=3, lz_buffer=8))
        for token in [*(token for n in range(copies) for token in (1, 2, 3, 100 + n)), 1, 2]:
            sampler.accept(token)
        for _ in range(2):
            assert sampler_bits(sampler)[3] == pytest.approx(one * times, rel=1e-5)
            sampler.accept(3)
            sampler.rewind(1)
    far = Sampler(4096, Params(lz_penalty=1.0, lz_min_match=3, lz_buffer=8))  # all but the last 10 are too far away
    text = [*(token for n in range(40) for token in (1, 2, 3, 100 + n)), *range(1000, 1475)]
    for token in [*text, *(token for n in range(10) for token in (1, 2, 3, 200 + n)), 1, 2]:
        far.accept(token)
    assert sampler_bits(far)[3] == pytest.approx(one, rel=1e-5)


def test_a_loop_is_the_dearer_the_longer_it_is() -> None:
    for copies in (1, 2, 4, 10, 16, 40):
        sampler = Sampler(4096, Params(lz_penalty=1.0, lz_min_match=3))
        for token in [*range(10, 60), *list(range(60, 90)) * (copies + 1)]:
            sampler.accept(token)
        length = copies * 30 + 1
        bits = math.log2(4096) - (math.log2(30 + 1) + math.log2(length)) / length
        times = min(max(1.0, length / 30 / 2), 8.0)
        assert sampler_bits(sampler)[60] == pytest.approx(bits * times, rel=1e-5)


def test_a_number_is_free_until_its_second_match() -> None:
    """Wherever in the window the matches are; 3 is such a number and 4 is not."""
    params = Params(lz_penalty=1.0, lz_min_match=3, lz_window=2000, lz_numbers=(3,))
    for gap in (5, 600):  # within the distance up to which the price grows, and beyond
        sampler, priced = Sampler(4096, params), []
        for copy in range(4):
            for token in (1, 2, 3, 4):
                if token > 2:
                    priced.append(token in sampler_bits(sampler))
                sampler.accept(token)
            for token in range(gap):
                sampler.accept(10 + copy * gap + token)
        assert priced == [False, False, False, True, True, True, True, True]
        assert set(sampler_bits(sampler)) == set()
    out_of_sight = Sampler(4096, params)  # only one of two is left in the window
    for token in (1, 2, 3, *range(500, 700), 1, 2, 3, *range(1000, 2800), 1, 2):
        out_of_sight.accept(token)
    assert sampler_bits(out_of_sight) == {}
    out_of_sight.rewind(12)
    for token in (1, 2):
        out_of_sight.accept(token)
    assert set(sampler_bits(out_of_sight)) == {3}


def test_a_number_in_a_loop_is_priced_at_once() -> None:
    text = (3, 7, 8, 3, 7, 8)  # two copies without a gap: the match of 3 has 4 tokens and lies 3 back
    for numbers, copies in itertools.product(((), (3,)), (6, 5)):
        sampler = Sampler(64, Params(lz_penalty=1.0, lz_min_match=3, lz_buffer=8, lz_numbers=numbers))
        for token in text[6 - copies :]:
            sampler.accept(token)
        # without the first 3, the end (7, 8) has a match of 3 tokens, which does not cover the distance
        expected = {3} if copies == 6 or not numbers else set()
        assert set(sampler_bits(sampler)) == expected


def test_a_match_across_a_breaker_counts_where_it_covers_its_distance() -> None:
    params = Params(lz_penalty=1.0, lz_min_match=3, lz_breakers=(9,))
    sampler = Sampler(64, params)
    for token in (
        1,
        9,
        2,
        5,
        6,
        7,
        8,
        1,
        9,
        2,
    ):  # "1 9 2" stood before, then 5, but its end is not a copy of all between
        sampler.accept(token)
    assert sampler_bits(sampler) == {}
    sampler = Sampler(64, params)
    for token in (1, 9, 2, 1, 9, 2):  # now it is, so the next copy begins with 1
        sampler.accept(token)
    assert sampler_bits(sampler).keys() == {1}


# ---- the largest window and buffer ----


def loop_with_scratches() -> npt.NDArray[np.int64]:
    text = np.tile(np.arange(9), 140_000 // 9)
    text[::20_011] = 11
    return text


def noise() -> npt.NDArray[np.int64]:
    return np.random.default_rng(5).integers(3000, size=140_000)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("history", [loop_with_scratches(), noise()], ids=["loop", "noise"])
def test_the_largest_window_and_buffer(history: npt.NDArray[np.int64], formula: Formula) -> None:
    arguments = (4096, 131072, 4096, formula)
    whole = core_bits(history, *arguments)
    assert_bits(whole, lz_bits(history, *arguments))
    sampler = Sampler(4096, Params(lz_penalty=1.0, lz_window=131072, lz_buffer=4096, lz_formula=formula, history="all"))
    sampler.prime(history[:-20])
    for token in history[-20:].tolist():
        sampler.accept(token)
    sampler.accept(1)
    sampler.rewind(7)
    for token in history[-6:].tolist():
        sampler.accept(token)
    assert sampler_bits(sampler) == whole


# ---- arguments ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"history": [0, 1, 50]}, r"history\[2\] = 50 "),
        ({"history": [0, -1]}, r"history\[1\] = -1 "),
        ({"history": [0.5, 1.0]}, "history .* float64"),
        ({"history": [[1, 2], [3, 4]]}, r"history .*\(2, 2\)"),
        ({"history": [True, False]}, "history .* bool"),
        ({"history": ["a"]}, "history .* <U1"),
        ({"history": [2**40]}, r"history\[0\] = 1099511627776 "),
        ({"history": [2**70]}, "history .* object"),
        ({"n_vocab": 0}, "n_vocab .* 0"),
        ({"n_vocab": 2.0}, r"n_vocab .* 2\.0"),
        ({"n_vocab": 2**31}, "n_vocab .* 2147483648"),
        ({"window": 1}, "window .* 1$"),
        ({"window": 131073}, "window .* 131073"),
        ({"window": 64.0}, r"window .* 64\.0"),
        ({"buffer": 0}, "buffer .* 0$"),
        ({"buffer": 4097, "window": 9000}, "buffer .* 4097"),
        ({"buffer": 64, "window": 64}, r"^buffer must be below window \(64\), got 64$"),
        ({"buffer": True}, "buffer .* True"),
        ({"formula": "rates"}, "formula .* 'rates'"),
        ({"formula": 0}, "formula .* 0$"),
        ({"formula": None}, "formula .* None"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"history": [0, 1, 2], "n_vocab": 50}
    with pytest.raises(ValueError, match=message):
        lzsampler.lz_bits(**good | arguments)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
def test_any_integer_array_is_a_history(dtype: type[np.integer[Any]]) -> None:
    history = [1, 2, 3, 1, 2, 3, 1, 2]
    expected = core_bits(history, 9, 64, 2, "rate")
    array = np.array(history, dtype)
    assert core_bits(array, np.int64(9), np.int32(64), np.uint8(2), "rate") == expected  # type: ignore[arg-type]
    assert core_bits(np.repeat(array, 2)[::2], 9, 64, 2, "rate") == expected
    array.flags.writeable = False
    assert core_bits(array, 9, 64, 2, "rate") == expected


def test_a_small_window_has_a_small_buffer() -> None:
    history = [1, 2, 3] * 8
    for window in (2, 10, 32, 33, 34):
        expected = core_bits(history, 9, window, min(32, window - 1), "rate")
        tokens, bits = lzsampler.lz_bits(history, 9, window=window)
        assert dict(zip(tokens.tolist(), bits.tolist(), strict=True)) == expected


def test_no_bits_without_a_whole_buffer() -> None:
    for n in range(34):
        tokens, bits = lzsampler.lz_bits([7] * n, 50)
        assert len(tokens) == len(bits) == (n > 32)
