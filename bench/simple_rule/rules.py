"""The rules that were tried for a default penalty, in numpy: what a token costs, and which tokens are separators.

A match of a token is an earlier place that holds it. U is the number of tokens before that place that equal the last
ones of the text, D the distance. With L = min(U, tokens since the last separator) + 1 a token costs the most of

    k (log2 V - (log2(D + 1) + log2 L) / L)  if L >= m
    r (U + 1 - D - a)                        if that is positive

over its matches, in nats.

What varies is in `Rule`. The first term is that of the LZ penalty (arXiv 2504.20131) for long matches alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Costs = npt.NDArray[np.float64]
WINDOW = 2048
SENTENCE = ".,!?;'-\"\u2018\u2019\u201c\u201d"  # marks within and at the end of sentences
SEPARATORS = {"none": None, "all": "", "not .!?": ".!?", "not .,!?;'-\"": SENTENCE}
"""Which tokens without a letter are no separators: those of these marks alone. None: there are no separators."""


@dataclass(frozen=True)
class Rule:
    """Numbers of the formula, and what varies beside them."""

    m: int = 5
    k: float = 0.3
    a: int = 32
    r: float = 0.5
    separators: str = "not .,!?;'-\""
    words: bool = False  # L counts beginnings of words, and only such tokens are priced
    starts: bool = False  # only a token that begins a word is priced
    items: str = ""  # a token of these and other marks is a separator, too, less than m tokens after a separator


BASE = Rule()
RULES = {
    "none": replace(BASE, m=WINDOW + 1, r=0.0),
    "base": BASE,
    "not .!?": replace(BASE, separators="not .!?"),
    "all": replace(BASE, separators="all"),
    "items ,": replace(BASE, items=","),
    "items all": replace(BASE, items=SENTENCE),
    "m 4": replace(BASE, m=4),
    "words 3": replace(BASE, words=True, m=3),
    "a 16": replace(BASE, a=16),
    "a 64": replace(BASE, a=64),
    "a 128": replace(BASE, a=128),
    "starts": replace(BASE, starts=True),
    "items , a 128": replace(BASE, items=",", a=128),
    "guard": replace(BASE, m=WINDOW + 1, a=64),
}
"""One factor at a time, and the second term alone. "today" is the sampler itself: see write.py."""


@dataclass(frozen=True)
class Classes:
    """What the rules know of the tokens of a vocabulary, each (n_vocab) of bool."""

    letterless: npt.NDArray[np.bool_]
    start: npt.NDArray[np.bool_]  # of a word: white space, then a letter
    texts: tuple[str, ...]

    @classmethod
    def of(cls, pieces: Iterable[bytes]) -> "Classes":
        """Return the classes of tokens; a piece of a character counts as a letter."""
        texts = tuple(piece.decode("utf-8", "surrogateescape") for piece in pieces)
        letterless = [not any(c.isalpha() or "\udc80" <= c <= "\udcff" for c in text) for text in texts]
        start = [text[:1].isspace() and text[1:2].isalpha() for text in texts]
        return cls(np.array(letterless), np.array(start), texts)

    def items(self, marks: str) -> npt.NDArray[np.bool_]:
        """Return which tokens without a letter have one of these marks (n_vocab)."""
        has: npt.NDArray[np.bool_] = self.letterless & np.array([bool(set(text) & set(marks)) for text in self.texts])
        return has

    def separators(self, name: str) -> npt.NDArray[np.bool_]:
        """Return which tokens are separators (n_vocab)."""
        marks = SEPARATORS[name]
        if marks is None:
            return np.zeros(len(self.texts), bool)
        within = [bool(text.strip(" ")) and set(text.strip(" ")) <= set(marks) for text in self.texts]
        separators: npt.NDArray[np.bool_] = self.letterless & ~np.array(within)
        return separators


class State:
    """A text, and what its next tokens cost by a rule."""

    def __init__(self, rule: Rule, classes: Classes) -> None:
        self._rule, self._classes = rule, classes
        self._separators = classes.separators(rule.separators)
        self._items = classes.items(rule.items)
        self._log2_vocab = float(np.log2(len(classes.texts)))
        self._tokens, self._equal = np.zeros(4096, np.int64), np.zeros(4096, np.int64)
        self._starts = np.zeros(4097, np.int64)  # words begun in the first so many tokens
        self._n = self._since = 0

    def accept(self, token: int) -> None:
        """Take a token into the text."""
        n = self._n
        if n + 1 == self._tokens.size:
            self._tokens = np.concatenate([self._tokens, np.zeros_like(self._tokens)])
            self._equal = np.concatenate([self._equal, np.zeros_like(self._equal)])
            self._starts = np.concatenate([self._starts, np.zeros_like(self._tokens)])
        self._equal[1 : n + 1] = np.where(self._tokens[:n] == token, self._equal[:n] + 1, 0)
        self._tokens[n] = token
        self._starts[n + 1] = self._starts[n] + self._classes.start[token]
        self._n = n + 1
        ends_item = self._items[token] and self._since + 1 < self._rule.m
        self._since = 0 if self._separators[token] or ends_item else self._since + 1

    def costs(self) -> tuple[Ids, Costs]:
        """Return the tokens that cost something, and what, in nats."""
        first, rule = max(0, self._n - WINDOW), self._rule
        tokens, equal = self._tokens[first : self._n], self._equal[first : self._n]
        distance = self._n - np.arange(first, self._n)
        unbroken = np.minimum(equal, self._since)
        length = unbroken + 1
        if rule.words:
            length = self._starts[self._n] - self._starts[self._n - unbroken] + 1
        counts = length >= rule.m
        if rule.words or rule.starts:
            counts &= self._classes.start[tokens]
        length, near = length[counts].astype(float), distance[counts]
        bits = self._log2_vocab - np.minimum((np.log2(near + 1) + np.log2(length)) / length, self._log2_vocab)
        run = equal + 1 - distance - rule.a
        long = run > 0
        which = np.concatenate([tokens[counts], tokens[long]])
        costs = np.concatenate([rule.k * bits, rule.r * run[long]])
        order = np.lexsort((-costs, which))
        unique, at = np.unique(which[order], return_index=True)
        return unique, costs[order][at]
