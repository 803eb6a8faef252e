"""The pick: the race against the twin, its frequencies and independence, and llama.cpp's own draws."""

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import reference
from lzsampler import Params, Sampler

Logits = npt.NDArray[np.float32]


def after(n_vocab: int, params: Params, n_accepted: int) -> Sampler:
    sampler = Sampler(n_vocab, params)
    for _ in range(n_accepted):
        sampler.accept(0)
    return sampler


def test_philox_known_answers() -> None:
    """The twin's Philox, against the lines "philox4x32 10" of its authors' kat_vectors (the core's: tests/c)."""
    known = [
        ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ]
    for counter, key, out in known:
        assert reference.philox4x32(np.array([counter], np.uint64), key).tolist() == [out]


@pytest.mark.parametrize("seed", [0, 77, 2**64 - 2])
@pytest.mark.parametrize(("n", "fields"), [(33, {}), (200, {"temperature": 0.6, "top_p": 0.9}), (1000, {"top_k": 50})])
def test_the_race_equals_the_twin(n: int, fields: dict[str, Any], seed: int) -> None:
    rng = np.random.default_rng(n)
    sampler = Sampler(n, Params(seed=seed, **fields))
    unclear = 0
    for position in range(600):
        logits = rng.normal(scale=2, size=n).astype(np.float32)
        twin = reference.row(logits, [], sampler.params)
        winners = twin.winners(sampler.distribution(logits)[0].tolist(), seed, position)
        unclear += len(winners) > 1
        assert sampler.sample(logits) in winners
        sampler.accept(0)
    assert unclear < 4


def assert_drawn_from(counts: npt.NDArray[np.int64], sampler: Sampler, logits: Logits) -> None:
    """Chi-square of counts against distribution(), rare tokens together."""
    ids, probabilities = sampler.distribution(logits)
    assert counts.sum() == counts[ids].sum()
    expected = np.zeros(len(logits))
    expected[ids] = probabilities.astype(np.float64) / math.fsum(probabilities)
    expected *= counts.sum()
    rare = expected < 8
    observed = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    if wanted[-1] < 8:  # too few to be a class of their own
        observed, wanted = (np.append(a[1:-1], a[0] + a[-1]) for a in (observed, wanted))
    if len(wanted) > 1:
        assert stats.chisquare(observed, wanted).pvalue > 1e-4


def draw_cases() -> list[Any]:
    rng = np.random.default_rng(3)
    normal = rng.normal(scale=1.5, size=60)
    peaked = np.append(np.zeros(40), 4.0)
    return [
        pytest.param(np.zeros(50), {}, id="flat"),
        pytest.param(np.zeros(3), {}, id="three"),
        pytest.param(peaked, {}, id="peaked"),
        pytest.param(normal, {"temperature": 1.7}, id="hot"),
        pytest.param(normal, {"temperature": 0.4}, id="cold"),
        pytest.param(normal, {"top_k": 12, "temperature_last": True, "temperature": 2.0}, id="top-k"),
        pytest.param(normal, {"top_p": 0.8, "min_p": 0.1}, id="top-p, min-p"),
        pytest.param(rng.normal(size=5000), {"temperature": 0.5}, id="many"),
        pytest.param(normal, {"presence_penalty": 2.0}, id="penalized"),
    ]


@pytest.mark.parametrize(("logits", "fields"), draw_cases())
def test_frequencies_over_positions(logits: npt.NDArray[np.float64], fields: dict[str, Any]) -> None:
    row = logits.astype(np.float32)
    sampler = Sampler(len(row), Params(seed=5, **fields))
    sampler.accept(0)
    counts = np.zeros(len(row), np.int64)
    for _ in range(8000 if len(row) < 1000 else 4000):
        counts[sampler.sample(row)] += 1
        sampler.accept(0)
    assert_drawn_from(counts, sampler, row)


@pytest.mark.parametrize("position", [0, 3])
def test_frequencies_over_seeds(position: int) -> None:
    row = np.linspace(0, 3, 33, dtype=np.float32)
    counts = np.zeros(33, np.int64)
    for seed in range(8000):
        counts[after(33, Params(seed=seed << 7), position).sample(row)] += 1
    assert_drawn_from(counts, Sampler(33), row)


def assert_independent(pairs: list[tuple[int, int]]) -> None:
    table = np.zeros((4, 4))
    for a, b in pairs:
        table[a, b] += 1
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    assert table.shape[0] == table.shape[1] > 1
    assert stats.chi2_contingency(table, correction=False).pvalue > 1e-4


@pytest.mark.parametrize("step", [1, 2])
def test_neighbouring_positions_are_independent(step: int) -> None:
    row = np.zeros(4, np.float32)
    sampler = Sampler(4, Params(seed=9))
    text = []
    for _ in range(12_000):
        text.append(sampler.sample(row))
        sampler.accept(0)
    assert_independent(list(zip(text[:-step], text[step:], strict=True)))


def test_neighbouring_seeds_are_independent() -> None:
    row = np.zeros(4, np.float32)
    picks = [Sampler(4, Params(seed=seed)).sample(row) for seed in range(12_000)]
    assert_independent(list(itertools.pairwise(picks)))


@pytest.mark.parametrize(("a", "b"), [((0, 2), (1, 3)), ((2, 3), (4, 5)), ((0, 31), (32, 33)), ((0, 4), (1, 5))])
def test_neighbouring_tokens_are_independent(a: tuple[int, int], b: tuple[int, int]) -> None:
    """Two duels at one position, within and across the four tokens that share a Philox call."""
    row = np.zeros(40, np.float32)
    sampler = Sampler(40, Params(seed=21))
    pairs = []
    for _ in range(6000):
        duels = []
        for duel in (a, b):
            words = np.zeros(2, np.uint32)
            for token in duel:
                words[token // 32] |= np.uint32(1 << (token % 32))
            sampler.set_mask(words)
            duels.append(duel.index(sampler.sample(row)))
        pairs.append((duels[0], duels[1]))
        sampler.accept(0)
    assert_independent(pairs)
