"""The LZ penalty as docs/penalties.md defines it, slowly: a part of reference.py, which has what it is for."""

import math
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lzsampler import Params

Tokens = Sequence[int] | npt.NDArray[np.integer[Any]]

MAX_MATCH = 65535  # longer matches count as this


class Match(NamedTuple):
    """A position of the window that holds a token: L(i) = U(i) + 1 and D(i) = w - i."""

    length: int
    distance: int


# ---- the paper's rule ----


def lz_matches(history: Tokens, window: int, buffer: int) -> dict[int, list[Match]]:
    """Return every match of every token of the window that has a whole buffer before it, the furthest first."""
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


def lz_costs(history: Tokens, window: int, buffer: int, formula: str) -> dict[int, float]:
    """Return cost(t) in bits, not clamped, of each token of the window (docs/penalties.md)."""
    matches = lz_matches(history, window, buffer)
    if formula == "rate":
        return {t: min(rate_cost(m) for m in ms) for t, ms in matches.items()}
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


def rate_cost(match: Match) -> float:
    """Return the bits that a match takes for each of its tokens."""
    return (math.log2(match.distance + 1) + math.log2(match.length)) / match.length


def lz_bits(history: Tokens, n_vocab: int, window: int, buffer: int, formula: str) -> dict[int, float]:
    """Return bits(t) = log2 V - clamp(cost) of each token of the window, zeros too."""
    v = math.log2(n_vocab)
    bits = {}
    for token, cost in lz_costs(history, window, buffer, formula).items():
        low = -math.inf if formula == "codelength" else 0.0
        bits[token] = v - min(max(cost, low), v)
    return bits


# ---- the default rule ----


# ---- separators ----

SENTENCE_MARKS = frozenset(".,!?;'-\"‘’‚“”„«»¿¡。．｡，、！？；「」『』،؛؟۔।॥։՞።፣၊။")
COMMAS = frozenset(",，、،")


def is_letter(character: str) -> bool:
    """Return whether a character is a letter in Unicode, or a mark that belongs to a letter, such as a Hindi vowel.

    U+FFFD counts as a letter: it stands for a piece of a character.
    """
    return unicodedata.category(character)[0] in "LM" or character == "\ufffd"


def is_separator(text: str) -> bool:
    """Return whether a token with this text is a separator everywhere."""
    within = text.strip(" ")
    return not any(map(is_letter, text)) and not (within and SENTENCE_MARKS.issuperset(within))


def is_comma(text: str) -> bool:
    """Return whether a token with this text is a separator after the short items of a list."""
    return not COMMAS.isdisjoint(text) and not any(map(is_letter, text))


def tokens_in(bits: bytes) -> set[int]:
    """Return the tokens of a bit set of `Params`."""
    return {8 * byte + bit for byte, value in enumerate(bits) for bit in range(8) if value >> bit & 1}


def tokens_since_separator(
    history: Tokens, min_match: int, separators: Collection[int] = (), commas: Collection[int] = ()
) -> int:
    """Return how many tokens have come since the last separator, or since the beginning.

    A comma is a separator, too, while fewer than ``min_match`` tokens, itself included, have come since the last one.
    """
    since = 0
    for token in (int(t) for t in history):
        since += 1
        if token in separators or (token in commas and since < min_match):
            since = 0
    return since


def lz_prices(history: Tokens, n_vocab: int, p: Params) -> dict[int, float]:
    """Return what the default rule subtracts from the logit of each token, where that is more than nothing.

    The most that one of its earlier places costs: k (log2 V - cost) of what would be said again since the last
    separator, in ``lz_min_match`` tokens or more, or r for each token beyond the allowance by which the text copies
    itself.
    """
    h = [int(t) for t in history]
    assert p.lz_window is not None  # a number, once made
    unbroken = tokens_since_separator(h, p.lz_min_match, tokens_in(p.lz_separators), tokens_in(p.lz_commas))
    prices: dict[int, float] = {}
    for distance in range(1, min(p.lz_window, len(h)) + 1):
        place = len(h) - distance
        same = 0  # U: what lies before the place may lie before the window
        while same < min(p.lz_window, MAX_MATCH, place) and h[place - 1 - same] == h[-1 - same]:
            same += 1
        again = Match(min(same, unbroken) + 1, distance)
        said = max(0.0, math.log2(n_vocab) - rate_cost(again)) if again.length >= p.lz_min_match else 0.0
        beyond = max(0, same + 1 - distance - p.lz_run_allowance)
        price = max(p.lz_penalty * said, p.lz_run_penalty * beyond)
        if price > prices.get(h[place], 0.0):
            prices[h[place]] = price
    return prices


# ---- the code of the paper ----


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
