"""What each action leaves of the answers that loops cost: nothing, stop, rewind, close-think, kick, and the LZ penalty.

    python bench/on_loop.py [-m MODEL.gguf] [--tasks TASKS.jsonl] [-n 512] [--limit N] [--rule both] [--json]

Every task is answered with every action, greedily (a kick draws, with a seed of the task's number). The tasks that loop
are those that "stop" stops. For these and for all tasks: answers that are right, with Wilson's interval of 95 %; how
many of the texts were acted on; and how many tokens a task took, those that were cut included. `RIGHT` beside "stop" is
what is gained: tasks that only the one or only the other has right, with the p of McNemar's test.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from lzsampler import Params, sequence_seed
from lzsampler.decoding.generate import Generation
from lzsampler.decoding.many import Request, generate_many
from lzsampler.evaluation.tasks import Task, read_tasks
from lzsampler.llama.model import Model
from lzsampler.models import default_model, default_tasks
from lzsampler.util.rescue import LoopPolicy
from lzsampler.util.stats import mcnemar, wilson
from measure import report

PLAIN = Params(temperature=0.0)


def arms(model: Model, rule: Any) -> dict[str, tuple[Params, LoopPolicy]]:
    """Return the settings that are compared, by name."""
    made = {"nothing": (PLAIN, LoopPolicy("off"))}
    for action in ("stop", "rewind", "close-think", "kick"):
        made[action] = (PLAIN, LoopPolicy(action, rule))
    made["LZ"] = (model.params(temperature=0.0), LoopPolicy("off"))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default=str(default_model()))
    parser.add_argument("--tasks", type=Path, default=default_tasks())
    parser.add_argument("-n", "--n-predict", type=int, default=512)
    parser.add_argument("--limit", type=int, help="the first N tasks only")
    parser.add_argument("--rule", choices=("period", "stuck", "both"), default="both")
    parser.add_argument("-c", "--ctx-size", type=int, default=1024)
    parser.add_argument("-t", "--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows, bad = read_tasks(arguments.tasks)
    if bad:
        raise SystemExit(f"{arguments.tasks}, line {bad[0].line}: {bad[0].reason}")
    tasks = [task for task in rows if task.answer is not None][: arguments.limit]
    with Model(arguments.model, n_ctx=arguments.ctx_size, n_threads=arguments.threads) as model:
        settings = arms(model, arguments.rule)
        made: dict[str, dict[str, Generation]] = {name: {} for name in settings}
        requests = (
            Request(
                (name, task.id),
                task.prompt,
                replace(params, seed=sequence_seed(params.seed, number)),
                n_predict=arguments.n_predict,
                loops=policy,
            )
            for number, task in enumerate(tasks)
            for name, (params, policy) in settings.items()
        )
        for request, generation in generate_many(model, requests, n_parallel=4 * len(settings)):
            name, task_id = request.id
            made[name][task_id] = generation
    looping = [task for task in tasks if made["stop"][task.id].finish_reason == "repetition"]
    report([row for name in settings for row in compared(name, made, {"loop": looping, "all": tasks})], arguments.json)


def compared(name: str, made: dict[str, dict[str, Generation]], groups: dict[str, list[Task]]) -> list[dict[str, Any]]:
    """Return the figures of an arm, for each group of tasks."""
    results = []
    for group, tasks in groups.items():
        texts = [made[name][task.id] for task in tasks]
        right = {task.id for task in tasks if task.right(made[name][task.id].content)}
        stopped = {task.id for task in tasks if task.right(made["stop"][task.id].content)}
        interval = wilson(len(right), len(tasks))
        results.append(
            {
                "tasks": group,
                "action": name,
                "right": f"{len(right)}/{len(tasks)}",
                "share": f"{len(right) / max(len(tasks), 1):.3f} [{interval.low:.3f}, {interval.high:.3f}]",
                "beside stop": f"+{len(right - stopped)} -{len(stopped - right)}",
                "p": mcnemar(len(right - stopped), len(stopped - right)),
                "acted on": sum(bool(text.actions) for text in texts),
                "tokens a task": sum(text.completion_tokens for text in texts) / max(len(texts), 1),
            }
        )
    return results


if __name__ == "__main__":
    main()
