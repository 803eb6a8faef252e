"""A penalty in the thinking alone: the thinking does not loop, and the answer is the one that no penalty gives."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lzsampler import STOP_ON_LOOP, STOP_ON_STUCK, Params
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.parts import PartTracker
from lzsampler.decoding.policy import LoopPolicy
from lzsampler.evaluation.tasks import read_tasks
from lzsampler.models import default_model, thinking_tasks
from lzsampler.params import PRESETS

pytest.importorskip("llama_cpp")

from lzsampler.decoding.generation import Generation
from lzsampler.decoding.many import Request, generate_many
from lzsampler.llama.model import Model, Prompt
from writings import texts_by_id

PLAIN = Params(temperature=0.0)
LOOPS = replace(PLAIN, repetition_detection=STOP_ON_LOOP, stuck_detection=STOP_ON_STUCK)


class Forced:
    """A sampler that takes some tokens, and then the likeliest ones without any penalty."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens, self.n = tokens, 0

    def prime(self, tokens: Any) -> None:
        pass

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        return self.tokens[self.n] if self.n < len(self.tokens) else int(logits.argmax())

    def accept(self, token: int) -> None:
        self.n += 1


def texts(model: Model, prompts: Sequence[Prompt], params: Params, loops: LoopPolicy, n: int) -> list[Generation]:
    requests = [
        Request(i, prompt, GenerationConfig(params, max_tokens=n, on_loop=loops)) for i, prompt in enumerate(prompts)
    ]
    made = texts_by_id(generate_many(model, requests))
    return [made[i] for i in range(len(prompts))]


def thinking(model: Model, opened: str, text: Generation) -> list[int]:
    """Return the tokens of a text up to the mark that ends its thinking."""
    parts = PartTracker(opened)
    seen = [opened != ""]
    for n, token in enumerate(text.tokens, 1):
        parts.add(model.fragments[token] or "")
        if seen[-1] and parts.part == "answer":
            return list(text.tokens[:n])
        seen.append(parts.part == "thinking")
    raise AssertionError(f"the thinking has no end: {text.text}")


def answers_without_a_penalty(
    model: Model, prompts: Sequence[Prompt], thoughts: Sequence[list[int]], n: int
) -> list[Generation]:
    """Return the texts that begin with thoughts and go on without a penalty, each token decoded as it is otherwise."""
    requests = [
        Request(i, prompt, GenerationConfig(PLAIN, max_tokens=n), sampler=partial(Forced, tokens))
        for i, (prompt, tokens) in enumerate(zip(prompts, thoughts, strict=True))
    ]
    made = texts_by_id(generate_many(model, requests))
    return [made[i] for i in range(len(prompts))]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_threads=1, n_ctx=512) as opened:
        yield opened


def test_the_embedded_model_sorts_equal_numbers(model: Model) -> None:
    """It goes round in its list of steps; with the penalty it does not, which would also change its answer."""
    prompts = [[{"role": "user", "content": f"Sort{f' {digit}' * n}."}] for n in (14, 16) for digit in "357"]
    for text in texts(model, prompts, LOOPS, LoopPolicy("stop"), 250):
        assert text.finish_reason == "repetition"
        assert text.content == ""
    penalty = Params.recommended(
        model, temperature=0.0, frequency_penalty=0.3
    )  # LZ spares numbers, which are separators
    found = replace(penalty, repetition_detection=STOP_ON_LOOP, stuck_detection=STOP_ON_STUCK)
    stop = LoopPolicy("stop", loop_scope=["thinking"], penalty_scope=["thinking"])
    scoped = texts(model, prompts, found, stop, 250)
    assert all(text.finish_reason == "stop" and text.content for text in scoped)
    thoughts = [thinking(model, "<think>", text) for text in scoped]
    free = answers_without_a_penalty(model, prompts, thoughts, 250)
    assert [text.tokens for text in free] == [text.tokens for text in scoped]
    assert all(text.finish_reason == "stop" for text in free)
    everywhere = texts(model, prompts, penalty, LoopPolicy("off"), 250)
    assert sum(text.tokens != own.tokens for text, own in zip(everywhere, scoped, strict=True)) >= 3


@pytest.mark.real
def test_smollm2_thinks_without_a_loop_and_answers_in_json_as_without_a_penalty(smollm2: Path) -> None:
    """How many of these loop depends on the build of llama.cpp; that the answers are the same does not."""
    tasks = {task.id: task.prompt for task in read_tasks(thinking_tasks())[0]}
    prompts = [tasks[f"think-fact-{number:03d}"] for number in (0, 21, 24, 25)]
    paper = Params(temperature=0.0, **PRESETS["paper"])
    found = replace(paper, repetition_detection=STOP_ON_LOOP, stuck_detection=STOP_ON_STUCK)
    with Model(smollm2, n_threads=1, n_ctx=1024) as model:
        loops = texts(model, prompts, LOOPS, LoopPolicy("stop"), 220)
        assert sum(text.finish_reason == "repetition" and not text.content for text in loops) >= 2
        scoped = texts(model, prompts, found, LoopPolicy("stop", penalty_scope=["thinking"]), 220)
        assert all(text.finish_reason != "repetition" for text in scoped)
        answered = [i for i, text in enumerate(scoped) if text.content.startswith('{"answer"')]
        assert len(answered) >= 2
        thoughts = [thinking(model, "", scoped[i]) for i in answered]
        free = answers_without_a_penalty(model, [prompts[i] for i in answered], thoughts, 220)
        assert [text.tokens for text in free] == [scoped[i].tokens for i in answered]
