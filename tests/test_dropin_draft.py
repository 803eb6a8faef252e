"""`attach(llm, draft=...)`: an application decodes with a draft, and every text is the one without it."""

import copy
import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import LzsError, Params
from lzsampler.models import default_draft, default_model

llama_cpp = pytest.importorskip("llama_cpp")

from applications import CHAT, LOOPING, PROMPT, new, streamed, text_of  # noqa: E402 (needs llama_cpp)
from lzsampler.decoding.draft import Draft, Speculated  # noqa: E402
from lzsampler.dropin import LZLlama, attach  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402

COPY = "The king said: bring me seven apples and a jug of milk. The queen said: bring me seven"
DETECTION = {"max_pattern_size": 64, "min_pattern_size": 4, "min_count": 3}


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    model = new(flash_attn=True)
    yield model
    model.close()


@pytest.fixture
def llm(opened: Any) -> Iterator[Any]:
    opened.reset()
    opened.set_seed(llama_cpp.LLAMA_DEFAULT_SEED)
    yield opened
    if "lz" in opened.__dict__:
        opened.lz.detach()


@pytest.fixture(scope="module")
def small() -> Iterator[Model]:
    with Model(default_draft(), n_ctx=512, n_threads=1, flash_attn=True) as model:
        yield model


def figures(llm: Any) -> Speculated:
    assert llm.lz.stats.speculated is not None
    return llm.lz.stats.speculated  # type: ignore[no-any-return]


def cached(llm: Any) -> int:
    """How many tokens llama.cpp has."""
    return int(llama_cpp.llama_memory_seq_pos_max(llama_cpp.llama_get_memory(llm.ctx), 0)) + 1


def completion(llm: Any, **settings: Any) -> str:
    return text_of(llm(COPY, max_tokens=50, stop=["Q:"], **settings))


def completion_stream(llm: Any, **settings: Any) -> str:
    return streamed(llm.create_completion(COPY, max_tokens=50, stream=True, **settings))


def chat(llm: Any, **settings: Any) -> str:
    return text_of(llm.create_chat_completion(messages=CHAT, max_tokens=50, **settings))


def chat_stream(llm: Any, **settings: Any) -> str:
    return streamed(llm.create_chat_completion(messages=CHAT, max_tokens=50, stream=True, **settings))


def tokens(llm: Any, **settings: Any) -> str:
    if "temperature" in settings:
        settings["temp"] = settings.pop("temperature")
    llm.set_seed(settings.pop("seed", 1))
    made = llm.generate(llm.tokenize(LOOPING.encode()), **settings)
    return str(llm.detokenize(list(itertools.islice(made, 50))).decode("utf-8", "replace"))


APPLICATIONS = [completion, completion_stream, chat, chat_stream, tokens]
SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 0.8, "seed": 7},
    {"temperature": 1.1, "seed": 7, "top_k": 0, "top_p": 0.9, "min_p": 0.0},
    {"temperature": 0.9, "seed": 3, "repeat_penalty": 1.2, "frequency_penalty": 0.1, "presence_penalty": 0.3},
    {"temperature": 0.7, "seed": 3, "mirostat_mode": 2},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_draft_changes_no_text(llm: Any, small: Model, settings: dict[str, Any]) -> None:
    auto = Draft(small, lookup=2)
    drafts = [Draft(small, n_max=4), Draft(lookup=2, n_max=6), Draft(small, lookup=2, p_min=0.2, n_max=3), auto]
    with attach(llm):
        without = [application(llm, **settings) for application in APPLICATIONS]
    for draft in drafts:
        with attach(llm, draft=draft) as handle:
            assert [application(llm, **settings) for application in APPLICATIONS] == without
            assert handle.stats.tokens <= figures(llm).tokens + figures(llm).plain + len(APPLICATIONS)
            assert figures(llm).accepted <= figures(llm).drafted
            assert figures(llm).accepted > 0 or draft is auto  # on a busy machine it may draft nothing
    assert type(llm) is llama_cpp.Llama
    assert cached(llm) == llm.n_tokens


def test_penalties_and_parts_of_them_are_followed(llm: Any, small: Model) -> None:
    """LZ, DRY and a prompt that counts change from token to token inside a block."""
    params = [
        {"lz_penalty": 0.3, "lz_rule": "paper", "history": "all"},
        {"dry_multiplier": 0.8, "dry_breakers": ()},
        {"lz_penalty": 0.0, "repetition_penalty": 1.3, "frequency_penalty": 0.2},
    ]
    for ours in params:
        with attach(llm, **ours):  # type: ignore[arg-type]
            without = [completion(llm, temperature=0.0), completion(llm, temperature=0.9, seed=5)]
        with attach(llm, draft=Draft(small, n_max=5), **ours):  # type: ignore[arg-type]
            assert [completion(llm, temperature=0.0), completion(llm, temperature=0.9, seed=5)] == without


