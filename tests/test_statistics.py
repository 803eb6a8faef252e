"""Intervals and tests, next to scipy's own."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, binomtest, bootstrap

from lzsampler.util.stats import ROUNDS, Interval, agreement, bootstrap_ratios, mcnemar, records_needed, wilson


@pytest.mark.parametrize("n", [1, 2, 7, 100, 1000, 123_456])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_wilson_is_scipys(n: int, confidence: float) -> None:
    for count in sorted({0, 1, n // 3, n - 1, n}):
        expected = binomtest(count, n).proportion_ci(confidence, method="wilson")
        got = wilson(count, n, confidence)
        assert got.low == pytest.approx(expected.low, rel=1e-12, abs=1e-15)
        assert got.high == pytest.approx(expected.high, rel=1e-12)
        assert 0 <= got.low <= count / n <= got.high <= 1


def test_wilson_of_nothing_is_everything() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 9).low == 0.0
    assert wilson(9, 9).high == 1.0


@pytest.mark.parametrize(("count", "n"), [(-1, 5), (6, 5)])
def test_wilson_refuses_impossible_counts(count: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"got {count} of {n}"):
        wilson(count, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        wilson(1, 2, confidence)


@pytest.mark.parametrize("limit", [0.001, 0.01, 0.2, 0.9])
@pytest.mark.parametrize("rate", [0.0, 0.005, 0.3])
def test_the_records_needed_are_needed_and_enough(rate: float, limit: float) -> None:
    n = records_needed(rate, limit)
    assert n is not None

    def leaves_it_out(n: int) -> bool:  # Wilson at a count that need not be whole: the score test, inverted
        return (rate - limit) ** 2 * n > 1.959963984540054**2 * limit * (1 - limit)

    assert leaves_it_out(n)
    assert n == 1 or not leaves_it_out(n - 1)
    if rate == 0:
        assert wilson(0, n).high < limit
        assert n == 1 or wilson(0, n - 1).high >= limit


def test_figures_of_the_documentation() -> None:
    assert records_needed(0.0, 0.01) == 381
    assert records_needed(0.01, 0.01) is None
    assert wilson(0, 100).high == pytest.approx(0.037, abs=0.0005)
    assert wilson(0, 1000).high == pytest.approx(0.0038, abs=0.00005)


@pytest.mark.parametrize("a", [0, 1, 2, 5, 17, 400, 30_000])
@pytest.mark.parametrize("b", [0, 1, 3, 5, 25, 431, 30_700])
def test_mcnemar_is_the_exact_binomial_test(a: int, b: int) -> None:
    expected = 1.0 if a + b == 0 else binomtest(a, a + b).pvalue
    assert mcnemar(a, b) == pytest.approx(expected, rel=1e-7, abs=1e-300)
    assert mcnemar(a, b) == mcnemar(b, a)


def test_mcnemar_refuses_negative_counts() -> None:
    with pytest.raises(ValueError, match="got -1 and 2"):
        mcnemar(-1, 2)


@pytest.mark.parametrize("a", [0, 1, 2, 5, 17, 400])
@pytest.mark.parametrize("b", [0, 1, 3, 5, 25, 431])
def test_the_mid_p_counts_half_of_what_was_observed(a: int, b: int) -> None:
    half = 0 if a == b else binom.pmf(a, a + b, 0.5)
    assert mcnemar(a, b, mid_p=True) == pytest.approx(mcnemar(a, b) - half, rel=1e-7, abs=1e-300)


def mean_interval(values: npt.ArrayLike, sizes: npt.ArrayLike | None = None, rounds: int = ROUNDS) -> Interval:
    """The bootstrap interval of the mean of clusters with these sums and sizes, 1 each by default."""
    sums = np.asarray(values, np.float64)
    return bootstrap_ratios([sums], np.ones(sums.size) if sizes is None else sizes, rounds=rounds)[0]


def test_the_bootstrap_agrees_with_scipys() -> None:
    values = np.random.default_rng(1).choice([-1, 0, 0, 0, 1, 1], 300)
    expected = bootstrap((values,), np.mean, method="percentile", n_resamples=10_000, random_state=2)
    got = mean_interval(values)
    spread = expected.confidence_interval.high - expected.confidence_interval.low
    assert got.low == pytest.approx(expected.confidence_interval.low, abs=spread / 20)
    assert got.high == pytest.approx(expected.confidence_interval.high, abs=spread / 20)
    assert got == mean_interval(values.tolist())


def test_the_bootstrap_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(400):
        interval = mean_interval(rng.random(120) < 0.3, rounds=1000)
        hits += interval.low <= 0.3 <= interval.high
    assert 0.91 <= hits / 400 <= 0.98


def test_clusters_are_drawn_whole() -> None:
    """Eight answers to a prompt that are all alike say no more than one: the interval is that of the prompts."""
    prompts = np.random.default_rng(4).random(80) < 0.4
    alone, clustered = mean_interval(prompts), mean_interval(8 * prompts, np.full(80, 8))
    assert clustered == pytest.approx(alone, abs=0.01)
    blind = mean_interval(np.repeat(prompts, 8))
    assert (clustered.high - clustered.low) > 2 * (blind.high - blind.low)


def test_clusters_of_different_sizes_agree_with_drawing_them_one_by_one() -> None:
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 6, 60)
    members = np.repeat(np.arange(60), sizes)
    values = rng.random(members.size) + (members % 2)
    sums = np.bincount(members, values)
    drawn = rng.integers(0, 60, (10_000, 60))
    expected = np.quantile(sums[drawn].sum(1) / sizes[drawn].sum(1), [0.025, 0.975])
    assert mean_interval(sums, sizes) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    ("table", "share", "kappa"),
    [
        ((20, 5, 10, 15), 0.7, 0.4),
        ((45, 15, 25, 15), 0.6, 0.1304),
        ((25, 35, 5, 35), 0.6, 0.2593),
        ((3, 0, 0, 4), 1.0, 1.0),
        ((0, 4, 4, 0), 0.0, -1.0),
        ((0, 0, 3, 7), 0.7, 0.0),
        ((0, 0, 0, 5), 1.0, None),
        ((0, 0, 0, 0), 1.0, None),
    ],
)
def test_kappa(table: tuple[int, int, int, int], share: float, kappa: float | None) -> None:
    """The first three are those of Wikipedia's article on Cohen's kappa."""
    pairs = [(True, True)] * table[0] + [(True, False)] * table[1] + [(False, True)] * table[2]
    pairs += [(False, False)] * table[3]
    found = agreement([a for a, _ in pairs], [b for _, b in pairs])
    assert found == table
    assert found.share == pytest.approx(share)
    assert found.kappa == (None if kappa is None else pytest.approx(kappa, abs=1e-4))


def test_agreement_is_about_the_same_texts() -> None:
    with pytest.raises(ValueError, match="got 2 and 1"):
        agreement([True, False], [True])
