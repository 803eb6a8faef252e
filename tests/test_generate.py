"""`generate` and `Model` on the embedded model: the same text every time, whole characters, every way to end."""

import codecs
import ctypes
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asked import asked
from lzsampler import STOP_ON_LOOP, Loop, LzsError, Params, Sampler
from lzsampler._ffi import ffi
from lzsampler.auditing.repetition import largest_run
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.reasoning import opened, split_reasoning
from lzsampler.decoding.recovery import whole_character
from lzsampler.explanation import Explanation
from lzsampler.models import default_model
from reference import first_loop

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler.decoding.chat import Chat  # noqa: E402 (needs llama_cpp)
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.decoding.generation import Generation  # noqa: E402
from lzsampler.decoding.many import Request, generate_many  # noqa: E402
from lzsampler.decoding.text_stream import TextStream  # noqa: E402
from lzsampler.llama import gguf  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402
from lzsampler.util.cores import physical_cores  # noqa: E402

GREEDY = Params(temperature=0.0, lz_penalty=0.15)
PLAIN = Params(temperature=0.0)
PROMPT = "Once upon a time"
LONG_PROMPT = (  # some 90 tokens, so that batches of 7 and 64 cut it
    "Just then, a Skylark fluttered to the ground and eagerly looked about for worms. The evening came, the "
    "drawing-rooms were lighted up, the company assembled. It was but a card party, it was but a mixture of those who "
    "had never met before, and those who met too often; a commonplace business."
)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_threads=1) as opened:
        yield opened


def text_of(model: Model, prompt: Any = PROMPT, params: Params = GREEDY, n: int = 40, **settings: Any) -> Generation:
    config, hooks = asked(params, max_tokens=n, **settings)
    return generate(model, prompt, config, **hooks)


# -- the same seed gives the same text --


def test_batch_and_threads_do_not_change_a_text() -> None:
    hot = Params(temperature=0.8, lz_penalty=0.15, seed=11)
    tokens = set()
    for n_batch, n_threads in ((512, 1), (64, 1), (7, 1), (1, 1), (512, 2), (7, 2)):
        with Model(default_model(), n_batch=n_batch, n_threads=n_threads) as opened:
            made = text_of(opened, LONG_PROMPT, hot, n=32)
            assert len(made.tokens) == 32
            tokens.add(made.tokens)
    assert len(tokens) == 1


def test_seed_and_penalty_do(model: Model) -> None:
    hot = [text_of(model, params=Params(temperature=0.8, seed=seed)).text for seed in (1, 2, 1)]
    assert hot[0] == hot[2] != hot[1]
    assert text_of(model, n=200).text != text_of(model, params=Params(temperature=0.0), n=200).text


def test_the_loop_is_sample_and_accept(model: Model) -> None:
    made = text_of(model, n=30)
    sampler = Sampler(model.n_vocab, GREEDY)
    model.keep(0)
    model.decode(model.tokenize(PROMPT))
    tokens = []
    for _ in range(30):
        tokens.append(sampler.sample(model.logits()))
        sampler.accept(tokens[-1])
        model.decode(tokens[-1:])
    assert made.tokens == tuple(tokens)
    assert made.text == b"".join(map(model.piece, tokens)).decode()


def test_the_prompt_is_history_when_asked(model: Model) -> None:
    prompt = "I am a man, and " * 12 + "I am"
    everything = Params(temperature=0.0, lz_penalty=0.3, history="all")
    generated = Params(temperature=0.0, lz_penalty=0.3)
    assert text_of(model, prompt, everything).text != text_of(model, prompt, generated).text


# -- ways to end --


def test_length(model: Model) -> None:
    made = text_of(model, n=12)
    assert (made.finish_reason, len(made.tokens), made.stop_string) == ("length", 12, None)
    nothing = text_of(model, n=0)
    assert (nothing.finish_reason, nothing.text, nothing.tokens) == ("length", "", ())


