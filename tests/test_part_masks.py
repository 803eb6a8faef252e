"""Masks that grammars share: equal to those without, and made once."""

import json
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import Grammar, Sampler, TokenBytes
from lzsampler.constraint.automaton import automaton_of, prepare_part_masks
from lzsampler.constraint.tokens import PartMasks
from schemas import TOKENS

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "number"}, "note": {"type": "string", "maxLength": 20}},
    "required": ["name", "age"],
}
ORDER = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "price": {"type": "number"},
            "text": {"type": "string", "maxLength": 20},
            "sku": {"type": "string"},
        },
        "required": ["price", "sku"],
    },
    "minItems": 2,
    "maxItems": 40,
}
OTHERS: list[Any] = [
    {},
    {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
    {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^a+$"}, {"type": "number"}]},
    {"type": "array", "items": {"type": "integer", "minimum": -3, "maximum": 1200}},
    {"type": "string", "minLength": 3, "maxLength": 90},
    {"type": "array", "items": {"enum": ["a", "b"]}},
]


def fresh() -> TokenBytes:
    return TokenBytes(TOKENS.pieces, end=TOKENS.end)


def masks_of(grammar: Grammar, seed: int) -> list[bytes]:
    """Return the masks on the way through random texts."""
    rng = random.Random(seed)
    sampler = Sampler(grammar.vocabulary.n_vocab)
    sampler.set_grammar(grammar)
    masks = []
    for _ in range(6):
        sampler.reset()
        for _ in range(40):
            words = sampler.allowed()
            assert words is not None
            masks.append(words.tobytes())
            token = rng.choice(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())
            if token in TOKENS.end:
                break
            sampler.accept(token)
    return masks


@pytest.mark.parametrize("yaml", [False, True])
def test_masks_are_the_same_with_and_without(yaml: bool) -> None:
    make = Grammar.yaml_schema if yaml else Grammar.json_schema
    tokens = fresh()
    for seed in range(4):
        for schema in (PERSON, ORDER, *OTHERS):
            assert masks_of(make(schema, tokens), seed) == masks_of(make(schema, tokens, share=False), seed)
    assert tokens.part_masks.figures.found > tokens.part_masks.figures.made > 0


def test_masks_are_the_same_on_a_real_vocabulary() -> None:
    pytest.importorskip("llama_cpp")
    from lzsampler.llama.vocabulary import token_bytes

    tokens = token_bytes(Path(__file__).with_name("vectors") / "ggml-vocab-llama-spm.gguf")
    for seed, schema in enumerate((PERSON, ORDER, *OTHERS)):
        for tokenization in ("any", "forced"):
            made = [
                Grammar.json_schema(schema, tokens, share=share, tokenization=tokenization) for share in (True, False)
            ]
            assert masks_of(made[0], seed) == masks_of(made[1], seed)
    assert tokens.part_masks.figures.found


def test_a_second_schema_makes_no_masks_of_parts_that_were_there() -> None:
    tokens = fresh()
    automaton_of(Grammar.json_schema(PERSON, tokens))
    before = tokens.part_masks.figures
    automaton_of(Grammar.json_schema({**ORDER, "minItems": 0}, tokens), 500)
    after = tokens.part_masks.figures
    assert (after.parts, after.masks, after.made) == (before.parts, before.masks, before.made)
    assert after.found > before.found


def test_a_grammar_copies_with_them_and_says_whose_they_are() -> None:
    tokens = fresh()
    grammar = Grammar.json_schema(PERSON, tokens)
    assert grammar.part_masks is grammar.copy().part_masks is tokens.part_masks
    assert Grammar.json_schema(PERSON, tokens, share=False).copy().part_masks is None
    assert Grammar.regex("a", tokens).part_masks is None
    with pytest.raises(ValueError, match="masks must be of the grammar's own vocabulary"):
        grammar.use_part_masks(PartMasks(fresh()))
    with pytest.raises(ValueError, match=r"masks must be of the grammar's own vocabulary.*, got 7"):
        grammar.use_part_masks(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="vocabulary must be a TokenBytes, got 7"):
        PartMasks(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="share must be"):
        Grammar.json_schema(PERSON, tokens, share=1)  # type: ignore[arg-type]


def test_common_parts_are_prepared() -> None:
    tokens = fresh()
    masks = tokens.part_masks
    prepare_part_masks(masks)
    before = masks.figures
    assert before.parts >= 5
    schema = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}, "n": {"type": "integer"}}}
    assert masks_of(Grammar.json_schema(schema, tokens), 1) == masks_of(
        Grammar.json_schema(schema, tokens, share=False), 1
    )
    assert masks.figures.made == before.made
    assert masks.figures.found > before.found
    assert repr(masks).startswith(f"<PartMasks of {TOKENS.n_vocab} tokens: ")


def test_threads_share_them() -> None:
    tokens = fresh()
    expected = {seed: masks_of(Grammar.json_schema(ORDER, tokens, share=False), seed) for seed in range(6)}
    wrong: list[int] = []

    def work(seed: int) -> None:
        for _ in range(5):
            if masks_of(Grammar.json_schema(ORDER, tokens), seed) != expected[seed]:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_little_memory_forgets_and_gives_the_same_masks() -> None:
    tokens = fresh()
    masks = PartMasks(tokens, max_bytes=20_000)
    for seed in range(3):
        for schema in (PERSON, ORDER, *OTHERS):
            grammar = Grammar.json_schema(schema, tokens, share=False)
            expected = masks_of(grammar.copy(), seed)
            grammar.use_part_masks(masks)
            assert masks_of(grammar, seed) == expected
    assert masks.figures.made > masks.figures.masks
    assert json.dumps(vars(masks.figures))


def test_wrong_arguments_are_named() -> None:
    masks = PartMasks(TOKENS)
    for schemas in (3, {"type": "string"}, "{}"):
        with pytest.raises(TypeError, match="schemas must be a list of schemas"):
            prepare_part_masks(masks, schemas)  # type: ignore[arg-type]
