"""`terminal_table`: the groups and the worst loops of an audit, for a terminal of any width."""

from collections import Counter
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

from .._values import counted, noun
from ..auditing.clusters import Property
from ..auditing.records import Audited
from ..auditing.summary import Group, Summary, begins, loops, wasted_tokens
from .audit_groups import literal_rule, selected, turns_of
from .terminal import drawn, table
from .text import between, columns, count, fit, percent, visible, whole

if TYPE_CHECKING:
    from rich.console import RenderableType

GROUPS = 40  # maximum number of groups in the table
BAD = 5  # maximum number of lines about unreadable records
_NARROW = 72  # columns; on a narrower terminal each of the worst records takes two lines
_LEAST = 12  # if names of groups would have fewer columns than this, a column of figures is left out

_Cell = Callable[[Group], str]


def terminal_table(summary: Summary, width: int, *, color: bool = False) -> str:
    """Return the terminal output of an audit: lines of at most ``width`` columns (20 or more), without a final line
    end.

    Text from a transcript cannot control the terminal: the only escape sequences are those of ``color``.
    """
    from rich.text import Text

    width = max(width, 20)
    parts: list[RenderableType] = [*_headline(summary), *_read(summary, width)]
    if summary.total.records:
        parts += ["", *_table(summary, width)]
    if summary.worst:
        title = Text("Worst loops", "bold")
        title.append(": the largest loop of each record (the period above: the first)", "not bold dim")
        parts += ["", title, *_worst(summary.worst, width)]
    if summary.turn_conversations:
        parts += ["", *_turns(summary, width)]
    if summary.bad_records or summary.coverage.passed:
        parts += ["", *_bad(summary, width)]
    return drawn(parts, width, color=color)


def _headline(summary: Summary) -> "list[RenderableType]":
    from rich.text import Text

    total = summary.total
    if total.records == 0:
        return [Text("0 records with a text" if summary.turn_conversations else "0 records: nothing to audit")]
    loop = f"{total.looping:,} of {counted(total.records, 'record loops', 'records loop')}: {_rate('looping', total)}"
    wasted = f"{count(total.wasted_tokens)} {noun(total.wasted_tokens, 'token')} wasted"
    said: list[RenderableType] = [Text(f"{loop}; {wasted}", "bold")]
    if total.stuck:
        say = counted(total.stuck, "says", "say")
        said.append(Text(f"{say} nothing new over a long stretch (LZR011): {_rate('stuck', total)}"))
    if total.conversations < total.records:
        of = counted(total.conversations, "conversation")
        said.append(Text(f"The records belong to {of}, and the intervals count conversations", "dim"))
    if bits := summary.measured.get("lz_bits_per_token"):
        mean = f"{summary.metrics['lz_bits_per_token'] / bits:.3g} bits a token under the LZ compressor"
        of = f"mean of {counted(bits, 'record')}; a loop takes about 0.5"
        said.append(Text(f"{mean}, {of}", "dim"))
    if total.literal:  # shown without a rate, because readers would compare it with the rate of loops
        has = counted(total.literal, "has a literal repeat", "have literal repeats")
        need = "which may not be loops: indentation and dashes count"
        said.append(Text(f"{has} ({literal_rule(summary)}), {need}", "dim"))
    return said


def _rate(of: Property, group: Group) -> str:
    return f"{percent(getattr(group, of) / group.records)} (95 % interval {_interval(of, group)})"


def _interval(of: Property, group: Group) -> str:
    return between(*group.interval(of))


# Title -> cell. On a narrow terminal, columns are left out in this order. The table has the order of `_ORDER`.
_FIGURES: dict[str, _Cell] = {
    "period": lambda g: f"{median(g.periods):.0f}" if g.periods else "-",
    "start": lambda g: whole(median(g.starts)) if g.starts else "-",
    "95 % interval": lambda g: _interval("looping", g) if g.records else "-",
    "wasted": lambda g: count(g.wasted_tokens),
    "loop rate": lambda g: percent(g.looping / g.records) if g.records else "-",
    "n": lambda g: f"{g.records:,}",
}
_ORDER = ("n", "loop rate", "95 % interval", "start", "period", "wasted")


def _table(summary: Summary, width: int) -> "list[RenderableType]":
    from rich.text import Text

    shown = selected(summary, GROUPS)
    title = visible(" / ".join(summary.by)) or "records"
    rows = [*((_name(values), group) for values, group in shown), ("all", summary.total)]
    cells = {figure: [cell(group) for _, group in rows] for figure, cell in _FIGURES.items()}
    widths = {figure: max(len(figure), *map(len, column)) for figure, column in cells.items()}
    longest = max(columns(title), *(columns(name) for name, _ in rows))
    kept = list(_FIGURES)
    while len(kept) > 1 and width - sum(2 + widths[f] for f in kept) < min(longest, _LEAST):
        kept.pop(0)
    figures = [figure for figure in _ORDER if figure in kept]
    room = max(min(longest, width - sum(2 + widths[f] for f in figures)), 1)
    made = table()
    made.add_column(Text(fit(title, room)), width=room, no_wrap=True)
    for figure in figures:
        made.add_column(Text(figure), justify="right", width=widths[figure], no_wrap=True)
    for i, (name, group) in enumerate(rows):
        shade = "red" if group.looping else "green"
        figures_of = [Text(cells[f][i], shade if f == "loop rate" else "") for f in figures]
        made.add_row(Text(fit(name, room)), *figures_of, style="bold" if i == len(rows) - 1 else None)
    if len(summary.groups) == len(shown):
        return [made]
    rest = counted(len(summary.groups) - len(shown), "more group that wastes", "more groups that waste")
    return [made, Text(fit(f"... and {rest} less (-o summary.json lists all)", width))]


