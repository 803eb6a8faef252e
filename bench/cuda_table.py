"""The times of `cuda.py`: CUDA graphs of each arm, what they must show, and the bytes of memory that Nsight counts.

tests/test_cuda_bench.py holds the judgement and the reading of Nsight's answer.
"""

import csv
import shutil
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from cuda_arms import HISTORY, Arm, Case, Step, ours, peers, read

SIZES, BATCHES, DTYPES = (32000, 128256, 151936, 262144), (1, 8, 32, 64, 128, 256), ("float32", "bfloat16")
STEPS, REPLAYS = 20, 30
FLUSH = 1 << 28  # bytes that are written before a measurement: more than the L2 cache of any device holds

Line = dict[str, Any]


def timed(torch: Any, step: Step, rows: list[Any], *, cold: bool = True) -> float:
    """Return the microseconds of a step: the median of CUDA graphs of one step on each of ``rows``.

    ``cold``: the L2 cache has none of the rows when a graph begins.
    """
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(rows[0])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        kept = [step(x) for x in rows]  # or the memory of a step is that of the next one
    flush = torch.empty(FLUSH if cold else 1, dtype=torch.uint8, device="cuda")
    times = []
    for _ in range(REPLAYS):
        flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * start.elapsed_time(end) / len(rows))
    del kept
    return float(statistics.median(times))


def batches(torch: Any, n: int, n_vocab: int, dtype: str) -> list[Any]:
    """Return batches of rows, at least 2 and at most ``STEPS``, of 2 GB together at most."""
    copies = max(2, min(STEPS, 2**31 // (4 * n * n_vocab)))
    return [(3 * torch.randn(n, n_vocab, device="cuda")).to(getattr(torch, dtype)) for _ in range(copies)]


def table(torch: Any) -> list[Line]:
    """Return a line for each size, batch and type: microseconds of each arm, and None for one that fails."""
    others = peers(torch)
    lines = []
    for n_vocab in SIZES:
        for n in BATCHES:
            for dtype in DTYPES:
                rows, case = batches(torch, n, n_vocab, dtype), Case(torch, n, n_vocab)
                line: Line = {"V": n_vocab, "B": n, "dtype": dtype}
                arms: dict[str, Arm] = {"read": read, "ours": ours, "without LZ": partial(ours, lz=False)}
                arms |= others
                for name, arm in arms.items():
                    try:
                        line[name] = timed(torch, arm(case), rows)
                    except Exception as error:  # of a package of others: out of memory, or what a graph cannot hold
                        if name not in others:
                            raise
                        line[name] = None
                        print(f"{name}: not measured: {(str(error) or repr(error)).splitlines()[0]}", flush=True)
                line["warm"] = timed(torch, ours(case), rows[:1] * STEPS, cold=False)
                print(*(f"{k} {v:.1f}" if isinstance(v, float) else f"{k} {v}" for k, v in line.items()), flush=True)
                lines.append(line)
    return lines


def judged(lines: list[Line]) -> list[tuple[bool, str]]:
    """Return whether each aim is met, with the figure that is farthest from it. Float32 rows only."""
    rows = [line for line in lines if line["dtype"] == "float32"]
    reads = [(line["ours"] / line["read"], line) for line in rows if line["B"] >= 32]
    sorts = [(line["torch"] / line["ours"], line) for line in rows if line.get("torch")]
    lz = [(line["ours"] - line["without LZ"] - 0.05 * line["B"], line) for line in rows]
    most, cost = max(reads, key=_figure), max(lz, key=_figure)
    nothing: tuple[float, Line] = (0.0, {})
    least = min(sorts, key=_figure, default=nothing)
    return [
        (most[0] <= 1.5, f"at most 1.5 reads for 32 rows and more: {most[0]:.2f}{_where(most)}"),
        (least[0] >= 5, f"at least 5 times as fast as torch: {least[0]:.1f}{_where(least)}"),
        (cost[0] <= 2, f"LZ in at most 2 us + 0.05 us a row: {cost[0]:.1f} us + 0.05 us a row{_where(cost)}"),
    ]


def _figure(found: tuple[float, Line]) -> float:
    return found[0]


def _where(found: tuple[float, Line]) -> str:
    return f" at B={found[1]['B']} V={found[1]['V']}" if found[1] else " (not measured)"


def launch_all(torch: Any) -> None:
    """Run one step of ours for each size and batch, in order, for a profiler."""
    for n_vocab in SIZES:
        for n in BATCHES:
            ours(Case(torch, n, n_vocab))(torch.randn(n, n_vocab, device="cuda"))
    torch.cuda.synchronize()


METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum")


def add_traffic(lines: list[Line], script: Path) -> str:
    """Add the bytes of DRAM of a step of ours, in reads of its rows, to the lines of float32; return what to say of it.

    ``script`` runs `launch_all` when it is called with ``--launch``.
    """
    ncu = shutil.which("ncu")
    if not ncu:
        return "ncu: not found: bytes of memory are not counted"
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
    command += ["--kernel-name", "regex:lzs_", "--metrics", ",".join(METRICS), sys.executable, str(script), "--launch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    steps = steps_of(done.stdout)
    wanted = [line for line in lines if line["dtype"] == "float32"]
    if len(steps) != len(wanted):
        said = [text for text in (done.stdout + done.stderr).splitlines() if text.startswith("==ERROR==")]
        return f"ncu: bytes of memory are not counted: {said[0] if said else f'{len(steps)} steps of {len(wanted)}'}"
    for line, size in zip(wanted, steps, strict=True):
        line["traffic"] = size / (4 * line["B"] * line["V"] + 4 * line["B"] * HISTORY)
    figures = ", ".join(f"{line['traffic']:.2f}" for line in wanted)
    return f"ncu: bytes of memory of the steps, in those of their rows and histories: {figures}"


def steps_of(text: str) -> list[float]:
    """Return the bytes of each step from Nsight's raw page as CSV, where a step begins with the kernel of the edits."""
    header: list[str] | None = None
    steps: list[float] = []
    for row in csv.reader(text.splitlines()):
        if header is None:
            header = row if "Kernel Name" in row else None
            continue
        one = dict(zip(header, row, strict=False))
        if not one.get("ID"):
            continue  # the units
        if one["Kernel Name"].startswith("lzs_fold_kernel"):
            steps.append(0.0)
        if steps:
            steps[-1] += sum(float(one[metric].replace(",", "")) for metric in METRICS)
    return steps
