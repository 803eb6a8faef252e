"""`generate_many`: every text is that of `generate`, however many are decoded at a time and in what order they end."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler import LzsError, Params, parallel  # noqa: E402 (needs llama_cpp)
from lzsampler.generate import Generation, generate  # noqa: E402
from lzsampler.model import Model  # noqa: E402
from lzsampler.models import default_model, default_prompts  # noqa: E402
from lzsampler.parallel import Request, generate_many  # noqa: E402

PROMPTS = [json.loads(line)["prompt"] for line in default_prompts().read_text().splitlines()[:6]]
SETTINGS = [
    Params(temperature=0.0),
    Params(lz_penalty=0.15, temperature=0.0),
    Params(lz_penalty=0.15, history="all", temperature=0.8, top_k=40, seed=3),
    Params(repetition_penalty=1.2, temperature=1.3, min_p=0.05, seed=4),
    Params(temperature=0.0, repetition_detection={"max_pattern_size": 64, "min_pattern_size": 4, "min_count": 3}),
]
REQUESTS = [
    Request((i, k), prompt, params, n_predict=(5, 60, 0, 33, 150)[(i + k) % 5], stop=(" the", "."), trim_loop=k == 4)
    if (i + k) % 3 == 0
    else Request((i, k), prompt, params, n_predict=(5, 60, 0, 33, 150)[(i + k) % 5])
    for i, prompt in enumerate(PROMPTS)
    for k, params in enumerate(SETTINGS)
]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=192, n_batch=64, n_threads=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def alone(model: Model) -> dict[Any, Generation]:
    return {
        r.id: generate(model, r.prompt, r.params, n_predict=r.n_predict, stop=r.stop, trim_loop=r.trim_loop)
        for r in REQUESTS
    }


def figures(generation: Generation) -> tuple[Any, ...]:
    g = generation
    return g.text, g.tokens, g.finish_reason, g.stop_string, g.loop, g.prompt_tokens, g.repetition


@pytest.mark.parametrize("n_parallel", [1, 2, 7, 40])
@pytest.mark.parametrize("order", [1, -1])
def test_texts_are_those_of_generate(model: Model, alone: dict[Any, Generation], n_parallel: int, order: int) -> None:
    requests = REQUESTS[::order]
    made = {r.id: g for r, g in generate_many(model, requests, n_parallel=n_parallel, n_threads=1)}
    assert list(map(figures, (made[r.id] for r in REQUESTS))) == list(map(figures, alone.values()))
    assert {g.finish_reason for g in made.values()} >= {"stop", "length", "repetition"}


def test_a_full_context_is_the_same_too(model: Model) -> None:
    long = " ".join(PROMPTS)
    requests = [Request(i, long[i:], Params(temperature=0.0)) for i in range(5)]
    made = {r.id: g for r, g in generate_many(model, requests, n_parallel=3, n_threads=1)}
    for request in requests:
        expected = generate(model, request.prompt, request.params)
        assert figures(made[request.id]) == figures(expected)
    assert {g.finish_reason for g in made.values()} == {"context"}


def test_prompts_are_decoded_once(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that share a prompt copy what a cache holds of it, all but its last token."""
    decoded = []
    decode = parallel._Batch.decode

    def counting(batch: Any, slots: list[Any]) -> Any:
        ready = decode(batch, slots)
        decoded.append(int(batch._batch.n_tokens))
        return ready

    monkeypatch.setattr(parallel._Batch, "decode", counting)
    prompt = " ".join(PROMPTS[:3])
    n = len(model.tokenize(prompt))
    requests = [Request(i, prompt, Params(temperature=0.8, seed=i), n_predict=1) for i in range(9)]
    assert len(list(generate_many(model, requests, n_parallel=4, n_threads=1))) == 9
    assert sum(decoded) == n + 8  # of the others the last token only


def test_requests_are_taken_as_there_is_room(model: Model) -> None:
    taken = []

    def endless() -> Iterator[Request]:
        for i in itertools.count():
            taken.append(i)
            yield Request(i, PROMPTS[i % 6], Params(temperature=0.0), n_predict=8)

    made = generate_many(model, endless(), n_parallel=3, n_threads=1)
    first = [next(made)[0].id for _ in range(7)]
    assert sorted(first)[:3] == [0, 1, 2]
    assert len(taken) <= 7 + 3
    made.close()  # type: ignore[attr-defined]
    assert list(generate_many(model, [], n_parallel=3)) == []


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(0, "", Params()), "the prompt is empty"),
        (Request(0, "word " * 400, Params()), "the context 192"),
        (Request(0, "a", Params(), stop=("",)), "stop must be strings"),
        (Request(0, "a", Params(), n_predict=-2), "n_predict must be"),
    ],
)
def test_a_bad_request_is_refused_and_nothing_before_it_is_lost(model: Model, request_: Request, message: str) -> None:
    good = [Request(i, PROMPTS[i], Params(temperature=0.0), n_predict=4) for i in range(3)]
    made = generate_many(model, [*good, request_], n_parallel=1, n_threads=1)
    assert [next(made)[0].id for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match=message):
        next(made)
    assert generate(model, PROMPTS[0], Params(temperature=0.0), n_predict=4).tokens


@pytest.mark.parametrize("n_parallel", [0, 257, -1, 1.5])
def test_bad_numbers(model: Model, n_parallel: Any) -> None:
    with pytest.raises(ValueError, match="n_parallel must be"):
        next(generate_many(model, REQUESTS, n_parallel=n_parallel))


def test_no_memory_is_one_sentence(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_cpp, "llama_init_from_model", lambda *_: None)
    with pytest.raises(LzsError, match="no memory for 4 contexts of 192 tokens"):
        next(generate_many(model, REQUESTS, n_parallel=4))
