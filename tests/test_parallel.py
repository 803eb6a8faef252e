"""`generate_many`: every text is that of `generate`, however many are decoded at a time and in what order they end."""

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler import Grammar, LzsError, Params, Sampler  # noqa: E402 (needs llama_cpp)
from lzsampler._check import row_of  # noqa: E402
from lzsampler.decoding import many as parallel  # noqa: E402
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.draft import Draft  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.decoding.generation import Generation  # noqa: E402
from lzsampler.decoding.many import Request, generate_many  # noqa: E402
from lzsampler.decoding.policy import LoopPolicy  # noqa: E402
from lzsampler.decoding.writing import Text  # noqa: E402
from lzsampler.llama.decoder import Decoder  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402
from lzsampler.models import default_model, default_prompts  # noqa: E402
from writings import texts_by_id  # noqa: E402

PROMPTS = [json.loads(line)["prompt"] for line in default_prompts().read_text().splitlines()[:6]]
SETTINGS = [
    Params(temperature=0.0),
    Params(lz_penalty=0.15, temperature=0.0),
    Params(lz_penalty=0.15, history="all", temperature=0.8, top_k=40, seed=3),
    Params(repetition_penalty=1.2, temperature=1.3, min_p=0.05, seed=4),
    Params(temperature=0.0, repetition_detection={"max_pattern_size": 64, "min_pattern_size": 4, "min_count": 3}),
]
ON_LOOP: list[str | None] = [None, None, None, None, "trim"]
REQUESTS = [
    Request(
        (i, k),
        prompt,
        GenerationConfig(
            params,
            max_tokens=(5, 60, 0, 33, 150)[(i + k) % 5],
            stop=(" the", ".") if (i + k) % 3 == 0 else (),
            on_loop=LoopPolicy(ON_LOOP[k] if (i + k) % 3 == 0 else None),
        ),
    )
    for i, prompt in enumerate(PROMPTS)
    for k, params in enumerate(SETTINGS)
]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=192, n_batch=64, n_threads=1) as opened:
        yield opened


@pytest.fixture(scope="module")
def alone(model: Model) -> dict[Any, Generation]:
    return {r.id: generate(model, r.prompt, r.config) for r in REQUESTS}


def figures(generation: Generation) -> tuple[Any, ...]:
    g = generation
    return g.text, g.tokens, g.finish_reason, g.stop_string, g.loop, g.prompt_tokens


@pytest.mark.parametrize(("n_parallel", "n_contexts"), [(1, 1), (2, 1), (7, 2), (40, 1), (40, None)])
@pytest.mark.parametrize("order", [1, -1])
def test_texts_are_those_of_generate(
    model: Model, alone: dict[Any, Generation], n_parallel: int, n_contexts: int | None, order: int
) -> None:
    requests = REQUESTS[::order]
    many = generate_many(model, requests, n_parallel=n_parallel, n_threads=1, n_contexts=n_contexts)
    made = texts_by_id(many)
    assert list(map(figures, (made[r.id] for r in REQUESTS))) == list(map(figures, alone.values()))
    assert {g.finish_reason for g in made.values()} >= {"stop", "length", "repetition"}


def test_texts_that_are_cut_are_those_of_generate(model: Model) -> None:
    """Cuts in texts that share a cache: some go back further than others that wait there."""
    detection = {"max_pattern_size": 32, "min_pattern_size": 2, "min_count": 2}
    plain = Params(temperature=0.0, repetition_detection=detection)
    policies = [
        LoopPolicy("rewind", max_recoveries=9),
        LoopPolicy("rewind", "both", max_recoveries=1),
        LoopPolicy("boost"),
        LoopPolicy("trim"),
        LoopPolicy("close-think"),
        LoopPolicy("off"),
    ]
    thinks = [{"role": "user", "content": "Sort the numbers: 31 7 12 5 5 5 5"}]
    prompts: list[Any] = ["Still Sunday said nothing, but only", thinks, PROMPTS[0]]
    requests = [
        Request(
            (i, k, hot),
            prompt,
            GenerationConfig(replace(plain, temperature=hot, seed=3), max_tokens=70, on_loop=policy),
        )
        for i, prompt in enumerate(prompts)
        for k, policy in enumerate(policies)
        for hot in (0.0, 0.4)
    ]
    made = texts_by_id(generate_many(model, requests, n_parallel=2, n_threads=1, n_contexts=1))
    names: set[str] = set()
    for r in requests:
        expected = generate(model, r.prompt, r.config)
        assert figures(made[r.id]) == figures(expected)
        assert made[r.id].actions == expected.actions
        names |= {action.name for action in expected.actions}
    assert names == {"stop", "trim", "rewind", "close-think", "boost"}