def test_the_same_numbers_are_drawn(llm: Any, small: Model) -> None:
    """The copy of the chain has the random numbers that come: another seed would have the draft guess far less."""
    with Model(default_model(), n_ctx=512, n_threads=1, flash_attn=True) as twin:
        with pytest.warns(UserWarning, match="is as large as"):
            attach(llm, draft=Draft(twin, n_max=4))
        completion(llm, temperature=1.2, seed=3, top_k=0, top_p=1.0, min_p=0.0)
        assert figures(llm).acceptance == 1
        assert figures(llm).tokens_per_call > 4


def test_processors_and_criteria_see_what_stands(llm: Any, small: Model) -> None:
    """llama-cpp-python shows a processor the tokens of its own `draft_model` before they are judged."""
    seen: list[list[int]] = []

    def processor(ids: Any, scores: Any) -> Any:
        seen.append(ids.tolist())
        scores = np.copy(scores)
        scores[ids[-1]] -= 3
        return scores

    def criterion(ids: Any, logits: Any) -> bool:
        seen.append(ids.tolist())
        return len(ids) > 60

    def run() -> tuple[str, list[list[int]]]:
        seen.clear()
        llm.reset()
        made = llm(
            COPY,
            max_tokens=60,
            temperature=0.8,
            seed=4,
            logits_processor=llama_cpp.LogitsProcessorList([processor]),
            stopping_criteria=llama_cpp.StoppingCriteriaList([criterion]),
            logit_bias={5: -2.0},
        )
        return text_of(made), [*seen]

    with attach(llm):
        without = run()
    with attach(llm, draft=Draft(small, n_max=4)):
        assert run() == without
        assert figures(llm).accepted > 0
    assert len(without[1][-1]) == 61  # it is the criterion that ended the text


@pytest.mark.parametrize("fast", [False, True])
def test_a_grammar_holds(llm: Any, small: Model, fast: bool) -> None:
    grammar = 'root ::= "{" ([a-z ]+ ":" [0-9]+ ",")+ "}"'

    def run() -> list[str]:
        source = llama_cpp.LlamaGrammar.from_string(grammar, verbose=False)
        made = [
            llm(PROMPT, max_tokens=40, temperature=t, seed=4, grammar=source, fast_grammar=fast) for t in (0.0, 0.8)
        ]
        return [text_of(each) for each in made]

    with attach(llm):
        without = run()
    with attach(llm, draft=Draft(small, lookup=1, n_max=4)):
        assert run() == without
        assert figures(llm).accepted > 0
    assert all(text.startswith("{") for text in without)


@pytest.mark.parametrize("action", ["stop", "trim", "rewind", "boost"])
def test_loops_are_acted_on_as_without_a_draft(llm: Any, small: Model, action: Any) -> None:
    params = Params(repetition_detection=DETECTION)
    found = []
    for draft in (None, Draft(small, n_max=5), Draft(lookup=2, n_max=8)):
        with attach(llm, params, on_loop=action, draft=draft) as handle:
            made = llm("Still Sunday said nothing, but only", max_tokens=120, temperature=0.0, seed=7)
            found.append((text_of(made), made["choices"][0]["finish_reason"], handle.stats.actions))
    assert found[0][2]
    assert found[1] == found[2] == found[0]


def test_the_context_after_a_text_is_what_it_says(llm: Any, small: Model) -> None:
    """Also where a stream is dropped in a block, and where the next prompt is all that is there, which is not decoded
    again.
    """
    ids = llm.tokenize(COPY.encode())
    with attach(llm, Params()):
        without = list(itertools.islice(llm.generate(ids, temp=0.0), 40))
    with attach(llm, Params(), draft=Draft(small, n_max=6)):
        for n in range(1, 16):
            made = llm.generate(ids, temp=0.0)
            assert list(itertools.islice(made, n)) == without[:n]
            made.close()
            assert (llm.n_tokens, cached(llm)) == (len(ids) + n - 1,) * 2
            assert llm._input_ids.tolist() == [*ids, *without[: n - 1]]
            after = llm.generate([*ids, *without[: n - 1]], temp=0.0)
            assert list(itertools.islice(after, 5)) == without[n - 1 : n + 4]
            after.close()
            made = llm.create_completion(COPY, max_tokens=30, temperature=0.0, stream=True)
            next(made)
            made.close()
        state = llm.save_state()
        llm.reset()
        llm.load_state(state)
        assert list(itertools.islice(llm.generate(ids, temp=0.0), 40)) == without


