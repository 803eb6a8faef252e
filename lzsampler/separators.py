"""Tells which tokens are separators of the LZ penalty, by the text of the token.

A separator restarts the count of matching tokens (`lzsampler.Params`), so that short building blocks of a text may
recur without a penalty. A separator is a token without a letter: a line break, a bracket, a number, a space. Sentence
marks are not separators, since the penalty must act on repeated sentences. A comma is a separator only between short
items, as in lists.
"""

import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np

from ._values import shown
from .errors import ArgumentTypeError

SENTENCE_MARKS = frozenset(".,!?;'-\"‘’‚“”„«»¿¡。．｡，、！？；「」『』،؛؟۔।॥։՞።፣၊။")
COMMAS = frozenset(",，、،")


def is_letter(character: str) -> bool:
    """Return whether a character is a letter in Unicode, or a mark that belongs to a letter, such as a Hindi vowel.

    U+FFFD counts as a letter, because it stands for a part of a character.
    """
    return unicodedata.category(character)[0] in "LM" or character == "\ufffd"


def is_separator(text: str) -> bool:
    """Return whether a token with this text is a separator everywhere."""
    within = text.strip(" ")
    return not any(map(is_letter, text)) and not (within and SENTENCE_MARKS.issuperset(within))


def is_comma(text: str) -> bool:
    """Return whether a token with this text is a comma, which is a separator after a short item."""
    return not COMMAS.isdisjoint(text) and not any(map(is_letter, text))


def separators_of(texts: Iterable[str]) -> dict[str, Any]:
    """Return the separators of a vocabulary as the fields ``lz_separators`` and ``lz_commas`` of `Params`.

    ``texts``: the text of each token, in the order of the token ids. An incomplete character must be U+FFFD, as
    ``bytes.decode("utf-8", "replace")`` makes it. Raises TypeError if an element is not a string.
    """
    listed = list(texts)
    wrong = [texts] if isinstance(texts, str) else [text for text in listed if not isinstance(text, str)]
    if wrong:
        raise ArgumentTypeError(f"texts must be a list of strings, got {shown(wrong[0])}")
    return {"lz_separators": _bits(map(is_separator, listed)), "lz_commas": _bits(map(is_comma, listed))}


def _bits(of: Iterable[bool]) -> bytes:
    packed = np.packbits(np.fromiter(of, bool), bitorder="little").tobytes()
    return packed + bytes(-len(packed) % 4)
