"""Speculative decoding and microscaling: what a draft and fewer bits gain, and what penalties cost the acceptance.

    python bench/speculative.py [--parts acceptance cost two one llama] [--types bf16 q8_0 mxfp4] [--k 0 1 2 ... auto]
        [--texts stories tasks copies] [--temperatures 0 0.8] [--lz off on] [--pairs 20] [-n 64] [--threads N]
        [--folder FOLDER] [--llama FILE] [--headline] [--quick] [--json]

- `acceptance`: how often the draft's token is the target's, behind the same text, by penalty: with the penalty on both,
  and on the target alone. Also the most that any rule could accept (mrs), 1 - the total variation distance.
- `cost`: v(n), the time of a decode of n tokens as a multiple of that of one; the draft's decode as a share of it; and
  the share of it that is the matrix products of the wide layers (`stretched.py`).
- `two`: two models, the embedded draft and the stretched target: blocks of K tokens against no draft, on stories and
  on tasks; "auto" chooses K.
- `one`: one model, SmolLM2, in BF16 and in MXFP4, each without a draft and with lookup (matches of 3 tokens or more),
  on stories and on copies.
- `llama`: llama.cpp's own speculative-simple on the same files, prompts and K, which `llama_speculative/build.sh`
  builds.

Times are medians with quartiles over pairs of texts, in which what is compared takes turns. Flash attention is on: with
it the text does not depend on the draft (docs/speculative.md). "same" is the share of texts equal to that without one.
--quick takes small files and few tokens, to see whether it runs. --headline takes about 10 minutes for the cells that
matter most: `two` in BF16 and Q8_0 on tasks, with K = 3, 7 and auto, and `one` on copies, at temperature 0 with LZ.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from lzsampler import LzsError, Params, Sampler, generate, quantize, sequence_seed
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.draft import Draft, Length
from lzsampler.decoding.speedup import ClockedModel, Quartiles, Timed, Way, compare, decode_cost
from lzsampler.evaluation.tasks import read_tasks
from lzsampler.llama.model import Messages, Model
from lzsampler.models import (
    default_draft,
    default_model,
    default_prompts,
    default_tasks,
    everyday_prompts,
    everyday_tasks,
    find_model,
)
from lzsampler.params import PRESETS
from measure import machine, table
from stretched import NARROW, PROMPT, Stretch, stretched

Row = dict[str, Any]
Given = str | Messages
TEMPERATURES = (0.0, 0.8)
SIZES = (2, 4, 8)
LLAMA = Path(__file__).parents[1] / "build" / "llama" / "build" / "llama-speculative-simple"
N_CTX = 1024
TEXTS = ("stories", "tasks", "copies")


@dataclass(frozen=True)
class Texts:
    """What is written: prompts by kind, and how long."""

    prompts: dict[str, list[Given]]
    pairs: int
    n_predict: int


def prompts_of(path: Path, most: int, kind: str = "") -> list[Given]:
    """Return prompts of a file, spread over it; of one kind if it is named."""
    tasks, bad = read_tasks(path)
    assert not bad
    chosen: list[Given] = [task.prompt for task in tasks if task.kind.startswith(kind)]
    return chosen[:: max(len(chosen) // most, 1)][:most]


def times(given: Quartiles) -> str:
    low, middle, high = given
    return f"{middle:.2f} ({low:.2f}, {high:.2f})"


def penalised(model: Model, temperature: float, lz: bool) -> Params:
    return Params.recommended(model, temperature=temperature) if lz else Params(temperature=temperature)


# ---- the acceptance by penalty ----


def acceptance(arguments: argparse.Namespace, texts: Texts) -> Iterator[Row]:
    """Yield a row for each temperature, kind of text and penalty.

    The texts are the target's own, with the seeds that `two` has. At each of their tokens the draft draws, too, with
    the same noise (gumbel). The embedded target stands for the stretched one, which writes the same texts.
    """
    with (
        Model(default_model(), n_ctx=N_CTX, n_threads=1, flash_attn=True) as target,
        Model(default_draft(), n_ctx=N_CTX, n_threads=1, flash_attn=True) as draft,
    ):
        penalties = {
            "none": Params(),
            "default (LZ 0.3)": Params.recommended(target),
            "LZ 0.15 (the paper's)": Params(**PRESETS["paper"]),
            "presence 1.5, frequency 0.3": Params(presence_penalty=1.5, frequency_penalty=0.3),
        }
        for temperature in arguments.temperatures:
            for kind, prompts in texts.prompts.items():
                without = None
                for name, params in penalties.items():
                    params = replace(params, temperature=temperature)
                    free = Params(temperature=temperature)
                    counts = np.zeros(4)
                    for number, prompt in enumerate(prompts):
                        seed = sequence_seed(0, number)
                        counts += accepted(
                            target, draft, prompt, replace(params, seed=seed), replace(free, seed=seed), texts.n_predict
                        )
                    both, alone, most = counts[:3] / counts[3]
                    without = both if without is None else without
                    yield {
                        "T": temperature,
                        "texts": kind,
                        "penalty": name,
                        "tokens": int(counts[3]),
                        "accepted": f"{both:.3f}",
                        "against none": f"{both - without:+.3f}",
                        "draft without penalty": f"{alone:.3f}",
                        "mrs": f"{most:.3f}",
                    }


def accepted(
    target: Model, draft: Model, prompt: Given, params: Params, free: Params, n_predict: int
) -> tuple[int, int, float, int]:
    """Return how many tokens of a text the draft draws, with the target's settings and with ``free``; the sum of what
    is common to both distributions; and the number of tokens.
    """
    made = generate(target, prompt, GenerationConfig(params, max_tokens=n_predict))
    tokens = list(made.tokens)
    ids = target.tokenize(prompt if isinstance(prompt, str) else target.chat_prompt(prompt))
    rows = []
    for model in (draft, target):
        model.keep(0)
        if ids[:-1]:
            model.decode(ids[:-1])
        rows.append(model.decode_rows([ids[-1], *tokens[:-1]]))
    ours, without = (Sampler(target.n_vocab, settings) for settings in (params, free))
    for sampler in (ours, without):
        sampler.prime(ids)
    both = alone = 0
    common = 0.0
    for row, truth, token in zip(*rows, tokens, strict=True):
        both += ours.sample(row) == token
        alone += without.sample(row) == token
        shares = np.zeros((2, target.n_vocab))
        for share, logits in zip(shares, (row, truth), strict=True):
            kept, probabilities = ours.distribution(logits)
            share[kept] = probabilities
        common += float(shares.min(axis=0).sum())
        for sampler in (ours, without):
            sampler.accept(token)
    return both, alone, common, len(tokens)


# ---- the cost of verification ----


def cost(arguments: argparse.Namespace, texts: Texts) -> Iterator[Row]:
    """Yield a row for each type of the stretched target."""
    narrow = replace(arguments.stretch, width=NARROW)
    with ExitStack() as stack:
        models = {}
        for kind in arguments.types:
            for name, stretch in ((kind, arguments.stretch), (f"{kind}, narrow", narrow)):
                path = stretched(kind, stretch, arguments.folder)
                models[name] = stack.enter_context(opened(path, arguments.threads))
        # The draft has the threads that it has when it drafts.
        models["draft"] = stack.enter_context(opened(default_draft(), arguments.threads))
        past = models["draft"].tokenize(PROMPT)
        found = decode_cost(models, past, SIZES, max(texts.pairs, 2))
        for kind in arguments.types:
            ms = found[kind].ms[1]
            yield {
                "type": kind,
                "MB": models[kind].header.file_bytes / 1e6,
                "ms a token": ms,
                **{f"v({n})": times(found[kind].relative[n]) for n in SIZES},
                "draft / target": f"{found['draft'].ms[1] / ms:.3f}",
                "wide matrix products": f"{1 - found[f'{kind}, narrow'].ms[1] / ms:.1%}",
            }


# ---- two models ----


def two(arguments: argparse.Namespace, texts: Texts) -> Iterator[Row]:
    """Yield a row for each type, temperature, kind of text, with LZ and without it, and length of a block."""
    with clocked(default_draft(), arguments.threads) as draft:
        for kind in arguments.types:
            with opened(stretched(kind, arguments.stretch, arguments.folder), arguments.threads) as target:
                for temperature in arguments.temperatures:
                    for name, prompts in texts.prompts.items():
                        for lz in arguments.lz:
                            params = penalised(target, temperature, lz == "on")
                            ways = {"none": Way(target, params)}
                            ways |= {f"{k}": Way(target, params, Draft(draft, n_max=k)) for k in arguments.k}
                            made = compare(ways, prompts, pairs=texts.pairs, max_tokens=texts.n_predict)
                            for k, timed in made.items():
                                about = {"type": kind, "T": temperature, "texts": name, "LZ": lz}
                                yield {**about, "K": k, **figures(timed)}


def figures(timed: Timed) -> Row:
    return {
        "ms a token": timed.ms[1],
        "times": times(timed.speedup),
        "with the prompt": times(timed.speedup_whole),
        "accepted": f"{timed.acceptance:.2f}",
        "tokens a call": f"{timed.tokens_per_call:.2f}",
        "draft %": f"{100 * timed.draft_share:.1f}",
        "target %": f"{100 * timed.target_share:.1f}",
        "rest %": f"{100 * timed.other_share:.1f}",
        "same": f"{timed.same:.2f}",
    }


# ---- one model ----


def one(arguments: argparse.Namespace, texts: Texts) -> Iterator[Row]:
    """Yield a row for each kind of text, temperature and way with SmolLM2; all texts have the same length."""
    try:
        source = default_model() if arguments.quick else find_model("smollm2")
    except LzsError as error:
        print(f"one: left out, {error}", file=sys.stderr)
        return
    prompts = {
        "stories": prompts_of(everyday_prompts(), texts.pairs),
        "copies": prompts_of(everyday_tasks(), texts.pairs, "copy"),
    }
    prompts = {name: given for name, given in prompts.items() if name in arguments.texts}
    with tempfile.TemporaryDirectory() as folder:
        base, scaled = Path(folder) / "base.gguf", Path(folder) / "mx.gguf"
        quantize(source, base, "bf16", requantize=True)
        quantize(base, scaled, "mxfp4")
        with opened(base, arguments.threads) as bf16, opened(scaled, arguments.threads) as mxfp4:
            for temperature in arguments.temperatures:
                params = Params.recommended(bf16, temperature=temperature)
                ways = {"BF16": Way(bf16, params), "MXFP4": Way(mxfp4, params)}
                for n_max in (4, 8, "auto"):
                    ways[f"BF16, lookup {n_max}"] = Way(bf16, params, Draft(lookup=3, n_max=n_max))
                ways["MXFP4, lookup auto"] = Way(mxfp4, params, Draft(lookup=3, n_max="auto"))
                for name, given in prompts.items():
                    made = compare(ways, given, pairs=texts.pairs, max_tokens=texts.n_predict, ignore_eos=True)
                    for way, timed in made.items():
                        yield {"texts": name, "T": temperature, "way": way, **figures(timed)}


# ---- llama.cpp's own ----


def llama(arguments: argparse.Namespace, texts: Texts) -> Iterator[Row]:
    """Yield a row for each type, kind of text and length of a block: ours and llama.cpp's, greedy, without a penalty.

    Its program takes one text, so it is started for each one; what is timed is its own time of decoding, which begins
    after the prompt. The draft's prompt is in our time and not in its.
    """
    if not arguments.llama.is_file():
        print(f"llama: left out, there is no {arguments.llama}: bench/llama_speculative/build.sh", file=sys.stderr)
        return
    lengths = [k for k in arguments.k if isinstance(k, int) and k]
    with clocked(default_draft(), arguments.threads) as draft:
        for kind in arguments.types:
            path = stretched(kind, arguments.stretch, arguments.folder)
            with opened(path, arguments.threads) as target:
                params = Params(temperature=0.0)
                for name, prompts in texts.prompts.items():
                    for k in lengths:
                        ways = {"none": Way(target, params), "ours": Way(target, params, Draft(draft, n_max=k))}
                        ratios: dict[str, list[float]] = {"ours": [], "llama.cpp": [], "ours / llama.cpp": []}
                        drafted = stood = 0
                        ours = []
                        for prompt in (prompts * texts.pairs)[: texts.pairs]:
                            made = compare(ways, [prompt], pairs=2, max_tokens=texts.n_predict)
                            theirs = run_llama(arguments.llama, target, draft, prompt, k, texts.n_predict)
                            plain, mine = (made[way].ms[1] for way in ways)
                            ours.append(made["ours"].acceptance)
                            ratios["ours"].append(plain / mine)
                            ratios["llama.cpp"].append(plain / theirs.ms)
                            ratios["ours / llama.cpp"].append(theirs.ms / mine)
                            drafted, stood = drafted + theirs.drafted, stood + theirs.accepted
                        yield {
                            "type": kind,
                            "texts": name,
                            "K": k,
                            **{way: times(quartiles(values)) for way, values in ratios.items()},
                            "accepted, ours": f"{sum(ours) / len(ours):.2f}",
                            "accepted, llama.cpp": f"{stood / max(drafted, 1):.2f}",
                        }


@dataclass(frozen=True)
class Theirs:
    """What speculative-simple says: milliseconds a token, and its counts."""

    ms: float
    drafted: int
    accepted: int


def run_llama(program: Path, target: Model, draft: Model, prompt: Given, k: int, n_predict: int) -> Theirs:
    text = prompt if isinstance(prompt, str) else target.chat_prompt(prompt)
    command = [
        str(program), "-m", str(target.path), "-md", str(draft.path), "-p", text, "-n", str(n_predict),
        "-c", str(N_CTX), "-fa", "on", "--temp", "0", "--top-k", "1", "-t", str(target.n_threads),
        "--spec-draft-threads", str(draft.n_threads), "--spec-type", "draft-simple", "--spec-draft-n-max", str(k),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
    said = done.stdout + done.stderr
    found = re.search(r"decoded\s+(\d+) tokens in\s+([\d.]+) seconds", said)
    if done.returncode or found is None:
        raise SystemExit(f"{shlex.join(command)}: exit status {done.returncode}\n{said[-2000:]}")
    counts = dict(re.findall(r"(n_drafted|n_accept)\s*= (\d+)", said))
    return Theirs(1e3 * float(found[2]) / int(found[1]), int(counts["n_drafted"]), int(counts["n_accept"]))


def quartiles(values: Sequence[float]) -> Quartiles:
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, median(values), high


def opened(path: Path, threads: int | None) -> Model:
    return Model(path, n_ctx=N_CTX, n_threads=threads, flash_attn=True)


def clocked(path: Path, threads: int | None) -> Model:
    return ClockedModel(path, n_ctx=N_CTX, n_threads=threads, flash_attn=True)


def length(given: str) -> Length:
    """Return a length of blocks."""
    return "auto" if given == "auto" else int(given)


PARTS = {"acceptance": acceptance, "cost": cost, "two": two, "one": one, "llama": llama}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--types", nargs="+", choices=("bf16", "q8_0", "mxfp4"), default=["bf16", "q8_0", "mxfp4"])
    parser.add_argument("--k", nargs="+", type=length, default=[*range(9), "auto"], help="0 to 32, and auto")
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=list(TEXTS))
    parser.add_argument("--lz", nargs="+", choices=("off", "on"), default=["off", "on"])
    parser.add_argument("--temperatures", nargs="+", type=float, default=list(TEMPERATURES))
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("-n", type=int, default=64, help="tokens of a text")
    parser.add_argument("--threads", type=int, help="of all models; by default as in lzs generate")
    parser.add_argument("--folder", type=Path, help="where the stretched files are kept")
    parser.add_argument("--llama", type=Path, default=LLAMA, help="llama-speculative-simple")
    parser.add_argument("--headline", action="store_true", help="the cells of the promises alone")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.stretch = Stretch()
    if arguments.headline:
        arguments.parts, arguments.types, arguments.k = ["two", "one"], ["bf16", "q8_0"], [3, 7, "auto"]
        arguments.texts, arguments.temperatures, arguments.lz = ["tasks", "copies"], [0.0], ["on"]
    if arguments.quick:
        arguments.stretch = Stretch(blocks=2, width=768)
        arguments.types, arguments.k, arguments.pairs, arguments.n = ["q8_0"], [0, 2, "auto"], 2, 8
    prompts = {
        "stories": prompts_of(default_prompts(), arguments.pairs),
        "tasks": prompts_of(default_tasks(), arguments.pairs),
    }
    prompts = {name: given for name, given in prompts.items() if name in arguments.texts}
    texts = Texts(prompts, arguments.pairs, arguments.n)
    about = {"machine": machine(), "command": shlex.join(["python", *sys.argv])}
    if not arguments.json:
        print("{machine}\n{command}".format(**about))
    results: dict[str, list[Row]] = {}
    for name in arguments.parts:
        results[name] = []
        for row in PARTS[name](arguments, texts):  # each is printed as it comes: a part takes up to an hour
            if not arguments.json:
                lines = table([row]).splitlines()
                print("\n".join(lines[-1:] if results[name] else ["", name, "", *lines]), flush=True)
            results[name].append(row)
    if arguments.json:
        print(json.dumps({**about, "results": results}))


if __name__ == "__main__":
    main()
