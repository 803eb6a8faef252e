"""`generate_many` with a draft: every text is that of `generate` without one, whatever is decoded with it."""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler import LzsError, Params  # noqa: E402 (needs llama_cpp)
from lzsampler._check import row_of  # noqa: E402
from lzsampler.decoding import many  # noqa: E402
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.draft import Draft  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.decoding.generation import Generation  # noqa: E402
from lzsampler.decoding.many import Request, generate_many  # noqa: E402
from lzsampler.decoding.policy import LoopPolicy  # noqa: E402
from lzsampler.decoding.together import Together  # noqa: E402
from lzsampler.llama.decoder import Decoder  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402
from lzsampler.models import default_draft, default_model, default_prompts  # noqa: E402
from writings import texts_by_id  # noqa: E402

COPY = "The king said: bring me seven apples and a jug of milk. The queen said: bring me seven"
PROMPTS = [COPY, *(json.loads(line)["prompt"] for line in default_prompts().read_text().splitlines()[:5])]
DETECTION = {"max_pattern_size": 64, "min_pattern_size": 4, "min_count": 3}
SETTINGS = [
    Params(temperature=0.0),
    Params(lz_penalty=0.3, lz_min_match=5, temperature=0.0),
    Params(lz_penalty=0.15, history="all", temperature=0.8, top_k=40, seed=3),
    Params(temperature=0.0, repetition_detection=DETECTION),
]
ON_LOOP: list[str | None] = [None, None, None, "rewind"]
REQUESTS = [
    Request(
        (i, k),
        prompt,
        GenerationConfig(
            params,
            max_tokens=(5, 60, 1, 33, 90)[(i + k) % 5],
            stop=(" the", ".") if (i + k) % 3 == 0 else (),
            on_loop=LoopPolicy(ON_LOOP[k]),
        ),
    )
    for i, prompt in enumerate(PROMPTS)
    for k, params in enumerate(SETTINGS)
]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=192, n_batch=64, n_threads=1, flash_attn=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def small() -> Iterator[Model]:
    with Model(default_draft(), n_ctx=192, n_batch=64, n_threads=1, flash_attn=True) as opened:
        yield opened


def alone(model: Model, request: Request) -> Generation:
    return generate(model, request.prompt, request.config)


@pytest.fixture(scope="module")
def expected(model: Model) -> dict[Any, Generation]:
    return {request.id: alone(model, request) for request in REQUESTS}


def figures(generation: Generation) -> tuple[Any, ...]:
    g = generation
    return g.text, g.tokens, g.finish_reason, g.stop_string, g.loop, g.prompt_tokens, g.actions


def drafts(small: Model) -> dict[str, Draft]:
    return {
        "model": Draft(small, n_max=3),
        "lookup": Draft(lookup=2, n_max=6),
        "both": Draft(small, lookup=3, n_max=5, n_min=2, p_min=0.2, mode="match"),
        "auto": Draft(small, lookup=2),
    }


def check(made: dict[Any, Generation], expected: dict[Any, Generation]) -> None:
    assert {name: figures(one) for name, one in made.items()} == {name: figures(one) for name, one in expected.items()}


@pytest.mark.parametrize("kind", ["model", "lookup", "both", "auto"])
@pytest.mark.parametrize(("n_parallel", "n_contexts"), [(1, 1), (5, 2), (24, 1)])
def test_texts_are_those_without_a_draft(
    model: Model, small: Model, expected: dict[Any, Generation], kind: str, n_parallel: int, n_contexts: int
) -> None:
    draft = drafts(small)[kind]
    given = generate_many(model, REQUESTS, n_parallel=n_parallel, n_threads=1, n_contexts=n_contexts, draft=draft)
    made = texts_by_id(given)
    check(made, expected)
    of = [generation.speculated for generation in made.values()]
    assert all(one is not None for one in of)
    if kind != "auto":
        assert sum(one.accepted for one in of if one is not None) > 20
    for one, generation in zip(of, made.values(), strict=True):
        assert one is not None
        if not generation.actions:
            assert one.tokens + one.plain >= len(generation.tokens) - 1


