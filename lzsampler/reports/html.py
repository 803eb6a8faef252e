"""`write_html`: one page for the browser that holds everything it shows and fetches nothing.

Figures and charts are markup made here; the table of samples and their texts are JSON that report.js shows as text
(textContent), never as markup. The Content-Security-Policy lets that one script and that one style sheet run, by their
hashes, and forbids everything else.
"""

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from statistics import median
from string import Template
from typing import Any

from ..records import LOOPING, RULES, Audited
from ..statistics import wilson
from ..summary import Group, Summary
from .charts import bar, histogram, scatter, stripes, tag, whisker
from .files import replacing
from .groups import literal_rule, selected
from .samples import CHARACTERS, SAMPLES, Sample, worst
from .text import count, json_html, percent, visible, whole

GROUPS = 60  # that are listed
_STRIPES = 100  # lines of the picture of looping texts


def write_html(path: str | Path, summary: Summary, audited: Iterable[Audited]) -> None:
    """Write the report of an audit as one HTML file that works offline.

    ``audited``: the records with the texts of those that loop, in any number, read once; the `SAMPLES` that waste most
    tokens are in the report, cut to `CHARACTERS` each. LzsError when the file cannot be written.
    """
    from .. import __version__

    samples = worst(audited, summary.by)
    style, script = _resource("report.css"), _resource("report.js")
    data = {"by": [visible(key) for key in summary.by], "rules": RULES, "samples": [sample.row for sample in samples]}
    page = Template(_resource("report.html")).substitute(
        policy=_policy(style, script),
        style=style,
        script=script,
        title=escape(_title(summary)),
        headline=_headline(summary),
        figures=_figures(summary, samples),
        groups=_groups(summary),
        samples=_about_samples(summary, samples),
        rules=_rules(summary),
        literal=literal_rule(summary),
        bad=_bad(summary),
        version=escape(__version__),
        data=json_html(data).decode(),
        texts="\0",  # the one place where the file is cut; escape() and JSON leave none
    )
    head, tail = page.split("\0")
    with replacing(path) as file:
        file.write(head.encode())
        for i, sample in enumerate(samples):
            file.write(b'<script type="application/json" id="t%d">' % i + sample.page + b"</script>\n")
        file.write(tail.encode())


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; script-src {source(script)}; style-src {source(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _title(summary: Summary) -> str:
    total = summary.total
    if total.records == 0:
        return "lzs audit: no records"
    return f"lzs audit: {percent(total.looping / total.records)} of {total.records:,} records loop"


def _headline(summary: Summary) -> str:
    total = summary.total
    if total.records == 0:
        return tag("p", "No records: nothing was audited.", class_="lead")
    rates = [
        ("loop", "A significant loop", total.looping, "the rules below"),
        ("literal", "A literal loop", total.literal, literal_rule(summary)),
    ]
    ends = [wilson(n, total.records) for _, _, n, _ in rates]
    top = _scale(high for _, high in ends)
    rows = [
        tag(
            "div",
            tag("div", tag("b", title), tag("span", escape(rule), class_="soft"), class_="what"),
            whisker(low, n / total.records, high, top, kind),
            tag("div", _interval(n, total), class_="number"),
        )
        for (kind, title, n, rule), (low, high) in zip(rates, ends, strict=True)
    ]
    low, high = ends[0]
    big = tag("span", escape(percent(total.looping / total.records)), class_="big")
    of = f"of {total.records:,} {'record loops' if total.records == 1 else 'records loop'}"
    interval = f"{total.looping:,} of them; 95 % interval {percent(low)} to {percent(high)} (Wilson)"
    tiles = [
        (count(total.wasted_tokens), "tokens wasted, all copies but the first"),
        (whole(median(total.starts)) if total.starts else "–", "of the text before a loop begins, median"),
        (f"{median(total.periods):,.0f}" if total.periods else "–", "characters in a copy, median"),
        (count(summary.bad_records), "bad records, not counted"),
    ]
    return (
        tag("div", big, tag("p", of, class_="lead"), tag("p", escape(interval), class_="soft"), class_="hero")
        + tag("dl", *(tag("div", tag("dt", label), tag("dd", value)) for value, label in tiles), class_="tiles")
        + tag("div", *rows, class_="rates")
    )


def _interval(n: int, group: Group) -> str:
    low, high = wilson(n, group.records)
    figures = f"{percent(low).removesuffix(' %')} to {percent(high)}"
    return f"{tag('b', escape(percent(n / group.records)))} {tag('span', escape(figures), class_='soft')}"


def _scale(values: Iterable[float]) -> float:
    """Return the end of a scale for rates: a little above the largest, at most 1."""
    return min(1.0, 1.08 * max(values, default=1.0)) or 1.0


def _figures(summary: Summary, samples: list[Sample]) -> str:
    total = summary.total
    if not total.looping:
        return ""
    made = [_figure("Where loops begin", "share of the text before the first loop", histogram(total.starts))]
    if summary.points:
        shown = f"{len(summary.points):,} of {total.looping:,} " if len(summary.points) < total.looping else ""
        made.append(
            _figure("How they look", f"{shown}loops by period, characters, and copies", scatter(summary.points))
        )
    if samples:
        bands = sorted((sample.row["band"][0], sample.row["band"][1]) for sample in samples)
        step = max(1.0, len(bands) / _STRIPES)
        some = [bands[int(i * step)] for i in range(min(_STRIPES, len(bands)))]
        what = f"{len(some)} texts from their beginning to their end, the loop in colour"
        made.append(_figure("Where texts get stuck", what, stripes(some)))
    # A stretch that another rule reports is no finding of LZR020 as well: its records are counted apart.
    counts = {code: summary.rule_counts.get(code, 0) for code in RULES} | {"LZR020": total.literal}
    most = max([*counts.values(), 1])
    rows = [
        tag("tr", tag("th", tag("code", code), f" {escape(name)}", scope="row"),
            tag("td", bar(counts[code], most, f"{counts[code]:,}", "loop" if code in LOOPING else "literal")),
            tag("td", f"{counts[code]:,}", class_="number"))
        for code, name in RULES.items()
    ]  # fmt: skip
    table = tag("table", tag("tbody", *rows), class_="bars")
    made.append(_figure("Which rules they break", "records; one may break several", table))
    return tag("div", *made, class_="figures")


def _figure(title: str, what: str, content: str) -> str:
    caption = tag("figcaption", tag("h2", escape(title)), tag("p", escape(what), class_="soft"))
    return tag("figure", caption, content)


def _groups(summary: Summary) -> str:
    if not summary.by or not summary.groups:
        return ""
    shown = selected(summary, GROUPS)
    ends = [wilson(group.looping, group.records) for _, group in shown]
    top = _scale(high for _, high in ends)
    most = max(group.wasted_tokens for _, group in shown)
    head = [
        *(tag("th", escape(visible(key)), scope="col") for key in summary.by),
        tag("th", "records", scope="col", class_="number"),
        tag("th", "loop rate, 95 % interval", scope="col", colspan=2),
        tag("th", "wasted tokens", scope="col", colspan=2),
        tag("th", "begins at", scope="col", class_="number"),
    ]
    rows = []
    for (keys, group), (low, high) in zip(shown, ends, strict=True):
        wasted = count(group.wasted_tokens)
        cells = [
            *(tag("th", escape(visible(value)) or "–", scope="row") for value in keys),
            tag("td", f"{group.records:,}", class_="number", data_label="records"),
            tag("td", whisker(low, group.looping / max(group.records, 1), high, top, "loop"), class_="chart"),
            tag("td", _interval(group.looping, group) if group.records else "–", class_="rate"),
            tag("td", bar(group.wasted_tokens, most, f"{wasted} tokens wasted", "loop"), class_="chart"),
            tag("td", wasted, class_="number", data_label="wasted"),
            tag("td", whole(median(group.starts)) if group.starts else "–", class_="number",
                data_label="begins at"),
        ]  # fmt: skip
        rows.append(tag("tr", *cells))
    rest = len(summary.groups) - len(shown)
    note = f"The {GROUPS} groups that waste most tokens; {rest:,} more are in summary.json." if rest else ""
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="groups")
    title = "Rate by " + " and ".join(escape(visible(key)) for key in summary.by)
    return tag("section", tag("h2", title), tag("p", note, class_="soft") if note else "", table)


def _about_samples(summary: Summary, samples: list[Sample]) -> str:
    if not samples:
        return "No record loops."
    if len(samples) == SAMPLES and summary.total.looping > SAMPLES:
        some = f"The {SAMPLES:,} of {summary.total.looping:,} looping records that waste most tokens"
    else:
        some = f"All {len(samples):,} looping records" if len(samples) > 1 else "The one looping record"
    return f"{some}; texts of more than {CHARACTERS:,} characters are cut around their loops."


def _rules(summary: Summary) -> str:
    return "".join(
        tag("div", tag("dt", escape(visible(name))), tag("dd", escape(visible(_setting(value)))))
        for name, value in summary.rules.items()
    )


def _setting(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)


def _bad(summary: Summary) -> str:
    if not summary.bad_records:
        return ""
    rows = [
        tag("tr", tag("td", escape(visible(bad.file))), tag("td", str(bad.line or "–"), class_="number"),
            tag("td", escape(visible(bad.reason))))
        for bad in summary.bad
    ]  # fmt: skip
    head = tag("tr", *(tag("th", title, scope="col") for title in ("file", "line", "reason")))
    rest = summary.bad_records - len(summary.bad)
    more = tag("p", f"… and {rest:,} more", class_="soft") if rest > 0 else ""
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="bad")
    title = f"{summary.bad_records:,} bad {'record' if summary.bad_records == 1 else 'records'}"
    return tag("section", tag("h2", title), tag("p", "Not counted in any rate.", class_="soft"), table, more)
