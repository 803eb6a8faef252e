"""One token: ours, llama.cpp's own chain through the installed libllama, and the floor, numpy's scan for the maximum.

    python bench/sampler.py [--vocab 151936] [--logits gaussian] [--settings "top-p 0.95"] [--rounds 200] [--json]

Interleaved in one process. Ours is timed as accept + sample, so the edits are made anew for every token. llama.cpp is
timed as accept + apply of the chain: the array of candidates that it fills from the logits first is made before the
clock starts, in its favour. Logits and candidates are warm in the caches. Ratios are of medians.
`distribution` is accept + lzs_distribution with top-k 40, for which llama.cpp has nothing to compare with.
"""

import argparse
import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from lzsampler import Params, Sampler
from lzsampler._ffi import ffi, lib
from lzsampler.llama import llama_cpp
from measure import Row, interleave, report, rows

CHAIN: dict[str, Any] = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
PENALTIES: dict[str, Any] = {"repetition_penalty": 1.1, "frequency_penalty": 0.1, "penalty_window": 512}
LZ: dict[str, Any] = {"lz_rule": "paper", "lz_penalty": 0.15}
SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "greedy + LZ": {"temperature": 0.0, **LZ},
    "chain": CHAIN,
    "chain + penalties 512": {**CHAIN, **PENALTIES},
    "chain + penalties 512 + LZ": {**CHAIN, **PENALTIES, **LZ},
    "top-k 1000": {"top_k": 1000},
    "top-k 3000": {"top_k": 3000},
    "top-p 0.95": {"top_p": 0.95},
    "min-p 0.05": {"min_p": 0.05},
    "temperature 0.8": {"temperature": 0.8},
    "distribution": {"top_k": 40},
}


def history(n_vocab: int, n: int = 700) -> list[int]:
    """Half random tokens, half from a few hundred, with a phrase that comes back: as texts are."""
    rng = np.random.default_rng(1)
    tokens = np.where(rng.random(n) < 0.5, rng.integers(0, n_vocab, n), rng.zipf(1.3, n) % min(n_vocab, 400))
    tokens[200:230] = tokens[500:530] = tokens[-30:]
    return [int(t) for t in tokens]


class Ours:
    """accept + lzs_sample, through cffi."""

    def __init__(self, n_vocab: int, params: Params, logits: list[Row]) -> None:
        self.sampler = Sampler(n_vocab, params)
        for token in history(n_vocab):
            self.sampler.accept(token)
        self.pointers = [ffi.from_buffer("float[]", row) for row in logits]
        self.token = ffi.new("int32_t *")
        self.stream = history(n_vocab, 4096)

    def __call__(self, i: int) -> None:
        lib.lzs_accept(self.sampler.handle, self.stream[i % 4096])
        lib.lzs_sample(self.sampler.handle, self.pointers[i % len(self.pointers)], self.token)


class Distribution(Ours):
    """accept + lzs_distribution."""

    def __init__(self, n_vocab: int, params: Params, logits: list[Row]) -> None:
        super().__init__(n_vocab, params, logits)
        self.ids, self.probabilities = ffi.new("int32_t[]", n_vocab), ffi.new("float[]", n_vocab)
        self.n = ffi.new("size_t *")

    def __call__(self, i: int) -> None:
        lib.lzs_accept(self.sampler.handle, self.stream[i % 4096])
        row = self.pointers[i % len(self.pointers)]
        lib.lzs_distribution(self.sampler.handle, row, self.ids, self.probabilities, len(self.ids), self.n)


class Theirs:
    """llama_sampler_accept + llama_sampler_apply of llama.cpp's own chain in its own order."""

    def __init__(self, n_vocab: int, params: Params, logits: list[Row]) -> None:
        make, add = llama_cpp, llama_cpp.llama_sampler_chain_add
        self.chain = make.llama_sampler_chain_init(make.llama_sampler_chain_default_params())
        if params.repetition_penalty != 1 or params.frequency_penalty != 0:
            add(
                self.chain,
                make.llama_sampler_init_penalties(
                    n_vocab, params.penalty_window, params.repetition_penalty, params.frequency_penalty, 0.0
                ),
            )
        if params.temperature == 0:
            add(self.chain, make.llama_sampler_init_greedy())
        else:
            if params.top_k:
                add(self.chain, make.llama_sampler_init_top_k(params.top_k))
            if params.top_p < 1:
                add(self.chain, make.llama_sampler_init_top_p(params.top_p, 1))
            if params.min_p > 0:
                add(self.chain, make.llama_sampler_init_min_p(params.min_p, 1))
            add(self.chain, make.llama_sampler_init_temp(params.temperature))
            add(self.chain, make.llama_sampler_init_dist(1))
        for token in history(n_vocab):
            make.llama_sampler_accept(self.chain, token)
        record = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        self.sources = [np.zeros(n_vocab, record) for _ in logits]
        for source, row in zip(self.sources, logits, strict=True):
            source["id"], source["logit"] = np.arange(n_vocab), row
        self.work = np.zeros(n_vocab, record)
        self.stream = history(n_vocab, 4096)

    def fill(self, i: int) -> None:
        """Make the candidates of a round, before the clock."""
        source = self.sources[i % len(self.sources)]
        for field in ("id", "logit", "p"):  # plain stores, as llama.cpp's; a long memcpy would go around the caches
            self.work[field] = source[field]
        data = self.work.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        self.array = llama_cpp.llama_token_data_array(data, len(self.work), -1, False)

    def __call__(self, i: int) -> None:
        llama_cpp.llama_sampler_accept(self.chain, self.stream[i % 4096])
        llama_cpp.llama_sampler_apply(self.chain, ctypes.byref(self.array))

    def close(self) -> None:
        llama_cpp.llama_sampler_free(self.chain)


def measure(n_vocab: int, kind: str, settings: list[str], rounds: int) -> list[dict[str, Any]]:
    """Return one result a setting, in microseconds a token."""
    logits = rows(n_vocab, kind)
    if not logits:  # no recorded vocabulary of this size
        return []

    def scan(i: int) -> None:
        logits[i % len(logits)].max()

    results = []
    for name in settings:
        params = Params(**SETTINGS[name])
        theirs = Theirs(n_vocab, params, logits) if name != "distribution" else None
        ours = Ours(n_vocab, params, logits) if theirs else Distribution(n_vocab, params, logits)
        functions: dict[str, tuple[Callable[[int], object], Callable[[int], object]]] = {
            "floor": (scan, scan),
            "ours": (scan, ours),
        }
        if theirs:
            functions["llama.cpp"] = (theirs.fill, theirs)
        times = interleave(functions, rounds)
        if theirs:
            theirs.close()
        median = {name: float(np.median(t)) for name, t in times.items()}
        result = {
            "V": n_vocab,
            "logits": kind,
            "setting": name,
            "ours us": median["ours"],
            "p99": float(np.percentile(times["ours"], 99)),
            "floor us": median["floor"],
            "ours / floor": median["ours"] / median["floor"],
        }
        if theirs:
            result |= {"llama.cpp us": median["llama.cpp"], "llama.cpp / ours": median["llama.cpp"] / median["ours"]}
        results.append(result)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", type=int, nargs="*", default=[32000, 128256, 151936, 262144])
    parser.add_argument("--logits", nargs="*", default=["gaussian", "peaked", "text", "equal"])
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = []
    for n_vocab in arguments.vocab:
        for kind in arguments.logits:
            results += measure(n_vocab, kind, arguments.settings, arguments.rounds)
    report(results, arguments.json)


if __name__ == "__main__":
    main()
