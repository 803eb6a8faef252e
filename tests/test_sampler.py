"""The sampler: what it remembers, what stays of a row, what is picked, and what it refuses."""

import math
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from lz_settings import either_rule
from lzsampler import LzsError, Params, Sampler
from lzsampler.params import Method
from samplers import Logits, Mask, after, assert_same, bits_of, mask_of

PROPERTY = settings(derandomize=True, max_examples=300, deadline=None)


# ---- rows and parameters to draw from ----


@st.composite
def rows(draw: st.DrawFn, n_vocab: int) -> Logits:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "wide", "grid", "flat", "holes", "peaked", "signed zeros"]))
    x = rng.normal(scale=3, size=n_vocab)
    if kind == "wide":
        x *= 6
    elif kind == "grid":  # many ties
        x = np.round(x)
    elif kind == "flat":
        x[:] = 1.25
    elif kind == "holes":
        x[rng.random(n_vocab) < 0.5] = -math.inf
    elif kind == "peaked":
        x[rng.integers(n_vocab)] = 30
    elif kind == "signed zeros":
        x = np.where(rng.random(n_vocab) < 0.5, 0.0, -0.0) - (rng.random(n_vocab) < 0.3)
    return x.astype(np.float32)


@st.composite
def params(draw: st.DrawFn, n_vocab: int) -> Params:
    def off_or(off: float, *values: float) -> float:
        return draw(st.just(off) | st.sampled_from([off, *values]))

    biases = st.sampled_from([-math.inf, -2.5, 0.0, 0.75, 30.0])
    both: list[Method] = ["multiplicative", "subtractive"]
    methods = st.sampled_from(both)
    repetition_method = draw(methods)
    return Params(
        **draw(either_rule(n_vocab)),
        repetition_penalty=off_or(1.0 if repetition_method == "multiplicative" else 0.0, 0.5, 1.25, 1.1),
        frequency_penalty=off_or(0.0, 0.5, 0.3, 1.25),
        presence_penalty=off_or(0.0, 0.5, 0.3, 1.25),
        repetition_method=repetition_method,
        frequency_method=draw(methods),
        presence_method=draw(methods),
        sign_aware=draw(st.booleans()),
        penalty_window=draw(st.sampled_from([0, 1, 5])),
        history=draw(st.sampled_from(["generated", "all"])),
        exempt=draw(st.sets(st.integers(0, n_vocab - 1), max_size=2).map(tuple)),
        dry_multiplier=off_or(0.0, 0.8, 5.0),
        dry_base=draw(st.sampled_from([1.0, 1.75])),
        dry_allowed_length=draw(st.sampled_from([1, 2, 4])),
        dry_penalty_last_n=draw(st.sampled_from([-1, -1, 0, 1, 2, 7, 20])),
        dry_breakers=draw(st.sets(st.integers(0, min(n_vocab, 7) - 1), max_size=2).map(tuple)),
        logit_bias=draw(st.dictionaries(st.integers(0, n_vocab - 1), biases, max_size=3)),
        temperature=draw(st.sampled_from([0.0, 0.1, 0.7, 1.0, 1.0, 1.7, 5.0])),
        temperature_last=draw(st.booleans()),
        top_k=draw(st.sampled_from([0, 0, 1, 2, 5, 40, 10**9])),
        top_p=off_or(1.0, 0.0, 0.1, 0.5, 0.9, 0.95, 0.999),
        min_p=off_or(0.0, 0.001, 0.05, 0.3, 1.0),
        ties=draw(st.sampled_from(["cut", "keep"])),
        seed=draw(st.sampled_from([0, 1, 2**32, 2**64 - 1])),
    )