def test_a_full_context_is_the_same_too(model: Model) -> None:
    long = " ".join(PROMPTS)
    requests = [Request(i, long[i:], GenerationConfig(Params(temperature=0.0))) for i in range(5)]
    made = texts_by_id(generate_many(model, requests, n_parallel=3, n_threads=1))
    for request in requests:
        expected = generate(model, request.prompt, request.config)
        assert figures(made[request.id]) == figures(expected)
    assert {g.finish_reason for g in made.values()} == {"context"}


Rows = dict[Any, list[npt.NDArray[np.float32]]]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    """Fills with the logits of each text, by its prompt, its length and its settings."""
    seen: Rows = {}
    take, follow = Text.take, Text.follow

    def record(text: Text, row: npt.NDArray[np.float32]) -> None:
        assert isinstance(text.sampler, Sampler)
        key = (tuple(text.prompt), text.max_tokens, repr(text.sampler.params))
        seen.setdefault(key, []).append(row.copy())

    def recording_take(self: Text, logits: Any, room: bool) -> int | None:
        record(self, row_of(logits, self.model.n_vocab))
        return take(self, logits, room)

    def recording_follow(self: Text, token: int) -> int | None:
        taken = follow(self, token)
        record(self, self.model.logits())
        return taken

    monkeypatch.setattr(Text, "take", recording_take)
    monkeypatch.setattr(Text, "follow", recording_follow)
    return seen


