"""Masks inside strings, where tokens are taken by their number of characters: equal to what their bytes match."""

import random

import numpy as np
import pytest

from lzsampler import Grammar, Sampler, TokenBytes

# Of one to four bytes, at the ends of their ranges.
CHARACTERS = [*"aZ ~\x7f\u0080\u07ff\u0800\ud7ff\ue000\uffff", "\U00010000", "\U0010ffff"]
ENCODED = [character.encode() for character in CHARACTERS]
ESCAPES = [b"\\", b'\\"', b"\\n", b'a"', b'"a', b'",', b"\n", b"a\nb", b", ", b'["', b'", "', b'"]']
WRONG = [b"\xc0\x80", b"\xe0\x80", b"\xed\xa0\x80", b"\xf4\x90", b"\xff"]
PIECES = sorted(
    {bytes([byte]) for byte in range(256)}  # so that every state can be completed
    | {one[begin:] for one in ENCODED for begin in range(len(one))}  # what goes on a character that was cut off
    | {one[:end] for one in ENCODED for end in range(1, len(one) + 1)}
    | {one + other for one in ENCODED for other in ENCODED}
    | {b"a" * n for n in (*range(1, 24), 40, 41)}  # fewer and more characters than have a mask of their own
    | {"\u20ac".encode() * n for n in range(1, 22)}
    | {b'"' + b"a" * n for n in range(1, 6)}
    | {b"a" * n + b'"' for n in range(1, 20)}
    | {*ESCAPES, *WRONG}
)
TOKENS = TokenBytes([b"", *PIECES], end=[0])
PATTERNS = [
    r".{1,500}",
    r".{0,3}",
    r".{17}",
    r"(.{2}){1,9}",
    r"(..|.){1,9}",
    r"(.|\u20ac){2,6}",
    r"[^\n\u0800]{0,9}",
    r"[ -~]{0,5}",
    r"a{2,4}.{0,18}a",
    r"\"([^\"\\\n]|\\[\"n]){5,20}\"",
    r"(\".{0,7}\",){1,3}",
    r"(\"[^\"]{2,4}\"){2}",
    r"[^\"]{3,}\"",
    r"(.{1,2}){1,4}",
    r".{1,4}(x.{1,4})?",
    r"(.{0,3}|b.{2,9})",
    r"([^\"]?){3}\"",
    r".{0,2}.{0,3}",
    r".*",
    r"(a|.)+",
    r"\"([^\"\\]|\\[a-f]{2,3}){0,6}\"",
]


def check_masks(grammar: Grammar, oracle: Grammar, seed: str, steps: int) -> None:
    """Compare masks on the way through random texts with the tokens behind which the other grammar still matches."""
    rng = random.Random(seed)
    sampler = Sampler(TOKENS.n_vocab)
    sampler.set_grammar(grammar)
    for _ in range(7):
        sampler.reset()
        text = b""
        for _ in range(steps):
            words = sampler.allowed()
            assert words is not None
            found = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
            expected = [0] if oracle.match(text) == "yes" else []
            expected += [token for token, piece in enumerate(PIECES, 1) if oracle.match(text + piece) != "no"]
            assert found == expected, text
            closing = [token for token in found if b'"' in TOKENS.pieces[token]] or found
            token = rng.choice(closing if rng.random() < 0.2 else found)
            if token == 0:
                break
            sampler.accept(token)
            text += TOKENS.pieces[token]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_masks_are_what_their_bytes_match(pattern: str) -> None:
    check_masks(Grammar.regex(pattern, TOKENS), Grammar.regex(pattern, TOKENS), pattern, 12)


@pytest.mark.parametrize("length", [{}, {"maxLength": 2}, {"minLength": 5, "maxLength": 19}, {"minLength": 3}])
@pytest.mark.parametrize("share", [False, True])
def test_masks_of_strings_of_a_schema_are_what_their_bytes_match(length: dict[str, int], share: bool) -> None:
    schema = {"type": "array", "items": {"type": "string", **length}, "minItems": 1, "maxItems": 3}
    tokens = TokenBytes(TOKENS.pieces, end=[0])
    grammars = [Grammar.json_schema(schema, tokens, share=shared) for shared in (share, False)]
    check_masks(grammars[0], grammars[1], str(length), 20)
