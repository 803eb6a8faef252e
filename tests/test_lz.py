"""The LZ penalty against the authors' outputs, the twin and the code it is derived from."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lzsampler
from lz_settings import default_rule
from lzsampler import Params, Sampler
from lzsampler.params import PRESETS, Formula
from reference_lz import code_length_costs, lz_bits, lz_costs, lz_prices
from samplers import after, mask_of

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


def paper(window: int, buffer: int, formula: Formula, **fields: Any) -> Params:
    """The paper's rule at strength 1."""
    return Params(lz_rule="paper", lz_penalty=1.0, lz_window=window, lz_buffer=buffer, lz_formula=formula, **fields)


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
    sampler = Sampler(case["n_vocab"], paper(case["window"], case["buffer"], formula))
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
    sampler = Sampler(n_vocab, paper(window, buffer, formula))
    checked = data.draw(st.sets(st.integers(1, max(1, len(history))), max_size=5)) | {len(history)}
    for n, token in enumerate(history, 1):
        sampler.accept(token)
        if n in checked:
            assert sampler_bits(sampler) == core_bits(history[:n], n_vocab, window, buffer, formula)


# ---- the default rule ----


@settings(derandomize=True, max_examples=300, deadline=None)
@given(cases(), st.data())
def test_the_default_rule_equals_the_twin(case: tuple[list[int], int, int, int], data: st.DataObject) -> None:
    history, n_vocab, *_ = case
    params = Params(**data.draw(default_rule(n_vocab)))
    sampler = Sampler(n_vocab, params)
    checked = {len(history)} | data.draw(st.sets(st.integers(1, max(1, len(history))), max_size=5))
    for n, token in enumerate(history, 1):
        sampler.accept(token)
        if n in checked:
            expected = lz_prices(history[:n], n_vocab, params)
            assert_bits(sampler_bits(sampler), expected)
            told_of = sampler.explain(np.zeros(n_vocab, np.float32), 0)
            for told in (told_of.token, *told_of.others):
                assert told.lz_change == pytest.approx(-expected.get(told.token, 0.0), abs=TOLERANCE)
    back = data.draw(st.integers(0, len(history)))
    sampler.rewind(back)
    assert_bits(sampler_bits(sampler), lz_prices(history[: len(history) - back], n_vocab, params))


def bits(tokens: Iterable[int]) -> bytes:
    return mask_of(4096, list(tokens)).tobytes()


def prices(text: list[int], **fields: Any) -> dict[int, float]:
    return sampler_bits(after(4096, Params(**fields), text))


def test_a_repetition_costs_from_its_shortest_length_on() -> None:
    said = [*range(10, 20), 99, *range(10, 14)]  # 14 would be the fifth token that is said again, from 11 back
    expected = math.log2(4096) - (math.log2(11 + 1) + math.log2(5)) / 5
    assert prices(said, lz_penalty=0.3) == {14: pytest.approx(0.3 * expected, rel=1e-6)}
    assert prices(said, lz_penalty=0.3, lz_min_match=6) == {}
    assert prices(said[:-1], lz_penalty=0.3) == {}
    assert prices(said, lz_penalty=0.3, lz_window=10) == {}  # it is further back
    assert prices(said, lz_penalty=0.3, lz_separators=bits([12])) == {}
    assert prices(said, lz_penalty=0.3, lz_separators=bits([99])).keys() == {14}
    assert prices(said, lz_penalty=0.3, lz_separators=bits([99]), lz_commas=bits([11])) == {}
    assert prices([*said, 14, 15], lz_penalty=0.3, lz_commas=bits([15])).keys() == {16}  # 15 is the sixth


def test_a_run_costs_beyond_its_allowance_and_separators_do_not_end_it() -> None:
    unit = list(range(10, 20))
    for n, price in ((41, 0.0), (42, 0.5), (44, 1.5), (1000, 479.5)):  # tokens after the first ten
        text = (unit * 200)[: 10 + n]
        every = bits(range(4096))
        expected = {text[-10]: pytest.approx(price)} if price else {}
        assert prices(text, lz_penalty=0.3, lz_run_penalty=0.5, lz_separators=every) == expected
        assert prices(text, lz_run_penalty=0.5) == expected
    assert prices([*unit * 20, 99], lz_run_penalty=0.5) == {}  # whatever ends the copy ends its price


@pytest.mark.parametrize("preset", ["default", "guard"])
@pytest.mark.parametrize("period", [1, 2, 7, 100, 1000, 1919])
def test_a_loop_costs_more_with_each_token(preset: str, period: int) -> None:
    """Whatever its tokens are (here all are separators), as far as the window reaches: two copies cost nothing."""
    loop = np.random.default_rng(period).permutation(4096)[:period].tolist()
    params = Params(**PRESETS[preset], lz_separators=bits(range(4096)))
    free = 2 * period + params.lz_run_allowance
    highest = 2048 + 1 - period - params.lz_run_allowance
    for n, beyond in ((free - 1, 0), (free, 1), (free + 1, 2), (free + 40, 41), (3 * 2048, highest)):
        found = sampler_bits(after(4096, params, (loop * n)[:n]))
        assert found == ({loop[n % period]: 0.5 * min(beyond, highest)} if beyond else {})


def test_guard_leaves_a_text_alone_that_does_not_copy_itself() -> None:
    """Sentences come again, and what is between them is new: not one logit changes."""
    rng = np.random.default_rng(4)
    sentence = rng.integers(0, 4096, 60).tolist()
    sampler = Sampler(4096, Params(**PRESETS["guard"]))
    default = Sampler(4096, Params(**PRESETS["default"]))
    priced = 0
    for _ in range(20):
        for token in [*sentence, *rng.integers(0, 4096, 20).tolist()]:
            sampler.accept(token)
            default.accept(token)
            assert sampler_bits(sampler) == {}
            priced += bool(sampler_bits(default))
    assert priced > 1000


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
    sampler = Sampler(4096, paper(131072, 4096, formula, history="all"))
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
