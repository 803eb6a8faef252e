"""Masks of constraints beside those of xgrammar, llguidance and outlines-core, in one run (needs the extra `peers`).

    python bench/constraint_peers.py --vocabulary VOCAB.gguf [--only NAME]... [--limit SECONDS] [--json]

For each constraint of tests/vectors/constraints.jsonl and schemas.jsonl, and for each engine: `compile` is the whole
call that makes a grammar of the pattern or of the schema, in milliseconds, the best of three (of one where that takes
more than a second); `first` and `second` are microseconds a token for taking a token and writing the next mask, the
mean and the 99th percentile of all steps, over the tokenizer's tokens of ten texts, with a grammar that has no mask
yet, and once more; `total` is compile and the first pass together, since an engine that makes its masks when it
compiles has a fast first pass. Times are CPU time of the thread, with nothing kept from one grammar to the next: no
caches of compilers, and no masks of parts that grammars share.

Each engine writes schemas with its own white space: lzsampler at most one blank behind a comma or colon, the others
what they do when nothing is asked of them. A text ends where an engine refuses a token of it. All are called from
Python, which costs each some microseconds. Each constraint of each engine runs in a process of its own, and is given
up after --limit seconds (60), which is "-" in the table; means over all are over those that no engine gave up.
"""

import argparse
import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, mean
from time import thread_time_ns
from typing import Any

import llguidance
import numpy as np
import outlines_core
import xgrammar
from outlines_core import json_schema

from constraints import VECTORS, exact, percentile
from lzsampler import Grammar, Sampler, TokenBytes
from lzsampler._ffi import ffi, lib
from lzsampler.constraint.json_schema import forget_parts
from lzsampler.constraint.llguidance_grammar import _tokenizer
from lzsampler.llama.vocabulary import Vocabulary

ENGINES = ("lzsampler", "xgrammar", "llguidance", "outlines-core")
FIGURES = ("compile", "total", "first", "first_p99", "first_worst", "second", "second_p99")
COMPARED = ("compile", "first", "second", "total")
Step = Callable[[int | None], bool]  # takes a token, or begins a text, and writes the mask; False where it is refused


class Lzsampler:
    def __init__(self, tokens: TokenBytes) -> None:
        self.tokens = tokens

    def compile(self, constraint: dict[str, Any]) -> Any:
        if "schema" in constraint:
            return Grammar.json_schema(constraint["schema"], self.tokens, share=False)
        return Grammar.regex(constraint["pattern"], self.tokens)

    def stepper(self, grammar: Any) -> Step:
        sampler = Sampler(self.tokens.n_vocab)
        sampler.set_grammar(grammar)
        plan, handle = ffi.new("lzs_plan *"), sampler.handle

        def step(token: int | None) -> bool:
            if token is None:
                sampler.reset()
            else:
                lib.lzs_accept(handle, token)
            return int(lib.lzs_sampler_plan(handle, plan)) == 0

        return step


