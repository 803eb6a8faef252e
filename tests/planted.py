"""Texts with loops planted in them: where each begins, what repeats and how often is known."""

import random
from collections.abc import Iterator, Sequence
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


def planted_in_the_middle(seed: int, n: int) -> Iterator[Planted]:
    """Texts of books with 3 to 12 copies of a unit of 40 to 1,500 characters, which go on after them."""
    rng = random.Random(seed)
    for _ in range(n):
        before, unit = prose(rng, rng.randrange(200, 8000)), ""
        while not is_primitive(unit):
            unit = prose(rng, int(40 * 37 ** rng.random()))
        loop = (unit * 12)[: int(len(unit) * rng.uniform(3, 12))]
        after = prose(rng, rng.randrange(100, 8000))
        yield Planted(before + loop + after, len(before), len(before) + len(loop), len(unit))


def planted_elsewhere(
    texts: Sequence[str], seed: int, n: int, few: tuple[int, int], without: str = ""
) -> Iterator[Planted]:
    """Copies of a part of a text after it: 3 to 12 at the end, or as many as ``few`` says and then another text.

    The unit has 40 to 400 characters, 34 of which or more are not white space, and a quarter of which are letters; none
    is among ``without``, such as the marks of code.
    """
    rng = random.Random(seed)
    for i in range(n):
        unit = before = ""
        while not _is_unit(unit, without):
            before, size = rng.choice(texts), int(40 * 10 ** rng.random())
            at = rng.randrange(max(1, len(before) - size))
            unit = before[at : at + size].strip() + " "
        after = "" if i % 2 == 0 else "\n" + rng.choice(texts).lstrip()
        loop = (unit * 21)[: int(len(unit) * (rng.uniform(*few) if after else rng.uniform(3, 12)))]
        before = before.rstrip() + "\n"
        yield Planted(before + loop + after, len(before), len(before) + len(loop), len(unit))


RUNS = ("!", "G", "3", ".", "-", "\n", " ", "\u200b", "\ufffd", "?!", "\U0001f600", " the")


def planted_runs(texts: Sequence[str], seed: int, n: int) -> Iterator[Planted]:
    """Runs of each of `RUNS` in turn, as models write that break down: 100 to 4,000 characters at the end of a text, or
    400 to 4,000 and then another text. A run of digits is the fraction of a number."""
    rng = random.Random(seed)
    for i in range(n):
        unit = RUNS[i % len(RUNS)]
        before, after = rng.choice(texts).rstrip(), ""
        if i // len(RUNS) % 2:
            after = rng.choice(texts).lstrip()
        before += " 0." if unit == "3" else " x"  # neither goes on with the unit
        least = 400 if after else 100
        run = (unit * 4000)[: int(least * (4000 / least) ** rng.random())]
        yield Planted(before + run + ("x" + after if after else ""), len(before), len(before) + len(run), len(unit))


def _is_unit(unit: str, without: str) -> bool:
    written = len("".join(unit.split()))
    letters = sum(map(str.isalpha, unit))
    return written >= 34 and letters >= len(unit) / 4 and not set(unit) & set(without) and is_primitive(unit)


def is_primitive(unit: str) -> bool:
    """Whether it is no power of a shorter one, and has two characters that are not white space."""
    return len({c for c in unit if not c.isspace()}) >= 2 and (unit + unit).index(unit, 1) == len(unit)
