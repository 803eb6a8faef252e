"""Speculative decoding over two contexts of llama.cpp: the embedded target and its draft.

Flash attention makes the logits of these models the same bits for every number of tokens decoded together; without it a
text can part from that without a draft where a token was almost a tie (docs/speculative.md).
"""

import math
import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asked import asked
from lzsampler import Grammar, LzsError, Params, RepetitionDetection, Sampler, sequence_seed
from lzsampler.models import default_draft, default_model

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.draft import Draft, Speculated  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402 (needs llama_cpp)
from lzsampler.decoding.generation import Generation  # noqa: E402 (needs llama_cpp)
from lzsampler.decoding.writing import Text  # noqa: E402 (needs llama_cpp)
from lzsampler.llama.model import Model  # noqa: E402

PROMPT = "Once upon a time there was a king"
WARM = {"temperature": 0.8, "top_p": 0.95, "seed": 7}


def opened(path: Path, **settings: Any) -> Model:
    return Model(path, **{"n_threads": 1, "flash_attn": True, **settings})


@pytest.fixture(scope="module")
def target() -> Iterator[Model]:
    with opened(default_model()) as model:
        yield model


@pytest.fixture(scope="module")
def small() -> Iterator[Model]:
    with opened(default_draft()) as model:
        yield model


@pytest.fixture(scope="module")
def twin() -> Iterator[Model]:
    """The target as a draft: everything that it proposes stands."""
    with opened(default_model()) as model:
        yield model


def written(model: Model, params: Params, n: int = 60, **settings: Any) -> Generation:
    config, hooks = asked(params, max_tokens=n, **settings)
    return generate(model, PROMPT, config, **hooks)


def last_position(model: Model) -> int:
    return int(llama_cpp.llama_memory_seq_pos_max(llama_cpp.llama_get_memory(model.llm.ctx), 0))


class Pieces:
    """Takes a text as it comes, and ends it after some pieces."""

    def __init__(self, most: int) -> None:
        self.texts: list[str] = []
        self._most = most

    def __call__(self, text: str) -> bool:
        self.texts.append(text)
        return len(self.texts) == self._most


def figures(generation: Generation) -> Speculated:
    assert generation.speculated is not None
    return generation.speculated


# -- the draft changes no text --


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, WARM], ids=["greedy", "warm"])
def test_a_draft_changes_no_text(target: Model, small: Model, settings: dict[str, Any]) -> None:
    params = Params.recommended(target, **settings)
    alone = written(target, params)
    assert alone.speculated is None
    for k in range(1, 9):
        for mode in ("gumbel", "match"):
            together = written(target, params, draft=Draft(small, n_max=k, mode=mode))
            assert together.tokens == alone.tokens
            assert together.text == alone.text
            assert figures(together).drafted > 0


def test_a_long_text(target: Model, small: Model) -> None:
    """With the default penalty, top-p, and an eye on loops."""
    params = Params.recommended(target, **WARM)
    alone = written(target, params, 500, on_loop="stop")
    assert len(alone.tokens) > 100
    assert written(target, params, 500, on_loop="stop", draft=Draft(small, n_max=4)).tokens == alone.tokens


def test_threads_and_batches_change_nothing(target: Model, small: Model) -> None:
    params = Params.recommended(target, **WARM)
    alone = written(target, params, 40)
    with opened(default_model(), n_threads=2, n_batch=3) as narrow:
        together = written(narrow, params, 40, draft=Draft(small, n_max=4))
    assert together.tokens == alone.tokens
    assert figures(together).drafted <= 2 * figures(together).blocks  # of a batch of 3 tokens


def test_what_the_target_would_say_is_accepted(target: Model, twin: Model, small: Model) -> None:
    params = Params.recommended(target, **WARM)
    for mode in ("gumbel", "mrs"):
        same = figures(written(target, params, 61, draft=Draft(twin, n_max=5, mode=mode)))
        assert (same.acceptance, same.drafted, same.blocks, same.plain) == (1, 50, 10, 0)
        assert str(same) == "accepted 100 %, 6.0 tokens a call"
        other = figures(written(target, params, 61, draft=Draft(small, n_max=5, mode=mode)))
        assert 0.02 < other.acceptance < 0.9


