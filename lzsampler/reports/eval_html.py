"""`write_evaluation`: the report of an evaluation as a page for the browser (templates/eval.html, docs/evaluate.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from .._values import counted
from ..auditing.summary import wasted_tokens
from ..evaluation.counts import Counts
from ..util.stats import Interval
from .charts import Cell, Point, decline, trend
from .cost_html import costs_shown, tradeoff_marks
from .eval_bad import bad_tables, unfinished
from .eval_kinds import kind_in_words
from .eval_markdown import more
from .eval_rows import NONE, Row, rows
from .page import scale, write_page
from .samples import CHARACTERS, Sample, sample
from .text import percent, visible

if TYPE_CHECKING:
    from ..auditing.records import Audited
    from ..evaluation.first_loop import FirstLoop
    from ..evaluation.paired import Paired
    from ..evaluation.results import Results, Spread

LOOP, RIGHT = "loop", "literal"  # CSS classes (report.css) of the warm and the cold colour
_BY = ("kind", "strength", "temperature", "result")  # columns in the table of samples
_TOPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # possible ends of a scale; half of each is round, too
_FAINT = 0.1  # the loop rate that has the full colour is never smaller than this
_FULL = 0.2  # difference of accuracy that has the full colour
_PLACES = 48  # number of points in the chart of first loops
_ALPHA = 0.05

_Heat = list[tuple[str, list[list[Cell]]]]
"""Rows of a heat map: (title, for each head a list of the cells below it)."""
_Panels = list[tuple[str, Markup | None]]
"""Titles and charts; None if there are no texts."""


@dataclass(frozen=True)
class _Line:
    """A row from `rows` with its figures."""

    label: str
    counts: Counts
    spread: "Spread"
    compared: "Paired | None"
    first: "FirstLoop"


@dataclass(frozen=True)
class _Setting:
    """A setting, or all temperatures of a strength, compared with texts without a penalty.

    If p < ``least``, p is in bold.
    """

    strength: float
    extra: str
    temperature: str
    counts: Counts
    spread: "Spread"
    paired: "Paired | None"
    least: float


def write_evaluation(path: str | Path, results: "Results") -> None:
    """Write the report of an evaluation as one HTML file that works offline.

    The size of the file depends mostly on the samples. LzsError if the file cannot be written.
    """
    every = rows(results)
    shown = _compared(every)
    everything = results.counts()
    lines = [
        _Line(
            row.label,
            results.counts(name=row.settings),
            results.spread(name=row.settings),
            results.compare(name=row.settings),
            results.first_loops(name=row.settings),
        )
        for row in every
    ]
    looping_tasks = [task for task in results.tasks if results.counts(task=task).answered_looping]
    write_page(
        path,
        "eval.html",
        by=_BY,
        samples=[_sample(results, each.record, each.prompt) for each in results.samples],
        results=results,
        everything=everything,
        sides=[(how, counts) for how, counts in _answer(results, every) if counts.texts]
        or [("of all texts", everything)],
        n_prompts=len({outcome.prompt for outcome in results.outcomes}),
        unfinished=unfinished(results),
        lines=lines,
        top_loops=scale(line.counts.loop_interval.high for line in lines if line.counts.texts),
        top_right=scale(line.counts.accuracy_interval.high for line in lines if line.counts.answered),
        answered=any(line.counts.answered for line in lines),
        most_wasted=max(line.counts.wasted_share for line in lines),
        timed=any(line.counts.seconds for line in lines),
        n_timed=sum(outcome.seconds is not None for outcome in results.outcomes),
        kinds_in_words=[(kind, kind_in_words(results.settings(kind=kind))) for kind in results.kinds],
        marks=tradeoff_marks(results.tradeoffs),
        grey=", no penalty in grey" if any(row.against for row in shown) else "",
        trends=_trends(results, shown),
        first_loops=_first_loops(results, shown),
        heat_heads=_heat_heads(results),
        heat_maps=_heat_maps(results),
        tasks=[_task(task) for task in results.tasks],
        tasks_by_kind=[(row.label, [_task_cells(results, name=row.settings)]) for row in every],
        looping_tasks=[_task(task) for task in looping_tasks],
        loops_by_kind=[
            (row.label, [[_loop_cell(results.counts(name=row.settings, task=task)) for task in looping_tasks]])
            for row in every
        ],
        settings_by_kind=_settings_by_kind(results),
        alpha=_ALPHA,
        looping_samples=sum(each.record.looping for each in results.samples),
        characters=CHARACTERS,
        bad_tables=bad_tables(results),
        **({} if results.costs is None else costs_shown(results.costs)),
    )


def _task(task: str) -> str:
    return visible(task) or "–"


def _answer(results: "Results", every: list[Row]) -> list[tuple[str, Counts]]:
    """Return the counts of the best kind's texts, after the counts of their partners without a penalty."""
    best = next((row for row in every if row.kind == results.best), None)
    if best is None:
        return [("without a penalty", results.counts(kind=NONE))] if NONE in results.kinds else []
    without = [("without a penalty", results.counts(name=best.against))] if best.against else []
    return [*without, (f"with {best.label}", results.counts(name=best.settings))]


