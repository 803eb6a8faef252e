"""What is done about a loop inside llama-cpp-python: the same as `generate` does, wherever text can be taken back."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lzsampler import Params, attach
from lzsampler.models import default_model

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402 (needs llama_cpp)
from lzsampler.decoding.policy import LoopPolicy  # noqa: E402 (needs llama_cpp)
from lzsampler.dropin import LZLlama  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402

LOOPING = "Still Sunday said nothing, but only"
DETECTION = {"max_pattern_size": 64, "min_pattern_size": 4, "min_count": 3}
PLAIN = Params(temperature=0.0)
LOOPS = Params(repetition_detection=DETECTION)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_threads=1, n_ctx=512) as opened:
        yield opened


@pytest.fixture
def llm() -> Iterator[Any]:
    made = LZLlama(str(default_model()), n_ctx=512, n_threads=1, verbose=False, params=LOOPS, seed=7)
    yield made
    made.close()


def test_a_rewound_text_is_that_of_generate(model: Model, llm: Any) -> None:
    expected = generate(
        model,
        LOOPING,
        GenerationConfig(replace(PLAIN, repetition_detection=DETECTION), max_tokens=120, on_loop="rewind"),
    )
    assert expected.actions
    made = llm(LOOPING, max_tokens=120, temperature=0.0, on_loop="rewind", logprobs=None)
    assert made["choices"][0]["text"] == expected.text
    assert llm.lz.stats.actions == expected.actions
    assert llm.lz.stats.recoveries == sum(action.name == "rewind" for action in expected.actions)
    assert made["usage"]["completion_tokens"] == len(expected.tokens)
    assert (llm.lz.stats.calls, llm.lz.stats.loops) == (1, int(expected.finish_reason == "repetition"))
    # The cache holds the text and nothing that was cut.
    cached = llm.input_ids[: llm.n_tokens].tolist()
    assert cached == [*model.tokenize(LOOPING), *expected.tokens][: len(cached)]
    assert len(cached) >= len(model.tokenize(LOOPING)) + len(expected.tokens) - 1
    again = llm(LOOPING, max_tokens=120, temperature=0.0, on_loop="rewind")
    assert again["choices"][0]["text"] == expected.text


def test_it_is_so_with_penalties_that_see_the_text(model: Model, llm: Any) -> None:
    """The chain that is built anew knows the tokens that are there: those of the text, and those of the prompt."""
    for settings in (
        {"lz_penalty": 0.03, "history": "all"},
        {"frequency_penalty": 0.001, "dry_multiplier": 0.001, "dry_breakers": ()},
    ):
        params = Params(**settings, repetition_detection={**DETECTION, "min_count": 2})  # type: ignore[arg-type]
        expected = generate(
            model, LOOPING, GenerationConfig(replace(params, temperature=0.0), max_tokens=120, on_loop="rewind")
        )
        assert expected.actions
        made = llm(LOOPING, max_tokens=120, temperature=0.0, on_loop="rewind", params=params)
        assert made["choices"][0]["text"] == expected.text
        assert llm.lz.stats.actions == expected.actions


def test_thinking_is_ended_as_generate_does(model: Model, llm: Any) -> None:
    prompt = "<|user|>x<|assistant|><think>"
    word, *_ = model.tokenize(" round")
    params = replace(PLAIN, repetition_detection=DETECTION, logit_bias={word: 30.0})  # it thinks of nothing else
    expected = generate(model, prompt, GenerationConfig(params, max_tokens=40, on_loop="close-think"))
    assert [action.name for action in expected.actions] == ["close-think", "stop"]
    tokens = model.tokenize(prompt)
    made = llm(tokens, max_tokens=40, temperature=0.0, on_loop="close-think", params=replace(params, temperature=1.0))
    assert made["choices"][0]["text"] == expected.text
    assert llm.lz.stats.actions == expected.actions


def test_a_boost_works_in_streams_and_generate_and_repeats_itself(llm: Any) -> None:
    keywords = {"max_tokens": 120, "temperature": 0.0, "on_loop": "boost"}
    plain = llm(LOOPING, max_tokens=120, temperature=0.0, on_loop="off")["choices"][0]["text"]
    whole = llm(LOOPING, seed=3, **keywords)["choices"][0]["text"]
    first = llm.lz.stats.actions[0]
    assert first.name == "boost"
    assert whole != plain
    assert len(llm.tokenize(whole.encode())) > 0
    assert "".join(c["choices"][0]["text"] for c in llm(LOOPING, seed=3, stream=True, **keywords)) == whole
    assert llm(LOOPING, seed=4, **keywords)["choices"][0]["text"] != whole
    llm.set_seed(3)
    tokens = list(
        zip(
            range(120),
            llm.generate(llm.tokenize(LOOPING.encode(), add_bos=False), temp=0.0, on_loop="boost"),
            strict=False,
        )
    )
    assert llm.detokenize([token for _, token in tokens]).decode() == whole


def test_what_cannot_be_taken_back_is_refused(llm: Any) -> None:
    for action in ("trim", "rewind", "close-think"):
        with pytest.raises(ValueError, match=f"on_loop='{action}' cannot take back text of a stream"):
            list(llm(LOOPING, stream=True, on_loop=action))
    for action in ("rewind", "close-think"):
        with pytest.raises(ValueError, match=f"on_loop='{action}' cannot take back tokens that generate"):
            list(llm.generate([5], on_loop=action))
    grammar = llama_cpp.LlamaGrammar.from_string('root ::= "a"*', verbose=False)
    with pytest.raises(ValueError, match="writes tokens that a grammar may refuse"):
        llm(LOOPING, grammar=grammar, on_loop="close-think")
    with pytest.raises(ValueError, match="max_recoveries must be from 0 to 1000, got -1"):
        llm(LOOPING, on_loop=LoopPolicy("rewind", max_recoveries=-1))


@pytest.mark.parametrize("fast_grammar", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_grammar_that_has_no_other_token(llm: Any, fast_grammar: bool, temperature: float) -> None:
    """llama.cpp picked a token that the grammar refuses, and ended the process: here the text ends."""
    grammar = llama_cpp.LlamaGrammar.from_string('root ::= "~" root', verbose=False)
    made = llm(
        "x", max_tokens=60, temperature=temperature, grammar=grammar, on_loop="rewind", fast_grammar=fast_grammar,
        loop_finish_reason="repetition", repetition_detection={**DETECTION, "min_pattern_size": 1},
    )  # fmt: skip
    (choice,) = made["choices"]
    assert set(choice["text"]) == {"~"}
    assert choice["finish_reason"] == "repetition"
    assert [action.name for action in llm.lz.stats.actions] == ["rewind", "stop"]
    again = llm("x", max_tokens=5, temperature=temperature, grammar=grammar, fast_grammar=fast_grammar)
    assert again["usage"]["completion_tokens"] == 5


@pytest.mark.parametrize("fast_grammar", [False, True])
def test_a_grammar_follows_a_rewind(llm: Any, fast_grammar: bool) -> None:
    """Everything that comes out is in the grammar, and the loop that it allows is left."""
    grammar = llama_cpp.LlamaGrammar.from_string('root ::= ("ab" | "cd" | "ef" | "gh")* ', verbose=False)
    made = llm("x", max_tokens=60, temperature=0.0, grammar=grammar, on_loop="rewind", fast_grammar=fast_grammar)
    text = made["choices"][0]["text"]
    assert llm.lz.stats.recoveries >= 1
    assert all(text[i : i + 2] in ("ab", "cd", "ef", "gh") for i in range(0, len(text) - 1, 2))


def test_a_stop_string_after_a_rewind_ends_the_text() -> None:
    llm = llama_cpp.Llama(str(default_model()), n_ctx=512, n_threads=1, verbose=False)
    with attach(llm, LOOPS, on_loop="rewind"):
        stopped = llm(LOOPING, max_tokens=120, temperature=0.0, stop=["said the"])
        whole = llm(LOOPING, max_tokens=120, temperature=0.0)["choices"][0]["text"]
        assert whole.partition("said the")[0] == stopped["choices"][0]["text"]
    llm.close()


# -- what a response says --


def test_a_response_says_what_became_of_the_loops(llm: Any) -> None:
    (choice,) = llm(LOOPING, max_tokens=120, temperature=0.0, on_loop="rewind")["choices"]
    said = choice["lzsampler"]
    assert said == json.loads(json.dumps(said))
    assert [action["name"] for action in said["actions"]] == [action.name for action in llm.lz.stats.actions]
    assert said["actions"][0]["did"].startswith("a loop at token ")
    assert set(said) == {"finish_reason", "loop", "stuck", "actions"}
    (choice,) = llm(LOOPING, max_tokens=300, temperature=0.0, on_loop="stop")["choices"]
    last = llm.lz.stats.last_loop
    assert choice["finish_reason"] == "stop"
    assert choice["lzsampler"]["finish_reason"] == "repetition"
    assert choice["lzsampler"]["loop"] == {"start": last.start, "period": last.period, "count": last.count}
    (choice,) = llm("Once upon a time", max_tokens=5, temperature=0.0, on_loop="stop")["choices"]
    assert choice["lzsampler"] == {"finish_reason": "length", "loop": None, "stuck": None, "actions": []}
    assert "lzsampler" not in llm("Once", max_tokens=2, on_loop="off")["choices"][0]


def test_a_stream_says_it_in_its_last_chunk(llm: Any) -> None:
    chunks = [
        chunk["choices"][0] for chunk in llm(LOOPING, max_tokens=300, stream=True, temperature=0.0, on_loop="stop")
    ]
    assert [index for index, choice in enumerate(chunks) if "lzsampler" in choice] == [len(chunks) - 1]
    assert chunks[-1]["lzsampler"]["finish_reason"] == "repetition"


def test_a_chat_says_it_too(llm: Any) -> None:
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": "Sort the numbers: 31 7 12 5 5 5 5"}]}
    asked |= {"max_tokens": 200, "temperature": 0.0, "on_loop": "stop"}
    (choice,) = llm.create_chat_completion(**asked)["choices"]
    chunks = [chunk["choices"][0] for chunk in llm.create_chat_completion(**asked, stream=True)]
    assert [index for index, each in enumerate(chunks) if "lzsampler" in each] == [len(chunks) - 1]
    assert chunks[-1]["lzsampler"] == choice["lzsampler"]
    assert [action["name"] for action in choice["lzsampler"]["actions"]] == [a.name for a in llm.lz.stats.actions]
