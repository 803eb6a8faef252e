"""The twin of the audit, the oracle of its tests: what counts as a loop, and every metric, in slow Python."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from deflate import zlib_compress

import reference


class Loop(NamedTuple):
    """A stretch in characters: ``copies`` of ``period`` from ``start`` to ``end``."""

    start: int
    end: int
    period: int


def significant_loops(text: str, copies: int, length: int, length_copies: int) -> list[Loop]:
    """Every stretch that counts, by character; those inside others too."""
    found = []
    for run in reference.runs([ord(c) for c in text], min(copies, length_copies), 0):
        many = run.length >= copies * run.period
        long = run.length >= length_copies * run.period and run.length >= length
        if long or (many and run.period > 1):
            found.append(Loop(run.start, run.start + run.length, run.period))
    return found


def is_loop(text: str, loop: Loop, copies: int, length: int) -> bool:
    """Whether a significant loop is none of the repetitions that people make: data in the middle of a text."""
    unit = text[loop.start : loop.start + loop.period]
    letters = any(c.isalpha() or c >= "\U0001f000" for c in unit)
    digits = any(c.isdecimal() for c in unit)
    one = len({c for c in unit if not c.isspace()}) < 2
    many = loop.end - loop.start >= copies * loop.period and not one
    one_more = len(re.sub(r"\s+", " ", unit * 3)) - len(re.sub(r"\s+", " ", unit * 2))  # that a copy adds
    size = loop.end - loop.start if unit.isspace() else (loop.end - loop.start) * one_more // loop.period
    if not many and size < length:
        return False
    small = any((c.isalpha() and not c.isupper()) or c >= "\U0001f000" for c in unit)
    words = plain_words(unit)
    prose = 4 * sum(map(len, words)) >= 3 * sum(map(len, unit.split())) and not one
    if prose and (len(set(words)) >= 4 or (words and small and loop.end - loop.start >= 8 * loop.period)):
        return True
    if not text[loop.end :].strip() or loop.end - loop.start >= len(text) / 2:
        return many or one or letters or digits
    unbroken = unit.isspace() or unit.isdecimal() or not (digits or any(c.isspace() for c in unit))
    return (size >= 4 * length and (letters or unbroken)) or (many and letters and small and not digits)


def plain_words(text: str) -> list[str]:
    """The words of sentences, for texts whose only punctuation is that of ASCII and that have no dashes."""
    stripped = [word.strip(".,;:!?\"'") for word in text.split()]
    return [word for word in stripped if word and all(unicodedata.category(c) in _LETTERS for c in word)]


_LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "So")


def changing_numbers(copies: Sequence[str]) -> float:
    """How many numbers change from one copy to the next, on average, for copies that number no lists."""
    numbers = [re.findall(r"\d+", copy) for copy in copies]
    pairs = [pair for one, other in pairwise(numbers) for pair in zip(one, other, strict=False)]
    return len([pair for pair in pairs if pair[0] != pair[1]]) / max(1, len(copies) - 1)


def literal_loops(text: str, copies: int) -> list[Loop]:
    return [
        Loop(run.start, run.start + run.length, run.period) for run in reference.runs([ord(c) for c in text], copies, 0)
    ]


def normalized(text: str) -> tuple[str, list[int]]:
    """The normalized text and, for each of its characters and its end, where it begins in the text."""
    made: list[str] = []
    places: list[int] = []
    for i, character in enumerate(text):
        lower = character.lower()
        shorter = len(lower) == 1 and len(_utf8(lower)) <= len(_utf8(character))
        seen = " " if character.isspace() else "0" if character.isdecimal() else lower if shorter else character
        if not (made and seen == made[-1] and seen in " 0"):
            made.append(seen)
            places.append(i)
    return "".join(made), [*places, len(text)]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def metrics(texts: Sequence[str], words_of: Sequence[Sequence[str]] | None = None) -> dict[str, float]:
    """All metrics of the fields of a record; words are those of `str.split` unless they are given."""
    words_of = [text.split() for text in texts] if words_of is None else words_of
    characters = sum(map(len, texts))
    made: dict[str, float] = {}
    for n in (1, 2, 3, 4):
        grams = [ngrams(words, n) for words in words_of]
        total, distinct = sum(map(len, grams)), sum(len(set(g)) for g in grams)
        made[f"rep{n}"] = share(total - distinct, total)
        made[f"distinct{n}"] = share(distinct, sum(map(len, words_of)))
    found = [token_figures(words) for words in words_of]
    made["tail_rep4"] = share(sum(f.tail_grams - f.tail_distinct for f in found), sum(f.tail_grams for f in found))
    made["ser4"] = share(sum(f.extended for f in found), sum(f.extensible for f in found))
    made["frequent_30_gram"] = float(any(f.frequent for f in found))
    data = [_utf8(text) for text in texts if text]
    made["zlib_ratio"] = share(sum(map(len, data)), sum(len(zlib_compress(d, 1)) for d in data))
    tails = [d[-4096:] for d in data]
    made["zlib_tail_ratio"] = share(sum(map(len, tails)), sum(len(zlib_compress(d, 1)) for d in tails))
    parts = {"line": [re.split(r"\n+", text) for text in texts if text]}
    parts["para"] = [re.split(r"\n{2,}", text.strip()) for text in texts if text]
    for name, split in parts.items():
        again = [repeated(elements) for elements in split]
        made[f"gopher.dup_{name}_frac"] = share(sum(map(len, again)), sum(map(len, split)))
        made[f"gopher.dup_{name}_char_frac"] = share(sum(len(element) for a in again for element in a), characters)
    for n in (2, 3, 4):
        tops = [Counter(" ".join(gram) for gram in ngrams(words, n)).most_common(1) for words in words_of]
        made[f"gopher.top_{n}_gram"] = share(sum(len(gram) * count for top in tops for gram, count in top), characters)
    for n in range(5, 11):
        made[f"gopher.dup_{n}_gram"] = share(sum(duplicate_characters(words, n) for words in words_of), characters)
    return made


class TokenFigures(NamedTuple):
    grams: int
    distinct: int
    tail_grams: int
    tail_distinct: int
    extensible: int
    extended: int
    frequent: bool


def token_figures(tokens: Sequence[Any]) -> TokenFigures:
    """The figures of the field's terms for words or tokens: 4-grams, those of the last 512, extensions, a 30-gram."""
    grams, tail = ngrams(tokens, 4), ngrams(tokens[-512:], 4)
    extensible = [i for i in range(4, len(tokens)) if grams[i - 4] in grams[: i - 4]]
    extended = [i for i in extensible if any(grams[j] == grams[i - 4] and tokens[j + 4] == tokens[i]
                                             for j in range(i - 4))]  # fmt: skip
    often = max(Counter(ngrams(tokens, 30)).values(), default=0)
    return TokenFigures(
        len(grams), len(set(grams)), len(tail), len(set(tail)), len(extensible), len(extended), often >= 20
    )


def free_of_loops(texts: Sequence[tuple[int, bool]], tokens: int) -> float:
    """Kaplan and Meier's product: at each place that loops begin, the share of texts that get there and go on."""
    share = 1.0
    for place in range(tokens + 1):
        there = [loops and at == place for at, loops in texts if at >= place]
        share *= 1 - sum(there) / len(there) if there else 1.0
    return share


def ngrams(words: Sequence[Any], n: int) -> list[tuple[Any, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def repeated(elements: list[str]) -> list[str]:
    """Those that came before."""
    return [element for i, element in enumerate(elements) if element in elements[:i]]


def duplicate_characters(words: Sequence[str], n: int) -> int:
    seen: list[str] = []
    characters = at = 0
    while at + n <= len(words):
        gram = "".join(words[at : at + n])
        if gram in seen:
            characters += len(gram)
            at += n
        else:
            seen.append(gram)
            at += 1
    return characters


def share(part: int, of: int) -> float:
    return part / of if of else 0.0
