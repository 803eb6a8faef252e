"""What `lzs_rewind` of one token costs with the LZ penalty, over windows and kinds of text.

    python bench/rewind.py [--rounds 200] [--json]

A refused draft is taken back in this way. In turn, a token is accepted, then taken back and accepted again; `rewind` is
the median of the second time less the first, so a call through cffi (about 0.2 us) is in it. Texts: a loop of 7 tokens,
one token over and over, and a book. `x scan` is the same in scans of a row of 151,936 logits for its maximum, by numpy.
"""

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

from lz import N_VOCAB, ROW, histories
from lzsampler import Params, Sampler
from lzsampler._ffi import lib
from measure import interleave, report

SIZES = ((512, 32), (4096, 256), (32768, 1024), (131072, 4096))  # window, buffer


class Rewinds:
    """Accepts the tokens of a text one by one; the window is full."""

    def __init__(self, window: int, buffer: int, tokens: npt.NDArray[np.int32]) -> None:
        self.sampler = Sampler(
            N_VOCAB, Params(lz_rule="paper", lz_penalty=0.15, lz_window=window, lz_buffer=buffer, history="all")
        )
        self.sampler.prime(tokens[: window + 64])
        self.rest = tokens[window + 64 :].tolist()

    def accept(self, i: int) -> None:
        lib.lzs_accept(self.sampler.handle, self.rest[i])

    def again(self, i: int) -> None:
        lib.lzs_rewind(self.sampler.handle, 1)
        lib.lzs_accept(self.sampler.handle, self.rest[i])

    def scan(self, _: int) -> None:
        ROW.max()

    def nothing(self, _: int) -> None:
        pass


def measure(window: int, buffer: int, rounds: int) -> list[dict[str, Any]]:
    """Return one result a text, in microseconds."""
    n = window + 64 + rounds + 3  # interleave() warms up with three rounds
    made = histories(n)
    texts = {
        "loop of 7": np.resize(made["random"][:7], n),
        "one token": made["one token"],
        "natural": made["natural"],
    }
    results = []
    for kind, tokens in texts.items():
        rewinds = Rewinds(window, buffer, tokens)
        times = interleave(
            {
                "accept": (rewinds.nothing, rewinds.accept),
                "again": (rewinds.nothing, rewinds.again),
                "scan": (rewinds.scan, rewinds.scan),
            },
            rounds,
        )
        rewind = float(np.median(times["again"] - times["accept"]))
        results.append(
            {
                "window": window,
                "buffer": buffer,
                "text": kind,
                "rewind us": rewind,
                "accept us": float(np.median(times["accept"])),
                "x scan": rewind / float(np.median(times["scan"])),
            }
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report([row for sizes in SIZES for row in measure(*sizes, arguments.rounds)], arguments.json)


if __name__ == "__main__":
    main()
