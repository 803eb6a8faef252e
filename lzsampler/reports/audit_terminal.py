"""`terminal_table`: the groups and the worst loops of an audit, for a terminal of any width."""

import os
import textwrap
from collections.abc import Callable
from statistics import median
from typing import TextIO

from ..auditing.records import Audited
from ..auditing.summary import Group, Summary, loops, wasted_tokens
from ..util.stats import wilson
from .audit_groups import literal_rule, selected
from .text import columns, count, fit, percent, visible, whole

GROUPS = 40  # that are listed
BAD = 5  # bad records that are named
_NARROW = 72  # columns; a record of the worst takes two lines below
_LEAST = 12  # columns that names of groups get before a column of figures goes
_BOLD, _DIM, _RED, _GREEN, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"

_Cell = Callable[[Group], str]


def colored(stream: TextIO) -> bool:
    """Return whether a stream takes colours: a terminal, without NO_COLOR (no-color.org) and with a TERM that can."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_table(summary: Summary, width: int, *, color: bool = False) -> str:
    """Return what the terminal shows of an audit: lines of at most ``width`` columns (20 or more), without the last
    line end.

    Nothing of a transcript in it steers a terminal; the escape sequences of ``color`` are the only ones.
    """
    paint = _paint if color else _leave
    width = max(width, 20)
    lines = [*_headline(summary, width, paint)]
    if summary.total.records:
        lines += ["", *_table(summary, width, paint)]
    if summary.worst:
        lines += ["", paint("Worst loops", _BOLD), *_worst(summary.worst, width, paint)]
    if summary.bad_records:
        lines += ["", *_bad(summary, width, paint)]
    return "\n".join(lines)


def _paint(text: str, code: str) -> str:
    return f"{code}{text}{_PLAIN}"


def _leave(text: str, code: str) -> str:
    return text


_Paint = Callable[[str, str], str]


def _headline(summary: Summary, width: int, paint: _Paint) -> list[str]:
    total = summary.total
    if total.records == 0:
        return ["0 records: nothing to audit"[:width]]
    loop = f"{total.looping:,} of {total.records:,} records loop: {_rate(total.looping, total)}"
    wasted = f"{count(total.wasted_tokens)} tokens wasted"
    literal = f"{total.literal:,} by the literal rule ({literal_rule(summary)}): {_rate(total.literal, total)}"
    lines = [(line, _BOLD) for line in textwrap.wrap(f"{loop}; {wasted}", width)]
    lines += [(line, _DIM) for line in textwrap.wrap(literal, width)]
    return [paint(line, code) for line, code in lines]


def _rate(successes: int, group: Group) -> str:
    return f"{percent(successes / group.records)} (95 % interval {_interval(successes, group)})"


def _interval(successes: int, group: Group) -> str:
    low, high = wilson(successes, group.records)
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


# Title, cell, from the first to go where a terminal is narrow to the last; the table has them in the order of _ORDER.
_FIGURES: dict[str, _Cell] = {
    "period": lambda g: f"{median(g.periods):.0f}" if g.periods else "-",
    "start": lambda g: whole(median(g.starts)) if g.starts else "-",
    "95 % interval": lambda g: _interval(g.looping, g) if g.records else "-",
    "wasted": lambda g: count(g.wasted_tokens),
    "loop rate": lambda g: percent(g.looping / g.records) if g.records else "-",
    "n": lambda g: f"{g.records:,}",
}
_ORDER = ("n", "loop rate", "95 % interval", "start", "period", "wasted")


def _table(summary: Summary, width: int, paint: _Paint) -> list[str]:
    shown = selected(summary, GROUPS)
    names = [_name(values) for values, _ in shown]
    groups = [group for _, group in shown]
    title = visible(" / ".join(summary.by)) or "records"
    rows = [*zip(names, groups, strict=True), ("all", summary.total)]
    cells = {figure: [cell(group) for _, group in rows] for figure, cell in _FIGURES.items()}
    widths = {figure: max(len(figure), *map(len, column)) for figure, column in cells.items()}
    longest = max(columns(title), *(columns(name) for name, _ in rows))
    kept = list(_FIGURES)
    while len(kept) > 1 and width - sum(2 + widths[f] for f in kept) < min(longest, _LEAST):
        kept.pop(0)
    figures = [figure for figure in _ORDER if figure in kept]
    room = max(min(longest, width - sum(2 + widths[f] for f in figures)), 1)
    head = _pad(title, room) + "".join(f"  {figure:>{widths[figure]}}" for figure in figures)
    lines = [paint(head, _DIM)]
    for i, (name, group) in enumerate(rows):
        line = _pad(name, room)
        for figure in figures:
            cell = f"{cells[figure][i]:>{widths[figure]}}"
            code = _RED if group.looping else _GREEN
            line += "  " + (paint(cell, code) if figure == "loop rate" else cell)
        lines.append(paint(line, _BOLD) if name == "all" and group is summary.total else line)
    if len(summary.groups) > len(shown):
        rest = len(summary.groups) - len(shown)
        lines.insert(-1, fit(f"... and {rest:,} more groups that waste less (all are in summary.json)", width))
    return lines


def _name(values: tuple[str, ...]) -> str:
    return " / ".join(visible(value, 60) or "-" for value in values)


def _pad(text: str, width: int) -> str:
    shown = fit(text, width)
    return shown + " " * (width - columns(shown))


def _worst(worst: list[Audited], width: int, paint: _Paint) -> list[str]:
    """Return a line a record, two where it is narrow: tokens wasted, where it is, its largest loop."""
    shown = [record for record in worst if loops(record)]
    if not shown:
        return []
    wasted = [f"{wasted_tokens(record):,}" for record in shown]
    places = [f"{visible(record.file, 60)}  {visible(record.id, 40)}" for record in shown]
    left = max(map(len, wasted)) + 2
    narrow = width < _NARROW
    middle = width - left if narrow else min(max(map(columns, places)), (width - left) // 2)
    lines = []
    for record, tokens, place in zip(shown, wasted, places, strict=True):
        line = f"{tokens:>{left - 2}}  {_pad(_tail(place, middle), middle)}"
        if narrow:
            lines += [line.rstrip(), " " * left + preview(record, width - left)]
        else:
            lines.append(f"{line}  {preview(record, width - left - middle - 2)}")
    return [fit(line, width) for line in lines]


def _tail(text: str, width: int) -> str:
    """Return the end of a text, which is what tells paths apart."""
    if columns(text) <= width:
        return text
    start = 0
    while columns(text[start:]) > width - 1:
        start += 1
    return "…" + text[start:]


def preview(record: Audited, width: int) -> str:
    """Return a record's largest loop in one line: its unit, copies, where it begins and its period."""
    loop = loops(record)[0]
    rest = f" ×{loop.copies:.4g} from {whole(loop.share)} p={loop.period}"
    return f'"{fit(visible(loop.unit, 200), max(1, width - len(rest) - 2))}"{rest}'


def _bad(summary: Summary, width: int, paint: _Paint) -> list[str]:
    n = summary.bad_records
    lines = [paint(fit(f"{n:,} bad {'record' if n == 1 else 'records'}, not counted above", width), _BOLD)]
    for bad in summary.bad[:BAD]:
        place = f"{visible(bad.file, 60)}:{bad.line}" if bad.line else visible(bad.file, 60)
        lines.append(fit(f"{place}: {visible(bad.reason)}", width))
    return [*lines, f"... and {n - BAD:,} more"] if n > BAD else lines