@pytest.mark.parametrize("n_batch", [1, 2, 8, 64])
def test_logits_are_those_of_generate_to_the_bit(rows: Rows, n_batch: int) -> None:
    """Also where prompts begin alike, go on from each other, and end where a batch does."""
    with Model(default_model(), n_ctx=96, n_batch=n_batch, n_threads=1) as model:
        tokens = model.tokenize(" ".join(PROMPTS[:3]))
        lengths = [1, 2, 7, 8, 9, 10, 15, 16, 17, 18, 25, 33, 40]
        random.Random(n_batch).shuffle(lengths)
        prompts = [model.llm.detokenize(tokens[:n]).decode() for n in lengths + lengths[:5]]
        prompts += [prompt + " sea" for prompt in prompts] + PROMPTS
        requests = [
            Request(i, p, GenerationConfig(Params(temperature=0.9, seed=i), max_tokens=i % 4 + 2))
            for i, p in enumerate(prompts)
        ]
        for request in requests:
            generate(model, request.prompt, request.config)
        alone = dict(rows)
        for n_parallel, n_contexts in ((1, 1), (3, 1), (16, 1), (7, 2), (40, 3)):
            rows.clear()
            made = generate_many(model, requests, n_parallel=n_parallel, n_contexts=n_contexts, n_threads=1)
            assert len(list(made)) == len(requests)
            assert rows.keys() == alone.keys()
            for key in alone:
                np.testing.assert_array_equal(np.stack(rows[key]), np.stack(alone[key]))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the number of tokens of each decode."""
    numbers: list[int] = []
    decode = parallel._Context._decode

    def counting(self: Any, batch: Any, *, wanted: int) -> Any:
        numbers.append(len(batch))
        return decode(self, batch, wanted=wanted)

    monkeypatch.setattr(parallel._Context, "_decode", counting)
    return numbers


def test_prompts_are_decoded_once(model: Model, decoded: list[int]) -> None:
    """Requests with the same prompt copy it from cache to cache, and the logits after it."""
    prompt = " ".join(PROMPTS[:3])
    n = len(model.tokenize(prompt))
    requests = [Request(i, prompt, GenerationConfig(Params(temperature=0.8, seed=i), max_tokens=1)) for i in range(9)]
    assert len(list(generate_many(model, requests, n_parallel=4, n_threads=1, n_contexts=1))) == 9
    assert sum(decoded) == n


def test_a_common_beginning_is_decoded_once(model: Model, decoded: list[int]) -> None:
    start = " ".join(PROMPTS[:2])
    prompts = [start + end for end in (" The sea was calm", " A ship came in", " It rained all day")]
    tokens = [model.tokenize(prompt) for prompt in prompts]
    common = len(model.tokenize(start))
    assert all(row[:common] == tokens[0][:common] for row in tokens)
    requests = [
        Request(i, prompt, GenerationConfig(Params(temperature=0.0), max_tokens=1)) for i, prompt in enumerate(prompts)
    ]
    list(generate_many(model, requests, n_parallel=3, n_threads=1, n_contexts=1))
    assert sum(decoded) == sum(map(len, tokens)) - 2 * common


@pytest.mark.parametrize(
    ("first", "second", "batches"),
    [
        (20, 24, [8, 8, 4, 4]),
        (17, 20, [8, 8, 1, 4]),  # the last of 17 was computed alone, in 20 it is not
        (20, 18, [8, 8, 4, 2]),  # the last of 18 would be alone after 17 from the cache
        (20, 17, [8, 8, 4, 1]),  # here it is alone in any case
    ],
)
def test_no_token_is_computed_alone_that_generate_computes_with_others(
    decoded: list[int], first: int, second: int, batches: list[int]
) -> None:
    with Model(default_model(), n_ctx=96, n_batch=8, n_threads=1) as model:
        tokens = model.tokenize(" ".join(PROMPTS))
        prompts = [model.llm.detokenize(tokens[:n]).decode() for n in (first, second)]
        assert [len(model.tokenize(prompt)) for prompt in prompts] == [first, second]
        requests = [
            Request(i, prompt, GenerationConfig(Params(temperature=0.0), max_tokens=1))
            for i, prompt in enumerate(prompts)
        ]
        list(generate_many(model, requests, n_parallel=2, n_contexts=1, n_threads=1))
    assert decoded == batches


@pytest.mark.parametrize(
    ("first", "second", "batches"),
    [
        (100, 120, [100, 64]),  # the rest of a long batch has to be long, too
        (40, 100, [40, 100]),  # tokens of a short batch are not those of a long one
        (100, 40, [100, 40]),
        (200, 140, [128, 72, 12]),
    ],
)
def test_tokens_of_a_long_batch_are_computed_as_such(
    decoded: list[int], first: int, second: int, batches: list[int]
) -> None:
    """Flash attention has a kernel of its own for 64 tokens and more."""
    with Model(default_model(), n_ctx=256, n_batch=128, n_threads=1) as model:
        tokens = np.arange(500, 700, dtype=np.int32)
        requests = [
            Request(n, tokens[:n], GenerationConfig(Params(temperature=0.0), max_tokens=1)) for n in (first, second)
        ]
        made = list(generate_many(model, requests, n_parallel=2, n_contexts=1, n_threads=1))
        assert decoded == batches
        for request, text in made:
            assert isinstance(text, Generation)
            assert text.tokens == generate(model, request.prompt, replace(request.config, max_tokens=1)).tokens


ALIKE = [
    Request((i, k, n), prompt, GenerationConfig(params, max_tokens=n))
    for i, prompt in enumerate(PROMPTS[:3])
    for n in (1, 40, 80)
    for k, params in enumerate(
        Params(lz_penalty=lz, repetition_penalty=repeat, temperature=temperature, seed=seed)
        for temperature, seed in ((0.0, 1), (0.7, 1), (0.7, 2))
        for lz, repeat in ((0.0, 1.0), (0.1, 1.0), (0.15, 1.0), (0.3, 1.0), (0.0, 1.02))
    )
]


def test_texts_that_are_the_same_so_far_are_decoded_once(model: Model, rows: Rows, decoded: list[int]) -> None:
    """Their logits are those of `generate` before they part, and after, in the cache where they wait and in another."""
    texts = {r.id: generate(model, r.prompt, r.config) for r in ALIKE}
    alone = dict(rows)
    own = {(r.prompt, texts[r.id].tokens[:n]) for r in ALIKE for n in range(1, len(texts[r.id].tokens))}
    prompts = sum(len(model.tokenize(prompt)) for prompt in PROMPTS[:3])
    written = sum(len(text.tokens) for text in texts.values())
    assert len(own) < written / 2.5
    for n_parallel, n_contexts in ((1, 1), (2, 1), (3, 1), (40, 1), (5, 2)):
        rows.clear()
        decoded.clear()
        made = texts_by_id(generate_many(model, ALIKE, n_parallel=n_parallel, n_contexts=n_contexts))
        assert list(map(figures, (made[r.id] for r in ALIKE))) == list(map(figures, texts.values()))
        assert sum(decoded) == prompts + len(own)
        assert rows.keys() == alone.keys()
        for key in alone:
            np.testing.assert_array_equal(np.stack(rows[key]), np.stack(alone[key]))


def test_a_cache_that_cannot_go_back_is_made_anew(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a recurrent model."""
    texts = {r.id: generate(model, r.prompt, r.config) for r in ALIKE[:30]}
    remove = llama_cpp.llama_memory_seq_rm
    monkeypatch.setattr(llama_cpp, "llama_memory_seq_rm", lambda m, i, a, b: a < 0 and remove(m, i, a, b))
    for n_parallel in (1, 3):
        made = texts_by_id(generate_many(model, ALIKE[:30], n_parallel=n_parallel, n_contexts=1))
        assert {key: made[key].tokens for key in texts} == {key: text.tokens for key, text in texts.items()}


