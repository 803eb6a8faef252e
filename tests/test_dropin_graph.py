"""Chains of llama-cpp-python that run in llama.cpp's graph: their texts, and what they leave behind."""

from collections.abc import Iterator
from typing import Any

import pytest

from lzsampler import Grammar, LzsError, attach
from lzsampler.models import default_draft, default_model

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler.decoding.draft import Draft  # noqa: E402 (needs llama_cpp)
from lzsampler.dropin import LZLlama  # noqa: E402
from lzsampler.llama.graph import missing  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402

needs_graph = pytest.mark.skipif(missing() is not None, reason=str(missing()))
PROMPT = "Once upon a time there was a king"
LOOPS = "Still Sunday said nothing, but only"
GREEDY: dict[str, Any] = {"temperature": 0.0, "max_tokens": 60}
PENALTIES: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"lz_penalty": 0.15, "lz_rule": "paper", "history": "all"},
    "repetition": {"repetition_penalty": 1.2, "presence_penalty": 0.3},
    "DRY": {"lz_penalty": 0.0, "dry_multiplier": 0.8},
    "biases": {"logit_bias": {13: float("-inf"), 100: 2.0}},
}


@pytest.fixture(scope="module")
def llm() -> Iterator[Any]:
    opened = llama_cpp.Llama(str(default_model()), n_ctx=512, n_threads=1, flash_attn=True, verbose=False)
    yield opened
    opened.close()


def text(llm: Any, prompt: str = PROMPT, **settings: Any) -> str:
    return str(llm(prompt, **{**GREEDY, **settings})["choices"][0]["text"])


@needs_graph
@pytest.mark.parametrize("name", PENALTIES)
def test_greedy_texts_are_those_of_the_cpu(llm: Any, name: str) -> None:
    with attach(llm, **PENALTIES[name]) as lz:
        cpu, seen = text(llm, sampler="cpu"), []
        for sampler in ("graph", "graph", "cpu"):  # the last two find the prompt in the context
            assert text(llm, sampler=sampler) == cpu
            seen.append(lz.stats.sampler)
        assert seen == ["graph", "graph", "cpu"]


@needs_graph
def test_the_whole_chain_is_in_the_graph(llm: Any) -> None:
    """A token is drawn there, so that none comes from a row of logits; and drawn texts have the penalties."""
    with attach(llm, lz_penalty=0.4, lz_rule="paper", sampler="graph") as lz:
        tokens = llm.generate(llm.tokenize(PROMPT.encode()), temp=0.8, top_k=40, top_p=0.95, min_p=0.05)
        for _ in range(8):
            picked = next(tokens)
            assert llama_cpp.llama_get_sampled_token_ith(llm.ctx, -1) == picked
        tokens.close()
        assert lz.stats.sampler == "graph"
        made = text(llm, temperature=0.8, seed=5, logit_bias=None)
        assert made == text(llm, temperature=0.8, seed=5)


@needs_graph
def test_what_follows_in_the_chain_may_be_on_the_cpu(llm: Any) -> None:
    with attach(llm, lz_penalty=0.4, lz_rule="paper"):
        settings: dict[str, Any] = {"temperature": 0.8, "seed": 5, "typical_p": 0.9, "top_k": 0}
        assert text(llm, **settings, sampler="graph") == text(llm, **settings, sampler="cpu")
        own = llama_cpp.LlamaGrammar.from_string('root ::= "the " [a-z ]+ "."', verbose=False)
        assert text(llm, grammar=own, sampler="graph") == text(llm, grammar=own, sampler="cpu")


@needs_graph
def test_a_grammar_of_ours(llm: Any) -> None:
    with attach(llm) as lz:
        grammar = Grammar.regex(r"(the (king|queen) [a-z ]{5,20}\. ){2,3}", lz)
        made = text(llm, grammar=grammar, sampler="graph")
        assert made == text(llm, grammar=grammar, sampler="cpu")
        assert grammar.match(made) == "yes"


@needs_graph
@pytest.mark.parametrize("on_loop", ["stop", "rewind", "boost"])
def test_loops(llm: Any, on_loop: Any) -> None:
    with attach(llm, lz_penalty=0.0, on_loop=on_loop) as lz:
        settings: dict[str, Any] = {"max_tokens": 120, "seed": 2}
        made = [text(llm, LOOPS, **settings, sampler=sampler) for sampler in ("cpu", "graph")]
        assert lz.stats.actions
        assert on_loop == "boost" or made[0] == made[1]


@needs_graph
def test_the_context_is_as_it_was(llm: Any) -> None:
    plain = text(llm)
    with attach(llm, sampler="graph", lz_penalty=0.6, lz_rule="paper"):
        assert text(llm) != plain
        stream = llm(PROMPT, stream=True, **GREEDY)
        next(stream)
        stream.close()
        llm.reset()
        llm.eval(llm.tokenize(PROMPT.encode()))
        assert llm.sample(temp=0.0) >= 0  # a low-level call has its logits, and its penalties on the CPU
    assert text(llm) == plain
    assert text(llm) == plain