# ---- by temperature, by strength, by task ----


def _trends(results: "Results", shown: list[Row]) -> list[tuple[str, _Panels]]:
    """Return (title, a chart for each kind) for the loop rate and for the accuracy."""
    if len(results.temperatures) < 2:
        return []
    made = [(title, _panels(results, shown, title, kind)) for title, kind in (("Loop rate", LOOP), ("Accuracy", RIGHT))]
    return [(title, panels) for title, panels in made if panels]


def _panels(results: "Results", shown: list[Row], title: str, kind: str) -> _Panels:
    lines = {names: _points(results, names, kind) for row in shown for names in (row.against, row.settings) if names}
    highest = max((high for points in lines.values() for *_, high in points), default=0.0)
    if not highest:
        return []
    top = next(top for top in _TOPS if top >= highest)
    panels: _Panels = []
    for row in shown:
        without = [("none", lines[row.against])] if row.against else []
        points = lines[row.settings]
        said = "; ".join(
            f"{label}: " + ", ".join(f"{percent(rate)} at {x:g}" for x, _, rate, _ in line)
            for label, line in [*without, (row.label, points)]
        )
        chart = trend([*without, (kind, points)], top, f"{title} by temperature, {said}") if points else None
        panels.append((row.label, chart))
    return panels


def _compared(every: list[Row]) -> list[Row]:
    """Return the rows that have a panel: all rows with a penalty, or all rows if there are none."""
    return [row for row in every if row.kind != NONE] or every


def _points(results: "Results", names: Sequence[str], figure: str) -> list[Point]:
    points: list[Point] = []
    for temperature in sorted({setting.params.temperature for setting in results.settings(name=names)}):
        counts = results.counts(name=names, temperature=temperature)
        if figure == LOOP and counts.texts:
            points.append((temperature, counts.loop_interval.low, counts.loop_rate, counts.loop_interval.high))
        elif figure == RIGHT and counts.accuracy is not None:
            low, high = counts.accuracy_interval
            points.append((temperature, low, counts.accuracy, high))
    return points


def _first_loops(results: "Results", shown: list[Row]) -> _Panels:
    """Return for each kind a chart of the share of texts without a loop over their length; empty if no text loops."""
    firsts = {names: results.first_loops(name=names) for row in shown for names in (row.against, row.settings) if names}
    end = max(first.longest for first in firsts.values())
    if not any(first.looping for first in firsts.values()):
        return []
    panels: _Panels = []
    for row in shown:
        named = [("none", "none", firsts[row.against])] if row.against else []
        named.append((row.label, LOOP, firsts[row.settings]))
        said = "; ".join(f"{label}: {percent(first.free(first.longest))} at {counted(first.longest, 'token')}"
                         for label, _, first in named)  # fmt: skip
        series = [(colour, _decline(first)) for _, colour, first in named]
        panels.append((row.label, decline(series, end, f"Share of texts without a loop so far, {said}")))
    return panels


