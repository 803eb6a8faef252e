"""What tests of `attach` and `LZLlama` share: the embedded model as a plain `llama_cpp.Llama`, and what it answers."""

import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import llama_cpp
from llama_cpp._internals import LlamaSampler

from lzsampler import Params
from lzsampler.llama import lz_separators
from lzsampler.models import default_model

LOOPING = "Between Barton and Delaford, there was that"
PROMPT = "Once upon a time there was"
CHAT = [{"role": "user", "content": "Sort the numbers: 31 7 12 5"}]
LZ = Params(lz_rule="paper", lz_penalty=0.15)


def default(llm: Any) -> Params:
    """Return the default penalty with the separators of a model, which `attach` and `LZLlama` start from."""
    separators: dict[str, Any] = dict(lz_separators(llm))
    return Params(lz_penalty=0.3, lz_run_penalty=0.5, **separators)


def new(kind: Any = llama_cpp.Llama, **settings: Any) -> Any:
    """Open the embedded model. Attention is that of `Llama` by default, so that texts can be compared."""
    usual = {"n_ctx": 512, "n_threads": 1, "flash_attn": False, "verbose": False}
    return kind(str(default_model()), **{**usual, **settings})


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
        cwd=Path(__file__).parent,  # not the root, whose lzsampler may not be the installed one
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def penalty_arguments(n_vocab: int, window: int, repeat: float, frequency: float, presence: float) -> tuple[Any, ...]:
    """Return what llama.cpp's penalties take: without n_vocab before llama-cpp-python 0.3.35."""
    names = inspect.signature(LlamaSampler.add_penalties).parameters
    return (*((n_vocab,) if "n_vocab" in names else ()), window, repeat, frequency, presence)


def by_chain(llm: Any, prompt: list[int], samplers: list[Any], n: int) -> list[int]:
    """Return n tokens that a chain of these samplers picks after a prompt; the chain is freed."""
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    for sampler in samplers:
        llama_cpp.llama_sampler_chain_add(chain, sampler)
    llm.reset()
    llm.eval(prompt)
    made: list[int] = []
    while len(made) < n:
        made.append(llama_cpp.llama_sampler_sample(chain, llm.ctx, -1))  # accepts what it picks
        llm.eval(made[-1:])
    llama_cpp.llama_sampler_free(chain)
    return made