def test_rejection_sampling_keeps_the_distribution(target: Model, small: Model) -> None:
    """Chi-square of the first two tokens over both contexts, against the products of the target's probabilities."""
    prompt = np.array(target.tokenize(PROMPT), np.int32)
    params = Params(temperature=1.2, top_k=3, presence_penalty=1.0)
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(2):
        longer: dict[tuple[int, ...], float] = {}
        for text, probability in law.items():
            target.keep(0)
            target.decode([*prompt, *text])
            sampler = Sampler(target.n_vocab, params)
            for token in text:
                sampler.accept(token)
            ids, shares = sampler.distribution(target.logits())
            longer |= {(*text, t): probability * p for t, p in zip(ids.tolist(), shares.tolist(), strict=True)}
        law = longer
    n = 400
    counts = Counter[tuple[int, ...]]()
    for i in range(n):
        seeded = Params(temperature=1.2, top_k=3, presence_penalty=1.0, seed=sequence_seed(1, i))
        made = generate(
            target,
            prompt,
            GenerationConfig(seeded, max_tokens=3, draft=Draft(small, n_max=2, mode="mrs")),
            reuse_context=True,
        )
        counts[made.tokens[:2]] += 1
    assert set(counts) <= set(law)
    chi2 = sum((counts[text] - n * p) ** 2 / (n * p) for text, p in law.items())
    assert (chi2 - 8) / math.sqrt(16) < 4


# -- the two contexts --


