"""Does greedy decoding loop, and does the LZ penalty cost anything? Without it, and with it in all three formulas.

    python bench/loops.py [--model MODEL.gguf] [-n 512] [--tasks 120] [--json]

Loops: greedy text for every prompt of data/prompts.jsonl; a loop is a unit with two distinct characters that are not
white space, repeated at least 20 times in a row. No loss: with --tasks, the share of right answers to questions of
data/tale_tasks.jsonl, as many of each kind (they suit the embedded model, which was trained on their kinds).
"""

import argparse
import json
import shlex
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from lzsampler import Params, audit
from lzsampler.generate import generate
from lzsampler.model import Model
from lzsampler.models import default_model
from lzsampler.params import CHOICES
from measure import machine

DATA = Path(__file__).with_name("data")
STRENGTH = 0.15
TWENTY_COPIES: dict[str, Any] = {"levels": "char", "near": False, "length_copies": 20}  # what a loop is here
ANSWER_TOKENS = 400  # more than any worked answer takes


def main() -> None:
    arguments = parse()
    settings = {"none": Params(temperature=0.0)}
    for formula in CHOICES["lz_formula"]:
        settings[f"LZ {STRENGTH} {formula}"] = Params(temperature=0.0, lz_penalty=STRENGTH, lz_formula=formula)  # type: ignore[arg-type]
    prompts = [row["prompt"] for row in read(DATA / "prompts.jsonl")[: arguments.prompts]]
    tasks = balanced(read(DATA / "tale_tasks.jsonl"), arguments.tasks)
    with Model(arguments.model, n_threads=arguments.threads) as model:
        rows = []
        for name, params in settings.items():
            rows.append(
                {"setting": name, **loops(model, params, prompts, arguments.n), **accuracy(model, params, tasks)}
            )
            print(f"{name}: done", file=sys.stderr)
        report = {
            "machine": machine(),
            "command": shlex.join(["python", *sys.argv]),
            "model": model.path.name,
            "prompts": len(prompts),
            "new_tokens": arguments.n,
            "tasks": len(tasks),
            "results": rows,
        }
    print(json.dumps(report) if arguments.json else table(report))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", type=Path, default=default_model(), help="GGUF; the embedded one if not given")
    parser.add_argument("-n", type=int, default=512, help="new tokens for a prompt")
    parser.add_argument("-t", "--threads", type=int, help="threads of llama.cpp")
    parser.add_argument("--prompts", type=int, default=40, help="how many of the 40 prompts")
    parser.add_argument("--tasks", type=int, default=0, help="how many of the 300 tasks")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser.parse_args()


def read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def balanced(tasks: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    """Return about ``n`` tasks, as many of each kind, the first of them."""
    kinds = defaultdict(list)
    for task in tasks:
        kinds[task["task"]].append(task)
    return [task for kind in kinds.values() for task in kind[: round(n / len(kinds))]]


def loops(model: Model, params: Params, prompts: list[str], n: int) -> dict[str, Any]:
    made = [generate(model, prompt, params, n_predict=n) for prompt in prompts]
    return {
        "loops": sum(audit(g.text, **TWENTY_COPIES).looping for g in made),
        "rep4": mean(g.repetition.rep4 for g in made),
        "zlib_ratio": mean(g.repetition.zlib_ratio for g in made),
        "tokens": sum(len(g.tokens) for g in made),
        "sampling_microseconds": 1e6 * sum(g.timings.sampling for g in made) / sum(len(g.tokens) for g in made),
    }


def accuracy(model: Model, params: Params, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    right = defaultdict(list)
    for task in tasks:
        made = generate(model, task["messages"], params, n_predict=ANSWER_TOKENS)
        right[task["task"]].append(made.content == task["answer"])
    if not right:
        return {}
    return {
        "accuracy": mean(answer for kind in right.values() for answer in kind),
        "accuracy_by_task": {kind: mean(answers) for kind, answers in right.items()},
    }


def table(report: dict[str, Any]) -> str:
    lines = [
        report["machine"],
        report["command"],
        "{model}, greedy: {prompts} prompts x {new_tokens} tokens, {tasks} tasks".format_map(report),
        "",
    ]
    kinds = list(report["results"][0].get("accuracy_by_task", {}))
    head = [
        "setting",
        "loops",
        "rep-4",
        "zlib",
        "sampling µs/token",
        *(["accuracy", " / ".join(kinds)] if kinds else []),
    ]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in report["results"]:
        cells = [
            row["setting"],
            f"{row['loops']}/{report['prompts']}",
            f"{row['rep4']:.3f}",
            f"{row['zlib_ratio']:.2f}",
            f"{row['sampling_microseconds']:.1f}",
        ]
        if kinds:
            cells += [f"{row['accuracy']:.3f}", " / ".join(f"{row['accuracy_by_task'][kind]:.2f}" for kind in kinds)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