def _name(values: tuple[str, ...]) -> str:
    return " / ".join(visible(value, 60) or "-" for value in values)


def _worst(worst: list[Audited], width: int) -> "list[RenderableType]":
    """Return a row for each record (two lines if narrow): wasted tokens, file and id, and largest loop."""
    from rich.table import Table
    from rich.text import Text

    shown = [record for record in worst if loops(record)]
    if not shown:
        return []
    wasted = [f"{wasted_tokens(record):,}" for record in shown]
    ids = Counter((record.file, record.id) for record in shown)
    places = [
        f"{visible(record.file, 60)}  {visible(record.id, 40)}"
        + (f" (record {record.number})" if ids[record.file, record.id] > 1 else "")
        for record in shown
    ]
    left = max(map(len, wasted))
    narrow = width < _NARROW
    middle = width - left - 2 if narrow else min(max(map(columns, places)), (width - left - 2) // 2)
    right = width - left - 2 if narrow else width - left - middle - 4
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(justify="right", width=left)
    grid.add_column(width=middle, no_wrap=True)
    for record, tokens, place in zip(shown, wasted, places, strict=True):
        loop = Text(fit(preview(record, right), right))
        if narrow:
            grid.add_row(tokens, Text(_tail(place, middle)))
            grid.add_row("", loop)
        else:
            grid.add_row(tokens, Text(_tail(place, middle)), loop)
    return [grid]


def _turns(summary: Summary, width: int) -> "list[RenderableType]":
    """Return lines for the conversations whose turns loop: which turns are repeated, how often, and their text."""
    from rich.text import Text

    n, of = summary.turn_loops, summary.turn_conversations
    rate = f"{percent(summary.turn_loop_rate)} (95 % interval {between(*summary.turn_interval)})"
    loop = f"{n:,} of {counted(of, 'conversation loops', 'conversations loop')} over turns (LZR012)"
    lines: list[RenderableType] = [Text(fit(f"{loop}: {rate}", width), "bold")]
    for record in summary.worst_turns:
        lines.append(Text(_tail(f"{visible(record.file, 60)}  {visible(record.id, 40)}", width)))
        for found in record.findings:
            lines.append(Text(fit(f"  {turns_of(found)}: {visible(found.unit, 200)}", width)))
    return lines


def _tail(text: str, width: int) -> str:
    """Return the last ``width`` columns of a text, because paths differ at their ends."""
    if columns(text) <= width:
        return text
    start = 0
    while columns(text[start:]) > width - 1:
        start += 1
    return "…" + text[start:]


def preview(record: Audited, width: int) -> str:
    """Describe a record's largest loop in one line: unit, number of copies, start and period."""
    loop = loops(record)[0]
    rest = f" ×{loop.copies:.4g} from {whole(begins(record, loop))} p={loop.period}"
    return f'"{fit(visible(loop.unit, 200), max(1, width - len(rest) - 2))}"{rest}'


def _read(summary: Summary, width: int) -> "list[RenderableType]":
    """Return a line about the formats of the files. Formats with the most records come first."""
    from rich.text import Text

    formats = sorted(summary.coverage.formats.items(), key=lambda item: (-item[1][1], item[0]))
    if not formats:
        return []
    n = summary.coverage.n_files
    if len(formats) == 1:
        said = f"{counted(n, 'file')} read as {formats[0][0]}"
    else:
        each = ", ".join(f"{files:,} as {format}" for format, (files, _) in formats)
        said = f"{n:,} files read: {each}"
    return [Text(fit(visible(said, 2000), width), "dim")]


def _bad(summary: Summary, width: int) -> "list[RenderableType]":
    """Return lines about the records that could not be read, by file and reason, and about skipped data."""
    from rich.text import Text

    n = summary.bad_records
    lines: list[RenderableType] = []
    if n:
        share = f"{percent(summary.bad_rate)} of all"
        lines.append(Text(fit(f"{counted(n, 'bad record')} ({share}), not counted above", width), "bold"))
    listed = 0
    for (file, _), unread in list(summary.coverage.unread.items())[:BAD]:
        place = f"{visible(file, 60)}:{unread.line}" if unread.line else visible(file, 60)
        times = f" ({unread.count:,} times)" if unread.count > 1 else ""
        lines.append(Text(f"{place}: {visible(unread.reason)}{times}"))
        listed += unread.count
    if n > listed:
        lines.append(Text(f"... and {n - listed:,} more"))
    if passed := summary.coverage.passed:
        said = ", ".join(f"{reason} ({one.count:,})" for reason, one in passed.items())
        lines.append(Text(fit(visible(f"Passed over: {said}", 2000), width), "dim"))
    return lines
