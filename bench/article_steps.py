"""The four steps of Tran-Thien's article, on 20 function calls of ours with 50 samples each, beside his times.

    python bench/article_steps.py [--vocabulary VOCAB.gguf] [--samples 50] [--json]

The functions are in bench/data/functions.jsonl, a JSON Schema of its arguments each; `samples_of` makes samples from
the values and `examples` in it. The steps, each with its counterpart here under ``tokenization="proper"``:

1. the automaton of all texts that the tokenizer writes (DirectMerge), once for a tokenizer; here what `Spelling` reads
   of it, the tree of its tokens, and the comparison of both with the tokenizer itself
2. Outlines' automaton of a schema over tokens; here `Grammar.json_schema`
3. both automata together (CartesianMerge), for each schema; here the first masks of its states, which are made on the
   way: what a first pass through the samples takes above a second one
4. the mask of a step of decoding; here a token of the second pass, with taking it

Times are CPU time of the thread, means over the schemas. The article's are from its notebook, with Mistral 7B (32,000
tokens, 100 characters), function calls of glaive-function-calling-v2, on a machine that it does not name, so only the
orders of magnitude can be compared. `forced` is the share of the samples' tokens that alone are allowed (percent),
which the article gives as 4.0 without and 20.4 with the second automaton.

Without --vocabulary it is the one of tests/vectors (V = 32,000).
"""

import argparse
import json
import random
from pathlib import Path
from statistics import mean
from time import thread_time
from typing import Any, get_args

from constraints import VECTORS, passed
from lzsampler import Grammar, Sampler
from lzsampler.constraint.grammar import Tokenization
from lzsampler.constraint.tokens import Spelling
from lzsampler.llama.vocabulary import Vocabulary
from tokenization import allowed, exact

FUNCTIONS = Path(__file__).parent / "data" / "functions.jsonl"
ARTICLE = (20.87, 0.687, 27.26, 0.00153)  # seconds
NAMES = ("the tokenizer, once", "a schema", "both together", "a mask")


def value_of(schema: dict[str, Any], rng: random.Random) -> Any:
    """Return a random value that meets one of the schemas of FUNCTIONS."""
    for keyword in ("enum", "examples"):
        if keyword in schema:
            return rng.choice(schema[keyword])
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return value_of(rng.choice(schema["anyOf"]), rng)
    if schema["type"] == "object":
        chosen = [name for name in schema["properties"] if name in schema["required"] or rng.random() < 0.5]
        return {name: value_of(schema["properties"][name], rng) for name in chosen}
    if schema["type"] == "array":
        return [value_of(schema["items"], rng) for _ in range(rng.randint(schema["minItems"], schema["maxItems"]))]
    if schema["type"] == "integer":
        return rng.randint(schema["minimum"], schema["maximum"])
    return rng.random() < 0.5


def samples_of(schema: dict[str, Any], n: int) -> list[str]:
    rng = random.Random(20)
    return [json.dumps(value_of(schema, rng)) for _ in range(n)]


def forced(schema: dict[str, Any], spelling: Spelling, texts: list[list[int]], tokenization: Tokenization) -> int:
    """Return how many tokens of some texts alone were allowed."""
    sampler = Sampler(spelling.token_bytes.n_vocab)
    sampler.set_grammar(Grammar.json_schema(schema, spelling, tokenization=tokenization))
    n = 0
    for tokens in texts:
        sampler.reset()
        for token in tokens:
            choices = allowed(sampler)
            assert token in choices
            n += choices.size == 1
            sampler.accept(token)
    return n


def measured(vocabulary: Vocabulary, n_samples: int) -> dict[str, Any]:
    start = thread_time()
    spelling = vocabulary.token_bytes.spelling
    once, makings, masks, steps = thread_time() - start, [], [], []
    n_forced, n_tokens, n_texts = dict.fromkeys(get_args(Tokenization), 0), 0, 0
    for line in FUNCTIONS.read_text(encoding="utf-8").splitlines():
        schema = json.loads(line)["parameters"]
        start = thread_time()
        grammar = Grammar.json_schema(schema, spelling, tokenization="proper")
        makings.append(thread_time() - start)
        samples = samples_of(schema, n_samples)
        assert all(grammar.match(sample) == "yes" for sample in samples)
        texts = [exact(sample, vocabulary, spelling) for sample in samples]
        sampler = Sampler(vocabulary.n_vocab)
        sampler.set_grammar(Grammar.json_schema(schema, spelling, tokenization="proper"))
        first, second = passed(sampler, texts), passed(sampler, texts)
        masks.append((sum(first) - sum(second)) / 1e6)
        steps += second
        n_texts, n_tokens = n_texts + len(texts), n_tokens + sum(map(len, texts))
        for tokenization in get_args(Tokenization):
            n_forced[tokenization] += forced(schema, spelling, texts, tokenization)
    shares = {tokenization: 100 * n / n_tokens for tokenization, n in n_forced.items()}
    seconds = (once, mean(makings), mean(masks), mean(steps) / 1e6)
    return {"n_vocab": vocabulary.n_vocab, "texts": n_texts, "tokens": n_tokens, "seconds": seconds, "forced": shares}


def shown(seconds: float) -> str:
    return (
        f"{seconds:.2f} s"
        if seconds >= 0.1
        else f"{1e3 * seconds:.2f} ms"
        if seconds >= 1e-4
        else f"{1e6 * seconds:.2f} us"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, default=VECTORS / "ggml-vocab-llama-spm.gguf")
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    vocabulary = Vocabulary(options.vocabulary)
    row = measured(vocabulary, options.samples)
    vocabulary.close()
    if options.json:
        print(json.dumps(row))
        return
    print(f"V = {row['n_vocab']:,}; {row['texts']:,} samples of {row['tokens']:,} tokens")
    print(f"{'':22}{'here':>12}{'article':>12}{'times':>10}")
    for i, (name, here, there) in enumerate(zip(NAMES, row["seconds"], ARTICLE, strict=True), 1):
        print(f"{i} {name:20}{shown(here):>12}{shown(there):>12}{there / here:>10,.0f}")
    print("forced, percent: " + ", ".join(f"{share:.1f} with {name}" for name, share in row["forced"].items()))


if __name__ == "__main__":
    main()
