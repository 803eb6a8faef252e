"""`costs_table`: the cost of settings for a terminal of any width, and the formats of numbers that all reports use."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from .._values import counted
from .terminal import drawn, table
from .text import columns, fit, fit_ends, percent, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..evaluation.costs import Costs, Figures

_LEAST = 16  # if names of settings would have fewer columns than this, a column of figures is left out


def costs_table(costs: "Costs", width: int, *, color: bool = False) -> str:
    """Return a line about the texts and a row for each setting, at most ``width`` columns (20 or more) wide.

    If the settings have several kinds, the first column is the kind of the setting. If there are several kinds of
    texts, each kind has a column. Columns that do not fit are left out, and a last line says how many.
    """
    from rich.text import Text

    width = max(width, 20)
    every: list[_Column] = [_Column(head, late, figure, None) for head, late, figure in _FIGURES]
    if len(costs.kinds) > 1:
        every += [_Column(visible(kind, 24), len(_FIGURES) + i, extra, kind) for i, kind in enumerate(costs.kinds)]
    cells = [[each.figure(costs.figures(charge.name, each.kind)) for charge in costs.charges] for each in every]
    widths = [max(columns(each.head), *map(columns, column)) for each, column in zip(every, cells, strict=True)]
    names = [visible(charge.name) for charge in costs.charges]
    kinds = [fit(visible(charge.kind), _LEAST) for charge in costs.charges]
    longest = max(columns(name) for name in [*names, "setting"])
    kind_room = 2 + max(columns(kind) for kind in [*kinds, "kind"]) if len(set(kinds)) > 1 else 0
    kept = list(range(len(every)))
    while len(kept) > 1 and width - kind_room - sum(2 + widths[i] for i in kept) < min(longest, _LEAST):
        kept.remove(max(kept, key=lambda i: every[i].late))
    left = width - sum(2 + widths[i] for i in kept)
    if left - kind_room < _LEAST // 2:  # names differ, so they are more important than kinds
        kind_room = 0
    room = max(min(longest, left - kind_room), 1)
    made = table()
    if kind_room:
        made.add_column("kind", width=kind_room - 2, no_wrap=True)
    made.add_column("setting", width=room, no_wrap=True)
    for i in kept:
        made.add_column(Text(every[i].head), justify="right", width=widths[i], no_wrap=True)
    for row, name in enumerate(names):
        first = [Text(kinds[row])] if kind_room else []
        made.add_row(*first, Text(fit_ends(name, room)), *(Text(cells[i][row]) for i in kept))
    parts: list[RenderableType] = [Text(_headline(costs), "bold"), "", made]
    missing = len(every) - len(kept)
    if missing:
        parts.append(f"... and {counted(missing, 'more column')} (-o cost.html has all)")
    return drawn(parts, width, color=color)


def _headline(costs: "Costs") -> str:
    base = costs.base()
    texts = f"{counted(base.texts, 'text')}"
    more = counted(costs.short, "more has", "more have")
    short = f" ({more} no token after the first {costs.skip:,})" if costs.short else ""
    return (
        f"{texts}{short}, {counted(base.tokens, 'token')}: without a penalty {base.nats:.3f} nats a token, "
        f"{percent(base.first)} of them the first choice"
    )


def _lost(made: "Figures") -> str:
    return percent(made.lost)


def extra(made: "Figures") -> str:
    """Return the extra nats a token, with their sign; in words if tokens are forbidden."""
    return f"infinite ({made.forbidden:,} forbidden)" if math.isinf(made.extra_nats) else signed(made.extra_nats)


def interval(made: "Figures") -> str:
    """Return the interval of the extra nats a token."""
    bounds = made.extra_interval
    return "-" if bounds is None else f"{signed(bounds.low)} to {signed(bounds.high)}"


def ratio(made: "Figures") -> str:
    """Return the factor by which the perplexity grows."""
    shown = made.perplexity_ratio
    return "infinite" if math.isinf(shown) else f"×{shown:.3f}" if shown < 1000 else f"×{shown:.3g}"


def signed(x: float) -> str:
    """Return a number of nats with its sign and three decimals; an exact 0 is "0"."""
    return "0" if x == 0 else f"{x:+.3f}" if abs(x) < 1000 else f"{x:+.3g}"


class _Column(NamedTuple):
    """A column of the table. Columns with the highest ``late`` are left out first.

    ``kind``: the kind of texts; None is all texts.
    """

    head: str
    late: int
    figure: "Callable[[Figures], str]"
    kind: str | None


_FIGURES: "tuple[tuple[str, int, Callable[[Figures], str]], ...]" = (
    ("extra nats", 0, extra),
    ("95 % interval", 2, interval),
    ("perplexity", 3, ratio),
    ("lost", 1, _lost),
)
