"""Tokens a second of the texts of `lzs eval`, next to llama-cpp-python and `generate`, a text after the other.

    python bench/evaluation.py [--model MODEL.gguf] [--prompts 2] [--tasks 15] [-n 256] [--rounds 3] [--json]

The same requests for all: rows of the embedded model, as many tasks to a prompt as in its files, in the settings of the
grid of the paper that llama-cpp-python has too, at temperatures 0 and 0.6. The runs take turns within a round, each
with its defaults. `create_completion` makes its text anew for each token, so `Llama.generate`, with the text made once,
is here too. `generate_many` is what `lzs eval` runs, 16 texts at a time: "16 x 1" in one context and thread, else in as
many as there are cores; "apart" is without its largest saving, the settings of a prompt decoded together where they
write the same (here their prompts do not follow each other). On a busy machine the time of a run is more than its CPU
time (of all threads together), so the ratios to `create_completion` (of tokens a second: median and range over the
rounds) are given for both. The greedy texts without a penalty must be those of `generate`, however they are decoded;
how many of llama-cpp-python's are is shown.
"""

import argparse
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

from lzsampler import Params
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generate import generate
from lzsampler.decoding.many import Request, generate_many
from lzsampler.evaluation.grid import paper
from lzsampler.evaluation.tasks import read_tasks
from lzsampler.llama import llama_cpp
from lzsampler.llama.model import Model
from lzsampler.models import default_model, default_prompts, default_tasks, find_model
from measure import report

N_CTX = 512
BASELINE = "create_completion"
KINDS = ("none", "repetition", "frequency", "presence")
SETTINGS = {s.name: s.params for s in paper().settings if s.kind in KINDS and s.params.temperature in (0.0, 0.6)}
GREEDY = next(iter(SETTINGS))  # no penalty, temperature 0
Run = Callable[[], dict[Any, tuple[int, str]]]  # -> of each request its tokens and its text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=find_model, default=default_model())
    parser.add_argument("--prompts", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=15, help="the kinds in turn; the package has 40 and 300")
    parser.add_argument("-n", type=int, default=256, help="new tokens of a text, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    llm = llama_cpp.Llama(str(arguments.model), n_ctx=N_CTX, last_n_tokens_size=N_CTX, verbose=False)
    with Model(arguments.model, n_ctx=N_CTX) as model:
        prompts = [str(row.prompt) for row in read_tasks(default_prompts())[0][: arguments.prompts]]
        tasks = read_tasks(default_tasks())[0]
        tasks.sort(key=lambda row: row.id.rpartition("-")[2])  # add-001, copy-001, ... add-002
        prompts += [
            model.chat_prompt(row.prompt) for row in tasks[: arguments.tasks] if not isinstance(row.prompt, str)
        ]
        requests = [
            Request((name, i), prompt, GenerationConfig(params, max_tokens=arguments.n))
            for i, prompt in enumerate(prompts)
            for name, params in SETTINGS.items()
        ]
        apart = sorted(requests, key=lambda request: list(SETTINGS).index(request.id[0]))
        runs: dict[str, Run] = {
            BASELINE: lambda: {request.id: _completion(llm, request) for request in requests},
            "Llama.generate": lambda: {request.id: _tokens(llm, request) for request in requests},
            "generate": lambda: {request.id: _alone(model, request) for request in requests},
            "generate_many, apart, 16 x 1": _many(model, apart, 16, 1),
            "generate_many, apart": _many(model, apart),
            "generate_many, 16 x 1": _many(model, requests, 16, 1),
            "generate_many": _many(model, requests),
        }
        results = _measured(runs, arguments.rounds)
    llm.close()
    report(results, arguments.json)


def _penalties(params: Params) -> dict[str, Any]:
    return {
        "repeat_penalty": params.repetition_penalty,
        "frequency_penalty": params.frequency_penalty,
        "presence_penalty": params.presence_penalty,
        "top_k": params.top_k,
        "top_p": params.top_p,
        "min_p": params.min_p,
    }


def _params(request: Request) -> Params:
    assert request.config.params is not None
    return request.config.params


def _completion(llm: Any, request: Request) -> tuple[int, str]:
    params = _params(request)
    how = {"temperature": params.temperature, **_penalties(params)}
    made = llm.create_completion(request.prompt, max_tokens=request.config.max_tokens, **how)
    return made["usage"]["completion_tokens"], made["choices"][0]["text"]


def _tokens(llm: Any, request: Request) -> tuple[int, str]:
    prompt = llm.tokenize(str(request.prompt).encode(), special=True)
    made: list[int] = []
    params = _params(request)
    for token in llm.generate(prompt, temp=params.temperature, **_penalties(params)):
        if token == llm.token_eos():
            break
        made.append(token)
        if len(made) == request.config.max_tokens:
            break
    return len(made), llm.detokenize(made, prev_tokens=prompt).decode("utf-8", "replace")


def _alone(model: Model, request: Request) -> tuple[int, str]:
    made = generate(model, request.prompt, request.config)
    return len(made.tokens), made.text


def _many(model: Model, requests: list[Request], n_parallel: int = 16, n_contexts: int | None = None) -> Run:
    def run() -> dict[Any, tuple[int, str]]:
        made = generate_many(model, requests, n_parallel=n_parallel, n_contexts=n_contexts)
        texts = {}
        for request, text in made:
            if isinstance(text, Exception):
                raise text
            texts[request.id] = (len(text.tokens), text.text)
        return texts

    return run


def _measured(runs: dict[str, Run], rounds: int) -> list[dict[str, Any]]:
    """Return a row a run: time and CPU time a token, the ratios, and how many greedy texts are those of `generate`."""
    wall = {name: np.empty(rounds) for name in runs}  # milliseconds a token
    cpu = {name: np.empty(rounds) for name in runs}
    texts: dict[str, dict[Any, tuple[int, str]]] = {}
    for i in range(rounds):
        for name in list(runs)[:: 1 if i % 2 else -1]:
            start, start_cpu = perf_counter(), process_time()
            texts[name] = runs[name]()
            elapsed, elapsed_cpu = perf_counter() - start, process_time() - start_cpu
            n = sum(tokens for tokens, _ in texts[name].values())
            wall[name][i], cpu[name][i] = 1e3 * elapsed / n, 1e3 * elapsed_cpu / n
    results = []
    for name in runs:
        greedy = [key for key in texts[name] if key[0] == GREEDY]
        same = sum(texts[name][key] == texts["generate"][key] for key in greedy)
        if name.startswith("generate_many") and same < len(greedy):
            raise SystemExit(f"{name}: {len(greedy) - same} texts are not those of generate")
        results.append(
            {
                "run": name,
                "ms/token": float(np.median(wall[name])),
                "CPU ms/token": float(np.median(cpu[name])),
                "times faster": _ratio(wall[BASELINE] / wall[name]),
                "times less CPU": _ratio(cpu[BASELINE] / cpu[name]),
                "texts of generate": f"{same} of {len(greedy)}",
            }
        )
    return results


def _ratio(values: Any) -> str:
    return f"{np.median(values):.2f} ({values.min():.2f} to {values.max():.2f})"


if __name__ == "__main__":
    main()
