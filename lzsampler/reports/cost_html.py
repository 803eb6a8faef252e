"""`write_costs`: the cost of penalties as a page for the browser, and its sections in the report of an evaluation."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from .._values import counted, noun
from .charts import Cell, Mark, heat, tag, tradeoff
from .cost_terminal import extra, interval, ratio, signed
from .page import bad_rows, tiles, write_page
from .text import count, percent, visible

if TYPE_CHECKING:
    from ..evaluation.costs import Charge, Costs, Figures
    from ..evaluation.results import Tradeoff

_LOOP, _RIGHT = "loop", "literal"  # classes of report.css: the warm colour and the cold one
_FULL = 0.5  # extra nats a token that have the full colour
_BAD = 100  # bad files that are listed


def write_costs(path: str | Path, costs: "Costs") -> None:
    """Write the cost of the settings of a grid as one HTML file that works offline.

    LzsError when the file cannot be written.
    """
    from .. import __version__

    write_page(
        path,
        command="lzs cost",
        title=f"lzs cost: {counted(len(costs.texts), 'text')} and {visible(costs.model)}",
        header=_headline(costs),
        main="\n".join([costs_section(costs), _bad(costs), _notes(costs)]),
        footer=f"lzsampler {escape(__version__)}. Grid {escape(visible(costs.grid))}.",
        by=(),
        samples=(),
    )


def costs_section(costs: "Costs") -> str:
    """Return the figures of all settings, and their cost by kind of text."""
    heads = ("setting", "extra nats a token", "95 % interval", "perplexity", "first choices", "lost", "95 % interval")
    head = tag("tr", *(tag("th", name, scope="col", class_="number" if i else "") for i, name in enumerate(heads)))
    rows = [tag("tr", *_cells(charge, costs.figures(charge.name))) for charge in costs.charges]
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="found")
    base = costs.base()
    what = (
        f"Measured on {counted(base.texts, 'right text')}, {counted(base.tokens, 'token')} after the first "
        f"{costs.skip:,} of each text. Without a penalty a token costs {base.nats:.3f} nats, and {percent(base.first)} "
        "of the tokens are the model's first choice. "
        "Lost: tokens that are the first choice without the penalty only. Intervals are bootstrap intervals over texts."
    )
    parts = [tag("h2", "The cost on right texts"), tag("p", escape(what), class_="soft"), _scroll(table, "cost")]
    if len(costs.kinds) > 1:
        lines = [
            (visible(charge.name), [_shade(costs, charge, kind) for kind in costs.kinds]) for charge in costs.charges
        ]
        parts += [
            tag("p", "Extra nats a token by kind of text.", class_="soft"),
            heat([("", [visible(kind) for kind in costs.kinds])], "setting", lines),
        ]
    return tag("section", *parts, id="cost")


def tradeoff_section(tradeoffs: "Sequence[Tradeoff]") -> str:
    """Return the chart of loops stopped against their cost; "" where there is nothing to show."""
    if not tradeoffs:
        return ""
    marks = [
        Mark(
            each.cost,
            each.stopped,
            visible(each.name, 40),
            f"{visible(each.name)}: {signed(each.cost)} nats a token, {percent_of(each.stopped)} of the loops stopped",
            each.best,
            each.kind == "none",
        )
        for each in tradeoffs
    ]
    best = "; ".join(mark.title for mark in marks if mark.best)
    what = (
        "Upwards: by which share the texts that loop are fewer than without a penalty, over all temperatures. To the "
        "right: extra nats a token on texts that are right. The line joins the best settings: no other stops more "
        "loops for less cost. The front is chosen on these texts, so its figures are a little too good."
    )
    chart = tradeoff(marks, "nats", f"Loops stopped against their cost; on the front: {best}")
    return tag("section", tag("h2", "Loops stopped against their cost"), tag("p", what, class_="soft"), chart)


def percent_of(share: float) -> str:
    """Return a share that may be negative in percent."""
    return percent(share) if share >= 0 else f"−{percent(-share)}"


def _headline(costs: "Costs") -> str:
    base = costs.base()
    figures = [
        (count(base.tokens), f"{noun(base.tokens, 'token')} scored, once for all settings"),
        (f"{base.nats:.3f}", "nats a token, without a penalty"),
        (percent(base.first), "of tokens are the first choice, without a penalty"),
        (f"{len(costs.charges):,}", noun(len(costs.charges), "setting of penalties", "settings of penalties")),
    ]
    n = len(costs.texts)
    lead = f"{noun(n, 'text that is', 'texts that are')} right, scored by {visible(costs.model)}"
    about = f"Grid {visible(costs.grid)}; kinds of texts: {', '.join(visible(kind) for kind in costs.kinds)}"
    if costs.interrupted:
        about += ". Interrupted: texts are missing"
    return (
        tag("div", tag("span", f"{n:,}", class_="big"), tag("p", escape(lead), class_="lead"),
            tag("p", escape(about), class_="soft"), class_="hero")
        + tiles((value, escape(what)) for value, what in figures)
    )  # fmt: skip


def _cells(charge: "Charge", made: "Figures") -> list[str]:
    lost = made.lost_interval
    return [
        tag("th", escape(visible(charge.name)), scope="row"),
        _number(extra(made)),
        _number(interval(made)),
        _number(ratio(made)),
        _number(percent(made.first)),
        _number(percent(made.lost)),
        _number("–" if lost is None else f"{percent(lost.low).removesuffix(' %')} to {percent(lost.high)}"),
    ]


def _shade(costs: "Costs", charge: "Charge", kind: str) -> Cell:
    made = costs.figures(charge.name, kind)
    read = f"{counted(made.texts, 'text')}, {counted(made.tokens, 'token')}"
    title = f"{read}; perplexity {ratio(made)}, {percent(made.lost)} of first choices lost"
    if made.extra_interval is not None:
        title += f"; 95 % interval {signed(made.extra_interval.low)} to {signed(made.extra_interval.high)}"
    text = "infinite" if made.forbidden else signed(made.extra_nats)
    shade = 1.0 if made.forbidden else abs(made.extra_nats) / _FULL
    return Cell(text, title, _LOOP if made.extra_nats > 0 else _RIGHT, shade)


def _bad(costs: "Costs") -> str:
    if not costs.bad:
        return ""
    title = f"{counted(len(costs.bad), 'text')} that could not be scored"
    shown = [(each.file, each.line, each.reason) for each in costs.bad[:_BAD]]
    return bad_rows(title, ("file", "line", "reason"), shown, len(costs.bad) - len(shown))


def _notes(costs: "Costs") -> str:
    notes = [
        "A model is given each text as if it had written it; its distribution is that at temperature 1, before any "
        "truncation, so that temperature, top-k, top-p, min-p and seeds play no part.",
        "A nat is 1.44 bits. Tokens count alike, whatever text and kind they are of.",
        "An interval from few texts is too narrow.",
    ]
    if costs.short:
        out = counted(costs.short, "text was left out: it has", "texts were left out: they have")
        notes.append(f"{out} no token after the first {costs.skip:,}.")
    if any(costs.figures(charge.name).forbidden for charge in costs.charges):
        notes.append("Infinite: the penalty leaves no probability to a token of the texts (less than 1e-323).")
    made = [tag("li", escape(note)) for note in notes]
    return tag("section", tag("h2", "How to read it"), tag("ul", *made, class_="notes soft"))


def _number(text: str) -> str:
    return tag("td", escape(text), class_="number")


def _scroll(content: str, label: str) -> str:
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)
