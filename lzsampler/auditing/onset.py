"""`onset`: finds the beginning of the degenerate stretch that contains the first loop of a text.

A looping model often changes the phrase that it repeats: copies of one phrase, some words, copies of another phrase.
Each group of copies may be too short to count as a loop. The first counted loop then begins after the text went wrong.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .normalized import characters_before, to_bytes
from .records import LOOPING, Finding
from .scan import runs
from .units import has_digits, has_letters

_COPIES = 4  # minimum number of copies of a neighbouring run (`onset`)
_CHARACTERS = 20  # minimum number of characters of a neighbouring run
_TOKENS = 5  # minimum number of tokens of a neighbouring run, in fields with only tokens

Stretch = tuple[int, int]


def onset(first: Finding, findings: Sequence[Finding], text: str, tokens: npt.NDArray[np.int32] | None) -> int:
    """Return where the degenerate stretch that contains the loop ``first`` begins: at the loop's start or earlier.

    ``findings``: all findings of the loop's field. ``text``: the text of the field. ``tokens``: the field's tokens if
    the field has no text. Offsets are in characters of ``text``, or in tokens if there is no text.

    At first the stretch is the loop itself. The neighbours of the stretch are earlier findings: loops, stuck stretches
    (LZR011), and literal loops (LZR020) whose unit has a letter or a digit. Runs of at least 4 copies that together
    have 20 characters (or 5 tokens) are neighbours, too. The neighbours are tried from the last to the first. The
    stretch is extended to a neighbour's start if the gap to the neighbour is not longer than the neighbour and not
    longer than the stretch.
    """
    before = _runs(text[: first.start]) if tokens is None else _token_runs(tokens[: first.start])
    before += [(found.start, found.end) for found in findings if found.start < first.start and _joins(found)]
    start = first.start
    for left, right in sorted(before, key=lambda stretch: (-stretch[1], stretch[0])):
        if left < start and start - right <= min(right - left, first.end - start):
            start = left
    return start


def _runs(text: str) -> list[Stretch]:
    """Return (start, end), in characters, of the runs of a text that count as neighbours (`onset`)."""
    data = to_bytes(text)
    found = runs(data, min_copies=_COPIES, min_length=_CHARACTERS)
    places = characters_before(data, np.stack((found.start, found.start + found.length, found.start + found.period)))
    return [
        (start, end)
        for start, end, second in zip(*places.tolist(), strict=True)
        if second > start + 1 and end - start >= _CHARACTERS and _says_something(text[start:second])
    ]


def _joins(found: Finding) -> bool:
    return found.rule in (*LOOPING, "LZR011") or (found.rule == "LZR020" and _says_something(found.unit))


def _says_something(unit: str) -> bool:
    return has_letters(unit) or has_digits(unit)


def _token_runs(tokens: npt.NDArray[np.int32]) -> list[Stretch]:
    found = runs(tokens, min_copies=_COPIES, min_length=_TOKENS)
    return list(zip(found.start.tolist(), (found.start + found.length).tolist(), strict=True))
