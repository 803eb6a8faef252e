"""llama.cpp itself as the oracle, in process; and our samplers inside its chains."""

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lzsampler import LzsError, Params, Sampler

llama_cpp = pytest.importorskip("llama_cpp")

from applications import by_chain, penalty_arguments  # noqa: E402 (needs llama_cpp)
from lzsampler import llama  # noqa: E402
from lzsampler._ffi import lib  # noqa: E402
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.llama import binding as the_binding  # noqa: E402
from lzsampler.llama.chain import address  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402
from lzsampler.models import default_model  # noqa: E402

Logits = npt.NDArray[np.float32]


class Candidates:
    """A `llama_token_data_array` with its storage."""

    def __init__(self, ids: Sequence[int], logits: Sequence[float], is_sorted: bool = False) -> None:
        self.data = (llama_cpp.llama_token_data * max(1, len(ids)))()
        for i, (token, logit) in enumerate(zip(ids, logits, strict=True)):
            self.data[i] = llama_cpp.llama_token_data(int(token), float(logit), 0.0)
        self.array = llama_cpp.llama_token_data_array(self.data, len(ids), -1, is_sorted)

    @classmethod
    def full(cls, logits: Logits) -> "Candidates":
        return cls(range(len(logits)), logits.tolist())

    def apply(self, *samplers: Any) -> "Candidates":
        """Apply samplers, one after the other, and free them."""
        for sampler in samplers:
            llama_cpp.llama_sampler_apply(sampler, ctypes.byref(self.array))
            llama_cpp.llama_sampler_free(sampler)
        return self

    def rows(self) -> list[tuple[int, float, float]]:
        data = self.array.data  # llama.cpp may move it
        return [(data[i].id, data[i].logit, data[i].p) for i in range(self.array.size)]

    def probabilities(self) -> dict[int, float]:
        """Token -> softmax of the logits as they are, without tokens at -inf."""
        rows = [(token, logit) for token, logit, _ in self.rows() if logit > -math.inf]
        top = max(logit for _, logit in rows)
        weights = {token: math.exp(logit - top) for token, logit in rows}
        total = sum(weights.values())
        return {token: w / total for token, w in weights.items()}

    @property
    def token(self) -> int:
        assert 0 <= self.array.selected < self.array.size
        return int(self.array.data[self.array.selected].id)


def chain_sampler(kind: str, n_vocab: int, params: Params, history: Sequence[int] = ()) -> Any:
    """A chain sampler of ours that has accepted `history`."""
    source = Sampler(n_vocab, params)
    for token in history:
        source.accept(token)
    return llama.penalties_sampler(source) if kind == "penalties" else llama.pipeline_sampler(source)


def assert_same(ours: dict[int, float], theirs: dict[int, float]) -> None:
    assert ours.keys() == theirs.keys()
    for token, p in theirs.items():
        assert ours[token] == pytest.approx(p, abs=1e-5)


def log_row(probabilities: Sequence[float]) -> Logits:
    return np.log(np.array(probabilities, np.float32), dtype=np.float32)


# ---- llama.cpp's own samplers against ours ----


def llama_stages(params: Params) -> list[Any]:
    """The chain of llama.cpp that does what `params` say, in our order."""
    stages = []
    if params.temperature > 0:
        stages.append(llama_cpp.llama_sampler_init_temp(params.temperature))
    if params.top_k:
        stages.append(llama_cpp.llama_sampler_init_top_k(params.top_k))
    if params.top_p < 1:
        stages.append(llama_cpp.llama_sampler_init_top_p(params.top_p, 1))
    if params.min_p > 0:
        stages.append(llama_cpp.llama_sampler_init_min_p(params.min_p, 1))
    if params.temperature == 0:
        stages.append(llama_cpp.llama_sampler_init_temp(0.0))
    elif params.temperature_last:
        stages.append(stages.pop(0))
    return stages


