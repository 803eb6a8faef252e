"""The HTML report in a browser: how long it takes to write and to load, and how large it is.

    python bench/report.py [--records 10 100000] [--looping 0.034] [--keep FOLDER] [--browser chromium] [--json]

Audits are made up: pieces of the corpus of the embedded model, a share of them with a loop. Loading is from the start
of the navigation until the table of samples stands, in headless Chromium, median of five; none without Chromium.
"""

import argparse
import json
import math
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from lzsampler.auditing.records import Audited, BadRecord, Field, FieldName, Finding, Rule
from lzsampler.auditing.summary import WORST, Group, Summary, loops, wasted_tokens
from lzsampler.reports.audit_html import write_html
from measure import machine

CORPUS = Path(__file__).with_name("train_embedded") / "corpus"
ROUNDS = 5
MODELS = {"tiny-0.6b": 1.6, "tiny-1.7b": 1.0, "base-3b": 0.5, "base-8b": 0.2}  # how often they loop, relative
TEMPERATURES = ("0", "0.3", "0.6", "1")
UNITS = (
    "Wait, let me reconsider. ",
    "So the answer is 42. But wait, the answer is 42. ",
    "\n\n**Step 4.** We substitute x = 3 into the equation and get 2x + 1 = 7, which is what we had before.",
    "the the ",
    "- [ ] item\n",
    "Hmm, ",
    "\n    return self.value if self.value is not None else self.default\n",
    "等一下，让我再想想。",
)


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        kept = arguments.keep or Path(folder)
        results = [measure(n, arguments.looping, kept, arguments.browser) for n in arguments.records]
    report = {"machine": machine(), "command": shlex.join(["python", *sys.argv]), "results": results}
    if arguments.json:
        print(json.dumps(report))
        return
    print(f"{report['machine']}\n{report['command']}\n")
    print("| records | looping | written in, s | size, MB | loads in, s |\n|---|---|---|---|---|")
    for row in results:
        loads = "-" if row["load_seconds"] is None else f"{row['load_seconds']:.2f}"
        print(f"| {row['records']:,} | {row['looping']:,} | {row['write_seconds']:.2f} | {row['mb']:.2f} | {loads} |")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[10, 100_000])
    parser.add_argument("--looping", type=float, default=0.034, help="share of the records, about")
    parser.add_argument("--keep", type=Path, help="folder that the reports stay in")
    parser.add_argument("--browser", default="chromium", help="Chromium's command")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser.parse_args()


def measure(n: int, looping: float, folder: Path, browser: str) -> dict[str, Any]:
    path = folder / f"report-{n}.html"
    summary, spent = Summary({}, ("model", "temperature")), [0.0]
    # The audit itself is not what is timed; the generator says how much of the time was its own.
    for record in audits(n, looping, [0.0]):
        add(summary, record)
    complete(summary)
    start = perf_counter()
    write_html(path, summary, audits(n, looping, spent))
    seconds = perf_counter() - start - spent[0]
    return {
        "records": n,
        "looping": summary.total.looping,
        "write_seconds": seconds,
        "mb": path.stat().st_size / 1e6,
        "load_seconds": load(path, browser),
    }


def load(path: Path, browser: str) -> float | None:
    if shutil.which(browser) is None:
        return None
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", path.resolve().as_uri()]
    times = []
    for _ in range(ROUNDS):
        dom = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
        ready = re.search(r'<html[^>]* data-ready="(\d+)"', dom)
        if ready is None:
            raise RuntimeError(f"{path} did not get ready in {browser}")
        times.append(int(ready[1]) / 1000)
    return median(times)


def audits(n: int, looping: float, spent: list[float]) -> Iterator[Audited]:
    """Return ``n`` records as an audit leaves them; ``spent[0]`` is the time that making them took."""
    prose = "\n".join(path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("*.txt"))[:4])
    rng = random.Random(5)
    for number in range(n):
        start = perf_counter()
        record = made(rng, prose, number, looping, always=n < 100 and number % 3 == 0)
        spent[0] += perf_counter() - start
        yield record


def made(rng: random.Random, prose: str, number: int, looping: float, *, always: bool) -> Audited:
    model, temperature = rng.choice(list(MODELS)), rng.choice(TEMPERATURES)
    groups = {"model": model, "temperature": temperature, "task": rng.choice(("math", "code", "chat"))}
    chance = looping * MODELS[model] * math.exp(-2.5 * float(temperature)) * 2.4
    before = _piece(rng, prose, int(rng.lognormvariate(7.6, 0.9)))
    file, ident = f"runs/{model}-t{temperature}.jsonl", f"{groups['task']}-{number:06d}"
    if not always and rng.random() >= chance:
        literal = rng.random() < 0.02
        return Audited(file, number, ident, groups, False, literal, len(before), (), {})
    unit = rng.choice(UNITS) if rng.random() < 0.6 else _piece(rng, prose, int(rng.lognormvariate(4.5, 1)))
    copies = max(3 + 100 // len(unit), int(rng.lognormvariate(4.2, 1.1)))
    looped = unit * min(copies, 30_000 // len(unit) + 3)
    tail = rng.random() < 0.85
    text = before + looped + ("" if tail else "\n\n" + _piece(rng, prose, 600))
    name: FieldName = "reasoning" if rng.random() < 0.6 else "answer"
    rules: tuple[Rule, ...] = ("LZR001",) if tail else ("LZR002",)
    if unit.endswith("\n"):
        rules += ("LZR003",)
    if len(looped) >= 20 * len(unit):
        rules += ("LZR020",)
    findings = tuple(
        Finding(
            name, "line" if rule == "LZR003" else "char", rule, len(before), len(before) + len(looped), len(unit),
            len(looped) / len(unit), unit[:200], len(before) / len(text), tail, (len(looped) - len(unit)) // 4,
        )
        for rule in rules
    )  # fmt: skip
    fields: tuple[Field, ...] = (Field(name, text),)
    if name == "answer" and rng.random() < 0.5:
        fields = (Field("reasoning", _piece(rng, prose, 2000)), *fields)
    texts = tuple((field.name, field.text) for field in fields)
    size = sum(len(text) for _, text in texts)
    return Audited(file, number, ident, groups, True, "LZR020" in rules, size, findings, {}, texts)


def _piece(rng: random.Random, prose: str, n: int) -> str:
    start = rng.randrange(len(prose) - n - 1)
    return prose[start : start + n + 1]


def add(summary: Summary, record: Audited) -> None:
    key = tuple(record.groups[name] for name in summary.by)
    for group in (summary.total, summary.groups.setdefault(key, Group())):
        group.records += 1
        group.looping += record.looping
        group.literal += record.literal
        group.characters += record.characters
        if record.looping:
            first = min(loops(record), key=lambda f: f.start)
            group.wasted_tokens += wasted_tokens(record)
            group.starts.append(first.share)
            group.periods.append(first.period)
    for rule in {finding.rule for finding in record.findings}:
        summary.rule_counts[rule] = summary.rule_counts.get(rule, 0) + 1
    if record.looping:
        summary.points.append((first.period, first.copies))
        summary.worst = sorted([*summary.worst, record], key=lambda r: -wasted_tokens(r))[:WORST]


def complete(summary: Summary) -> None:
    summary.points = summary.points[:5000]
    summary.rules = {"min_copies": 20, "min_length": 100, "short_copies": 3, "levels": ("char", "line")}
    summary.bad = [BadRecord("runs/tiny-0.6b-t0.jsonl", 17, "not JSON: Expecting value at column 1")]
    summary.bad_records = 1


if __name__ == "__main__":
    main()
