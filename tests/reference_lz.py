"""The LZ penalty as docs/penalties.md defines it, slowly: a part of reference.py, which has what it is for."""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Tokens = Sequence[int] | npt.NDArray[np.integer[Any]]


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
