"""`write_page`: one page for the browser that contains everything it shows and loads nothing.

Figures and charts are markup made in Python; the table of samples and their texts are JSON that report.js shows as text
(textContent), never as markup. The Content-Security-Policy allows that script and that style sheet, by their hashes,
and forbids everything else.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from ..auditing.records import RULES
from ..util.files import replacing
from ..util.json_text import json_html
from .charts import tag
from .text import visible

if TYPE_CHECKING:
    from .samples import Sample


def write_page(
    path: str | Path,
    *,
    command: str,
    title: str,
    header: str,
    main: str,
    footer: str,
    by: Sequence[str],
    samples: "Sequence[Sample]",
) -> None:
    """Write a report as one HTML file that works offline.

    ``command``: the command that made the report; ``title``: text; ``header``, ``main``, ``footer``: markup. ``by``:
    names of the columns of each sample's ``row["by"]``. LzsError if the file cannot be written.
    """
    style, script = _resource("report.css"), _resource("report.js")
    data = {"by": [visible(key) for key in by], "rules": RULES, "samples": [sample.row for sample in samples]}
    page = Template(_resource("report.html")).substitute(
        policy=_policy(style, script),
        style=style,
        script=script,
        command=escape(command),
        title=escape(title),
        header=header,
        main=main,
        footer=footer,
        data=json_html(data).decode(),
        texts="\0",  # the one place where the file is cut; escape() and JSON leave none
    )
    head, tail = page.split("\0")
    with replacing(path) as file:
        file.write(head.encode())
        for i, sample in enumerate(samples):
            file.write(b'<script type="application/json" id="t%d">' % i + sample.page + b"</script>\n")
        file.write(tail.encode())


def samples_section(about: str) -> str:
    """Return the section for the table of samples, with a sentence about them."""
    missing = tag("p", "The table of samples needs JavaScript; the figures above do not.")
    parts = [tag("h2", "Samples"), tag("p", escape(about), class_="soft"), tag("noscript", missing)]
    return tag("section", *parts, tag("div", id="table"), id="samples")


def figure(title: str, what: str, content: str) -> str:
    """Return a chart with its heading and a line of explanation."""
    caption = tag("figcaption", tag("h2", escape(title)), tag("p", escape(what), class_="soft"))
    return tag("figure", caption, content)


def tiles(figures: Iterable[tuple[str, str]]) -> str:
    """Return figures side by side, given as (value, what it is)."""
    return tag("dl", *(tag("div", tag("dt", what), tag("dd", value)) for value, what in figures), class_="tiles")


def scale(values: Iterable[float]) -> float:
    """Return the end of a scale for rates: a little above the largest, at most 1."""
    return min(1.0, 1.08 * max(values, default=1.0)) or 1.0


def bad_rows(
    title: str,
    heads: Sequence[str],
    rows: Iterable[tuple[str, int, str]],
    rest: int,
    note: str = "Not counted in any rate.",
) -> str:
    """Return a section about what could not be read: rows of (file, line or 0, reason), and how many more there are."""
    made = [
        tag("tr", tag("td", escape(visible(file))), tag("td", str(line or "–"), class_="number"),
            tag("td", escape(visible(reason))))
        for file, line, reason in rows
    ]  # fmt: skip
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    more = tag("p", f"… and {rest:,} more", class_="soft") if rest > 0 else ""
    table = tag("table", tag("thead", head), tag("tbody", *made), class_="bad")
    return tag("section", tag("h2", title), tag("p", escape(note), class_="soft"), table, more)


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; script-src {source(script)}; style-src {source(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
