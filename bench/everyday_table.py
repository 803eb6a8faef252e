"""The table of `lzs eval --grid everyday`: what each setting does to long answers, to copies and to answers that loop.

    lzs eval -m smollm2 --grid everyday -np 32 -t 1 -o everyday
    python bench/everyday_table.py everyday [MORE FOLDERS]

Several folders are shown together: their texts of the same setting are added up. Every figure has its 95 % interval:
Wilson's for a share; for a mean, a ratio or a difference a bootstrap in which whole prompts are drawn.

- repeats: a prompt's text loops (as the audit says), or one 8-gram of its words is there 4 times or more.
- of none: the share of texts that repeat, divided by that without a penalty, over the prompts that both have.
- rep-4: the share of 4-grams of words that were there before, mean over the prompts.
- copies: the tasks `copy-json` and `copy-code`, which have been the yardstick from the beginning.
- answers: right answers to all tasks; the difference from no penalty over the tasks that both have.
- stuck: the tasks whose text loops without a penalty; "right" are those that the setting answers.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lzsampler import Results
from lzsampler.evaluation.counts import Outcome
from lzsampler.evaluation.grid import Setting
from lzsampler.evaluation.run_folder import TRANSCRIPTS, RunFolder
from lzsampler.util.stats import ROUNDS, Interval, bootstrap_ratios, wilson

N, TIMES = 8, 4  # words of the n-gram that shows repetition, and how often it is there
COPIES = ("copy-json", "copy-code")
_SEED = 20131


@dataclass(frozen=True)
class Row:
    """A text of a run: its outcome, and what its words say."""

    outcome: Outcome
    repeats: bool
    rep4: float
    ended: bool


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="work folder of lzs eval")
    print("\n\n".join(tables(parser.parse_args().folders)))


def tables(folders: Sequence[Path]) -> list[str]:
    """Return the table of settings and that of kinds of tasks, in Markdown."""
    settings: dict[str, Setting] = {}
    rows: dict[str, list[Row]] = {}
    for folder in folders:
        results = Results.read(folder)
        settings |= {setting.name: setting for setting in results.grid.settings}
        for row in read(folder, results):
            rows.setdefault(row.outcome.setting, []).append(row)
    none = next((name for name, setting in settings.items() if setting.kind == "none"), None)
    before = {} if none is None else {_key(row): row for row in rows.get(none, ())}
    named = {_name(settings[name]): rows[name] for name in settings if name in rows}
    lines = [figures(name, texts, before) for name, texts in named.items()]
    kinds = list(
        dict.fromkeys(r.outcome.task for texts in named.values() for r in texts if r.outcome.right is not None)
    )
    return [markdown(lines), markdown([_kind(kind, named) for kind in kinds])]


def read(folder: Path, results: Results) -> list[Row]:
    """Return the texts of a folder."""
    texts = {line.key: line.row for line in RunFolder(folder).lines(TRANSCRIPTS) if line.key and line.row}
    rows = []
    for outcome in results.outcomes:
        row = texts[outcome.setting, outcome.prompt, outcome.seed]
        answer = row["messages"][-1]
        text = "\n".join(part for part in (answer.get("reasoning_content"), answer["content"]) if part)
        repeats = outcome.looping or most_often(text, N) >= TIMES
        rows.append(Row(outcome, repeats, row["repetition"]["rep4"], row["finish_reason"] == "stop"))
    return rows


def most_often(text: str, n: int) -> int:
    """Return how often the commonest n-gram of a text's words is there; 0 if the text is shorter."""
    words = text.split()
    counts = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    return max(counts.values(), default=0)