def test_no_token_is_decoded_twice(target: Model, small: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[tuple[int, tuple[int, ...], int]] = []
    original = Model._decode

    def spy(self: Model, tokens: list[int], wanted: Any = None) -> None:
        past = tuple(self.past)
        decoded.extend((id(self), (*past, *tokens[:i]), token) for i, token in enumerate(tokens))
        original(self, tokens, wanted)

    monkeypatch.setattr(Model, "_decode", spy)
    made = written(target, Params.recommended(target, **WARM), 80, draft=Draft(small, n_max=4))
    assert figures(made).acceptance < 1
    assert len(decoded) == len(set(decoded))
    for model in (target, small):
        assert last_position(model) == len(model.past) - 1
        so_far = [*target.tokenize(PROMPT), *made.tokens]
        assert model.past == so_far[: len(model.past)]
    assert len(target.past) == made.prompt_tokens + 79  # the last token is not decoded


def test_the_end_of_the_contexts(target: Model, small: Model) -> None:
    params = Params.recommended(target, **WARM)
    with opened(default_model(), n_ctx=40) as short, opened(default_draft(), n_ctx=30) as shorter:
        alone = written(short, params, -1)
        assert alone.finish_reason == "context"
        for draft in (small, shorter):
            together = written(short, params, -1, draft=Draft(draft, n_max=6))
            assert (together.tokens, together.finish_reason) == (alone.tokens, "context")
    with opened(default_draft(), n_ctx=4) as tiny:  # not even the prompt
        together = written(target, params, 20, draft=Draft(tiny, n_max=3))
    assert figures(together).drafted == 0
    assert str(figures(together)) == "nothing was drafted"


def test_a_context_that_is_used_again(target: Model, small: Model) -> None:
    params, draft = Params.recommended(target, **WARM), Draft(small, n_max=4)
    first = written(target, params, 30, draft=draft)
    again = written(target, params, 30, draft=draft, reuse_context=True)
    assert again.tokens == first.tokens


# -- every way to end --


def test_the_text_ends_as_without_a_draft(target: Model, twin: Model, small: Model) -> None:
    params = Params.recommended(target, **WARM)
    word = written(target, params, 40).text.split()[12]
    question = [{"role": "user", "content": "What is 12 + 30?"}]
    for draft in (Draft(twin, n_max=7), Draft(small, n_max=7)):
        assert (
            written(target, params, 40, draft=draft, stop=[word]).text == written(target, params, 40, stop=[word]).text
        )
        pieces = Pieces(5)
        made = written(target, params, 40, draft=draft, on_text=pieces)
        assert made.finish_reason == "interrupted"
        assert "".join(pieces.texts) == made.text
        alone = generate(target, question, GenerationConfig(Params.recommended(target, temperature=0), max_tokens=200))
        together = generate(
            target, question, GenerationConfig(Params.recommended(target, temperature=0), max_tokens=200, draft=draft)
        )
        assert together.finish_reason == alone.finish_reason == "stop"
        assert together.tokens == alone.tokens
        for n in (0, 1, 2, 3):
            assert written(target, params, n, draft=draft).tokens == written(target, params, n).tokens


@pytest.mark.parametrize("action", ["stop", "trim", "rewind", "boost"])
def test_loops_are_acted_on_as_without_a_draft(target: Model, small: Model, action: Any) -> None:
    eager = RepetitionDetection(max_pattern_size=64, min_pattern_size=3, min_count=4)
    params = Params(temperature=0.0, repetition_detection=eager)
    alone = generate(target, "The", GenerationConfig(params, max_tokens=150, on_loop=action))
    together = generate(
        target, "The", GenerationConfig(params, max_tokens=150, draft=Draft(small, n_max=5), on_loop=action)
    )
    assert figures(together).blocks
    assert alone.actions
    assert together.actions == alone.actions
    assert together.tokens == alone.tokens


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_grammar_follows_the_drafts(target: Model, small: Model, temperature: float) -> None:
    """Its place in the pattern advances with each drafted token, and goes back with those that fall."""
    pattern = r"[A-Z][a-z]+( [a-z]+,?){4,30}\."
    params = Params.recommended(target, temperature=temperature, seed=5)
    alone = written(target, params, grammar=Grammar.regex(pattern, target.token_bytes))
    assert re.fullmatch(pattern, alone.text)
    for most in (1, 4, 8):
        grammar = Grammar.regex(pattern, target.token_bytes)
        drafted = written(target, params, grammar=grammar, draft=Draft(small, n_max=most))
        assert drafted.tokens == alone.tokens
        assert figures(drafted).accepted > 0


def test_parts_and_explanations_decode_token_by_token(target: Model, small: Model) -> None:
    params = Params.recommended(target, **WARM)
    draft = Draft(small, n_max=3)
    for settings in ({"penalty_scope": ["thinking"]}, {"on_explanation": lambda step: None}):
        alone, together = (written(target, params, 12, **settings, **more) for more in ({}, {"draft": draft}))
        assert together.tokens == alone.tokens
        assert figures(together).blocks == 0


# -- drafts without a model --

COPY = "The king said: bring me seven apples, two loaves of bread and a jug of milk. The queen said: bring me seven"


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, WARM], ids=["greedy", "warm"])
def test_a_match_changes_no_text(target: Model, small: Model, settings: dict[str, Any]) -> None:
    params = Params.recommended(target, **settings)
    alone = generate(target, COPY, GenerationConfig(params, max_tokens=60))
    for mode in ("gumbel", "match"):
        for draft in (
            Draft(lookup=1, n_max=1, mode=mode),
            Draft(lookup=1, n_max=8, n_min=3, mode=mode),
            Draft(small, lookup=1, n_max=4, p_min=0.6, mode=mode),
            Draft(lookup=1, mode=mode),
        ):
            together = generate(target, COPY, GenerationConfig(params, max_tokens=60, draft=draft))
            assert together.tokens == alone.tokens
            assert figures(together).drafted > 0


def test_a_text_that_repeats_itself_is_found(target: Model) -> None:
    """Greedy text that loops, cut and taken up again: the index follows, and all but the last of a block stand."""
    params = Params(temperature=0.0)
    alone = generate(target, "The", GenerationConfig(params, max_tokens=300))
    together = generate(target, "The", GenerationConfig(params, max_tokens=300, draft=Draft(lookup=3, n_max=6)))
    assert together.tokens == alone.tokens
    assert figures(together).acceptance > 0.5
    eager = Params(temperature=0.0, repetition_detection=RepetitionDetection(64, 3, 4))
    alone = generate(target, "The", GenerationConfig(eager, max_tokens=150, on_loop="rewind"))
    together = generate(
        target, "The", GenerationConfig(eager, max_tokens=150, draft=Draft(lookup=3, n_max=6), on_loop="rewind")
    )
    assert alone.actions
    assert (together.tokens, together.actions) == (alone.tokens, alone.actions)


