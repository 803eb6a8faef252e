"""`write_evaluation`: the report of an evaluation as a page for the browser (docs/evaluate.md)."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._values import counted, noun
from ..auditing.summary import wasted_tokens
from ..evaluation.counts import Counts
from ..util.stats import Interval
from .charts import Cell, Point, bar, decline, heat, ruler, tag, trend, whisker
from .cost_html import costs_section, tradeoff_section
from .eval_bad import bad_section, unfinished
from .eval_kinds import kinds_section
from .eval_markdown import more
from .eval_rows import NONE, Row, rows
from .page import samples_section, scale, tiles, write_page
from .samples import CHARACTERS, Sample, sample
from .text import count, percent, visible, whole

if TYPE_CHECKING:
    from ..auditing.records import Audited
    from ..evaluation.first_loop import FirstLoop
    from ..evaluation.paired import Paired
    from ..evaluation.results import Results

LOOP, RIGHT = "loop", "literal"  # classes of report.css: the warm colour and the cold one
_BY = ("kind", "strength", "temperature", "result")  # of samples
_TOPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # ends of scales that halve well
_FAINT = 0.1  # loop rate that the full colour is at least
_FULL = 0.2  # difference of accuracy that has the full colour
_PLACES = 48  # of a text at which the chart of first loops has a point
_ALPHA = 0.05


def write_evaluation(path: str | Path, results: "Results") -> None:
    """Write the report of an evaluation as one HTML file that works offline; its size is that of its samples.

    LzsError when the file cannot be written.
    """
    from .. import __version__

    samples = [_sample(results, each.record, each.prompt) for each in results.samples]
    write_page(
        path,
        command="lzs eval",
        title=_title(results),
        header=_headline(results),
        main="\n".join([
            _kinds(results),
            kinds_section(results),
            tradeoff_section(results.tradeoffs),
            _trends(results),
            _terms(results),
            _first_loops(results),
            _heat_maps(results),
            _tasks(results),
            _answers(results),
            "" if results.costs is None else costs_section(results.costs),
            _comparisons(results),
            _judge(results),
            samples_section(_about_samples(results)),
            bad_section(results),
            _notes(results),
        ]),
        footer=f"lzsampler {escape(__version__)}. Wasted tokens: all copies but the first.",
        by=_BY,
        samples=samples,
    )  # fmt: skip


# ---- the head ----


def _title(results: "Results") -> str:
    n = len(results.outcomes)
    texts = f"{n:,} of {counted(results.expected or 0, 'text')} so far" if results.missing else counted(n, "text")
    return f"lzs eval: {texts} of {visible(results.model)}"


def _headline(results: "Results") -> str:
    """Return the answer, which is how many texts loop without a penalty and with the best, and what it is of."""
    grid, everything = results.grid, results.counts()
    n, n_settings = len(results.outcomes), len(grid.settings)
    prompts = counted(len({outcome.prompt for outcome in results.outcomes}), "task or prompt", "tasks and prompts")
    tokens = noun(everything.tokens, "token")
    sides = [(how, counts) for how, counts in _answer(results) if counts.texts] or [("of all texts", everything)]
    length = "until the context is full" if grid.max_tokens < 0 else f"at most {counted(grid.max_tokens, 'token')} each"
    length += ", with the end token forbidden" if grid.ignore_eos else ""
    figures = [
        ("–" if counts.accuracy is None else percent(counts.accuracy), f"of tasks right, {how}")
        for how, counts in sides
        if everything.answered
    ]
    figures += [
        *((percent(counts.wasted_share), f"of tokens wasted, {how}") for how, counts in sides),
        (f"{n:,}", f"{noun(n, 'text')}, {count(everything.tokens)} {tokens}, over all settings"),
    ]
    settings = counted(n_settings, "setting")
    lead = f"of texts of {visible(results.model)} loop, {' and '.join(how for how, _ in sides)}"
    about = f"Grid {visible(grid.name)}: {prompts} in {settings}, {length}"
    big = " → ".join(percent(counts.loop_rate) if counts.texts else "–" for _, counts in sides)
    return (
        tag("div", tag("span", escape(big), class_="big"), tag("p", escape(lead), class_="lead"),
            tag("p", escape(about), class_="soft"), class_="hero")
        + unfinished(results)
        + tiles((value, escape(what)) for value, what in figures)
    )  # fmt: skip


def _answer(results: "Results") -> list[tuple[str, Counts]]:
    """Return the texts of the best kind, after those without a penalty that they are compared with."""
    best = next((row for row in rows(results) if row.kind == results.best), None)
    if best is None:
        return [("without a penalty", results.counts(kind=NONE))] if NONE in results.kinds else []
    without = [("without a penalty", results.counts(name=best.against))] if best.against else []
    return [*without, (f"with {best.label}", results.counts(name=best.settings))]


def _kinds(results: "Results") -> str:
    """Every kind at its chosen strength, all temperatures together."""
    shown = [(row, results.counts(name=row.settings)) for row in rows(results)]
    tasks, timed = any(counts.answered for _, counts in shown), any(counts.seconds for _, counts in shown)
    loops = scale(counts.loop_interval.high for _, counts in shown if counts.texts)
    right = scale(counts.accuracy_interval.high for _, counts in shown if counts.answered)
    most = max(counts.wasted_share for _, counts in shown)
    head = [
        tag("th", "kind, strength", scope="col"),
        tag("th", "loop rate, 95 % interval", scope="col", colspan=2),
        tag("th", "accuracy, 95 % interval", scope="col", colspan=2) if tasks else "",
        tag("th", "tokens wasted", scope="col", colspan=2),
        tag("th", "time in the sampler", scope="col", class_="number") if timed else "",
    ]
    body = []
    for row, counts in shown:
        cells = [tag("th", escape(row.label), scope="row")]
        spread = results.spread(name=row.settings)
        rate = counts.loop_rate if counts.texts else None
        cells += _rate_cells(rate, counts.loop_interval, loops, LOOP, spread.loop_rate)
        if tasks:
            cells += _rate_cells(counts.accuracy, counts.accuracy_interval, right, RIGHT, spread.accuracy)
        wasted = percent(counts.wasted_share)
        cells.append(
            tag("td", bar(counts.wasted_share, most, f"{wasted} of tokens wasted", LOOP), class_="chart short")
        )
        cells.append(tag("td", wasted, class_="number", data_label="wasted"))
        if timed:
            cells.append(tag("td", escape(_overhead(counts)), class_="number", data_label="sampler"))
        body.append(tag("tr", *cells))
    scales = [tag("th"), tag("td", ruler(loops, 2), class_="chart"), tag("td")]
    scales += [tag("td", ruler(right, 2), class_="chart"), tag("td")] if tasks else []
    foot = tag("tfoot", tag("tr", *scales))
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), foot, class_="groups kinds")
    what = (
        "All temperatures of a kind together, below no penalty at the same ones. Each kind is shown at the strength "
        "with the fewest loops among those that do not lose accuracy compared with no penalty; if all of its strengths "
        "do, at the most accurate. It is chosen on these texts, so its figures are a little too good."
    )
    if len(results.grid.seeds) > 1:
        what += " sd: the standard deviation over seeds, in percentage points."
    return tag("section", tag("h2", "Each kind at its best strength"), tag("p", what, class_="soft"),
               _scroll(table, "kinds of penalties"))  # fmt: skip


def _overhead(counts: "Counts") -> str:
    if counts.sampling_share is None or counts.sampling_microseconds is None:
        return "–"
    return f"{percent(counts.sampling_share)}, {counts.sampling_microseconds:,.0f} µs"


def _rate_cells(rate: float | None, interval: Interval, top: float, kind: str, sd: float | None) -> list[str]:
    if rate is None:
        return [tag("td", class_="chart"), tag("td", "–", class_="rate")]
    text = f"{percent(interval.low).removesuffix(' %')} to {percent(interval.high)}"
    text += "" if sd is None else f", sd {100 * sd:.2g}"
    said = tag("b", escape(percent(rate))) + " " + tag("span", escape(text), class_="soft")
    return [tag("td", whisker(interval.low, rate, interval.high, top, kind), class_="chart"),
            tag("td", said, class_="rate", data_label="loops" if kind == LOOP else "right")]  # fmt: skip


# ---- by temperature, by strength, by task ----


def _trends(results: "Results") -> str:
    if len(results.temperatures) < 2:
        return ""
    return _panels(results, "Loop rate by temperature", LOOP) + _panels(results, "Accuracy by temperature", RIGHT)


def _panels(results: "Results", title: str, kind: str) -> str:
    shown = _compared(rows(results))
    lines = {names: _points(results, names, kind) for row in shown for names in (row.against, row.settings) if names}
    highest = max((high for points in lines.values() for *_, high in points), default=0.0)
    if not highest:
        return ""
    top = next(top for top in _TOPS if top >= highest)
    panels = []
    for row in shown:
        without = [("none", lines[row.against])] if row.against else []
        points = lines[row.settings]
        said = "; ".join(
            f"{label}: " + ", ".join(f"{percent(rate)} at {x:g}" for x, _, rate, _ in line)
            for label, line in [*without, (row.label, points)]
        )
        chart = trend([*without, (kind, points)], top, f"{title}, {said}") if points else tag("p", "No texts.")
        panels.append(tag("figure", tag("figcaption", tag("h3", escape(row.label))), chart))
    what = f"Each kind at the strength above{_grey(shown)}; bars are 95 % intervals (Wilson)."
    return tag("section", tag("h2", title), tag("p", what, class_="soft"), tag("div", *panels, class_="panels"))


def _compared(every: list[Row]) -> list[Row]:
    """Return the rows that have a panel: those of penalties, which no penalty is in, or else those of no penalty."""
    return [row for row in every if row.kind != NONE] or every


def _grey(shown: list[Row]) -> str:
    return ", no penalty in grey" if any(row.against for row in shown) else ""


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


# ---- in the terms of other work ----


def _terms(results: "Results") -> str:
    """Return every kind at its chosen strength with the figures of docs/evaluate.md that other work reports."""
    heads = ["30-gram 20 times", "rep-4", "rep-4 of the tail", "SER@4", "hit the cap", "of these loop",
             "ended by themselves", "of these loop", "first loop"]  # fmt: skip
    body = []
    for row in rows(results):
        counts, first = results.counts(name=row.settings), results.first_loops(name=row.settings)
        shares = [
            counts.frequent_rate, counts.rep4, counts.tail_rep4, counts.ser4, counts.capped_share,
            counts.capped_loop_rate, counts.ended / counts.texts if counts.texts else None, counts.ended_loop_rate,
        ]  # fmt: skip
        cells = [_number("–" if share is None or not counts.texts else percent(share)) for share in shares]
        median = first.median_of_looping
        cells.append(_number("–" if median is None else f"{median:,.0f}"))
        body.append(tag("tr", tag("th", escape(row.label), scope="row"), *cells))
    head = tag("tr", tag("th", "kind, strength", scope="col"),
               *(tag("th", name, scope="col", class_="number") for name in heads))  # fmt: skip
    table = tag("table", tag("thead", head), tag("tbody", *body), class_="found")
    what = (
        "All temperatures of a kind together, over tokens. 30-gram: texts in which one 30-gram occurs 20 times or more "
        "(arXiv 2512.12895). rep-4: 4-grams that occurred before (arXiv 1908.04319), in all of a text and in its last "
        "512 tokens; means over texts. SER@4: of the tokens after 4 that occurred before, those that extend the "
        "repetition (after arXiv 2608.22761). The cap: the most tokens of the grid, or the context. First loop: tokens "
        "before it, the median over the texts that loop."
    )
    return tag("section", tag("h2", "In the terms of other work"), tag("p", what, class_="soft"),
               _scroll(table, "figures in the terms of other work"))  # fmt: skip


def _first_loops(results: "Results") -> str:
    """Return the share of texts without a loop over their length, a chart for each kind."""
    shown = _compared(rows(results))
    firsts = {names: results.first_loops(name=names) for row in shown for names in (row.against, row.settings) if names}
    end = max(first.longest for first in firsts.values())
    if not any(first.looping for first in firsts.values()):
        return ""
    panels = []
    for row in shown:
        named = [("none", "none", firsts[row.against])] if row.against else []
        named.append((row.label, LOOP, firsts[row.settings]))
        said = "; ".join(f"{label}: {percent(first.free(first.longest))} at {counted(first.longest, 'token')}"
                         for label, _, first in named)  # fmt: skip
        series = [(colour, _decline(first)) for _, colour, first in named]
        chart = decline(series, end, f"Share of texts without a loop so far, {said}")
        panels.append(tag("figure", tag("figcaption", tag("h3", escape(row.label))), chart))
    what = (
        "The share of texts in which no loop has begun, by tokens written, each kind at the strength "
        f"above{_grey(shown)}. A text that ends without a loop counts up to its end only (Kaplan and Meier 1958)."
    )
    return tag("section", tag("h2", "How long texts stay free of loops"), tag("p", what, class_="soft"),
               tag("div", *panels, class_="panels"))  # fmt: skip


def _decline(first: "FirstLoop") -> list[tuple[float, float]]:
    places = sorted({first.longest * i // _PLACES for i in range(_PLACES + 1)})
    return [(0, 1.0), *((place, first.free(place)) for place in places if place)]


def _heat_maps(results: "Results") -> str:
    temperatures = results.temperatures
    columns = [f"{temperature:g}" for temperature in temperatures]
    tasks = bool(results.tasks)
    heads = [("loop rate, %", columns), *([("accuracy, %", columns)] if tasks else [])]
    places = dict.fromkeys((each.kind, each.strength, each.params.temperature) for each in results.grid.settings)
    cells = {
        (kind, strength, temperature): results.counts(kind=kind, strength=strength, temperature=temperature)
        for kind, strength, temperature in places
    }
    top = max([_FAINT, *(counts.loop_rate for counts in cells.values())])
    figures = []
    for kind in results.kinds:
        rows = []
        for strength in results.strengths(kind):
            row = [cells.get((kind, strength, temperature), Counts()) for temperature in temperatures]
            made = [
                _cell(c.loop_rate if c.texts else None, c.loop_interval, c.looping, c.texts, LOOP, top) for c in row
            ]
            if tasks:
                made += [_cell(c.accuracy, c.accuracy_interval, c.right, c.answered, RIGHT, 1.0) for c in row]
            rows.append((f"{strength:g}", made))
        figures.append(
            tag("figure", tag("figcaption", tag("h3", escape(visible(kind)))), heat(heads, "strength", rows))
        )
    what = "Rows are strengths, columns temperatures; a cell holds all settings of that kind."
    return tag("section", tag("h2", "Strength and temperature"), tag("p", what, class_="soft"),
               tag("div", *figures, class_="figures heats"))  # fmt: skip


def _cell(rate: float | None, interval: Interval, n: int, of: int, kind: str, top: float) -> Cell:
    if rate is None:
        return Cell("", "no texts", kind, 0.0)
    title = f"{n:,} of {of:,}, 95 % interval {percent(interval.low)} to {percent(interval.high)}"
    return Cell(_short(rate), title, kind, rate / top)


def _short(rate: float) -> str:
    """Return a share in percent, without the sign, in three digits at most."""
    value = 100 * rate
    return f"{value:.0f}" if value in (0, 100) or value >= 10 else f"{value:.1f}"


def _tasks(results: "Results") -> str:
    if len(results.tasks) < 2:
        return ""
    lines = [(row.label, _task_cells(results, name=row.settings)) for row in rows(results)]
    what = (
        "Accuracy in percent, all temperatures of a kind together, and the difference in points from no penalty on the "
        "same prompts at the same temperatures: warm colours where the penalty loses, cold ones where it gains."
    )
    table = heat([("", [visible(task) or "–" for task in results.tasks])], "kind, strength", lines)
    return tag("section", tag("h2", "Which tasks a penalty loses"), tag("p", what, class_="soft"), table)


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


def _answers(results: "Results") -> str:
    """Loops and answers on the same texts: what a loop costs, and what a penalty wins back."""
    if not any(results.counts(kind=kind).answered_looping for kind in results.kinds):
        return ""
    heads = [
        "answers",
        "right",
        "wrong",
        "loop, right",
        "loop, wrong",
        "loop without a penalty",
        "right then",
        "right now",
    ]
    body = []
    for row in rows(results):
        counts, compared = results.counts(name=row.settings), results.compare(name=row.settings)
        loop_right, loop_wrong = counts.right_looping, counts.answered_looping - counts.right_looping
        wrong = counts.answered - counts.right - loop_wrong
        shown = [counts.answered, counts.right - loop_right, wrong, loop_right, loop_wrong]
        cells = [_number(f"{n:,}") for n in shown]
        won = ["–"] * 3 if compared is None else [compared.stuck, compared.stuck_right_none, compared.stuck_right]
        cells += [_number(n if isinstance(n, str) else f"{n:,}") for n in won]
        body.append(tag("tr", tag("th", escape(row.label), scope="row"), *cells))
    head = tag("tr", tag("th", "kind, strength", scope="col"),
               *(tag("th", name, scope="col", class_="number") for name in heads))  # fmt: skip
    table = tag("table", tag("thead", head), tag("tbody", *body), class_="found")
    looping = [task for task in results.tasks if results.counts(task=task).answered_looping]
    lines = [
        (row.label, [_loop_cell(results.counts(name=row.settings, task=task)) for task in looping])
        for row in rows(results)
    ]
    heats = heat([("answers that loop, %", [visible(task) or "–" for task in looping])], "kind, strength", lines)
    what = (
        "Answers to tasks, all temperatures of a kind together. A text that loops is right if it gave the answer "
        "before the loop or in it. The last three columns are the tasks whose text loops without a penalty: how many "
        "there are, how many of them were right then, and how many are right with the penalty."
    )
    return tag("section", tag("h2", "Loops and answers"), tag("p", what, class_="soft"),
               _scroll(table, "loops and answers"), heats)  # fmt: skip


def _loop_cell(counts: "Counts") -> Cell:
    rate = counts.loop_rate if counts.texts else None
    return _cell(rate, counts.loop_interval, counts.looping, counts.texts, LOOP, 1.0)


# ---- setting by setting ----


def _comparisons(results: "Results") -> str:
    n = len(results.comparisons)
    least = _ALPHA / max(n, 1)
    extra = more(results.grid.settings)
    kinds = [tag("details", tag("summary", *_summary(results, kind)), _settings(results, kind, extra, least))
             for kind in results.kinds]  # fmt: skip
    what = (
        "Texts of the same prompt and seed with and without the penalty, drawn in the same way. Newly: they loop only "
        "with it; cured: only without. Gained: they are right only with it; lost: only without. p: McNemar's exact "
        "test. Differences are in percentage points, with their 95 % intervals, in which prompts are clusters. "
        "Texts of one prompt are not independent, so where temperatures or seeds are taken together only the interval "
        "is valid."
    )
    if len(results.grid.seeds) > 1:
        what += " sd: the standard deviation over seeds, in percentage points."
    notes = [what if n else "The grid has no setting without a penalty to compare with."]
    if n > 1:
        notes.append(
            f"{n:,} settings are compared: even if no penalty had any effect, {_ALPHA * n:.2g} of these p would be "
            f"below {_ALPHA:g} on average. Those below {least:.3g} ({_ALPHA:g} / {n:,}, Bonferroni) are in bold"
            + (", except where seeds are taken together." if len(results.grid.seeds) > 1 else ".")
        )
    said = "".join(tag("p", note, class_="soft") for note in notes)
    return tag("section", tag("h2", "Setting by setting, compared with no penalty"), said, *kinds, id="settings")


def _summary(results: "Results", kind: str) -> list[str]:
    counts = results.counts(kind=kind)
    n = len(results.settings(kind=kind))
    loops = f"{percent(counts.loop_rate)} loop" if counts.texts else "no texts"
    right = "" if counts.accuracy is None else f", {percent(counts.accuracy)} right"
    what = f"{counted(n, 'setting')}: {loops}{right}"
    return [tag("b", escape(visible(kind))), " ", tag("span", escape(what), class_="soft")]


def _settings(results: "Results", kind: str, extra: dict[str, str], least: float) -> str:
    tasks = bool(results.tasks)
    sd = ["sd"] if len(results.grid.seeds) > 1 else []
    heads = ["strength", "T", "texts", "loop rate", *sd, "wasted", "newly", "cured", "p", "difference, interval"]
    heads += ["accuracy", *sd, "gained", "lost", "p", "difference, interval"] if tasks else []
    rows = []
    for strength in results.strengths(kind):
        settings = sorted(results.settings(kind=kind, strength=strength), key=lambda s: s.params.temperature)
        for setting in settings:
            name = _strength(strength, extra[setting.name])
            paired = results.comparisons.get(setting.name)
            independent = setting.params.temperature == 0 or not sd
            cells = _setting(results, f"{setting.params.temperature:g}", paired, least if independent else 0.0,
                             name=setting.name)  # fmt: skip
            rows.append(tag("tr", name, *cells))
        if len(settings) > 1:
            which: dict[str, Any] = {"kind": kind, "strength": strength}
            cells = _setting(results, "all", results.compare(**which), 0.0, **which)
            rows.append(tag("tr", _strength(strength, ""), *cells, class_="all"))
    head = tag("tr", *(tag("th", name, scope="col", class_="number") for name in heads))
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="found")
    strengths = results.strengths(kind)
    heats = ""
    if len(results.tasks) > 1 and len(strengths) > 1:
        lines = [(f"{strength:g}", _task_cells(results, kind=kind, strength=strength)) for strength in strengths]
        heats = heat([("accuracy by task, %", [visible(task) or "–" for task in results.tasks])], "strength", lines)
    return _scroll(table, f"settings of {visible(kind)}") + heats


def _strength(strength: float, extra: str) -> str:
    more_ = " " + tag("span", escape(visible(extra)), class_="soft") if extra else ""
    return tag("th", f"{strength:g}", more_, scope="row", class_="number")


def _setting(results: "Results", temperature: str, paired: "Paired | None", least: float, **which: Any) -> list[str]:
    """Return the cells of some settings; p below ``least`` is in bold."""
    counts, spread = results.counts(**which), results.spread(**which)
    several = len(results.grid.seeds) > 1
    cells = [
        _number(temperature),
        _number(f"{counts.texts:,}"),
        _number(percent(counts.loop_rate) if counts.texts else "–"),
        *([_deviation(spread.loop_rate)] if several else []),
        _number(percent(counts.wasted_share)),
    ]
    if paired is None:
        cells += [_number("–")] * 4
    else:
        cells += [_number(f"{paired.newly:,}"), _number(f"{paired.cured:,}"), _p(paired.loop_p, least)]
        cells.append(_number(_difference(paired.loop_difference, paired.loop_interval)))
    if results.tasks:
        cells.append(_number("–" if counts.accuracy is None else percent(counts.accuracy)))
        cells += [_deviation(spread.accuracy)] if several else []
        cells += _accuracy(paired, least)
    return cells


def _deviation(sd: float | None) -> str:
    return _number("–" if sd is None else f"{100 * sd:.2g}")


def _accuracy(paired: "Paired | None", least: float) -> list[str]:
    if paired is None or paired.accuracy_difference is None or paired.accuracy_interval is None:
        return [_number("–")] * 4
    difference = _difference(paired.accuracy_difference, paired.accuracy_interval)
    return [
        _number(f"{paired.gained:,}"),
        _number(f"{paired.lost:,}"),
        _p(paired.accuracy_p, least),
        _number(difference),
    ]


def _number(text: str) -> str:
    return tag("td", escape(text), class_="number")


def _p(p: float, least: float) -> str:
    text = "<0.0001" if p < 0.0001 else f"{p:.2g}"
    shown = escape(text)
    return tag("td", tag("b", shown) if p < least else shown, class_="number")


def _difference(difference: float, interval: Interval) -> str:
    def points(share: float) -> str:
        return f"{100 * share:+.1f}".replace("-", "−").replace("+0.0", "0").replace("−0.0", "0")

    return f"{points(difference)} ({points(interval.low)} to {points(interval.high)})"


def _scroll(content: str, label: str) -> str:
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)


# ---- samples and notes ----


def _sample(results: "Results", record: "Audited", prompt: str) -> Sample:
    setting = results.settings(name=record.groups["setting"])[0]
    right = {"yes": "right", "no": "wrong"}.get(record.groups.get("right", ""))
    result = ", ".join(word for word in ("loops" if record.looping else "", right) if word) or "no loop"
    groups = {"strength": f"{setting.strength:g}", "temperature": f"{setting.params.temperature:g}", "result": result}
    record = replace(record, groups={"kind": record.groups["kind"], **groups, **record.groups})
    return sample(record, wasted_tokens(record), _BY, prompt)


def _about_samples(results: "Results") -> str:
    looping = sum(each.record.looping for each in results.samples)
    others = len(results.samples) - looping
    total = results.counts().looping
    if looping == total:
        first = (
            "No text loops" if not total else "The one text that loops" if total == 1 else f"All {total:,} that loop"
        )
    else:
        first = f"{looping:,} of {total:,} texts that loop, those of every setting that waste the most"
    return (
        f"{first}; {others:,} of {len(results.outcomes) - total:,} that do not, chosen at random. "
        f"Texts of more than {CHARACTERS:,} characters are cut around their loops."
    )


def _judge(results: "Results") -> str:
    if results.judged is None:
        return ""
    agreement = results.judged.agreement
    kappa = "not defined, as one says the same of all" if agreement.kappa is None else f"{agreement.kappa:.2f}"
    lead = (
        f"{visible(results.judged.file)} was asked whether each text is degenerate. It agrees with the rule on "
        f"{percent(agreement.share)} of {counted(agreement.n, 'text')}; Cohen's kappa, the agreement beyond chance: "
        f"{kappa}. Yes and no together have {percent(results.judged.answered)} of its probability; if that is little, "
        "it does not answer the question."
    )
    names = ("judge: degenerate", "judge: not")
    head = tag("tr", tag("th", scope="col"), *(tag("th", name, scope="col", class_="number") for name in names))
    rows = [
        tag("tr", tag("th", name, scope="row"), *(tag("td", f"{n:,}", class_="number") for n in counts))
        for name, counts in (
            ("loops by the rule", (agreement.both, agreement.only_b)),
            ("does not", (agreement.only_a, agreement.neither)),
        )
    ]
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    parts = tag("h2", "The opinion of a judge"), tag("p", escape(lead), class_="soft"), _scroll(table, "Judge and rule")
    return tag("section", *parts)


def _notes(results: "Results") -> str:
    timed = sum(outcome.seconds is not None for outcome in results.outcomes)
    notes = [
        "A text loops if the audit finds a significant loop in it; a task is right if its answer is, loop or not.",
        "Wilson intervals treat texts as independent, which seeds of a prompt are not; those of differences do not.",
        "The interval of a difference from few prompts is wide, also where no pair differs: they say little of others.",
    ]
    if timed:
        notes.append(
            f"Time in the sampler: picks / (prompt, decoding and picks), over {counted(timed, 'text')} with timings"
            + (f" ({whole(timed / len(results.outcomes))} of all)" if timed < len(results.outcomes) else "")
            + "; µs is the mean time of a pick."
        )
    made: Sequence[str] = [tag("li", escape(note)) for note in notes]
    return tag("section", tag("h2", "How to read it"), tag("ul", *made, class_="notes soft"))
