"""What `generate` spends on a token outside llama_decode: the pick, and all of Python around it.

    python bench/loop.py [-m MODEL] [--before PYTHON] [--tokens 256] [--rounds 5] [--json]

"loop" is the time of a token when the function called as llama_decode does nothing, so that everything stays in the
caches: the best of 20 texts. "pick" is lzs_sample and lzs_accept alone, on one row of the model's logits. "cold" is
what lies between the end of one llama_decode and the beginning of the next in a real run, where the model's weights
have driven everything out of the caches, and "of it C" what llama_get_logits_ith, the pick and the accept take there;
medians over the tokens. Other work on the machine empties the caches too, so that these two need a quiet machine. All
are medians over the rounds.

``--before`` is the interpreter of an environment in which another version of lzsampler is installed. Both versions then
take turns, each round in a new process.
"""

import argparse
import ctypes
import json
import platform
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

PROMPT = "Once upon a time there was a king who had three sons, and"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", type=Path, help="GGUF; the embedded model when it is left out")
    parser.add_argument("--before", help="interpreter of an environment with another version")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one_round(arguments.model, arguments.tokens)))
        return
    from measure import report

    versions = {"before": arguments.before} if arguments.before else {}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in (*versions, "now")}
    model = ["-m", str(arguments.model)] if arguments.model else []
    for _ in range(arguments.rounds):
        for name, found in rounds.items():
            command = [versions.get(name, sys.executable), __file__, "--one", "--tokens", str(arguments.tokens), *model]
            found.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    results: list[dict[str, Any]] = []
    for name, found in rounds.items():
        figures = {key: median(one[key] for one in found) for key in found[0]}
        results.append({"version": name, **figures, "loop / pick": figures["loop us"] / figures["pick us"]})
    report(results, arguments.json)


def one_round(path: Path | None, n: int) -> dict[str, float]:
    """Return the figures of one text of ``n`` tokens, in microseconds a token."""
    from lzsampler import Params
    from lzsampler.decoding.config import GenerationConfig
    from lzsampler.decoding.generate import generate
    from lzsampler.llama import llama_cpp
    from lzsampler.llama import model as opened
    from lzsampler.models import default_model

    starts, ends, inside = [], [], [0.0]  # of each decode, nanoseconds; seconds of C in the loop, so far
    decode, original = llama_cpp.llama_decode, dict[str, Any]()
    if hasattr(opened, "Stepper"):  # decode and pick are one call into C, which says how long each took
        original["Stepper"], step = opened.Stepper, opened.Stepper.step

        def timed_step(self: Any, token: int) -> Any:
            before = self.loop.decode_seconds
            starts.append(perf_counter_ns())
            result = step(self, token)
            ends.append(starts[-1] + 1e9 * (self.loop.decode_seconds - before))
            inside.append(self.loop.logits_seconds + self.loop.sampling_seconds)
            return result

        vars(opened)["Stepper"] = type("Stepper", (opened.Stepper,), {"step": timed_step})
        vars(sys.modules[generate.__module__])["Stepper"] = opened.Stepper
    else:

        def timed(context: Any, batch: Any) -> Any:
            starts.append(perf_counter_ns())
            status = decode(context, batch)
            ends.append(perf_counter_ns())
            return status

        llama_cpp.llama_decode = timed

    with opened.Model(path or default_model()) as model:
        end = {token: float("-inf") for token in range(model.n_vocab) if model.is_eog(token)}
        params = Params(
            temperature=0.0, lz_rule="paper", lz_penalty=0.15, logit_bias=end
        )  # so that the text has all its tokens
        made = generate(model, PROMPT, GenerationConfig(params, max_tokens=n), on_text=lambda text: None)
        gaps = [(start - end) / 1000 for end, start in zip(ends[1:], starts[2:], strict=False)]
        steps = [1e6 * (after - before) for before, after in pairwise(inside[1:])]
        took = median((end - start) / 1000 for start, end in zip(starts[1:], ends[1:], strict=True))
        vars(opened).update(original)
        vars(sys.modules[generate.__module__]).update(original)
        llama_cpp.llama_decode = _nothing(llama_cpp, decode)
        loops = []
        for _ in range(20):
            timings = generate(model, PROMPT, GenerationConfig(params, max_tokens=n), on_text=lambda text: None).timings
            loops.append(1e6 * (timings.total - timings.prompt) / n)
        llama_cpp.llama_decode = decode
        return {
            "loop us": min(loops),
            "pick us": _pick(model, params, made.tokens),
            "cold us": median(gaps),
            "of it C us": median(steps) if steps else float("nan"),
            "decode us": took,
        }


def _nothing(llama_cpp: Any, decode: Any) -> Any:
    """Return a function of C with llama_decode's signature that returns 0: a feature that no CPU with another has."""
    name = "ggml_cpu_has_sve" if platform.machine() in ("x86_64", "AMD64") else "ggml_cpu_has_avx512"
    folder = Path(llama_cpp.__file__).parent / "lib"
    nothing = ctypes.CDLL(str(next(folder.glob("*ggml-cpu.*"))))[name]
    nothing.argtypes, nothing.restype = decode.argtypes, decode.restype
    return nothing


def _pick(model: Any, params: Any, tokens: tuple[int, ...]) -> float:
    """Return the microseconds of a pick and an accept, over the tokens of a text."""
    from lzsampler import Sampler
    from lzsampler._ffi import ffi, lib

    row, out, took = model.logits().copy(), ffi.new("int32_t *"), []
    logits = ffi.from_buffer("float[]", row)
    sampler = Sampler(model.n_vocab, params)
    for token in tokens:
        start = perf_counter_ns()
        lib.lzs_sample(sampler.handle, logits, out)
        lib.lzs_accept(sampler.handle, token)
        took.append((perf_counter_ns() - start) / 1000)
    return median(took)


if __name__ == "__main__":
    main()
