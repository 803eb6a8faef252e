"""The whole command `lzs audit`, as a user starts it: MB/s of JSONL with 1, 2, ... workers, and its memory.

    python bench/audit_run.py [--megabytes 200] [--workers 1 2] [--rounds 3] [--file FILE] [--json]

The file: chat JSONL, answers of 500 to 8,000 characters of prose (the corpus of the embedded model), every fiftieth
with a loop at its end, 20 to 60 copies of 5 to 60 characters. All metrics, all levels but tokens, no output but the
summary. The runs with different numbers of workers take turns. CPU: seconds of all processes of a run; where there is
other work on the machine it says more than the speed-up. Memory: the peaks of all processes of a run, added up.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from measure import report

PROSE = Path(__file__).with_name("train_embedded") / "corpus"
LZS = Path(sys.executable).with_name("lzs")


def write(path: Path, megabytes: int, seed: int = 5) -> None:
    """Write a file of transcripts of about that size."""
    prose = "".join(file.read_text("utf-8") for file in sorted(PROSE.glob("*.txt")))
    rng = random.Random(seed)
    written = number = 0
    with path.open("w", encoding="utf-8") as file:
        while written < megabytes * 1e6:
            start = rng.randrange(len(prose) - 8000)
            text = prose[start : start + rng.randrange(500, 8000)]
            if number % 50 == 0:
                text += text[-rng.randrange(5, 61) :] * rng.randrange(20, 61)
            messages = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": text}]
            line = {"id": f"r{number}", "model": f"m{number % 4}", "messages": messages}
            written += file.write(json.dumps(line, ensure_ascii=False) + "\n")
            number += 1


def peaks(pid: int, seen: dict[int, int]) -> None:
    """Note the peak of the memory of a process and its children so far, kB by process."""
    try:
        threads = Path(f"/proc/{pid}/task").glob("*/children")  # each lists those that it started itself
        children = [int(child) for thread in threads for child in thread.read_text().split()]
        for process in (pid, *children):
            _, _, rest = Path(f"/proc/{process}/status").read_text().partition("VmHWM:")
            if rest:
                seen[process] = max(seen.get(process, 0), int(rest.split()[0]))
    except (OSError, ValueError):  # it ended meanwhile
        return


Run = tuple[float, float, float, dict[str, Any]]


def cpu() -> float:
    """Return the seconds of processor time of all processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(path: Path, workers: int) -> Run:
    """Return seconds, seconds of processor time, MB of memory and the summary of one run."""
    seen: dict[int, int] = {}
    command = [str(LZS), "audit", str(path), "--json", "--workers", str(workers)]
    begun, before = time.perf_counter(), cpu()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        while process.poll() is None:
            peaks(process.pid, seen)
            time.sleep(0.02)
        seconds = time.perf_counter() - begun
        assert process.stdout is not None
        summary: dict[str, Any] = json.load(process.stdout)
    return seconds, cpu() - before, sum(seen.values()) / 1024, summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--file", type=Path, help="audit this one instead")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.file or Path(folder) / "transcripts.jsonl"
        if arguments.file is None:
            write(path, arguments.megabytes)
        size = path.stat().st_size / 1e6
        runs: dict[int, list[Run]] = {workers: [] for workers in arguments.workers}
        for _ in range(arguments.rounds):
            for workers in arguments.workers:
                runs[workers].append(run(path, workers))
    results = []
    for workers, made in runs.items():
        seconds = np.array([one[0] for one in made])
        results.append(
            {
                "workers": workers,
                "MB": size,
                "records": made[0][3]["records"],
                "looping": made[0][3]["looping"],
                "MB/s": float(size / np.median(seconds)),
                "slowest": float(size / seconds.max()),
                "fastest": float(size / seconds.min()),
                "CPU, s": float(np.median([one[1] for one in made])),
                "memory, MB": max(one[2] for one in made),
                "speed-up": float(np.median([base[0] for base in runs[arguments.workers[0]]]) / np.median(seconds)),
            }
        )
    report(results, arguments.json)


if __name__ == "__main__":
    main()