def test_the_distribution_of_what_was_looked_up(target: Model) -> None:
    """In mode mrs a match is a distribution of one token: it stands with its probability."""
    words = target.tokenize("Once upon a time")
    target.keep(0)
    target.decode(words)
    # What the text can go on with stands before, so that it is found, and something after it.
    few = np.argsort(-target.logits())[:2].tolist()
    params: dict[str, Any] = {"logit_bias": dict.fromkeys(few, 30.0)}
    prompt = np.array([*few, *words], np.int32)

    def shares(text: list[int]) -> list[float]:
        target.keep(0)
        target.decode([*prompt, *text])
        ids, p = Sampler(target.n_vocab, Params(**params)).distribution(target.logits())
        return [float(p[ids == token].sum()) for token in few]

    first = dict(zip(few, shares([]), strict=True))
    law = {(a, b): first[a] * p for a in few for b, p in zip(few, shares([a]), strict=True)}
    assert sum(law.values()) == pytest.approx(1)
    n, counts, drafted = 300, Counter[tuple[int, ...]](), 0
    for i in range(n):
        seeded = Params(**params, seed=sequence_seed(2, i))
        draft = Draft(lookup=1, n_max=2, mode="mrs")
        made = generate(target, prompt, GenerationConfig(seeded, max_tokens=3, draft=draft), reuse_context=True)
        counts[made.tokens[:2]] += 1
        drafted += figures(made).drafted
    assert drafted > 100
    assert set(counts) <= set(law)
    chi2 = sum((counts[text] - n * p) ** 2 / (n * p) for text, p in law.items())
    assert (chi2 - 3) / math.sqrt(6) < 4


def test_a_match_stands_in_where_the_draft_model_is_not_sure(target: Model, small: Model) -> None:
    params = Params.recommended(target, temperature=0.0)
    sure = Draft(small, n_max=4, p_min=0.9)
    both = Draft(small, n_max=4, p_min=0.9, lookup=2)
    alone, together = (
        figures(generate(target, COPY, GenerationConfig(params, max_tokens=60, draft=draft))) for draft in (sure, both)
    )
    assert together.blocks > alone.blocks
    with opened(default_draft(), n_ctx=8) as tiny:  # which never has room
        made = generate(target, COPY, GenerationConfig(params, max_tokens=60, draft=Draft(tiny, n_max=4, lookup=2)))
    assert figures(made).drafted > 0


def test_a_grammar_ends_a_block_that_was_looked_up(target: Model) -> None:
    params = Params.recommended(target, **WARM)
    pattern = r"( (bring|me|seven|two|apples|loaves|of|bread)[,.]?){5,20}"
    alone = generate(target, COPY, GenerationConfig(params, grammar=Grammar.regex(pattern, target.token_bytes)))
    for most in (1, 4, 8):
        grammar = Grammar.regex(pattern, target.token_bytes)
        made = generate(target, COPY, GenerationConfig(params, grammar=grammar, draft=Draft(lookup=1, n_max=most)))
        assert made.tokens == alone.tokens
        assert figures(made).drafted > 0


# -- the length of blocks by itself --


class Clock:
    """Seconds that somebody made up: how long the next thing takes depends on nothing but this."""

    def __init__(self, what: str) -> None:
        self.now, self.calls, self.what = 0.0, 0, what

    def __call__(self) -> float:
        self.calls += 1
        self.now += {
            "stands still": 0.0,
            "goes back": -1.0,
            "drafts cost nothing": 1.0 / self.calls,
            "drafts cost all": float(self.calls),
            "any": (self.calls * 2654435761 % 1000) / 7,
        }[self.what]
        return self.now


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, WARM], ids=["greedy", "warm"])
def test_no_clock_changes_the_text(target: Model, small: Model, settings: dict[str, Any]) -> None:
    params = Params.recommended(target, **settings)
    alone = generate(target, COPY, GenerationConfig(params, max_tokens=120))
    calls = set()
    for what in ("stands still", "goes back", "drafts cost nothing", "drafts cost all", "any"):
        for sources in ({"model": small}, {"lookup": 2}, {"model": small, "lookup": 2, "p_min": 0.3}):
            made = generate(
                target, COPY, GenerationConfig(params, max_tokens=120, draft=Draft(**sources, clock=Clock(what)))
            )
            assert made.tokens == alone.tokens
            calls.add((figures(made).blocks, figures(made).drafted))
    assert len(calls) > 4  # the choices were not the same