def test_messages_texts_and_tokens_side_by_side_each_with_settings_of_its_own(model: Model) -> None:
    question = [{"role": "user", "content": "What is 70 + 479?"}]
    tokens = np.array(model.tokenize(PROMPTS[0]), np.int32)
    pieces: dict[str, list[str]] = {"text": [], "messages": []}
    requests = [
        Request(
            "text",
            PROMPTS[0],
            GenerationConfig(Params(temperature=0.7, seed=3), max_tokens=60),
            on_text=pieces["text"].append,
        ),
        Request("short", PROMPTS[1], GenerationConfig(Params(temperature=0.0), max_tokens=4, stop=("no such text",))),
        Request(
            "messages",
            question,
            GenerationConfig(Params(temperature=0.0, lz_penalty=0.1)),
            on_text=pieces["messages"].append,
        ),
        Request(
            "endless",
            question,
            GenerationConfig(Params(temperature=0.0, logit_bias={5: 0.5}), max_tokens=70, ignore_eos=True),
        ),
        Request("tokens", tokens, GenerationConfig(Params(temperature=0.7, seed=3), max_tokens=60)),
    ]
    made = texts_by_id(generate_many(model, requests, n_parallel=5, n_threads=1))
    assert next(iter(made)) == "short"  # they come as they end
    for r in requests:
        expected = generate(model, r.prompt, r.config)
        assert figures(made[r.id]) == figures(expected)
    assert made["messages"].content == "549"
    assert made["endless"].finish_reason == "length"
    assert {name: "".join(parts) for name, parts in pieces.items()} == {name: made[name].text for name in pieces}
    assert made["tokens"].tokens == made["text"].tokens


def test_texts_close_up_when_requests_run_out(model: Model, decoded: list[int]) -> None:
    """A long text among short ones moves to the first cache, with what it has there, and goes on as alone."""
    lengths = [3, 9, 3, 30, 3, 21, 3]
    requests = [
        Request(i, PROMPTS[i % 6], GenerationConfig(Params(temperature=0.7, seed=i), max_tokens=n))
        for i, n in enumerate(lengths)
    ]
    made = texts_by_id(generate_many(model, requests, n_parallel=7, n_threads=1, n_contexts=1))
    for r in requests:
        assert made[r.id].tokens == generate(model, r.prompt, r.config).tokens
    assert decoded[6:] == [7, 7] + [3] * 6 + [2] * 12 + [1] * 9


def test_requests_are_taken_as_there_is_room(model: Model) -> None:
    taken = []

    def endless() -> Iterator[Request]:
        for i in itertools.count():
            taken.append(i)
            yield Request(i, PROMPTS[i % 6], GenerationConfig(Params(temperature=0.0), max_tokens=8))

    made = generate_many(model, endless(), n_parallel=3, n_threads=1)
    first = [next(made)[0].id for _ in range(7)]
    assert sorted(first)[:3] == [0, 1, 2]
    assert len(taken) <= 7 + 3 + 1
    made.close()  # type: ignore[attr-defined]
    assert list(generate_many(model, [], n_parallel=3)) == []


@pytest.mark.parametrize("n_parallel", [2, 3, 5])
def test_texts_that_wait_move_with_their_cache(model: Model, alone: dict[Any, Generation], n_parallel: int) -> None:
    """Where a text ends with its prompt, others move into its cache; those that waited were once written over."""
    short = Request("short", PROMPTS[3], GenerationConfig(Params(temperature=0.0), max_tokens=1))
    given = generate_many(model, [short, *REQUESTS], n_parallel=n_parallel, n_threads=1, n_contexts=1)
    made = texts_by_id(given)
    assert {r.id: figures(made[r.id]) for r in REQUESTS} == {id: figures(text) for id, text in alone.items()}


