"""`middle_of`: the part of a loop in a long text that need not be looked at again, once the loop itself is found.

A loop of megabytes is all there is in its text, but for some pages. Scans for loops of words, lines and normalized
text, and for what is stuck, then read a text without the middle of the loop, and find the same.
"""

from typing import NamedTuple

import numpy as np

from .metrics import words
from .normalized import NormalizedText, Offsets
from .rules import Rules
from .scan import Runs

_SLACK = 4  # copies that are left besides, on either side


class Middle(NamedTuple):
    """The bytes from ``start`` to ``end`` of a text, ``copies`` copies of a unit; by default none.

    A copy has so many ``words``, ``lines`` and bytes of the ``normalized`` text.
    """

    start: int = 0
    end: int = 0
    copies: int = 0
    words: int = 0
    lines: int = 0
    normalized: int = 0

    def left_out(self, data: bytes) -> bytes:
        """Return a text without it."""
        return data[: self.start] + data[self.end :]

    def places(self, at: Offsets) -> Offsets:
        """Return where in the text offsets of the text without it are."""
        return at + (self.end - self.start) * (at > self.start)


def middle_of(data: bytes, found: Runs, rules: Rules) -> Middle:
    """Return the middle of the longest run of bytes in a text, if it covers half of the text; else an empty one.

    What is left of the run on either side is so long that nothing changes. Another run of words, lines or normalized
    bytes has a period of at most what lies outside, and so overlaps this one by less than both periods together (Fine
    and Wilf 1965), or it goes on all through it, with the same period, and is as much longer in the text as the middle
    is. For `Rules.stuck_score`: if a word of the run has `Rules.stuck_count` copies within the window, all words of the
    middle are old, and one stretch contains it, whose score is above the threshold with and without it; below that,
    nothing depends on how far. The windows, n-grams and copies of the rules fit into what is left, too.
    """
    if not found.start.size:
        return Middle()
    longest = int(np.argmax(found.length))
    start, length, period = (int(values[longest]) for values in found)
    if 2 * length < len(data) or length < 2 * _SLACK * period:
        return Middle()
    two, three = (_counts(data[start : start + n * period]) for n in (2, 3))
    n_words, n_lines, n_normalized = (more - fewer for more, fewer in zip(three, two, strict=True))
    if not n_words or n_words * (rules.stuck_count - 1) > rules.stuck_window:
        return Middle()
    stuck = -(-(rules.stuck_window + rules.stuck_ngram + rules.stuck_score) // n_words)
    others = -(-(len(data) - length) // min(n_words, n_lines or n_words))
    enough = max(rules.copies, rules.near_copies, rules.length_copies, -(-rules.length // period))
    left = period * (max(stuck, others, enough) + _SLACK)
    copies = (length - 2 * left) // period
    if copies <= 0:
        return Middle()
    return Middle(start + left, start + left + copies * period, copies, n_words, n_lines, n_normalized)


def _counts(text: bytes) -> tuple[int, int, int]:
    return len(words(text)), text.count(b"\n"), len(NormalizedText(text).data)
