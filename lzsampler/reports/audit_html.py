"""`write_html`: the report of an audit as a page for the browser."""

from collections.abc import Iterable
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from .._values import counted, noun
from ..auditing.clusters import Property
from ..auditing.records import LOOPING, RULES, Audited
from ..auditing.summary import Group, Summary
from .audit_groups import literal_rule, selected
from .charts import bar, histogram, ruler, scatter, stripes, tag, whisker
from .page import bad_rows, figure, samples_section, scale, tiles, write_page
from .samples import CHARACTERS, SAMPLES, Sample, worst
from .text import count, percent, visible, whole

GROUPS = 60  # that are listed
_STRIPES = 100  # lines of the picture of looping texts
_UNREAD = 100  # files and reasons that are listed of what could not be read


def write_html(path: str | Path, summary: Summary, audited: Iterable[Audited]) -> None:
    """Write the report of an audit as one HTML file that works offline.

    ``audited``: any number of records, with the texts of those that loop; they are read once. The report contains the
    `SAMPLES` records that waste the most tokens, cut to `CHARACTERS` each. LzsError if the file cannot be written.
    """
    from .. import __version__

    samples = worst(audited, summary.by)
    main = [_figures(summary, samples), _groups(summary), samples_section(_about_samples(summary, samples))]
    main += [_turns(summary), _coverage(summary), _bad(summary), _rules(summary)]
    write_page(
        path,
        command="lzs audit",
        title=_title(summary),
        header=_headline(summary),
        main="\n".join(main),
        footer=_footer(summary, __version__),
        by=summary.by,
        samples=samples,
    )


def _title(summary: Summary) -> str:
    total = summary.total
    if total.records == 0:
        return "lzs audit: no records"
    loop = counted(total.records, "record loops", "records loop")
    return f"lzs audit: {percent(total.looping / total.records)} of {loop}"


def _headline(summary: Summary) -> str:
    total = summary.total
    if total.records == 0:
        return tag("p", "No records: nothing was audited.", class_="lead")
    rates: list[tuple[str, str, Property, str]] = [
        ("loop", "A significant loop", "looping", "the rules below"),
        ("stuck", "A stuck stretch", "stuck", "LZR011: hardly a word of it is new"),
        ("literal", "Literal repeats", "literal", f"{literal_rule(summary)}; not loops: indentation counts, too"),
    ]
    ends = [total.interval(of) for _, _, of, _ in rates]
    top = scale(high for _, high in ends)
    rows = [
        tag(
            "div",
            tag("div", tag("b", title), tag("span", escape(rule), class_="soft"), class_="what"),
            whisker(low, getattr(total, of) / total.records, high, top, kind),
            tag("div", _interval(of, total), class_="number"),
        )
        for (kind, title, of, rule), (low, high) in zip(rates, ends, strict=True)
    ]
    rows.append(tag("div", tag("span"), ruler(top), tag("span"), class_="ruled"))
    low, high = ends[0]
    big = tag("span", escape(percent(total.looping / total.records)), class_="big")
    lead = f"of {counted(total.records, 'record loops', 'records loop')}"
    if total.conversations < total.records:
        lead += f", in {counted(total.conversations, 'conversation')}"
    by = "Wilson" if total.conversations == total.records else "Wilson, by conversation"
    interval = f"{total.looping:,} of them; 95 % interval {percent(low)} to {percent(high)} ({by})"
    figures = [
        (count(total.wasted_tokens), f"{noun(total.wasted_tokens, 'token')} wasted, all copies but the first"),
        (whole(median(total.starts)) if total.starts else "–", "of the text before a loop begins, median"),
        (f"{median(total.periods):,.0f}" if total.periods else "–", "characters in a copy, median"),
        (count(summary.bad_records), f"bad {noun(summary.bad_records, 'record')}, not counted"),
    ]
    if bits := summary.measured.get("lz_bits_per_token"):
        mean = summary.metrics["lz_bits_per_token"] / bits
        figures.append((f"{mean:.3g}", "bits a token under the LZ compressor, mean; a loop takes about 0.5"))
    return (
        tag("div", big, tag("p", lead, class_="lead"), tag("p", escape(interval), class_="soft"), class_="hero")
        + tiles(figures)
        + tag("div", *rows, class_="rates")
    )


