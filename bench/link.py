"""What our `penalties` link adds to a token inside llama.cpp's chain: the chain with and without it, in turn.

    python bench/link.py [--vocab 151936] [--rounds 400] [--json]

The chain is top-k 40, top-p 0.95, min-p 0.05, temperature 0.8, dist; candidates are made before the clock starts. The
link comes first, with LZ over 512 tokens. Timed: accept + apply. The two take different rows in a round, out of many:
the second of two on one row would find the branch predictor trained. About 1 us of the difference is not its work
but that of the rest of the chain on changed logits.
"""

import argparse

import numpy as np

from lzsampler import Params, Sampler
from lzsampler.llama import llama_cpp, penalties
from measure import interleave, report, rows
from sampler import CHAIN, LZ, Theirs, history

ROWS = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", type=int, nargs="*", default=[32000, 151936])
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = []
    for n_vocab in arguments.vocab:
        logits = rows(n_vocab, "gaussian", ROWS)
        without, linked = (Theirs(n_vocab, Params(**CHAIN), logits) for _ in range(2))
        source = Sampler(n_vocab, Params(**LZ))
        for token in history(n_vocab):
            source.accept(token)
        chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        llama_cpp.llama_sampler_chain_add(chain, penalties(source))
        while llama_cpp.llama_sampler_chain_n(linked.chain):
            llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_chain_remove(linked.chain, 0))
        linked.close()
        linked.chain = chain
        times = interleave(
            {"without": (without.fill, without), "linked": (lambda i: linked.fill(i + ROWS // 2), linked)},  # noqa: B023
            arguments.rounds,
        )
        added = times["linked"] - times["without"]
        results.append(
            {
                "V": n_vocab,
                "without us": float(np.median(times["without"])),
                "with us": float(np.median(times["linked"])),
                "added us (median of pairs)": float(np.median(added)),
                "quartiles": " to ".join(f"{q:.1f}" for q in np.percentile(added, [25, 75])),
            }
        )
        without.close()
        linked.close()
    report(results, arguments.json)


if __name__ == "__main__":
    main()
