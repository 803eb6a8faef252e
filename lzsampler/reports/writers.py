"""The reports that can be written, by the ending of the file: one table for `save`, for checks and for the help.

To add a report, write its module in `lzsampler.reports` and add a line here. Functions are named and not imported, so
that the audit and the evaluation do not know the reports that are made of them.
"""

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ArgumentError, LzsError, missing


class Writer(NamedTuple):
    """A report: its ``function`` as "module:name", what it is in a few words, and the package that it needs, if any.

    The function of an audit takes (path, summary, records with findings), all others (path, what is shown). It raises
    LzsError, in one line, if the file cannot be written.
    """

    function: str
    help: str
    needs: str = ""


_ROWS = "lzsampler.reports.audit_rows:write_loops"

AUDIT: Mapping[str, Writer] = {
    ".html": Writer("lzsampler.reports.audit_html:write_html", "a page for the browser"),
    ".parquet": Writer(_ROWS, "a row for each loop", needs="pyarrow"),
    ".csv": Writer(_ROWS, "a row for each loop"),
    ".jsonl": Writer(_ROWS, "a row for each loop"),
    ".json": Writer("lzsampler.reports.audit_json:write_summary", "the summary"),
    ".sarif": Writer("lzsampler.reports.sarif:write_sarif", "results for code scanners"),
}
EVALUATION: Mapping[str, Writer] = {
    ".html": Writer("lzsampler.reports.eval_html:write_evaluation", "a page for the browser"),
    ".json": Writer("lzsampler.reports.eval_json:write_results", "all figures"),
}
COSTS: Mapping[str, Writer] = {
    ".html": Writer("lzsampler.reports.cost_html:write_costs", "a page for the browser"),
    ".json": Writer("lzsampler.reports.eval_json:write_results", "all figures"),
}
AUTOMATON: Mapping[str, Writer] = {
    ".svg": Writer("lzsampler.reports.automaton_svg:write_automaton", "a picture of the automaton")
}
FOUR: Mapping[str, Writer] = {".svg": Writer("lzsampler.reports.four_svg:write_picture", "a picture")}
ARROW = "lzsampler.reports.audit_rows:arrow_table"  # (records with findings) as an Arrow table
FRAME = "lzsampler.reports.audit_rows:data_frame"  # the same as a data frame
TABLE = "lzsampler.reports.eval_markdown:markdown_table"  # (results, terms=...) as a text
COSTS_TABLE = "lzsampler.reports.cost_terminal:costs_table"  # (costs, width) as a text


def described(writers: Mapping[str, Writer]) -> str:
    """Return the endings and what each of them stands for, for help texts: ".html (a page for the browser), ..."."""
    endings: dict[str, list[str]] = {}
    for ending, writer in writers.items():
        endings.setdefault(writer.help, []).append(ending)
    return ", ".join(f"{' '.join(several)} ({what})" for what, several in endings.items())


def check(path: str | Path, writers: Mapping[str, Writer]) -> Writer:
    """Return the writer for a path, so that a mistake shows before the work and not after it.

    ValueError if the ending of the path is not one of ``writers``, LzsError if no file can be written there,
    MissingExtra if a package that the writer needs is not installed.
    """
    path = Path(path)
    writer = writers.get(path.suffix.lower())
    if writer is None:
        endings = f"{'one of ' if len(writers) > 1 else ''}{', '.join(writers)}"
        raise ArgumentError(f"cannot write {path}: its name must end in {endings}")
    if path.is_dir():
        raise LzsError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise LzsError(f"cannot write {path}: there is no folder {path.parent}")
    place = path if path.exists() else path.parent
    if not os.access(place, os.W_OK):  # for want of permission, or because the file system is read-only
        raise LzsError(f"cannot write {path}: {place} is read-only")
    if writer.needs and find_spec(writer.needs) is None:
        raise missing(f"cannot write {path} without {writer.needs}", writer.needs)
    return writer


def save(path: str | Path, writers: Mapping[str, Writer], *content: Any) -> None:
    """Write a report by the ending of ``path``. Raises as `check`, and LzsError if it cannot be written."""
    function(check(path, writers).function)(path, *content)


def function(name: str) -> Any:
    """Return a function by its name, "module:function"."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