class Xgrammar:
    def __init__(self, tokens: TokenBytes) -> None:
        hidden = {*tokens.end, *tokens.special}
        pieces = [b"" if token in hidden else piece for token, piece in enumerate(tokens.pieces)]
        info = xgrammar.TokenizerInfo(pieces, stop_token_ids=list(tokens.end))
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = np.zeros((1, (tokens.n_vocab + 31) // 32), np.int32)

    def compile(self, constraint: dict[str, Any]) -> Any:
        if "schema" in constraint:
            return self.compiler.compile_json_schema(json.dumps(constraint["schema"]))
        return self.compiler.compile_regex(constraint["pattern"].replace("\\ ", " "))  # it warns of each of them

    def stepper(self, grammar: Any) -> Step:
        matcher, mask = xgrammar.GrammarMatcher(grammar), self.mask

        def step(token: int | None) -> bool:
            if token is None:
                matcher.reset()
            elif not matcher.accept_token(token):
                return False
            matcher.fill_next_token_bitmask(mask)
            return True

        return step


class Llguidance:
    def __init__(self, tokens: TokenBytes) -> None:
        self.tokenizer = _tokenizer(tokens)
        self.mask = np.zeros((tokens.n_vocab + 31) // 32, np.uint32)

    def compile(self, constraint: dict[str, Any]) -> Any:
        if "schema" in constraint:
            text = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(constraint["schema"]))
        else:
            text = llguidance.LLMatcher.grammar_from_regex(constraint["pattern"])
        matcher = llguidance.LLMatcher(self.tokenizer, text, log_level=0)
        assert not matcher.is_error(), matcher.get_error()
        return matcher

    def stepper(self, grammar: Any) -> Step:
        pointer, n_bytes = self.mask.ctypes.data, self.mask.nbytes

        def step(token: int | None) -> bool:
            if token is None:
                grammar.reset()
            elif not grammar.consume_token(token):
                return False
            grammar.unsafe_compute_mask_ptr(pointer, n_bytes)
            return True

        return step


class Outlines:
    def __init__(self, tokens: TokenBytes) -> None:
        hidden = {*tokens.end, *tokens.special}
        ids: dict[bytes, list[int]] = {}
        for token, piece in enumerate(tokens.pieces):
            if piece and token not in hidden:
                ids.setdefault(piece, []).append(token)
        self.vocabulary = outlines_core.Vocabulary(tokens.end[0], ids)
        self.mask = np.zeros((tokens.n_vocab + 31) // 32, np.uint32)

    def compile(self, constraint: dict[str, Any]) -> Any:
        pattern = constraint.get("pattern")
        if pattern is None:
            pattern = json_schema.build_regex_from_schema(json.dumps(constraint["schema"]))
        return outlines_core.Index(pattern, self.vocabulary)

    def stepper(self, grammar: Any) -> Step:
        guide, pointer, n = outlines_core.Guide(grammar), self.mask.ctypes.data, self.mask.size

        def step(token: int | None) -> bool:
            if token is None:
                guide.reset()
            else:
                try:
                    guide.advance(token, return_tokens=False)
                except ValueError:
                    return False
            guide.write_mask_into(pointer, n, 4)
            return True

        return step


def passed(step: Step, texts: list[list[int]]) -> list[float]:
    """Return microseconds for each token of some texts."""
    times = []
    for tokens in texts:
        for token in [None, *tokens]:
            start = thread_time_ns()
            taken = step(token)
            times.append((thread_time_ns() - start) / 1e3)
            if not taken:
                times.pop()
                break
    return times


def spread(times: list[float]) -> tuple[float, float]:
    return mean(times), percentile(times, 0.99)


def measured(engine: Any, constraint: dict[str, Any], texts: list[list[int]], out: Any) -> None:
    compiles: list[float] = []
    while not compiles or (len(compiles) < 3 and compiles[0] < 1000):
        forget_parts()
        start = thread_time_ns()
        grammar = engine.compile(constraint)
        compiles.append((thread_time_ns() - start) / 1e6)
    step = engine.stepper(grammar)
    first, second = passed(step, texts), passed(step, texts)
    total = min(compiles) + sum(first) / 1e3
    figures = [min(compiles), total, *spread(first), max(first), *spread(second)]
    out.send({**dict(zip(FIGURES, figures, strict=True)), "steps": len(first)})


def apart(engine: Any, constraint: dict[str, Any], texts: list[list[int]], limit: float) -> dict[str, float] | None:
    """Return the figures of a constraint, measured in a process of its own; None where that was given up."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=measured, args=(engine, constraint, texts, sender))
    process.start()
    sender.close()
    figures: dict[str, float] | None = None
    if receiver.poll(limit):
        try:
            figures = receiver.recv()
        except EOFError:  # it failed, and has said why
            figures = None
    process.kill()
    process.join()
    return figures


def texts_of(constraint: dict[str, Any], vocabulary: Vocabulary, tokens: TokenBytes) -> list[list[int]]:
    grammar = Lzsampler(tokens).compile(constraint)
    written = [sample if isinstance(sample, str) else json.dumps(sample) for sample in constraint["samples"]]
    return [exact(sample, vocabulary, tokens) for sample in written if grammar.match(sample) == "yes"]


def mean_of(rows: list[dict[str, Any]], engine: str, figure: str) -> float:
    return geometric_mean(row[engine][figure] for row in rows) if rows else float("nan")


def slower(rows: list[dict[str, Any]], figure: str) -> list[str]:
    """Return the constraints on which lzsampler takes more than three times as long as the fastest of the others."""
    found = []
    for row in rows:
        others = [row[engine][figure] for engine in ENGINES[1:] if row[engine]]
        if others and row["lzsampler"][figure] > 3 * min(others):
            found.append(f"{row['name']} ({row['lzsampler'][figure] / min(others):.1f})")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, default=VECTORS / "ggml-vocab-llama-spm.gguf")
    parser.add_argument("--only", action="append", help="the beginning of a constraint's name")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    vocabulary = Vocabulary(options.vocabulary)
    tokens = vocabulary.token_bytes
    engines = dict(zip(ENGINES, (kind(tokens) for kind in (Lzsampler, Xgrammar, Llguidance, Outlines)), strict=True))
    files = [VECTORS / "constraints.jsonl", VECTORS / "schemas.jsonl"]
    constraints = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    rows = []
    for constraint in constraints:
        if options.only and not constraint["name"].startswith(tuple(options.only)):
            continue
        texts = texts_of(constraint, vocabulary, tokens)
        figures = {name: apart(engine, constraint, texts, options.limit) for name, engine in engines.items()}
        rows.append({"name": constraint["name"], **figures})
    whole = [row for row in rows if all(row[engine] for engine in ENGINES)]
    means = {engine: {figure: mean_of(whole, engine, figure) for figure in COMPARED} for engine in ENGINES}
    slow = {figure: slower(rows, figure) for figure in COMPARED}
    if options.json:
        print(json.dumps({"n_vocab": tokens.n_vocab, "rows": rows, "geomean": means, "slower than 3 times": slow}))
        return
    print(f"V = {tokens.n_vocab:,}: compile ms, first us (99th percentile), second us (99th percentile)")
    print(f"{'':15}" + "".join(f"{engine:>42}" for engine in ENGINES))
    for row in rows:
        print(f"{row['name']:15}" + "".join(cell(row[engine]) for engine in ENGINES))
    ends = "".join(f"{m['compile']:11.3f}{m['first']:9.1f}{'':7}{m['second']:8.1f}{'':7}" for m in means.values())
    print(f"{'geometric mean':15}{ends}")
    print("total, ms: " + ", ".join(f"{engine} {m['total']:.2f}" for engine, m in means.items()) + " (geometric means)")
    for figure, names in slow.items():
        print(f"{figure}: more than 3 times the best of the others: {', '.join(names) or 'none'}")


def cell(figures: dict[str, float] | None) -> str:
    if figures is None:
        return f"{'-':>42}"
    values = (figures[name] for name in ("compile", "first", "first_p99", "second", "second_p99"))
    return "{:11.3f}{:9.1f}{:7.0f}{:8.1f}{:7.0f}".format(*values)


if __name__ == "__main__":
    main()
