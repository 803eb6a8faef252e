"""`bad_section` and `unfinished`: what an evaluation could not read, write or compare, and what is still to be done."""

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from .._values import counted
from .charts import tag
from .page import bad_rows
from .text import visible

if TYPE_CHECKING:
    from ..evaluation.results import Results

_MOST = 100  # rows of a table


def unfinished(results: "Results") -> str:
    """Return a paragraph that says whether texts are missing; "" where all are there."""
    said = []
    if results.missing:
        there = counted(results.expected or 0, "text is", "texts are")
        said.append(f"This evaluation is not finished: {len(results.outcomes):,} of {there} there")
    if results.failed:
        said.append(visible(results.failure, 300))
    if not said:
        return ""
    return tag("p", escape(f"{'. '.join(said)}. So settings may have different prompts."), class_="unfinished")


def bad_section(results: "Results") -> str:
    """Return a table of the texts that failed, by prompt and reason, and one of the bad rows of each file."""
    sections = []
    for written, title, note in (
        (False, "failed", "Not counted in any rate; --resume tries again."),
        (True, "with an answer that could not be compared", "Counted in loop rates only; --resume tries again."),
    ):
        failed = [each for each in results.failed if each.written == written]
        reasons = Counter((each.prompt, each.reason) for each in failed)
        shown = [(prompt, n, reason) for (prompt, reason), n in reasons.most_common(_MOST)]
        if shown:
            title = f"{counted(len(failed), 'text')} {title}"
            sections.append(bad_rows(title, ("prompt", "texts", "reason"), shown, len(reasons) - len(shown), note))
    for name, rows in results.bad.items():
        if rows:
            title = f"{counted(len(rows), 'bad row')} in the {escape(visible(name))}"
            shown = [(name, row.line, row.reason) for row in rows[:_MOST]]
            sections.append(bad_rows(title, ("file", "line", "reason"), shown, len(rows) - len(shown)))
    return "".join(sections)