def test_a_text_that_passes_a_batch(small: Model) -> None:
    """Here llama-cpp-python's own `draft_model` fails: its logits have no more rows than a batch."""
    model = new(flash_attn=True, n_batch=16)
    with attach(model):
        without = completion(model, temperature=0.0)
    with attach(model, draft=Draft(small, n_max=32)):
        assert completion(model, temperature=0.0) == without
        assert figures(model).accepted > 0
    assert model.scores.shape[0] == 16
    model.close()


def test_logprobs_are_those_without_a_draft(small: Model) -> None:
    model = new(flash_attn=True, logits_all=True, n_ctx=256)
    found = []
    for draft in (None, Draft(small, n_max=4)):
        model.reset()
        with attach(model, draft=draft):
            made = model(PROMPT, max_tokens=30, temperature=0.8, seed=2, logprobs=2)
            found.append((text_of(made), made["choices"][0]["logprobs"]))
    assert found[0] == found[1]
    model.close()


def test_no_block_is_longer_than_the_rest_of_the_text(llm: Any, small: Model) -> None:
    with attach(llm, draft=Draft(small, n_max=8)):
        llm(PROMPT, max_tokens=3, temperature=0.0)
        assert figures(llm).drafted <= 1
        long = llm.tokenize((PROMPT + " ").encode() * 80)[:505]
        made = llm(long, max_tokens=None, temperature=0.0)
        assert made["usage"]["completion_tokens"] <= 512 - 505


def test_a_call_has_its_own_draft(llm: Any, small: Model) -> None:
    with attach(llm, draft=Draft(small, n_max=4)) as handle:
        completion(llm, temperature=0.0, draft=None)
        assert handle.stats.speculated is None
        completion(llm, temperature=0.0)
        assert figures(llm).drafted > 0
        before = figures(llm).drafted
        handle.draft = None
        completion(llm, temperature=0.0)
        assert figures(llm).drafted == before
        completion(llm, temperature=0.0, draft=Draft(lookup=2, n_max=2))
        assert figures(llm).drafted != before


def test_a_stream_outlives_its_draft(llm: Any) -> None:
    """`detach` closes the model that was opened for it while a stream is not read to its end."""
    llm.reset()
    whole = completion(llm, temperature=0.0)
    llm.reset()
    handle = attach(llm, Params(), draft=default_draft())
    chunks = llm(COPY, max_tokens=50, stop=["Q:"], temperature=0.0, stream=True)
    begun = [next(chunks) for _ in range(3)]
    handle.detach()
    assert "".join(chunk["choices"][0]["text"] for chunk in [*begun, *chunks]) == whole
    closed = Model(default_draft(), n_ctx=64, n_threads=1)
    closed.close()
    with pytest.raises(LzsError, match=r"the model tale-1m-q8_0.gguf is closed: open it again"):
        attach(llm, draft=Draft(closed))
    assert type(llm) is llama_cpp.Llama


def test_the_file_of_a_draft(llm: Any) -> None:
    with attach(llm, Params(), draft=default_draft()) as handle:
        assert handle.draft is not None
        model = handle.draft.model
        assert model is not None
        assert (model.n_ctx, model.n_batch, model.flash_attn) == (512, 512, True)
        without = completion(llm, temperature=0.0, draft=None)
        assert completion(llm, temperature=0.0) == without
    assert model.past == []
    assert model.closed
    made = new(LZLlama, flash_attn=True, draft="tale-1m", lz_penalty=0.0)
    assert completion(made, temperature=0.0) == without
    assert figures(made).accepted > 0
    model = made.lz.draft.model
    made.close()
    assert model.closed


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("kind", [LZLlama, llama_cpp.Llama])
def test_a_model_with_a_draft_can_be_copied(kind: Any, copied: Any, small: Model) -> None:
    draft = Draft(small, n_max=3)
    if kind is LZLlama:
        model = new(kind, flash_attn=True, draft=draft)
    else:
        model = new(kind, flash_attn=True)
        attach(model, draft=draft)
    twin = copied(model)
    assert completion(twin, temperature=0.0) == completion(model, temperature=0.0)
    assert figures(twin).drafted == figures(model).drafted > 0
    assert twin.lz.draft.model is not small
    assert twin.lz.draft.n_max == 3
    twin.lz.draft.model.close()
    for each in (model, twin):
        each.close()


