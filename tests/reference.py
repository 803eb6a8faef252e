"""The twin of the C core, and the oracle of the tests: slow, obvious code in double precision.

It follows docs/penalties.md, and docs/determinism.md for the order of the steps and the truncation.

Only the random words and the uniforms made of them (the functions under "random numbers") mirror docs/determinism.md
bit for bit; they are what the words "the same seed gives the same token" mean. Everything else knows nothing of how
the core computes. The core works in float32, so where a comparison is closer than its rounding both answers are
right: `Row.agrees` and `Row.winners` accept either, and nothing but those. `determinism.py` is the twin that rounds as
the core does and accepts one answer.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lzsampler import Params
from reference_lz import Tokens, lz_bits, lz_prices

Floats = npt.NDArray[np.float64]

FLOAT_MAX = float(np.finfo(np.float32).max)
FLOAT_TINY = float(np.finfo(np.float32).tiny)


# ---- DRY ----


def dry_penalties(
    history: Tokens,
    multiplier: float,
    base: float,
    allowed_length: int,
    last_n: int,
    breakers: Collection[int] = frozenset(),
) -> dict[int, float]:
    """Return what DRY subtracts from the logit of each token, in the rules of p-e-w's PR 5677 and of llama.cpp.

    A token would extend a repetition of m tokens when it stands in the last `last_n` tokens (-1: anywhere) right after
    m >= 1 tokens that are also the last m of the text. Such a match lies inside the window, may overlap the end of the
    text, and holds no breaker. The longest match of a token counts, from `allowed_length` tokens on. Breakers
    themselves are never penalised.
    """
    if multiplier == 0 or base < 1 or last_n == 0:
        return {}
    h = [int(t) for t in history]
    h = h if last_n < 0 else h[-last_n:]
    longest: dict[int, int] = {}
    for i in range(1, len(h)):
        m = 0
        while m < i and h[i - 1 - m] == h[len(h) - 1 - m] and h[i - 1 - m] not in breakers:
            m += 1
        if m >= 1:
            longest[h[i]] = max(m, longest.get(h[i], 0))
    base, multiplier = float(np.float32(base)), float(np.float32(multiplier))
    most = int(math.log(FLOAT_MAX) / math.log(base)) if base > 1.000001 else FLOAT_MAX  # base**most is a finite float
    return {
        token: _finite(multiplier * base ** min(m - allowed_length, most))
        for token, m in longest.items()
        if m >= allowed_length and token not in breakers
    }


# ---- edits ----


class Edit(NamedTuple):
    """x -> (x > 0 ? x / repeat : x * repeat) + bias."""

    repeat: float
    bias: float


def edits(
    history: Tokens, n_vocab: int, p: Params, share: Callable[[int], float] = lambda token: 1.0
) -> dict[int, Edit]:
    """Return the edit of each token, folded: factors, then biases, then those of LZ, of DRY and of logit_bias.

    ``share``: of a token's bytes that a grammar leaves free, by which penalties are multiplied (structure.py).
    """
    tokens = [int(t) for t in history]
    out: dict[int, Edit] = {}
    assert p.repetition_penalty is not None  # a number, once made
    no_repetition = 1.0 if p.repetition_method == "multiplicative" else 0.0
    if p.repetition_penalty != no_repetition or p.frequency_penalty or p.presence_penalty:
        window = tokens[-p.penalty_window :] if p.penalty_window else tokens
        for t in set(window):
            count = window.count(t)
            repeat, bias = 1.0, 0.0
            if p.repetition_method == "multiplicative":
                repeat *= p.repetition_penalty
            else:
                bias -= p.repetition_penalty
            if p.frequency_penalty and p.frequency_method == "multiplicative":
                repeat *= _power(p.frequency_penalty, count)
            elif p.frequency_penalty:
                bias -= count * p.frequency_penalty
            if p.presence_penalty and p.presence_method == "multiplicative":
                repeat *= p.presence_penalty
            elif p.presence_penalty:
                bias -= p.presence_penalty
            out[t] = Edit(min(max(repeat, FLOAT_TINY), FLOAT_MAX), _finite(bias))
    for t, price in _lz_prices(tokens, n_vocab, p).items():
        before = out.get(t, Edit(1.0, 0.0))
        out[t] = Edit(before.repeat, _finite(before.bias - price))
    dry = dry_penalties(
        tokens, p.dry_multiplier, p.dry_base, p.dry_allowed_length, p.dry_penalty_last_n, set(p.dry_breakers)
    )
    for t, penalty in dry.items():
        before = out.get(t, Edit(1.0, 0.0))
        out[t] = Edit(before.repeat, _finite(before.bias - penalty))
    out = {t: _scaled(edit, share(t)) for t, edit in out.items() if t not in p.exempt}
    table: Any = p.logit_bias
    for t, bias in table:  # no penalty: it holds for exempt tokens too, and may forbid one
        before = out.get(t, Edit(1.0, 0.0))
        out[t] = Edit(before.repeat, -math.inf if bias == -math.inf else _finite(before.bias + bias))
    return out


def _lz_prices(tokens: Tokens, n_vocab: int, p: Params) -> dict[int, float]:
    if p.lz_rule == "default":
        return lz_prices(tokens, n_vocab, p)
    assert p.lz_window is not None
    assert p.lz_buffer is not None
    priced = lz_bits(tokens, n_vocab, p.lz_window, p.lz_buffer, p.lz_formula) if p.lz_penalty else {}
    return {t: p.lz_penalty * bits for t, bits in priced.items() if bits}


def _scaled(edit: Edit, share: float) -> Edit:
    return Edit(1 + share * (edit.repeat - 1), share * edit.bias)


def _power(base: float, n: int) -> float:
    try:
        return base**n
    except OverflowError:
        return math.inf


def _finite(x: float) -> float:
    return min(max(x, -FLOAT_MAX), FLOAT_MAX)


def apply_edit(edit: Edit, x: float, sign_aware: bool) -> float:
    """Return the edited logit. Infinite ones stay as they are and finite ones stay finite, but for a bias of -inf."""
    if edit.bias == -math.inf:
        return -math.inf
    if not math.isfinite(x):
        return x
    return _finite((x / edit.repeat if x > 0 or not sign_aware else x * edit.repeat) + edit.bias)


# ---- what stays ----


@dataclass(frozen=True)
class Row:
    """A row after penalties and mask, and what temperature and truncation leave of it.

    Every truncation keeps a prefix of one order, so what stays is a number: at least `low` and at most `high`
    tokens, which differ only where float32 rounding decides.
    """

    params: Params
    logits: Floats  # edited; -inf where masked
    groups: tuple[tuple[float, Edit | None], ...]  # raw logit and edit: tokens with both alike tie in any precision
    rounding: Floats  # what float32 may do to each edited logit

    @cached_property
    def order(self) -> list[int]:
        """Allowed tokens above -inf: logit descending, token id ascending."""
        return sorted(np.flatnonzero(self.logits > -math.inf).tolist(), key=lambda t: (-self.logits[t], t))

    @property
    def temperature(self) -> float:
        return self.params.temperature or 1.0

    def tie(self, a: int, b: int) -> bool:
        return self.groups[a] == self.groups[b]

    def near(self, a: int, b: int) -> bool:
        x, y = float(self.logits[a]), float(self.logits[b])
        return x == y or abs(x - y) <= self.rounding[a] + self.rounding[b]

    def bits_below_best(self, ids: Sequence[int], temperature: float) -> tuple[Floats, Floats]:
        """y = (max - x) log2(e) / T of some tokens, and what float32 may do to it."""
        scale = math.log2(math.e) / temperature
        x, best = self.logits[list(ids)], self.order[0]
        with np.errstate(invalid="ignore"):
            y = np.where(x == self.logits[best], 0.0, (self.logits[best] - x) * scale)
        slack = (self.rounding[list(ids)] + self.rounding[best]) * scale + np.where(np.isfinite(y), y, 0.0) * 5e-7
        return y, slack

    @cached_property
    def kept(self) -> tuple[int, int]:
        """(low, high): numbers of tokens that may stay."""
        p = self.params
        low = high = len(self.order)
        if p.temperature == 0:
            return 1, 1
        if 0 < p.top_k < len(self.order):
            low, high = self._with_ties(p.top_k, p.top_k)
        y, slack = self.bits_below_best(self.order, 1.0 if p.temperature_last else p.temperature)
        if p.top_p < 1:
            (low, _), (_, high) = self._top_p(y, slack, low), self._top_p(y, slack, high)
        if p.min_p > 0:
            limit = -math.log2(max(p.min_p, FLOAT_TINY))
            slack = slack + 5e-7 * limit
            equals_of_best = sum(self.tie(t, self.order[0]) for t in self.order)
            low = min(low, max(int(np.sum(y + slack < limit)), equals_of_best))
            high = min(high, int(np.sum(y - slack <= limit)))
        return low, high

    def _top_p(self, y: Floats, slack: Floats, n: int) -> tuple[int, int]:
        """The fewest tokens, at least one, that hold top_p of the weight of the first n."""
        weights = np.exp2(-y[:n])
        run = np.cumsum(weights)
        target = float(np.float32(self.params.top_p)) * run[-1]
        doubt = np.sum(weights * slack[:n]) + run[-1] * 5e-7 + n * 2.0**-31
        low = min(int(np.searchsorted(run, target - doubt)) + 1, n)
        high = min(int(np.searchsorted(run, target + doubt)) + 1, n)
        low, high = self._with_ties(low, high)
        return min(low, n), min(high, n)

    def _with_ties(self, low: int, high: int) -> tuple[int, int]:
        if self.params.ties == "cut":
            return low, high
        while low < len(self.order) and self.tie(self.order[low], self.order[low - 1]):
            low += 1
        high = max(low, high)
        while high < len(self.order) and self.near(self.order[high], self.order[high - 1]):
            high += 1
        return low, high

    def agrees(self, kept: Collection[int]) -> bool:
        """Is this a set of tokens that may stay: a prefix of the order, of a right length?"""
        low, high = self.kept
        inside = set(kept)
        if len(inside) != len(kept) or not low <= len(inside) <= high or not inside <= set(self.order):
            return False
        outside = [t for t in self.order if t not in inside]
        if not outside:
            return True
        worst, best = min(inside, key=lambda t: self.logits[t]), max(outside, key=lambda t: self.logits[t])
        if self.logits[worst] < self.logits[best] and not self.near(worst, best):
            return False
        last_kept = {self.groups[t]: t for t in sorted(inside)}
        if self.params.ties == "keep" and self.params.temperature > 0:
            return all(self.groups[t] not in last_kept for t in outside)
        return all(last_kept.get(self.groups[t], -1) < t for t in outside)

    def probabilities(self, kept: Sequence[int]) -> Floats:
        """Softmax over the tokens that stay."""
        x = self.logits[list(kept)]
        with np.errstate(invalid="ignore"):
            weights = np.where(x == x.max(), 1.0, np.exp((x - x.max()) / self.temperature))
        return np.asarray(weights / weights.sum(), np.float64)

    def winners(self, kept: Sequence[int], seed: int, position: int) -> list[int]:
        """Tokens that may win the race: the least score, and those as near to it as float32 can tell."""
        if self.params.temperature == 0:
            return list(kept)
        y, slack = self.bits_below_best(kept, self.temperature)
        scores = y + race_noise(np.asarray(kept), seed, position)
        slack = slack + 1e-5
        return [t for t, score in zip(kept, scores - slack, strict=True) if score <= np.min(scores + slack)]


def row(
    logits: npt.NDArray[np.float32],
    history: Tokens,
    p: Params,
    mask: npt.NDArray[np.uint32] | None = None,
) -> Row:
    """Return the row after penalties and mask. ``history``: what the penalties see."""
    n = len(logits)
    table = edits(history, n, p)
    edited, rounding = logits.astype(np.float64), np.zeros(n)
    products = 1 + len(history) if p.frequency_method == "multiplicative" else 1
    for t, edit in table.items():
        x = float(logits[t])
        edited[t] = apply_edit(edit, x, p.sign_aware)
        if math.isfinite(x) and math.isfinite(edit.bias):
            divided = abs(edited[t] - edit.bias)
            rounding[t] = 2e-7 * (divided * (2 + products) + 2 * abs(edit.bias) + p.lz_penalty * 4 * math.log2(n))
    if mask is not None:
        for t in range(n):
            if not int(mask[t // 32]) >> (t % 32) & 1:
                edited[t] = -math.inf
    groups = tuple((float(x) + 0.0, table.get(t)) for t, x in enumerate(logits))
    return Row(p, edited, groups, rounding)


# ---- loops ----


class Run(NamedTuple):
    start: int
    period: int
    copies: int


def loop_at_end(tokens: Sequence[int], max_pattern: int, min_pattern: int, min_count: int) -> Run | None:
    """Return the maximal run at the end of the tokens that the shortest pattern with `min_count` copies there makes."""
    for size in range(min_pattern, min(max_pattern, len(tokens) // min_count) + 1):
        pattern = list(tokens[-size:])
        if list(tokens[-size * min_count :]) == pattern * min_count:
            period = next(n for n in range(1, size + 1) if pattern[:n] * (size // n) == pattern)
            start = len(tokens) - period
            while start > 0 and tokens[start - 1] == tokens[start - 1 + period]:
                start -= 1
            return Run(start, period, (len(tokens) - start) // period)
    return None


def first_loop(tokens: Sequence[int], max_pattern: int, min_pattern: int, min_count: int) -> Run | None:
    """Return the first loop that the tokens, one after the other, come to end in."""
    ends = (loop_at_end(tokens[:n], max_pattern, min_pattern, min_count) for n in range(len(tokens) + 1))
    return next((loop for loop in ends if loop is not None), None)


class Stretch(NamedTuple):
    start: int
    end: int


def first_stuck(
    tokens: Sequence[int], threshold: int, ngram: int, min_count: int, weight: int, window: int
) -> Stretch | None:
    """Return where the tokens are first stuck: the CUSUM over what each beginning of them tells of their tokens."""
    old_ends: list[bool] = []  # of the n-gram that ends with each token
    for end in range(1, len(tokens) + 1):
        gram = list(tokens[end - ngram : end])
        earlier = range(max(ngram, end - window), end)
        old_ends.append(end >= ngram and sum(list(tokens[e - ngram : e]) == gram for e in earlier) >= min_count - 1)
        known = next((i + 1 for i in reversed(range(end)) if old_ends[i]), 0)  # those after it may become old yet
        score = start = 0
        for token in range(max(known, end - ngram + 1)):
            if any(old_ends[token : token + ngram]):
                start = start if score else token
                score += 1
            else:
                score = max(0, score - weight)
        if score >= threshold:
            return Stretch(start, end)
    return None


# ---- random numbers ----


def philox4x32(counter: npt.NDArray[np.uint64], key: tuple[int, int]) -> npt.NDArray[np.uint32]:
    """Philox4x32-10: counters uint64[n, 4] of 32-bit words and a key of two words -> uint32[n, 4]."""
    c0, c1, c2, c3 = (counter[:, i].astype(np.uint64) for i in range(4))
    k0, k1 = key
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (
            (b >> np.uint64(32)) ^ c1 ^ np.uint64(k0),
            b & low,
            (a >> np.uint64(32)) ^ c3 ^ np.uint64(k1),
            a & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)


# The last word of the counter: what the words are for.
TOKEN_DOMAIN, GROUP_DOMAIN, ACCEPTANCE_DOMAIN, RESIDUAL_DOMAIN, SEQUENCE_DOMAIN = range(5)


def words_at(numbers: npt.NDArray[np.int64], seed: int, position: int, domain: int) -> npt.NDArray[np.uint32]:
    """Return the random word of each number of a domain: four neighbouring numbers share one Philox call."""
    counter = np.zeros((len(numbers), 4), np.uint64)
    counter[:, 0] = numbers // 4
    counter[:, 1] = position & 0xFFFFFFFF
    counter[:, 2] = position >> 32
    counter[:, 3] = domain
    words: npt.NDArray[np.uint32] = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))
    return words[np.arange(len(numbers)), numbers % 4]


def uniforms(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.float32]:
    """Return (k + 1/2) / 2**bits, at most 1 - 2**-24, for the number k that the highest bits of each word make."""
    k = (words >> np.uint32(32 - bits)).astype(np.int32).astype(np.float32)
    return np.asarray(np.minimum((k + np.float32(0.5)) * np.float32(2.0**-bits), 1 - 2.0**-24), np.float32)


class Draws(NamedTuple):
    """The random numbers behind the noise of some tokens; the uniforms are float32 in (0, 1)."""

    holds: npt.NDArray[np.bool_]  # this token has its group's minimum
    group_uniform: npt.NDArray[np.float32]
    token_uniform: npt.NDArray[np.float32]


def draws(ids: npt.NDArray[Any], seed: int, position: int) -> Draws:
    """Return the random numbers of tokens: id t is member t % 64 of group t // 64."""
    ids = np.asarray(ids, np.int64)
    group_words = words_at(ids // 64, seed, position, GROUP_DOMAIN)
    token_words = words_at(ids, seed, position, TOKEN_DOMAIN)
    return Draws(group_words % 64 == ids % 64, uniforms(group_words, 26), uniforms(token_words, 31))


def race_noise(ids: npt.NDArray[Any], seed: int, position: int) -> Floats:
    """Return log2 E of each token, E exponential with P(E > x) = 2**-x: the minimum of its group, or that and its own.

    The least of 64 such variables is a 64th of one, any of the 64 may have it, and the others exceed it by as many
    variables of the same law.
    """
    drawn = draws(ids, seed, position)
    minimum = -np.log1p(-drawn.group_uniform.astype(np.float64)) / math.log(2) / 64
    own = -np.log1p(-drawn.token_uniform.astype(np.float64)) / math.log(2)
    return np.asarray(np.log2(np.where(drawn.holds, minimum, minimum + own)), np.float64)


def sequence_seed(seed: int, sequence: int) -> int:
    """Return the seed of one of the sequences that share a user's seed: 64 bits of Philox."""
    counter = np.array([[sequence & 0xFFFFFFFF, sequence >> 32, 0, SEQUENCE_DOMAIN]], np.uint64)
    low, high, *_ = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))[0].tolist()
    return int(high << 32 | low)


# ---- runs ----


class Repetition(NamedTuple):
    """A run of a text; in order of period, then start."""

    period: int
    start: int
    length: int


def runs(text: Sequence[int], min_copies: int, min_length: int, max_period: int = 0) -> list[Repetition]:
    """Return all runs: stretches between two places where the text differs from itself a period later.

    A stretch that repeats with a period does so with its multiples too: the shortest one is found first and counts.
    """
    n = len(text)
    found: dict[tuple[int, int], int] = {}
    for period in range(1, min(n // min_copies, max_period or n) + 1):
        differs = (i for i in range(n - period) if text[i] != text[i + period])
        for before, after in pairwise([-1, *differs, n - period]):
            start, length = before + 1, after - before - 1 + period
            if length >= min_copies * period and length >= min_length:
                found.setdefault((start, length), period)
    return sorted(Repetition(period, start, length) for (start, length), period in found.items())
