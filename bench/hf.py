"""One call of the logits processor for transformers, next to transformers' own repetition penalty.

    python bench/hf.py [--vocab 151936] [--rounds 200] [--json]

CPU, float32, one thread, interleaved in one process. Times are those of whole calls, Python included. Ours look at the
last 512 tokens of 1,024 and edit in place; theirs looks at all of them and copies the scores.
"""

import argparse
from typing import Any

import numpy as np
import torch
from transformers import RepetitionPenaltyLogitsProcessor

from lzsampler.integrations.hf import LZLogitsProcessor
from measure import interleave, report, rows

SETTINGS: dict[str, dict[str, Any]] = {
    "LZ": {},
    "LZ + repetition 1.1": {"repetition_penalty": 1.1, "penalty_window": 512},
    "off": {"lz_penalty": 0.0},
}


def measure(n_vocab: int, batch: int, rounds: int, length: int = 1024) -> list[dict[str, Any]]:
    """Return one result a setting, in microseconds a call."""
    rng = np.random.default_rng(1)
    ids = torch.from_numpy(rng.zipf(1.2, (batch, length + rounds)) % n_vocab)
    logits = torch.from_numpy(np.stack(rows(n_vocab, "peaked"))).repeat(2, 1)[:batch]
    processors = {name: LZLogitsProcessor(prompt_length=0, inplace=True, **fields) for name, fields in SETTINGS.items()}
    calls: dict[str, Any] = {**processors, "transformers": RepetitionPenaltyLogitsProcessor(1.1)}

    def runs(processor: Any) -> tuple[Any, Any]:
        scores = logits.clone()
        return lambda i: scores.copy_(logits), lambda i: processor(ids[:, : length + max(i, 0)], scores)

    median = {
        name: float(np.median(times))
        for name, times in interleave({name: runs(call) for name, call in calls.items()}, rounds).items()
    }
    return [
        {
            "V": n_vocab,
            "batch": batch,
            "setting": name,
            "ours us": median[name],
            "transformers us": median["transformers"],
        }
        for name in SETTINGS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", type=int, nargs="*", default=[151936])
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 16])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # or the wait for the other threads is what is measured
    results = [r for n in arguments.vocab for batch in arguments.batch for r in measure(n, batch, arguments.rounds)]
    report(results, arguments.json)


if __name__ == "__main__":
    main()
