"""The exact cost in nats of the tokens of a text, with and without edits of the logits.

A log-probability comes from the softmax at temperature 1 over the edited logits. Logits and edits are float32, as in
the sampler. Everything after that is float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import LzsError

Edits = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.float32]]
"""The edits of the logits at one position: token ids, factors and addends, as `Sampler.edits` returns them."""

_ROWS_AT_ONCE = 16  # rows of logits that are converted to float64 at a time
# The terms of edited tokens are subtracted from the sum of a row. If at least this share of the sum remains, the
# remainder is used. Its relative error is at most about 1e-9, because the relative error of the sum is about 1e-15. If
# less remains, the terms of the other tokens are summed directly.
_LEFT = 1e-6
_LEAST_MASS = 1e-290  # a smaller sum has lost digits, because its terms are close to the smallest float64
_MOST = np.finfo(np.float32).max


@dataclass(frozen=True)
class Given:
    """A batch: logits, the tokens that follow, and the cost of these tokens without edits.

    ``rows``: the logits, float32[n, n_vocab]. ``tokens``: for each row the token id that follows, int64[n]. ``top``:
    the largest logit of each row. ``total``: the sum of exp(logit - top) of each row. ``best``: the first choice of
    each row, the lowest token id with the largest logit. ``nats``: -log p of each token; +inf if its logit is -inf.
    ``first``: whether the token is the first choice.
    """

    rows: npt.NDArray[np.float32]
    tokens: npt.NDArray[np.int64]
    top: npt.NDArray[np.float64]
    total: npt.NDArray[np.float64]
    best: npt.NDArray[np.int64]
    nats: npt.NDArray[np.float64]
    first: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, rows: npt.NDArray[np.float32], tokens: npt.NDArray[np.int64]) -> "Given":
        """Return the batch for some logits and the tokens that follow. LzsError if a row has no largest logit."""
        best = rows.argmax(axis=1)
        at = np.arange(len(tokens))
        top = rows[at, best].astype(np.float64)
        if not np.isfinite(top).all():  # the largest logit of a row with NaN is NaN
            raise LzsError("the model failed: its logits are not numbers")
        total = np.empty(len(tokens))
        for start in range(0, len(tokens), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            total[some] = np.exp(rows[some] - top[some, None]).sum(axis=1)
        nats = (top + np.log(total)) - rows[at, tokens]
        return cls(rows, tokens, top, total, best, nats, best == tokens)


def edited(
    given: Given, edits: Sequence[Edits], *, sign_aware: bool = True
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return each token's cost after the edits of its position, and whether it is the first choice.

    ``edits``: the edits of each position. A token that an edit forbids costs +inf. A position without edits keeps the
    numbers of ``given`` to the last bit.
    """
    nats, first = given.nats.copy(), given.first.copy()
    counts = np.array([tokens.size for tokens, _, _ in edits])
    at = np.flatnonzero(counts)
    if not at.size:
        return nats, first
    sizes = counts[at]
    starts = np.cumsum(sizes) - sizes
    group = np.repeat(np.arange(at.size), sizes)  # for each edit, the index of its position in `at`
    changed = [each for each in edits if each[0].size]
    tokens = np.concatenate([each[0] for each in changed])
    old = given.rows[at[group], tokens]
    new = _applied(
        old, np.concatenate([each[1] for each in changed]), np.concatenate([each[2] for each in changed]), sign_aware
    )

    wanted = given.tokens[at]
    logit = given.rows[at, wanted]
    hit = np.flatnonzero(tokens == wanted[group])
    logit[group[hit]] = new[hit]

    highest = np.maximum.reduceat(new, starts)
    allowed = logit > -np.inf
    with np.errstate(invalid="ignore"):
        log_sums = _log_sums(given, at, group, starts, tokens, old, new, highest)
        nats[at] = np.where(allowed, log_sums - logit, np.inf)

    best_is_edited = np.zeros(at.size, np.bool_)
    best_is_edited[group[tokens == given.best[at][group]]] = True
    possible = allowed & (logit >= highest) & (best_is_edited | (logit >= given.top[at]))
    first[at] = False
    for i in np.flatnonzero(possible):
        mine = slice(starts[i], starts[i] + sizes[i])
        row = given.rows[at[i]].copy()
        row[tokens[mine]] = new[mine]
        first[at[i]] = row.argmax() == wanted[i]
    return nats, first


def _applied(
    x: npt.NDArray[np.float32], repeat: npt.NDArray[np.float32], bias: npt.NDArray[np.float32], sign_aware: bool
) -> npt.NDArray[np.float32]:
    """Return edited logits, with the same operations as `lzs_apply_edit` in C."""
    with np.errstate(over="ignore", invalid="ignore"):
        divides = (x > 0) | (not sign_aware)
        made = np.clip(np.where(divides, x / repeat, x * repeat) + bias, -_MOST, _MOST)
    made = np.where(np.isfinite(x), made, x)
    return np.where(bias == -np.inf, np.float32(-np.inf), made).astype(np.float32)


def _log_sums(
    given: Given,
    at: npt.NDArray[np.intp],
    group: npt.NDArray[np.intp],
    starts: npt.NDArray[np.intp],
    tokens: npt.NDArray[np.int32],
    old: npt.NDArray[np.float32],
    new: npt.NDArray[np.float32],
    highest: npt.NDArray[np.float32],
) -> npt.NDArray[np.float64]:
    """Return log sum exp of the edited rows. In the sums, new terms of edited tokens replace the old terms."""
    top, total = given.top[at], given.total[at]
    high = np.maximum(top, highest)
    rest = total - np.add.reduceat(np.exp(old - top[group]), starts)
    ends = np.append(starts[1:], tokens.size)
    for i in np.flatnonzero(rest < _LEFT * total):
        row = np.exp(given.rows[at[i]].astype(np.float64) - top[i])
        row[tokens[starts[i] : ends[i]]] = 0
        rest[i] = row.sum()
    mass = rest * np.exp(top - high) + np.add.reduceat(np.exp(new - high[group]), starts)
    for i in np.flatnonzero(mass < _LEAST_MASS):  # the remaining logits are far below the former maximum
        whole = given.rows[at[i]].astype(np.float64)
        whole[tokens[starts[i] : ends[i]]] = new[starts[i] : ends[i]]
        high[i] = whole.max()
        mass[i] = np.exp(whole - high[i]).sum() if high[i] > -np.inf else 0.0
    with np.errstate(divide="ignore"):
        log: npt.NDArray[np.float64] = high + np.log(mass)
    return log
