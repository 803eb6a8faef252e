"""When tokens count as a loop or as stuck, `RepetitionDetection` and `StuckDetection`, and what is found."""

from dataclasses import dataclass

from ._ffi import lib
from ._values import integer
from .errors import ArgumentError

MAX_WINDOW: int = lib.LZS_MAX_WINDOW
_MAX_NGRAM = 64


@dataclass(frozen=True)
class RepetitionDetection:
    """When a text counts as a loop: its last tokens are ``min_count`` copies of one pattern. The names are vLLM's.

    ``max_pattern_size`` and ``min_pattern_size``: of the pattern, tokens; a ``max_pattern_size`` of 0 is off, a
    ``min_pattern_size`` of 0 means 1. ``min_count``: at least 2; that many of the longest pattern are at most 131072
    tokens. A pattern may be copies of a shorter one: with a ``min_pattern_size`` of 4 and a ``min_count`` of 2,
    "abababab" is a loop as "abab" twice, and found as "ab" 4 times. Raises ValueError with the value.
    """

    max_pattern_size: int = 0
    min_pattern_size: int = 0
    min_count: int = 0

    def __post_init__(self) -> None:
        longest = integer("max_pattern_size", self.max_pattern_size, 0, MAX_WINDOW // 2)
        shortest = integer("min_pattern_size", self.min_pattern_size, 0, MAX_WINDOW // 2) or 1
        count = integer("min_count", self.min_count, 2 if longest else 0, MAX_WINDOW)
        if shortest > max(longest, 1):
            raise ArgumentError(f"min_pattern_size must be at most max_pattern_size ({longest}), got {shortest}")
        if longest * count > MAX_WINDOW:
            raise ArgumentError(
                f"max_pattern_size * min_count must be at most {MAX_WINDOW} tokens, got {longest} * {count}"
            )
        for field, value in (("max_pattern_size", longest), ("min_pattern_size", shortest), ("min_count", count)):
            object.__setattr__(self, field, value)


# 8 copies of up to 512 tokens, and at least 64 tokens in all, so that rulers, rows of table cells and long numbers are
# not taken for loops: docs/loops.md has the figures.
STOP_ON_LOOP = RepetitionDetection(max_pattern_size=512, min_pattern_size=8, min_count=8)


@dataclass(frozen=True)
class StuckDetection:
    """When a text counts as stuck: for a long stretch nearly all that it says was said several times before.

    An n-gram of ``ngram_size`` tokens (1..64) is old when it occurs for the ``min_count``-th time (2..131072) or more
    within the last ``window`` tokens (1..131072); a token is old when an old n-gram contains it. Token by token, a
    score rises by 1 for each old one and falls by ``weight`` (0..131072), to 0 at least, for each new one. The text is
    stuck when the score reaches ``threshold`` (0..131072; 0 is off). So copies may differ in a few words or in a number
    that counts up, which no search for a period finds. Raises ValueError with the value. docs/loops.md.
    """

    threshold: int = 0
    ngram_size: int = 12
    min_count: int = 3
    weight: int = 4
    window: int = 4096

    def __post_init__(self) -> None:
        for field, low, high in (
            ("threshold", 0, MAX_WINDOW),
            ("ngram_size", 1, _MAX_NGRAM),
            ("min_count", 2, MAX_WINDOW),
            ("weight", 0, MAX_WINDOW),
            ("window", 1, MAX_WINDOW),
        ):
            object.__setattr__(self, field, integer(field, getattr(self, field), low, high))


# 128 tokens that are nearly all old, in n-grams of 12: tables, logs and worked sums of one form have shorter stretches
# between what changes, and what is copied once is not there for the third time. docs/loops.md has the figures.
STOP_ON_STUCK = StuckDetection(threshold=128)


@dataclass(frozen=True)
class Loop:
    """A stretch of accepted tokens that repeats without a break: ``count`` copies of ``period`` tokens from ``start``.

    ``start`` counts from 0 at the first accepted token. The period is the shortest: a copy is not copies itself.
    """

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """Where the last whole copy ends: the number of accepted tokens when the loop was found."""
        return self.start + self.period * self.count


@dataclass(frozen=True)
class Stuck:
    """A stretch of accepted tokens that says next to nothing new, by `StuckDetection`.

    ``start``: its first token, counted from 0 at the first accepted one; ``end``: the number of accepted tokens when it
    was found. What it repeats came ``min_count`` - 1 times before ``start``.
    """

    start: int
    end: int
