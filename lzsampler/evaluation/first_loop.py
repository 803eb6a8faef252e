"""`FirstLoop`: where the first loops of texts begin, as a survival curve, which also covers texts without a loop."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

_FIRST_MARK = 64  # results.json has the share of texts without a loop after 64, 128, 256, ... tokens


@dataclass(frozen=True)
class FirstLoop:
    """Where first loops begin, in tokens of the text: the estimate of Kaplan and Meier (1958).

    ``curve``: (tokens, share) for each position at which a loop begins, in ascending order. ``share``, 0..1: the share
    of texts without a loop up to and including this position. A text that ends without a loop is censored at its
    length, whether the model or a limit ended the text. ``longest``: the greatest number of tokens of a text before its
    first loop or end. The curve ends there. ``looping``: how many texts loop. ``median_of_looping``:
    the median position of the first loop among the looping texts; None if no text loops.
    """

    looping: int
    median_of_looping: float | None
    curve: tuple[tuple[int, float], ...]
    longest: int

    def free(self, tokens: int) -> float:
        """Return the share of texts without a loop that begins within the first ``tokens`` (at most `longest`)."""
        place = bisect_right(self.curve, tokens, key=lambda step: step[0])
        return self.curve[place - 1][1] if place else 1.0

    @property
    def median(self) -> int | None:
        """The first position at which half of all texts or more have begun to loop; None if fewer texts loop."""
        return next((tokens for tokens, share in self.curve if share <= 0.5), None)

    def to_json(self) -> dict[str, Any]:
        """Return the entry for results.json."""
        marks, mark = [], _FIRST_MARK
        while mark < self.longest:
            marks.append(mark)
            mark *= 2
        marks += [self.longest] if self.longest else []
        return {
            "median_of_looping": self.median_of_looping,
            "median": self.median,
            "free": [[mark, self.free(mark)] for mark in marks],
        }


def first_loop(texts: Iterable[tuple[int, bool]]) -> FirstLoop:
    """Return where first loops begin. ``texts``: (tokens before the first loop, True), or (all tokens, False).

    If a text ends at the position at which another text begins to loop, the ended text still counts as at risk there.
    """
    begins, lengths = Counter[int](), Counter[int]()
    for tokens, loops in texts:
        lengths[tokens] += 1
        begins[tokens] += loops
    places = [tokens for tokens in sorted(begins) for _ in range(begins[tokens])]
    left, share, curve = sum(lengths.values()), 1.0, []
    for tokens in sorted(lengths):
        if begins[tokens]:
            share *= (left - begins[tokens]) / left
            curve.append((tokens, share))
        left -= lengths[tokens]
    return FirstLoop(len(places), float(median(places)) if places else None, tuple(curve), max(lengths, default=0))
