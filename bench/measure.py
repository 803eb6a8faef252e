"""What the benches share: rows of logits, interleaved timing, the machine's name, a table."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from lzsampler import __version__
from lzsampler._ffi import ffi, lib

Row = npt.NDArray[np.float32]
DATA = Path(__file__).with_name("data")


def rows(n_vocab: int, kind: str, n: int = 8) -> list[Row]:
    """Return rows of logits, float32[n_vocab]: "gaussian" (sd 2.6 with six peaks, as untrained heads look), "peaked"
    (rows recorded from a model's run, stretched to the vocabulary by their quantiles and shuffled), "text" (bigram
    log-probabilities of books in a real vocabulary: 32,000, 128,256 or 151,936 tokens), "equal" (all 1). At most 8 rows
    of the recorded kinds; none where the vocabulary was not recorded."""
    rng = np.random.default_rng(n_vocab)
    if kind == "equal":
        return [_aligned(np.ones(n_vocab)) for _ in range(n)]
    if kind == "gaussian":
        made = [_aligned(rng.normal(-1, 2.6, n_vocab)) for _ in range(n)]
        for row in made:
            row[rng.integers(0, n_vocab, 6)] += 12
        return made
    if kind == "text":
        return _text_rows(n_vocab, n, rng)
    with np.load(DATA / "logits.npz") as recorded:
        profiles = np.sort(recorded["logits"].astype(np.float32), axis=1)[:n]
    places = np.linspace(0, profiles.shape[1] - 1, n_vocab)
    return [_aligned(rng.permutation(np.interp(places, np.arange(profiles.shape[1]), profile))) for profile in profiles]


def _text_rows(n_vocab: int, n: int, rng: np.random.Generator) -> list[Row]:
    """Interpolated bigrams (0.7 the pair, 0.3 the token); what never came lies around half a token in all the books."""
    with np.load(DATA / "vocabularies.npz") as recorded:
        names = [f"{n_vocab}_{i}" for i in range(n + 1) if f"{n_vocab}_{i}" in recorded]
        counts = [recorded[name] for name in names]
    made = []
    for ids, pairs in counts[1:]:
        tokens, singles = counts[0]
        logits = np.log(0.5 / singles.sum()) + rng.normal(0, 1.5, n_vocab)
        probability = np.zeros(n_vocab)
        probability[tokens] += 0.3 * singles / singles.sum()
        probability[ids] += 0.7 * pairs / pairs.sum()
        logits[tokens] = np.log(probability[tokens]) + rng.normal(0, 0.3, tokens.size)
        made.append(_aligned(logits))
    return made


def _aligned(values: npt.NDArray[np.float64]) -> Row:
    """Return values as float32 on a 64-byte boundary, as llama.cpp's buffers lie and numpy's do not."""
    room = np.empty(values.size + 16, np.float32)
    start = -room.ctypes.data % 64 // 4
    row = room[start : start + values.size]
    row[:] = values
    return row


def interleave(
    functions: dict[str, tuple[Callable[[int], object], Callable[[int], object]]], rounds: int
) -> dict[str, npt.NDArray[np.float64]]:
    """Time (prepare, run) pairs once a round, in turn, each given the round's number: name -> microseconds[rounds].

    What a run reads should be warm in the caches, as logits are after the decode that wrote them: prepare sees to it.
    """
    times = {name: np.empty(rounds) for name in functions}
    for i in range(-3, rounds):  # three rounds to warm up
        for name, (prepare, run) in functions.items():
            prepare(i)
            start = perf_counter_ns()
            run(i)
            if i >= 0:
                times[name][i] = (perf_counter_ns() - start) / 1000
    return times


def machine() -> str:
    """Return processor, cores, system, versions and the kernels in use."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), cpu)
    kernels = ffi.string(lib.lzs_kernels_name()).decode()
    try:
        llama = metadata.version("llama-cpp-python")
    except metadata.PackageNotFoundError:
        llama = "not installed"
    return (
        f"{cpu}, {os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"llama-cpp-python {llama}, lzsampler {__version__} ({kernels})"
    )


def report(results: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows of results with machine and command, as JSON or as a Markdown table."""
    command = shlex.join(["python", *sys.argv])
    if as_json:
        print(json.dumps({"machine": machine(), "command": command, "results": results}))
        return
    print(f"{machine()}\n{command}\n\n{table(results)}")


def table(results: list[dict[str, Any]]) -> str:
    """Return rows of results as a Markdown table."""
    columns = list(dict.fromkeys(key for row in results for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_shown(row.get(column, "")) for column in columns) + " |" for row in results]
    return "\n".join(lines)


def _shown(value: object) -> str:
    return (
        f"{value:.3g}"
        if isinstance(value, float) and abs(value) < 100
        else f"{value:.0f}"
        if isinstance(value, float)
        else str(value)
    )
