"""How messages show counts and values."""

from typing import Any

import pytest

from lzsampler._values import counted, noun, shown


@pytest.mark.parametrize(
    ("n", "words", "said"),
    [
        (0, ("token",), "0 tokens"),
        (1, ("token",), "1 token"),
        (2, ("token",), "2 tokens"),
        (2048, ("copy", "copies"), "2,048 copies"),
        (1, ("record loops", "records loop"), "1 record loops"),
        (3, ("byte is", "bytes are"), "3 bytes are"),
    ],
)
def test_a_count_has_the_word_that_goes_with_it(n: int, words: tuple[str, ...], said: str) -> None:
    assert counted(n, *words) == said
    assert said.endswith(noun(n, *words))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "None"),
        ("x" * 58, repr("x" * 58)),
        ("x" * 59, "'" + "x" * 59 + "..."),
        (10**10_000, "a value of type int that cannot be shown"),
    ],
    ids=["name", "short", "long", "many digits"],
)
def test_a_value_is_shown_up_to_60_characters(value: Any, said: str) -> None:
    assert shown(value) == said
