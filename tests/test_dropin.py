"""`attach` and `LZLlama`: applications of llama-cpp-python with our penalties, and each trap they step around."""

import gc
import itertools
import os
import random
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import Params, Sampler
from lzsampler.generate import generate
from lzsampler.model import Model
from lzsampler.models import default_model
from lzsampler.repetition import repetition

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler import llama  # noqa: E402 (needs llama_cpp)
from lzsampler.llama import LZLlama, attach, dropin  # noqa: E402

LOOPING = "Between Barton and Delaford, there was that"
PROMPT = "Once upon a time there was"
CHAT = [{"role": "user", "content": "Sort the numbers: 31 7 12 5"}]
LZ = Params(lz_penalty=0.15)


def new(kind: Any = llama_cpp.Llama, **settings: Any) -> Any:
    return kind(str(default_model()), **{"n_ctx": 512, "n_threads": 1, "verbose": False, **settings})


@pytest.fixture(scope="module")
def plain() -> Iterator[Any]:
    model = new()
    yield model
    model.close()


@pytest.fixture
def llm(plain: Any) -> Iterator[Any]:
    """The model, untouched, and given back untouched."""
    plain.reset()
    plain.set_seed(dropin.UNSEEDED)
    yield plain
    if "lz" in plain.__dict__:
        plain.lz.detach()


def text_of(completion: Any) -> str:
    choice = completion["choices"][0]
    return str(choice["message"]["content"] if "message" in choice else choice["text"])


def streamed(chunks: Any) -> str:
    choices = [chunk["choices"][0] for chunk in chunks]
    return "".join(choice["delta"].get("content") or "" if "delta" in choice else choice["text"] for choice in choices)


