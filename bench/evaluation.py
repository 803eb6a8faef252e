"""Tokens a second of the texts of `lzs eval`, next to llama-cpp-python and `generate`, a text after the other.

    python bench/evaluation.py [--model MODEL.gguf] [--rows 6] [-n 256] [--rounds 3] [--json]

The same requests for all: the embedded model's first prompts and tasks, as many of each, in settings that
llama-cpp-python has too. The runs take turns within a round, each with its defaults. `create_completion` makes its text
anew for each token, so `Llama.generate`, with the text made once, is here too. `generate_many` is what `lzs eval` runs:
"n x m" is n texts at a time in m contexts; "apart" is without its largest saving, the settings of a prompt decoded
together where they write the same (here they come one after all the others). On a busy machine the time of a run is
more than its CPU time (of all threads together), so the ratios to `create_completion` (of tokens a second: median and
range over the rounds) are given for both. The greedy texts without a penalty must be those of `generate`, however they
are decoded; how many of llama-cpp-python's are is shown.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from lzsampler import Params
from lzsampler.generate import generate
from lzsampler.llama import llama_cpp
from lzsampler.model import Model
from lzsampler.models import default_model, default_prompts, default_tasks
from lzsampler.parallel import Request, generate_many
from lzsampler.tasks import read_tasks
from measure import report

N_CTX = 512
BASELINE = "create_completion"
DRAWN: dict[str, Any] = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}
LAST = 64  # tokens that llama-cpp-python's penalties look at


def settings() -> dict[str, tuple[Params, dict[str, Any]]]:
    """Return by name our settings and the arguments of create_completion."""
    made: dict[str, tuple[Params, dict[str, Any]]] = {}
    for temperature in (0.0, 0.6):
        drawn = DRAWN if temperature else {}
        for name, strengths in (("repetition", (1.0, 1.1, 1.2)), ("frequency", (0.2, 0.5)), ("presence", (0.5, 1.0))):
            for strength in strengths:
                theirs = {f"{'repeat' if name == 'repetition' else name}_penalty": strength, "temperature": temperature}
                ours: dict[str, Any] = {f"{name}_penalty": strength, "temperature": temperature, "penalty_window": LAST}
                params = Params(**ours, **drawn, temperature_last=True)
                made[f"{name} {strength} T={temperature}"] = params, {**theirs, **drawn}
    return made


SETTINGS = settings()
GREEDY = "repetition 1.0 T=0.0"
Run = Callable[[], dict[Any, tuple[int, str]]]  # -> of each request its tokens and its text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=default_model())
    parser.add_argument("--rows", type=int, default=6, help="prompts, and as many tasks")
    parser.add_argument("-n", type=int, default=256, help="new tokens of a text, at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    llm = llama_cpp.Llama(str(arguments.model), n_ctx=N_CTX, verbose=False)
    with Model(arguments.model, n_ctx=N_CTX) as model:
        asked = [row.prompt for path in (default_prompts(), default_tasks())
                 for row in read_tasks(path)[0][: arguments.rows]]  # fmt: skip
        prompts = [prompt if isinstance(prompt, str) else model.chat_prompt(prompt) for prompt in asked]
        requests = [
            Request((name, i), prompt, params, n_predict=arguments.n)
            for i, prompt in enumerate(prompts)
            for name, (params, _) in SETTINGS.items()
        ]
        apart = sorted(requests, key=lambda request: list(SETTINGS).index(request.id[0]))
        runs: dict[str, Run] = {
            BASELINE: lambda: {request.id: _completion(llm, request) for request in requests},
            "Llama.generate": lambda: {request.id: _tokens(llm, request) for request in requests},
            "generate": lambda: {request.id: _alone(model, request) for request in requests},
            "generate_many, apart, 16 x 1": _many(model, apart, 16, 1),
            "generate_many, apart, 16 x 2": _many(model, apart, 16, 2),
            "generate_many, 4 x 1": _many(model, requests, 4, 1),
            "generate_many, 16 x 1": _many(model, requests, 16, 1),
            "generate_many, 16 x 2": _many(model, requests, 16, 2),
            "generate_many": _many(model, requests),
        }
        results = _measured(runs, arguments.rounds)
    llm.close()
    report(results, arguments.json)


def _completion(llm: Any, request: Request) -> tuple[int, str]:
    made = llm.create_completion(request.prompt, max_tokens=request.n_predict, **SETTINGS[request.id[0]][1])
    return made["usage"]["completion_tokens"], made["choices"][0]["text"]


def _tokens(llm: Any, request: Request) -> tuple[int, str]:
    fields = dict(SETTINGS[request.id[0]][1])
    made: list[int] = []
    prompt = llm.tokenize(str(request.prompt).encode())
    for token in llm.generate(prompt, temp=fields.pop("temperature"), **fields):
        if token == llm.token_eos():
            break
        made.append(token)
        if len(made) == request.n_predict:
            break
    return len(made), llm.detokenize(made, prev_tokens=prompt).decode("utf-8", "replace")


def _alone(model: Model, request: Request) -> tuple[int, str]:
    made = generate(model, request.prompt, request.params, n_predict=request.n_predict)
    return len(made.tokens), made.text


def _many(model: Model, requests: list[Request], n_parallel: int = 16, n_contexts: int | None = None) -> Run:
    def run() -> dict[Any, tuple[int, str]]:
        made = generate_many(model, requests, n_parallel=n_parallel, n_contexts=n_contexts)
        return {request.id: (len(generation.tokens), generation.text) for request, generation in made}

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
