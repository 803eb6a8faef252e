"""`Sampler.step` is `sample` and `accept`; `Sampler.explain` tells exactly what a step does."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lzsampler import LzsError, Params, Sampler, lz_bits
from lzsampler.explanation import Explanation, TokenExplanation

N = 40
EVERYTHING: dict[str, Any] = {
    "lz_penalty": 0.3,
    "lz_window": 64,
    "repetition_penalty": 1.2,
    "frequency_penalty": 0.1,
    "presence_penalty": 0.2,
    "dry_multiplier": 0.8,
    "dry_breakers": (7,),
    "exempt": (3,),
    "logit_bias": {2: 1.5, 9: -math.inf},
}
RULES: dict[str, dict[str, Any]] = {
    **{f: {"lz_rule": "paper", "lz_buffer": 6, "lz_formula": f} for f in ("rate", "distance", "codelength")},
    "default": {"lz_min_match": 2, "lz_run_penalty": 0.4, "lz_run_allowance": 1, "lz_separators": b"\x04" + bytes(7)},
}


def logits(rng: np.random.Generator) -> npt.NDArray[np.float32]:
    return rng.normal(0, 4, N).astype(np.float32)


@pytest.mark.parametrize(
    "params", [Params(temperature=0.7, seed=3, **EVERYTHING), Params(temperature=0.0, lz_penalty=0.2)]
)
def test_step_is_sample_and_accept(params: Params) -> None:
    rng, a, b = np.random.default_rng(1), Sampler(N, params), Sampler(N, params)
    for _ in range(200):
        row = logits(rng)
        token = b.sample(row)
        b.accept(token)
        assert a.step(row) == token
    assert a.position == b.position == 200
    for ours, theirs in zip(a.edits(), b.edits(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_step_that_fails_changes_nothing() -> None:
    sampler, row = Sampler(N, Params(lz_penalty=0.1)), np.zeros(N, np.float32)
    sampler.step(row)
    row[5] = np.nan
    with pytest.raises(ValueError, match=r"logits\[5\] is nan"):
        sampler.step(row)
    with pytest.raises(LzsError, match="no token is allowed"):
        sampler.step(np.full(N, -np.inf, np.float32))
    assert sampler.position == 1
    assert sampler.clone().step(np.zeros(N, np.float32)) == sampler.step(np.zeros(N, np.float32))


def test_step_at_tells_a_loop() -> None:
    from lzsampler._ffi import ffi

    found = {"max_pattern_size": 4, "min_pattern_size": 1, "min_count": 4}
    sampler, row = Sampler(N, Params(temperature=0.0, repetition_detection=found)), np.zeros(N, np.float32)
    pointer = ffi.from_buffer("float[]", row)
    assert [sampler.step_at(pointer) for _ in range(5)] == [(0, False)] * 3 + [(0, True)] * 2
    assert sampler.loop is not None


@pytest.mark.parametrize("temperature", [0.0, 0.6])
@pytest.mark.parametrize("rule", RULES)
def test_after_is_that_of_process(temperature: float, rule: str) -> None:
    rng = np.random.default_rng(2)
    params = Params(temperature=temperature, top_k=6, **RULES[rule], **EVERYTHING)
    sampler = Sampler(N, params)
    mask = np.full((N + 31) // 32, 0xFFFFFFFF, np.uint32)
    mask[0] ^= np.uint32(1 << 4)
    sampler.set_mask(mask)
    for i in range(120):
        row = logits(rng)
        before = row.copy()
        out = sampler.process(row, np.empty(N, np.float32))
        repeat, bias = np.ones(N), np.zeros(N)
        tokens, repeats, biases = sampler.edits()
        repeat[tokens], bias[tokens] = repeats, biases
        whole = sampler.explain(row, k=N)
        assert whole.position == sampler.position == i
        assert whole.token.token == sampler.sample(row)
        assert [one.logit for one in whole.others] == sorted((one.logit for one in whole.others), reverse=True)
        for one in (whole.token, *whole.others):
            assert (one.logit, one.after) == (row[one.token], out[one.token])
            assert one.allowed == (one.token != 4)
            assert one.exempt == (one.token == 3)
            changes = one.count_change + one.lz_change + one.dry_change + one.logit_bias
            assert one.count_factor == repeat[one.token]
            assert changes == pytest.approx(bias[one.token], abs=1e-3)
        np.testing.assert_array_equal(row, before)
        sampler.accept(int(rng.integers(0, 4)) if i % 9 else 30 + i % 3)


def test_lz_bits_are_those_of_lz_bits() -> None:
    rng, sampler, history = (
        np.random.default_rng(3),
        Sampler(N, Params(lz_rule="paper", lz_penalty=0.5, lz_window=64, lz_buffer=6)),
        [],
    )
    for _ in range(100):
        history.append(int(rng.integers(0, 5)))
        sampler.accept(history[-1])
    expected = dict(zip(*(x.tolist() for x in lz_bits(history, N, 64, 6)), strict=True))
    row = np.zeros(N, np.float32)
    for token in range(6):
        one = sampler.explain(row, token, k=0).token
        assert one.lz_bits == expected.get(token, 0.0)
        if one.lz_length:
            back = len(history) - one.lz_distance
            assert history[back] == token
            n = one.lz_length - 1
            assert history[back - n : back] == history[len(history) - n :]


def test_it_reads_well() -> None:
    sampler = Sampler(N, Params(temperature=0.0, **RULES["rate"], **EVERYTHING))
    for token in [1, 2, 3, 4, 5, 7] * 4:
        sampler.accept(token)
    row = np.zeros(N, np.float32)
    row[[1, 3, 9, 2]] = (9.0, 5.0, 4.0, 3.0)
    made = sampler.explain(row, 1, k=3)
    first, *others = str(made).splitlines()
    assert first == (
        "position 24: 1: 9.000 -> 5.544: occurred 4 times (factor 1.2, -0.600); "
        "repeats 7 tokens from 6 tokens ago: -1.356"
    )
    assert others[0].startswith(
        "  beside 3: 5.000 -> 5.000: occurred 4 times (exempt); repeats 1 token from 4 tokens ago: +0.000 (exempt)"
    )
    assert others[1] == "  beside 9: 4.000 -> -inf: logit_bias -inf"
    assert others[2].startswith("  beside 2: 3.000 -> 2.")
    assert "logit_bias +1.500" in others[2]
    assert str(sampler.explain(row, 39, k=0)) == "position 24: 39: 0.000 -> 0.000: removed"
    assert isinstance(made, Explanation)
    assert isinstance(made.token, TokenExplanation)


def test_the_default_rule_says_what_set_the_price() -> None:
    """The phrase, with the bits that it saves, or the run, with the tokens by which it is too long."""
    params = Params(temperature=0.0, lz_penalty=0.3, lz_run_penalty=0.5, lz_run_allowance=10, exempt=(5,))
    sampler, row = Sampler(N, params), np.zeros(N, np.float32)
    for token in [1, 2, 3, 4, 5, 6] * 2:
        sampler.accept(token)
    one = sampler.explain(row, 1, k=0).token
    assert (one.lz_length, one.lz_distance, one.lz_run) == (7, 6, 0)
    assert one.lz_bits == pytest.approx(math.log2(N) - (math.log2(7) + math.log2(7)) / 7)
    assert one.lz_change == pytest.approx(-0.3 * one.lz_bits)
    assert "1: 0.000 -> -1.356: repeats 7 tokens from 6 tokens ago: -1.356;" in str(one)
    for token in [1, 2, 3, 4, 5, 6] * 2:
        sampler.accept(token)
    one = sampler.explain(row, 1, k=0).token  # 19 tokens, 13 of them a copy of itself
    assert (one.lz_length, one.lz_distance, one.lz_run, one.lz_bits) == (19, 6, 3, 0)
    assert "1: 0.000 -> -1.500: copies itself 3 tokens too long, from 6 tokens ago: -1.500;" in str(one)
    assert str(sampler.explain(row, 2, k=0).token) == "2: 0.000 -> 0.000: removed"  # 2 would say nothing again
    for token in [1, 2, 3, 4]:
        sampler.accept(token)
    exempt = str(sampler.explain(row, 5, k=0).token)
    assert exempt == "5: 0.000 -> 0.000: copies itself 7 tokens too long, from 6 tokens ago: +0.000 (exempt); removed"


def test_refusals() -> None:
    sampler, row = Sampler(N, Params()), np.zeros(N, np.float32)
    with pytest.raises(ValueError, match="token must be from 0 to 39, got 40"):
        sampler.explain(row, 40)
    with pytest.raises(ValueError, match="k must be from 0"):
        sampler.explain(row, 1, k=-1)
    with pytest.raises(ValueError, match="nan"):
        sampler.explain(np.full(N, np.nan, np.float32), 1)
    assert len(sampler.explain(row, 0, k=10**6).others) == N - 1
