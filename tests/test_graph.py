"""The graph sampler on llama.cpp's CPU backend: the texts of the CPU sampler, and a context that is left as it was.

What the graph does with difficult numbers is in tests/c/test_graph.c.
"""

import gc
import json
import math
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asked import asked
from lzsampler import Grammar, LzsError, Params
from lzsampler.models import default_draft, default_model
from lzsampler.params import PRESETS

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler.decoding.chat import Chat  # noqa: E402 (needs llama_cpp)
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.draft import Draft  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.decoding.generation import Generation  # noqa: E402
from lzsampler.llama import gguf  # noqa: E402
from lzsampler.llama import graph as the_graph  # noqa: E402
from lzsampler.llama.graph import missing  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402

needs_graph = pytest.mark.skipif(missing() is not None, reason=str(missing()))
PROMPT = "Once upon a time there was a king"
WARM = {"temperature": 0.8, "seed": 7}
SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "greedy, paper": {**PRESETS["paper"], "temperature": 0.0, "history": "all"},
    "warm": {**WARM, "top_p": 0.95, "lz_penalty": 0.4},
    "counts": {
        **WARM,
        "lz_penalty": 0.15,
        "lz_rule": "paper",
        "repetition_penalty": 1.1,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "top_k": 40,
        "min_p": 0.05,
        "temperature_last": True,
    },
    "DRY, biases": {
        **WARM,
        "dry_multiplier": 0.8,
        "logit_bias": {100: -1.5, 200: 1.5, 13: float("-inf")},
    },
}


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_threads=1, flash_attn=True) as opened:
        yield opened


def both(model: Model, params: Params, n: int, prompt: Any = PROMPT, **settings: Any) -> Generation:
    """Write a text with the CPU sampler and with the graph sampler, which must be the same; return the latter."""
    config, hooks = asked(params, max_tokens=n, sampler="cpu", **settings)
    cpu = generate(model, prompt, config, **hooks)
    graph = generate(model, prompt, replace(config, sampler="graph"), **hooks)
    assert (cpu.sampler, graph.sampler) == ("cpu", "graph")
    assert graph.tokens == cpu.tokens
    assert (graph.text, graph.finish_reason) == (cpu.text, cpu.finish_reason)
    assert graph.actions == cpu.actions
    assert graph.forced == cpu.forced
    return graph


def raw_logits(model: Model) -> bytes:
    model.keep(0)
    model.decode(model.tokenize(PROMPT))
    return model.logits().tobytes()


# -- the same text --


@needs_graph
@pytest.mark.parametrize("name", SETTINGS)
def test_the_text_of_the_cpu(model: Model, name: str) -> None:
    made = both(model, Params.recommended(model, **SETTINGS[name]), 512, ignore_eos=True)
    assert len(made.tokens) == 512


@needs_graph
@pytest.mark.parametrize(("n_batch", "n_threads"), [(2, 1), (7, 2), (512, 2)])
def test_any_batch_and_threads(n_batch: int, n_threads: int) -> None:
    with Model(default_model(), n_batch=n_batch, n_threads=n_threads, n_ctx=256) as opened:
        for name in ("greedy, paper", "counts"):
            both(opened, Params.recommended(opened, **SETTINGS[name]), 40)


@needs_graph
def test_a_prompt_of_several_ubatches() -> None:
    """llama.cpp decodes 512 tokens at once: only the last part of a batch has an output, and edits."""
    with Model(default_model(), n_ctx=700, n_batch=600, n_threads=1) as opened:
        prompt = np.resize(np.array(opened.tokenize("The king said no. The queen went home."), np.int32), 580)
        both(opened, Params.recommended(opened, **SETTINGS["greedy, paper"]), 12, prompt)


@needs_graph
def test_a_context_that_fills_up() -> None:
    """The history grows to the whole context: there is a place for each of its tokens."""
    with Model(default_model(), n_ctx=256, n_threads=1) as opened:
        params = Params.recommended(opened, temperature=1.5, seed=3, repetition_penalty=1.2, history="all")
        made = both(opened, params, -1, ignore_eos=True)
        assert made.finish_reason == "context"


# -- several outputs --


@needs_graph
@pytest.mark.parametrize("name", SETTINGS)
def test_lookup_drafts(model: Model, name: str) -> None:
    params = Params.recommended(model, **SETTINGS[name])
    prompt = "The king said no. The king said yes. The king said no. The king said"
    made = both(model, params, 96, prompt, draft=Draft(lookup=2, n_max=5), ignore_eos=True)
    assert made.speculated is not None
    assert made.speculated.blocks > 0
    assert (
        generate(model, prompt, GenerationConfig(params, max_tokens=96, sampler="cpu", ignore_eos=True)).tokens
        == made.tokens
    )


@needs_graph
@pytest.mark.parametrize("mode", ["gumbel", "mrs", "match"])
def test_a_draft_model(model: Model, mode: Any) -> None:
    with Model(default_draft(), n_threads=1, flash_attn=True) as small:
        for name in ("greedy", "counts"):
            draft = Draft(small, n_max=4, mode=mode)
            made = both(model, Params.recommended(model, **SETTINGS[name]), 60, draft=draft)
            assert made.speculated is not None
            assert made.speculated.accepted > 5


