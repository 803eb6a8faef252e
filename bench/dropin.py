"""What `attach` costs a token of llama-cpp-python: runs with and without it, in pairs.

    python bench/dropin.py [--model MODEL.gguf] [--pairs 40] [--tokens 128] [--json]

A run is `Llama.generate` over the same prompt, greedy, prompt not timed; the two of a pair take turns in going first.
`off` is attached with all penalties off, `on` with LZ at 0.15, whose text is another one but decodes as long.
"""

import argparse
import itertools
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from lzsampler import Params
from lzsampler.llama import attach, llama_cpp
from lzsampler.models import default_model
from measure import report

PROMPT = b"Between Barton and Delaford, there was that"


def milliseconds_a_token(llm: Any, n_tokens: int) -> float:
    """Time one run."""
    tokens = llm.generate(llm.tokenize(PROMPT), temp=0.0)
    next(tokens)
    start = perf_counter_ns()
    n = len(list(itertools.islice(tokens, n_tokens)))
    elapsed = perf_counter_ns() - start
    tokens.close()
    return elapsed / 1e6 / n


def pairs(llm: Any, params: Params, n_pairs: int, n_tokens: int) -> dict[str, Any]:
    """Return one row of the table."""

    def attached() -> float:
        with attach(llm, params):
            return milliseconds_a_token(llm, n_tokens)

    times = []
    for i in range(-1, n_pairs):  # one pair to warm up
        if i % 2:
            first = milliseconds_a_token(llm, n_tokens)
            pair = (first, attached())
        else:
            second = attached()
            pair = (milliseconds_a_token(llm, n_tokens), second)
        if i >= 0:
            times.append(pair)
    without, with_it = np.array(times).T
    low, median, high = np.percentile(100 * (with_it / without - 1), [25, 50, 75])
    return {
        "penalties": "LZ 0.15" if params.lz_penalty else "off",
        "untouched ms/token": float(np.median(without)),
        "attached ms/token": float(np.median(with_it)),
        "cost % (median of pairs)": f"{median:+.2f}",
        "quartiles": f"{low:+.2f} to {high:+.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=default_model())
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    llm = llama_cpp.Llama(str(arguments.model), n_ctx=512, n_threads=1, verbose=False)
    settings = (Params(), Params(lz_penalty=0.15))
    report([pairs(llm, params, arguments.pairs, arguments.tokens) for params in settings], arguments.json)
    llm.close()


if __name__ == "__main__":
    main()