class Breaking:
    """A sampler of the likeliest tokens that raises an error in the place of token ``n``."""

    def __init__(self, n: int, error: Exception) -> None:
        self.n, self.error = n, error

    def prime(self, tokens: Any) -> None:
        pass

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        self.n -= 1
        if self.n < 0:
            raise self.error
        return int(logits.argmax())

    def accept(self, token: int) -> None:
        pass


def refuse(text: str) -> None:
    raise LzsError(f"nobody wants {text!r}")


def failing(n: int, error: Exception) -> Any:
    return lambda: Breaking(n, error)


GREEDY = Params(temperature=0.0)
BAD = {
    "": Request("", "", GenerationConfig(GREEDY)),
    "the context holds 192": Request("", "word " * 400, GenerationConfig(GREEDY)),
    "logit_bias": Request("", PROMPTS[0], GenerationConfig(replace(GREEDY, logit_bias={10**6: 1.0}))),
    "exempt": Request("", PROMPTS[1], GenerationConfig(replace(GREEDY, exempt=(10**6,)))),
    "the chat template of": Request("", ["x"], GenerationConfig(GREEDY)),  # type: ignore[arg-type]
    "dry_breakers": Request(
        "", PROMPTS[2], GenerationConfig(replace(GREEDY, dry_multiplier=0.8, dry_breakers=(10**6,)))
    ),
    "nobody wants": Request("", PROMPTS[3], GenerationConfig(GREEDY), on_text=refuse),
    "after 0 tokens: no first": Request(
        "", PROMPTS[4], GenerationConfig(GREEDY), sampler=failing(0, ValueError("no first"))
    ),
    "no ninth": Request("", PROMPTS[5], GenerationConfig(GREEDY), sampler=failing(8, LzsError("no ninth"))),
}


def test_a_request_refuses_what_is_for_one_text() -> None:
    with pytest.raises(ValueError, match="one draft serves all texts: give it to generate_many"):
        Request("", "Once", GenerationConfig(draft=Draft(lookup=2)))
    with pytest.raises(ValueError, match="sampler='graph' is for one text at a time"):
        Request("", "Once", GenerationConfig(sampler="graph"))
    with pytest.raises(ValueError, match="config must be a GenerationConfig, got a Params"):
        Request("", "Once", GREEDY)  # type: ignore[arg-type]


@pytest.mark.parametrize(("n_parallel", "n_contexts"), [(1, 1), (3, 1), (40, 1), (5, 2)])
def test_a_request_that_fails_is_named_and_the_others_are_written(
    model: Model, alone: dict[Any, Generation], n_parallel: int, n_contexts: int
) -> None:
    """It comes between texts of its own prompt, with which it shares a cache, and leaves the cache to others."""
    bad = {message: replace(request, id=message) for message, request in BAD.items()}
    requests = list(bad.values())
    for request in REQUESTS:
        requests.append(request)
        if request.id[1] == 2:
            requests += [one for one in bad.values() if one.prompt == request.prompt]
    requests += bad.values()
    texts, errors = dict[Any, Generation](), list[tuple[Any, Exception]]()
    for request, made in generate_many(model, requests, n_parallel=n_parallel, n_threads=1, n_contexts=n_contexts):
        if isinstance(made, Exception):
            errors.append((request.id, made))
        else:
            texts[request.id] = made
    assert list(map(figures, (texts.pop(r.id) for r in REQUESTS))) == list(map(figures, alone.values()))
    assert not texts
    assert sorted(message for message, _ in errors) == sorted(r.id for r in requests if r.id in bad)
    assert all(message in str(error) and isinstance(error, ValueError | LzsError) for message, error in errors)


def test_a_bug_is_raised(model: Model) -> None:
    """It is no failure of the request: who made the sampler has to know."""
    for error in (TypeError("no argmax"), MemoryError(), KeyboardInterrupt()):
        requests = [replace(REQUESTS[1], sampler=failing(3, error)), *REQUESTS]  # type: ignore[arg-type]
        for n_contexts in (1, 2):
            with pytest.raises(type(error)):
                list(generate_many(model, requests, n_parallel=4, n_threads=1, n_contexts=n_contexts))