@st.composite
def masks(draw: st.DrawFn, n_vocab: int) -> Mask | None:
    if draw(st.booleans()):
        return None
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    words = rng.integers(2**32, size=(n_vocab + 31) // 32, dtype=np.uint32)  # also bits past the vocabulary
    return words | rng.integers(2**32, size=len(words), dtype=np.uint32) if draw(st.booleans()) else words


def histories(n_vocab: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, min(n_vocab, 7) - 1), max_size=50)


VOCABULARIES = st.sampled_from([1, 2, 3, 31, 32, 33, 64, 150])


# ---- the pipeline ----


@settings(PROPERTY, max_examples=1200)
@given(st.data())
def test_sample_process_distribution_and_the_twin_agree(data: st.DataObject) -> None:
    n = data.draw(VOCABULARIES)
    p, mask = data.draw(params(n)), data.draw(masks(n))
    prompt, text, logits = data.draw(histories(n)), data.draw(histories(n)), data.draw(rows(n))
    sampler = Sampler(n, p)
    sampler.prime(prompt)
    for token in text:
        sampler.accept(token)
    sampler.set_mask(mask)
    twin = reference.row(logits, prompt + text if p.history == "all" else text, p, mask)
    before = bits_of(logits)

    if not twin.order:
        for call in (sampler.sample, sampler.distribution, sampler.process):
            with pytest.raises(LzsError, match="no token is allowed"):
                call(logits)
            assert bits_of(logits) == before
        return

    ids, probabilities = sampler.distribution(logits)
    token = sampler.sample(logits)
    assert bits_of(logits) == before
    processed = sampler.process(logits.copy())

    assert ids.dtype == np.int32
    assert probabilities.dtype == np.float32
    kept = ids.tolist()
    assert kept == np.flatnonzero(processed > -math.inf).tolist()
    assert twin.agrees(kept)
    x = processed[ids].astype(np.float64)
    softmax = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    # process() must round its quotients to float32, which moves a probability by that much
    assert probabilities == pytest.approx(softmax, abs=1e-6 + 1.2e-7 * float(np.abs(x).max()))

    rounding = float(twin.rounding.max()) / twin.temperature
    assert probabilities == pytest.approx(twin.probabilities(kept), abs=1e-5 + rounding)
    assert processed[ids] == pytest.approx(twin.logits[ids] / twin.temperature, rel=1e-6, abs=1e-6 + rounding)
    assert math.fsum(probabilities) == pytest.approx(1.0, abs=1e-6)
    assert token in twin.winners(kept, p.seed, sampler.position)


def test_flat_rows_are_cut_by_id() -> None:
    logits = np.zeros(10, np.float32)

    def kept(**fields: Any) -> list[int]:
        ids: list[int] = Sampler(10, Params(**fields)).distribution(logits)[0].tolist()
        return ids

    assert kept(temperature=0) == [0]
    assert kept(top_k=3) == [0, 1, 2]
    assert kept(top_p=0.5) == [0, 1, 2, 3, 4]
    assert kept(top_p=0.0) == [0]
    assert kept(top_k=4, top_p=0.5) == [0, 1]
    assert kept(min_p=1.0) == list(range(10))
    assert kept(top_k=3, ties="keep") == kept(top_p=0.5, ties="keep") == list(range(10))
    assert kept(temperature=0, ties="keep") == [0]


def test_temperature_last_truncates_what_the_model_said() -> None:
    logits = np.log(np.array([0.5, 0.25, 0.15, 0.1], np.float32))
    hot = Params(temperature=100.0, top_p=0.7)
    assert len(Sampler(4, hot).distribution(logits)[0]) == 3  # almost flat when top-p sees it
    ids, probabilities = Sampler(4, replace(hot, temperature_last=True)).distribution(logits)
    assert ids.tolist() == [0, 1]
    assert probabilities == pytest.approx([0.5, 0.5], abs=0.01)


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("fields", [{}, {"top_k": 2}, {"top_p": 0.5}, {"min_p": 0.5}])
def test_plus_infinity_wins(fields: dict[str, Any], temperature: float) -> None:
    logits = np.array([1.0, math.inf, 3e38, math.inf, -math.inf], np.float32)
    sampler = Sampler(5, Params(temperature=temperature, **fields))
    ids, probabilities = sampler.distribution(logits)
    chances = dict(zip(ids.tolist(), probabilities.tolist(), strict=True))
    best = {1: 1.0} if temperature == 0 or fields == {"top_p": 0.5} else {1: 0.5, 3: 0.5}
    assert {t: chance for t, chance in chances.items() if chance} == best
    picked = set()
    for _ in range(50):
        picked.add(sampler.sample(logits))
        sampler.accept(0)
    assert picked <= {1, 3}


