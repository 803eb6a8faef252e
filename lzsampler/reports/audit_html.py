"""`write_html`: the report of an audit as a page for the browser (templates/audit.html)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..auditing.records import LOOPING, RULES, Audited
from ..auditing.summary import Summary
from .audit_groups import literal_rule, selected
from .page import scale, write_page
from .samples import CHARACTERS, SAMPLES, Sample, worst

GROUPS = 60  # maximum number of groups in the report
_STRIPES = 100  # maximum number of lines in the picture of looping texts
_UNREAD = 100  # maximum number of rows in the table of unreadable records


def write_html(path: str | Path, summary: Summary, audited: Iterable[Audited]) -> None:
    """Write the report of an audit as one HTML file that works offline.

    ``audited``: any number of records, which are read once; looping records need their texts. The report contains the
    `SAMPLES` records that waste the most tokens, each cut to `CHARACTERS`. LzsError if the file cannot be written.
    """
    samples = worst(audited, summary.by)
    groups = selected(summary, GROUPS) if summary.by else []
    formats = sorted(summary.coverage.formats.items(), key=lambda item: (-item[1][1], item[0]))
    unread = list(summary.coverage.unread.items())[:_UNREAD]
    n_of = {code: summary.rule_counts.get(code, 0) for code in RULES}
    write_page(
        path,
        "audit.html",
        by=summary.by,
        samples=samples,
        summary=summary,
        literal_rule=literal_rule(summary),
        top=scale(summary.total.interval(of).high for of in ("looping", "stuck", "literal")),
        bands=_bands(samples),
        rules=[(code, name, n_of[code], "loop" if code in LOOPING else "literal") for code, name in RULES.items()],
        most_of_a_rule=max([*n_of.values(), 1]),
        groups=groups,
        top_of_groups=scale(group.interval("looping").high for _, group in groups),
        most_wasted=max((group.wasted_tokens for _, group in groups), default=0),
        most_samples=SAMPLES,
        characters=CHARACTERS,
        formats=formats,
        passed=", ".join(f"{reason} ({one.count:,})" for reason, one in summary.coverage.passed.items()),
        unread=[
            (file, one.line, f"{one.reason} ({one.count:,} times)" if one.count > 1 else one.reason)
            for (file, _), one in unread
        ],
        unread_rest=summary.bad_records - sum(one.count for _, one in unread),
        settings=[(name, _setting(value)) for name, value in summary.rules.items()],
    )


def _bands(samples: list[Sample]) -> list[tuple[float, float]]:
    """Return (start, end) of the loop in at most `_STRIPES` samples, as shares of the text, sorted."""
    bands = sorted((sample.row["band"][0], sample.row["band"][1]) for sample in samples)
    step = max(1.0, len(bands) / _STRIPES)
    return [bands[int(i * step)] for i in range(min(_STRIPES, len(bands)))]


def _setting(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)
