"""`markdown_table`: the settings of an evaluation as lm-eval prints its tasks, for a terminal or a README."""

from collections import defaultdict
from typing import TYPE_CHECKING

from ..util.stats import Interval
from .text import columns, percent, visible

if TYPE_CHECKING:
    from ..evaluation.counts import Counts
    from ..evaluation.grid import Setting
    from ..evaluation.results import Results

_NAMES = ("kind", "strength", "T", "more")  # at the left; figures are at the right
_FIGURES = ("texts", "loops", "loop rate", "±", "accuracy", "±", "loop, right", "loop, wrong", "tokens", "wasted")


def markdown_table(results: "Results") -> str:
    """Return a row a setting, in the grid's order; ± is half of Wilson's 95 % interval.

    "loop, right" and "loop, wrong" are answers to tasks that loop: loops and accuracy on the same texts.

    ``more``: what a setting has that others of its kind, strength and temperature have not; no column where nothing.
    """
    extra = more(results.grid.settings)
    rows = []
    for setting in results.grid.settings:
        counts = results.counts(name=setting.name)
        rows.append([
            visible(setting.kind).replace("|", "\\|"),
            f"{setting.strength:g}",
            f"{setting.params.temperature:g}",
            visible(extra[setting.name]).replace("|", "\\|"),
            f"{counts.texts}",
            f"{counts.looping}",
            *_rate(counts.loop_rate if counts.texts else None, counts.loop_interval),
            *_rate(counts.accuracy, counts.accuracy_interval),
            *_looping(counts),
            f"{counts.tokens}",
            percent(counts.wasted_share),
        ])  # fmt: skip
    heads = [*_NAMES, *_FIGURES]
    if not any(extra.values()):
        heads.remove("more")
        rows = [row[:3] + row[4:] for row in rows]
    widths = [max(columns(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    left = len(heads) - len(_FIGURES)
    rule = ["-" * (width + 2) if i < left else "-" * (width + 1) + ":" for i, width in enumerate(widths)]
    return "\n".join([_row(heads, widths, left), f"|{'|'.join(rule)}|", *(_row(row, widths, left) for row in rows)])


def more(settings: "tuple[Setting, ...]") -> dict[str, str]:
    """Return by name what tells settings of the same kind, strength and temperature apart; mostly nothing."""
    alike: dict[tuple[str, float, float], list[Setting]] = defaultdict(list)
    for setting in settings:
        alike[setting.kind, setting.strength, setting.params.temperature].append(setting)
    told: dict[str, str] = {}
    for group in alike.values():
        words = [setting.name.split(" ") for setting in group]
        shared = set.intersection(*map(set, words)) if len(group) > 1 else set(words[0])
        for setting, own in zip(group, words, strict=True):
            told[setting.name] = " ".join(word for word in own if word not in shared)
    return told


def _row(cells: list[str], widths: list[int], left: int) -> str:
    padded = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - columns(cell))
        padded.append(cell + space if i < left else space + cell)
    return f"| {' | '.join(padded)} |"


def _looping(counts: "Counts") -> tuple[str, str]:
    if not counts.answered:
        return "", ""
    return f"{counts.right_looping}", f"{counts.answered_looping - counts.right_looping}"


def _rate(rate: float | None, interval: Interval) -> tuple[str, str]:
    return ("", "") if rate is None else (f"{rate:.3f}", f"{(interval.high - interval.low) / 2:.3f}")
