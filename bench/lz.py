"""The LZ penalty of one token: accept (match index kept up to date) and edits, over windows and kinds of history.

    python bench/lz.py [--rule paper] [--rounds 300] [--json]

Histories: random tokens of a large vocabulary (many distinct tokens, hardly a match), natural ones (a book through the
embedded model's tokenizer), a loop of 50 tokens (one position in 50 matches the whole buffer), and one token over and
over (every position does). Medians in microseconds; the window is full before the clock starts. `x scan` is the time of
both in scans of a row of 151,936 logits for its maximum, by numpy.
"""

import argparse
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt

from lzsampler import Params, Sampler
from lzsampler._ffi import ffi, lib
from lzsampler.llama import llama_cpp
from lzsampler.models import default_model
from lzsampler.params import Rule
from measure import interleave, report, rows

N_VOCAB = 151936
BOOK = Path(__file__).with_name("train_embedded") / "corpus" / "melville-moby_dick.txt"
WINDOWS = (64, 512, 2048, 8192, 32768, 131072)
ROW = rows(N_VOCAB, "gaussian", 1)[0]


def histories(n: int) -> dict[str, npt.NDArray[np.int32]]:
    """Return histories of n tokens: kind -> int32[n]."""
    rng = np.random.default_rng(2)
    llm = llama_cpp.Llama(str(default_model()), vocab_only=True, verbose=False)
    natural = llm.tokenize(BOOK.read_bytes(), add_bos=False)
    llm.close()
    return {
        "random": rng.integers(0, N_VOCAB, n).astype(np.int32),
        "natural": np.array(natural[:n], np.int32),
        "loop": np.resize(rng.integers(0, N_VOCAB, 50), n).astype(np.int32),
        "one token": np.full(n, 7, np.int32),
    }


class Steps:
    """The two halves of a token's work, on a sampler whose window is full."""

    def __init__(self, window: int, tokens: npt.NDArray[np.int32], rule: Rule) -> None:
        params = Params(lz_penalty=0.15, lz_window=window, lz_rule=rule, history="all")
        self.sampler = Sampler(N_VOCAB, params)
        self.sampler.prime(tokens[: window + 64])
        self.rest = tokens[window + 64 :].tolist()
        self.n = ffi.new("size_t *")

    def accept(self, i: int) -> None:
        lib.lzs_accept(self.sampler.handle, self.rest[i])

    def edits(self, _: int) -> None:
        lib.lzs_edits(self.sampler.handle, self.n)

    def call(self, _: int) -> None:
        lib.lzs_n_vocab(self.sampler.handle)

    def scan(self, _: int) -> None:
        ROW.max()

    def nothing(self, _: int) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, nargs="*", default=WINDOWS)
    parser.add_argument("--rule", choices=get_args(Rule), default="default")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = []
    for window in arguments.windows:
        for kind, tokens in histories(window + 64 + arguments.rounds + 3).items():
            steps = Steps(window, tokens, arguments.rule)
            times = interleave(
                {
                    "accept": (steps.nothing, steps.accept),
                    "edits": (steps.nothing, steps.edits),
                    "call": (steps.nothing, steps.call),
                    "scan": (steps.scan, steps.scan),  # the row is warm
                },
                arguments.rounds,
            )
            median = {name: float(np.median(t)) for name, t in times.items()}
            both = float(np.median(times["accept"] + times["edits"]))
            results.append(
                {
                    "window": window,
                    "history": kind,
                    "edits": int(steps.n[0]),
                    "accept us": median["accept"],
                    "edits us": median["edits"],
                    "both us": both,
                    "x scan": both / median["scan"],
                    "of which two calls us": 2 * median["call"],
                    "bytes": steps.sampler.memory,
                }
            )
    report(results, arguments.json)


if __name__ == "__main__":
    main()