@pytest.mark.parametrize("n", [1, 33])
def test_small_vocabularies(n: int) -> None:
    sampler = Sampler(n, Params(lz_penalty=0.15, repetition_penalty=1.1, top_k=50, top_p=0.9, min_p=0.1))
    for i in range(200):
        token = sampler.sample(np.full(n, float(i), np.float32))
        assert 0 <= token < n
        sampler.accept(token)


# ---- masks ----


def test_bits_past_the_vocabulary_are_ignored() -> None:
    sampler = Sampler(33)
    logits = np.zeros(33, np.float32)
    sampler.set_mask(np.array([0, 0xFFFFFFFF], np.uint32))
    assert sampler.distribution(logits)[0].tolist() == [32]
    sampler.set_mask(np.array([0, 0xFFFFFFFE], np.uint32))
    with pytest.raises(LzsError, match="no token is allowed"):
        sampler.sample(logits)


def test_a_mask_is_copied_stays_and_goes() -> None:
    sampler = Sampler(40)
    logits = np.zeros(40, np.float32)
    words = mask_of(40, [3, 35])
    sampler.set_mask(words)
    words[:] = 0
    assert sampler.distribution(logits)[0].tolist() == [3, 35]
    sampler.accept(7)
    assert sampler.clone().distribution(logits)[0].tolist() == [3, 35]
    assert sampler.process(np.zeros(40, np.float32)).tolist() == [0.0 if t in (3, 35) else -math.inf for t in range(40)]
    sampler.set_mask(mask_of(40, [1]).view(np.int32))  # llguidance's dtype
    assert sampler.sample(logits) == 1
    sampler.set_mask(None)
    assert len(sampler.distribution(logits)[0]) == 40
    sampler.set_mask(mask_of(40, [1]))
    sampler.reset()
    assert len(sampler.distribution(logits)[0]) == 40


def test_a_nan_of_a_masked_token_is_ignored() -> None:
    sampler = Sampler(4, Params(presence_penalty=1.0))
    sampler.accept(0)
    logits = np.array([math.nan, 1.0, math.nan, 0.0], np.float32)
    before = bits_of(logits)
    sampler.set_mask(mask_of(4, [1, 3]))
    assert sampler.distribution(logits)[0].tolist() == [1, 3]
    sampler.set_mask(mask_of(4, [1, 2]))
    for call in (sampler.sample, sampler.distribution, sampler.process):
        with pytest.raises(ValueError, match="is nan"):
            call(logits)
        assert bits_of(logits) == before


# ---- what a sampler remembers ----


class Replay:
    """What a sampler should hold: its prompt, its text, and from which position on it has which mask."""

    def __init__(self, n_vocab: int, params: Params) -> None:
        self.n_vocab, self.params = n_vocab, params
        self.prompt: list[int] = []
        self.text: list[int] = []
        self.masks: dict[int, Mask | None] = {0: None}

    def rewind(self, n: int) -> None:
        self.text = self.text[: len(self.text) - n]
        self.masks = {position: mask for position, mask in self.masks.items() if position <= len(self.text)}

    def copy(self) -> "Replay":
        other = Replay(self.n_vocab, self.params)
        other.prompt, other.text, other.masks = self.prompt[:], self.text[:], dict(self.masks)
        return other

    def fresh(self) -> Sampler:
        sampler = Sampler(self.n_vocab, self.params)
        sampler.prime(self.prompt)
        for token in self.text:
            sampler.accept(token)
        sampler.set_mask(self.masks[max(self.masks)])
        return sampler