def test_end_of_generation_token_is_no_part(model: Model) -> None:
    made = generate(model, [{"role": "user", "content": "What is 70 + 479?"}], GenerationConfig(GREEDY))
    assert (made.finish_reason, made.stop_string, made.content) == ("stop", None, "549")
    assert made.reasoning is not None
    assert made.text == f"{made.reasoning}</think>549"
    assert 0 not in made.tokens


def test_every_token_that_llama_cpp_calls_an_end_is_one(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    full = text_of(model)
    ends = full.tokens[10]
    monkeypatch.setattr(model, "is_eog", lambda token: token == ends)
    monkeypatch.setattr(model, "fragments", type(model.fragments)(model.fragment))
    cut = full.tokens.index(ends)
    assert (text_of(model).tokens, text_of(model).finish_reason) == (full.tokens[:cut], "stop")


def test_a_full_context() -> None:
    with Model(default_model(), n_ctx=32, n_threads=1) as small:
        made = generate(small, PROMPT, GenerationConfig(GREEDY))
        assert made.finish_reason == "context"
        assert made.prompt_tokens + len(made.tokens) == 32 + 1  # the last one is picked, but not decoded
        exact = PROMPT + " and" * (32 - made.prompt_tokens)
        assert len(small.tokenize(exact)) == 32
        assert len(generate(small, exact, GenerationConfig(GREEDY)).tokens) == 1
        with pytest.raises(ValueError, match="has 33 tokens, but the context holds 32"):
            generate(small, exact + " and", GenerationConfig(GREEDY))


def test_stop_strings_are_no_part_of_the_text(model: Model) -> None:
    full = text_of(model).text
    for start, end in ((0, 1), (5, 9), (20, 31), (len(full) - 3, len(full))):
        stop, seen = full[start:end], list[str]()
        made = text_of(model, stop=("never this", stop), on_text=seen.append)
        assert (made.finish_reason, made.stop_string) == ("stop", stop)
        assert made.text == full[: full.index(stop)] == "".join(seen)
    assert text_of(model, stop=("never this",)).text == full


LOOPING = "Still Sunday said nothing, but only"
STOPPING = replace(PLAIN, repetition_detection=STOP_ON_LOOP)


def test_a_loop_ends_it_at_the_token_that_completes_it(model: Model) -> None:
    full = text_of(model, LOOPING, PLAIN, n=300)
    made = text_of(model, LOOPING, STOPPING, n=300)
    assert (full.finish_reason, full.loop, made.finish_reason) == ("length", None, "repetition")
    assert made.loop is not None
    assert made.loop == Loop(*first_loop(full.tokens, 512, 8, 8) or ())
    assert made.tokens == full.tokens[: made.loop.end]
    assert made.text == b"".join(map(model.piece, made.tokens)).decode()
    assert made.completion_tokens == len(made.tokens)
    exact = text_of(model, LOOPING, STOPPING, n=made.loop.end)
    assert (exact.finish_reason, exact.tokens) == ("repetition", made.tokens)
    shorter = text_of(model, LOOPING, STOPPING, n=made.loop.end - 1)
    assert (shorter.finish_reason, shorter.loop) == ("length", None)


def test_a_loop_of_the_prompt_is_none(model: Model) -> None:
    everything = replace(STOPPING, history="all", temperature=1.0, seed=1)
    assert text_of(model, "I am a man, and " * 40, everything, n=20).loop is None


def test_trim_keeps_the_first_copy(model: Model) -> None:
    made, seen = text_of(model, LOOPING, STOPPING, n=300), list[str]()
    trimmed = text_of(model, LOOPING, STOPPING, n=300, on_loop="trim", on_text=seen.append)
    assert made.loop is not None
    assert (trimmed.finish_reason, trimmed.loop) == ("repetition", made.loop)
    assert trimmed.tokens == made.tokens[: made.loop.start + made.loop.period]
    assert trimmed.text == b"".join(map(model.piece, trimmed.tokens)).decode()
    assert "".join(seen) == made.text  # what was given out is not taken back
    assert trimmed.completion_tokens == len(made.tokens) > len(trimmed.tokens)
    assert (largest_run(made.text) is not None, largest_run(trimmed.text)) == (True, None)
    assert text_of(model, n=40, params=STOPPING, on_loop="trim").text == text_of(model, n=40, params=PLAIN).text


def test_text_held_back_for_a_stop_string_comes_when_a_loop_ends_it(model: Model) -> None:
    made, seen = text_of(model, LOOPING, STOPPING, n=300), list[str]()
    held = made.text[-8:] + "never this"
    again = text_of(model, LOOPING, STOPPING, n=300, stop=(held,), on_text=seen.append)
    assert (again.finish_reason, again.text, "".join(seen)) == ("repetition", made.text, made.text)


def test_a_stop_string_goes_before_a_loop_of_the_same_token(model: Model) -> None:
    made = text_of(model, LOOPING, STOPPING, n=300)
    assert made.loop is not None
    run = b"".join(map(model.piece, made.tokens[made.loop.start :])).decode()
    again = text_of(model, LOOPING, STOPPING, n=300, stop=(run,), on_loop="trim")
    assert (again.finish_reason, again.loop, again.stop_string) == ("stop", None, run)
    assert again.tokens == made.tokens
    assert again.text == made.text.removesuffix(run)


@pytest.mark.parametrize(
    ("data", "loop", "kept"),
    [
        (b"xabab", Loop(1, 2, 2), "xab"),
        ("x\u20ac\u20ac".encode(), Loop(1, 3, 2), "x\u20ac"),
        (b"\x82\xac" + "\u20ac\u20ac".encode(), Loop(0, 3, 2), "\ufffd\ufffd\u20ac"),  # a copy is 82 ac e2
        (b"\x98\x80" + "\U0001f600".encode() * 3, Loop(0, 4, 3), "\ufffd\ufffd\U0001f600"),
        (b"\xe2\xe2\xe2\xe2\xe2\xe2\xe2\xe2", Loop(0, 1, 8), "\ufffd\ufffd\ufffd\ufffd"),  # no character ever ends
        (b"ab\xe2\xe2", Loop(2, 1, 2), "ab\ufffd\ufffd"),
    ],
)
def test_a_trimmed_text_ends_with_a_whole_character(data: bytes, loop: Loop, kept: str) -> None:
    end = whole_character(data, loop.start + loop.period, lambda token: bytes([token]))
    assert data[:end].decode(errors="replace") == kept
    assert loop.period <= end - loop.start <= loop.period + 3


def test_an_interrupt_keeps_what_was_written(model: Model) -> None:
    seen: list[str] = []

    def stop_soon(text: str) -> None:
        seen.append(text)
        if len(seen) == 5:
            raise KeyboardInterrupt

    made = text_of(model, on_text=stop_soon)
    assert made.finish_reason == "interrupted"
    assert made.text == "".join(seen)
    assert 5 <= len(made.tokens) <= 8
    assert text_of(model).text.startswith(made.text)


def test_an_interrupt_during_the_prompt_keeps_nothing(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(tokens: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "decode", interrupted)
    made = text_of(model)
    assert (made.finish_reason, made.text, made.tokens) == ("interrupted", "", ())
    assert made.timings.prompt == made.timings.total > 0  # and not 0 seconds of 5
    assert made.tokens_per_second == 0


def test_on_text_may_end_it(model: Model) -> None:
    seen: list[str] = []

    def three(text: str) -> bool:
        seen.append(text)
        return len(seen) == 3

    made = text_of(model, on_text=three)
    assert (made.finish_reason, made.text) == ("interrupted", "".join(seen))
    assert len(seen) == 3


def test_ignore_eos_goes_on(model: Model) -> None:
    ends = Params(temperature=0.0, logit_bias={model.eog_tokens[0]: 100.0, 5: 1.0})
    assert text_of(model, params=ends).finish_reason == "stop"
    made = text_of(model, params=ends, ignore_eos=True)
    assert (made.finish_reason, len(made.tokens)) == ("length", 40)
    assert not set(made.tokens) & set(model.eog_tokens)
    forbidden = {**dict.fromkeys(model.eog_tokens, float("-inf")), 5: 1.0}
    assert made.tokens == text_of(model, params=replace(ends, logit_bias=forbidden)).tokens


def test_an_empty_answer_to_plain_text_shows_that_a_template_was_not_used(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = Params(temperature=0.0, logit_bias={model.eog_tokens[0]: 100.0})
    assert text_of(model, params=ends).template_unused
    assert not text_of(model).template_unused  # it wrote something
    assert not text_of(model, params=ends, n=0).template_unused  # it had no chance to
    assert not generate(model, [{"role": "user", "content": "Hi"}], GenerationConfig(ends)).template_unused
    monkeypatch.delitem(model.header.metadata, "tokenizer.chat_template")
    assert not text_of(model, params=ends).template_unused


def test_explanations_tell_what_each_token_is_and_change_nothing(model: Model) -> None:
    params = Params(temperature=0.3, lz_penalty=0.02, lz_min_match=2, repetition_penalty=1.02, seed=4)
    seen: list[Explanation] = []
    made = text_of(model, LOOPING, params, n=60, on_explanation=seen.append)
    assert made.tokens == text_of(model, LOOPING, params, n=60).tokens
    assert tuple(one.token.token for one in seen) == made.tokens
    assert [one.position for one in seen] == list(range(60))
    assert "".join(one.token.text or "" for one in seen) == made.text
    assert any(other.lz_length > 1 and other.lz_change < 0 for one in seen for other in one.others)
    assert all(one.text is not None for explanation in seen for one in explanation.others)


# -- text --


def test_pieces_add_up_to_the_text_when_characters_are_cut(model: Model) -> None:
    anything = Params(temperature=1e6, seed=3)  # close to uniform: lone bytes of characters come up
    seen: list[str] = []
    made = text_of(model, params=anything, n=300, on_text=seen.append)
    assert made.text == "".join(seen) == b"".join(map(model.piece, made.tokens)).decode(errors="replace")
    assert "\ufffd" in made.text
    assert all(seen)


def streamed(data: bytes, size: int, stop: tuple[str, ...] = ()) -> tuple[list[str], str | None]:
    stream, out = TextStream(stop), []
    for start in range(0, len(data), size):
        out.append(stream.feed(data[start : start + size]))
        if stream.found is not None:
            break
    return [*out, stream.end()], stream.found


@given(st.text("aé€\U0001f600\n", max_size=30), st.integers(1, 5))
def test_a_stream_never_cuts_a_character(text: str, size: int) -> None:
    pieces, _ = streamed(text.encode(), size)
    assert "".join(pieces) == text
    decoder, arrived = codecs.getincrementaldecoder("utf-8")(), 0
    for i, piece in enumerate(pieces[:-1]):  # and keeps none back that is whole
        arrived += len(decoder.decode(text.encode()[i * size : (i + 1) * size]))
        assert len("".join(pieces[: i + 1])) == arrived, piece


@given(st.binary(max_size=30), st.integers(1, 5))
def test_a_stream_takes_any_bytes(data: bytes, size: int) -> None:
    assert "".join(streamed(data, size)[0]) == data.decode(errors="replace")


@given(st.text("abé", max_size=20), st.lists(st.text("abé", min_size=1, max_size=4), max_size=3))
def test_a_stream_ends_at_the_first_stop_string(text: str, stop: list[str]) -> None:
    ends = [end for end in range(len(text) + 1) if any(text[:end].endswith(string) for string in stop)]
    pieces, found = streamed(text.encode(), 1, tuple(stop))
    if not ends:
        assert ("".join(pieces), found) == (text, None)
    else:
        longest = max((string for string in stop if text[: ends[0]].endswith(string)), key=len)
        assert ("".join(pieces), found) == (text[: ends[0] - len(longest)], longest)


def test_the_earlier_of_two_stop_strings_in_one_piece_wins() -> None:
    for stop in (("one", "two"), ("two", "one")):
        stream = TextStream(stop)
        assert (stream.feed(b"zero two one"), stream.found, stream.end()) == ("zero ", "two", "")


def test_a_stream_holds_back_only_what_may_be_a_stop_string() -> None:
    stream = TextStream(("</s>", "STOP"))
    assert [stream.feed(c.encode()) for c in "a</b><</s"] == ["a", "", "", "</b", ">", "", "<", "", ""]
    assert stream.end() == "</s"


@pytest.mark.parametrize(
    ("text", "prompt", "reasoning", "content"),
    [
        ("plain", "Hello", None, "plain"),
        ("<think>a</think>b", "Hello", "a", "b"),
        ("\n<think>\na\n</think>\n\nb\n", "Hello", "a", "b"),
        ("<think>and so on and so on", "Hello", "and so on and so on", ""),
        ("<think>\n\n</think>\n\nb", "Hello", None, "b"),
        ("a</think>b", "<|im_start|>assistant\n<think>\n", "a", "b"),
        ("never closed", "<think>", "never closed", ""),
        ("a</think>b</think>c", "<think>", "a", "b</think>c"),
        ("what is <think>?", "a <think> before", None, "what is <think>?"),
        ("", "<think>", "", ""),
        ("[THINK]a[/THINK]b", "Hello", "a", "b"),
        ("a</think>[/THINK]b", "[THINK]", "a</think>", "b"),
    ],
)
def test_reasoning_is_split_off(text: str, prompt: str, reasoning: str | None, content: str) -> None:
    assert split_reasoning(text, opened(prompt)) == (reasoning, content)


# -- what is refused --


@pytest.mark.parametrize(
    ("prompt", "settings", "message"),
    [
        ("", {}, "the prompt is empty"),
        ([{"role": "user", "content": "x" * 9000}], {}, "tokens, but the context holds 1024: shorten"),
        ("a\udcff", {}, r"not valid UTF-8 \(at character 1\)"),
        (PROMPT, {"max_tokens": -2}, "max_tokens must be from -1 to .*, got -2"),
        (PROMPT, {"stop": 5}, "stop must be strings that are not empty, got 5"),
        (PROMPT, {"stop": ""}, "stop must be strings that are not empty, got ''"),
        (PROMPT, {"grammar": "a*"}, r"grammar must be a Grammar, got 'a\*': make a grammar by Grammar\.regex"),
        (PROMPT, {"draft": "tale-1m"}, r"draft must be a Draft, got 'tale-1m': give Draft\(Model\(path\)\)"),
        (PROMPT, {"on_loop": "trim_loop"}, "on_loop must be one of off, stop, trim, rewind, close-think, boost, got"),
        (PROMPT, {"loop_scope": "thoughts"}, "loop_scope must be some of thinking, answer, tool, got 'thoughts'"),
        (PROMPT, {"ignore_eos": "yes"}, "ignore_eos must be True or False, got 'yes'"),
        (PROMPT, {"stop": ("",)}, "stop must be strings that are not empty"),
    ],
)
def test_bad_arguments(model: Model, prompt: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        text_of(model, prompt, n=settings.pop("max_tokens", 40), **settings)


def test_a_model_that_gives_nan_is_a_failure(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ffi.new("float[]", [np.nan] * model.n_vocab)
    monkeypatch.setattr(model, "logits_pointer", lambda: row)
    with pytest.raises(LzsError, match=r"the model failed after 0 tokens: .*nan"):
        text_of(model)


def test_templates(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model.chat_prompt([{"role": "user", "content": "Hi"}]) == "<|user|>Hi<|assistant|><think>"
    no_system = "{% if messages[0].role == 'system' %}{{ raise_exception('no\nsystem role') }}{% endif %}"
    monkeypatch.setitem(model.header.metadata, "tokenizer.chat_template", no_system)
    with pytest.raises(LzsError, match=r"tale-7m-q8_0\.gguf refuses this conversation: no system role"):
        model.chat_prompt([{"role": "system", "content": "Be brief."}])
    monkeypatch.delitem(model.header.metadata, "tokenizer.chat_template")
    with pytest.raises(LzsError, match=r"has no chat template: .* without --chat"):
        generate(model, [{"role": "user", "content": "Hi"}], GenerationConfig(GREEDY))


# -- the model --


def test_special_tokens_are_recognised_and_bos_comes_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model.tokenize("<|user|>hi<think>")[0] == 1
    assert model.tokenize("hi")[0] != 0
    monkeypatch.setattr(llama_cpp, "llama_vocab_get_add_bos", lambda vocab: True)
    assert model.tokenize("hi") == [0, *model.tokenize("<|endoftext|>hi")[1:]]
    assert model.tokenize("<|endoftext|>hi").count(0) == 1


def test_pieces_are_bytes(model: Model) -> None:
    text = "Voilà, “naïve” \U0001f600\n"
    tokens = model.tokenize(text)
    assert b"".join(map(model.piece, tokens)) == text.encode()
    assert model.piece(0) == b""  # control
    assert model.piece(3) == b"<think>"  # user-defined


def test_control_tokens_that_a_reader_wants_to_see_are_text(tmp_path: Path) -> None:
    """A model whose `<think>` and `</think>` are control tokens, as those of some are, and which thinks and answers."""
    data = bytearray(default_model().read_bytes())
    types = data.index(b"tokenizer.ggml.token_type") + len(b"tokenizer.ggml.token_type") + 4 + 4 + 8
    user_defined, control = (4).to_bytes(4, "little"), (3).to_bytes(4, "little")
    names = gguf.read(default_model()).vocabulary
    for token in map(names.index, ("<think>", "</think>")):
        assert data[types + 4 * token :][:4] == user_defined
        data[types + 4 * token : types + 4 * token + 4] = control
    (tmp_path / "m.gguf").write_bytes(data)
    question = [{"role": "user", "content": "What is 70 + 479?"}]
    with Model(tmp_path / "m.gguf", n_threads=1) as opened:
        think = names.index("<think>")
        assert (opened.piece(think), opened.piece(names.index("<|user|>"))) == (b"<think>", b"")
        made = generate(opened, question, GenerationConfig(GREEDY))
        assert (made.content, "</think>" in made.text) == ("549", True)
        assert made.reasoning
        begun = generate(opened, "Say: ", GenerationConfig(replace(GREEDY, logit_bias={think: 100.0}), max_tokens=3))
        assert begun.text.startswith("<think>")
        assert all(opened.piece(token) == b"" for token in opened.eog_tokens)


def test_mlock_reaches_llama_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    """flash_attn: test_rounding.py."""
    given: list[bool] = []
    init = llama_cpp.Llama.__init__

    def noting(self: Any, **keywords: Any) -> None:
        given.append(keywords["use_mlock"])
        init(self, **keywords)

    monkeypatch.setattr(llama_cpp.Llama, "__init__", noting)
    for settings in ({}, {"use_mlock": True}):
        with Model(default_model(), n_ctx=64, n_threads=1, **settings) as opened:
            assert len(text_of(opened, n=5).tokens) == 5
    assert given == [False, True]


def test_pieces_may_be_asked_for_by_several_threads(model: Model) -> None:
    expected = [model.fragment(token) for token in range(model.n_vocab)]
    with ThreadPoolExecutor(8) as pool:
        orders = [random.Random(seed).sample(range(model.n_vocab), model.n_vocab) for seed in range(8)]
        for order, made in zip(orders, pool.map(lambda order: list(map(model.fragment, order)), orders), strict=True):
            assert made == [expected[token] for token in order]


def test_logits_are_llama_cpps_own_memory(model: Model) -> None:
    model.keep(0)
    with pytest.raises(LzsError, match="no logits before the first decode"):
        model.logits()
    model.decode(model.tokenize(PROMPT))
    row = model.logits()
    assert row.shape == (model.n_vocab,)
    assert row.dtype == np.float32
    assert row is model.logits()
    assert (
        row.ctypes.data
        == np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(model.llm.ctx, -1), (model.n_vocab,)).ctypes.data
    )


def test_keep_goes_back(model: Model) -> None:
    tokens = model.tokenize(LONG_PROMPT)
    model.keep(0)
    model.decode(tokens[:-1])
    model.decode(tokens[-1:])  # alone, too: llama.cpp rounds otherwise for one token than for a long prompt
    expected = model.logits().copy()
    model.decode([5, 6, 7])
    model.keep(len(tokens) - 1)
    assert model.n_past == len(tokens) - 1
    model.decode(tokens[-1:])
    np.testing.assert_array_equal(model.logits(), expected)
    with pytest.raises(ValueError, match="n must be from 0 to"):
        model.keep(len(tokens) + 1)


def test_decode_checks_its_tokens(model: Model) -> None:
    model.keep(0)
    with pytest.raises(ValueError, match="4096"):
        model.decode([4096])
    with pytest.raises(ValueError, match=r"tokens\[1\] = -1"):
        model.decode([1, -1, 2])
    with pytest.raises(ValueError, match="1025 tokens do not fit in a context of 1024"):
        model.decode([5] * 1025)


@pytest.mark.parametrize("name", ["flash_attn", "use_mlock"])
def test_bad_switches(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be True or False, got 2"):
        Model(default_model(), **{name: 2})  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{"n_ctx": -1}, {"n_batch": 0}, {"n_threads": 0}, {"n_gpu_layers": -2}])
def test_bad_model_settings(settings: dict[str, int]) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(ValueError, match=f"{name} must be from .*, got {value}"):
        Model(default_model(), **settings)  # type: ignore[arg-type]


def test_a_path_is_not_a_model() -> None:
    calls: dict[str, Any] = {
        "generate": lambda model: generate(model, "x", GenerationConfig(Params())),
        "generate_many": lambda model: next(generate_many(model, [Request(0, "x", GenerationConfig(Params()))])),
        "Chat": lambda model: Chat(model, GenerationConfig(Params())),
    }
    for name, call in calls.items():
        for model in ("model.gguf", None):
            with pytest.raises(TypeError) as error:
                call(model)
            assert str(error.value) == f"{name} takes a Model, got {model!r}: open one with Model(path)"


def test_default_settings() -> None:
    with Model(default_model()) as opened:
        assert (opened.n_ctx, opened.n_batch, opened.n_threads) == (1024, 512, 1)  # one thread is enough for 8 MB
    assert 1 <= physical_cores() <= (os.cpu_count() or 1)
    with Model(default_model(), n_ctx=100) as opened:
        assert opened.n_ctx == opened.n_batch == 100


@pytest.mark.parametrize(
    ("levels", "expected"),
    [({"hw.perflevel0.physicalcpu": 6, "hw.physicalcpu": 8}, 6), ({"hw.physicalcpu": 4}, 4), ({}, 7)],
)
def test_a_mac_tells_its_cores(levels: dict[str, int], expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processors have one thread a core: half of them would be too few, and slow ones would hold the others up."""

    class System:
        @staticmethod
        def sysctlbyname(name: bytes, number: Any, size: Any, new: None, n_new: int) -> int:
            if name.decode() not in levels:
                return -1
            number._obj.value = levels[name.decode()]
            return 0

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: System)
    assert physical_cores() == expected


def test_what_llama_cpp_refuses_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = default_model().read_bytes().replace(b"blk.7.ffn_down.weight", b"blk.7.ffn_DOWN.weight")
    (tmp_path / "odd.gguf").write_bytes(data)
    with pytest.raises(LzsError, match=r"llama.cpp cannot load .*odd\.gguf: .*tensor 'blk\.7\.ffn_down\.weight'"):
        Model(tmp_path / "odd.gguf")
    assert capfd.readouterr() == ("", "")


def test_opening_and_decoding_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with Model(default_model(), n_threads=1) as opened:
        text_of(opened, n=3)
    assert capfd.readouterr() == ("", "")


def test_a_prompt_of_tokens_is_any_sequence_of_integers(model: Model) -> None:
    tokens = model.tokenize(PROMPT)
    expected = generate(model, np.array(tokens, np.int32), GenerationConfig(GREEDY, max_tokens=5)).tokens
    for prompt in (tokens, tuple(tokens), np.array(tokens), list(np.array(tokens))):
        assert generate(model, prompt, GenerationConfig(GREEDY, max_tokens=5)).tokens == expected
    bad: dict[str, Any] = {"1000000 is not a token": [1, 10**6], "prompt must be integers": [1, "a"]}
    for message, wrong in bad.items():
        with pytest.raises(ValueError, match=message):
            generate(model, wrong, GenerationConfig(GREEDY))
