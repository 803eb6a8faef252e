"""Loop detection during generation: the settings `RepetitionDetection` and `StuckDetection`, and their results `Loop`
and `Stuck`.
"""

from dataclasses import dataclass

from ._ffi import lib
from ._values import integer
from .errors import ArgumentError

MAX_WINDOW: int = lib.LZS_MAX_WINDOW
_MAX_NGRAM = 64


@dataclass(frozen=True)
class RepetitionDetection:
    """Settings of a detection of ``min_count`` copies of one pattern at the end of a text. The names are vLLM's.

    ``max_pattern_size`` and ``min_pattern_size``: bounds of the pattern's length in tokens. A ``max_pattern_size`` of 0
    turns the detection off; a ``min_pattern_size`` of 0 means 1. ``min_count``: at least 2;
    ``max_pattern_size * min_count`` is at most 131072 tokens.

    A pattern may itself consist of copies of a shorter pattern. With a ``min_pattern_size`` of 4 and a ``min_count`` of
    2, "abababab" is a loop because it is "abab" twice. The `Loop` then reports "ab" 4 times. Raises a ValueError that
    shows the value if a value is out of range.
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


# A loop is 8 copies of a pattern of 8 to 512 tokens. It has at least 64 tokens, so that ruled lines, rows of table
# cells and long numbers are no loops. docs/loops.md has the figures.
STOP_ON_LOOP = RepetitionDetection(max_pattern_size=512, min_pattern_size=8, min_count=8)


@dataclass(frozen=True)
class StuckDetection:
    """Settings of a detection that finds a stuck text: a long stretch that repeats almost only earlier text.

    An n-gram of ``ngram_size`` tokens (1..64) is old from its ``min_count``-th occurrence (2..131072) within the last
    ``window`` tokens (1..131072). A token is old when an old n-gram contains it. A score starts at 0: each old token
    adds 1, each new token subtracts ``weight`` (0..131072), and the score never falls below 0.

    The text is stuck when the score reaches ``threshold`` (0..131072; 0 turns the detection off). The copies may differ
    in a few words or in a number that counts up. `RepetitionDetection` misses such copies. Raises a ValueError that
    shows the value if a value is out of range. See docs/loops.md.
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


# A score of 128 needs at least 128 tokens, nearly all old. Tables, logs and series of similar calculations are not
# stuck, because they change at shorter distances than the 12 tokens of an n-gram. A text that is copied once is not
# stuck, because no n-gram occurs a third time. docs/loops.md has the figures.
STOP_ON_STUCK = StuckDetection(threshold=128)


@dataclass(frozen=True)
class Loop:
    """A stretch of accepted tokens that repeats without a break: ``count`` copies of ``period`` tokens from ``start``.

    ``start`` counts from 0 at the first accepted token. The period is the shortest possible: one copy does not consist
    of shorter copies.
    """

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """The end of the last whole copy, which is the number of accepted tokens when the loop was found."""
        return self.start + self.period * self.count


@dataclass(frozen=True)
class Stuck:
    """A stretch of accepted tokens that repeats almost only earlier text, as `StuckDetection` defines.

    ``start``: index of the stretch's first token; the first accepted token has index 0. ``end``: number of accepted
    tokens when the stretch was found. The repeated text occurred ``min_count`` - 1 times before ``start``.
    """

    start: int
    end: int