def test_what_cannot_draft_is_refused(llm: Any, small: Model, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(default_draft().read_bytes()[:100_000])
    refused: list[tuple[Any, type[Exception], str]] = [
        (small, TypeError, r"draft must be a Draft, got <lzsampler"),
        (Draft(small, mode="mrs"), ValueError, "mode must be gumbel with a llama_cpp.Llama, whose chain draws"),
        (Draft(small, mode="match"), ValueError, "mode must be gumbel with a llama_cpp.Llama, .*, got 'match'"),
        (Draft(small, on_proposed=print), ValueError, "on_proposed is for lzsampler.generate: leave it out"),
        ("lookup", ValueError, r"draft='lookup' is for the command line: give Draft\(lookup=3\)"),
        (tmp_path / "none.gguf", ValueError, "none.gguf"),
        (broken, LzsError, "broken.gguf is truncated"),
    ]
    for draft, error, message in refused:
        with pytest.raises(error, match=message):
            attach(llm, draft=draft)
        assert type(llm) is llama_cpp.Llama
    with attach(llm) as handle:
        with pytest.raises(TypeError, match="draft must be a Draft, got 'tale-1m'"):
            llm(PROMPT, max_tokens=2, draft="tale-1m")
        with pytest.raises(ValueError, match="mode must be gumbel"):
            handle.draft = Draft(lookup=2, mode="match")
        assert text_of(llm(PROMPT, max_tokens=3))
    with attach(llm, draft=Draft(small)):
        made = llm.generate(llm.tokenize(PROMPT.encode()))
        next(made)
        with pytest.raises(ValueError, match=r"tokens sent to generate\(\) are drafts, but this model has a draft"):
            made.send([1, 2])
    with (
        Model(default_model(), n_ctx=64, n_threads=1, flash_attn=True) as target,
        pytest.raises(ValueError, match="the draft is the target itself"),
    ):
        attach(target.llm, draft=Draft(target))
    with pytest.raises(ValueError, match="mode must be gumbel"):
        LZLlama("none.gguf", draft=Draft(lookup=2, mode="mrs"))  # before the file is looked for
    lookup = llama_cpp.llama_speculative.LlamaPromptLookupDecoding()
    own = new(flash_attn=True, n_ctx=64, draft_model=lookup)
    with pytest.raises(ValueError, match="this Llama has a draft_model already: leave out draft_model or draft"):
        attach(own, draft=Draft(lookup=2))
    own.close()
    single = new(flash_attn=True, n_batch=1, n_ctx=64)
    with pytest.raises(ValueError, match="n_batch must be at least 2 with a draft"):
        attach(single, draft=Draft(lookup=2))
    single.close()


def test_what_may_be_wrong_is_warned_of(small: Model) -> None:
    model = new(n_ctx=64)
    with pytest.warns(UserWarning, match="may differ from texts without a draft: .*; flash_attn=True prevents it"):
        attach(model, draft=Draft(lookup=2)).detach()
    model.close()
    model = llama_cpp.Llama(str(default_draft()), n_ctx=64, n_threads=1, verbose=False, flash_attn=True)
    larger = r"tale-7m-q8_0.gguf is larger than tale-1m-q8_0.gguf: by their sizes, the speed is at most 0\.\d\dx"
    with pytest.warns(UserWarning, match=larger):
        attach(model, draft=default_model()).detach()
    with pytest.warns(UserWarning, match="as large as tale-1m-q8_0.gguf: by their sizes, the speed is at most 1.00x"):
        attach(model, draft=Draft(small)).detach()
    model.close()


@pytest.mark.real
def test_a_match_changes_no_answer_of_smollm2(smollm2: Path) -> None:
    passage = (
        "Alice bought 12 apples, 7 pears and a loaf of bread on Monday; on Tuesday the shop on Mill Road was closed."
    )
    asked = [{"role": "user", "content": f"Repeat this text exactly, word for word:\n\n{passage}"}]
    model = llama_cpp.Llama(str(smollm2), n_ctx=512, n_threads=1, flash_attn=True, verbose=False)
    found = []
    for draft in (None, Draft(lookup=3, n_max=6)):
        with attach(model, draft=draft) as handle:
            for temperature in (0.0, 0.8):
                model.reset()  # or what is left of the prompt would be rounded by what was there before
                made = model.create_chat_completion(asked, max_tokens=40, temperature=temperature, seed=4)
                found.append(text_of(made))
    assert found[:2] == found[2:]
    assert handle.stats.speculated is not None
    assert handle.stats.speculated.accepted > 5
    model.close()