def test_a_full_context_is_the_same_too(model: Model, small: Model) -> None:
    """Near its end there is no room to fill sequences up; and one text is there before the others."""
    long = " ".join(PROMPTS)
    requests = [Request(i, long[5 * i :], GenerationConfig(Params(temperature=0.0))) for i in range(6)]
    for draft in (Draft(small, n_max=7), Draft(lookup=1, n_max=16)):
        given = generate_many(model, requests, n_parallel=4, n_threads=1, n_contexts=1, draft=draft)
        made = texts_by_id(given)
        check(made, {request.id: alone(model, request) for request in requests})
        assert {generation.finish_reason for generation in made.values()} == {"context"}


def test_a_draft_with_a_smaller_context_drafts_as_long_as_it_can(model: Model) -> None:
    with Model(default_draft(), n_ctx=64, n_threads=1, flash_attn=True) as short:
        requests = [
            Request(i, prompt, GenerationConfig(Params(temperature=0.0), max_tokens=80))
            for i, prompt in enumerate(PROMPTS)
        ]
        given = generate_many(model, requests, n_threads=1, n_contexts=1, draft=Draft(short, n_max=4))
        made = texts_by_id(given)
    check(made, {request.id: alone(model, request) for request in requests})
    assert all(one.speculated is not None and one.speculated.plain > 5 for one in made.values())


class Clock:
    """Seconds that somebody made up."""

    def __init__(self, step: float) -> None:
        self.now, self.step, self.calls = 0.0, step, 0

    def __call__(self) -> float:
        self.calls += 1
        self.now += self.step * (self.calls * 2654435761 % 1000)
        return self.now


@pytest.mark.parametrize("step", [0.0, 0.001, -1.0])
def test_no_clock_changes_a_text(model: Model, small: Model, expected: dict[Any, Generation], step: float) -> None:
    draft = Draft(small, lookup=2, clock=Clock(step))
    given = generate_many(model, REQUESTS, n_parallel=9, n_threads=1, n_contexts=1, draft=draft)
    check(texts_by_id(given), expected)


