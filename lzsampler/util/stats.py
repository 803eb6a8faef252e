"""Confidence intervals and tests for measured rates, and the number of records that a result needs.

The formulas are implemented here, so that no user has to install scipy. The tests compare the results with scipy's.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError

CONFIDENCE = 0.95
ROUNDS = 10_000  # number of resamples of a bootstrap
_SEED = 20131  # seed of the bootstrap, fixed so that a report always has the same figures
_AT_ONCE = 4_000_000  # largest number of random numbers that a bootstrap draws at once, which take 32 MB


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def wilson(count: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Return Wilson's score interval (1927) of the rate ``count / n``, in 0..1; (0, 1) for n = 0.

    Unlike the normal interval, the score interval is valid for rare events: for 0 of 100, its upper end is 0.037.
    """
    if not 0 <= count <= n:
        raise ArgumentError(f"count must be from 0 to n, got {count} of {n}")
    if n == 0:
        return Interval(0.0, 1.0)
    return score_interval(count, n, quantile(confidence))


def score_interval(count: float, n: float, quantile: float) -> Interval:
    """Return the score interval of the rate ``count / n`` for a quantile z or t. Count and n may be fractions."""
    z2 = quantile**2
    middle = (count + z2 / 2) / (n + z2)
    half = math.sqrt(z2 * (count * (n - count) / n + z2 / 4)) / (n + z2)
    low = 0.0 if count == 0 else max(0.0, middle - half)  # At 0 and n, the formula has a rounding error.
    high = 1.0 if count == n else min(1.0, middle + half)
    return Interval(low, high)


def records_needed(rate: float, limit: float, confidence: float = CONFIDENCE) -> int | None:
    """Return the least number of records at which the Wilson interval of an observed ``rate`` excludes ``limit``.

    ``rate`` and ``limit`` are in 0..1. If the rate is 0, the result is the number of records without a loop that show
    that at most ``limit`` of all records loop: 381 for 0.01. If rate and limit are equal, no number of records
    suffices, and the result is None.
    """
    if rate == limit:
        return None
    n = quantile(confidence) ** 2 * limit * (1 - limit) / (rate - limit) ** 2
    return max(1, math.floor(n) + 1)


def mcnemar(only_a: int, only_b: int, *, mid_p: bool = False) -> float:
    """Return the two-sided exact p of McNemar's test (1947), a sign test on the pairs that differ.

    ``only_a``, ``only_b``: numbers of pairs in which only A's, or only B's, record loops. Returns 1.0 if both
    numbers are equal. ``mid_p``: count only half of the probability of the observation itself (Lancaster, Journal of
    the American Statistical Association 56, 1961).
    """
    if only_a < 0 or only_b < 0:
        raise ArgumentError(f"counts must be 0 or more, got {only_a} and {only_b}")
    n, k = only_a + only_b, min(only_a, only_b)
    if 2 * k == n:
        return 1.0
    term = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
    share, total = 1.0, 0.0  # ``share`` is C(n, i) / C(n, k), which decreases.
    for i in range(k, -1, -1):
        total += share / 2 if mid_p and i == k else share
        share *= i / (n - i + 1)
        if share < total * 1e-17:
            break
    return min(1.0, 2 * math.exp(term + math.log(total)))


def bootstrap_ratios(
    sums: npt.ArrayLike, sizes: npt.ArrayLike, *, rounds: int = ROUNDS, confidence: float = CONFIDENCE
) -> list[Interval]:
    """Return percentile bootstrap intervals (Efron 1979) of several ratios measured on the same clusters.

    ``sums``: float[k, n], the sums of k figures over each of n clusters. ``sizes``: float[n], the number of values in
    each cluster, above 0. The ratio of a figure is its total sum divided by the total size: the mean of all values.

    Whole clusters are drawn, because answers to one prompt are not independent. All figures use the same draws. The
    same input always gives the same intervals. Raises ValueError for other shapes and for no clusters.
    """
    of = np.asarray(sums, np.float64)
    by = np.asarray(sizes, np.float64)
    if of.ndim != 2 or by.shape != of.shape[1:] or not by.size:
        raise ArgumentError(
            f"sums and sizes must be float[k, n] and float[n], n at least 1, got {of.shape} and {by.shape}"
        )
    rng = np.random.default_rng(_SEED)
    ratios = np.empty((rounds, of.shape[0]))
    step = max(1, _AT_ONCE // by.size)
    for start in range(0, rounds, step):
        n = min(step, rounds - start)
        drawn = rng.integers(0, by.size, (n, by.size)) + by.size * np.arange(n)[:, None]
        times = np.bincount(drawn.ravel(), minlength=n * by.size).reshape(n, by.size).astype(np.float64)
        ratios[start : start + n] = (times @ of.T) / (times @ by)[:, None]
    low, high = np.quantile(ratios, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def quantile(confidence: float) -> float:
    """Return z such that the normal distribution has the probability ``confidence`` between -z and z."""
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence must be between 0 and 1, got {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


class Agreement(NamedTuple):
    """How two raters ``a`` and ``b`` agree on which texts have a property.

    ``both``, ``only_a``, ``only_b`` and ``neither``: number of texts that have the property by these raters.
    """

    both: int
    only_a: int
    only_b: int
    neither: int

    @property
    def n(self) -> int:
        """Number of texts."""
        return sum(self)

    @property
    def share(self) -> float:
        """Share of the texts on which the raters agree, 0..1; 1 for no texts."""
        return (self.both + self.neither) / self.n if self.n else 1.0

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: agreement beyond chance, -1..1. 1 is full agreement; 0 is the agreement of chance.

        (share - chance) / (1 - chance), where chance is the share on which independent raters with these rates would
        agree. The result is None if both raters give all texts the same answer, so that chance explains everything.
        Source: Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20
        (1960).
        """
        n, a, b = self.n, self.both + self.only_a, self.both + self.only_b
        by_chance = a * b + (n - a) * (n - b)  # chance * n * n, which is exact
        return None if by_chance == n * n else (n * (self.both + self.neither) - by_chance) / (n * n - by_chance)


def agreement(a: Sequence[bool], b: Sequence[bool]) -> Agreement:
    """Return the agreement of two raters on the same texts, bool[n] each. Raises ValueError if the lengths differ."""
    if len(a) != len(b):
        raise ArgumentError(f"both must rate the same texts, got {len(a)} and {len(b)}")
    pairs = [(bool(x), bool(y)) for x, y in zip(a, b, strict=True)]
    return Agreement(*(pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))))