def adversarial_rows() -> Iterator[tuple[str, Logits]]:
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 40, 300, 1500, 5000):
        yield f"gaussian-{n}", rng.normal(0, 3, n).astype(np.float32)
    yield "peaked", np.r_[rng.normal(0, 1, 2000), 30.0].astype(np.float32)
    yield "wide", rng.uniform(-500, 500, 1000).astype(np.float32)
    yield "above llama.cpp's buckets", rng.uniform(8, 60, 3000).astype(np.float32)
    yield "with -inf", np.where(rng.random(800) < 0.5, -np.inf, rng.normal(0, 2, 800)).astype(np.float32)
    yield "nearly flat", (5 + rng.permutation(1000) * 1e-4).astype(np.float32)
    yield (
        "tiny differences",
        np.nextafter(np.float32(1), np.float32(2), dtype=np.float32)
        + np.float32(1e-6) * (rng.permutation(64).astype(np.float32)),
    )


SETTINGS = [
    Params(),
    Params(temperature=0.0),
    Params(temperature=0.3),
    Params(temperature=1.7),
    Params(top_k=1),
    Params(top_k=40),
    Params(top_k=129),
    Params(top_k=100_000),
    Params(top_p=0.0),
    Params(top_p=0.31),
    Params(top_p=0.95),
    Params(min_p=0.013),
    Params(min_p=0.5),
    Params(min_p=1.0),
    Params(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05),
    Params(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05, temperature_last=True),
    Params(temperature=1.3, top_p=0.6, min_p=0.02, temperature_last=True),
    Params(temperature=0.6, top_k=20, top_p=0.9),
]


@pytest.mark.parametrize("params", SETTINGS, ids=lambda p: f"T{p.temperature}k{p.top_k}p{p.top_p}m{p.min_p}")
@pytest.mark.parametrize(("name", "row"), list(adversarial_rows()), ids=lambda x: x if isinstance(x, str) else "")
def test_truncation_is_llamas(name: str, row: Logits, params: Params) -> None:
    theirs = Candidates.full(row).apply(*llama_stages(params)).probabilities()
    ids, probabilities = Sampler(len(row), params).distribution(row)
    assert_same(dict(zip(ids.tolist(), probabilities.tolist(), strict=True)), theirs)
    through_llama = Candidates.full(row).apply(chain_sampler("sampler", len(row), params))
    assert_same(through_llama.probabilities(), theirs)
    assert_same({token: p for token, _, p in through_llama.rows()}, theirs)
    assert through_llama.token == Sampler(len(row), params).sample(row)


@pytest.mark.parametrize("window", [1, 5, 64, 1000])
@pytest.mark.parametrize(("repeat", "frequency", "presence"), [(1.3, 0, 0), (1, 0.7, 0), (1, 0, -0.5), (0.8, 0.2, 1.5)])
def test_penalties_are_llamas(window: int, repeat: float, frequency: float, presence: float) -> None:
    rng = np.random.default_rng(window)
    for n_vocab, n_history in ((7, 30), (500, 200), (500, 0), (3000, 1200)):
        row = rng.normal(0, 4, n_vocab).astype(np.float32)
        history = rng.integers(0, n_vocab, n_history).tolist()
        penalties = llama_cpp.llama_sampler_init_penalties(
            *penalty_arguments(n_vocab, window, repeat, frequency, presence)
        )
        for token in history:
            llama_cpp.llama_sampler_accept(penalties, token)
        params = Params(
            repetition_penalty=repeat,
            frequency_penalty=frequency,
            presence_penalty=presence,
            penalty_window=window,
        )
        theirs = Candidates.full(row).apply(penalties)
        ours = Candidates.full(row).apply(chain_sampler("penalties", n_vocab, params, history))
        np.testing.assert_allclose([r[1] for r in ours.rows()], [r[1] for r in theirs.rows()], rtol=1e-6, atol=1e-5)
        assert_same(ours.probabilities(), theirs.probabilities())


DRAWS = [
    {},
    {"temperature": 0.7},
    {"top_k": 40, "top_p": 0.95, "min_p": 0.05, "temperature": 0.8},
    {"top_k": 300, "temperature": 1.3},  # llama.cpp sorts more than 128 by another way
    {"min_p": 0.02, "temperature": 1.5},
]


