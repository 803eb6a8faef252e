"""What the graph sampler costs next to the CPU's: microseconds a token of whole texts.

    python bench/graph.py [-m MODEL] [-ngl N] [--tokens 128] [--rounds 5] [--json]

Texts with the same settings take turns: no penalty with the CPU sampler, then the penalties on the CPU and in the
graph. A figure is the time of a token, decode included, the median over the rounds; "to none" is its ratio to the first
line of its group, taken in each round. The text with penalties is another one than that without, of as many tokens.
On llama.cpp's CPU backend nothing is gained by the graph, which then is more work for the same cores: this measures the
work. What it is for, a GPU that need not send its logits, only a machine with one can show.
"""

import argparse
from pathlib import Path
from statistics import median
from typing import Any

from lzsampler import Params
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generate import generate
from lzsampler.llama import Model
from lzsampler.llama.graph import Place
from lzsampler.models import default_model
from measure import report

PROMPT = "Once upon a time there was a king who had three sons, and"
GROUPS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "drawn": {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "seed": 1},
}
PENALTIES: dict[str, dict[str, Any]] = {
    "LZ": {"lz_penalty": 0.3, "lz_run_penalty": 0.5},
    "LZ, repetition": {"lz_penalty": 0.3, "lz_run_penalty": 0.5, "repetition_penalty": 1.1, "penalty_window": 512},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", type=Path, default=default_model(), help="GGUF; else the embedded model")
    parser.add_argument("-ngl", "--n-gpu-layers", type=int, default=-1)
    parser.add_argument("-t", "--threads", type=int)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    table: list[dict[str, Any]] = []
    with Model(arguments.model, n_gpu_layers=arguments.n_gpu_layers, n_threads=arguments.threads) as model:
        for group, sampling in GROUPS.items():
            rows: list[tuple[str, Place, Params]] = [("none", "cpu", Params(**sampling))]
            for name, penalties in PENALTIES.items():
                rows += [(name, place, Params(**sampling, **penalties)) for place in ("cpu", "graph")]
            times = [[_token(model, row, arguments.tokens) for row in rows] for _ in range(arguments.rounds + 1)][1:]
            for at, (name, place, _) in enumerate(rows):
                microseconds = median(one[at] for one in times)
                ratio = median(one[at] / one[0] for one in times)
                table.append(
                    {"draw": group, "penalties": name, "sampler": place, "token us": microseconds, "to none": ratio}
                )
        device = "a GPU" if model.on_device else "the CPU backend"
    report(table, arguments.json)
    if not arguments.json:
        print(f"on {device}")


def _token(model: Model, row: tuple[str, Place, Params], n: int) -> float:
    """Return the microseconds of a token of a text, without those of its prompt."""
    _, place, params = row
    made = generate(model, PROMPT, GenerationConfig(params, max_tokens=n, ignore_eos=True, sampler=place))
    return 1e6 * (made.timings.total - made.timings.prompt) / n


if __name__ == "__main__":
    main()