def test_all_sequences_of_a_call_have_the_same_length(
    model: Model, small: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or llama.cpp would compute them one after the other, each with a pass over the weights."""
    decode, seen = many._Context._decode, list[set[int]]()

    def counted(self: Any, batch: Any, *, wanted: int) -> Any:
        numbers = [number for _, _, number in batch]
        seen.append({numbers.count(number) for number in set(numbers)})
        return decode(self, batch, wanted=wanted)

    monkeypatch.setattr(many._Context, "_decode", counted)
    requests = [
        Request(i, prompt, GenerationConfig(Params(temperature=0.0), max_tokens=40)) for i, prompt in enumerate(PROMPTS)
    ]
    list(generate_many(model, requests, n_threads=1, n_contexts=1, draft=Draft(small, lookup=2, n_max=4)))
    assert all(len(lengths) == 1 for lengths in seen)
    assert {5} in seen


def test_a_draft_decodes_no_token_twice(model: Model, small: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """But what fell; also where texts move to the caches of others that have ended."""
    from lzsampler.decoding import together

    decode, n = together._Slots._decode, list[int]()

    def counted(self: Any, batch: Any, *, wanted: int) -> Any:
        n.append(len(batch))
        return decode(self, batch, wanted=wanted)

    monkeypatch.setattr(together._Slots, "_decode", counted)
    requests = [
        Request(i, text * 3, GenerationConfig(Params(), max_tokens=5 + 10 * i)) for i, text in enumerate(PROMPTS)
    ]
    given = generate_many(model, requests, n_threads=1, n_contexts=1, draft=Draft(small, n_max=3))
    made = texts_by_id(given).values()
    fell = sum(one.speculated.drafted - one.speculated.accepted for one in made if one.speculated is not None)
    assert sum(n) <= fell + sum(one.prompt_tokens + len(one.tokens) for one in made)


def test_texts_that_are_the_same_share_their_decodes(
    model: Model, expected: dict[Any, Generation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is drafted for them: their settings may want different tokens."""
    places: list[Any] = []
    propose = Together.propose

    def seen(self: Together, given: Any) -> Any:
        places.extend(given)
        return propose(self, given)

    monkeypatch.setattr(Together, "propose", seen)
    requests = [replace(request, id=(i, request.id)) for i in range(3) for request in REQUESTS[:1]]
    given = generate_many(model, requests, n_threads=1, n_contexts=1, draft=Draft(lookup=2, n_max=4))
    assert list(map(figures, texts_by_id(given).values())) == [figures(expected[REQUESTS[0].id])] * 3
    assert all(place.shared is None for place in places)


def test_what_cannot_draft_is_refused(model: Model, small: Model) -> None:
    refused: list[tuple[Any, type[Exception], str]] = [
        (small, TypeError, "draft must be a Draft, got <lzsampler"),
        (Draft(small, mode="mrs"), ValueError, "mode mrs is for one text, because several texts would depend on"),
        (Draft(small, on_proposed=print), ValueError, "on_proposed is for one text: leave it out"),
        (Draft(model), ValueError, "the draft is the target itself"),
    ]
    for draft, error, message in refused:
        with pytest.raises(error, match=message):
            next(generate_many(model, REQUESTS, draft=draft))


def test_no_memory_for_the_draft_is_one_sentence(model: Model, small: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    make = llama_cpp.llama_init_from_model
    monkeypatch.setattr(llama_cpp, "llama_init_from_model", lambda m, p: make(m, p) if m is model.llm.model else None)
    with pytest.raises(LzsError, match="no memory for 4 caches of 192 tokens"):
        next(generate_many(model, REQUESTS, n_parallel=4, n_contexts=1, draft=Draft(small)))


def refuse(text: str) -> None:
    raise ValueError(f"nobody wants {text!r}")


@pytest.mark.parametrize("kind", ["model", "lookup"])
def test_a_text_that_fails_leaves_the_drafts_of_others_alone(
    model: Model, small: Model, expected: dict[Any, Generation], kind: str
) -> None:
    bad = [
        replace(r, id=str(r.id), on_text=refuse, config=replace(r.config, stop=(), max_tokens=30))
        for r in REQUESTS[::4]
    ]
    bad += [replace(r, id=f"long {r.id}", prompt="word " * 400) for r in REQUESTS[::4]]
    requests = [r for pair in zip(bad, REQUESTS, strict=False) for r in pair] + REQUESTS[len(bad) :]
    given = generate_many(model, requests, n_parallel=5, n_threads=1, n_contexts=1, draft=drafts(small)[kind])
    made = {request.id: text for request, text in given}
    for request in bad:
        error = made.pop(request.id)
        assert isinstance(error, ValueError)
        assert re.match("nobody wants|the prompt has 4", str(error))
    check({id: text for id, text in made.items() if isinstance(text, Generation)}, expected)


def test_a_draft_whose_logits_are_not_numbers_ends_the_text_that_it_was_for(
    model: Model, small: Model, expected: dict[Any, Generation], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lzsampler.decoding import together

    step, steps = together._Slots.step, itertools.count()

    def broken(self: Any, tokens: Any) -> Any:
        rows = step(self, tokens)
        if next(steps) == 9:
            row_of(rows[1], small.n_vocab)[3] = float("nan")
        return rows

    monkeypatch.setattr(together._Slots, "step", broken)
    given = generate_many(model, REQUESTS, n_parallel=5, n_threads=1, n_contexts=1, draft=Draft(small, n_max=3))
    made = {request.id: text for request, text in given}
    ((failed, error),) = [(id, text) for id, text in made.items() if isinstance(text, Exception)]
    assert re.match("the model failed after .*: the draft's logits", str(error))
    texts = {id: text for id, text in made.items() if isinstance(text, Generation)}
    check(texts, {id: text for id, text in expected.items() if id != failed})


def test_where_llama_cpp_fails_the_caches_of_the_draft_are_emptied_too(
    model: Model, small: Model, expected: dict[Any, Generation], monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = Decoder.decode
    for nth in (0, 7, 40, 41, 42, 43):  # of the model, and of the draft
        decodes = itertools.count()
        monkeypatch.setattr(Decoder, "decode", lambda d, b, n=nth, i=decodes: -3 if next(i) == n else decode(d, b))
        draft = Draft(small, n_max=3)
        given = generate_many(model, REQUESTS, n_parallel=3, n_threads=1, n_contexts=1, draft=draft)
        made = {request.id: text for request, text in given}
        texts = {id: text for id, text in made.items() if isinstance(text, Generation)}
        errors = [str(text) for text in made.values() if isinstance(text, Exception)]
        assert errors
        assert all(error.startswith("llama_decode returned -3 for ") for error in errors)
        assert texts.keys() | {id for id in made if id not in texts} == expected.keys()
        check(texts, {id: expected[id] for id in texts})