@PROPERTY
@given(st.data())
def test_any_history_of_calls_equals_a_fresh_replay(data: st.DataObject) -> None:
    n = data.draw(st.sampled_from([1, 3, 33, 100]))
    p = data.draw(params(n))
    if -math.inf in dict(p.logit_bias).values():  # with a mask there may be no token left
        p = replace(p, logit_bias={0: -2.5})
    logits = np.random.default_rng(n).normal(scale=2, size=n).astype(np.float32)
    tokens = histories(n)
    pool = [(Sampler(n, p), Replay(n, p))]
    for _ in range(data.draw(st.integers(1, 12))):
        which = data.draw(st.integers(0, len(pool) - 1))
        sampler, replay = pool[which]
        actions = ["accept", "accept", "accept", "rewind", "rewind", "clone", "copy", "prime", "reset", "mask"]
        action = data.draw(st.sampled_from(actions))
        if action == "accept":
            for token in data.draw(tokens):
                sampler.accept(token)
                replay.text.append(token)
        elif action == "rewind":
            back = data.draw(st.integers(0, len(replay.text)))
            sampler.rewind(back)
            replay.rewind(back)
        elif action == "clone":
            pool.append((sampler.clone(), replay.copy()))
        elif action == "prime" and not replay.text:
            prompt = data.draw(tokens)
            sampler.prime(prompt)
            replay.prompt += prompt
        elif action == "reset":
            sampler.reset()
            pool[which] = (sampler, Replay(n, p))
        elif action == "mask":
            mask = data.draw(st.sampled_from([None, mask_of(n, [n - 1]), mask_of(n, list(range(0, n, 2)))]))
            sampler.set_mask(mask)
            replay.masks[len(replay.text)] = mask
        elif action == "copy":
            other = data.draw(st.integers(0, len(pool) - 1))
            sampler.copy_from(pool[other][0])
            pool[which] = (sampler, pool[other][1].copy())
        if data.draw(st.booleans()):
            sampler.sample(logits)  # which must leave no trace
    for sampler, replay in pool:
        assert_same(sampler, replay.fresh(), logits)


def test_seed_and_position_alone_decide() -> None:
    """Not the tokens before, nor how the position was reached, nor how often was sampled."""
    logits = np.random.default_rng(1).normal(size=500).astype(np.float32)
    texts: list[list[int]] = []
    for path in range(3):
        sampler = Sampler(500, Params(seed=12))
        texts.append([])
        for i in range(200):
            if path == 1:
                for token in (1, 2, 3):
                    sampler.accept(token)
                sampler.rewind(3)
            if path == 2:
                sampler = sampler.clone()
            texts[-1].append(sampler.sample(logits))
            assert sampler.sample(logits) == texts[-1][-1]
            sampler.accept(0 if path else i)
    assert texts[0] == texts[1] == texts[2]
    assert len(set(texts[0])) > 100
    other = [after(500, Params(seed=13), [0] * i).sample(logits) for i in range(50)]
    assert sum(a == b for a, b in zip(other, texts[0], strict=False)) < 10


def test_the_prompt_does_not_move_the_draw() -> None:
    logits = np.random.default_rng(1).normal(size=500).astype(np.float32)
    primed = Sampler(500, Params(history="all"))
    primed.prime(range(300))
    assert primed.position == 0
    for _ in range(50):
        assert primed.sample(logits) == after(500, None, [0] * primed.position).sample(logits)
        primed.accept(0)


