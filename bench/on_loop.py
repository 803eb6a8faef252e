"""What each action leaves of the answers that loops cost: nothing, all actions, and the LZ penalty.

    python bench/on_loop.py [-m smollm2] [--tasks TASKS.jsonl] [-n 300] [--limit N] [--arms NAME,...] [--keep FILE]

Every task is answered with every action, greedily (a boost draws, with a seed of the task's number). Tasks that loop
are those that "stop" stops. For these and for all tasks: answers that are right, with Wilson's interval of 95 %; what
that is beside "stop", as tasks that only the one or only the other has right, with the p of McNemar's test; how many
texts loop all the same, by the same rule; and how many tokens a task took, those that were cut included.

The arm `paper, thinking` has the paper's penalty in the thinking only. Its answers, and those of `paper`, are then
written once more without any penalty after the very same thinking: a second table says how many are the same token for
token.

`--keep` adds each text to a file as it ends, and takes those that are there from it.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lzsampler import STOP_ON_LOOP, STOP_ON_STUCK, Params, Sampler, sequence_seed
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generation import Generation
from lzsampler.decoding.many import Request, generate_many
from lzsampler.decoding.parts import PartTracker
from lzsampler.decoding.policy import LoopPolicy
from lzsampler.evaluation.tasks import Task, read_tasks, spread
from lzsampler.llama.model import Model
from lzsampler.models import thinking_tasks
from lzsampler.params import PRESETS
from lzsampler.util.stats import mcnemar, wilson
from measure import report

PLAIN = Params(temperature=0.0)
SCOPED = "paper, thinking"


class Made(NamedTuple):
    """A text: tokens, what it answers, how many tokens were written for it, whether it ended, was acted on, loops."""

    tokens: list[int]
    content: str
    written: int
    ended: bool
    acted: bool
    loops: bool


def arms(model: Model, rule: Any) -> dict[str, tuple[Params, LoopPolicy]]:
    """Return the settings that are compared, by name."""
    made = {"nothing": (PLAIN, LoopPolicy("off"))}
    for action in ("stop", "trim", "rewind", "close-think", "boost"):
        made[action] = (PLAIN, LoopPolicy(action, rule))
    made["LZ"] = (Params.recommended(model, temperature=0.0), LoopPolicy("off"))
    paper = Params(temperature=0.0, **PRESETS["paper"])
    made["paper"] = (paper, LoopPolicy("off"))
    made[SCOPED] = (paper, LoopPolicy("off", penalty_scope=["thinking"]))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("--tasks", type=Path, default=thinking_tasks())
    parser.add_argument("-n", "--n-predict", type=int, default=300)
    parser.add_argument("--limit", type=int, help="N tasks only, spread evenly over all")
    parser.add_argument("--rule", choices=("period", "stuck", "both"), default="both")
    parser.add_argument("--arms", help="some of the arms, with semicolons between them; stop is always one")
    parser.add_argument("--keep", type=Path, help="file of texts, JSON Lines")
    parser.add_argument("-c", "--ctx-size", type=int, default=1024)
    parser.add_argument("-t", "--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows, bad = read_tasks(arguments.tasks)
    if bad:
        raise SystemExit(f"{arguments.tasks}, line {bad[0].line}: {bad[0].reason}")
    tasks = spread([task for task in rows if task.answer is not None], arguments.limit)
    with Model(arguments.model, n_ctx=arguments.ctx_size, n_threads=arguments.threads) as model:
        settings = arms(model, arguments.rule)
        if arguments.arms:
            settings = {name: settings[name] for name in dict.fromkeys(["stop", *arguments.arms.split(";")])}
        made = written(model, tasks, settings, arguments)
        looping = [task for task in tasks if made["stop", task.id].acted]
        groups = {"loop": looping, "all": tasks}
        report([row for name in settings for row in compared(name, made, groups)], arguments.json)
        again = [same_answers(model, name, made, tasks) for name in ("paper", SCOPED) if name in settings]
        if again:
            report(again, arguments.json)


def written(
    model: Model, tasks: list[Task], settings: dict[str, tuple[Params, LoopPolicy]], arguments: argparse.Namespace
) -> dict[tuple[str, str], Made]:
    """Return the texts by arm and task."""
    kept = arguments.keep.read_text(encoding="utf-8").splitlines() if arguments.keep and arguments.keep.exists() else []
    made = {(row.pop("arm"), row.pop("task")): Made(**row) for row in map(json.loads, kept)}
    requests = (
        Request(
            (name, task.id),
            task.prompt,
            GenerationConfig(
                replace(params, seed=sequence_seed(params.seed, number)), max_tokens=arguments.n_predict, on_loop=policy
            ),
        )
        for number, task in enumerate(tasks)
        for name, (params, policy) in settings.items()
        if (name, task.id) not in made
    )
    for request, generation in generate_many(model, requests, n_parallel=4 * len(settings)):
        if isinstance(generation, Exception):
            raise generation
        name, task_id = request.id
        made[name, task_id] = text = text_of(model, generation)
        if arguments.keep:
            row = {"arm": name, "task": task_id, **text._asdict()}
            with arguments.keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    return made


def text_of(model: Model, generation: Generation) -> Made:
    """Return what is kept of a text."""
    seen = Sampler(model.n_vocab, Params(repetition_detection=STOP_ON_LOOP, stuck_detection=STOP_ON_STUCK))
    for token in generation.tokens:
        seen.accept(token)
    loops = seen.loop is not None or seen.stuck is not None
    acted = bool(generation.actions)
    ended = generation.finish_reason == "stop"
    return Made(list(generation.tokens), generation.content, generation.completion_tokens, ended, acted, loops)


def compared(name: str, made: dict[tuple[str, str], Made], groups: dict[str, list[Task]]) -> list[dict[str, Any]]:
    """Return the figures of an arm, for each group of tasks."""
    results = []
    for group, tasks in groups.items():
        texts = [made[name, task.id] for task in tasks]
        right = {task.id for task in tasks if task.right(made[name, task.id].content)}
        stopped = {task.id for task in tasks if task.right(made["stop", task.id].content)}
        interval = wilson(len(right), len(tasks))
        results.append(
            {
                "tasks": group,
                "arm": name,
                "right": f"{len(right)}/{len(tasks)}",
                "share": f"{len(right) / max(len(tasks), 1):.3f} [{interval.low:.3f}, {interval.high:.3f}]",
                "beside stop": f"+{len(right - stopped)} -{len(stopped - right)}",
                "p": mcnemar(len(right - stopped), len(stopped - right)),
                "loop": sum(text.loops for text in texts),
                "tokens a task": sum(text.written for text in texts) / max(len(texts), 1),
            }
        )
    return results


def same_answers(model: Model, name: str, made: dict[tuple[str, str], Made], tasks: list[Task]) -> dict[str, Any]:
    """Return how many answers of an arm are those that the model writes without a penalty after the same thinking."""
    texts = {task.id: made[name, task.id] for task in tasks}
    ends = {task_id: n for task_id, text in texts.items() if (n := thinking_ends(model, text.tokens))}
    requests = (
        Request(
            task.id,
            task.prompt,
            GenerationConfig(PLAIN, max_tokens=len(texts[task.id].tokens) + texts[task.id].ended),
            sampler=partial(Forced, texts[task.id].tokens[: ends[task.id]]),
        )
        for task in tasks
        if task.id in ends
    )
    same = 0
    for request, free in generate_many(model, requests, n_parallel=16):
        if isinstance(free, Exception):
            raise free
        text = texts[request.id]
        same += (list(free.tokens), free.finish_reason == "stop") == (text.tokens, text.ended)
    loop = sum(text.loops for text in texts.values())
    return {"arm": name, "tasks": len(tasks), "loop": loop, "thinking that ends": len(ends), "same answer": same}


class Forced:
    """A sampler that takes some tokens, whatever their logits are, and then the likeliest ones without any penalty."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens, self.n = tokens, 0

    def prime(self, tokens: Any) -> None:
        """Take the prompt, of which nothing depends."""

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Pick a token."""
        return self.tokens[self.n] if self.n < len(self.tokens) else int(logits.argmax())

    def accept(self, token: int) -> None:
        """Take a token into the text."""
        self.n += 1


def thinking_ends(model: Model, tokens: list[int]) -> int:
    """Return with how many tokens the thinking of a text has ended; 0 where it has not."""
    parts = PartTracker()
    thinks = False
    for n, token in enumerate(tokens, 1):
        parts.add(model.fragments[token] or "")
        if thinks and parts.part == "answer":
            return n
        thinks = thinks or parts.part == "thinking"
    return 0


if __name__ == "__main__":
    main()