@pytest.mark.parametrize("n", [700, 2000])
@pytest.mark.parametrize("fields", DRAWS, ids=lambda f: ",".join(f) or "plain")
def test_draws_after_our_penalties_are_llamas(fields: dict[str, Any], n: int) -> None:
    """Our penalties in llama.cpp's chain and its `dist` at the end: 500 tokens are those of llama.cpp alone."""
    repeat, frequency, presence, window = 1.3, 0.25, 0.5, 64
    params = Params(
        repetition_penalty=repeat, frequency_penalty=frequency, presence_penalty=presence, penalty_window=window
    )
    draw = Params(**fields)
    chains = []
    for penalties in (
        chain_sampler("penalties", n, params),
        llama_cpp.llama_sampler_init_penalties(*penalty_arguments(n, window, repeat, frequency, presence)),
    ):
        chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        for stage in (
            penalties,
            llama_cpp.llama_sampler_init_top_k(draw.top_k),
            llama_cpp.llama_sampler_init_top_p(draw.top_p, 0),
            llama_cpp.llama_sampler_init_min_p(draw.min_p, 0),
            llama_cpp.llama_sampler_init_temp(draw.temperature),
            llama_cpp.llama_sampler_init_dist(4242),
        ):
            llama_cpp.llama_sampler_chain_add(chain, stage)
        chains.append(chain)
    rng = np.random.default_rng(n)
    for _ in range(500):
        row = rng.normal(scale=2, size=n).astype(np.float32)
        picked = []
        for chain in chains:
            candidates = Candidates.full(row)
            llama_cpp.llama_sampler_apply(chain, ctypes.byref(candidates.array))
            picked.append(candidates.token)
            llama_cpp.llama_sampler_accept(chain, candidates.token)
        assert picked[0] == picked[1]
    for chain in chains:
        llama_cpp.llama_sampler_free(chain)


def test_greedy_is_llamas() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 2, 100, 4096):
        row = np.round(rng.normal(0, 2, n), 1).astype(np.float32)  # many ties: both take the lowest id
        theirs = Candidates.full(row).apply(llama_cpp.llama_sampler_init_greedy()).token
        assert Sampler(n, Params(temperature=0)).sample(row) == theirs


# ---- the cases of llama.cpp's tests/test-sampling.cpp that concern our stages ----

BASE = (0.1, 0.2, 0.3, 0.4)
CASES: list[tuple[dict[str, Any], dict[int, float]]] = [
    ({"temperature": 1.0}, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}),
    ({"temperature": 0.0}, {3: 1.0}),
    ({"top_k": 1}, {3: 1.0}),
    ({"top_k": 3}, {3: 0.44444, 2: 0.33333, 1: 0.22222}),
    ({"top_k": 4}, {3: 0.4, 2: 0.3, 1: 0.2, 0: 0.1}),
    ({"top_k": 0}, {3: 0.4, 2: 0.3, 1: 0.2, 0: 0.1}),
    ({"top_p": 0.0}, {3: 1.0}),
    ({"top_p": 0.7}, {3: 0.571429, 2: 0.428571}),
    ({"top_p": 0.8}, {3: 0.44444, 2: 0.33333, 1: 0.22222}),
    ({"top_p": 1.0}, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}),
    ({"min_p": 0.0}, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}),
    ({"min_p": 0.24}, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}),
    ({"min_p": 0.26}, {1: 0.2 / 0.9, 2: 0.3 / 0.9, 3: 0.4 / 0.9}),
    ({"min_p": 0.49}, {1: 0.2 / 0.9, 2: 0.3 / 0.9, 3: 0.4 / 0.9}),
    ({"min_p": 0.51}, {2: 0.3 / 0.7, 3: 0.4 / 0.7}),
    ({"min_p": 0.74}, {2: 0.3 / 0.7, 3: 0.4 / 0.7}),
    ({"min_p": 0.76}, {3: 1.0}),
    ({"min_p": 1.0}, {3: 1.0}),
]


@pytest.mark.parametrize(("fields", "expected"), CASES, ids=str)
def test_test_sampling_truncation(fields: dict[str, Any], expected: dict[int, float]) -> None:
    assert_same(
        Candidates.full(log_row(BASE)).apply(chain_sampler("sampler", 4, Params(**fields))).probabilities(), expected
    )