def test_rows_stay_as_they_are() -> None:
    """Bit for bit, with what floats have to offer, whether the call succeeds or not."""
    odd = np.array([0x80000000, 0x7F800000, 0xFF800000, 0x00000001, 0x7F7FFFFF, 0xFF7FFFFF], np.uint32)
    nans = np.array([0x7FC00000, 0xFFC00001, 0x7FFFFFFF], np.uint32)
    for words, fails in ((odd, False), (np.concatenate([odd, nans]), True), (np.full(6, 0xFF800000, np.uint32), True)):
        logits = words.view(np.float32)
        for temperature in (0.0, 1.0):
            p = Params(
                temperature=temperature, repetition_penalty=1.5, lz_rule="paper", lz_penalty=1.0, lz_buffer=1, top_k=3
            )
            sampler = after(len(logits), p, [*range(len(logits))] * 3)
            for call in (sampler.sample, sampler.distribution, *([sampler.process] if fails else [])):
                copy = logits.copy()
                if fails:
                    with pytest.raises((ValueError, LzsError)):
                        call(copy)
                else:
                    call(copy)
                assert bits_of(copy) == words.tolist()


def test_read_only_rows_can_be_sampled() -> None:
    p = Params(presence_penalty=100.0)
    sampler = after(3, p, [0, 2])
    logits = np.zeros(3, np.float32)
    expected = sampler.sample(logits), sampler.distribution(logits)[1].tolist()
    logits.flags.writeable = False
    assert (sampler.sample(logits), sampler.distribution(logits)[1].tolist()) == expected
    assert logits.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="logits must be writable"):
        sampler.process(logits)


def test_process_writes_where_it_is_told() -> None:
    sampler = after(5, Params(presence_penalty=1.0, temperature=0.5, top_k=3), [0, 4])
    logits, out = np.array([1, 2, 3, 4, 5], np.float32), np.full(5, 7, np.float32)
    before = bits_of(logits)
    expected = sampler.process(logits.copy())
    assert sampler.process(logits, out) is out
    assert bits_of(logits) == before
    assert out.tolist() == expected.tolist()
    logits.flags.writeable = False
    assert sampler.process(logits, out).tolist() == expected.tolist()
    same = logits.copy()
    assert sampler.process(same, same) is same
    assert same.tolist() == expected.tolist()
    sampler.set_mask(np.zeros(1, np.uint32))
    with pytest.raises(LzsError):
        sampler.process(logits, out)
    assert out.tolist() == expected.tolist()  # and nothing was written


def test_process_refuses_an_out_that_will_not_do() -> None:
    sampler = Sampler(5)
    row = np.zeros(9, np.float32)
    locked = np.zeros(5, np.float32)
    locked.flags.writeable = False
    bad: list[tuple[Any, str]] = [
        (np.zeros(5), "out must be a numpy array of float32, got float64"),
        (np.zeros(4, np.float32), r"out must have shape \(5,\)"),
        ([0.0] * 5, "out must be a numpy array of float32, got list"),
        (np.zeros(10, np.float32)[::2], "out must be contiguous"),
        (locked, "out must be writable"),
        (row[1:6], "out must be logits itself or not overlap it"),
    ]
    for out, message in bad:
        with pytest.raises(ValueError, match=message):
            sampler.process(row[:5], out)


def test_memory_of_a_large_vocabulary() -> None:
    sampler = Sampler(262_144, Params(lz_penalty=0.15, top_k=40, top_p=0.95, min_p=0.05))
    for token in range(512):
        sampler.accept(token)
    assert sampler.memory <= 128 * 1024  # half of it is the scratch memory of its backend
    assert sampler.clone().memory <= 128 * 1024
    sampler.set_mask(np.zeros(8192, np.uint32))
    assert sampler.memory > 32 * 1024  # it counts what it has


# ---- what a sampler refuses ----


def zeros(*shape: int) -> Logits:
    return np.zeros(shape, np.float32)


