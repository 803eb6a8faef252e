"""`markdown_table`: the settings of an evaluation as lm-eval prints its tasks, for a terminal or a README."""

from collections import defaultdict
from typing import TYPE_CHECKING

from ..util.stats import Interval
from .tax_terminal import extra
from .text import columns, percent, visible

if TYPE_CHECKING:
    from ..evaluation.grid import Setting
    from ..evaluation.results import Results

_NAMES = ("kind", "strength", "T", "more")  # at the left; figures are at the right
_FIGURES = ("texts", "loops", "loop rate", "±", "accuracy", "±", "tokens", "wasted")
_TAX = ("tax", "±", "lost", "front")  # where the tax was measured


def markdown_table(results: "Results") -> str:
    """Return a row a setting, in the grid's order; ± is half of Wilson's 95 % interval.

    ``tax``: extra nats a token on the texts of ``--texts``, with half of its bootstrap interval; ``lost``: the share of
    first choices lost there; ``front``: whether no other penalty stops more loops for less tax.

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
            f"{counts.tokens}",
            percent(counts.wasted_share),
            *_taxed(results, setting.name),
        ])  # fmt: skip
    figures = _FIGURES if results.tax is None else (*_FIGURES, *_TAX)
    heads = [*_NAMES, *figures]
    if not any(extra.values()):
        heads.remove("more")
        rows = [row[:3] + row[4:] for row in rows]
    widths = [max(columns(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    left = len(heads) - len(figures)
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


def _rate(rate: float | None, interval: Interval) -> tuple[str, str]:
    return ("", "") if rate is None else (f"{rate:.3f}", f"{(interval.high - interval.low) / 2:.3f}")


def _taxed(results: "Results", name: str) -> list[str]:
    if results.tax is None:
        return []
    made = results.tax.figures(name)
    bounds = made.extra_interval
    best = any(each.best and name in each.settings for each in results.tradeoffs)
    half = "" if bounds is None else f"{(bounds.high - bounds.low) / 2:.3f}"
    return [extra(made), half, percent(made.lost), "yes" if best else ""]