@pytest.mark.parametrize(
    ("history", "expected", "repeat", "both"),
    [
        ([0], (0, 0.25, 0.25, 0.25, 0.25), 50.0, 0.0),
        ([0, 1, 2], (0, 0, 0, 0.5, 0.5), 50.0, 0.0),
        ([0, 1, 2, 0, 0], (0, 0, 0, 0.5, 0.5), 50.0, 0.0),
        ([0], (0.000011, 0.249997, 0.249997, 0.249997, 0.249997), 1.0, 5.0),
        ([0, 1, 2], (0.000023, 0.000023, 0.000023, 0.499966, 0.499966), 1.0, 5.0),
        ([0, 1, 2, 0, 0], (0.0, 0.000023, 0.000023, 0.499977, 0.499977), 1.0, 5.0),
    ],
)
def test_test_sampling_penalties(history: list[int], expected: Sequence[float], repeat: float, both: float) -> None:
    params = Params(
        repetition_penalty=repeat, frequency_penalty=both, presence_penalty=both, penalty_window=len(history)
    )
    got = Candidates.full(log_row([0.2] * 5)).apply(chain_sampler("penalties", 5, params, history)).probabilities()
    assert [got[t] for t in range(5)] == pytest.approx(expected, abs=1e-5)


QUEUES = [
    ("k", 10000, 1.0, 1.0), ("k", 1, 1.0, 1.0), ("p", 10000, 1.0, 1.0), ("p", 10000, 0.0, 1.0),
    ("m", 10000, 1.0, 1.0), ("m", 10000, 1.0, 1e-12), ("k", 100, 1.0, 1.0), ("p", 10000, 0.0003, 1.0),
    ("p", 10000, 0.8, 1.0), ("m", 10000, 1.0, 9997.9 / 9999.0), ("m", 10000, 1.0, 0.1), ("kp", 100, 0.8, 0.1),
    ("km", 100, 0.8, 0.1), ("pk", 100, 0.8, 0.1), ("pm", 100, 0.8, 0.1), ("mk", 100, 0.8, 0.1),
    ("mp", 100, 0.8, 9997.9 / 9999.0), ("mp", 100, 0.8, 0.1), ("kpm", 100, 0.8, 0.1), ("kmp", 100, 0.8, 0.1),
    ("pkm", 100, 0.8, 0.1), ("pmk", 100, 0.8, 0.1), ("mkp", 100, 0.8, 0.1), ("mpk", 100, 0.8, 0.1),
]  # fmt: skip


@pytest.mark.parametrize(("order", "top_k", "top_p", "min_p"), QUEUES)
def test_test_sampling_queues(order: str, top_k: int, top_p: float, min_p: float) -> None:
    """Single-stage samplers one after another, on arrays that the one before truncated, against llama.cpp's."""
    n = 10000
    with np.errstate(divide="ignore"):
        row = np.log(np.arange(n, dtype=np.float32))
    ours, theirs = Candidates.full(row), Candidates.full(row)
    for stage in order:
        params = {"k": Params(top_k=top_k), "p": Params(top_p=top_p), "m": Params(min_p=min_p)}[stage]
        ours.apply(chain_sampler("sampler", n, params))
        theirs.apply(*llama_stages(params)[1:])
        # token 0 is at -inf: llama.cpp leaves it in a list that nothing truncates, we never do
        assert {r[0] for r in ours.rows()} == {r[0] for r in theirs.rows()} - {0}
        assert_same(ours.probabilities(), theirs.probabilities())


# ---- chain samplers: what a host may do to them ----

LZ = Params(
    lz_rule="paper",
    lz_penalty=0.5,
    lz_window=64,
    lz_buffer=4,
    repetition_penalty=1.2,
    temperature=0.7,
    top_k=30,
    seed=11,
)