BAD_CALLS: list[tuple[str, tuple[Any, ...], str]] = [
    ("accept", (-1,), "token .* -1"),
    ("accept", (5,), "token .* 5"),
    ("accept", (2**40,), "token .* 1099511627776"),
    ("accept", (1.0,), r"token .* 1\.0"),
    ("accept", (True,), "token .* True"),
    ("accept", (None,), "token .* None"),
    ("accept", ("1",), "token .* '1'"),
    ("rewind", (-1,), "n must .* -1"),
    ("rewind", (3,), "n must be from 0 to 2, the number of accepted tokens, got 3"),
    ("rewind", (1.5,), r"n must .* 1\.5"),
    ("prime", ([1],), "2 tokens were accepted"),
    ("set_seed", (-1,), "seed .* -1"),
    ("set_seed", (2**64,), "seed .* 18446744073709551616"),
    ("set_seed", (1.5,), r"seed .* 1\.5"),
    ("set_params", ({"top_k": 3},), "params must be a Params, got {'top_k': 3}"),
    ("set_mask", (None, "me"), "owner must be one of user, grammar, got 'me'"),
    ("set_mask", ([1],), "mask .* list"),
    ("set_mask", (np.zeros(1, np.int64),), "mask must be uint32 or int32, got int64"),
    ("set_mask", (np.zeros(1, bool),), "mask .* bool"),
    ("set_mask", (np.zeros(2, np.uint32),), r"mask .* \(2,\)"),
    ("set_mask", (np.zeros((1, 1), np.uint32),), r"mask .* \(1, 1\)"),
    *(
        (call, (bad,), message)
        for call in ("sample", "process", "distribution")
        for bad, message in (
            (None, "logits .* NoneType"),
            ("01234", "logits .* str"),
            (["0"] * 5, "logits .* <U1"),
            ([None] * 5, "logits .* object"),
            (np.zeros(5, complex), "logits .* complex128"),
            (np.zeros(5, bool), "logits .* bool"),
            (0.0, r"logits .* \(5,\).* \(\)"),
            ([0.0] * 4, r"logits .* \(5,\).* \(4,\)"),
            ([[0.0], [0.0, 1.0]], "logits must be an array of 5 numbers"),
            (zeros(4), r"logits .* \(5,\).* \(4,\)"),
            (zeros(1, 5), r"logits .* \(1, 5\)"),
            (np.array([0, 1, math.nan, 2, math.nan], np.float32), r"logits\[2\] is nan \(2 of 5"),
        )
    ),
]


