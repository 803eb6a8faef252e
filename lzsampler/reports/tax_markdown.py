"""`tax_table`: the tax of settings as a Markdown table, for a terminal or a README."""

import math
from typing import TYPE_CHECKING

from ..util.stats import Interval
from .text import columns, percent, visible

if TYPE_CHECKING:
    from ..evaluation.taxed import Figures, Tax


def tax_table(tax: "Tax") -> str:
    """Return a row a setting, in the grid's order, and a column a kind of texts, with the extra nats a token.

    ± is half of the 95 % bootstrap interval.
    """
    kinds = tax.kinds if len(tax.kinds) > 1 else ()
    heads = ["setting", "extra nats", "±", "perplexity", "lost", *(visible(kind).replace("|", "\\|") for kind in kinds)]
    rows = []
    for charge in tax.charges:
        made = tax.figures(charge.name)
        each = [extra(tax.figures(charge.name, kind)) for kind in kinds]
        name = visible(charge.name).replace("|", "\\|")
        rows.append([name, extra(made), half(made.extra_interval), ratio(made), percent(made.lost), *each])
    return markdown(heads, rows, left=1)


def extra(made: "Figures") -> str:
    """Return the extra nats a token, with their sign; words where tokens are forbidden."""
    return signed(made.extra_nats) if math.isfinite(made.extra_nats) else f"infinite ({made.forbidden:,} forbidden)"


def signed(x: float) -> str:
    """Return a number of nats with its sign in three decimals, and 0 where it is exactly that."""
    return "0" if x == 0 else f"{x:+.3f}" if abs(x) < 1000 else f"{x:+.3g}"


def ratio(made: "Figures") -> str:
    """Return by how much the perplexity grows."""
    shown = made.perplexity_ratio
    return "infinite" if math.isinf(shown) else f"×{shown:.3f}" if shown < 1000 else f"×{shown:.3g}"


def half(interval: Interval | None) -> str:
    """Return half of an interval."""
    return "" if interval is None else f"{(interval.high - interval.low) / 2:.3f}"


def markdown(heads: list[str], rows: list[list[str]], *, left: int) -> str:
    """Return a Markdown table whose first ``left`` columns are aligned at the left, the others at the right."""
    widths = [max(columns(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    rule = ["-" * (width + 2) if i < left else "-" * (width + 1) + ":" for i, width in enumerate(widths)]
    return "\n".join([_row(heads, widths, left), f"|{'|'.join(rule)}|", *(_row(row, widths, left) for row in rows)])


def _row(cells: list[str], widths: list[int], left: int) -> str:
    padded = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - columns(cell))
        padded.append(cell + space if i < left else space + cell)
    return f"| {' | '.join(padded)} |"