def test_auto_is_a_number_in_mode_mrs(target: Model, small: Model) -> None:
    """There the text of a seed depends on the blocks, which no clock may decide."""
    params = Params.recommended(target, **WARM)
    three = written(target, params, draft=Draft(small, n_max=3, mode="mrs"))
    for what in ("goes back", "any"):
        auto = written(target, params, draft=Draft(small, mode="mrs", clock=Clock(what)))
        assert auto.tokens == three.tokens
        assert figures(auto).blocks == figures(three).blocks


def test_the_last_line_says_how_fast_it_was() -> None:
    made = Speculated(drafted=100, accepted=71, blocks=30, tokens=101, plain=10, speed=1.384)
    assert str(made) == "accepted 71 %, 2.8 tokens a call, 1.38x"
    made.speed, made.off = 0.934, True
    assert str(made) == "off, would be 0.93x"
    made.speed, made.off = None, False
    assert str(made) == "accepted 71 %, 2.8 tokens a call"


class Counted:
    """A clock on which a call takes as long as the model's decodes say: 1 s for the target, and more for each token."""

    def __init__(self, target: Model, each: float, draft_each: float = 0.01) -> None:
        self.target, self.each, self.draft_each, self.seconds = target, each, draft_each, 0.0

    def decoded(self, model: Model, n: int) -> None:
        self.seconds += 1 + self.each * (n - 1) if model is self.target else self.draft_each * n

    def __call__(self) -> float:
        return self.seconds

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        decode, step = Model._decode, Text.step

        def spy(model: Model, tokens: list[int], wanted: Any = None) -> None:
            self.decoded(model, len(tokens))
            decode(model, tokens, wanted)

        def stepped(text: Text, token: int) -> tuple[int, bool]:
            self.decoded(text.model, 1)
            return step(text, token)

        monkeypatch.setattr(Model, "_decode", spy)
        monkeypatch.setattr(Text, "step", stepped)


@pytest.mark.parametrize(("each", "off"), [(0.05, False), (5.0, True)])
def test_what_does_not_pay_is_turned_off(
    target: Model, small: Model, monkeypatch: pytest.MonkeyPatch, each: float, off: bool
) -> None:
    clock = Counted(target, each)
    clock.watch(monkeypatch)
    made = written(target, Params.recommended(target, temperature=0.0), 200, draft=Draft(small, clock=clock))
    assert figures(made).off is off
    speed = figures(made).speed
    assert speed is not None
    assert (speed < 1) is off
    assert (figures(made).plain > 150) is off