@needs_graph
def test_a_context_has_room_for_as_many_outputs_as_asked() -> None:
    with Model(default_model(), n_threads=1, n_ctx=256) as opened:
        before = raw_logits(opened)
        assert opened.llm.context_params.n_outputs_max_per_seq == 1
        opened.reserve_outputs(5)
        assert opened.n_past == 0
        assert opened.llm.context_params.n_outputs_max_per_seq == 5
        context = opened.llm.ctx
        opened.reserve_outputs(3)
        assert opened.llm.ctx is context
        assert raw_logits(opened) == before


# -- grammars, and what steers a text --


@needs_graph
@pytest.mark.parametrize("fast_forward", [True, False])
@pytest.mark.parametrize("name", ["greedy", "counts"])
def test_a_grammar(model: Model, name: str, fast_forward: bool) -> None:
    grammar = Grammar.regex(r"(the (king|queen|old man) (said|went)[a-z ]{5,30}\. ){3}the end", model)
    made = both(model, Params.recommended(model, **SETTINGS[name]), 80, grammar=grammar, fast_forward=fast_forward)
    assert grammar.match(made.text) != "no"
    assert made.text.startswith("the ")


@needs_graph
@pytest.mark.parametrize("drafted", [False, True])
def test_a_grammar_that_begins_behind_a_thought(model: Model, drafted: bool) -> None:
    """The mask comes into the graph later than the sampler: the template of this model opens a thought."""
    grammar = Grammar.regex("(a{3}b|c{40})", model)
    made = both(
        model,
        Params(temperature=0.0),
        60,
        [{"role": "user", "content": "x"}],
        grammar=grammar,
        grammar_scope=["answer"],
        draft=Draft(lookup=2, n_max=4) if drafted else None,
    )
    assert made.constrained is not None
    assert grammar.match(made.constrained) == "yes"


def test_a_grammar_and_a_draft(model: Model) -> None:
    grammar = Grammar.regex(r"(king|queen|, ){4,20}", model)
    made = both(
        model, Params.recommended(model, **SETTINGS["greedy"]), 40, grammar=grammar, draft=Draft(lookup=1, n_max=4)
    )
    assert made.speculated is not None
    assert made.speculated.blocks > 0


@needs_graph
@pytest.mark.parametrize("on_loop", ["stop", "trim", "rewind", "boost"])
def test_loops(model: Model, on_loop: Any) -> None:
    params = Params(temperature=0.0, seed=1)
    made = both(model, params, 150, "Still Sunday said nothing, but only", on_loop=on_loop)
    assert made.actions


@needs_graph
def test_parts_of_a_text(model: Model) -> None:
    params = Params.recommended(model, temperature=0.0, lz_penalty=1.0)
    both(model, params, 60, "<think>the king the king the king", penalty_scope=["answer"])


@needs_graph
def test_a_chat_keeps_its_context(model: Model) -> None:
    answers = []
    for sampler in ("cpu", "graph"):
        chat = Chat(model, GenerationConfig(Params.recommended(model, temperature=0.0), max_tokens=20, sampler=sampler))
        answers.append([chat.say("Who is the king?").tokens, chat.say("And the queen?").tokens])
    assert answers[0] == answers[1]


# -- the context afterwards --


@needs_graph
def test_the_context_gives_logits_again(model: Model) -> None:
    before = raw_logits(model)
    generate(model, PROMPT, GenerationConfig(Params.recommended(model, temperature=0.0), max_tokens=5, sampler="graph"))
    generate(model, PROMPT, GenerationConfig(Params.recommended(model), max_tokens=5, sampler="graph"))
    with pytest.raises(LzsError, match="no logits after a graph sampler's text"):
        model.logits()
    assert raw_logits(model) == before

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    made = generate(
        model, PROMPT, GenerationConfig(Params.recommended(model), max_tokens=5, sampler="graph"), on_text=interrupt
    )
    assert made.finish_reason == "interrupted"
    assert raw_logits(model) == before

    def fail(_: str) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        generate(
            model, PROMPT, GenerationConfig(Params.recommended(model), max_tokens=5, sampler="graph"), on_text=fail
        )
    assert raw_logits(model) == before


@needs_graph
def test_a_model_that_is_closed_meanwhile() -> None:
    opened = Model(default_model(), n_threads=1, n_ctx=256)
    with pytest.raises(LzsError, match="is in use: close it when nothing uses it any more"):
        generate(
            opened,
            PROMPT,
            GenerationConfig(Params.recommended(opened), sampler="graph"),
            on_text=lambda _: opened.close(),
        )
    opened.close()
    gc.collect()


# -- errors --


def test_another_word(model: Model) -> None:
    with pytest.raises(ValueError, match="sampler must be one of auto, cpu, graph, got 'gpu'"):
        generate(model, PROMPT, GenerationConfig(Params.recommended(model), sampler="gpu"))  # type: ignore[arg-type]


