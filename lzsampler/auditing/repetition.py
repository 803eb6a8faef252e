"""`repetition`: measures how much a text repeats itself.

A run is a stretch of at least two periods in which each character equals the character one period before it. A run
cannot be extended on either side. Indentation and rulers do not count: if a run has fewer than 100 characters, its unit
needs two distinct characters other than white space.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .findings import audit
from .rules import Rules
from .scan import runs

_LONG = 64  # characters; if there is no run of this length, all runs are searched for, which takes longer


@dataclass(frozen=True)
class Run:
    """A stretch of text that repeats: ``start`` and ``period`` in characters, ``count`` whole copies of ``unit``.

    ``length``: the number of characters of the run; more than period * count if an incomplete copy follows.
    """

    start: int
    period: int
    count: int
    length: int
    unit: str


@dataclass(frozen=True)
class Repetition:
    """How much one text repeats itself.

    ``run``: the largest run of the text; None if nothing repeats. ``loops``: whether `audit` finds a loop. ``rep4``:
    share of the 4-grams of words that occurred before, 0..1. ``zlib_ratio``: number of bytes of UTF-8 for each
    compressed byte (docs/audit.md); None if libdeflate (extra "audit") is not installed.
    """

    run: Run | None
    loops: bool
    rep4: float
    zlib_ratio: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the values as a transcript contains them (docs/transcript.md)."""
        return {
            "run": None if self.run is None else asdict(self.run),
            "loops": self.loops,
            "rep4": round(self.rep4, 6),
            "zlib_ratio": None if self.zlib_ratio is None else round(self.zlib_ratio, 6),
        }


def repetition(text: str) -> Repetition:
    """Measure how much a text repeats itself."""
    found = audit(text)
    return Repetition(largest_run(text), found.looping, found.metrics["rep4"], found.metrics.get("zlib_ratio"))


def largest_run(text: str, min_count: int = 2) -> Run | None:
    """Return the longest run, in characters, that has at least ``min_count`` (>= 2) copies.

    If several runs are equally long, the shortest period decides, then the first start. None if there is no run.
    100,000 characters take milliseconds.
    """
    if min_count < 2:
        raise ArgumentError(f"min_count must be at least 2, got {min_count}")
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)
    for min_length in (_LONG, 0):
        start, length, period = runs(characters, min_copies=min_count, min_length=min_length)
        for i in np.argsort(-length, kind="stable").tolist():
            unit = text[start[i] : start[i] + period[i]]
            if len(set("".join(unit.split()))) >= 2 or length[i] >= Rules.length:
                return Run(int(start[i]), int(period[i]), int(length[i] // period[i]), int(length[i]), unit)
    return None