def run_python(code: str, **environment: str) -> str:
    """Run a program of its own, for what may abort a process; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


# ---- applications, as the README of llama-cpp-python has them ----


def completion(llm: Any, n: int = 50, **settings: Any) -> str:
    return text_of(llm(LOOPING, max_tokens=n, stop=["Q:"], echo=True, **settings)).removeprefix(LOOPING)


def completion_stream(llm: Any, n: int = 50, **settings: Any) -> str:
    return streamed(llm.create_completion(LOOPING, max_tokens=n, stream=True, **settings))


def chat(llm: Any, n: int = 50, **settings: Any) -> str:
    return text_of(llm.create_chat_completion(messages=CHAT, max_tokens=n, **settings))


def chat_stream(llm: Any, n: int = 50, **settings: Any) -> str:
    return streamed(llm.create_chat_completion(messages=CHAT, max_tokens=n, stream=True, **settings))


def tokens(llm: Any, n: int = 50, **settings: Any) -> str:
    if "temperature" in settings:
        settings["temp"] = settings.pop("temperature")
    llm.set_seed(settings.pop("seed", 1))
    made = llm.generate(llm.tokenize(LOOPING.encode()), **settings)
    return str(llm.detokenize(list(itertools.islice(made, n))).decode("utf-8", "replace"))


APPLICATIONS = [completion, completion_stream, chat, chat_stream, tokens]
SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 0.8, "seed": 7},
    {"temperature": 1.1, "seed": 7, "top_k": 0, "top_p": 0.9, "min_p": 0.0},
    {"temperature": 0.9, "seed": 3, "repeat_penalty": 1.2, "frequency_penalty": 0.1, "presence_penalty": 0.3},
    {"temperature": 0.7, "seed": 3, "mirostat_mode": 2},
]


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_with_penalties_off_nothing_changes(llm: Any, application: Any, settings: dict[str, Any]) -> None:
    untouched = application(llm, **settings)
    llm.reset()
    with attach(llm, Params()):
        assert application(llm, **settings) == untouched
    llm.reset()
    assert type(llm) is llama_cpp.Llama
    assert application(llm, **settings) == untouched  # and given back as it was


@pytest.mark.parametrize("application", [completion, completion_stream, tokens])
def test_the_loop_is_gone(llm: Any, application: Any) -> None:
    assert repetition(application(llm, 200, temperature=0.0)).loops
    with attach(llm, LZ):
        assert not repetition(application(llm, 200, temperature=0.0)).loops


@pytest.mark.parametrize("application", APPLICATIONS)
def test_lzllama_is_attach(llm: Any, application: Any) -> None:
    with attach(llm, LZ):
        greedy, drawn = application(llm, 100, temperature=0.0), application(llm, temperature=0.8, seed=4)
    model = new(LZLlama)  # 0.15 is its default
    assert application(model, 100, temperature=0.0) == greedy
    assert application(model, temperature=0.8, seed=4) == drawn
    without = application(model, 100, temperature=0.0, lz_penalty=0.0)  # for that call
    assert without == application(llm, 100, temperature=0.0)
    assert application(model, 100, temperature=0.0) == greedy
    model.close()


@pytest.mark.parametrize("history", ["generated", "all"])
@pytest.mark.parametrize("formula", ["rate", "distance", "codelength"])
def test_four_ways_give_the_same_tokens(llm: Any, history: Any, formula: Any) -> None:
    """`attach`, `LZLlama`, `generate` of ours and a chain made by hand, greedy and drawn."""
    prompt = llm.tokenize(LOOPING.encode(), add_bos=False, special=True)
    penalties = Params(lz_penalty=0.2, lz_formula=formula, history=history)
    for temperature in (0.0, 0.9):
        sampling: dict[str, Any] = {"top_k": 30, "top_p": 0.9, "min_p": 0.02}
        link = llama.penalties(primed(Sampler(llm.n_vocab(), penalties), prompt))
        chain = [link]
        if temperature == 0.0:
            chain.append(llama_cpp.llama_sampler_init_greedy())
        else:
            chain += [
                llama_cpp.llama_sampler_init_top_k(30),
                llama_cpp.llama_sampler_init_top_p(0.9, 1),
                llama_cpp.llama_sampler_init_min_p(0.02, 1),
                llama_cpp.llama_sampler_init_temp(temperature),
                llama_cpp.llama_sampler_init_dist(11),
            ]
        by_hand = by_chain(llm, prompt, chain, 120)
        llm.reset()
        with attach(llm, penalties):
            llm.set_seed(11)
            assert list(itertools.islice(llm.generate(prompt, temp=temperature, **sampling), 120)) == by_hand
        ours = Params(
            lz_penalty=0.2, lz_formula=formula, history=history, temperature=temperature, temperature_last=True,
            pick="llama", seed=11, **sampling,
        )  # fmt: skip
        with Model(default_model(), n_ctx=512, n_threads=1) as model:
            assert list(generate(model, LOOPING, ours, n_predict=120).tokens) == by_hand
        model = new(LZLlama, lz_penalty=0.2, lz_formula=formula, history=history)
        got = text_of(model(LOOPING, max_tokens=120, temperature=temperature, seed=11, **sampling))
        assert got == model.detokenize(by_hand, prev_tokens=prompt).decode("utf-8", "ignore")
        model.close()


def primed(sampler: Sampler, prompt: list[int]) -> Sampler:
    sampler.prime(prompt)
    return sampler


def by_chain(llm: Any, prompt: list[int], links: list[Any], n: int) -> list[int]:
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    for link in links:
        llama_cpp.llama_sampler_chain_add(chain, link)
    llm.reset()
    llm.eval(prompt)
    made: list[int] = []
    while len(made) < n:
        made.append(llama_cpp.llama_sampler_sample(chain, llm.ctx, -1))
        llm.eval(made[-1:])
    llama_cpp.llama_sampler_free(chain)
    return made


# ---- the traps ----


def test_the_prompt_is_seen_when_asked(llm: Any) -> None:
    prompt = llm.tokenize(b"the king and the queen and the king and the queen and the king", add_bos=False)
    usual = list(itertools.islice(llm.generate(prompt, temp=0.0), 8))
    assert set(usual) & set(prompt)
    with attach(llm, Params(presence_penalty=1e4, history="all")):
        assert not set(itertools.islice(llm.generate(prompt, temp=0.0), 8)) & set(prompt)
    with attach(llm, Params(presence_penalty=1e4)):  # generated tokens only
        made = list(itertools.islice(llm.generate(prompt, temp=0.0), 8))
        assert made[0] == usual[0]
        assert len(set(made)) == 8


@pytest.mark.parametrize("history", ["generated", "all"])
def test_a_reused_prefix_is_no_different(llm: Any, history: Any) -> None:
    """The cache keeps the beginning of a context; the history comes from the tokens of the call."""
    with attach(llm, Params(lz_penalty=0.3, history=history)):
        first = text_of(llm(LOOPING, max_tokens=60, temperature=0.0))
        longer = LOOPING + first
        again = text_of(llm(longer, max_tokens=60, temperature=0.0))  # most of it is in the cache
        llm.reset()
        assert text_of(llm(longer, max_tokens=60, temperature=0.0)) == again
        assert text_of(llm(longer, max_tokens=60, temperature=0.0)) == again  # all of it is


def test_a_saved_state_goes_on(llm: Any) -> None:
    with attach(llm, Params(lz_penalty=0.3, history="all")):
        prompt = llm.tokenize(LOOPING.encode(), add_bos=False)
        whole = list(itertools.islice(llm.generate(prompt, temp=0.0), 60))
        llm.reset()
        half = list(itertools.islice(llm.generate(prompt, temp=0.0), 30))
        llm.eval(half[llm.n_tokens - len(prompt) :])
        state = llm.save_state()
        llm(PROMPT, max_tokens=5)
        llm.load_state(state)
        assert list(itertools.islice(llm.generate(prompt + half, temp=0.0), 30)) == whole[30:]


def test_drafted_tokens_are_not_history() -> None:
    """Every pick is that of the logits of its place and of the tokens before it, none of which is a refused draft.

    (Compared on the logits, since those of a batch are not bit for bit those of one token at a time.)
    """
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    model = new(LZLlama, draft_model=LlamaPromptLookupDecoding(num_pred_tokens=6, max_ngram_size=2))
    begin = model.tokenize(LOOPING.encode(), add_bos=False)
    made = list(itertools.islice(model.generate(begin, temp=0.0), 100))
    sampler = Sampler(model.n_vocab(), Params(lz_penalty=0.15, temperature=0.0))
    for i, token in enumerate(made):
        assert sampler.sample(model.scores[len(begin) - 1 + i]) == token, i
        sampler.accept(token)
    model.close()


def test_python_processors_keep_their_place() -> None:
    """Their indices are kept by llama-cpp-python; a chain freed with wrong ones aborts the process."""
    run_python("""
        import llama_cpp
        from lzsampler.llama import LZLlama, attach, dropin, penalties
        from lzsampler import Params, Sampler
        from lzsampler.models import default_model
        from llama_cpp._internals import LlamaSampler

        for before in (True, False):  # the custom sampler before or after our link
            chain = LlamaSampler()
            calls = []
            if before:
                chain.add_custom(lambda candidates: calls.append(candidates.contents.size))
            chain.add_penalties(100, 64, 1.0, 0.0, 0.0)
            chain.add_top_k(40)
            if not before:
                chain.add_custom(lambda candidates: calls.append(candidates.contents.size))
            chain.add_greedy()
            at = dropin.insert(chain, penalties(Sampler(100)))
            assert at == (2 if before else 1)
            assert [i for i, _ in chain.custom_samplers] == ([0] if before else [3])
            names = [dropin._name(chain.sampler, i) for i in range(5) if i != chain.custom_samplers[0][0]]
            assert names == [b"penalties", b"lz-penalties", b"top-k", b"greedy"], names
            chain.close()

        llm = LZLlama(str(default_model()), n_ctx=256, verbose=False)
        seen = []
        def processor(ids, scores):
            seen.append(len(ids))
            return scores
        for _ in range(3):
            llm("Once", max_tokens=4, logits_processor=llama_cpp.LogitsProcessorList([processor]))
        assert len(seen) == 12, seen
        llm.close()
    """)


def test_no_chain_outlives_its_text(llm: Any) -> None:
    handle = attach(llm, LZ)
    assert text_of(llm(LOOPING, max_tokens=20, temperature=0.0))
    assert llm._sampler is None
    llm.reset()
    llm.eval(llm.tokenize(PROMPT.encode()))
    drawn = set()
    for seed in range(8):
        llm.set_seed(seed)
        drawn.add(llm.sample(temp=5.0, top_k=0, top_p=1.0, min_p=0.0))
    assert len(drawn) > 1  # not the greedy chain of the text before
    handle.detach()


def test_low_level_sampling_sees_the_context(llm: Any) -> None:
    llm.eval(llm.tokenize(b"the king and the queen and the king and the", add_bos=False))
    assert llm.sample(temp=0.0) in llm._input_ids
    with attach(llm, Params(presence_penalty=1e4)):
        made = llm.sample(temp=0.0)
        assert made not in llm._input_ids
        llm.eval([made])
        assert llm.sample(temp=0.0) not in llm._input_ids


def live_chains() -> int:
    from llama_cpp._internals import LlamaSampler

    return sum(isinstance(o, LlamaSampler) and o.sampler is not None for o in gc.get_objects())


def test_chains_are_freed_when_their_text_ends(llm: Any) -> None:
    with attach(llm, LZ):
        gc.collect()
        before = live_chains()
        gc.disable()  # llama-cpp-python's chains wait for it
        try:
            for _ in range(5):
                llm(PROMPT, max_tokens=3)
                next(llm(PROMPT, max_tokens=3, stream=True))
                llm.create_chat_completion(CHAT, max_tokens=3)
                list(itertools.islice(llm.generate(llm.tokenize(b"a")), 3))
                llm.sample()
            assert live_chains() == before
        finally:
            gc.enable()


def test_an_abandoned_stream_does_not_touch_the_next_text(llm: Any) -> None:
    with attach(llm, LZ):
        alone = text_of(llm(LOOPING, max_tokens=30, temperature=0.0))
        chunks = llm(PROMPT, max_tokens=30, stream=True)
        next(chunks)
        tokens = llm.generate(llm.tokenize(LOOPING.encode(), add_bos=False), temp=0.0)
        made = [next(tokens) for _ in range(15)]
        del chunks  # its chain goes now, while another is in use
        made += [next(tokens) for _ in range(15)]
        assert llm.detokenize(made).decode() == alone


def test_sent_tokens_are_drafts(llm: Any) -> None:
    """llama-cpp-python checks them against its own picks; without the logits of each, llama.cpp ends the process."""
    prompt = llm.tokenize(PROMPT.encode())
    with attach(llm, LZ):
        alone = list(itertools.islice(llm.generate(prompt, temp=0.0), 40))
        made = llm.generate(prompt, temp=0.0)
        next(made)
        with pytest.raises(ValueError, match="logits_all=True"):
            made.send(alone[1:3])
    every = new(LZLlama, logits_all=True)
    for drafts in (alone[1:4], [5, 6, 7]):  # right and wrong
        made = every.generate(prompt, temp=0.0)
        assert [next(made), made.send(drafts), *itertools.islice(made, 38)] == alone
    every.close()


def test_a_call_without_a_seed_is_not_always_the_same(llm: Any) -> None:
    with attach(llm, Params()) as handle:
        seeds = set()
        for _ in range(3):
            llm(PROMPT, max_tokens=2)
            seeds.add(handle.stats.seed)
        assert len(seeds) == 3
        text = text_of(llm(PROMPT, max_tokens=30, seed=5))
        assert handle.stats.seed == 5
        assert text_of(llm(PROMPT, max_tokens=30, seed=5)) == text
        llm(PROMPT, max_tokens=2)
        assert handle.stats.seed not in (5, 872737089)  # the fixed one of llama-cpp-python
    zero = [new(LZLlama, seed=0) for _ in range(2)]  # Llama takes 0 for "none"
    assert len({text_of(model(PROMPT, max_tokens=30, temperature=1.5)) for model in zero}) == 1
    for model in zero:
        model.close()


def test_bias_and_processors_work_together(llm: Any) -> None:
    wanted = int(llm.tokenize(b" king", add_bos=False)[0])
    calls = []

    def processor(ids: Any, scores: Any) -> Any:
        calls.append(len(ids))
        return scores

    with attach(llm, Params()):
        usual = llm(PROMPT, max_tokens=1, temperature=0.0)
        biased = llm(
            PROMPT,
            max_tokens=1,
            temperature=0.0,
            logit_bias={str(wanted): 100.0},
            logits_processor=llama_cpp.LogitsProcessorList([processor]),
        )
    assert calls
    assert text_of(biased) != text_of(usual)
    assert text_of(biased) == " king"


# ---- settings ----


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            Params(temperature=0.5),
            "temperature is not for Params here, got 0.5: llama-cpp-python samples, and its calls",
        ),
        (Params(top_k=5), "top_k is not for Params here, got 5"),
        (Params(seed=1), "seed is not for Params here, got 1"),
        (Params(pick="llama"), "pick is not for Params here"),
        (Params(exempt=(10**6,)), "exempt must be below 4096 for this model, got 1000000"),
        ({"lz_penalty": 1}, "params must be a Params, got"),
    ],
)
def test_params_that_are_not_for_here(llm: Any, params: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        attach(llm, params)
    assert type(llm) is llama_cpp.Llama


def test_attach_refuses_what_it_cannot_attach_to(llm: Any) -> None:
    with pytest.raises(ValueError, match=r"must be a llama_cpp\.Llama, got str"):
        attach("model.gguf")
    handle = attach(llm)
    assert handle.params == LZ
    with pytest.raises(ValueError, match="penalties already"):
        attach(llm)
    with pytest.raises(ValueError, match="temperature"):
        handle.params = Params(temperature=0.0)
    with pytest.raises(ValueError, match="trim must be True or False, got 1"):
        handle.trim = 1  # type: ignore[assignment]
    handle.detach()
    handle.detach()
    attach(llm).detach()


def test_calls_refuse_what_they_do_not_know(llm: Any) -> None:
    with attach(llm):
        with pytest.raises(TypeError, match="lz_penatly"):
            llm(PROMPT, lz_penatly=0.1)
        with pytest.raises(ValueError, match="lz_penalty must be at least 0, got -1"):
            llm(PROMPT, lz_penalty=-1)
        with pytest.raises(ValueError, match="lz_formula must be one of"):
            llm.create_chat_completion(CHAT, lz_formula="best")
        with pytest.raises(ValueError, match="trim=True cannot take back"):
            llm(PROMPT, stream=True, trim=True)
        assert text_of(llm(PROMPT, max_tokens=3))  # all is well after it
    with pytest.raises(ValueError, match="lz_window"):
        new(LZLlama, lz_window=1)
    with pytest.raises(ValueError, match="cannot be detached"):
        new(LZLlama).lz.detach()


def test_exempt_strings(llm: Any) -> None:
    model = new(LZLlama, exempt=["\n", 5])
    newline = llm.tokenize(b"\n", add_bos=False)
    assert model.lz.params.exempt == tuple(sorted({5, *newline}))
    model.close()


def test_settings_hold_from_the_next_text_on(llm: Any) -> None:
    with attach(llm, Params()) as handle:
        untouched = text_of(llm(LOOPING, max_tokens=100, temperature=0.0))
        handle.params = LZ
        other = text_of(llm(LOOPING, max_tokens=100, temperature=0.0))
        assert other != untouched
        handle.params = Params()
        assert text_of(llm(LOOPING, max_tokens=100, temperature=0.0)) == untouched
        assert handle.stats.calls == 3
        assert handle.stats.tokens == 300


def test_a_model_can_be_pickled() -> None:
    import pickle

    model = new(LZLlama, lz_penalty=0.3, history="all")
    text = text_of(model(LOOPING, max_tokens=40, temperature=0.0))
    copy = pickle.loads(pickle.dumps(model))
    assert copy.lz.params == model.lz.params
    assert text_of(copy(LOOPING, max_tokens=40, temperature=0.0)) == text


def test_logprobs_stop_and_criteria(llm: Any) -> None:
    model = new(logits_all=True)
    untouched = model(PROMPT, max_tokens=6, temperature=0.0, logprobs=2, stop=["zzz"])
    with attach(model, Params()):
        same = model(PROMPT, max_tokens=6, temperature=0.0, logprobs=2, stop=["zzz"])
        assert same["choices"][0]["logprobs"] == untouched["choices"][0]["logprobs"]
        three = llama_cpp.StoppingCriteriaList([lambda ids, _: len(ids) >= len(model.tokenize(PROMPT.encode())) + 3])
        cut = model(PROMPT, max_tokens=20, temperature=0.0, stopping_criteria=three)
        assert cut["choices"][0]["finish_reason"] == "stop"
        assert untouched["choices"][0]["text"].startswith(text_of(cut))
    model.close()


# ---- stop on loop ----

DETECTION = {"max_pattern_size": 64, "min_pattern_size": 4, "min_count": 3}
STOPPING = Params(repetition_detection=DETECTION)


def test_a_looping_text_ends(llm: Any) -> None:
    with attach(llm, STOPPING) as handle:
        whole = llm(LOOPING, max_tokens=300, temperature=0.0)
        loop = handle.stats.last_loop
        assert loop is not None
        assert handle.stats.loops == 1
        assert whole["choices"][0]["finish_reason"] == "repetition"
        assert whole["usage"]["completion_tokens"] == loop.start + loop.period * loop.count < 300
        prompt = llm.tokenize(LOOPING.encode(), add_bos=False)
        made = list(llm.generate(prompt, temp=0.0))  # ends by itself
        assert len(made) == loop.start + loop.period * loop.count
        copies = [made[loop.start + i * loop.period :][: loop.period] for i in range(loop.count)]
        assert copies == [copies[0]] * loop.count
        assert made[loop.start - 1] != copies[0][-1]

        streamed_chunks = list(llm(LOOPING, max_tokens=300, temperature=0.0, stream=True))
        assert streamed(streamed_chunks) == text_of(whole)
        assert streamed_chunks[-1]["choices"][0]["finish_reason"] == "repetition"

        cut = llm(LOOPING, max_tokens=300, temperature=0.0, trim=True, echo=True)
        kept = llm.detokenize(made[: loop.start + loop.period], prev_tokens=prompt).decode()
        assert text_of(cut) == LOOPING + kept
        assert text_of(whole).startswith(kept)
        assert cut["choices"][0]["finish_reason"] == "repetition"

        handle.params = LZ
        assert llm(LOOPING, max_tokens=300, temperature=0.0)["choices"][0]["finish_reason"] == "length"
        assert handle.stats.loops == 4


def test_chats_and_lzllama_say_so_too(llm: Any) -> None:
    ours = {"repetition_detection": DETECTION, "lz_penalty": 0.0}
    question = [{"role": "user", "content": LOOPING}]
    model = new(LZLlama, **ours)
    answer = model.create_chat_completion(question, temperature=0.0, max_tokens=400)
    assert answer["choices"][0]["finish_reason"] in ("repetition", "stop")
    reasons = [answer["choices"][0]["finish_reason"]]
    chunks = list(model.create_chat_completion(question, temperature=0.0, max_tokens=400, stream=True))
    reasons.append(chunks[-1]["choices"][0]["finish_reason"])
    assert reasons[0] == reasons[1]
    assert model(LOOPING, temperature=0.0, max_tokens=300)["choices"][0]["finish_reason"] == "repetition"
    off = model(LOOPING, temperature=0.0, max_tokens=300, repetition_detection=None)
    assert off["choices"][0]["finish_reason"] == "length"
    model.close()
    with attach(llm):
        assert llm(LOOPING, temperature=0.0, max_tokens=300, **ours)["choices"][0]["finish_reason"] == "repetition"


def test_trimmed_logprobs_fit_the_text() -> None:
    model = new(LZLlama, lz_penalty=0.0, repetition_detection=DETECTION, trim=True, logits_all=True)
    cut = model(LOOPING, temperature=0.0, max_tokens=300, logprobs=1)
    loop = model.lz.stats.last_loop
    logprobs = cut["choices"][0]["logprobs"]
    assert {len(values) for values in logprobs.values()} == {loop.start + loop.period}
    assert "".join(logprobs["tokens"]).strip() == text_of(cut).strip()
    model.close()


def test_other_reasons_keep_their_name(llm: Any) -> None:
    with attach(llm, STOPPING) as handle:
        llm(LOOPING, max_tokens=300, temperature=0.0)
        loop = handle.stats.last_loop
        assert loop is not None
        n = loop.start + loop.period * loop.count
        exactly = llm(LOOPING, max_tokens=n, temperature=0.0)
        assert exactly["choices"][0]["finish_reason"] == "length"
        never = llama_cpp.StoppingCriteriaList([lambda *_: False])
        both = llm(LOOPING, max_tokens=300, temperature=0.0, stopping_criteria=never)
        assert both["choices"][0]["finish_reason"] == "repetition"
        at_once = llama_cpp.StoppingCriteriaList([lambda *_: True])
        stopped = llm(LOOPING, max_tokens=300, temperature=0.0, stopping_criteria=at_once)
        assert stopped["choices"][0]["finish_reason"] == "stop"


# ---- threads ----


def test_two_threads_two_models() -> None:
    models = [new(LZLlama) for _ in range(2)]
    expected = [text_of(models[0](prompt, max_tokens=80, temperature=0.0)) for prompt in (LOOPING, PROMPT)]
    got: dict[int, list[str]] = {}

    def work(i: int) -> None:
        got[i] = [text_of(models[i]((LOOPING, PROMPT)[i], max_tokens=80, temperature=0.0)) for _ in range(5)]

    in_threads(work, 2)
    assert got == {0: [expected[0]] * 5, 1: [expected[1]] * 5}
    for model in models:
        model.close()


def test_two_threads_one_model_with_a_lock(llm: Any) -> None:
    with attach(llm, LZ):
        expected = [text_of(llm(prompt, max_tokens=60, temperature=0.0)) for prompt in (LOOPING, PROMPT)]
        lock, got = threading.Lock(), [[], []]  # type: ignore[var-annotated]

        def work(i: int) -> None:
            for _ in range(6):
                with lock:
                    got[i].append(text_of(llm((LOOPING, PROMPT)[i], max_tokens=60, temperature=0.0)))

        in_threads(work, 2)
        assert got == [[expected[0]] * 6, [expected[1]] * 6]


def in_threads(work: Any, n: int) -> None:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- memory ----


def test_two_thousand_calls_leave_nothing_behind() -> None:
    """Resident memory, within 2 %; MALLOC_PERTURB_ overwrites what is freed, so that a use of it would show."""
    pytest.importorskip("resource")
    out = run_python(
        """
        import gc, itertools, os
        import llama_cpp
        from lzsampler import Params
        from lzsampler.llama import attach
        from lzsampler.models import default_model

        def resident():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        llm = llama_cpp.Llama(str(default_model()), n_ctx=256, n_threads=1, verbose=False)
        attach(llm, Params(lz_penalty=0.15))
        prompt = llm.tokenize(b"Once upon a time")
        for i in range(2400):
            if i == 400:
                before = resident()
            if i % 3 == 0:
                next(llm("Once upon a time", max_tokens=8, stream=True))  # cut half-way
            elif i % 3 == 1:
                llm("Once upon a time", max_tokens=2)
            else:
                list(itertools.islice(llm.generate(prompt), 2))
        print(before, resident())
        """,
        MALLOC_PERTURB_="165",
    )
    before, after = map(int, out.split())
    assert after <= 1.02 * before, f"{before} bytes, then {after}"


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_valgrind_sees_no_use_of_freed_memory(tmp_path: Path) -> None:
    """Invalid reads, writes and frees. (Undefined values it also finds in Python itself.)"""
    program = tmp_path / "short.py"
    program.write_text(
        textwrap.dedent("""
        import itertools, os
        import llama_cpp
        from lzsampler import Params
        from lzsampler.llama import attach
        from lzsampler.models import default_model

        small = {"n_ctx": 128, "n_batch": 16, "n_threads": 1, "n_threads_batch": 1}
        llm = llama_cpp.Llama(str(default_model()), verbose=False, **small)
        grammar = llama_cpp.LlamaGrammar.from_string("root ::= [a-z ]+", verbose=False)
        processors = llama_cpp.LogitsProcessorList([lambda ids, scores: scores])
        with attach(llm, Params(lz_penalty=0.15, history="all")):
            llm("Once upon", max_tokens=3, temperature=0.0)
            next(llm("Once upon", max_tokens=3, stream=True))
            llm("Once upon", max_tokens=3, grammar=grammar, fast_grammar=True)
            llm("Once upon", max_tokens=2, grammar=grammar, fast_grammar=True, logits_processor=processors)
            list(itertools.islice(llm.generate(llm.tokenize(b"Once")), 2))
            llm.sample()
        llm.close()
        print("done", flush=True)
        os._exit(0)  # the interpreter's own end is not ours to check
        """)
    )
    suppressions = Path(__file__).with_name("valgrind.supp")
    options = ["-q", "--error-exitcode=1", "--undef-value-errors=no", f"--suppressions={suppressions}"]
    command = ["valgrind", *options, sys.executable, str(program)]
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    if "unrecognised instruction" in done.stderr:
        pytest.skip("valgrind does not know an instruction of this build of llama.cpp")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "done\n"


# ---- grammar ----

JSON = r"""
root   ::= object
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" [a-zA-Z ,.]* "\"" ws
number ::= "-"? [0-9]+ ws
ws     ::= [ \n]?
"""


def grammar_of(source: str) -> Any:
    return llama_cpp.LlamaGrammar.from_string(source, verbose=False)


def common_sampler(llm: Any, prompt: list[int], source: str, links: Any, n: int) -> tuple[list[int], int]:
    """`common_sampler_sample` of llama.cpp (common/sampling.cpp, grammar_first = false), in the same calls."""
    import ctypes

    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    for link in links():
        llama_cpp.llama_sampler_chain_add(chain, link)
    grammar = llama_cpp.llama_sampler_init_grammar(llm._model.vocab, source.encode(), b"root")
    data = (llama_cpp.llama_token_data * llm.n_vocab())()

    def candidates() -> Any:
        logits = llama_cpp.llama_get_logits_ith(llm.ctx, -1)
        for i in range(llm.n_vocab()):
            data[i] = llama_cpp.llama_token_data(i, logits[i], 0.0)
        return llama_cpp.llama_token_data_array(data, llm.n_vocab(), -1, False)

    llm.reset()
    llm.eval(prompt)
    made: list[int] = []
    refused = 0
    while len(made) < n:
        array = candidates()
        llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
        token = array.data[array.selected].id
        one = (llama_cpp.llama_token_data * 1)(llama_cpp.llama_token_data(token, 1.0, 0.0))
        single = llama_cpp.llama_token_data_array(one, 1, -1, False)
        llama_cpp.llama_sampler_apply(grammar, ctypes.byref(single))
        if one[0].logit == -np.inf:
            refused += 1
            array = candidates()
            llama_cpp.llama_sampler_apply(grammar, ctypes.byref(array))
            llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
            token = array.data[array.selected].id
        llama_cpp.llama_sampler_accept(grammar, token)
        llama_cpp.llama_sampler_accept(chain, token)
        made.append(int(token))
        if llama_cpp.llama_vocab_is_eog(llm._model.vocab, token):
            break
        llm.eval([token])
    llama_cpp.llama_sampler_free(grammar)
    llama_cpp.llama_sampler_free(chain)
    return made, refused


@pytest.mark.parametrize("temperature", [0.0, 0.8, 1.5])
@pytest.mark.parametrize("top_k", [0, 3, 40])
def test_fast_grammar_is_common_sampler(llm: Any, temperature: float, top_k: int) -> None:
    prompt = llm.tokenize(b"The king said:", add_bos=False)

    def links() -> list[Any]:
        first = [llama.penalties(Sampler(llm.n_vocab(), LZ))]
        if temperature == 0.0:
            return [*first, llama_cpp.llama_sampler_init_greedy()]
        return [
            *first,
            llama_cpp.llama_sampler_init_top_k(top_k),
            llama_cpp.llama_sampler_init_top_p(0.95, 1),
            llama_cpp.llama_sampler_init_min_p(0.05, 1),
            llama_cpp.llama_sampler_init_temp(temperature),
            llama_cpp.llama_sampler_init_dist(9),
        ]

    expected, refused = common_sampler(llm, prompt, JSON, links, 60)
    assert refused
    llm.reset()
    with attach(llm, LZ, fast_grammar=True) as handle:
        llm.set_seed(9)
        made = []
        for token in llm.generate(prompt, temp=temperature, top_k=top_k, grammar=grammar_of(JSON)):
            made.append(token)
            if len(made) == 60 or llama_cpp.llama_vocab_is_eog(llm._model.vocab, token):
                break
    assert made == expected
    assert handle.stats.refused == refused


def test_greedy_fast_grammar_is_the_slow_one(llm: Any) -> None:
    """Greedy picks the best allowed token either way, so the text does not change at all."""
    random.seed(1)
    grammars = [JSON, 'root ::= "yes" | "no"', "root ::= [a-z ]+ [.]", r"root ::= [0-9]+ ([,] [0-9]+)*"]
    with attach(llm, LZ) as handle:
        for source in grammars:
            slow = llm(PROMPT, max_tokens=40, temperature=0.0, grammar=grammar_of(source))
            fast = llm(PROMPT, max_tokens=40, temperature=0.0, grammar=grammar_of(source), fast_grammar=True)
            assert fast["choices"] == slow["choices"]
        assert handle.stats.refused
        chat = llm.create_chat_completion(
            CHAT, max_tokens=40, response_format={"type": "json_object"}, fast_grammar=True, temperature=0.0
        )
        assert text_of(chat).lstrip().startswith("{")


def test_a_bad_grammar_is_an_error(llm: Any) -> None:
    from lzsampler import LzsError

    with attach(llm, fast_grammar=True), pytest.raises((LzsError, ValueError), match="grammar"):
        llm(PROMPT, grammar=grammar_of("root ::= missing"))
    assert text_of(llm(PROMPT, max_tokens=3))