def test_auto_is_the_cpu_without_a_gpu(model: Model) -> None:
    assert not model.on_device
    assert generate(model, PROMPT, GenerationConfig(Params.recommended(model), max_tokens=2)).sampler == "cpu"


@needs_graph
def test_auto_is_the_graph_on_a_gpu(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(model), "on_device", True)
    settings: dict[str, Any] = {"max_tokens": 2}
    assert generate(model, PROMPT, GenerationConfig(Params.recommended(model), **settings)).sampler == "graph"
    assert (
        generate(
            model, PROMPT, GenerationConfig(Params.recommended(model), **settings), on_explanation=lambda _: None
        ).sampler
        == "cpu"
    )
    monkeypatch.setattr("lzsampler.llama.graph._NEEDED", ("no_such_function",))
    assert generate(model, PROMPT, GenerationConfig(Params.recommended(model), **settings)).sampler == "cpu"


def test_which_layers_must_be_on_the_gpu(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    params = model.llm.model_params
    monkeypatch.setattr(llama_cpp, "llama_supports_gpu_offload", lambda: True)
    for n, expected in ((4, False), (5, True), (0x7FFFFFFF, True), (-1, True), (0, False)):
        monkeypatch.setattr(params, "n_gpu_layers", n)
        assert the_graph.on_device(model.llm, 4) is expected
    monkeypatch.setattr(llama_cpp, "llama_supports_gpu_offload", lambda: False)
    assert not the_graph.on_device(model.llm, 4)


def test_a_llama_that_is_too_old(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lzsampler.llama.graph._NEEDED", ("llama_set_sampler_of_2027",))
    with pytest.raises(LzsError, match=r"^the graph sampler needs llama-cpp-python 0\.3\.35 or newer, not [\d.]+: "):
        generate(model, PROMPT, GenerationConfig(Params.recommended(model), sampler="graph"))
    with pytest.raises(LzsError, match="needs llama-cpp-python"):
        model.reserve_outputs(3)


@needs_graph
def test_explanations_need_logits(model: Model) -> None:
    with pytest.raises(ValueError, match="explanations need"):
        generate(
            model, PROMPT, GenerationConfig(Params.recommended(model), sampler="graph"), on_explanation=lambda _: None
        )


@needs_graph
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_allowed(model: Model, temperature: float) -> None:
    nothing = dict.fromkeys(range(model.n_vocab), float("-inf"))
    before = raw_logits(model)
    for sampler in ("cpu", "graph"):
        params = Params(temperature=temperature, logit_bias=nothing)
        with pytest.raises(LzsError, match="no token is allowed"):
            generate(model, PROMPT, GenerationConfig(params, sampler=sampler))
    assert raw_logits(model) == before


@needs_graph
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_numbers(tmp_path: Path, temperature: float) -> None:
    """A model in which one weight of token 5 is NaN, and so is its logit."""
    file = tmp_path / "nan.gguf"
    data = bytearray(default_model().read_bytes())
    tensors = {tensor.name: tensor for tensor in gguf.read(default_model()).tensors}
    weights = tensors.get("output.weight", tensors["token_embd.weight"])
    assert weights.type == "Q8_0"
    assert weights.bytes is not None
    struct.pack_into(
        "<e", data, weights.offset + 5 * weights.bytes // weights.shape[1], math.nan
    )  # the scale of a block
    file.write_bytes(data)
    with Model(file, n_threads=1, n_ctx=256) as broken:
        for sampler in ("cpu", "graph"):
            for draft in (None, Draft(lookup=1, n_max=3)):
                with pytest.raises(LzsError, match=r"the model failed after 0 tokens: .*nan"):
                    generate(
                        broken, PROMPT, GenerationConfig(Params(temperature=temperature), sampler=sampler, draft=draft)
                    )


# -- transcripts and the command line --


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("lzs")), "generate", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=120
    )


@needs_graph
def test_the_command(tmp_path: Path) -> None:
    texts = []
    for sampler in ("cpu", "graph"):
        file = tmp_path / f"{sampler}.jsonl"
        done = run(PROMPT, "-n", "12", "--sampler", sampler, "--save", str(file))
        assert done.returncode == 0, done.stderr
        transcript = json.loads(file.read_text(encoding="utf-8"))
        assert transcript["settings"]["sampler"] == sampler
        assert ("and in the graph" in done.stderr) == (sampler == "graph")
        texts.append(transcript["tokens"])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--sampler", "gpu"], "'gpu' is not one of"),
        (["--sampler", "graph", "--explain"], "--explain needs the model's logits"),
        (["--sampler", "graph", "--prompts", "x.jsonl", "--json"], "--sampler graph is for one text at a time"),
    ],
)
def test_bad_flags(more: list[str], complaint: str) -> None:
    done = run("hello", *more) if "--prompts" not in more else run(*more)
    assert done.returncode == 2
    assert complaint in done.stderr
