"""Write answers to prompts with each rule, greedily.

    python bench/simple_rule/write.py OUT.jsonl [--rules NAME ...] [--prompts FILE] [-n 512]

"today" is the sampler with its default settings. A run that was broken off goes on where it ended.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rules import RULES, Classes, Rule, State

from lzsampler import Params
from lzsampler._check import Tokens
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.many import Request, generate_many
from lzsampler.evaluation.tasks import read_tasks
from lzsampler.llama.model import Model
from lzsampler.models import everyday_prompts, find_model


class Greedy:
    """The likeliest token after the costs of a rule."""

    def __init__(self, rule: Rule | None, classes: Classes) -> None:
        self._state = None if rule is None else State(rule, classes)

    def prime(self, tokens: Tokens) -> None:
        """Leave the prompt out: it is no part of the text."""

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Pick a token."""
        if self._state is None:
            return int(np.argmax(logits))
        tokens, costs = self._state.costs()
        row = logits.copy()
        row[tokens] -= costs.astype(np.float32)
        return int(np.argmax(row))

    def accept(self, token: int) -> None:
        """Take a token."""
        if self._state is not None:
            self._state.accept(token)


def main() -> None:
    """Write the answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.jsonl")
    parser.add_argument("-m", "--model", default="smollm2", help="name or file (default: smollm2)")
    parser.add_argument("--prompts", type=Path, default=everyday_prompts(), help="(default: the everyday prompts)")
    parser.add_argument("--rules", nargs="+", default=["today", *RULES], metavar="NAME", help="(default: all)")
    parser.add_argument("-n", type=int, default=512, help="tokens of an answer at most (default: 512)")
    parser.add_argument("-np", type=int, default=16, help="answers at a time (default: 16)")
    arguments = parser.parse_args()
    tasks, _ = read_tasks(arguments.prompts)
    done = set()
    if arguments.out.exists():
        with arguments.out.open(encoding="utf-8") as file:
            done = {(row["rule"], row["id"]) for row in map(json.loads, file)}
    with Model(find_model(arguments.model), n_ctx=1024, n_threads=1) as model, arguments.out.open("a") as file:
        classes = Classes.of(model.piece(token) for token in range(model.n_vocab))

        def requests() -> Iterator[Request]:
            for name in arguments.rules:
                for task in tasks:
                    if (name, task.id) in done:
                        continue
                    params = Params.recommended(model, temperature=0.0) if name == "today" else Params(temperature=0.0)
                    rule = RULES.get(name)
                    own = None if name == "today" else lambda rule=rule: Greedy(rule, classes)
                    yield Request(
                        (name, task.id), task.prompt, GenerationConfig(params, max_tokens=arguments.n), sampler=own
                    )

        for request, answer in generate_many(model, requests(), n_parallel=arguments.np, n_threads=1, n_contexts=1):
            if isinstance(answer, Exception):
                raise answer
            name, key = request.id
            row = {
                "rule": name,
                "id": key,
                "text": answer.text,
                "tokens": len(answer.tokens),
                "finish": answer.finish_reason,
            }
            file.write(json.dumps(row) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
