"""`lzs audit` on what is large: a folder of chat logs, with a break in between, and one long line that repeats itself.

    python bench/audit_large.py [--megabytes 1000] [--workers 2] [--line 100] [--no-break] [--json]

The logs: 8 files of chat JSONL as in audit_run.py. The run keeps its work in a folder (`--resume`) and writes a report;
after a third of its parts it is killed, with its workers, and the same command is started again. Figures: MB/s, the
peak of the memory of all processes of a run, added up, how many parts the second run found done, how often the
progress was drawn, and whether every planted loop, and nothing else, was found.

The line: one record whose text is a page of prose and then one sentence again and again. Figures: seconds of processor
time, the peak of the memory, and both for each MB. Before it come json.loads, and reading
without the scans for loops.
"""

import argparse
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from audit_run import LZS, PROSE, cpu, peaks, write
from measure import report

FILES = 8
PAGE = 2000  # characters of prose before the loop of the line
UNIT = "and the ship went on, as if nobody had ever been on board of it, "


def run(command: list[str], *, kill_after: int = 0, parts: Path | None = None) -> dict[str, Any]:
    """Run a command on a terminal of its own; kill it once a folder has that many parts. Return what it took."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        try:
            while piece := os.read(ours, 4096):
                shown.extend(piece)
        except OSError:  # how Linux tells the end of a terminal
            pass

    reader = threading.Thread(target=read, daemon=True)
    seen: dict[int, int] = {}
    begun, before = time.perf_counter(), cpu()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        reader.start()
        done = 0
        while process.poll() is None:
            peaks(process.pid, seen)
            if parts is not None:
                done = sum(1 for _ in parts.glob("[0-9]*.json"))
            if kill_after and done >= kill_after:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.02)
        seconds = time.perf_counter() - begun
        assert process.stdout is not None
        out = process.stdout.read()
    reader.join(timeout=1)
    os.close(ours)
    return {
        "seconds": seconds,
        "cpu": cpu() - before,
        "memory": sum(seen.values()) / 1024,
        "drawn": shown.count(b"MB/s"),
        "parts": done,
        "out": out,
        "status": process.returncode,
    }


def logs(folder: Path, megabytes: int, workers: int, *, broken: bool) -> list[dict[str, Any]]:
    """Write chat logs and audit them, after a break; return a row for each run."""
    source = folder / "logs"
    source.mkdir()
    planted = 0
    for number in range(FILES):
        path = source / f"{number}.jsonl"
        write(path, megabytes // FILES, seed=number)
        with path.open(encoding="utf-8") as lines:
            planted += -(-sum(1 for _ in lines) // 50)
    size = sum(path.stat().st_size for path in source.iterdir()) / 1e6
    work = folder / "work"
    command = [str(LZS), "audit", str(source), "--resume", str(work), "--workers", str(workers), "--json"]
    rows = []
    n_parts = int(size * 1e6) >> 22
    if broken:
        first = run(command, kill_after=n_parts // 3, parts=work)
        assert first["status"] == -signal.SIGKILL, first
        rows.append({"run": "killed", "MB": size, "parts": first["parts"], "memory, MB": first["memory"]})
    second = run([*command, "-o", str(folder / "report.html")], parts=work)
    left = size * (1 - (rows[0]["parts"] / second["parts"] if rows else 0))
    summary = json.loads(second["out"])
    rows.append(
        {
            "run": "whole" if not broken else "resumed",
            "MB": size,
            "parts": second["parts"],
            "MB/s": left / second["seconds"],
            "CPU, s": second["cpu"],
            "memory, MB": second["memory"],
            "progress drawn": second["drawn"],
            "records": summary["records"],
            "planted": planted,
            "looping": summary["looping"],
        }
    )
    return rows


# Each prints its seconds of processor time, and by how many kB the memory grew.
_TIMED = "import resource, time; b = resource.getrusage(0).ru_maxrss; t = time.process_time()"
_TOLD = "print(time.process_time() - t, resource.getrusage(0).ru_maxrss - b)"
READERS = {
    "json.loads": f"import json, sys; {_TIMED}; json.loads(open(sys.argv[1], 'rb').read()); {_TOLD}",
    "reading": "import sys; from lzsampler.auditing.reading.read import read; "
    f"from lzsampler.auditing.reading.shard import find; {_TIMED}; "
    f"[None for s in find(sys.argv[1])[0] for _ in read(s)]; {_TOLD}",
}


def line(folder: Path, megabytes: int) -> Iterator[dict[str, Any]]:
    """Write one record that repeats itself; yield what reading it takes, and what auditing it takes."""
    path = folder / "line.jsonl"
    page = next(iter(sorted(PROSE.glob("*.txt")))).read_text("utf-8")[:PAGE]
    with path.open("w", encoding="ascii", errors="replace") as file:
        file.write(json.dumps({"id": "long", "response": page})[:-2].encode("ascii", "replace").decode())
        for _ in range(megabytes * 1_000_000 // len(UNIT) // 1000):
            file.write(1000 * UNIT)
        file.write('"}\n')
    size = path.stat().st_size / 1e6
    for name, code in READERS.items():
        told = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
        seconds, kilobytes = map(float, told.stdout.split())
        memory = kilobytes * 1024 / 1e6
        yield {"run": name, "MB": size, "CPU, s": seconds, "memory, MB": memory, "memory / text": memory / size}
    made = run([str(LZS), "audit", str(path), "--json", "--workers", "1"])
    summary = json.loads(made["out"])
    assert summary["looping"] == 1
    yield {
        "run": "one line",
        "MB": size,
        "seconds": made["seconds"],
        "CPU, s": made["cpu"],
        "memory, MB": made["memory"],
        "CPU, ms for each MB": 1000 * made["cpu"] / size,
        "memory / text": made["memory"] / size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000, help="of chat logs; 0: none")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--line", type=int, default=100, help="megabytes of the line; 0: none")
    parser.add_argument("--no-break", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if sys.platform == "win32":
        raise SystemExit("this bench needs a terminal of its own, which Windows does not have")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows: list[dict[str, Any]] = []
        if arguments.megabytes:
            rows += logs(folder, arguments.megabytes, arguments.workers, broken=not arguments.no_break)
        if arguments.line:
            rows += line(folder, arguments.line)
    report(rows, arguments.json)


if __name__ == "__main__":
    main()
