"""The twin of docs/determinism.md in single precision: every operation of the specification, rounded as it says.

numpy rounds each float32 operation on its own, without fused multiply-adds, so the results are those that every
backend must have, bit for bit. The vectors of tests/vectors/determinism.json come from here, and not from the C
library. The random words and uniforms are those of `reference`, which mirrors them as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

import reference

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

FLOAT_MAX = np.float32(np.finfo(np.float32).max)
FLOAT_TINY = np.float32(np.finfo(np.float32).tiny)  # the least normal float
LOG2_E = np.float32(float.fromhex("0x1.715476p+0"))

# Coefficients, the highest power first.
LOG2_1P = [
    "0x1.9f4d50p-3", "-0x1.c71be4p-3", "0x1.9d492ep-3", "-0x1.e4f056p-3", "0x1.27a3eep-2", "-0x1.7172d2p-2",
    "0x1.ec6ffep-2", "-0x1.715456p-1", "0x1.715476p+0",
]  # fmt: skip
WEIGHT_TABLE = [
    "0x1.e16d76p+20", "0x1.cd0442p+20", "0x1.b97896p+20", "0x1.a6c10ep+20", "0x1.94d4aap+20", "0x1.83aad0p+20",
    "0x1.733b3ep+20", "0x1.637e0ep+20", "0x1.546bb2p+20", "0x1.45fcecp+20", "0x1.382acap+20", "0x1.2aeeaap+20",
    "0x1.1e4230p+20", "0x1.121f44p+20", "0x1.068010p+20", "0x1.f6be00p+19",
]  # fmt: skip
EXP2 = [
    "0x1.41fbbap-13", "0x1.5f3e54p-10", "0x1.3b2d4cp-7", "0x1.c6aee8p-5", "0x1.ebfbdcp-3", "0x1.62e430p-1", "0x1p+0",
]  # fmt: skip
WEIGHT_ORIGIN, WEIGHT_LEAST = "0x1.795cc8p+4", "0x1.0a624cp+9"


class NothingAllowedError(ValueError):
    """Every logit is -inf or masked."""


# ---- functions ----


def single(values: Any) -> Singles:
    return np.asarray(values, np.float32)


def horner(coefficients: Sequence[str], x: Singles) -> Singles:
    """Evaluate a polynomial: a multiplication and an addition for each coefficient after the first, each rounded."""
    value = np.full_like(x, np.float32(float.fromhex(coefficients[0])))
    for coefficient in coefficients[1:]:
        value = value * x
        value = value + np.float32(float.fromhex(coefficient))
    return value


def log2_1p(x: Singles) -> Singles:
    """log2(1 + x) for x in [-1/3, 1/3]."""
    return horner(LOG2_1P, x) * x


def log2(v: Singles) -> Singles:
    """log2 v for normal floats above 0: v = m 2**e with m in [2/3, 4/3)."""
    bits = v.view(np.uint32)
    e = (bits - np.uint32(0x3F2AAAAB)).view(np.int32) >> 23
    m = (bits - (e.view(np.uint32) << np.uint32(23))).view(np.float32)
    return e.astype(np.float32) + log2_1p(m - np.float32(1))


def exponential(v: Singles) -> Singles:
    """-log2(1 - v) for v in (0, 1 - 2**-24]."""
    small = v < np.float32(float.fromhex("0x1.555554p-2"))
    one = np.float32(1)
    return -np.where(
        small, log2_1p(np.where(small, -v, np.float32(0))), log2(one - np.where(small, np.float32(0.5), v))
    )


def weight(y: Singles) -> npt.NDArray[np.uint64]:
    """About 2**31 * 2**-y, rounded down, for y >= 0; 0 from y = 31 on."""
    with np.errstate(over="ignore"):
        sixteenths = y * np.float32(16)
    inside = sixteenths < np.float32(496)
    s = np.where(inside, sixteenths, np.float32(0))
    m = s.astype(np.uint32)
    d = (s - m.astype(np.float32)) - np.float32(float.fromhex(WEIGHT_ORIGIN))
    table = single([float.fromhex(value) for value in WEIGHT_TABLE])
    v = (d * d + np.float32(float.fromhex(WEIGHT_LEAST))) * table[m & 15]
    return np.where(inside, v.astype(np.uint32) >> (m >> 4), np.uint32(0)).astype(np.uint64)


def exp2_half(g: Singles) -> Singles:
    """2**g for g in [-1/2, 1/2]."""
    return horner(EXP2, g)


def exp2_negative(y: Singles) -> Doubles:
    """2**-y as doubles, for y >= 0; 0 from y = 125.5 on."""
    inside = y < np.float32(125.5)
    y = np.where(inside, y, np.float32(0))
    n = (y + np.float32(0.5)).astype(np.uint32)
    return np.where(inside, exp2_half(n.astype(np.float32) - y).astype(np.float64) * 2.0 ** -n.astype(np.float64), 0.0)


# ---- noise ----


def group_minimum(words: npt.NDArray[np.uint32]) -> Singles:
    return exponential(reference.uniforms(words, 26)) * np.float32(2.0**-6)


def token_noise(ids: npt.NDArray[Any], seed: int, position: int) -> Singles:
    """Return the noise E of tokens, float32 above 0."""
    drawn = reference.draws(ids, seed, position)
    minimum = exponential(drawn.group_uniform) * np.float32(2.0**-6)
    return np.where(drawn.holds, minimum, minimum + exponential(drawn.token_uniform))


# ---- the pick ----


class Edit(NamedTuple):
    """x -> (x > 0 ? x / repeat : x * repeat) + bias, for one token; a bias of -inf forbids it."""

    token: int
    repeat: float
    bias: float


@dataclass(frozen=True)
class Plan:
    """What is done to a row besides its logits. Real numbers are singles; mask: words of 32 tokens, or all allowed."""

    edits: tuple[Edit, ...] = ()
    mask: tuple[int, ...] | None = None
    sign_aware: bool = True
    temperature: float = 1.0
    temperature_last: bool = False
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    ties: Literal["cut", "keep"] = "cut"
    seed: int = 0
    position: int = 0


class Picked(NamedTuple):
    """The ids that truncation keeps, the best first; of each its y and its score; the token that wins."""

    kept: Ids
    y: Singles
    scores: Singles
    token: int


def edited(logits: Singles, edits: Sequence[Edit], sign_aware: bool = True) -> Singles:
    out = logits.copy()
    for edit in edits:
        x, repeat = logits[edit.token], np.float32(edit.repeat)
        if edit.bias == -np.inf:
            out[edit.token] = -np.inf
        elif np.isfinite(x):
            with np.errstate(over="ignore", under="ignore"):
                x = (x / repeat if x > 0 or not sign_aware else x * repeat) + np.float32(edit.bias)
            out[edit.token] = np.clip(x, -FLOAT_MAX, FLOAT_MAX)
    return out


def bits_below(x: Singles, best: np.float32, temperature: float) -> Singles:
    """y = (best - x) * (log2 e / T), and 0 where x is the best."""
    scale = LOG2_E / np.float32(temperature)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return np.where(x == best, np.float32(0), (best - x) * scale)


def top_p_target(top_p: float, total: int) -> int:
    p32 = int(float(np.float32(top_p)) * 2.0**32 + 0.5)
    return max(1, -(-p32 * total // 2**32))


def kept(logits: Singles, plan: Plan) -> tuple[Ids, Singles]:
    """Return the ids that stay of logits float32[n], the best first, and the y of each.

    ValueError when an allowed logit is NaN or, as a subclass, none is allowed.
    """
    x = edited(single(logits), plan.edits, plan.sign_aware)
    allowed = np.ones(len(x), bool)
    if plan.mask is not None:
        allowed[:] = [plan.mask[i // 32] >> i % 32 & 1 for i in range(len(x))]
    if np.isnan(x[allowed]).any():
        raise ValueError("an allowed logit is NaN")
    order = np.flatnonzero(allowed & (x > -np.inf))
    if not len(order):
        raise NothingAllowedError("every logit is -inf or masked")
    order = order[np.lexsort((order, -x[order]))]  # logit descending, id ascending; -0 == +0
    best = x[order[0]]
    if plan.temperature == 0:
        return order[:1], single([0])

    def shortened(n: int) -> Ids:
        while plan.ties == "keep" and n < len(order) and x[order[n]] == x[order[n - 1]]:
            n += 1
        return order[:n]

    truncation_temperature = 1.0 if plan.temperature_last else plan.temperature
    if 0 < plan.top_k < len(order):
        order = shortened(plan.top_k)
    if plan.top_p < 1:
        running = np.cumsum(weight(bits_below(x[order], best, truncation_temperature)))
        order = shortened(int(np.searchsorted(running, top_p_target(plan.top_p, int(running[-1])))) + 1)
    if plan.min_p > 0:
        limit = -log2(single([max(np.float32(plan.min_p), FLOAT_TINY)]))[0]
        order = order[bits_below(x[order], best, truncation_temperature) <= limit]
    return order, bits_below(x[order], best, plan.temperature)


def pick(logits: Singles, plan: Plan) -> Picked:
    """Pick a token of logits float32[n]. Raises as `kept`."""
    order, y = kept(logits, plan)
    if plan.temperature == 0:
        return Picked(order, y, y, int(order[0]))
    scores = y + log2(token_noise(order, plan.seed, plan.position))
    winner = np.lexsort((order, scores))[0]
    return Picked(order, y, scores, int(order[winner]))


# ---- the verification of drafts by rejection sampling ----


def uniform(seed: int, position: int, domain: int) -> float:
    """Return the number in [0, 1) that a position has in the domain of acceptance or in that of the residual."""
    low, high = reference.words_at(np.array([0, 1]), seed, position, domain).tolist()
    return float((high << 32 | low) >> 11) * 2.0**-53


def distribution(ids: Ids, y: Singles) -> dict[int, float]:
    """Return the probabilities, singles, of the ids that stay, in ascending order."""
    by_id = np.argsort(ids)
    weights = exp2_negative(y[by_id]).tolist()
    total = 0.0
    for weight in weights:
        total += weight
    shares = np.asarray(weights, np.float32).astype(np.float64) / total
    return dict(zip(ids[by_id].tolist(), shares.astype(np.float32).tolist(), strict=True))


def draw_excess(p: dict[int, float], q: dict[int, float], u: float) -> int | None:
    """Draw from the excess of p over q; None where there is none."""
    excess = {t: p[t] - q.get(t, 0.0) for t in p if p[t] > q.get(t, 0.0)}
    total = run = 0.0
    for value in excess.values():
        total += value
    token = None
    for token, value in excess.items():  # noqa: B007
        run += value
        if run > u * total:
            break
    return token


def accepted(p: dict[int, float], q: dict[int, float], drafted: int, seed: int, position: int) -> bool:
    """Return whether a token that was drawn from q stands."""
    return uniform(seed, position, reference.ACCEPTANCE_DOMAIN) * q.get(drafted, 0.0) < p.get(drafted, 0.0)


def verified(p: dict[int, float], q: dict[int, float], drafted: int, seed: int, position: int) -> int:
    """Return the token at a position, of the distribution p, given one that was drawn from q."""
    if accepted(p, q, drafted, seed, position):
        return drafted
    u = uniform(seed, position, reference.RESIDUAL_DOMAIN)
    token = draw_excess(p, q, u)
    if token is None:
        token = draw_excess(p, {}, u)
    assert token is not None
    return token
