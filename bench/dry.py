"""DRY for one token, ours and llama.cpp's own: accept and edits, against accept and apply.

    python bench/dry.py [--windows 64 1024 32768] [--rounds 200] [--json]

Multiplier 0.8, the other numbers as llama.cpp has them; no breakers. Histories are those of `bench/lz.py`, and the
window is full before the clock starts. llama.cpp's `apply` looks up every candidate: `search` is its time with 40 of
them, which is nearly all the search for repetitions, and `llama.cpp` that with V = 151,936, as in a chain before top-k;
it is timed after the other two, since its candidates would drive them out of the caches. Ratios are of medians of one
run. llama.cpp stops at matches of 64 tokens (since its pull request 26524) and ours does not.
"""

import argparse
import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from lz import N_VOCAB, histories
from lzsampler import Params, Sampler
from lzsampler._ffi import ffi, lib
from lzsampler.llama import llama_cpp
from lzsampler.models import default_model
from measure import interleave, report

WINDOWS = (64, 1024, 32768)
MULTIPLIER = 0.8
RECORD = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class Ours:
    """accept + lzs_edits."""

    def __init__(self, window: int, tokens: npt.NDArray[np.int32]) -> None:
        params = Params(dry_multiplier=MULTIPLIER, dry_penalty_last_n=window, history="all")
        self.sampler = Sampler(N_VOCAB, params)
        self.sampler.prime(tokens[: window + 64])
        self.rest = tokens[window + 64 :].tolist()
        self.n = ffi.new("size_t *")

    def prepare(self, _: int) -> None:
        pass

    def __call__(self, i: int) -> None:
        lib.lzs_accept(self.sampler.handle, self.rest[i])
        lib.lzs_edits(self.sampler.handle, self.n)


class Theirs:
    """llama_sampler_accept + llama_sampler_apply of llama.cpp's DRY, on so many candidates."""

    def __init__(self, llm: Any, window: int, tokens: npt.NDArray[np.int32], n_candidates: int) -> None:
        vocab = llama_cpp.llama_model_get_vocab(llm.model)
        numbers: tuple[float | int, ...] = (MULTIPLIER, 1.75, 2, window)
        if len(llama_cpp.llama_sampler_init_dry.argtypes) == 8:  # older ones ask for the context of the training
            numbers = (window, *numbers)
        self.sampler = llama_cpp.llama_sampler_init_dry(vocab, *numbers, (ctypes.c_char_p * 0)(), 0)
        for token in tokens[: window + 64].tolist():
            llama_cpp.llama_sampler_accept(self.sampler, token)
        self.rest = tokens[window + 64 :].tolist()
        self.candidates = np.zeros(n_candidates, RECORD)

    def prepare(self, _: int) -> None:
        self.candidates["id"], self.candidates["logit"] = np.arange(len(self.candidates)), 0
        data = self.candidates.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        self.array = llama_cpp.llama_token_data_array(data, len(self.candidates), -1, False)

    def __call__(self, i: int) -> None:
        llama_cpp.llama_sampler_accept(self.sampler, self.rest[i])
        llama_cpp.llama_sampler_apply(self.sampler, ctypes.byref(self.array))

    def close(self) -> None:
        llama_cpp.llama_sampler_free(self.sampler)


def measure(llm: Any, window: int, rounds: int) -> list[dict[str, Any]]:
    """Return one result a history, in microseconds."""
    results = []
    for kind, tokens in histories(window + 64 + rounds + 3).items():  # interleave() warms up with three rounds
        ours = Ours(window, tokens)
        search, whole = (Theirs(llm, window, tokens, n) for n in (40, N_VOCAB))
        times = interleave({"ours": (ours.prepare, ours), "search": (search.prepare, search)}, rounds)
        times |= interleave({"llama.cpp": (whole.prepare, whole)}, rounds)
        search.close()
        whole.close()
        median = {name: float(np.median(t)) for name, t in times.items()}
        results.append(
            {
                "window": window,
                "history": kind,
                "edits": int(ours.n[0]),
                "ours us": median["ours"],
                "search us": median["search"],
                "llama.cpp us": median["llama.cpp"],
                "search / ours": median["search"] / median["ours"],
                "llama.cpp / ours": median["llama.cpp"] / median["ours"],
            }
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, nargs="*", default=WINDOWS)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    llm = llama_cpp.Llama(str(default_model()), vocab_only=True, verbose=False)
    results = [row for window in arguments.windows for row in measure(llm, window, arguments.rounds)]
    llm.close()
    report(results, arguments.json)


if __name__ == "__main__":
    main()
