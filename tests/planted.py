"""Texts with loops planted in them: where each begins, what repeats and how often is known."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CORPUS = Path(__file__).parents[1] / "bench" / "train_embedded" / "corpus"


class Planted(NamedTuple):
    """A text whose characters from ``start`` to ``end`` are copies of a unit of ``period`` characters."""

    text: str
    start: int
    end: int
    period: int


def prose(rng: random.Random, size: int) -> str:
    """A stretch of a book without the runs of blanks that some of its pages have."""
    path = rng.choice(sorted(CORPUS.glob("*.txt")))
    book = path.read_text(encoding="utf-8")
    start = rng.randrange(len(book) - size)
    return book[start : start + size]


def planted(seed: int, n: int) -> Iterator[Planted]:
    """Texts of 200 to 8,000 characters with one loop, half of them at the end: units of 2 to 1,500 characters, 20 to
    60 copies, or three and more from 40 characters on; every fourth is not ASCII. The last copy is cut somewhere."""
    rng = random.Random(seed)
    for i in range(n):
        before, unit = prose(rng, rng.randrange(200, 8000)), ""
        while not is_primitive(unit):
            unit = prose(rng, int(2 * 750 ** rng.random()))
            if i % 4 == 3:
                unit = unit.translate({ord("e"): "é", ord("t"): "т", ord("a"): "\U0001f600"})
        copies = rng.uniform(3, 12) if len(unit) >= 40 and i % 2 else rng.uniform(20, 60)
        loop = (unit * 61)[: int(len(unit) * copies)]
        after = "" if i % 2 else prose(rng, rng.randrange(100, 2000))
        yield Planted(before + loop + after, len(before), len(before) + len(loop), len(unit))


def is_primitive(unit: str) -> bool:
    """Whether it is no power of a shorter one, and has two characters that are not white space."""
    return len({c for c in unit if not c.isspace()}) >= 2 and (unit + unit).index(unit, 1) == len(unit)