@pytest.mark.parametrize(("call", "arguments", "message"), BAD_CALLS)
def test_bad_arguments(call: str, arguments: tuple[Any, ...], message: str) -> None:
    sampler = after(5, Params(presence_penalty=1.0), [1, 2])
    with pytest.raises(ValueError, match=message):
        getattr(sampler, call)(*arguments)
    assert sampler.position == 2
    assert sampler.edits()[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("accept", (1.0,)),
        ("rewind", ("1",)),
        ("prime", ([0.5],)),
        ("set_seed", (None,)),
        ("set_params", ({},)),
        ("set_mask", ([1],)),
        ("set_mask", (np.zeros(1, bool),)),
        ("copy_from", ("sampler",)),
        ("sample", ("logits",)),
        ("process", ([None] * 5,)),
        ("process", (zeros(5), [0.0] * 5)),
        ("distribution", (np.zeros(5, complex),)),
    ],
)
def test_a_wrong_type_is_a_type_error(call: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        getattr(Sampler(5), call)(*arguments)
    with pytest.raises(TypeError):
        Sampler(5, {"top_k": 1})  # type: ignore[arg-type]


class Tensor:
    """What numpy can read without being an array, as the tensors of torch."""

    def __init__(self, row: Logits) -> None:
        self.row = row

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.row if dtype is None else self.row.astype(dtype)


def test_logits_may_be_whatever_numpy_reads() -> None:
    sampler = after(5, Params(presence_penalty=1.0, top_k=3), [1, 2])
    row = np.array([1, 4, 2, 5, 3], np.float32)
    row.flags.writeable = False
    strided = np.repeat(row, 2)[::2]
    same: list[Any] = [row.tolist(), tuple(row), row.astype(float), row.astype(">f4"), row.astype(np.int64), strided]
    for logits in [*same, row.astype(np.float16), Tensor(row.copy())]:
        before = str(logits)
        assert sampler.sample(logits) == sampler.sample(row)
        assert sampler.distribution(logits)[1].tolist() == sampler.distribution(row)[1].tolist()
        assert str(logits) == before
        processed = sampler.process(logits)
        assert processed.dtype == np.float32
        assert bits_of(processed) == bits_of(sampler.process(row, np.empty(5, np.float32)))
    with pytest.raises(ValueError, match=r"logits\[1\] is nan \(1 of 5"):
        sampler.sample([0.0, math.nan, 0.0, 0.0, 0.0])
    assert sampler.sample([0.0, 0.0, 1e300, 0.0, 0.0]) == 2  # infinite as a float32


def test_a_contiguous_row_is_not_copied() -> None:
    sampler = Sampler(5, Params(temperature=0.5))
    row = zeros(5)
    assert sampler.process(row) is row
    tensor = Tensor(np.ones(5, np.float32))
    assert sampler.process(tensor) is tensor.row
    assert tensor.row.tolist() == [2.0] * 5


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([1, 5], r"tokens\[1\] = 5 "),
        ([-1], r"tokens\[0\] = -1 "),
        ([1.5], "tokens .* float64"),
        ([[1]], r"tokens .* \(1, 1\)"),
        (3, r"tokens .* \(\)"),
    ],
)
def test_bad_prompts(prompt: Any, message: str) -> None:
    sampler = Sampler(5, Params(presence_penalty=1.0, history="all"))
    with pytest.raises(ValueError, match=message):
        sampler.prime(prompt)
    assert sampler.edits()[0].tolist() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "n_vocab .* 0"),
        ((-3,), "n_vocab .* -3"),
        ((2**31,), "n_vocab .* 2147483648"),
        ((5.0,), r"n_vocab .* 5\.0"),
        ((True,), "n_vocab .* True"),
        (("5",), "n_vocab .* '5'"),
        ((5, {"top_k": 1}), "params .*{'top_k': 1}"),
        ((5, Params(exempt=(1, 5))), "exempt must be tokens below 5, the size of the vocabulary, got 5"),
        ((5, Params(dry_breakers=(5,))), "dry_breakers must be tokens below 5"),
        ((5, Params(logit_bias={9: 1.0})), "logit_bias must be tokens below 5, the size of the vocabulary, got 9"),
        ((2**30 + 1,), "n_vocab .* 1073741825"),
    ],
)
def test_bad_samplers(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sampler(*arguments)


def test_numpy_integers_are_integers() -> None:
    sampler = Sampler(np.int64(5))  # type: ignore[arg-type]
    sampler.prime(np.array([4], np.uint8))
    sampler.accept(np.int32(3))  # type: ignore[arg-type]
    sampler.rewind(np.uint64(1))  # type: ignore[arg-type]
    assert sampler.position == 0


def test_kernels_that_do_not_run_are_ignored() -> None:
    code = """
from lzsampler import Sampler
from lzsampler._ffi import ffi, lib
Sampler(8)
print(ffi.string(lib.lzs_kernels_name()).decode())
"""
    names = []
    for kernels in ("abacus", "", None, "scalar"):
        environment = {name: value for name, value in os.environ.items() if name != "LZS_KERNELS"}
        environment |= {} if kernels is None else {"LZS_KERNELS": kernels}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stderr
        names.append(done.stdout.strip())
    assert names[0] == names[1] == names[2]
    assert names[3] == "scalar"
