"""Texts under penalties that know a grammar: keys as the model writes them, drafts, scopes, the chain of llama.cpp."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from asked import asked
from lzsampler import Grammar, Params
from lzsampler.explanation import Explanation
from lzsampler.models import default_draft, default_model

pytest.importorskip("llama_cpp")

from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.draft import Draft
from lzsampler.decoding.generate import generate
from lzsampler.decoding.generation import Generation
from lzsampler.dropin import attach
from lzsampler.llama.model import Model

SCHEMA = {
    "type": "array",
    "minItems": 4,
    "maxItems": 4,
    "items": {
        "type": "object",
        "properties": {
            "the name of the king": {"type": "string", "maxLength": 9},
            "the number of his years": {"type": "integer", "minimum": 10, "maximum": 99},
            "a friend of the king": {"type": "boolean"},
        },
        "required": ["the name of the king", "the number of his years", "a friend of the king"],
    },
}
KEYS = SCHEMA["items"]["required"]  # type: ignore[index]
HEAVY: dict[str, Any] = {
    "temperature": 0.0,
    "lz_penalty": 1.0,
    "lz_window": 512,
    "lz_rule": "paper",
    "lz_buffer": 4,
    "frequency_penalty": 2.0,
    "repetition_penalty": 3.0,
    "dry_multiplier": 2.0,
}
PROMPT = "Once upon a time there were four kings: "


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_threads=1, flash_attn=True, n_ctx=1024) as made:
        yield made


def texts_of(model: Model, params: Params, **more: Any) -> Generation:
    config, hooks = asked(params, max_tokens=400, grammar=Grammar.json_schema(SCHEMA, model), **more)
    return generate(model, PROMPT, config, **hooks)


def in_keys(model: Model, made: Generation) -> list[int]:
    """Return the places of the tokens that lie in a key as a whole."""
    pieces = [model.piece(token) for token in made.tokens]
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    keys = [found.span() for found in re.finditer("|".join(KEYS).encode(), b"".join(pieces))]
    assert len(keys) == 12
    return [
        i
        for i, (piece, end) in enumerate(zip(pieces, ends, strict=True))
        if any(begin <= end - len(piece) and end <= last for begin, last in keys)
    ]


@pytest.mark.parametrize("structure", ["off", "scale", "free"])
def test_keys_are_intact_under_a_heavy_penalty(model: Model, structure: Any) -> None:
    """The grammar sees to their text; the tokens of it are the model's own choice unless penalties know nothing."""
    seen: list[Explanation] = []
    made = texts_of(model, Params(**HEAVY, structure=structure), on_explanation=seen.append)
    value = json.loads(made.text)
    assert [list(record) for record in value] == [KEYS] * 4
    assert value != json.loads(texts_of(model, Params(temperature=0.0)).text)  # values are under the penalty
    changed = [i for i in in_keys(model, made) if seen[i].token.edited != seen[i].token.logit]
    assert (len(changed) > 50) == (structure == "off")
    if structure != "off":
        assert not changed
        penalised = [one.token for one in seen if one.token.is_penalised]
        assert len(penalised) > 5
        assert {one.free_share < 1 for one in penalised} == {False, True}


@pytest.mark.parametrize("structure", ["scale", "free"])
def test_a_text_is_the_same_with_a_draft_and_without_fast_forward(model: Model, structure: Any) -> None:
    for params in (
        Params(**HEAVY, structure=structure),
        Params(temperature=0.8, seed=3, lz_penalty=0.3, lz_min_match=3, structure=structure, history="all"),
    ):
        plain = texts_of(model, params, fast_forward=False)
        assert texts_of(model, params).tokens == plain.tokens
        with Model(default_draft(), n_threads=1, flash_attn=True, n_ctx=1024) as small:
            for draft in (Draft(small, n_max=4), Draft(lookup=2, n_max=5)):
                assert texts_of(model, params, draft=draft).tokens == plain.tokens


def test_scopes_and_structure_go_together(model: Model) -> None:
    """A penalty that is out of its scope changes nothing, whatever it looks at."""
    plain = texts_of(model, Params(temperature=0.0))
    made = texts_of(model, Params(**HEAVY, structure="free"), penalty_scope=["thinking"])
    assert made.tokens == plain.tokens


@pytest.mark.parametrize("structure", ["off", "scale", "free"])
def test_the_chain_sampler_of_llama_cpp_does_the_same(model: Model, structure: Any) -> None:
    params, grammar = Params(**HEAVY, structure=structure), Grammar.json_schema(SCHEMA, model)
    prompt = np.array(model.tokenize(PROMPT), np.int32)
    expected = generate(model, prompt, GenerationConfig(params, max_tokens=60, grammar=grammar))
    with attach(model.llm, replace(params, temperature=1.0), grammar=grammar):
        made = model.llm.generate(prompt.tolist(), temp=0.0, repeat_penalty=1.0)
        assert list(islice(made, 60)) == list(expected.tokens)
