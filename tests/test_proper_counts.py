"""Proper tokens in counted repetitions: as in a pattern without counts, in which nothing can be far from them."""

import random

import numpy as np
import pytest

from lzsampler import Grammar, Sampler, Spelling, TokenBytes

LETTERS = [bytes([letter]) for letter in b"abcx,"]
JOINED = [b"ab", b"bc", b"aa", b"aba", b"aab", b"bcx", b"x,", b"aaaa", b"abc", b"cab", b"a" * 8, b"a" * 16, b"a" * 20]
TOKENS = TokenBytes([b"", *LETTERS, *JOINED], end=[0])
NUMBERS = {piece: token for token, piece in enumerate(TOKENS.pieces)}
PARTS = [
    (b"a", b"b"),
    (b"b", b"c"),
    (b"a", b"a"),
    (b"ab", b"a"),
    (b"aa", b"b"),
    (b"bc", b"x"),
    (b"x", b","),
    (b"aa", b"aa"),
]
PARTS += [(b"ab", b"c"), (b"c", b"ab"), (b"a" * 4, b"a" * 4), (b"a" * 8, b"a" * 8), (b"a" * 16, b"a" * 4)]
SPELLING = Spelling(TOKENS, merges=[(NUMBERS[left], NUMBERS[right]) for left, right in PARTS])


def unrolled(body: str, low: int, high: int) -> str:
    """Return `body{low,high}` without a count."""
    made = ""
    for _ in range(high - low):
        made = f"(?:{body}{made})?"
    return body * low + made


def allowed(sampler: Sampler) -> list[int]:
    words = sampler.allowed()
    assert words is not None
    return [int(token) for token in np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))]


@pytest.mark.parametrize(
    ("before", "body", "low", "high", "behind"),
    [
        ("", "[abc]", 0, 60, "x"),
        ("", "[abc]", 0, 60, ""),
        ("", "a", 0, 60, ""),  # a token of 20 bytes is longer than what is left where the count is first taken for far
        ("", "(?:a|bc)", 0, 66, "x"),
        ("x", "a", 7, 45, ",?"),
        ("", "(?:ab|a)", 0, 50, "bcx"),
        ("", "(?:ab|abc|x,)", 2, 40, "x"),
        ("", "(?:[ab]|cab)", 20, 70, ",aaaa"),
        ("(?:x|b)", "(?:aa?|b,)", 0, 48, "(?:bc|x)?"),
    ],
)
def test_masks_are_those_of_the_pattern_without_counts(
    before: str, body: str, low: int, high: int, behind: str
) -> None:
    counted = f"{before}{body}{{{low},{high}}}{behind}"
    plain = f"{before}{unrolled(body, low, high)}{behind}"
    samplers = []
    for pattern in (counted, plain):
        samplers.append(Sampler(TOKENS.n_vocab))
        samplers[-1].set_grammar(Grammar.regex(pattern, SPELLING, tokenization="proper"))
    ended = 0
    for seed in range(30):
        rng = random.Random(seed)
        for sampler in samplers:
            sampler.reset()
        for _ in range(100):
            masks = [allowed(sampler) for sampler in samplers]
            assert masks[0] == masks[1]
            token = rng.choice(masks[0][1:] if masks[0][1:] and rng.random() < 0.98 else masks[0])
            if token == 0:
                ended += 1
                break
            for sampler in samplers:
                sampler.accept(token)
    assert ended > 5
