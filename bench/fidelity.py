"""How far a mask moves a model's probabilities: two texts, without a grammar, with `any` and with `proper` tokens.

    python bench/fidelity.py [--model smollm2] [--rest 0.1] [--json]

The article's two examples, three prompts each: William or Theodore, and what kind of animal a shark is. `model` is the
probability of the first text that the model itself gives, of both texts as the tokenizer writes them; `any` and
`proper` are its probability when each token is drawn from those that the grammar of both texts allows. It is the sum
over the ways to spell the texts, the likely ones first, until what is left has at most --rest; half of that counts for
the first text. `paths` are the beginnings that were continued, and `error` is the distance from the model's own.
"""

import argparse
import json
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lzsampler import Grammar, Model, Sampler
from lzsampler.constraint.grammar import Tokenization
from lzsampler.decoding.draft import common_length
from lzsampler.models import find_model
from tokenization import allowed

WILLIAM = (" William", " Theodore")
SHARK = (" shark is a kind of mammal", " shark is a kind of fish")
CASES = [
    (
        "Question: What is the first name of the US president who was a member of the Sigma Alpha Epsilon "
        "fraternity?\nAnswer:",
        WILLIAM,
    ),
    ("The president who built the Panama Canal was called", WILLIAM),
    ("The Conqueror of England in 1066 was called", WILLIAM),
    ("A whale", SHARK),
    ("A tiger", SHARK),
    ("A cow", SHARK),
]


class Estimate(NamedTuple):
    """A probability up to half of ``rest``, and the number of beginnings that were continued for it."""

    value: float
    rest: float
    paths: int


def probabilities(model: Model, tokens: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return the model's probabilities of the token after some: float64[n_vocab]."""
    model.keep(common_length(model.past, tokens[:-1]))
    model.decode(tokens[model.n_past :])
    logits = model.logits().astype(np.float64)
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum(), np.float64)


def free(model: Model, prompt: str, texts: Sequence[str]) -> float:
    """Return the model's probability of the first text, of all of them as the tokenizer writes them."""
    begin, masses = model.tokenize(prompt), []
    for text in texts:
        tokens, mass = model.llm.tokenize(text.encode(), add_bos=False), 1.0
        for i, token in enumerate(tokens):
            mass *= probabilities(model, [*begin, *tokens[:i]])[token]
        masses.append(mass)
    return float(masses[0] / sum(masses))


def constrained(
    model: Model, prompt: str, texts: Sequence[str], tokenization: Tokenization, rest: float = 0.0
) -> Estimate:
    """Return the probability of the first text when each token is drawn from those that the grammar of all allows.

    Beginnings are continued, the likeliest first, until those that may become either text have at most ``rest``.
    """
    sampler = Sampler(model.n_vocab)
    sampler.set_grammar(Grammar.choices(texts, model, tokenization=tokenization))
    pieces, begin, order = model.token_bytes.pieces, model.tokenize(prompt), count()
    of_first, open_mass, paths = 0.0, 1.0, 0
    todo: list[tuple[float, int, Sampler, list[int]]] = [(-1.0, next(order), sampler, [])]
    while todo and open_mass > rest:
        minus_mass, _, before, tokens = heappop(todo)
        choices, p, paths = allowed(before), probabilities(model, [*begin, *tokens]), paths + 1
        total = p[choices].sum()
        for token in choices.tolist():
            mass, longer = -minus_mass * p[token] / total, [*tokens, token]
            text = b"".join(pieces[one] for one in longer)
            possible = [i for i, one in enumerate(texts) if one.encode().startswith(text)]
            if len(possible) == 1:
                of_first += mass * (possible == [0])
                open_mass -= mass
                continue
            after = before.clone()
            after.accept(token)
            heappush(todo, (-mass, next(order), after, longer))
    rest = sum(-entry[0] for entry in todo)
    return Estimate(float(of_first + rest / 2), float(rest), paths)


def measured(model: Model, prompt: str, texts: Sequence[str], rest: float) -> dict[str, Any]:
    row: dict[str, Any] = {"prompt": prompt, "texts": texts, "model": free(model, prompt, texts)}
    for name in ("any", "proper"):
        estimate = constrained(model, prompt, texts, name, rest)
        row[name] = estimate._asdict() | {"error": abs(estimate.value - row["model"])}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rest", type=float, default=0.1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with Model(find_model(options.model), n_ctx=256, n_threads=1) as model:
        rows = [measured(model, prompt, texts, options.rest) for prompt, texts in CASES]
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{'':34}{'model':>9}{'any':>9}{'error':>9}{'paths':>7}{'proper':>9}{'error':>11}")
    for row in rows:
        line = f"{row['model']:9.4f}{row['any']['value']:9.4f}{row['any']['error']:9.4f}{row['any']['paths']:7}"
        line += f"{row['proper']['value']:9.4f}{row['proper']['error']:11.1e}"
        print(f"{' '.join(row['prompt'].split())[-20:]:>20}{row['texts'][0][:13]:14}{line}")


if __name__ == "__main__":
    main()
