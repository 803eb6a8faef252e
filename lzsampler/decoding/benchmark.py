"""`benchmark`: what sampling costs on a model, and what the LZ penalty adds to a token (the paper's Table 1)."""

from dataclasses import dataclass, replace
from statistics import median, quantiles

import numpy as np

from .._check import integer
from ..llama.model import Model, Stepper
from ..params import Params
from ..sampler import Sampler

_MOST_TOKENS = 2**20


@dataclass(frozen=True)
class Benchmark:
    """Figures of paired runs; times are medians over tokens.

    ``decode_ms``: llama.cpp's decode, milliseconds. ``sampling_us`` and ``sampling_lz_us``: sample and accept without
    and with the LZ penalty, microseconds. ``share``: the part of a token's time that sampling with LZ takes, 0..1.
    ``slowdown_percent``: by how much LZ lengthens the time of a token (decode and sampling), the median over pairs of
    runs, with its ``quartiles``. ``tokens``: tokens of a run; ``pairs``: pairs of runs.
    """

    tokens: int
    pairs: int
    decode_ms: float
    sampling_us: float
    sampling_lz_us: float
    share: float
    slowdown_percent: float
    quartiles: tuple[float, float]


def benchmark(model: Model, prompt: str, params: Params, *, tokens: int = 128, pairs: int = 10) -> Benchmark:
    """Generate after ``prompt`` with ``params`` and with the same settings without LZ, in turn, ``pairs`` times.

    Every run makes ``tokens`` tokens, past the end of the text if that comes sooner. The pairs begin with one and the
    other by turns. Raises ValueError for a prompt that leaves no room for the tokens, and when ``params`` have no LZ
    penalty.
    """
    tokens = integer("tokens", tokens, 1, _MOST_TOKENS)
    pairs = integer("pairs", pairs, 2, 10_000)
    if params.lz_penalty == 0:
        raise ValueError("lz_penalty must be above 0: the benchmark measures what it adds")
    ids = model.tokenize(prompt)
    if not ids:
        raise ValueError("the prompt is empty: give the beginning of a text")
    if len(ids) + tokens > model.n_ctx:
        raise ValueError(
            f"the prompt's {len(ids)} tokens and {tokens} more do not fit in the context of {model.n_ctx}: "
            "shorten the prompt, make fewer tokens or enlarge the context"
        )
    settings = {"plain": replace(params, lz_penalty=0.0), "lz": params}
    _run(model, ids, params, tokens)  # warms caches, threads and the clock of the processor
    decode: list[float] = []
    sampling: dict[str, list[float]] = {name: [] for name in settings}
    slowdowns = []
    for pair in range(pairs):
        whole = {}
        for name in sorted(settings, reverse=bool(pair % 2)):
            decoded, sampled = _run(model, ids, settings[name], tokens)
            decode += decoded
            sampling[name] += sampled
            whole[name] = median(d + s for d, s in zip(decoded, sampled, strict=True))
        slowdowns.append(100 * (whole["lz"] / whole["plain"] - 1))
    with_lz = median(sampling["lz"])
    low, _, high = quantiles(slowdowns, n=4)
    return Benchmark(
        tokens=tokens,
        pairs=pairs,
        decode_ms=1e3 * median(decode),
        sampling_us=1e6 * median(sampling["plain"]),
        sampling_lz_us=1e6 * with_lz,
        share=with_lz / (with_lz + median(decode)),
        slowdown_percent=median(slowdowns),
        quartiles=(low, high),
    )


def _run(model: Model, prompt: list[int], params: Params, n: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each token's decode and of its sampling."""
    sampler = Sampler(model.n_vocab, params)
    sampler.prime(prompt)
    model.keep(0)
    model.decode(prompt)
    token, stepper = sampler.step(model.logits()), Stepper(model, sampler)
    decode, sampling = [0.0], [0.0]  # after each token, from the beginning
    for _ in range(n):
        token, _ = stepper.step(token)
        decode.append(stepper.loop.decode_seconds + stepper.loop.logits_seconds)
        sampling.append(stepper.loop.sampling_seconds)
    return np.diff(decode).tolist(), np.diff(sampling).tolist()
