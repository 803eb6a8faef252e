"""What a user asks of a text: `GenerationConfig`, the settings that need none, and one clear line for mistakes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("llama_cpp")

from lzsampler import (
    STOP_ON_LOOP,
    GenerationConfig,
    Grammar,
    LoopPolicy,
    Model,
    Params,
    Sampler,
    TokenBytes,
    generate,
)
from lzsampler.llama import lz_separators
from lzsampler.llama.vocabulary import DRY_BREAKERS, dry_breaker_ids
from lzsampler.models import default_model
from lzsampler.params import PRESETS

PROMPT = "Once upon a time"
LETTERS = Grammar.regex("[ab]*", TokenBytes([b"a", b"b", b""], end=[2]))


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=512, n_threads=1) as opened:
        yield opened


def test_a_prompt_is_enough(model: Model) -> None:
    made = generate(model, PROMPT, max_tokens=8)
    assert made.tokens == generate(model, PROMPT, GenerationConfig(Params.recommended(model), max_tokens=8)).tokens
    assert made.finish_reason == "length"
    assert GenerationConfig().max_tokens == 512


def test_max_tokens_and_stop_replace_those_of_the_config(model: Model) -> None:
    config = GenerationConfig(Params(temperature=0.0), max_tokens=30, stop="no such text")
    text = generate(model, PROMPT, config).text
    short = generate(model, PROMPT, config, max_tokens=5)
    assert (len(short.tokens), text.startswith(short.text)) == (5, True)
    word = text.split()[3]
    for stop in (word, [word], ("never this", word)):
        made = generate(model, PROMPT, config, stop=stop)
        assert (made.text, made.stop_string) == (text[: text.index(word)], word)


def test_recommended_is_the_default_penalty_of_the_model(model: Model) -> None:
    params = Params.recommended(model, temperature=0.5, seed=3)
    assert params == Params(**PRESETS["default"], **lz_separators(model.llm), temperature=0.5, seed=3)
    assert Params.recommended(model, lz_separators=b"").lz_separators == b""
    assert Params.recommended(model, lz_penalty=0).lz_separators == b""
    assert Params.recommended(model, dry_multiplier=0.8).dry_breakers == dry_breaker_ids(model.llm, DRY_BREAKERS)
    assert Params.recommended(model, dry_multiplier=0.8, dry_breakers=(5,)).dry_breakers == (5,)
    with pytest.raises(TypeError, match=r"Params\.recommended\(\) got an unexpected keyword argument 'temperatur'"):
        Params.recommended(model, temperatur=1)
    with pytest.raises(TypeError, match=r"model must be a Model, got 'model\.gguf': open one with Model"):
        Params.recommended("model.gguf")  # type: ignore[arg-type]


def test_a_config_is_normal_once_it_is_made() -> None:
    config = GenerationConfig(stop="a", on_loop="rewind", grammar=LETTERS, grammar_scope=["tool", "answer"])
    assert (config.stop, config.on_loop, config.loops) == (("a",), LoopPolicy("rewind"), LoopPolicy("rewind"))
    assert config.grammar_scope == ("answer", "tool")
    assert replace(config, max_tokens=4).loops is config.loops
    assert GenerationConfig(stop=["a", "b"]) == GenerationConfig(stop=("a", "b"))
    assert repr(LoopPolicy("rewind", max_recoveries=2)) == "LoopPolicy('rewind', max_recoveries=2)"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"params": {"lz_penalty": 0.3}}, "params must be a Params, got {'lz_penalty': 0.3}"),
        ({"max_tokens": -2}, "max_tokens must be from -1 to 2147483647, got -2"),
        ({"max_tokens": 1.5}, "max_tokens must be an integer, got 1.5"),
        ({"stop": ["a", ""]}, r"stop must be strings that are not empty, got \['a', ''\]"),
        ({"ignore_eos": 1}, "ignore_eos must be True or False, got 1"),
        ({"fast_forward": "no"}, "fast_forward must be True or False, got 'no'"),
        ({"sampler": "gpu"}, "sampler must be one of auto, cpu, graph, got 'gpu'"),
        ({"on_loop": 3}, "on_loop must be the name of an action or a LoopPolicy, got 3"),
        ({"grammar_scope": ["answer"]}, "grammar_scope has no effect without a grammar"),
        (
            {"grammar": LETTERS, "ignore_eos": True},
            "ignore_eos forbids the tokens that end a text",
        ),
        (
            {"grammar": LETTERS, "on_loop": "close-think"},
            "on_loop='close-think' writes tokens that a grammar may refuse: use stop, trim, rewind or boost",
        ),
    ],
)
def test_what_is_wrong_is_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        GenerationConfig(**settings)
    GenerationConfig(grammar=LETTERS, grammar_scope=["answer"], on_loop="close-think")  # it begins after the thinking


def test_params_in_the_place_of_a_config(model: Model) -> None:
    with pytest.raises(TypeError, match=r"^config must be a GenerationConfig, got a Params: give GenerationConfig"):
        generate(model, [1, 2, 3], Params())  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"^config must be a GenerationConfig, got 40: give GenerationConfig\(params\)$"
    ):
        generate(model, PROMPT, 40)  # type: ignore[arg-type]


def test_a_sampler_takes_fields_of_params() -> None:
    assert Sampler(9, lz_penalty=0.3, temperature=0.7).params == Params(lz_penalty=0.3, temperature=0.7)
    assert Sampler(9, Params(lz_penalty=0.3, seed=4), temperature=0.7).params == Params(
        lz_penalty=0.3, seed=4, temperature=0.7
    )
    # What belongs to another rule goes, as where settings are changed elsewhere.
    assert Sampler(9, Params(**PRESETS["default"]), lz_rule="paper").params == Params(**PRESETS["paper"])
    assert Sampler(9, repetition_detection=STOP_ON_LOOP).params.repetition_detection == STOP_ON_LOOP
    with pytest.raises(TypeError, match="unexpected keyword argument 'temprature'; did you mean 'temperature'"):
        Sampler(9, temprature=0.0)
    with pytest.raises(ValueError, match="top_p must be"):
        Sampler(9, top_p=2.0)


def test_a_policy_of_strange_values_is_one_line() -> None:
    for given in ([], ["a"], {"a": 1}, 7):
        with pytest.raises(ValueError, match="on_loop must be one of off, stop"):
            LoopPolicy(given)  # type: ignore[arg-type]
    strange: list[Any] = [{"x": 1}, []]
    for values in strange:
        with pytest.raises(ValueError, match="a policy has the keys on_loop, loop_rule, "):
            LoopPolicy.from_json(values)
