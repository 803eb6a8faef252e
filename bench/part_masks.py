"""What a second schema gains from a first one that has the same parts.

    python bench/part_masks.py [--vocabulary VOCAB.gguf]... [--json]

The second schema is each of tests/vectors/schemas.jsonl. In microseconds, for the second one: all of
`Grammar.json_schema`; making its masks, which is the first pass through its ten samples less the second pass, which
finds them all; and the longest step. So in four ways:

- `without`: nothing is kept, neither masks nor translations.
- `names`: behind the same schema with other names of properties, and its samples. What a process keeps is kept: the
  masks of shared parts, and the translation, into which the other names are put.
- `prepared`: no schema came before, but the masks of the parts that are common were made.
- `order`: behind another schema that the second one is made of: its properties or alternatives in the opposite order,
  without every third property, as items of an array. For this one `without` is measured anew, and is not printed.

The ratios are compile and masks together, without against behind; `all` has that of the sums, and the geometric mean.
That the masks are equal is checked. Times are CPU time of the thread, of each step the least of seven runs.

Without --vocabulary it is the one of tests/vectors (V = 32,000).
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean
from time import thread_time_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from constraints import VECTORS, exact, passed
from lzsampler import Grammar, Sampler, TokenBytes
from lzsampler.constraint.automaton import prepare_part_masks
from lzsampler.constraint.json_schema import forget_parts
from lzsampler.constraint.tokens import PartMasks
from lzsampler.llama.vocabulary import Vocabulary

RUNS = 7


def renamed(schema: Any) -> Any:
    """Return a schema with other names of properties."""
    if isinstance(schema, list):
        return [renamed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "properties":
            made[keyword] = {f"other {name}": renamed(inner) for name, inner in value.items()}
        else:
            made[keyword] = [f"other {name}" for name in value] if keyword == "required" else renamed(value)
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


Way = Callable[[], PartMasks | None]


def timed(schema: Any, tokens: TokenBytes, texts: list[list[int]], masks: PartMasks | None) -> list[list[float]]:
    """Return microseconds for making the grammar, for the steps of a first pass, and for those of a second one."""
    begin = thread_time_ns()
    grammar = Grammar.json_schema(schema, tokens, share=False)
    if masks is not None:
        grammar.use_part_masks(masks)
    compiled = (thread_time_ns() - begin) / 1e3
    sampler = Sampler(tokens.n_vocab)
    sampler.set_grammar(grammar)
    return [[compiled], passed(sampler, texts), passed(sampler, texts)]


def best(schema: Any, tokens: TokenBytes, texts: list[list[int]], way: Way) -> list[float]:
    """Return microseconds for making the grammar and for all masks, and the longest step, behind what a way leaves."""
    runs = [timed(schema, tokens, texts, way()) for _ in range(RUNS)]
    compiled, first, second = (np.min([run[i] for run in runs], axis=0) for i in range(3))
    return [float(compiled[0]), float(sum(first) - sum(second)), float(max(first))]


def behind(schema: Any, tokens: TokenBytes, texts: list[list[int]]) -> Way:
    """Return what leaves what a schema leaves behind."""

    def way() -> PartMasks:
        forget_parts()
        masks = PartMasks(tokens)
        timed(schema, tokens, texts, masks)
        return masks

    return way


def measured(row: dict[str, Any], vocabulary: Vocabulary, tokens: TokenBytes) -> dict[str, Any]:
    def spelled(schema: Any, samples: list[Any]) -> list[list[int]]:
        grammar = Grammar.json_schema(schema, tokens, share=False)
        texts = map(json.dumps, samples)
        return [exact(text, vocabulary, tokens) for text in texts if grammar.match(text) == "yes"]

    schema, samples = row["schema"], row["samples"]
    texts = spelled(schema, samples)
    other = arranged(schema)
    other_texts = spelled(other, [arranged_value(sample, other["items"]) for sample in samples])

    def nothing() -> None:
        forget_parts()

    def prepared() -> PartMasks:
        masks = PartMasks(tokens)
        prepare_part_masks(masks)
        forget_parts()
        return masks

    first = renamed(schema)
    first_texts = spelled(first, [renamed_value(sample) for sample in samples])
    ways: dict[str, tuple[Any, list[list[int]], Way]] = {
        "without": (schema, texts, nothing),
        "names": (schema, texts, behind(first, tokens, first_texts)),
        "prepared": (schema, texts, prepared),
        "without order": (other, other_texts, nothing),
        "order": (other, other_texts, behind(schema, tokens, texts)),
    }
    figures: dict[str, Any] = {"name": row["name"], "steps": sum(len(text) + 1 for text in texts)}
    for name, (second, second_texts, way) in ways.items():
        masks = way()
        shared = Grammar.json_schema(second, tokens, share=False)
        if masks is not None:
            shared.use_part_masks(masks)
        plain = masks_of(Grammar.json_schema(second, tokens, share=False), second_texts)
        assert all(np.array_equal(a, b) for a, b in zip(plain, masks_of(shared, second_texts), strict=True))
        figures[name] = best(second, tokens, second_texts, way)
    return figures


def ratios(rows: list[dict[str, Any]], without: str, way: str) -> list[float]:
    """Return how much faster second schemas are: in all, and compile and masks alone."""
    before, after = (np.sum([row[name][:2] for row in rows], axis=0) for name in (without, way))
    return [float(np.sum(before) / np.sum(after)), *map(float, before / after)]


def arranged(schema: Any) -> dict[str, Any]:
    """Return a schema of the parts of another one: some of its properties, the last first, as items of an array."""
    items = {name: value for name, value in schema.items() if name != "$defs"}
    if "properties" in items:
        names = [name for i, name in enumerate(items["properties"]) if i % 3 != 1][::-1]
        items["properties"] = {name: items["properties"][name] for name in names}
        items["required"] = [name for name in items.get("required", []) if name in names]
    if "anyOf" in items:
        items["anyOf"] = items["anyOf"][::-1]
    return {"type": "array", "items": items, "maxItems": 3} | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def arranged_value(value: Any, items: dict[str, Any]) -> list[Any]:
    """Return a value of an arranged schema."""
    return [{name: value[name] for name in items["properties"] if name in value} if "properties" in items else value]


def renamed_value(value: Any) -> Any:
    """Return a value with the names of properties that `renamed` gives."""
    if isinstance(value, list):
        return [renamed_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {f"other {name}": renamed_value(inner) for name, inner in value.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, action="append")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [json.loads(line) for line in (VECTORS / "schemas.jsonl").read_text(encoding="utf-8").splitlines()]
    for path in options.vocabulary or [VECTORS / "ggml-vocab-llama-spm.gguf"]:
        vocabulary = Vocabulary(path)
        tokens = vocabulary.token_bytes
        masks = PartMasks(tokens)
        begin = thread_time_ns()
        prepare_part_masks(masks)
        prepare_ms = (thread_time_ns() - begin) / 1e6
        made = [measured(row, vocabulary, tokens) for row in rows]
        vocabulary.close()
        pairs = {"names": ("without", "names"), "order": ("without order", "order")}
        total = {name: ratios(made, *pair) for name, pair in pairs.items()}
        means = {
            name: [geometric_mean(row) for row in zip(*(ratios([row], *pair) for row in made), strict=True)]
            for name, pair in pairs.items()
        }
        summary = {"n_vocab": tokens.n_vocab, "prepare_ms": prepare_ms, "masks": masks.figures.masks}
        if options.json:
            print(json.dumps({**summary, "ratios": total, "geometric means": means, "rows": made}))
            continue
        print(", ".join(f"{name} {value:,.0f}" for name, value in summary.items()))
        print(f"{'':15}{'without':>20}{'names':>21}{'prepared':>21}{'order':>21}{'ratio: names':>23}{'order':>18}")
        for row in made:
            figures = "".join(
                "".join(f"{n:7.0f}" for n in row[way]) for way in ("without", "names", "prepared", "order")
            )
            gained = "".join("  " + "".join(f"{n:6.1f}" for n in ratios([row], *pair)) for pair in pairs.values())
            print(f"{row['name']:15}{figures}{gained}")
        for name, gains in (("all", total), ("geometric mean", means)):
            print(f"{name:99}" + "".join("  " + "".join(f"{n:6.1f}" for n in gain) for gain in gains.values()))


if __name__ == "__main__":
    main()
