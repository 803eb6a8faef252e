"""What our `penalties` sampler adds to a token inside llama.cpp's chain, and where that time goes.

    python bench/chain_sampler.py [--vocab 32000 151936] [--rounds 400] [--json]

The chain is top-k 40, top-p 0.95, min-p 0.05, temperature 0.8, dist; candidates are made before the clock starts. Our
sampler comes first, with LZ over 512 tokens. Timed: accept + apply. Four chains take turns, each with rows of its own
in a round: the second of two on one row would find the branch predictor trained. `with` - `without` is what users pay:

- `presence`: our sampler with all penalties off, so the cost of calling it at all;
- `other logits`: the chain without our sampler on logits that were penalised beforehand, so what the others pay for
  finding other candidates;
- `edits`: the rest, our own work: accept, a few hundred edits, as many 12-byte records at random places of the array
  of candidates, 1.8 MB at V = 151,936. In a loop of C with nothing else in the caches it takes 0.2 + 0.4 + 1.0 us; here
  the other chains' rows, and in a program the model's weights, have gone through them since the last token.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from lzsampler import Params, Sampler
from lzsampler.llama import llama_cpp, penalties_sampler
from measure import Row, interleave, report, rows
from sampler import CHAIN, LZ, Theirs, history

ROWS = 64


def chain_with(n_vocab: int, logits: list[Row], params: Params | None) -> Theirs:
    """Return llama.cpp's chain behind our sampler with these penalties; without it for None."""
    theirs = Theirs(n_vocab, Params(**CHAIN), logits)
    if params is None:
        return theirs
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    llama_cpp.llama_sampler_chain_add(chain, penalties_sampler(primed(n_vocab, params)))
    while llama_cpp.llama_sampler_chain_n(theirs.chain):
        llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_chain_remove(theirs.chain, 0))
    theirs.close()
    theirs.chain = chain
    return theirs


def primed(n_vocab: int, params: Params) -> Sampler:
    """Return a sampler whose text is the benches' history."""
    sampler = Sampler(n_vocab, params)
    for token in history(n_vocab):
        sampler.accept(token)
    return sampler


def measure(n_vocab: int, rounds: int) -> dict[str, Any]:
    """Return one row of the table, in microseconds."""
    logits = rows(n_vocab, "gaussian", ROWS)
    penalised = [row.copy() for row in logits]
    for row in penalised:
        primed(n_vocab, Params(**LZ)).process(row)
    chains = {
        "without": chain_with(n_vocab, logits, None),
        "presence": chain_with(n_vocab, logits, Params()),
        "other": chain_with(n_vocab, penalised, None),
        "with": chain_with(n_vocab, logits, Params(**LZ)),
    }

    def turn(theirs: Theirs, shift: int) -> tuple[Callable[[int], object], Callable[[int], object]]:
        return (lambda i: theirs.fill(i + shift)), theirs

    shifts = range(0, ROWS, ROWS // len(chains))
    times = interleave(
        {name: turn(theirs, shift) for (name, theirs), shift in zip(chains.items(), shifts, strict=True)}, rounds
    )
    for theirs in chains.values():
        theirs.close()
    median = {name: float(np.median(t)) for name, t in times.items()}
    added = times["with"] - times["without"]
    total, presence, other = (median[name] - median["without"] for name in ("with", "presence", "other"))
    return {
        "V": n_vocab,
        "without us": median["without"],
        "with us": median["with"],
        "added us": float(np.median(added)),
        "quartiles of pairs": " to ".join(f"{q:.1f}" for q in np.percentile(added, [25, 75])),
        "of it presence": presence,
        "other logits": other,
        "edits": total - presence - other,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", type=int, nargs="*", default=[32000, 151936])
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report([measure(n_vocab, arguments.rounds) for n_vocab in arguments.vocab], arguments.json)


if __name__ == "__main__":
    main()
