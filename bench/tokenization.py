"""What `tokenization` costs and what it gives, for one or several vocabularies.

    python bench/tokenization.py [--vocabulary VOCAB.gguf]... [--walks 2000] [--seed 7] [--text FILE]...
        [--only PART ...] [--json]

- `walks`: random texts under the 18 constraints of tests/vectors/constraints.jsonl and schemas.jsonl with
  ``tokenization="proper"``. Each token is drawn from those that are allowed; after 40 of them the end is chosen where
  it may come, and closing marks before other tokens. `stuck`: nothing was allowed; `improper`: llama.cpp's tokenizer
  writes the text with other tokens; `unfinished`: longer than 400 tokens. Each --seed has walks of its own, so that a
  long run can be made in parts.
- `others`: a tenth as many random texts with ``tokenization="any"``; `refused`: ``"proper"`` does not allow the tokens
  that llama.cpp's tokenizer writes for one.
- `texts`: tokens that the tokenizer writes and `proper` would refuse, over texts of all kinds: the sources, documents
  and vectors of this repository, or --text.
- `forced`: of the tokens of the samples of the ten schemas, the share that is the only one allowed (in percent): it
  needs no step of the model.
- `times`: microseconds a token for a token and the next mask, mean over all constraints, as bench/constraints.py
  takes them: the first pass, the second, and the longest step of the first; with --samples of each constraint.

Without --vocabulary it is the one of tests/vectors (V = 32,000).
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np

from constraints import VECTORS, passed, percentile
from lzsampler import Grammar, Sampler
from lzsampler.constraint.grammar import Tokenization
from lzsampler.constraint.tokens import Spelling
from lzsampler.llama.vocabulary import Vocabulary

ROOT = Path(__file__).parents[1]
PARTS = ("walks", "others", "texts", "forced", "times")
SPREAD, LONGEST = 40, 400  # tokens of a random walk: chosen freely, and at all
CLOSING = frozenset(b'"]}, :')
CHUNK = 4000  # characters


def constraints() -> list[dict[str, Any]]:
    files = (VECTORS / "constraints.jsonl", VECTORS / "schemas.jsonl")
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def made(constraint: dict[str, Any], spelling: Spelling, tokenization: Tokenization) -> Grammar:
    if "schema" in constraint:
        return Grammar.json_schema(constraint["schema"], spelling, tokenization=tokenization)
    return Grammar.regex(constraint["pattern"], spelling, tokenization=tokenization)


def allowed(sampler: Sampler) -> Any:
    words = sampler.allowed()
    assert words is not None
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


def walk(sampler: Sampler, spelling: Spelling, rng: random.Random) -> list[int] | None:
    """Return the tokens of a random text, without the one that ends it; None where nothing was allowed."""
    tokens: list[int] = []
    vocabulary = spelling.token_bytes
    ends = set(vocabulary.end)
    sampler.reset()
    while len(tokens) < LONGEST:
        choices = allowed(sampler)
        if not choices.size:
            return None
        if (len(tokens) >= SPREAD or rng.random() < 0.1) and not ends.isdisjoint(choices.tolist()):
            break
        if len(tokens) >= SPREAD:
            closing = [token for token in choices.tolist() if CLOSING.issuperset(vocabulary.pieces[token])]
            choices = np.array(closing) if closing and rng.random() < 0.8 else choices
        token = int(choices[rng.randrange(choices.size)])
        if token in ends:
            break
        sampler.accept(token)
        tokens.append(token)
    return tokens


def exact(text: str, vocabulary: Vocabulary, spelling: Spelling) -> list[int]:
    """Return what the tokenizer writes for a text, without a space that it puts before it."""
    before = "\n" if spelling.words == "none" else ""
    made: list[int] = vocabulary.tokenize(before + text)[0].tolist()
    return made[len(vocabulary.tokenize(before)[0]) :]


def written(vocabulary: Vocabulary, spelling: Spelling, tokens: list[int]) -> list[int]:
    """Return what the tokenizer writes for the text of some tokens."""
    return exact(b"".join(spelling.token_bytes.pieces[token] for token in tokens).decode(), vocabulary, spelling)


def walks(vocabulary: Vocabulary, spelling: Spelling, n: int, seed: int) -> dict[str, Any]:
    rng, all_constraints = random.Random(seed), constraints()
    counts = {"walks": 0, "tokens": 0, "stuck": 0, "improper": 0, "unfinished": 0}
    for i, constraint in enumerate(all_constraints):
        sampler = Sampler(vocabulary.n_vocab)
        sampler.set_grammar(made(constraint, spelling, "proper"))
        for _ in range(n // len(all_constraints) + (i < n % len(all_constraints))):
            tokens = walk(sampler, spelling, rng)
            counts["walks"] += 1
            if tokens is None:
                counts["stuck"] += 1
                continue
            counts["tokens"] += len(tokens)
            if len(tokens) == LONGEST:
                counts["unfinished"] += 1
            elif written(vocabulary, spelling, tokens) != tokens:
                counts["improper"] += 1
    return counts


def others(vocabulary: Vocabulary, spelling: Spelling, n: int, seed: int) -> dict[str, int]:
    rng, all_constraints = random.Random(seed), constraints()
    counts = {"texts": 0, "tokens": 0, "refused": 0}
    for i, constraint in enumerate(all_constraints):
        loose, strict = Sampler(vocabulary.n_vocab), Sampler(vocabulary.n_vocab)
        loose.set_grammar(made(constraint, spelling, "any"))
        strict.set_grammar(made(constraint, spelling, "proper"))
        for _ in range(n // len(all_constraints) + (i < n % len(all_constraints))):
            walked = walk(loose, spelling, rng)
            if walked is None or len(walked) == LONGEST:
                continue
            strict.reset()
            counts["texts"] += 1
            for token in written(vocabulary, spelling, walked):
                if token not in allowed(strict):
                    counts["refused"] += 1
                    break
                strict.accept(token)
                counts["tokens"] += 1
    return counts


def chunks(files: list[Path]) -> Iterator[str]:
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        for at in range(0, len(text), CHUNK):
            yield text[at : at + CHUNK]


def texts(vocabulary: Vocabulary, spelling: Spelling, given: list[Path]) -> dict[str, Any]:
    kinds = {
        "code": [*ROOT.glob("c/**/*.c"), *ROOT.glob("lzsampler/**/*.py"), *ROOT.glob("tests/*.py")],
        "JSON": [*VECTORS.glob("*.json*")],
        "prose": [*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"],
    }
    counts = {}
    for kind, files in {"given": given}.items() if given else kinds.items():
        n_bytes = n_tokens = refused = 0
        for text in chunks(sorted(files)):
            tokens = vocabulary.tokenize(text)[0]
            n_bytes, n_tokens = n_bytes + len(text.encode()), n_tokens + len(tokens)
            refused += spelling.wrong(tokens) is not None
        counts[kind] = {"bytes": n_bytes, "tokens": n_tokens, "refused": refused}
    return counts


def samples_of(constraint: dict[str, Any], grammar: Grammar) -> list[str]:
    texts = [sample if isinstance(sample, str) else json.dumps(sample) for sample in constraint["samples"]]
    return [sample for sample in texts if grammar.match(sample) == "yes"]


def forced(vocabulary: Vocabulary, spelling: Spelling) -> dict[str, float]:
    shares = {}
    for tokenization in ("any", "forced", "proper"):
        only = total = 0
        for constraint in constraints():
            if "schema" not in constraint:
                continue
            grammar = made(constraint, spelling, tokenization)
            sampler = Sampler(vocabulary.n_vocab)
            sampler.set_grammar(grammar)
            for sample in samples_of(constraint, grammar):
                sampler.reset()
                for token in exact(sample, vocabulary, spelling):
                    only += allowed(sampler).size == 1
                    total += 1
                    sampler.accept(token)
        shares[tokenization] = 100 * only / total
    return shares


def times(vocabulary: Vocabulary, spelling: Spelling, n: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for tokenization in ("any", "forced", "proper"):
        first, second, worst = [], [], {}
        for constraint in constraints():
            grammar = made(constraint, spelling, tokenization)
            texts = [exact(sample, vocabulary, spelling) for sample in samples_of(constraint, grammar)[:n]]
            sampler = Sampler(vocabulary.n_vocab)
            sampler.set_grammar(grammar)
            steps = passed(sampler, texts)
            worst[constraint["name"]] = max(steps)
            first += steps
            second += passed(sampler, texts)
        figures[tokenization] = {
            "first": mean(first),
            "second": mean(second),
            "second_p99": percentile(second, 0.99),
            "worst": max(worst.values()),
            "worst_of": max(worst, key=lambda name: worst[name]),
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, action="append")
    parser.add_argument("--walks", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--text", type=Path, action="append", default=[])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for path in options.vocabulary or [VECTORS / "ggml-vocab-llama-spm.gguf"]:
        vocabulary = Vocabulary(path)
        tokens = vocabulary.token_bytes
        start = perf_counter()
        spelling = tokens.spelling
        row: dict[str, Any] = {
            "vocabulary": path.name,
            "n_vocab": vocabulary.n_vocab,
            "spelling_s": perf_counter() - start,
        }
        if "walks" in options.only:
            row["walks"] = walks(vocabulary, spelling, options.walks, options.seed)
        if "others" in options.only:
            row["others"] = others(vocabulary, spelling, options.walks // 10, options.seed)
        if "texts" in options.only:
            row["texts"] = texts(vocabulary, spelling, options.text)
        if "forced" in options.only:
            row["forced"] = forced(vocabulary, spelling)
        if "times" in options.only:
            row["times"] = times(vocabulary, spelling, options.samples)
        vocabulary.close()
        print(json.dumps(row) if options.json else "\n".join(f"{name:12}{value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
