"""`markdown_table`: the settings of an evaluation in the format of lm-eval, for a terminal or a README.

This module does not use rich, whose Markdown tables have no column alignment and wrap cells on a narrow terminal.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..util.stats import Interval
from .cost_terminal import extra as extra_nats
from .cost_terminal import interval as extra_interval
from .text import columns, percent, visible

if TYPE_CHECKING:
    from ..evaluation.costs import Figures
    from ..evaluation.counts import Counts
    from ..evaluation.grid import Setting
    from ..evaluation.results import Results

Column = tuple[str, list[str]]
"""A head and the cells below it."""


def markdown_table(results: "Results", *, terms: bool = False) -> str:
    """Return a table with a row for each setting, in the grid's order.

    It is up to 100 columns wide, or 110 without ``sd``.

    Rates are in percent, with both ends of Wilson's 95 % interval. ``sd``: the standard deviation over seeds, in
    percentage points. "loop, right" and "loop, wrong": numbers of looping texts with a correct and with a wrong answer.
    ``cost``: extra nats per token on the texts of ``--texts``, with a bootstrap interval. ``lost``: the share of first
    choices lost on these texts. ``front``: whether the penalty is on the Pareto front of stopped loops and cost.
    ``more``: what distinguishes a setting from other settings of the same kind, strength and temperature. Empty columns
    are left out. The argument ``terms``: whether to show the metrics of other publications instead (docs/evaluate.md).
    """
    settings = results.grid.settings
    extra = more(settings)
    kinds = [visible(setting.kind).replace("|", "\\|") for setting in settings]
    strengths = [f"{setting.strength:g}" for setting in settings]
    if terms:
        left = [("setting", [f"{kind} {strength}" for kind, strength in zip(kinds, strengths, strict=True)])]
    else:
        left = [("kind", kinds), ("strength", strengths)]
    left.append(("T", [f"{setting.params.temperature:g}" for setting in settings]))
    left.append(("more", [visible(extra[setting.name]).replace("|", "\\|") for setting in settings]))
    left = [(head, cells) for head, cells in left if head != "more" or any(cells)]
    columns_of = [_terms] if terms else [_rates, _costs]
    right = [(head, cells) for part in columns_of for head, cells in part(results) if any(cells)]
    widths = [max(map(columns, (head, *cells))) for head, cells in (*left, *right)]
    heads, *rows = zip(*((head, *cells) for head, cells in (*left, *right)), strict=True)
    rule = ["-" * (width + 2) if i < len(left) else "-" * (width + 1) + ":" for i, width in enumerate(widths)]
    lines = [_row(row, widths, len(left)) for row in (heads, *rows)]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]])


def _rates(results: "Results") -> list[Column]:
    """Return the number of texts, the rate of texts that loop, and the rate of correct answers."""
    counts = [results.counts(name=setting.name) for setting in results.grid.settings]
    spreads = [results.spread(name=setting.name) for setting in results.grid.settings]
    return [
        ("texts", [f"{c.texts}" for c in counts]),
        ("loop rate, %", [_rate(c.loop_rate if c.texts else None, c.loop_interval) for c in counts]),
        ("sd", [_points(spread.loop_rate) for spread in spreads]),
        (_accuracy_head(counts), [_rate(c.accuracy, c.accuracy_interval) for c in counts]),
        ("sd", [_points(spread.accuracy) for spread in spreads]),
        *([] if any(spread.loop_rate is not None for spread in spreads) else _loops_and_answers(counts)),
    ]


def _accuracy_head(counts: "Sequence[Counts]") -> str:
    """Return the head of the column of accuracies. If some texts are not answers, add the number of answers."""
    if all(c.answered in (0, c.texts) for c in counts):
        return "accuracy, %"
    least, most = min(c.answered for c in counts), max(c.answered for c in counts)
    return f"accuracy of {least if least == most else f'{least} to {most}'}, %"


def _loops_and_answers(counts: "Sequence[Counts]") -> list[Column]:
    """Return how many answers to tasks loop. A table with standard deviations has no room for these columns."""
    return [
        ("loop, right", [f"{c.right_looping}" if c.answered else "" for c in counts]),
        ("loop, wrong", [f"{c.answered_looping - c.right_looping}" if c.answered else "" for c in counts]),
    ]


def _costs(results: "Results") -> list[Column]:
    """Return the cost of the penalties on the texts of ``--texts``; empty if it was not measured."""
    names = [setting.name for setting in results.grid.settings]
    if results.costs is None:
        return []
    made = [results.costs.figures(name) for name in names]
    best = {name for each in results.tradeoffs if each.best for name in each.settings}
    return [
        ("cost", [_extra(each) for each in made]),
        ("lost", [percent(each.lost) for each in made]),
        ("front", ["yes" if name in best else "" for name in names]),
    ]


def _terms(results: "Results") -> list[Column]:
    """Return the metrics of other publications. A column ``loop`` is the loop rate of the column before it."""
    counts = [results.counts(name=setting.name) for setting in results.grid.settings]
    firsts = [results.first_loops(name=setting.name).median_of_looping for setting in results.grid.settings]
    return [
        ("30×20", [_share(c.frequent_rate if c.texts else None) for c in counts]),
        ("tail", [_share(c.tail_rep4 if c.texts else None) for c in counts]),
        ("SER@4", [_share(c.ser4) for c in counts]),
        ("first", ["" if first is None else f"{first:.0f}" for first in firsts]),
        ("cap", [_share(c.capped_share if c.texts else None) for c in counts]),
        ("loop", [_share(c.capped_loop_rate) for c in counts]),
        ("end", [_share(c.ended / c.texts if c.texts else None) for c in counts]),
        ("loop", [_share(c.ended_loop_rate) for c in counts]),
        ("waste", [_share(c.wasted_share if c.texts else None) for c in counts]),
    ]


def more(settings: "tuple[Setting, ...]") -> dict[str, str]:
    """Return name of a setting -> what distinguishes it from settings of the same kind, strength and temperature."""
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


def _row(cells: Sequence[str], widths: list[int], left: int) -> str:
    padded = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - columns(cell))
        padded.append(cell + space if i < left else space + cell)
    return f"| {' | '.join(padded)} |"


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.3f}"


def _rate(share: float | None, interval: Interval) -> str:
    return "" if share is None else f"{_points(share)} ({_points(interval.low)} to {_points(interval.high)})"


def _points(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f}" if share in (0, 1) else f"{100 * share:.1f}"


def _extra(made: "Figures") -> str:
    return extra_nats(made) if made.extra_interval is None else f"{extra_nats(made)} ({extra_interval(made)})"
