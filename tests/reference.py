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

Tokens = Sequence[int] | npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]

FLOAT_MAX = float(np.finfo(np.float32).max)
FLOAT_TINY = float(np.finfo(np.float32).tiny)


# ---- the LZ penalty ----


class Match(NamedTuple):
    """A position of the window that holds a token: L(i) = U(i) + 1 and D(i) = w - i."""

    length: int
    distance: int


def lz_matches(
    history: Tokens,
    window: int,
    buffer: int,
    min_match: int = 1,
    breakers: Collection[int] = (),
    marks: Collection[int] = (),
) -> dict[int, list[Match]]:
    """Return every match of every token of the window that has a whole buffer before it, the furthest first.

    With a ``min_match`` above 1 those that count, wherever in the window: see `long_matches`.
    """
    if min_match > 1:
        return long_matches([int(t) for t in history], window, buffer, min_match, breakers, marks)
    h = np.asarray(history, np.int64)[-window:]
    w = len(h)
    if w <= buffer:
        return {}
    common = np.zeros(w, np.int64)  # U(i): tokens, at most the buffer, by which the ends at i - 1 and w - 1 agree
    agreeing = np.arange(buffer, w)
    for u in range(buffer):
        agreeing = agreeing[h[agreeing - 1 - u] == h[w - 1 - u]]
        if not agreeing.size:
            break
        common[agreeing] += 1
    matches: dict[int, list[Match]] = {}
    for i in range(buffer, w):
        matches.setdefault(int(h[i]), []).append(Match(int(common[i]) + 1, w - i))
    return matches


def long_matches(
    h: Sequence[int], window: int, buffer: int, min_match: int, breakers: Collection[int], marks: Collection[int]
) -> dict[int, list[Match]]:
    """Return the matches that count, the furthest first.

    The tokens before a match are the last ones of the history, at most ``buffer`` of them, which may lie before the
    window. They end behind the last breaker, unless they cover the distance of the match.
    """
    matches: dict[int, list[Match]] = {}
    for i in range(max(0, len(h) - window), len(h)):
        distance = len(h) - i
        same = 0
        while same < min(buffer, i) and h[i - 1 - same] == h[-1 - same]:
            same += 1
        if same < distance:
            broken = [k for k in range(same) if h[-1 - k] in breakers]
            same = min([same, *broken])
        matches.setdefault(h[i], []).append(Match(same + 1, distance))
    counting = {}
    for token, ms in matches.items():
        dense = marks and token not in marks and sum(m.distance <= 64 for m in ms) >= 16
        least = 1 if dense else min_match - (is_plain(h, breakers) and comes_often(ms, min_match))
        counting[token] = [m for m in ms if m.length >= least]
    return {token: ms for token, ms in counting.items() if ms}


def is_plain(history: Tokens, breakers: Collection[int]) -> bool:
    """Return whether fewer than 20 of the last 64 tokens are breakers, as in text that is no table and no record."""
    return sum(int(t) in breakers for t in history[-64:]) < 20


def comes_often(matches: Sequence[Match], min_match: int) -> bool:
    """Return whether matches of one token less count: where there are 5 of that length or more in the last 512."""
    return min_match > 2 and sum(m.length >= min_match - 1 and m.distance <= 512 for m in matches) >= 5


def lz_costs(
    history: Tokens,
    window: int,
    buffer: int,
    formula: str,
    min_match: int = 1,
    breakers: Collection[int] = (),
    marks: Collection[int] = (),
) -> dict[int, float]:
    """Return cost(t) in bits, not clamped, of each token of the window (docs/penalties.md)."""
    matches = lz_matches(history, window, buffer, min_match, breakers, marks)
    if formula == "rate":
        return {t: min((math.log2(m.distance + 1) + math.log2(m.length)) / m.length for m in ms)
                for t, ms in matches.items()}  # fmt: skip
    best = {t: max(ms, key=lambda m: (m.length, -m.distance)) for t, ms in matches.items()}  # the nearest of equals
    if formula == "distance":
        return {t: math.log2(m.distance) for t, m in best.items()}
    every = [m for ms in matches.values() for m in ms]
    longest = max((m.length - 1 for m in every), default=0)  # l: the longest match of the buffer, d: where
    d = min((m.distance for m in every if m.length - 1 == longest), default=0)
    costs = {}
    for t, ms in matches.items():
        if longest > 0 and best[t].length == longest + 1:
            costs[t] = math.log2((longest + 1) * best[t].distance / (longest * d)) - 1
        else:
            costs[t] = math.log2(min(m.distance for m in ms))
    return costs


def lz_bits(
    history: Tokens,
    n_vocab: int,
    window: int,
    buffer: int,
    formula: str,
    min_match: int = 1,
    breakers: Collection[int] = (),
    marks: Collection[int] = (),
) -> dict[int, float]:
    """Return bits(t) = log2 V - clamp(cost) of each token of the window, zeros too."""
    v = math.log2(n_vocab)
    bits = {}
    for token, cost in lz_costs(history, window, buffer, formula, min_match, breakers, marks).items():
        low = -math.inf if formula == "codelength" else 0.0
        bits[token] = v - min(max(cost, low), v)
    return bits


