"""`bad_tables` and `unfinished`: texts of an evaluation that failed, could not be compared, or are missing."""

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from .._values import counted
from .text import visible

if TYPE_CHECKING:
    from ..evaluation.results import Results

_MOST = 100  # maximum number of rows of a table


class BadTable(NamedTuple):
    """The arguments of `bad_rows` (templates/macros.html)."""

    title: str
    heads: tuple[str, str, str]
    rows: list[tuple[str, int, str]]
    rest: int
    note: str


def unfinished(results: "Results") -> list[str]:
    """Return sentences about missing and failed texts; empty if there are none."""
    said = []
    if results.missing:
        there = counted(results.expected or 0, "text is", "texts are")
        said.append(f"This evaluation is not finished: {len(results.outcomes):,} of {there} there")
    if results.failed:
        said.append(visible(results.failure, 300))
    return said


def bad_tables(results: "Results") -> list[BadTable]:
    """Return a table of the texts that failed, by prompt and reason, and one table for the bad rows of each file."""
    tables = []
    for written, title, note in (
        (False, "failed", "Not counted in any rate; --resume tries again."),
        (True, "with an answer that could not be compared", "Counted in loop rates only; --resume tries again."),
    ):
        failed = [each for each in results.failed if each.written == written]
        reasons = Counter((each.prompt, each.reason) for each in failed)
        shown = [(prompt, n, reason) for (prompt, reason), n in reasons.most_common(_MOST)]
        if shown:
            title = f"{counted(len(failed), 'text')} {title}"
            tables.append(BadTable(title, ("prompt", "texts", "reason"), shown, len(reasons) - len(shown), note))
    for name, rows in results.bad.items():
        if rows:
            title = f"{counted(len(rows), 'bad row')} in the {visible(name)}"
            shown = [(name, row.line, row.reason) for row in rows[:_MOST]]
            rest = len(rows) - len(shown)
            tables.append(BadTable(title, ("file", "line", "reason"), shown, rest, "Not counted in any rate."))
    return tables
