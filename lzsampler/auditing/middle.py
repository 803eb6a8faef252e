"""`middle_of`: finds the middle of a long loop, which later scans can leave out.

If a text has a loop of megabytes, the rest of the text is usually a few pages. The scans for loops of words, lines and
normalized text, and for stuck stretches, then read the text without the middle of the loop. These scans find the same
as in the whole text.
"""

from typing import NamedTuple

import numpy as np

from .metrics import words
from .normalized import NormalizedText, Offsets
from .rules import Rules
from .scan import Runs

_SLACK = 4  # number of extra copies that stay in the text on either side of the middle


class Middle(NamedTuple):
    """The bytes from ``start`` to ``end`` of a text. They are ``copies`` copies of a unit; by default, there are none.

    Each copy has ``words`` words, ``lines`` lines and ``normalized`` bytes of the normalized text.
    """

    start: int = 0
    end: int = 0
    copies: int = 0
    words: int = 0
    lines: int = 0
    normalized: int = 0

    def left_out(self, data: bytes) -> bytes:
        """Return the text ``data`` without the middle."""
        return data[: self.start] + data[self.end :]

    def places(self, at: Offsets) -> Offsets:
        """Convert offsets in the text without the middle to offsets in the whole text."""
        return at + (self.end - self.start) * (at > self.start)


def middle_of(data: bytes, found: Runs, rules: Rules) -> Middle:
    """Return the middle of the longest run of bytes if the run covers half of the text; else an empty Middle.

    Call this run R. The parts of R on either side of the middle stay in the text, and are so long that no result
    changes. Let S be another run, of words, lines or normalized bytes. The period of S is at most the length of the
    text outside R. By Fine and Wilf (1965) there are two cases. In the first case, the overlap of S and R is shorter
    than the sum of the two periods. In the second case, S has the same period as R and extends through all of R. Then S
    is longer in the whole text than in the text without the middle, by exactly the length of the middle.

    Stuck stretches do not change either. If each word of R has `Rules.stuck_count` copies within `Rules.stuck_window`
    words, all words of the middle are old. Otherwise an empty Middle is returned. The old words lie in one stretch,
    whose score passes `Rules.stuck_score` with and without the middle. From then on, the end of the stretch depends
    only on how far the score falls from its maximum.
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