@needs_graph
def test_a_model_that_is_closed_in_a_text() -> None:
    llm = LZLlama(str(default_model()), n_ctx=256, verbose=False, sampler="graph")
    tokens = llm.generate(llm.tokenize(b"Once"), temp=0.0)
    next(tokens)
    llm.close()
    tokens.close()


# -- several outputs --


@needs_graph
@pytest.mark.parametrize("name", PENALTIES)
def test_drafts_change_no_text(name: str) -> None:
    prompt = "The king said no. The king said yes. The king said no. The king said"
    llm = LZLlama(str(default_model()), n_ctx=512, n_threads=1, flash_attn=True, verbose=False, **PENALTIES[name])
    alone = text(llm, prompt, sampler="graph")
    assert llm.context_params.n_outputs_max_per_seq == 1
    for sampler in ("cpu", "graph"):
        draft = Draft(lookup=2, n_max=4)
        assert text(llm, prompt, sampler=sampler, draft=draft) == alone
        assert llm.lz.stats.sampler == sampler
        figures = llm.lz.stats.speculated
        assert figures is not None
        assert figures.blocks > 0
    assert llm.context_params.n_outputs_max_per_seq == 5
    assert text(llm, prompt, sampler="graph") == alone
    llm.close()


@needs_graph
def test_a_draft_model_and_a_grammar() -> None:
    llm = LZLlama(str(default_model()), n_ctx=512, n_threads=1, flash_attn=True, verbose=False)
    grammar = Grammar.regex(r"(the (king|queen) (and|or) ){2,6}the end", llm.lz)
    alone = text(llm, grammar=grammar, sampler="cpu")
    with Model(default_draft(), n_ctx=512, n_threads=1, flash_attn=True) as small:
        draft = Draft(small, n_max=3, lookup=1)
        assert text(llm, grammar=grammar, sampler="graph", draft=draft) == alone
        assert llm.lz.stats.sampler == "graph"
        # what falls leaves a context that goes on rightly
        warm: dict[str, Any] = {"temperature": 0.8, "seed": 3, "max_tokens": 60, "draft": draft}
        assert len(text(llm, sampler="graph", **warm)) > 20
    llm.close()


@needs_graph
def test_penalties_of_llama_cpp_leave_the_graph_with_several_outputs() -> None:
    """Its issue 29017: then ours, which come after them, cannot be in the graph either."""
    draft = Draft(lookup=2, n_max=3)
    llm = LZLlama(str(default_model()), n_ctx=256, n_threads=1, flash_attn=True, verbose=False, draft=draft)
    with pytest.raises(LzsError, match=r"^llama\.cpp cannot run its own penalties in the graph"):
        text(llm, sampler="graph", repeat_penalty=1.1, max_tokens=4)
    made = text(llm, sampler="cpu", repeat_penalty=1.1, max_tokens=4)
    assert text(llm, sampler="graph", max_tokens=4)
    assert text(llm, sampler="cpu", repeat_penalty=1.1, max_tokens=4) == made
    llm.close()


# -- errors --


@needs_graph
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"fast_grammar": True, "grammar": "own"}, "fast_grammar"),
        ({"logit_bias": {5: 1.0}}, "a logits_processor, or a logit_bias of the call"),
    ],
)
def test_what_needs_the_logits(llm: Any, settings: dict[str, Any], reason: str) -> None:
    if settings.get("grammar") == "own":
        settings = {**settings, "grammar": llama_cpp.LlamaGrammar.from_string('root ::= "a"', verbose=False)}
    with attach(llm) as lz:
        with pytest.raises(ValueError, match=f"^sampler='graph' cannot be used with {reason}: leave one of them out"):
            text(llm, sampler="graph", **settings)
        text(llm, **{**settings, "max_tokens": 2})
        assert lz.stats.sampler == "cpu"


@needs_graph
def test_logits_of_every_token() -> None:
    llm = LZLlama(str(default_model()), n_ctx=256, logits_all=True, verbose=False)
    with pytest.raises(ValueError, match="cannot be used with logits_all=True"):
        text(llm, sampler="graph")
    llm.close()


def test_bad_values(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="sampler must be one of auto, cpu, graph, got 'gpu'"):
        attach(llm, sampler="gpu")  # type: ignore[arg-type]
    with attach(llm) as lz:
        with pytest.raises(ValueError, match="sampler must be one of"):
            lz.sampler = None  # type: ignore[assignment]
        lz.sampler = "graph"
        monkeypatch.setattr("lzsampler.llama.graph._NEEDED", ("llama_set_sampler_of_2027",))
        with pytest.raises(LzsError, match="the graph sampler needs llama-cpp-python"):
            text(llm)
        lz.sampler = "auto"
        text(llm, max_tokens=2)
        assert lz.stats.sampler == "cpu"


@needs_graph
def test_auto_on_a_gpu(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lzsampler.dropin.sampled.on_device", lambda *_: True)
    with attach(llm) as lz:
        seen = []
        settings: list[dict[str, Any]] = [{}, {"logit_bias": {5: 1.0}}]
        for more in settings:
            text(llm, max_tokens=2, **more)
            seen.append(lz.stats.sampler)
        assert seen == ["graph", "cpu"]
