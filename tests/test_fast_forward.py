"""Tokens that a grammar forces are not sampled: the texts are the same, in fewer calls of the model."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import Grammar, Params, RepetitionDetection, Sampler, TokenBytes
from lzsampler.models import default_draft, default_model

pytest.importorskip("llama_cpp")

from lzsampler.decoding.chat import Chat
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.draft import Draft
from lzsampler.decoding.generate import generate
from lzsampler.decoding.generation import Generation
from lzsampler.llama.model import Model

PROMPT = "Once upon a time"
KEYS = {
    "type": "object",
    "properties": {
        "the name of the king": {"type": "string", "maxLength": 12},
        "the colour of his horse": {"enum": ["red", "black", "white and grey"]},
        "the number of his years": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["the name of the king", "the colour of his horse", "the number of his years"],
}


def opened(path: Path) -> Model:
    """Flash attention makes logits the same bits for any number of tokens decoded together (docs/speculative.md)."""
    return Model(path, n_threads=1, flash_attn=True, n_ctx=512)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with opened(default_model()) as made:
        yield made


@pytest.fixture(scope="module")
def small() -> Iterator[Model]:
    with opened(default_draft()) as made:
        yield made


@pytest.fixture(scope="module")
def letters(model: Model) -> TokenBytes:
    """The vocabulary of the model with tokens of one byte alone, in which almost everything is forced."""
    seen: set[bytes] = set()
    pieces = [
        piece if len(piece) == 1 and piece not in seen and not seen.add(piece) else b""  # type: ignore[func-returns-value]
        for piece in model.token_bytes.pieces
    ]
    return TokenBytes(pieces, end=model.eog_tokens[:1], special=model.eog_tokens[1:])


def same(one: Generation, other: Generation) -> bool:
    names = ("text", "tokens", "finish_reason", "loop", "actions", "stop_string")
    return all(getattr(one, name) == getattr(other, name) for name in names)


# ---- the sampler ----


def test_a_token_is_forced_where_it_alone_is_allowed() -> None:
    tokens = TokenBytes([b"", b"a", b"b", b"ab"], end=[0])
    sampler = Sampler(4)
    assert sampler.forced() is None
    sampler.set_grammar(Grammar.regex("ba(a|b)", tokens))
    assert sampler.forced() == 2
    sampler.accept(2)
    assert sampler.forced() is None  # a, or ab
    sampler.accept(1)
    assert sampler.forced() is None
    sampler.accept(1)
    assert sampler.forced() == 0  # the end
    sampler.rewind(2)
    sampler.set_mask(np.array([0b0111], np.uint32))
    assert sampler.forced() == 1  # the masks count too
    sampler.set_mask(np.array([0b0001], np.uint32))
    assert sampler.forced() is None  # nothing is allowed, which is for sample() to say


def test_a_token_that_a_bias_forbids_is_not_forced() -> None:
    tokens = TokenBytes([b"", b"a", b"b", b"ab"], end=[0])
    for bias, forced in ((float("-inf"), None), (-1e30, 2), (5.0, 2)):
        sampler = Sampler(4, Params(logit_bias={2: bias, 1: 3.0}))
        sampler.set_grammar(Grammar.regex("b", tokens))
        assert sampler.forced() == forced


@pytest.mark.parametrize("n_vocab", [31, 32, 33, 64, 95])
def test_the_last_token_of_any_vocabulary_can_be_forced(n_vocab: int) -> None:
    tokens = TokenBytes([b"", *(b"a%d" % i for i in range(1, n_vocab - 1)), b"z"], end=[0])
    sampler = Sampler(n_vocab)
    sampler.set_grammar(Grammar.regex("z|zzz", tokens))
    assert sampler.forced() == n_vocab - 1


# ---- texts ----


@pytest.mark.parametrize(
    "params",
    [
        Params(temperature=0.0),
        Params(temperature=0.0, lz_rule="paper", lz_penalty=0.3, lz_buffer=2, history="all"),
        Params(temperature=1.2, seed=3, repetition_penalty=1.3, top_p=0.9),
    ],
    ids=["greedy", "lz", "drawn"],
)
def test_the_text_is_that_of_sampling_every_token(model: Model, params: Params) -> None:
    for grammar in (Grammar.json_schema(KEYS, model), Grammar.regex(r"(The king said: [a-z]{2,5}\. ){3}", model)):
        pieces: list[str] = []
        made = generate(model, PROMPT, GenerationConfig(params, max_tokens=150, grammar=grammar), on_text=pieces.append)
        slow = generate(model, PROMPT, GenerationConfig(params, max_tokens=150, grammar=grammar, fast_forward=False))
        assert same(made, slow)
        assert made.forced > 0 == slow.forced
        assert "".join(pieces) == made.text
        assert len(pieces) > 5


def test_forced_tokens_are_decoded_together(model: Model, letters: TokenBytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice costs one call of the model where its choices part, and none for what follows."""
    batches: list[int] = []
    decode = model.decode

    def counting(tokens: Any) -> None:
        batches.append(len(tokens))
        decode(tokens)

    monkeypatch.setattr(model, "decode", counting)
    stories = ["x" + "a" * 40, "y" + "b" * 40]
    made = generate(model, PROMPT, GenerationConfig(Params(temperature=0.0), grammar=Grammar.choices(stories, letters)))
    assert made.text in stories
    assert made.forced == 40
    assert len(batches) == 1  # the prompt
    prefixed = ["a" * 20 + letter for letter in "xy"]
    batches.clear()
    made = generate(
        model, PROMPT, GenerationConfig(Params(temperature=0.0), grammar=Grammar.choices(prefixed, letters))
    )
    assert made.text in prefixed
    assert made.forced == 19  # the first token has the logits of the prompt
    assert batches[1:] == [20]


