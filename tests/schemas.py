"""What the tests of JSON Schema share: a vocabulary of bytes, the forms of a value, walks through a grammar."""

import json
import random
from collections.abc import Iterator
from itertools import islice, permutations, product
from typing import Any

import numpy as np

from lzsampler import Grammar, Sampler, TokenBytes

END = 0
TOKENS = TokenBytes(
    [b"", *(bytes([i]) for i in range(256)), b'{"', b'": ', b'", "', b'"}', b"12", b"true", b"null", b"}, {", b"e\\"],
    end=[END],
)
_CLOSING = [token for token, piece in enumerate(TOKENS.pieces) if piece[:1] in (b'"', b"]", b"}")]


def grammar_of(schema: Any, **options: Any) -> Grammar:
    """Return the grammar of a schema for `TOKENS`."""
    return Grammar.json_schema(schema, TOKENS, **options)


def forms(value: Any, limit: int = 120) -> list[str]:
    """Return a value as JSON with the properties in any order; integers without a point too."""
    return list(islice(_forms(value), limit))


def _forms(value: Any) -> Iterator[str]:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e18:
        yield json.dumps(value)
        yield str(int(value))
    elif isinstance(value, list):
        for items in product(*(forms(item, 6) for item in value)):
            yield f"[{', '.join(items)}]"
    elif isinstance(value, dict):
        for order in permutations(value):
            pairs = [
                [f"{json.dumps(name, ensure_ascii=False)}: {form}" for form in forms(value[name], 6)] for name in order
            ]
            for some in product(*pairs):
                yield f"{{{', '.join(some)}}}"
    else:
        yield json.dumps(value, ensure_ascii=False)


def accepts(grammar: Grammar, value: Any) -> bool:
    """Return whether a grammar allows one of the forms of a value."""
    return any(grammar.match(form.encode(errors="surrogatepass")) == "yes" for form in forms(value))


def walk(rng: random.Random, grammar: Grammar, steps: int = 300) -> str | None:
    """Return a random text that a grammar allows, or None when it did not end in time."""
    sampler = Sampler(grammar.vocabulary.n_vocab)
    sampler.set_grammar(grammar)
    text = b""
    for step in range(steps):
        words = sampler.allowed()
        assert words is not None
        choices = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
        assert choices, text
        closing = [token for token in _CLOSING if token in choices] if rng.random() < 0.2 + step / steps else []
        token = END if END in choices and rng.random() < 0.5 else rng.choice(closing or choices)
        sampler.accept(token)
        if token == END:
            return text.decode()
        text += grammar.vocabulary.pieces[token]
    return None
