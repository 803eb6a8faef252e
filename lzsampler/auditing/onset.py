"""`onset`: finds the beginning of the degenerate stretch that contains the first loop of a text.

A looping model often changes the unit: copies of one phrase, some words, copies of another. Each of these may be too
short to count as a loop. The first counted loop then begins well after the text went wrong.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .normalized import characters_before, to_bytes
from .records import LOOPING, Finding
from .scan import runs
from .units import has_digits, has_letters

_COPIES = 4  # the fewest copies of a neighbour, which may be too short for a loop
_CHARACTERS = 20  # the fewest characters of a neighbour's copies together
_TOKENS = 5  # the fewest tokens of a neighbour's copies together, in fields with only tokens

Stretch = tuple[int, int]


def onset(first: Finding, findings: Sequence[Finding], text: str, tokens: npt.NDArray[np.int32] | None) -> int:
    """Return where the degenerate stretch begins to which the loop ``first`` belongs: at the loop's start or earlier.

    ``findings``: the findings of the loop's field, which has this ``text``, or only ``tokens``; offsets are in
    characters or tokens accordingly. The neighbours of the stretch are: findings of any loop and of LZR011; findings of
    LZR020 whose unit has a letter or a digit; and runs of at least 4 copies that have 20 characters (5 tokens)
    together.

    A neighbour joins the stretch if the gap between the two is not longer than the neighbour, nor than the stretch. The
    stretch then begins where the neighbour begins. This is tried for each neighbour, from the nearest before the loop
    to the first of the field.
    """
    before = _runs(text[: first.start]) if tokens is None else _token_runs(tokens[: first.start])
    before += [(found.start, found.end) for found in findings if found.start < first.start and _joins(found)]
    start = first.start
    for left, right in sorted(before, key=lambda stretch: (-stretch[1], stretch[0])):
        if left < start and start - right <= min(right - left, first.end - start):
            start = left
    return start


def _runs(text: str) -> list[Stretch]:
    """Return the repeating stretches of a text, in characters."""
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