def test_logits_that_are_not_numbers_end_the_text_that_has_them(
    model: Model, alone: dict[Any, Generation], monkeypatch: pytest.MonkeyPatch
) -> None:
    decode, decodes = parallel._Context._decode, itertools.count()

    def broken(self: Any, batch: Any, *, wanted: int) -> Any:
        rows = decode(self, batch, wanted=wanted)
        if next(decodes) == 20:
            row_of(rows[1], self._model.n_vocab)[7] = float("nan")
        return rows

    monkeypatch.setattr(parallel._Context, "_decode", broken)
    made = list(generate_many(model, REQUESTS, n_parallel=3, n_threads=1, n_contexts=1))
    errors = [str(text) for _, text in made if isinstance(text, Exception)]
    assert len(made) == len(REQUESTS)
    assert 1 <= len(errors) < 5  # texts of one prompt that are the same so far have the same logits
    assert all(error.startswith("the model failed after ") for error in errors)
    texts = {request.id: text for request, text in made if not isinstance(text, Exception)}
    assert {id: figures(text) for id, text in texts.items()} == {id: figures(alone[id]) for id in texts}


@pytest.mark.parametrize("n_parallel", [1, 7])
def test_where_llama_cpp_fails_the_texts_in_flight_fail_and_the_next_ones_are_as_ever(
    model: Model, alone: dict[Any, Generation], monkeypatch: pytest.MonkeyPatch, n_parallel: int
) -> None:
    decode = Decoder.decode
    for nth in (0, 1, 30):  # in a prompt, in a text, among several
        decodes = itertools.count()
        monkeypatch.setattr(Decoder, "decode", lambda d, b, n=nth, i=decodes: -3 if next(i) == n else decode(d, b))
        made = list(generate_many(model, REQUESTS, n_parallel=n_parallel, n_threads=1, n_contexts=1))
        errors = [str(text) for _, text in made if isinstance(text, Exception)]
        assert len(made) == len(REQUESTS)
        assert errors
        assert all(error.startswith("llama_decode returned -3 for ") for error in errors)
        texts = {request.id: text for request, text in made if not isinstance(text, Exception)}
        assert len(texts) >= len(REQUESTS) - 5 * n_parallel > 0 or n_parallel == 7
        assert {id: figures(text) for id, text in texts.items()} == {id: figures(alone[id]) for id in texts}
    monkeypatch.setattr(Decoder, "decode", lambda *_: -3)
    made = list(
        generate_many(model, REQUESTS, n_parallel=n_parallel, n_threads=1, n_contexts=2 if n_parallel > 1 else 1)
    )
    assert [type(text) for _, text in made] == [LzsError] * len(REQUESTS)


def test_which_end_first_depends_on_lengths_only(model: Model) -> None:
    orders = [[r.id for r, _ in generate_many(model, REQUESTS, n_parallel=6, n_contexts=2)] for _ in range(3)]
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.parametrize("name", ["n_parallel", "n_contexts"])
@pytest.mark.parametrize("number", [0, 257, -1, 1.5])
def test_bad_numbers(model: Model, name: str, number: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        next(generate_many(model, REQUESTS, **{name: number}))


def test_no_memory_is_one_sentence(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_cpp, "llama_init_from_model", lambda *_: None)
    with pytest.raises(LzsError, match="no memory for 4 caches of 192 tokens"):
        next(generate_many(model, REQUESTS, n_parallel=4, n_contexts=1))


@pytest.mark.parametrize("n_contexts", [1, 2])
def test_texts_under_grammars_are_those_of_generate(model: Model, n_contexts: int) -> None:
    """Contexts that decode at the same time use the grammar at the same time: each has a copy."""
    grammars = [Grammar.regex(pattern, model) for pattern in (r"[a-z ]{10,30}\.", r"(\d{2}:){1,8}", "(ab|ba)*")]
    requests = [
        Request((i, k), prompt, GenerationConfig(params, max_tokens=40, grammar=grammar))
        for i, prompt in enumerate(PROMPTS)
        for k, (grammar, params) in enumerate(itertools.product(grammars, SETTINGS[1:4]))
    ]
    made = texts_by_id(generate_many(model, requests, n_parallel=6, n_contexts=n_contexts))
    for r in requests:
        assert r.config.grammar is not None
        alone = generate(model, r.prompt, replace(r.config, fast_forward=False))
        assert (made[r.id].text, made[r.id].tokens) == (alone.text, alone.tokens), r.id
        assert r.config.grammar.match(made[r.id].text) != "no"
    with pytest.raises(ValueError, match="ignore_eos forbids the tokens that end a text"):
        Request(0, "a", GenerationConfig(Params(), grammar=grammars[0], ignore_eos=True))
