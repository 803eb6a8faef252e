"""`benchmark`: measures the time of sampling, and the time that the LZ penalty adds (the paper's Table 1)."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

import numpy as np

from .._check import boolean, integer, row_of
from .._values import counted
from ..errors import ArgumentError
from ..llama import llama_cpp
from ..llama.model import Model
from ..params import Params, changed, penalises
from ..sampler import Sampler
from .many import MAX_PARALLEL, _Context

_MOST_TOKENS = 2**20
_WARM_UP = 16  # tokens of each text in the round that warms up
PLAIN, LZ, LLAMA = "plain", "lz", "llama"  # names of the compared samplers

_Picks = list[Callable[[Any, int], int]]  # a function for each text: (logits, row in the batch) -> next token


@dataclass(frozen=True)
class Benchmark:
    """Times of writing texts with the LZ penalty, without it, and with llama.cpp's own sampler chain.

    ``batch``: number of texts that are decoded together. ``tokens``: tokens of each text in a round. ``rounds``: number
    of rounds. All times are medians. ``decode_ms``: milliseconds that llama.cpp takes to decode one token of each text.
    ``sampling_us``, ``sampling_lz_us`` and ``sampling_llama_us``: microseconds to sample and accept one token of one
    text without LZ, with LZ and by llama.cpp. ``latency_ms``: milliseconds to decode and sample one token of each text,
    with LZ. ``tokens_per_second``: tokens of all texts together, with LZ.

    ``slowdown_percent``: the percentage by which LZ lengthens the measured latency, as the median over rounds.
    ``quartiles``: the quartiles of this percentage over rounds. ``added_percent``: the same slowdown, computed from the
    sampling times alone, so that noise in the time of decodes does not matter. ``slowdown_llama_percent`` and
    ``quartiles_llama``: the measured slowdown of LZ compared with llama.cpp's chain. The figures of llama.cpp are None
    if the settings have another penalty besides LZ, because llama.cpp computes that penalty differently.
    """

    batch: int
    tokens: int
    rounds: int
    decode_ms: float
    sampling_us: float
    sampling_lz_us: float
    sampling_llama_us: float | None
    latency_ms: float
    tokens_per_second: float
    slowdown_percent: float
    quartiles: tuple[float, float]
    added_percent: float
    slowdown_llama_percent: float | None
    quartiles_llama: tuple[float, float] | None


def benchmark(
    model: Model,
    prompt: str,
    params: Params,
    *,
    tokens: int = 128,
    rounds: int = 10,
    batch: int = 1,
    cpu_time: bool = False,
) -> Benchmark:
    """Time ``batch`` texts after ``prompt`` with ``params``, without LZ, and with llama.cpp's sampler chain.

    In each of ``rounds`` rounds every text gets ``tokens`` tokens, even past an end token. The three samplers take
    turns at every token, and a different one begins each time. So if the machine slows down, all samplers slow down
    equally. Text i begins with the i-th likeliest token after the prompt, so that the texts differ. ``cpu_time``: count
    the CPU time of the process instead of the elapsed time, for a machine with other work. The model must then have one
    thread, because the times of several threads would add up. The model must also have no layers on a GPU, because CPU
    time does not include the GPU's work.

    Raises ValueError for a prompt that leaves no room for the tokens, for ``params`` without an LZ penalty, and for
    ``cpu_time`` with several threads; LzsError when llama.cpp has no memory for the texts.
    """
    tokens = integer("tokens", tokens, 1, _MOST_TOKENS)
    rounds = integer("rounds", rounds, 2, 10_000)
    batch = integer("batch", batch, 1, min(MAX_PARALLEL, model.n_vocab))
    if boolean("cpu_time", cpu_time) and model.n_threads != 1:
        raise ArgumentError(f"cpu_time needs a model with n_threads=1, got {model.n_threads}: CPU times would add up")
    if not (params.lz_penalty or params.lz_run_penalty):
        raise ArgumentError("lz_penalty must be above 0: the benchmark measures the time that this penalty adds")
    ids = model.tokenize(prompt)
    if not ids:
        raise ArgumentError("the prompt is empty: give the beginning of a text")
    if len(ids) + tokens > model.n_ctx:
        raise ArgumentError(
            f"a prompt of {counted(len(ids), 'token')} and {tokens:,} more do not fit in the context of {model.n_ctx}: "
            "shorten the prompt, make fewer tokens or enlarge the context"
        )
    plain = changed(params, {"lz_penalty": 0.0})
    ways = [PLAIN, LZ] if penalises(plain) else [PLAIN, LZ, LLAMA]
    settings = {PLAIN: plain, LZ: params, LLAMA: plain}
    with ExitStack() as stack:
        texts = {}
        for way in ways:
            texts[way] = _Texts(model, ids, batch, len(ids) + tokens, process_time if cpu_time else perf_counter)
            stack.callback(texts[way].close)
        decode: list[float] = []
        sampling: dict[str, list[float]] = {way: [] for way in ways}
        latency: list[float] = []
        slowdowns: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(-1, rounds):  # round -1 warms up caches, threads and the processor's clock
            with ExitStack() as chains:
                for way in ways:
                    texts[way].begin(settings[way], chains if way == LLAMA else None)
                times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
                for step in range(tokens if number >= 0 else min(tokens, _WARM_UP)):
                    first = step % len(ways)
                    for way in ways[first:] + ways[:first]:
                        times[way].append(texts[way].step())
            if number < 0:
                continue
            whole = {way: median(map(sum, times[way])) for way in ways}
            for way in ways:
                decode += [decoded for decoded, _ in times[way]]
                sampling[way] += [sampled / batch for _, sampled in times[way]]
                slowdowns[way].append(100 * (whole[LZ] / whole[way] - 1))
            latency += map(sum, times[LZ])
    with_llama = LLAMA in ways
    without, with_lz = median(sampling[PLAIN]), median(sampling[LZ])
    return Benchmark(
        batch=batch,
        tokens=tokens,
        rounds=rounds,
        decode_ms=1e3 * median(decode),
        sampling_us=1e6 * without,
        sampling_lz_us=1e6 * with_lz,
        sampling_llama_us=1e6 * median(sampling[LLAMA]) if with_llama else None,
        latency_ms=1e3 * median(latency),
        tokens_per_second=batch / median(latency),
        slowdown_percent=median(slowdowns[PLAIN]),
        quartiles=_quartiles(slowdowns[PLAIN]),
        added_percent=100 * (with_lz - without) / (without + median(decode) / batch),
        slowdown_llama_percent=median(slowdowns[LLAMA]) if with_llama else None,
        quartiles_llama=_quartiles(slowdowns[LLAMA]) if with_llama else None,
    )


def _quartiles(values: list[float]) -> tuple[float, float]:
    low, _, high = quantiles(values, n=4)
    return low, high


class _Texts:
    """Texts of one prompt that are decoded together, as in `generate_many`, and all sampled with the same settings."""

    def __init__(self, model: Model, prompt: list[int], batch: int, n_ctx: int, clock: Callable[[], float]) -> None:
        self._model, self._prompt, self._clock = model, prompt, clock
        self._context = _Context(model, batch, model.n_threads, n_ctx)
        self._tokens: list[int] = []
        self._picks: _Picks = []

    def close(self) -> None:
        """Free the context."""
        self._context.close()

    def begin(self, params: Params, chains: ExitStack | None) -> None:
        """Begin the texts anew. If ``chains`` is given, llama.cpp's sampler chains pick the tokens.

        ``chains`` frees these sampler chains.
        """
        context, model = self._context, self._model
        for cache in context._caches:
            row = context._prompt(cache, self._prompt)
        best = np.argsort(-row_of(row, model.n_vocab), kind="stable")[: len(context._caches)]
        self._tokens = best.tolist()
        self._picks = []
        for token in self._tokens:
            if chains is None:
                sampler = Sampler(model.n_vocab, params)
                sampler.prime(self._prompt)
                sampler.accept(token)
                self._picks.append(_pick_of(sampler))
            else:
                chain = _chain(params)
                chains.callback(llama_cpp.llama_sampler_free, chain)
                self._picks.append(_pick_of_llama(chain, context._context))

    def step(self) -> tuple[float, float]:
        """Write one token of each text. Return (seconds of the decode, seconds of the sampling)."""
        context = self._context
        batch = [
            (token, cache.n_past, cache.number) for token, cache in zip(self._tokens, context._caches, strict=True)
        ]
        start = self._clock()
        rows = context._decode(batch, wanted=len(batch))
        decoded = self._clock()
        self._tokens = [pick(row, i) for i, (pick, row) in enumerate(zip(self._picks, rows, strict=True))]
        sampled = self._clock()
        for cache in context._caches:
            cache.n_past += 1
        return decoded - start, sampled - decoded


def _pick_of(sampler: Sampler) -> Callable[[Any, int], int]:
    step_at = sampler.step_at
    return lambda row, _: step_at(row)[0]


def _pick_of_llama(chain: Any, context: Any) -> Callable[[Any, int], int]:
    sample = llama_cpp.llama_sampler_sample  # builds the candidates, applies the chain and accepts the token
    return lambda _, i: int(sample(chain, context, i))


def _chain(params: Params) -> Any:
    """Return llama.cpp's own sampler chain for settings without penalties, in llama.cpp's usual order."""
    add, chain = llama_cpp.llama_sampler_chain_add, llama_cpp.llama_sampler_chain_init(_chain_params())
    if params.temperature == 0:
        add(chain, llama_cpp.llama_sampler_init_greedy())
        return chain
    if params.top_k:
        add(chain, llama_cpp.llama_sampler_init_top_k(params.top_k))
    if params.top_p < 1:
        add(chain, llama_cpp.llama_sampler_init_top_p(params.top_p, 1))
    if params.min_p > 0:
        add(chain, llama_cpp.llama_sampler_init_min_p(params.min_p, 1))
    add(chain, llama_cpp.llama_sampler_init_temp(params.temperature))
    add(chain, llama_cpp.llama_sampler_init_dist(params.seed % 2**32))
    return chain


def _chain_params() -> Any:
    return llama_cpp.llama_sampler_chain_default_params()
