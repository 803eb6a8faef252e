"""What `attach` costs a token of llama-cpp-python: runs without it, with penalties off and with LZ, in turn.

    python bench/dropin.py [--model MODEL.gguf] [--rounds 60] [--tokens 100] [--json]

A run is `Llama.generate` over the same prompt, greedy, the prompt not timed; every other round goes backwards. The text
with LZ (0.15) is another one, but decodes as long. Cost: median and quartiles over the rounds of run / untouched run.
Since a busy machine makes that swing by more than there is to see, the last column is the time a token with the decode
left out (the logits stay those of the prompt): what is more than in the first row is ours.
"""

import argparse
import itertools
from contextlib import nullcontext
from time import perf_counter_ns
from typing import Any

import numpy as np

from lzsampler import Params
from lzsampler.dropin import attach
from lzsampler.llama import llama_cpp
from lzsampler.models import default_model, find_model
from measure import report

PROMPT = b"Between Barton and Delaford, there was that"
RUNS = {"untouched": None, "attached, off": Params(), "attached, LZ": Params(lz_rule="paper", lz_penalty=0.15)}


def milliseconds_a_token(llm: Any, n_tokens: int) -> float:
    """Time one run."""
    tokens = llm.generate(llm.tokenize(PROMPT), temp=0.0)
    next(tokens)
    start = perf_counter_ns()
    n = len(list(itertools.islice(tokens, n_tokens)))
    elapsed = perf_counter_ns() - start
    tokens.close()
    return elapsed / 1e6 / n


def microseconds_without_decode(llm: Any, params: Params | None, n_tokens: int) -> float:
    """Time all but the decode: the median token of a run in which `eval` only writes the token down."""

    def write_down(tokens: list[int]) -> None:
        llm.input_ids[llm.n_tokens] = tokens[0]
        llm.n_tokens += 1

    with attach(llm, params) if params else nullcontext():
        tokens = llm.generate(llm.tokenize(PROMPT), temp=0.0)
        next(tokens)
        llm.eval = write_down
        times = np.empty(n_tokens)
        for i in range(n_tokens):
            start = perf_counter_ns()
            next(tokens)
            times[i] = perf_counter_ns() - start
        del llm.eval
        tokens.close()
        llm.reset()
    return float(np.median(times)) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=find_model, default=default_model())
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    llm = llama_cpp.Llama(str(arguments.model), n_ctx=512, n_threads=1, verbose=False)
    times = {name: np.empty(arguments.rounds) for name in RUNS}
    for i in range(-1, arguments.rounds):  # one round to warm up
        for name in list(RUNS)[:: 1 if i % 2 else -1]:
            params = RUNS[name]
            with attach(llm, params) if params else nullcontext():
                elapsed = milliseconds_a_token(llm, arguments.tokens)
            if i >= 0:
                times[name][i] = elapsed
    bare = {name: microseconds_without_decode(llm, params, 400) for name, params in RUNS.items()}
    llm.close()
    results = []
    for name in RUNS:
        low, median, high = np.percentile(100 * (times[name] / times["untouched"] - 1), [25, 50, 75])
        results.append(
            {
                "run": name,
                "ms/token": float(np.median(times[name])),
                "cost %": f"{median:+.2f}",
                "quartiles": f"{low:+.2f} to {high:+.2f}",
                "without decode us": bare[name],
            }
        )
    report(results, arguments.json)


if __name__ == "__main__":
    main()