def _interval(of: Property, group: Group) -> str:
    low, high = group.interval(of)
    figures = f"{percent(low).removesuffix(' %')} to {percent(high)}"
    return (
        f"{tag('b', escape(percent(getattr(group, of) / group.records)))} {tag('span', escape(figures), class_='soft')}"
    )


def _figures(summary: Summary, samples: list[Sample]) -> str:
    total = summary.total
    if not total.looping:
        return ""
    made = [figure("Where loops begin", "share of the text before the first loop", histogram(total.starts))]
    if summary.points:
        shown = f"{len(summary.points):,} of {total.looping:,} " if len(summary.points) < total.looping else ""
        made.append(figure("How they look", f"{shown}loops by period, characters, and copies", scatter(summary.points)))
    if samples:
        bands = sorted((sample.row["band"][0], sample.row["band"][1]) for sample in samples)
        step = max(1.0, len(bands) / _STRIPES)
        some = [bands[int(i * step)] for i in range(min(_STRIPES, len(bands)))]
        whose = noun(len(some), "text from its beginning to its end", "texts from their beginning to their end")
        what = f"{len(some):,} {whose}, the loop in colour"
        made.append(figure("Where texts loop", what, stripes(some)))
    counts = {code: summary.rule_counts.get(code, 0) for code in RULES}
    most = max([*counts.values(), 1])
    rows = [
        tag("tr", tag("th", tag("code", code), f" {escape(name)}", scope="row"),
            tag("td", bar(counts[code], most, f"{counts[code]:,}", "loop" if code in LOOPING else "literal")),
            tag("td", f"{counts[code]:,}", class_="number"))
        for code, name in RULES.items()
    ]  # fmt: skip
    table = tag("table", tag("tbody", *rows), class_="bars")
    made.append(figure("Which rules they break", "records; one may break several", table))
    return tag("div", *made, class_="figures")


def _groups(summary: Summary) -> str:
    if not summary.by or not summary.groups:
        return ""
    shown = selected(summary, GROUPS)
    ends = [group.interval("looping") for _, group in shown]
    top = scale(high for _, high in ends)
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
        wasted, tokens = count(group.wasted_tokens), noun(group.wasted_tokens, "token")
        cells = [
            *(tag("th", escape(visible(value)) or "–", scope="row") for value in keys),
            tag("td", f"{group.records:,}", class_="number", data_label="records"),
            tag("td", whisker(low, group.looping / max(group.records, 1), high, top, "loop"), class_="chart"),
            tag("td", _interval("looping", group) if group.records else "–", class_="rate"),
            tag("td", bar(group.wasted_tokens, most, f"{wasted} {tokens} wasted", "loop"), class_="chart"),
            tag("td", wasted, class_="number", data_label="wasted"),
            tag("td", whole(median(group.starts)) if group.starts else "–", class_="number",
                data_label="begins at"),
        ]  # fmt: skip
        rows.append(tag("tr", *cells))
    rest = len(summary.groups) - len(shown)
    note = (
        f"The {GROUPS} groups that waste the most tokens; {rest:,} more {noun(rest, 'is', 'are')} in summary.json."
        if rest
        else ""
    )
    blank = [tag("th") for _ in summary.by]
    foot = tag("tr", *blank, tag("td"), tag("td", ruler(top, 2), class_="chart"), *[tag("td")] * 4)
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), tag("tfoot", foot), class_="groups")
    title = "Rate by " + " and ".join(escape(visible(key)) for key in summary.by)
    return tag("section", tag("h2", title), tag("p", note, class_="soft") if note else "", table)


