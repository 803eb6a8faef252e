"""What a second schema gains from the masks of a first one that has the same parts.

    python bench/part_masks.py [--vocabulary VOCAB.gguf]... [--json]

The second schema is each of tests/vectors/schemas.jsonl, the first one the same with other names of properties. For the
second, in microseconds: all of `Grammar.json_schema`; making its masks, which is the first pass through its ten samples
less the second pass, which finds them all; and the longest step. Three times so: without shared parts, behind the first
schema, and behind a file with the parts that are common. `ratio` is compile and masks without shared parts against
behind the first schema, `masks` the masks alone. That the masks are equal is checked. Times are CPU time of the thread;
the best of five.

Without --vocabulary it is the one of tests/vectors (V = 32,000).
"""

import argparse
import json
import tempfile
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from constraints import VECTORS, exact, passed
from lzsampler import Grammar, Sampler, TokenBytes
from lzsampler.constraint.json_schema import forget_parts
from lzsampler.constraint.part_masks import PartMasks
from lzsampler.llama.vocabulary import Vocabulary

PASSES = 5


def renamed(schema: Any) -> Any:
    """Return a schema with other names of properties."""
    if isinstance(schema, list):
        return [renamed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: renamed(value) for name, value in schema.items() if name not in ("properties", "required")}
    if "properties" in schema:
        made["properties"] = {f"other {name}": renamed(value) for name, value in schema["properties"].items()}
        made["required"] = [f"other {name}" for name in schema.get("required", [])]
    return made


def masks_of(grammar: Grammar, texts: list[list[int]]) -> list[npt.NDArray[np.uint32]]:
    sampler = Sampler(grammar.vocabulary.n_vocab)
    sampler.set_grammar(grammar)
    masks = []
    for tokens in texts:
        sampler.reset()
        for token in [None, *tokens]:
            if token is not None:
                sampler.accept(token)
            words = sampler.allowed()
            assert words is not None
            masks.append(words)
    return masks


def timed(schema: Any, tokens: TokenBytes, texts: list[list[int]], masks: PartMasks | None) -> tuple[float, ...]:
    """Return microseconds for making the grammar and for all masks, and the longest step."""
    forget_parts()
    begin = thread_time_ns()
    grammar = Grammar.json_schema(schema, tokens, share=False)
    if masks is not None:
        grammar.use_part_masks(masks)
    compiled = (thread_time_ns() - begin) / 1e3
    sampler = Sampler(tokens.n_vocab)
    sampler.set_grammar(grammar)
    first, second = passed(sampler, texts), passed(sampler, texts)
    return compiled, sum(first) - sum(second), max(first)


def used(schema: Any, tokens: TokenBytes, texts: list[list[int]]) -> PartMasks:
    """Return masks that a schema has left behind."""
    masks = PartMasks(tokens)
    timed(schema, tokens, texts, masks)
    return masks


def measured(row: dict[str, Any], vocabulary: Vocabulary, tokens: TokenBytes, prepared: Path) -> dict[str, Any]:
    grammar = Grammar.json_schema(row["schema"], tokens, share=False)
    samples = [json.dumps(sample) for sample in row["samples"]]
    texts = [exact(sample, vocabulary, tokens) for sample in samples if grammar.match(sample) == "yes"]
    first = renamed(row["schema"])
    first_grammar = Grammar.json_schema(first, tokens, share=False)
    first_texts = [json.dumps(renamed_value(sample, row["schema"])) for sample in row["samples"]]
    others = [exact(text, vocabulary, tokens) for text in first_texts if first_grammar.match(text) == "yes"]

    def from_file() -> PartMasks:
        masks = PartMasks(tokens)
        masks.load(prepared)
        return masks

    ways = {
        "without": lambda: None,
        "behind": lambda: used(first, tokens, others),
        "file": from_file,
    }
    plain = masks_of(grammar, texts)
    for way in ways.values():
        shared = Grammar.json_schema(row["schema"], tokens, share=False)
        masks = way()
        if masks is not None:
            shared.use_part_masks(masks)
        assert all(np.array_equal(a, b) for a, b in zip(plain, masks_of(shared, texts), strict=True))
    figures: dict[str, Any] = {"name": row["name"], "steps": len(plain)}
    for name, way in ways.items():
        runs = [timed(row["schema"], tokens, texts, way()) for _ in range(PASSES)]
        figures[name] = [min(run[i] for run in runs) for i in range(3)]
    return figures


def ratios(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Return how much faster the second schemas are behind the first ones: compile and masks, and masks alone."""
    without, behind = (np.sum([row[way] for row in rows], axis=0) for way in ("without", "behind"))
    return float(sum(without[:2]) / sum(behind[:2])), float(without[1] / behind[1])


def renamed_value(value: Any, schema: Any) -> Any:
    """Return a value with the names of properties that `renamed` gives."""
    if isinstance(value, list):
        return [renamed_value(item, schema) for item in value]
    if not isinstance(value, dict):
        return value
    return {f"other {name}": renamed_value(inner, schema) for name, inner in value.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, action="append")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [json.loads(line) for line in (VECTORS / "schemas.jsonl").read_text(encoding="utf-8").splitlines()]
    for path in options.vocabulary or [VECTORS / "ggml-vocab-llama-spm.gguf"]:
        vocabulary = Vocabulary(path)
        tokens = vocabulary.token_bytes
        with tempfile.TemporaryDirectory() as folder:
            prepared = Path(folder) / "parts"
            masks = PartMasks(tokens)
            begin = thread_time_ns()
            masks.prepare()
            prepare_ms = (thread_time_ns() - begin) / 1e6
            masks.save(prepared)
            size = prepared.stat().st_size
            made = [measured(row, vocabulary, tokens, prepared) for row in rows]
        vocabulary.close()
        ratio, masks_ratio = ratios(made)
        summary = {
            "n_vocab": tokens.n_vocab,
            "prepare_ms": prepare_ms,
            "file_bytes": size,
            "masks": masks.figures.masks,
        }
        if options.json:
            print(json.dumps({**summary, "ratio": ratio, "masks ratio": masks_ratio, "rows": made}))
            continue
        print(", ".join(f"{name} {value:,.0f}" for name, value in summary.items()))
        print(f"{'':15}{'without':>24}{'behind':>26}{'file':>26}{'ratio':>9}{'masks':>7}")
        for row in made:
            figures = "".join("".join(f"{value:9.0f}" for value in row[way]) for way in ("without", "behind", "file"))
            print(f"{row['name']:14}{figures}{'{:8.1f}{:7.1f}'.format(*ratios([row]))}")
        print(f"{'all':95}{ratio:8.1f}{masks_ratio:7.1f}")


if __name__ == "__main__":
    main()