def _decline(first: "FirstLoop") -> list[tuple[float, float]]:
    places = sorted({first.longest * i // _PLACES for i in range(_PLACES + 1)})
    return [(0, 1.0), *((place, first.free(place)) for place in places if place)]


def _heat_heads(results: "Results") -> list[tuple[str, list[str]]]:
    columns = [f"{temperature:g}" for temperature in results.temperatures]
    return [("loop rate, %", columns), *([("accuracy, %", columns)] if results.tasks else [])]


def _heat_maps(results: "Results") -> list[tuple[str, _Heat]]:
    """Return a heat map for each kind, by strength and temperature."""
    places = dict.fromkeys((each.kind, each.strength, each.params.temperature) for each in results.grid.settings)
    cells = {
        (kind, strength, temperature): results.counts(kind=kind, strength=strength, temperature=temperature)
        for kind, strength, temperature in places
    }
    top = max([_FAINT, *(counts.loop_rate for counts in cells.values())])
    maps = []
    for kind in results.kinds:
        heat: _Heat = []
        for strength in results.strengths(kind):
            row = [cells.get((kind, strength, temperature), Counts()) for temperature in results.temperatures]
            groups = [
                [_cell(c.loop_rate if c.texts else None, c.loop_interval, c.looping, c.texts, LOOP, top) for c in row]
            ]
            if results.tasks:
                groups.append([_cell(c.accuracy, c.accuracy_interval, c.right, c.answered, RIGHT, 1.0) for c in row])
            heat.append((f"{strength:g}", groups))
        maps.append((kind, heat))
    return maps


def _cell(rate: float | None, interval: Interval, n: int, of: int, kind: str, top: float) -> Cell:
    if rate is None:
        return Cell("", "no texts", kind, 0.0)
    title = f"{n:,} of {of:,}, 95 % interval {percent(interval.low)} to {percent(interval.high)}"
    return Cell(_short(rate), title, kind, rate / top)


def _short(rate: float) -> str:
    """Return a share in percent, without the percent sign, with at most three digits."""
    value = 100 * rate
    return f"{value:.0f}" if value in (0, 100) or value >= 10 else f"{value:.1f}"


def _task_cells(results: "Results", **which: Any) -> list[Cell]:
    cells = []
    for task in results.tasks:
        counts, compared = results.counts(task=task, **which), results.compare(task=task, **which)
        if counts.accuracy is None:
            cells.append(Cell("", "no texts", RIGHT, 0.0))
            continue
        difference = (compared and compared.accuracy_difference) or 0.0
        points = f" {100 * difference:+.0f}".replace("-", "−") if round(100 * difference) else ""
        low, high = counts.accuracy_interval
        title = f"{counts.right:,} of {counts.answered:,}, 95 % interval {percent(low)} to {percent(high)}"
        shade = abs(difference) / _FULL
        cells.append(Cell(_short(counts.accuracy) + points, title, LOOP if difference < 0 else RIGHT, shade))
    return cells


def _loop_cell(counts: "Counts") -> Cell:
    rate = counts.loop_rate if counts.texts else None
    return _cell(rate, counts.loop_interval, counts.looping, counts.texts, LOOP, 1.0)


# ---- setting by setting ----


def _settings_by_kind(results: "Results") -> list[tuple[str, Counts, int, list[_Setting], _Heat]]:
    """Return for each kind: its name, counts, number of settings, settings, and accuracy by strength and task."""
    found = []
    for kind in results.kinds:
        strengths = results.strengths(kind)
        heat: _Heat = []
        if len(results.tasks) > 1 and len(strengths) > 1:
            heat = [(f"{strength:g}", [_task_cells(results, kind=kind, strength=strength)]) for strength in strengths]
        counts, n = results.counts(kind=kind), len(results.settings(kind=kind))
        found.append((kind, counts, n, _settings(results, kind), heat))
    return found


def _settings(results: "Results", kind: str) -> list[_Setting]:
    extra = more(results.grid.settings)
    least = _ALPHA / max(len(results.comparisons), 1)
    made = []
    for strength in results.strengths(kind):
        settings = sorted(results.settings(kind=kind, strength=strength), key=lambda s: s.params.temperature)
        for setting in settings:
            name, temperature = setting.name, setting.params.temperature
            independent = temperature == 0 or len(results.grid.seeds) == 1
            made.append(
                _Setting(
                    strength,
                    extra[name],
                    f"{temperature:g}",
                    results.counts(name=name),
                    results.spread(name=name),
                    results.comparisons.get(name),
                    least if independent else 0.0,
                )
            )
        if len(settings) > 1:
            which: dict[str, Any] = {"kind": kind, "strength": strength}
            counts, spread, paired = results.counts(**which), results.spread(**which), results.compare(**which)
            made.append(_Setting(strength, "", "all", counts, spread, paired, 0.0))
    return made


# ---- samples ----


def _sample(results: "Results", record: "Audited", prompt: str) -> Sample:
    setting = results.settings(name=record.groups["setting"])[0]
    right = {"yes": "right", "no": "wrong"}.get(record.groups.get("right", ""))
    result = ", ".join(word for word in ("loops" if record.looping else "", right) if word) or "no loop"
    groups = {"strength": f"{setting.strength:g}", "temperature": f"{setting.params.temperature:g}", "result": result}
    record = replace(record, groups={"kind": record.groups["kind"], **groups, **record.groups})
    return sample(record, wasted_tokens(record), _BY, prompt)