def lz_prices(
    history: Tokens,
    n_vocab: int,
    window: int,
    buffer: int,
    formula: str,
    min_match: int = 1,
    breakers: Collection[int] = (),
    numbers: Collection[int] = (),
    marks: Collection[int] = (),
) -> dict[int, float]:
    """Return what each token costs at strength 1: its bits, many times where it came again and again.

    By a twelfth of its matches in the last 512 tokens, or by a quarter of the copies in a row of a loop, whichever is
    most, from 1 to 8 times; in plain text also by the square of a twentieth of the matches, and by half of the copies
    where one has three tokens that are no breakers. One of ``numbers`` costs nothing where it has a single match in the
    whole window, which does not cover its own distance. With a ``min_match`` of 1 every token costs its bits once.
    """
    bits = lz_bits(history, n_vocab, window, buffer, formula, min_match, breakers, marks)
    if min_match == 1:
        return bits
    prices = {}
    for token, ms in lz_matches(history, window, buffer, min_match, breakers, marks).items():
        near = sum(m.distance <= 512 for m in ms)
        often = max(near / 12, (near / 20) ** 2 if is_plain(history, breakers) else 0.0)
        loop = max((copies(history, m, breakers) for m in ms if m.length > m.distance), default=0.0) / 4
        prices[token] = bits[token] * min(max(1.0, often, loop), 8.0)
        if token in numbers and len(ms) == 1 and ms[0].length <= ms[0].distance:
            prices[token] = 0.0
    return prices


def copies(history: Tokens, match: Match, breakers: Collection[int]) -> float:
    """Return the copies in a row of a match that covers its own distance, twice as many where they have words."""
    words = [t for t in [int(t) for t in history][-match.distance :] if t not in breakers]
    return match.length / match.distance * (2 if len(words) >= 3 and is_plain(history, breakers) else 1)


def code_length_costs(history: Tokens, n_vocab: int, window: int, buffer: int) -> dict[int, float]:
    """Return cost(t) = |C(buffer + t)| - |C(buffer)| - 1 from the code itself, for the formula "codelength".

    The code is that of Propositions 1 and 2 of the paper: a phrase (length, distance) takes
    1 + log2 length + log2 distance bits, a literal 1 + log2 V. Before t the buffer ends in the longest phrase that
    stands earlier in the window, copied from the nearest place. t makes that phrase one longer, from the nearest place
    where the longer one stands, or else begins a phrase of one token, or is a literal where that is cheaper. A place
    is one whose next token has a whole buffer before it. Strings are compared as strings: nothing is shared with
    `lz_matches`.
    """
    h = tuple(int(t) for t in history)[-window:]
    w = len(h)
    if w <= buffer:
        return {}

    def phrase(length: int, distance: int) -> float:
        return 1 + math.log2(length) + math.log2(distance)

    def nearest(text: tuple[int, ...], following: int | None) -> int | None:
        """Return the least distance at which `text` stands, followed by a certain token or by any."""
        for i in range(w - 1, buffer - 1, -1):
            if h[i - len(text) : i] == text and following in (None, h[i]):
                return w - i
        return None

    suffix: tuple[int, ...] = ()
    last_phrase = 0.0
    for length in range(buffer, 0, -1):
        place = nearest(h[w - length :], None)
        if place is not None:
            suffix, last_phrase = h[w - length :], phrase(length, place)
            break
    literal = 1 + math.log2(n_vocab)
    costs = {}
    for t in set(h[buffer:]):
        extended = nearest(suffix, t) if suffix else None
        alone = nearest((), t)
        assert alone is not None
        added = phrase(1, alone) if extended is None else phrase(len(suffix) + 1, extended) - last_phrase
        costs[t] = min(added, literal) - 1
    return costs


def code_length(tokens: Tokens, n_vocab: int, window: int, buffer: int) -> float:
    """Return the bits of tokens under the compressor of Definition 8 of the paper, phrase by phrase.

    At each place the longest phrase of at most ``buffer`` tokens that stands earlier, too, from 1 to ``window`` back,
    from the nearest such place, which it may overlap (Proposition 1); else a literal (Proposition 2).
    """
    h = [int(t) for t in tokens]
    at, bits = 0, 0.0
    while at < len(h):
        length, distance = 0, 0
        for d in range(1, min(window, at) + 1):
            same = 0
            while same < buffer and at + same < len(h) and h[at + same] == h[at + same - d]:
                same += 1
            if same > length:
                length, distance = same, d
        bits += 1 + (math.log2(length) + math.log2(distance) if length else math.log2(n_vocab))
        at += max(length, 1)
    return bits


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
    assert p.lz_window is not None
    assert p.lz_buffer is not None
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
    if p.lz_penalty:
        shape = p.lz_window, p.lz_buffer, p.lz_formula, p.lz_min_match
        priced = lz_prices(tokens, n_vocab, *shape, set(p.lz_breakers), set(p.lz_numbers), set(p.lz_marks))
        for t, bits in priced.items():
            if bits:
                before = out.get(t, Edit(1.0, 0.0))
                out[t] = Edit(before.repeat, _finite(before.bias - p.lz_penalty * bits))
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
