"""`save` writes a report of results to a file, whose ending chooses the report. `table` returns a text for a terminal.

To add a report, write its module, and add a line to the dict for its type of result, such as `AUDIT`. `save`, `check`
and the help texts read these dicts. A module is loaded when its report is written.
"""

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from .._values import INT32_MAX, integer, shown
from ..errors import ArgumentError, ArgumentTypeError, LzsError, missing
from ..util.json_text import write_json


class Writer(NamedTuple):
    """A report. ``write``: a function of (path, result). ``help``: its description. ``needs``: a package it needs."""

    write: Callable[[Path, Any], None]
    help: str
    needs: str = ""


def _audit_html(path: Path, audit: Any) -> None:
    from .audit_html import write_html

    write_html(path, audit.summary, audit)


def _loop_rows(path: Path, audit: Any) -> None:
    from ..auditing.loop_rows import write_loops

    write_loops(path, audit)


def _audit_json(path: Path, audit: Any) -> None:
    write_json(path, audit.summary.to_json())


def _sarif(path: Path, audit: Any) -> None:
    from .sarif import write_sarif

    write_sarif(path, audit.summary, audit)


def _evaluation_html(path: Path, results: Any) -> None:
    from .eval_html import write_evaluation

    write_evaluation(path, results)


def _costs_html(path: Path, costs: Any) -> None:
    from .cost_html import write_costs

    write_costs(path, costs)


def _figures(path: Path, result: Any) -> None:
    write_json(path, result.to_json())


def _automaton(path: Path, automaton: Any) -> None:
    from .automaton_svg import write_automaton

    write_automaton(path, automaton)


def _four(path: Path, four: Any) -> None:
    from .four_svg import write_picture

    write_picture(path, four)


AUDIT: Mapping[str, Writer] = {
    ".html": Writer(_audit_html, "a page for the browser"),
    ".parquet": Writer(_loop_rows, "a row for each loop", needs="pyarrow"),
    ".csv": Writer(_loop_rows, "a row for each loop"),
    ".jsonl": Writer(_loop_rows, "a row for each loop"),
    ".json": Writer(_audit_json, "the summary"),
    ".sarif": Writer(_sarif, "results for code scanners"),
}
EVALUATION: Mapping[str, Writer] = {
    ".html": Writer(_evaluation_html, "a page for the browser"),
    ".json": Writer(_figures, "all figures"),
}
COSTS: Mapping[str, Writer] = {
    ".html": Writer(_costs_html, "a page for the browser"),
    ".json": Writer(_figures, "all figures"),
}
AUTOMATON: Mapping[str, Writer] = {".svg": Writer(_automaton, "a picture of the automaton")}
FOUR: Mapping[str, Writer] = {".svg": Writer(_four, "a picture")}


def described(writers: Mapping[str, Writer]) -> str:
    """Return the endings of files with their reports, for help texts: ".html (a page for the browser), ..."."""
    endings: dict[str, list[str]] = {}
    for ending, writer in writers.items():
        endings.setdefault(writer.help, []).append(ending)
    return ", ".join(f"{' '.join(several)} ({what})" for what, several in endings.items())


def check(path: str | Path, writers: Mapping[str, Writer]) -> Writer:
    """Return the writer for a path. Call this before the work, so that a mistake in the path is an early error.

    ValueError if the ending of the path is not one of ``writers``. LzsError if no file can be written at the path.
    MissingExtra if a package that the writer needs is not installed.
    """
    if not isinstance(path, str | Path):
        raise ArgumentTypeError(f"path must be the name of a file, got {shown(path)}")
    path = Path(path)
    writer = writers.get(path.suffix.lower())
    if writer is None:
        endings = f"{'one of ' if len(writers) > 1 else ''}{', '.join(writers)}"
        raise ArgumentError(f"cannot write {path}: its name must end in {endings}")
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass  # the checks below find the reason
    except (OSError, ValueError) as error:  # the name is too long, or has an invalid character
        raise LzsError(f"cannot write {shown(str(path))}: {getattr(error, 'strerror', None) or error}") from None
    if path.is_dir():
        raise LzsError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise LzsError(f"cannot write {path}: there is no folder {path.parent}")
    place = path if path.exists() else path.parent
    if not os.access(place, os.W_OK):  # permission is missing, or the file system is read-only
        raise LzsError(f"cannot write {path}: {place} is read-only")
    if writer.needs and find_spec(writer.needs) is None:
        raise missing(f"cannot write {path} without {writer.needs}", writer.needs)
    return writer


def write(path: str | Path, writers: Mapping[str, Writer], result: object) -> None:
    """Write the report that the ending of ``path`` chooses. Raises like `check`; LzsError if the file is unwritable."""
    check(path, writers).write(Path(path), result)


def save(result: object, path: str | Path) -> None:
    """Write a report of an `Audit`, of `Results` or of `Costs`, chosen by the ending of ``path``.

    For an audit (docs/report.md) .html is a page for the browser, and .parquet, .csv and .jsonl have a row for each
    loop. .json is the summary, and .sarif is for code scanners. For an evaluation and for costs .html is a page, and
    .json has all figures (docs/evaluate.md, docs/cost.md). TypeError for another result, ValueError for another ending.
    LzsError if the file cannot be written; an existing file then stays unchanged.
    """
    from ..auditing.audit_files import Audit
    from ..evaluation.costs import Costs
    from ..evaluation.results import Results

    for kind, writers in ((Audit, AUDIT), (Results, EVALUATION), (Costs, COSTS)):
        if isinstance(result, kind):
            write(path, writers, result)
            return
    raise ArgumentTypeError(f"result must be an Audit, Results or Costs, got {result!r:.50}")


def table(result: object, width: int = 110) -> str:
    """Return the table that `lzs audit`, `lzs eval` or `lzs cost` prints for a result, without colours.

    ``result``: an `Audit`, `Results` or `Costs`. ``width``: maximum number of columns; the Markdown table of an
    evaluation ignores it. TypeError for another result.
    """
    from ..auditing.audit_files import Audit
    from ..evaluation.costs import Costs
    from ..evaluation.results import Results

    width = integer("width", width, 1, INT32_MAX)
    if isinstance(result, Audit):
        from .audit_terminal import terminal_table

        return terminal_table(result.summary, width)
    if isinstance(result, Results):
        from .eval_markdown import markdown_table

        return markdown_table(result)
    if isinstance(result, Costs):
        from .cost_terminal import costs_table

        return costs_table(result, width)
    raise ArgumentTypeError(f"result must be an Audit, Results or Costs, got {result!r:.50}")