def _about_samples(summary: Summary, samples: list[Sample]) -> str:
    if not samples:
        return "No record loops."
    if len(samples) == SAMPLES and summary.total.looping > SAMPLES:
        some = f"The {SAMPLES:,} of {summary.total.looping:,} looping records that waste the most tokens"
    else:
        some = f"All {len(samples):,} looping records" if len(samples) > 1 else "The one looping record"
    return f"{some}; texts of more than {CHARACTERS:,} characters are cut around their loops."


def _turns(summary: Summary) -> str:
    """Return a section about conversations whose turns loop."""
    if not summary.turn_conversations:
        return ""
    head = tag("tr", *(tag("th", title, scope="col") for title in ("file", "conversation", "turns", "cycle", "what")))
    rows = [
        tag("tr", tag("td", escape(visible(one.file))), tag("td", escape(visible(one.id))),
            tag("td", f"{found.start:,} to {found.end - 1:,}"),
            tag("td", f"{counted(found.period, 'turn')} × {found.copies:.4g}"),
            tag("td", escape(visible(found.unit))))
        for one in summary.worst_turns
        for found in one.findings
    ]  # fmt: skip
    n, of = summary.turn_loops, summary.turn_conversations
    low, high = summary.turn_interval
    title = f"{n:,} of {counted(of, 'conversation loops', 'conversations loop')} over turns"
    about = (
        f"{percent(summary.turn_loop_rate)}, 95 % interval {percent(low)} to {percent(high)} (Wilson). The same "
        "messages or calls of tools come over and over (LZR012). A cycle is one copy of what repeats; turns of the "
        "model are counted from 0."
    )
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="bad") if rows else ""
    return tag("section", tag("h2", title), tag("p", escape(about), class_="soft"), table)


def _rules(summary: Summary) -> str:
    settings = [
        tag("div", tag("dt", escape(visible(name))), tag("dd", escape(visible(_setting(value)))))
        for name, value in summary.rules.items()
    ]
    return tag("section", tag("h2", "Rules in force"), tag("dl", *settings, class_="settings"))


def _footer(summary: Summary, version: str) -> str:
    return (
        f"lzsampler {escape(version)}. A {tag('b', 'significant')} loop is a unit with the copies, or the copies and "
        "the length, above (a single character needs the length); a "
        f"{tag('b', 'literal')} one is {literal_rule(summary)} in a row (arXiv 2504.20131, footnote 7), which most "
        "source code has. Wasted tokens: all copies but the first."
    )


def _setting(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)


def _coverage(summary: Summary) -> str:
    """Return a section about the formats that files were read as, and the files that were passed over."""
    coverage = summary.coverage
    if not coverage.formats and not coverage.passed:
        return ""
    made = [
        tag("tr", tag("td", escape(visible(format))), tag("td", f"{files:,}", class_="number"),
            tag("td", f"{records:,}", class_="number"))
        for format, (files, records) in sorted(coverage.formats.items(), key=lambda item: (-item[1][1], item[0]))
    ]  # fmt: skip
    head = tag("tr", *(tag("th", title, scope="col") for title in ("read as", "files", "records")))
    table = tag("table", tag("thead", head), tag("tbody", *made), class_="bad") if made else ""
    passed = ", ".join(f"{reason} ({one.count:,})" for reason, one in coverage.passed.items())
    more = tag("p", escape(visible(f"Passed over: {passed}", 2000)), class_="soft") if passed else ""
    return tag("section", tag("h2", "What was read"), table, more)


def _bad(summary: Summary) -> str:
    if not summary.bad_records:
        return ""
    title = f"{counted(summary.bad_records, 'bad record')}"
    unread = summary.coverage.unread
    rows = [
        (file, one.line, f"{one.reason} ({one.count:,} times)" if one.count > 1 else one.reason)
        for (file, _), one in list(unread.items())[:_UNREAD]
    ]
    rest = summary.bad_records - sum(one.count for one in list(unread.values())[:_UNREAD])
    return bad_rows(title, ("file", "line", "reason"), rows, rest)
