"""Seeds: with penalties off a call gives what `Llama` gives, and with penalties it follows from the same calls."""

import copy
import itertools
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lzsampler import Params

llama_cpp = pytest.importorskip("llama_cpp")

from applications import CHAT, LOOPING, PROMPT, new, streamed, text_of  # noqa: E402 (needs llama_cpp)
from lzsampler.dropin import LZLlama, attach  # noqa: E402

DRAWN: dict[str, Any] = {"max_tokens": 12, "temperature": 1.0}


def completed(llm: Any, **settings: Any) -> str:
    return text_of(llm(PROMPT, **DRAWN, **settings))


def a_stream(llm: Any, **settings: Any) -> str:
    return streamed(llm(PROMPT, stream=True, **DRAWN, **settings))


def chat(llm: Any, **settings: Any) -> str:
    return text_of(llm.create_chat_completion(CHAT, **DRAWN, **settings))


def chat_stream(llm: Any, **settings: Any) -> str:
    return streamed(llm.create_chat_completion(CHAT, stream=True, **DRAWN, **settings))


def generated(llm: Any) -> str:
    made = llm.generate(llm.tokenize(PROMPT.encode()), temp=1.0)
    return str(list(itertools.islice(made, 12)))


def sampled(llm: Any) -> str:
    llm.reset()
    llm.eval(llm.tokenize(PROMPT.encode()))
    return str([llm.sample(temp=1.5, top_k=0, top_p=1.0, min_p=0.0) for _ in range(3)])


# ---- what is done with a model; each gives the texts of it ----


def without_a_seed(llm: Any) -> list[str]:
    return [completed(llm) for _ in range(3)]


def after_a_seed(llm: Any) -> list[str]:
    return [completed(llm, seed=5), *without_a_seed(llm), completed(llm, seed=0), *without_a_seed(llm)]


def after_set_seed(llm: Any) -> list[str]:
    made = []
    for seed in (42, 0, 42):
        llm.set_seed(seed)
        made += without_a_seed(llm)
    return made


def after_load_state(llm: Any) -> list[str]:
    llm.set_seed(3)
    made = [completed(llm)]
    state = llm.save_state()
    made += without_a_seed(llm)
    llm.load_state(state)
    return [*made, *without_a_seed(llm)]


def from_a_cache(llm: Any) -> list[str]:
    """The cache loads a state, with its seed, where a prompt comes again."""
    llm.set_cache(llama_cpp.LlamaRAMCache())
    made = [completed(llm, seed=5), text_of(llm(LOOPING, **DRAWN)), *without_a_seed(llm)]
    llm.set_cache(None)
    return made


def in_streams(llm: Any) -> list[str]:
    return [a_stream(llm, seed=5), a_stream(llm), completed(llm), a_stream(llm)]


def in_chats(llm: Any) -> list[str]:
    return [chat(llm, seed=5), chat(llm), chat_stream(llm), chat(llm), completed(llm)]


def in_generate(llm: Any) -> list[str]:
    llm.set_seed(7)
    made = [generated(llm), generated(llm)]
    completed(llm, seed=5)
    return [*made, generated(llm), completed(llm), generated(llm)]


def in_sample(llm: Any) -> list[str]:
    llm.set_seed(9)
    made = [sampled(llm)]
    llm.set_seed(10)
    return [*made, sampled(llm), completed(llm)]


def in_copies(llm: Any) -> list[str]:
    made = [completed(llm)]
    for twin in (copy.deepcopy(llm), pickle.loads(pickle.dumps(llm))):
        made += without_a_seed(twin)
        twin.close()
    return [*made, *without_a_seed(llm)]


SCRIPTS = [
    without_a_seed,
    after_a_seed,
    after_set_seed,
    after_load_state,
    from_a_cache,
    in_streams,
    in_chats,
    in_generate,
    in_sample,
    in_copies,
]


@contextmanager
def opened(kind: str, **settings: Any) -> Iterator[Any]:
    model = new(LZLlama if kind == "LZLlama" else llama_cpp.Llama, n_threads_batch=1, flash_attn=False, **settings)
    try:
        if kind == "attached":
            attach(model, Params())
        yield model
    finally:
        model.close()


@pytest.mark.parametrize(
    ("script", "built"),
    [*itertools.product(SCRIPTS, ({}, {"seed": 11})), (without_a_seed, {"seed": 0}), (in_copies, {"seed": 0})],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_with_penalties_off_a_seed_is_llamas(script: Callable[[Any], list[str]], built: dict[str, int]) -> None:
    with opened("plain", **built) as plain:
        wanted = script(plain)
    assert len({*wanted}) > 1
    with opened("LZLlama", lz_penalty=0.0, **built) as model:
        assert script(model) == wanted
    with opened("attached", **built) as model:
        assert script(model) == wanted


@pytest.mark.parametrize("script", SCRIPTS)
def test_with_penalties_the_same_calls_give_the_same_texts(script: Callable[[Any], list[str]]) -> None:
    made = []
    for _ in range(2):
        with opened("LZLlama", lz_penalty=1.0, lz_rule="paper", lz_buffer=1) as model:
            made.append(script(model))
    assert made[0] == made[1]
    with opened("plain") as plain:
        assert script(plain) != made[0]


def test_stats_have_the_seed_that_repeats_a_text() -> None:
    with opened("attached") as model:
        texts = []
        for seed in (None, 5, None):
            texts.append(completed(model, seed=seed))
            assert completed(model, seed=model.lz.stats.seed) == texts[-1]
        assert len({*texts}) == 3


def test_minus_one_draws_a_seed_also_with_a_boost() -> None:
    """llama.cpp draws one for -1; that of what comes after a boost is computed, and -1 was out of its range."""
    with opened("LZLlama", lz_penalty=0.0, on_loop="boost") as model:
        assert len({completed(model, seed=-1) for _ in range(4)}) > 1
        model(LOOPING, max_tokens=200, temperature=0.0, seed=-1)
        assert model.lz.stats.recoveries
