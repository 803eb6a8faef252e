"""Masks of regular expressions and JSON Schemas: the time to make a grammar, and of each mask on the way through texts.

    python bench/constraints.py [--vocabulary VOCAB.gguf] [--constraints FILE.jsonl]... [--json]

For each constraint of tests/vectors/constraints.jsonl and schemas.jsonl: `python` is the translation of a schema in
milliseconds, and `compile` what the rest of `Grammar.json_schema` or all of `Grammar.regex` takes, the best of five;
`first` and `second` are microseconds a token for taking a token and asking for the next mask (`lzs_accept`,
`lzs_sampler_plan`), mean and 99th percentile, over the tokenizer's tokens of the ten texts, with a grammar that has
no mask yet, and once more through the same texts. `worst` is the longest step of the first pass. `states` and `MB`
are what the grammar then holds. Times are CPU time of the thread: other programs disturb them less.

Without --vocabulary it is the one of tests/vectors (V = 32,000).
"""

import argparse
import json
from pathlib import Path
from statistics import geometric_mean, mean
from time import thread_time_ns
from typing import Any

from lzsampler import Grammar, Sampler, TokenBytes
from lzsampler._ffi import ffi, lib
from lzsampler.constraint.json_schema import forget_parts, parts_of
from lzsampler.llama.vocabulary import Vocabulary

VECTORS = Path(__file__).parents[1] / "tests" / "vectors"


def passed(sampler: Sampler, texts: list[list[int]]) -> list[float]:
    """Return microseconds for each token of some texts."""
    plan, handle = ffi.new("lzs_plan *"), sampler.handle
    times = []
    for tokens in texts:
        sampler.reset()
        for token in [None, *tokens]:
            start = thread_time_ns()
            if token is not None:
                lib.lzs_accept(handle, token)
            status = lib.lzs_sampler_plan(handle, plan)
            times.append((thread_time_ns() - start) / 1e3)
            assert status == 0
    return times


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def made(constraint: dict[str, Any], tokens: TokenBytes) -> Grammar:
    if "schema" in constraint:
        return Grammar.json_schema(constraint["schema"], tokens, share=False)
    return Grammar.regex(constraint["pattern"], tokens)


def compile_parts(rows: Any, children: Any, text: bytes, tokens: TokenBytes) -> None:
    out = ffi.new("lzs_grammar **")
    parts = ffi.from_buffer("lzs_part[]", rows)
    arrays = [parts, len(parts), ffi.from_buffer("uint32_t[]", children), len(children)]
    status = lib.lzs_grammar_new_parts(
        *arrays, ffi.from_buffer("uint8_t[]", text), len(text), tokens.handle, 0, ffi.NULL, out
    )
    assert status == 0
    lib.lzs_grammar_free(out[0])


def measured(constraint: dict[str, Any], vocabulary: Vocabulary, tokens: TokenBytes) -> dict[str, Any]:
    grammar = made(constraint, tokens)
    compiles, translations = [], []
    for _ in range(5):
        forget_parts()
        start = middle = thread_time_ns()
        if "schema" in constraint:
            parts = parts_of(constraint["schema"], 5, True).arrays()
            middle = thread_time_ns()
            compile_parts(*parts, tokens)
        else:
            made(constraint, tokens)
        compiles.append((thread_time_ns() - middle) / 1e6)
        translations.append((middle - start) / 1e6)
    written = [sample if isinstance(sample, str) else json.dumps(sample) for sample in constraint["samples"]]
    samples = [sample for sample in written if grammar.match(sample) == "yes"]
    grammar = made(constraint, tokens)
    texts = [exact(sample, vocabulary, tokens) for sample in samples]
    sampler = Sampler(tokens.n_vocab)
    sampler.set_grammar(grammar)
    first, second = passed(sampler, texts), passed(sampler, texts)
    return {
        "name": constraint["name"],
        "python": min(translations),
        "compile": min(compiles),
        "first": mean(first),
        "first_p99": percentile(first, 0.99),
        "worst": max(first),
        "second": mean(second),
        "second_p99": percentile(second, 0.99),
        "states": grammar.states,
        "MB": grammar.memory / 2**20,
    }


def exact(text: str, vocabulary: Vocabulary, tokens: TokenBytes) -> list[int]:
    """Return the tokenizer's tokens of a text, without a space that it puts before it."""
    made: list[int] = vocabulary.tokenize(text)[0].tolist()
    if b"".join(tokens.pieces[token] for token in made) == text.encode():
        return made
    behind_a_line: list[int] = vocabulary.tokenize(f"\n{text}")[0].tolist()
    return behind_a_line[len(vocabulary.tokenize("\n")[0]) :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, default=VECTORS / "ggml-vocab-llama-spm.gguf")
    parser.add_argument("--constraints", type=Path, action="append")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    vocabulary = Vocabulary(options.vocabulary)
    read = vocabulary.token_bytes
    start = thread_time_ns()
    tokens = TokenBytes(read.pieces, end=read.end, special=read.special)
    vocabulary_ms = (thread_time_ns() - start) / 1e6
    files = options.constraints or [VECTORS / "constraints.jsonl", VECTORS / "schemas.jsonl"]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    rows = [measured(json.loads(line), vocabulary, tokens) for line in lines]
    means = {name: geometric_mean(row[name] for row in rows) for name in ("compile", "first", "second")}
    if options.json:
        print(json.dumps({"n_vocab": tokens.n_vocab, "vocabulary_ms": vocabulary_ms, "rows": rows, "geomean": means}))
        return
    print(f"V = {tokens.n_vocab:,}; the tree of the vocabulary takes {vocabulary_ms:.0f} ms")
    print(
        f"{'':18}{'python':>8}{'compile':>9}{'first':>9}{'p99':>9}{'worst':>9}{'second':>9}{'p99':>9}{'states':>8}{'MB':>7}"
    )
    for row in rows:
        print(
            f"{row['name']:18}{row['python']:8.2f}{row['compile']:9.3f}{row['first']:9.2f}{row['first_p99']:9.1f}{row['worst']:9.1f}"
            f"{row['second']:9.2f}{row['second_p99']:9.1f}{row['states']:8}{row['MB']:7.2f}"
        )
    print(f"{'geometric mean':26}{means['compile']:9.3f}{means['first']:9.2f}{'':18}{means['second']:9.2f}")


if __name__ == "__main__":
    main()