def test_limits_and_stop_strings_hold_among_forced_tokens(model: Model) -> None:
    grammar = Grammar.choices(["the end of the story of the old king and his daughter", "no"], model)
    for settings in ({"max_tokens": 5}, {"max_tokens": 1}, {"max_tokens": 0}, {"stop": ["king"]}, {"stop": ["he e"]}):
        texts = [
            generate(
                model, PROMPT, GenerationConfig(Params(temperature=0.0), grammar=grammar, fast_forward=fast, **settings)
            )
            for fast in (True, False)
        ]
        assert same(*texts), settings


def test_the_context_ends_where_it_ends_without(model: Model) -> None:
    grammar = Grammar.regex("(abcdefgh ){300}", model)
    prompt = "word " * 200
    fast, slow = (
        generate(model, prompt, GenerationConfig(Params(temperature=0.0), grammar=grammar, fast_forward=fast))
        for fast in (True, False)
    )
    assert fast.finish_reason == "context"
    assert same(fast, slow)


@pytest.mark.parametrize("action", ["stop", "trim", "rewind", "boost"])
@pytest.mark.parametrize(
    "pattern", ["[a-z]((the old king ){6}[a-z]){1,4}", "([a-z]{2}|(ab){20}c){1,40}", "(ab){60}[a-z]"]
)
def test_a_loop_that_forced_tokens_complete_is_acted_on(
    model: Model, letters: TokenBytes, pattern: str, action: Any
) -> None:
    """The model has not decoded them yet when the text is taken back."""
    grammar = Grammar.regex(pattern, letters)
    detection = RepetitionDetection(max_pattern_size=16, min_pattern_size=1, min_count=4)
    for params in (
        Params(temperature=0.0, repetition_detection=detection),
        Params(seed=2, repetition_detection=detection),
    ):
        texts = [
            generate(
                model,
                PROMPT,
                GenerationConfig(params, max_tokens=150, grammar=grammar, fast_forward=fast, on_loop=action),
            )
            for fast in (True, False)
        ]
        assert same(*texts)
        assert grammar.match(texts[0].text) != "no"
        if pattern.startswith("[") or pattern.endswith("]"):
            assert texts[0].actions
            assert texts[0].forced


@pytest.mark.parametrize("mode", ["gumbel", "match"])
def test_it_works_with_a_draft(model: Model, small: Model, mode: Any) -> None:
    grammar = Grammar.json_schema(KEYS, model)
    params = Params(temperature=0.7, seed=5, lz_penalty=0.1)
    plain = generate(model, PROMPT, GenerationConfig(params, max_tokens=120, grammar=grammar, fast_forward=False))
    for draft in (
        Draft(small, n_max=4, mode=mode),
        Draft(lookup=2, n_max=5, mode=mode),
        Draft(small, mode=mode, lookup=2),
    ):
        made = generate(model, PROMPT, GenerationConfig(params, max_tokens=120, grammar=grammar, draft=draft))
        assert same(made, plain)
        assert made.forced > 0
        assert made.speculated is not None


def test_an_explanation_is_of_every_token(model: Model) -> None:
    grammar = Grammar.choices(["the end of the story", "no"], model)
    seen: list[Any] = []
    made = generate(
        model, PROMPT, GenerationConfig(Params(temperature=0.0), grammar=grammar), on_explanation=seen.append
    )
    assert made.forced == 0
    assert len(seen) == len(made.tokens) + 1


def test_answers_of_a_chat_match_each_by_itself(model: Model) -> None:
    grammar = Grammar.json_schema(
        {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}, model
    )
    texts = []
    for fast in (True, False):
        chat = Chat(model, GenerationConfig(Params(temperature=0.0), max_tokens=40, grammar=grammar, fast_forward=fast))
        answers = [chat.say(question) for question in ("What is 70 + 479?", "What is 12 + 30?")]
        assert all(grammar.match(answer.text) == "yes" for answer in answers)
        assert (answers[0].forced > 0) == fast
        texts.append([answer.text for answer in answers])
        alone = generate(
            model,
            [{"role": "user", "content": "What is 70 + 479?"}],
            GenerationConfig(Params(temperature=0.0), grammar=grammar),
        )
        assert alone.text == answers[0].text
        assert json.loads(alone.text)["answer"] is not None
    assert texts[0] == texts[1]


def test_wrong_arguments(model: Model) -> None:
    with pytest.raises(TypeError, match="fast_forward must be"):
        generate(model, PROMPT, GenerationConfig(Params(), fast_forward=1))  # type: ignore[arg-type]