def test_the_prompt_does_not_make_a_draft_slow(target: Model, twin: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft model decodes it before the first block, and not again."""
    clock = Counted(target, 0.05, draft_each=0.1)
    clock.watch(monkeypatch)
    made = generate(
        target,
        COPY * 8,
        GenerationConfig(Params.recommended(target, temperature=0.0), max_tokens=30, draft=Draft(twin, clock=clock)),
    )
    assert made.prompt_tokens > 200
    assert figures(made).blocks > 4
    assert figures(made).plain < 6


# -- drafting less --


def test_drafts_that_are_not_sure_are_short(target: Model, small: Model) -> None:
    params = Params.recommended(target, **WARM)
    alone = written(target, params)
    every = figures(written(target, params, draft=Draft(small, n_max=6)))
    sure = written(target, params, draft=Draft(small, n_max=6, p_min=0.5))
    long = written(target, params, draft=Draft(small, n_max=6, n_min=3, p_min=0.3))
    assert sure.tokens == long.tokens == alone.tokens
    assert figures(sure).acceptance > every.acceptance
    assert figures(long).drafted >= 3 * figures(long).blocks
    off = figures(written(target, params, draft=Draft(small, n_max=0)))
    assert (off.drafted, off.plain) == (0, 59)


# -- what is refused --


def test_settings_are_checked(small: Model) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"n_max": 33}, "n_max must be from 0 to 32, got 33"),
        ({"n_max": 2, "n_min": 3}, "n_min must be from 0 to 2, which is n_max, got 3"),
        ({"p_min": 1.5}, "p_min must be from 0 to 1, got 1.5"),
        ({"mode": "eagle"}, "mode must be one of gumbel, mrs, match, got 'eagle'"),
        ({"mode": "mrs", "n_min": 1}, "n_min must be 0 in mode mrs"),
        ({"n_max": "most"}, "n_max must be auto or from 0 to 32, got 'most'"),
        ({"n_min": 17}, "n_min must be from 0 to 16, which is the longest block of n_max auto, got 17"),
        ({"lookup": -1}, "lookup must be from 0 to 65535, got -1"),
        ({"model": None}, r"a draft needs a source of tokens: give Draft\(Model\(path\)\) or Draft\(lookup=3\)"),
    ]
    for settings, message in refused:
        with pytest.raises(ValueError, match=message):
            Draft(**{"model": small, **settings})
    with pytest.raises(TypeError, match=r"a draft is a Model, got 'tale-1m'"):
        Draft("tale-1m")  # type: ignore[arg-type]


def test_a_draft_that_does_not_fit_is_refused(
    target: Model, small: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = Params.recommended(target)
    with pytest.raises(TypeError, match="draft must be a Draft, got <lzsampler"):
        written(target, params, draft=small)
    with (
        opened(default_model(), n_batch=1) as single,
        pytest.raises(ValueError, match="n_batch must be at least 2 with"),
    ):
        written(single, params, draft=Draft(small))
    with (
        opened(default_model(), n_ctx=16) as short,
        pytest.raises(ValueError, match="n_max must be at most 14 in a context of 16, got 15"),
    ):
        written(short, params, draft=Draft(small, n_max=15))
    with pytest.raises(ValueError, match="the draft is the target itself: open the file again"):
        written(target, params, draft=Draft(target))
    texts = small.header.vocabulary
    at = next(i for i, text in enumerate(texts) if i > 300 and len(text) == 5 and text.isascii())

    def spelled(text: str) -> bytes:
        return struct.pack("<Q", len(text)) + text.encode()

    data = default_draft().read_bytes()
    other = tmp_path / "other.gguf"
    other.write_bytes(data.replace(spelled(texts[at]), spelled("qqqqq"), 1))
    with opened(other) as model, pytest.raises(LzsError) as refused:
        written(target, params, draft=Draft(model))
    assert str(refused.value) == (
        f"other.gguf cannot draft for {default_model().name}: "
        f"token {at} is 'qqqqq' in one vocabulary and {texts[at]!r} in the other"
    )
    key = b"tokenizer.ggml.add_bos_token"
    if key in data:
        place = data.index(key) + len(key) + 4
        other.write_bytes(data[:place] + bytes([1 - data[place]]) + data[place + 1 :])
        with opened(other) as model, pytest.raises(LzsError, match="their tokenizers differ in add_bos_token"):
            written(target, params, draft=Draft(model))
        other.write_bytes(data.replace(key, b"tokenizer.ggml.add_bos_other"))  # what a file leaves out is no difference
        with opened(other) as model:
            assert written(target, params, draft=Draft(model)).speculated is not None
    monkeypatch.setattr(llama_cpp, "llama_model_is_recurrent", lambda model: model is small.llm.model)
    with pytest.raises(
        LzsError, match=r"tale-1m-q8_0.gguf is a recurrent model \(llama\), which cannot take tokens back"
    ):
        written(target, params, draft=Draft(small))


def test_a_draft_that_breaks(target: Model, small: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, and the target's text so far is not lost to its sampler."""
    from lzsampler._ffi import ffi

    nan = ffi.new("float[]", [math.nan] * small.n_vocab)
    original = Model.logits_pointer
    monkeypatch.setattr(Model, "logits_pointer", lambda self: nan if self is small else original(self))
    with pytest.raises(LzsError, match=r"the model failed after 1 token: the draft's logits\[0\] is nan"):
        written(target, Params.recommended(target), draft=Draft(small, n_max=2))
