"""What the preloaded library does in a stock llama-server: loops, and the speed of a token.

    python bench/servers.py LLAMA_SERVER [--model smollm2] [--prompts 20]

Two servers run at once, without the library and with it, and answer in turn. First the plain one answers prompts of
`search_prompts` greedily, up to 400 tokens, until ``--prompts`` of the answers loop by the audit. The other one answers
the same prompts. Then both do at temperature 0.8, with equal seeds. Speed: 200 tokens of each of 5 prompts, end tokens
ignored, 6 rounds in turn, every other round backwards; the ratio of tokens a second is paired, with a 95 % interval of
Student's t of the logarithms.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from llama_server import Server, Servers
from lzsampler import audit
from lzsampler.models import find_model, search_prompts
from lzsampler.util.clustered import student

N_TOKENS, N_FAST, ROUNDS, FAST_PROMPTS = 400, 200, 6, 5


def answer(server: Server, messages: Any, n_tokens: int, **settings: Any) -> tuple[str, float]:
    """Return the answer, and the tokens a second of its generation."""
    body = {"messages": messages, "max_tokens": n_tokens, "cache_prompt": False, **settings}
    made = server.post("/v1/chat/completions", **body)
    return str(made["choices"][0]["message"]["content"]), float(made["timings"]["predicted_per_second"])


def looping(server: Server, prompts: list[Any], **settings: Any) -> int:
    return sum(audit(answer(server, messages, N_TOKENS, **settings)[0]).looping for messages in prompts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--prompts", type=int, default=20)
    options = parser.parse_args()
    lines = search_prompts().read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["messages"] for line in lines]
    servers = Servers(options.server, Path(tempfile.mkdtemp()))
    words: list[str | Path] = ["-m", find_model(options.model), "-np", "1", "-c", "2048", "-t", "2"]
    try:
        plain, ours = servers(*words, settings=None), servers(*words, settings={"preset": "default"})
        chosen: list[Any] = []
        n_asked = 0
        while len(chosen) < options.prompts and n_asked < len(questions):
            if looping(plain, [questions[n_asked]], temperature=0):
                chosen.append(questions[n_asked])
            n_asked += 1
        print(f"greedy: {len(chosen)} of the first {n_asked} answers loop without the library", flush=True)
        print(f"greedy: {looping(ours, chosen, temperature=0)} of these {len(chosen)} loop with it", flush=True)
        for name, server in (("without", plain), ("with", ours)):
            n = looping(server, chosen, temperature=0.8, seed=1)
            print(f"temperature 0.8: {n} of {len(chosen)} loop {name} it", flush=True)
        speeds = []
        for round_ in range(ROUNDS):
            for messages in chosen[:FAST_PROMPTS]:
                order = [plain, ours] if round_ % 2 else [ours, plain]
                settings = {"temperature": 0, "ignore_eos": True}
                speed = {server: answer(server, messages, N_FAST, **settings)[1] for server in order}
                speeds.append((speed[plain], speed[ours]))
        ratios = [math.log(with_it / without) for without, with_it in speeds]
        mean, half = statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(len(ratios))
        half *= student(len(ratios) - 1, 0.95)
        low, middle, high = (math.exp(mean + sign * half) for sign in (-1, 0, 1))
        medians = [statistics.median(column) for column in zip(*speeds, strict=True)]
        print(f"tokens a second: {medians[0]:.1f} without it, {medians[1]:.1f} with it")
        print(f"with / without: {middle:.3f}, 95 % interval {low:.3f} to {high:.3f}")
    finally:
        for server in servers.open:
            server.close()


if __name__ == "__main__":
    main()