def looping(n_vocab: int, n: int = 40) -> list[int]:
    return [t % n_vocab for t in (3, 1, 4, 1, 5, 9, 2, 6) * (n // 8)]


@pytest.mark.parametrize("arrangement", ["full", "reversed", "shuffled", "truncated", "shifted"])
def test_penalties_find_tokens_by_id(arrangement: str) -> None:
    rng = np.random.default_rng(5)
    row = rng.normal(0, 2, 500).astype(np.float32)
    order = {
        "full": np.arange(500),
        "reversed": np.arange(500)[::-1],
        "shuffled": rng.permutation(500),
        "truncated": rng.permutation(500)[:40],
        "shifted": np.arange(1, 500),
    }[arrangement]
    history = looping(500)
    expected = row.copy()
    source = Sampler(500, LZ)
    for token in history:
        source.accept(token)
    tokens, repeat, bias = source.edits()
    expected[tokens] = np.where(row[tokens] > 0, row[tokens] / repeat, row[tokens] * repeat) + bias
    got = Candidates(order.tolist(), row[order].tolist(), is_sorted=True).apply(llama.penalties_sampler(source))
    assert [r[0] for r in got.rows()] == order.tolist()
    assert [r[1] for r in got.rows()] == expected[order].tolist()
    touched = bool(set(order.tolist()) & set(tokens.tolist()))
    assert not (got.array.sorted and touched)


def test_a_chain_sampler_on_truncated_and_reordered_arrays() -> None:
    rng = np.random.default_rng(6)
    row = rng.normal(0, 2, 500).astype(np.float32)
    for order in (rng.permutation(500), rng.permutation(500)[:77], np.array([123])):
        inside = np.full(500, -np.inf, np.float32)
        inside[order] = row[order]
        source = Sampler(500, LZ)
        for token in looping(500):
            source.accept(token)
        ids, probabilities = source.distribution(inside)
        got = Candidates(order.tolist(), row[order].tolist()).apply(llama.pipeline_sampler(source))
        assert got.token == source.sample(inside)
        assert_same({t: p for t, _, p in got.rows()}, dict(zip(ids.tolist(), probabilities.tolist(), strict=True)))
        assert [t for t, _, _ in got.rows()] == [t for t in order.tolist() if t in set(ids.tolist())]


def test_accept_clone_copy_reset() -> None:
    row = np.linspace(-1, 1, 50, dtype=np.float32)
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    llama_cpp.llama_sampler_chain_add(chain, llama.pipeline_sampler(Sampler(50, LZ)))
    twin = Sampler(50, LZ)

    def pick(sampler: Any) -> int:
        candidates = Candidates.full(row)
        llama_cpp.llama_sampler_apply(sampler, ctypes.byref(candidates.array))
        return candidates.token

    for _ in range(30):
        token = pick(chain)
        assert token == pick(chain) == twin.sample(row)  # apply is pure: a host may call it twice a token
        llama_cpp.llama_sampler_accept(chain, token)
        twin.accept(token)
    copies = [llama_cpp.llama_sampler_clone(chain)]
    if hasattr(llama_cpp, "llama_sampler_copy"):
        blank = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        llama_cpp.llama_sampler_chain_add(blank, llama.pipeline_sampler(Sampler(50, LZ)))
        llama_cpp.llama_sampler_copy(chain, blank)
        copies.append(blank)
    llama_cpp.llama_sampler_accept(chain, 7)  # the copies do not see it
    ahead = twin.clone()
    ahead.accept(7)
    assert pick(chain) == ahead.sample(row)
    for copy in copies:
        assert pick(copy) == twin.sample(row)
        llama_cpp.llama_sampler_free(copy)
    llama_cpp.llama_sampler_reset(chain)
    assert pick(chain) == Sampler(50, LZ).sample(row)
    llama_cpp.llama_sampler_free(chain)


@pytest.mark.skipif(not hasattr(llama_cpp, "llama_sampler_copy"), reason="this llama.cpp has no llama_sampler_copy")
@pytest.mark.parametrize("make", [llama.penalties_sampler, llama.pipeline_sampler])
def test_the_sampler_inside_stays_the_same_after_a_copy(make: Any) -> None:
    """`llama_sampler_copy` freed it, though callers may hold it as long as the chain lives."""
    from_, to = make(Sampler(50, LZ)), make(Sampler(50, LZ))
    inner = lib.lzs_chain_sampler_inner(address(to))
    for token in looping(50):
        llama_cpp.llama_sampler_accept(from_, token)
    llama_cpp.llama_sampler_copy(from_, to)
    assert lib.lzs_chain_sampler_inner(address(to)) == inner
    assert lib.lzs_position(inner) == len(looping(50))
    assert lib.lzs_accept(inner, 3) == 0
    other = make(Sampler(50, Params(lz_penalty=0.15, lz_window=100)))
    llama_cpp.llama_sampler_copy(from_, other)  # which differ in what cannot change
    with pytest.raises(ValueError, match="out of range"):
        llama.check_chain_sampler(other)
    assert lib.lzs_position(lib.lzs_chain_sampler_inner(address(other))) == 0
    for made in (from_, to, other):
        llama_cpp.llama_sampler_free(made)


@pytest.mark.parametrize("kind", ["penalties", "sampler"])
def test_the_host_always_has_a_finite_logit_and_the_sampler_a_selection(kind: str) -> None:
    strong = Params(
        lz_rule="paper", lz_penalty=1e38, lz_window=64, lz_buffer=4, repetition_penalty=1e30, frequency_penalty=1e38
    )
    history = list(range(8)) * 5
    rows: list[tuple[list[float], str | None]] = [
        ([0.5] * 8, None),
        ([-math.inf] * 8, "no token is allowed"),
        ([math.nan] * 8, "NaN"),
        ([math.nan, 1.0] + [-math.inf] * 6, "NaN"),
        ([math.inf] * 8, None),
        ([-3e38] * 8, None),
    ]
    for values, message in rows:
        candidates = Candidates(range(8), values)
        made = chain_sampler(kind, 8, strong, history)
        llama_cpp.llama_sampler_apply(made, ctypes.byref(candidates.array))
        logits = [logit for _, logit, _ in candidates.rows()]
        if any(v > -math.inf for v in values):
            assert any(logit > -math.inf for logit in logits), values
        if kind == "sampler":
            assert 0 <= candidates.array.selected < candidates.array.size
            if message:
                with pytest.raises((LzsError, ValueError), match=message):
                    llama.check_chain_sampler(made)
            if any(math.isfinite(v) for v in values):
                assert math.isfinite(values[candidates.token])
        llama.check_chain_sampler(made)  # reported once
        llama_cpp.llama_sampler_free(made)


def test_an_unknown_token_is_reported() -> None:
    made = chain_sampler("sampler", 4, Params())
    candidates = Candidates([1, 99], [0.0, 5.0])
    llama_cpp.llama_sampler_apply(made, ctypes.byref(candidates.array))
    assert candidates.token == 99  # the host's own best: it knows that token
    llama_cpp.llama_sampler_accept(made, 99)
    with pytest.raises(ValueError, match="out of range"):
        llama.check_chain_sampler(made)
    llama_cpp.llama_sampler_free(made)


def test_an_unknown_layout_is_refused() -> None:
    names = ("llama_token_data", "llama_token_data_array", "llama_sampler", "llama_sampler_i", "llama_batch")
    binding = SimpleNamespace(__version__="9.9", **{name: getattr(llama_cpp, name) for name in names})
    with pytest.warns(UserWarning, match="9.9 is newer than 0.3.36, the newest that this lzsampler was tested with"):
        the_binding._check_binding(binding)

    class Wider(ctypes.Structure):
        _fields_ = (("id", ctypes.c_int64), ("logit", ctypes.c_float), ("p", ctypes.c_float))

    binding.llama_token_data = Wider
    with pytest.raises(LzsError, match=r"9\.9 has a sampler interface .*llama_token_data.*0\.3\.17"):
        the_binding._check_binding(binding)
    del binding.llama_token_data
    with pytest.raises(LzsError, match="llama_token_data"):
        the_binding._check_binding(binding)


@pytest.mark.parametrize("version", ["0.3.16", "0.2.90", "?"])
def test_an_old_version_is_refused_in_one_sentence(version: str) -> None:
    with pytest.raises(LzsError) as error:
        the_binding._check_binding(SimpleNamespace(__version__=version))
    assert str(error.value) == f"llama-cpp-python {version} is too old: lzsampler needs 0.3.17 or newer"


@pytest.mark.parametrize("version", ["0.3.17", "0.3.36", "0.3.36+cu121"])
def test_a_tested_version_is_taken_without_a_word(version: str) -> None:
    binding = SimpleNamespace(**vars(llama_cpp))
    binding.__version__ = version
    the_binding._check_binding(binding)  # a warning would be an error here


def test_what_is_refused_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="too old"):
        the_binding._check_binding(SimpleNamespace(__version__="0.3.16"))


# ---- a real model ----


@pytest.fixture(scope="module")
def llm() -> Iterator[Any]:
    model = llama_cpp.Llama(str(default_model()), n_ctx=512, verbose=False, n_threads=2)
    yield model
    model.close()


def fast_path(llm: Any, prompt: list[int], params: Params, n: int) -> list[int]:
    sampler = Sampler(llm.n_vocab(), params)
    sampler.prime(prompt)
    llm.reset()
    llm.eval(prompt)
    tokens: list[int] = []
    while len(tokens) < n:
        pointer = llama_cpp.llama_get_logits_ith(llm.ctx, -1)
        tokens.append(sampler.sample(np.ctypeslib.as_array(pointer, (llm.n_vocab(),))))
        sampler.accept(tokens[-1])
        llm.eval(tokens[-1:])
    return tokens


def test_a_chain_with_our_sampler_gives_the_fast_path(llm: Any) -> None:
    prompt = llm.tokenize(b"The children, full of pity, at once took", add_bos=False)
    for params in (
        Params(temperature=0.0),
        Params(lz_penalty=0.15, temperature=0.0),
        Params(lz_rule="paper", lz_penalty=0.15, temperature=0.0, history="all", lz_formula="codelength"),
        Params(lz_penalty=0.1, repetition_penalty=1.1, temperature=0.9, top_k=50, top_p=0.9, min_p=0.02, seed=5),
        Params(temperature=1.2, temperature_last=True, top_p=0.8, seed=2**63 + 1),
    ):
        fast = fast_path(llm, prompt, params, 100)
        source = Sampler(llm.n_vocab(), params)
        source.prime(prompt)
        assert by_chain(llm, prompt, [llama.pipeline_sampler(source)], 100) == fast
        if params.temperature == 0:
            samplers = [llama.penalties_sampler(source), llama_cpp.llama_sampler_init_greedy()]
            assert by_chain(llm, prompt, samplers, 100) == fast


def test_without_penalties_greedy_is_llamas(llm: Any) -> None:
    prompt = llm.tokenize(b"Now the old lady was sick,", add_bos=False)
    untouched = by_chain(llm, prompt, [llama_cpp.llama_sampler_init_greedy()], 100)
    assert fast_path(llm, prompt, Params(temperature=0.0), 100) == untouched


def test_exempt_ids(llm: Any) -> None:
    newline = llama.exempt_ids(llm, ["\n"])
    assert newline == tuple(llm.tokenize(b"\n", add_bos=False))
    assert set(newline) <= set(llama.exempt_ids(llm, ["\n", "<think>"]))
    with pytest.raises(ValueError, match="list of strings"):
        llama.exempt_ids(llm, "\n")
    with pytest.raises(ValueError, match="non-empty strings, got ''"):
        llama.exempt_ids(llm, ["a", ""])
    with pytest.raises(ValueError, match=r"llm must be a llama_cpp\.Llama, got None"):
        llama.exempt_ids(None, ["a"])


def test_a_closed_model_says_so() -> None:
    model = Model(default_model(), n_ctx=64, n_threads=1)
    params, tokens = Params.recommended(model), model.token_bytes
    model.close()
    model.close()
    assert model.closed
    uses: list[Callable[[], object]] = [
        lambda: generate(model, "x", GenerationConfig(params, max_tokens=3)),
        lambda: model.tokenize("x"),
        lambda: Params.recommended(model),
        lambda: model.decode([1]),
        lambda: model.piece(5),
        lambda: model.llm,
    ]
    for use in uses:
        with pytest.raises(LzsError, match=r"the model tale-7m-q8_0.gguf is closed: open it again"):
            use()
    assert tokens.n_vocab == model.n_vocab
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'nonsense'"):
        model.nonsense  # type: ignore[attr-defined] # noqa: B018


def test_a_context_that_no_memory_holds_is_refused_at_once() -> None:
    with pytest.raises(
        ValueError, match=r"a context of 2,000,000,000 tokens needs 16,384 GB of memory, and this machine"
    ):
        Model(default_model(), n_ctx=2_000_000_000)