def figures(name: str, texts: Sequence[Row], before: Mapping[Any, Row]) -> dict[str, str]:
    """Return a setting's line of the table."""
    long = [row for row in texts if row.outcome.right is None]
    tasks = [row for row in texts if row.outcome.right is not None]
    copies = [row for row in tasks if row.outcome.task in COPIES]
    pairs = [(row, before[_key(row)]) for row in texts if _key(row) in before]
    stuck = [row for row, none in pairs if row.outcome.right is not None and none.outcome.looping]
    return {
        "setting": name,
        "repeats": _share([row.repeats for row in long]),
        "of none": _ratio([(row, none) for row, none in pairs if row.outcome.right is None]),
        "loops": _share([row.outcome.looping for row in long]),
        "rep-4": _mean(long, lambda row: row.rep4),
        "ended": _share([row.ended for row in long]),
        "copies": _share([row.outcome.right is True for row in copies]),
        "answers": _share([row.outcome.right is True for row in tasks]),
        "difference": _difference([(row, none) for row, none in pairs if row.outcome.right is not None]),
        "stuck, right": _share([row.outcome.right is True for row in stuck]),
    }


def markdown(lines: Sequence[Mapping[str, str]]) -> str:
    """Return rows with the same columns as a Markdown table."""
    if not lines:
        return ""
    columns = list(lines[0])
    table = [columns, ["---"] * len(columns), *([line[column] for column in columns] for line in lines)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table)


def _kind(kind: str, named: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    line = {"task": kind}
    for name, texts in named.items():
        of_kind = [row.outcome for row in texts if row.outcome.task == kind and row.outcome.right is not None]
        loops = sum(outcome.looping for outcome in of_kind)
        right = f"{sum(outcome.right is True for outcome in of_kind)} of {len(of_kind)}"
        line[name] = right + (f", {loops} loop" if loops else "")
    return line


def _key(row: Row) -> tuple[str, str]:
    return row.outcome.prompt, row.outcome.task


def _name(setting: Setting) -> str:
    return f"{setting.kind} {setting.strength:g}" if setting.strength else setting.kind


def _share(values: Sequence[bool]) -> str:
    if not values:
        return "–"
    return f"{sum(values)} of {len(values)} ({_interval(wilson(sum(values), len(values)))})"


def _mean(texts: Sequence[Row], value: Callable[[Row], float]) -> str:
    if not texts:
        return "–"
    values = [value(row) for row in texts]
    return f"{np.mean(values):.3f} ({_interval(_drawn(values, [row.outcome.prompt for row in texts]))})"


def _drawn(values: Sequence[float], prompts: Sequence[str]) -> Interval:
    """Return the interval of a mean; its bootstrap draws whole prompts."""
    of: dict[str, list[float]] = {}
    for value, prompt in zip(values, prompts, strict=True):
        of.setdefault(prompt, []).append(value)
    return bootstrap_ratios([[sum(each) for each in of.values()]], [len(each) for each in of.values()])[0]


def _ratio(pairs: Sequence[tuple[Row, Row]]) -> str:
    """Return the ratio of two shares of texts that repeat; its bootstrap draws whole prompts."""
    prompts: dict[str, tuple[int, int]] = {}
    for row, none in pairs:
        ours, theirs = prompts.get(row.outcome.prompt, (0, 0))
        prompts[row.outcome.prompt] = ours + row.repeats, theirs + none.repeats
    counts = np.array(list(prompts.values()))
    if not counts.size or not counts[:, 1].sum():
        return "–"
    drawn = np.random.default_rng(_SEED).integers(0, len(counts), (ROUNDS, len(counts)))
    sums = counts[drawn].sum(1)
    ratios = sums[:, 0] / np.maximum(sums[:, 1], 1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return f"{counts[:, 0].sum() / counts[:, 1].sum():.2f} ({_interval(Interval(float(low), float(high)))})"


def _difference(pairs: Sequence[tuple[Row, Row]]) -> str:
    if not pairs:
        return "–"
    values = [int(row.outcome.right is True) - int(none.outcome.right is True) for row, none in pairs]
    low, high = _drawn(values, [row.outcome.prompt for row, _ in pairs])
    return f"{sum(values):+d} ({low * len(values):+.0f} to {high * len(values):+.0f})"


def _interval(interval: Interval) -> str:
    return f"{interval.low:.2f} to {interval.high:.2f}"


if __name__ == "__main__":
    main()
