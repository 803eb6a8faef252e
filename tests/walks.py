"""What the tests of grammars of other engines share: what is allowed, and walks with rewinds and clones."""

import random

import numpy as np

from lzsampler import Grammar, Sampler


def allowed(sampler: Sampler) -> list[int]:
    """Return the tokens that a sampler allows next, ascending."""
    words = sampler.allowed()
    assert words is not None
    return [int(token) for token in np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))]


def check_rewinds(grammar: Grammar, steps: int, most: int) -> None:
    """Check that samplers which are rewound and cloned, up to ``most`` of them, are where new ones would be."""
    ends = set(grammar.vocabulary.end)
    rng = random.Random(3)
    samplers = [Sampler(grammar.vocabulary.n_vocab)]
    samplers[0].set_grammar(grammar)
    tokens: list[list[int]] = [[]]
    for _ in range(steps):
        i = rng.randrange(len(samplers))
        what = rng.random()
        if what < 0.1 and len(samplers) < most:
            samplers.append(samplers[i].clone())
            tokens.append(list(tokens[i]))
        elif what < 0.3 and tokens[i]:
            n = rng.randint(1, len(tokens[i]))
            samplers[i].rewind(n)
            del tokens[i][-n:]
        else:
            token = rng.choice([token for token in allowed(samplers[i]) if token not in ends])
            samplers[i].accept(token)
            tokens[i].append(token)
        fresh = Sampler(grammar.vocabulary.n_vocab)
        fresh.set_grammar(grammar.copy())
        for token in tokens[i]:
            fresh.accept(token)
        assert allowed(samplers[i]) == allowed(fresh)
