"""Statistics of an audit: intervals of rates."""

from math import sqrt
from statistics import NormalDist


def wilson(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval (Wilson 1927) of a rate, both ends in 0..1; 0..1 for ``n`` = 0.

    ``confidence`` in (0, 1). ValueError unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be from 0 to n = {n}, got {successes}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate, weight = successes / n, z * z / n
    middle = (rate + weight / 2) / (1 + weight)
    half = z * sqrt(rate * (1 - rate) / n + weight / (4 * n)) / (1 + weight)
    # The ends are exactly 0 and 1 there; rounding must not put them beyond.
    return (0.0 if successes == 0 else middle - half), (1.0 if successes == n else middle + half)
