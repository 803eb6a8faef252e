"""`write_costs`: the cost of penalties as a page for the browser (templates/cost.html)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._values import counted
from .charts import Cell, Mark
from .cost_terminal import extra, interval, ratio, signed
from .page import write_page
from .text import percent, visible

if TYPE_CHECKING:
    from ..evaluation.costs import Charge, Costs, Figures
    from ..evaluation.results import Tradeoff

_LOOP, _RIGHT = "loop", "literal"  # CSS classes (report.css) of the warm and the cold colour
_FULL = 0.5  # number of extra nats per token that has the full colour
_BAD = 100  # maximum number of bad files in the report


class _Row(NamedTuple):
    """The figures of a setting as texts. ``made``: the same figures as numbers, which templates format themselves."""

    name: str
    extra: str
    interval: str
    ratio: str
    made: "Figures"


def write_costs(path: str | Path, costs: "Costs") -> None:
    """Write the cost of the settings of a grid as one HTML file that works offline.

    LzsError if the file cannot be written.
    """
    unread = [(each.file, each.line, each.reason) for each in costs.bad[:_BAD]]
    write_page(path, "cost.html", by=(), samples=(), unread=unread, **costs_shown(costs))


def costs_shown(costs: "Costs") -> dict[str, Any]:
    """Return the arguments of `costs_section` (templates/costs.html)."""
    made = [(charge.name, costs.figures(charge.name)) for charge in costs.charges]
    return {
        "costs": costs,
        "base": costs.base(),
        "figures": [_Row(name, extra(each), interval(each), ratio(each), each) for name, each in made],
        "kinds": [visible(kind) for kind in costs.kinds],
        "shades": [
            (visible(charge.name), [[_shade(costs, charge, kind) for kind in costs.kinds]]) for charge in costs.charges
        ],
    }


def tradeoff_marks(tradeoffs: "Sequence[Tradeoff]") -> list[Mark]:
    """Return the points of the chart of stopped loops and cost."""
    return [
        Mark(
            each.cost,
            each.stopped,
            visible(each.name, 40),
            f"{visible(each.name)}: {signed(each.cost)} nats a token, {_percent(each.stopped)} of the loops stopped",
            each.best,
            each.kind == "none",
        )
        for each in tradeoffs
    ]


def _percent(share: float) -> str:
    """Return a share in percent; it may be negative."""
    return percent(share) if share >= 0 else f"−{percent(-share)}"


def _shade(costs: "Costs", charge: "Charge", kind: str) -> Cell:
    made = costs.figures(charge.name, kind)
    read = f"{counted(made.texts, 'text')}, {counted(made.tokens, 'token')}"
    title = f"{read}; perplexity {ratio(made)}, {percent(made.lost)} of first choices lost"
    if made.extra_interval is not None:
        title += f"; 95 % interval {signed(made.extra_interval.low)} to {signed(made.extra_interval.high)}"
    text = "infinite" if made.forbidden else signed(made.extra_nats)
    shade = 1.0 if made.forbidden else abs(made.extra_nats) / _FULL
    return Cell(text, title, _LOOP if made.extra_nats > 0 else _RIGHT, shade)
