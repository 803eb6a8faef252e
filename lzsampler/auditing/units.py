"""Tells what a repeating unit consists of: sentences, other text with letters, or only digits and punctuation.

People rightly repeat the rows of a table, the arguments of a function, and markup. Repeated sentences therefore need
fewer copies to count as a loop. This module recognises a sentence in any language by its words: they stand between
white space, with only sentence punctuation around them.
"""

import re
from collections.abc import Sequence

_LOOKED_AT = 2000  # Only the first 2000 characters of a unit are examined.
_LETTER = "A-Za-z\u00aa-\u1fff\u2c00-\ud7ff\ue000-\U0010ffff"  # includes accented letters and emoji, but no signs
_WIDE = "[\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"  # Chinese, Japanese and Korean characters
# Besides white space, words are separated by dashes and by the punctuation of scripts that have no white space.
_BETWEEN = re.compile(
    "--+|[\u2013\u2014\u3000-\u3003\u3008-\u3011\u3014-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff65]+"
    rf"|(?<={_WIDE})[,.;:!?]|[,.;:!?](?={_WIDE})"
)
_PUNCTUATION = ".,;:!?\u2026\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
_WORD = re.compile(rf"(?<!\S)[{_PUNCTUATION}]*([{_LETTER}]+(?:['\u2019-][{_LETTER}]+)*)[{_PUNCTUATION}]*(?!\S)")
_WIDE_LETTERS = 3  # A character of `_WIDE` counts as three letters.
_EMOJI = "\U0001f000"  # All characters from this code point on count as emoji.
_SPACE = re.compile(r"\s+")
_DIGIT, _NUMBER = re.compile(r"\d"), re.compile(r"\d+")
_AFTER_MARK = (". ", ") ", ": ")
_LAST_DIGITS = 9  # number of last digits that are compared to see whether a number rose by one


def _split(text: str) -> str:
    """Return the first `_LOOKED_AT` characters of a text, with white space between words, and "0" for every digit."""
    return _DIGIT.sub("0", _BETWEEN.sub(" ", text[:_LOOKED_AT]))


def plain_letters(text: str) -> int:
    """Return the number of letters in the words of a text. A Chinese, Japanese or Korean character counts as three."""
    words = "".join(_WORD.findall(_split(text)))
    return len(words) + (_WIDE_LETTERS - 1) * len(re.findall(_WIDE, words))


def is_prose(text: str, least: int) -> bool:
    """Whether letters of words make up at least three quarters of the characters that are not white space.

    ``least``: the number of different words that the text must have. Every two different Chinese, Japanese or Korean
    characters also count as a word.
    """
    split = _split(text)
    words = _WORD.findall(split)
    letters = "".join(words)
    different = len(set(words)) + len(set(re.findall(_WIDE, letters))) // 2
    return different >= least and 4 * len(letters) >= 3 * sum(map(len, split.split()))


def has_letters(text: str) -> bool:
    """Whether a text has a letter or an emoji."""
    return any(character.isalpha() or character >= _EMOJI for character in text[:_LOOKED_AT])


def has_digits(text: str) -> bool:
    """Whether a text has a decimal digit."""
    return _DIGIT.search(text, 0, _LOOKED_AT) is not None


def is_unbroken(text: str) -> bool:
    """Whether a text is only white space, only decimal digits, or only characters that are neither.

    Models that break down write hundreds of such characters in a row; people do not. Tables and arrays have separators
    between their values.
    """
    kinds = {(character.isspace(), character.isdecimal()) for character in text[:_LOOKED_AT]}
    return len(kinds) == 1


def in_capitals(text: str) -> bool:
    """Whether all letters of a text are capitals, as in constants such as NULL, which fill some tables."""
    return not any(
        (character.isalpha() and not character.isupper()) or character >= _EMOJI for character in text[:_LOOKED_AT]
    )


def collapsed_length(unit: str) -> int:
    """Return the length of a repeated unit if each stretch of white space counts as one character."""
    length = len(unit) - sum(space.end() - space.start() - 1 for space in _SPACE.finditer(unit))
    return length - (
        len(unit) > 1 and unit[0].isspace() and unit[-1].isspace()
    )  # The white space at the end of a copy and at the start of the next copy is one stretch.


def changing_numbers(copies: Sequence[str], starts_line: Sequence[bool]) -> float:
    """Return how many numbers change from one copy to the next, on average. List item numbers do not count.

    A list item number stands at the beginning of a line, is followed by `_AFTER_MARK` ("12. "), and rises by one.
    ``starts_line``: for each copy, whether it begins a line. All copies must contain equally many numbers.
    """
    changed, before = 0, list[tuple[str, bool]]()
    for copy, starts in zip(copies, starts_line, strict=True):
        numbers = []
        for match in _NUMBER.finditer(copy):
            line = copy.rfind("\n", 0, match.start()) + 1
            is_first = (line > 0 or starts) and not copy[line : match.start()].strip()
            numbers.append((match.group(), is_first and copy.startswith(_AFTER_MARK, match.end())))
        for (old, _), (new, is_mark) in zip(before, numbers, strict=False):
            goes_up = int(new[-_LAST_DIGITS:]) - int(old[-_LAST_DIGITS:]) == 1
            changed += old != new and not (is_mark and goes_up)
        before = numbers
    return changed / max(1, len(copies) - 1)
