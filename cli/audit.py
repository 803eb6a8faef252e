"""`lzs audit`: which saved transcripts loop, where and how badly; `lzs audit diff`: whether others loop more."""

import glob
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .help import GroupedCommand, option, options
from .options import count

if TYPE_CHECKING:
    from lzsampler.auditing.diff import Comparison, Pair
    from lzsampler.auditing.run import Audit, Progress
    from lzsampler.auditing.summary import Summary

_READ, _COUNTS, _OUTPUT, _WORK = "What is read", "What counts", "Output", "Work"
_RATES = ("loop_rate", "literal_rate", "bad_rate")
_NAMED = 20  # records of each kind that a comparison lists
_HINT = 0.01  # the rate that a clean result is held against
# Setting of the audit -> the flag that sets it.
_FLAGS = {
    "levels": "--level",
    "copies": "--copies",
    "length": "--length",
    "length_copies": "--length-copies",
    "near": "--near",
    "near_copies": "--near-copies",
    "select": "--select",
    "ignore": "--ignore",
}


def _listed(_: click.Context, __: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    """Take "a,b" for "a" and "b"."""
    return tuple(part.strip() for text in given for part in text.split(",") if part.strip())


def _limits(_: click.Context, __: click.Parameter, given: Sequence[str]) -> dict[str, float]:
    limits = {}
    for text in given:
        name, _sign, value = text.partition("=")
        try:
            number = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            number = -1.0
        if name not in _RATES or not 0 <= number <= 1:
            raise click.UsageError(
                f"--fail-over {text!r} is no limit: write it like loop_rate=0.01 or loop_rate=1% (one of "
                f"{', '.join(_RATES)})"
            )
        limits[name] = number
    return limits


_read_options = options(
    option(_READ, "--format", metavar="NAME", help="of all files; default: told from each (docs/formats.md)"),
    option(_READ, "--field", metavar="PATH", help="of the text in any other JSON or Parquet: choices[*].text"),
)
_count_options = options(
    option(
        _COUNTS,
        "--level",
        "levels",
        multiple=True,
        callback=_listed,
        metavar="LIST",
        help="of char,word,line,token; default: all",
    ),
    option(_COUNTS, "--copies", type=int, metavar="N", help="that make a loop of any length; default: 20"),
    option(_COUNTS, "--length", type=int, metavar="N", help="characters that make a loop ...; default: 100"),
    option(_COUNTS, "--length-copies", type=int, metavar="N", help="... of this many copies; default: 3"),
    option(_COUNTS, "--near/--no-near", default=None, help="loops but for digits, case and white space, too"),
    option(_COUNTS, "--near-copies", type=int, metavar="N", help="copies over --length of these; default: 8"),
    option(_COUNTS, "--select", multiple=True, callback=_listed, metavar="CODES", help="look for these rules only"),
    option(_COUNTS, "--ignore", multiple=True, callback=_listed, metavar="CODES", help="look for all but these"),
    option(
        _COUNTS,
        "--tokenizer",
        type=click.Path(path_type=Path),
        metavar="GGUF",
        help="count tokens, for --level token too; a vocabulary is enough",
    ),
)
_work_options = options(
    option(_WORK, "--workers", **count(1), help="processes; default: one a core"),
)


class _AuditCommand(GroupedCommand):
    """`audit`, or `audit diff` where that is the first argument."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **settings: Any) -> click.Context:
        if args[:1] == ["diff"]:
            return diff.make_context(f"{info_name} diff", args[1:], *rest, **settings)
        return super().make_context(info_name, args, *rest, **settings)


_EPILOG = """\b
Significant loops (the loop rate): a unit with two distinct characters that are
not white space, 20 times in a row, or 3 times over 100 characters or more.
Literal loops: any unit, white space too, 20 times in a row (arXiv 2504.20131,
footnote 7, read literally; most source code has some). Both are always shown.
\b
{rules}
\b
Exit status: 0; 1 where a rate is over its --fail-over, or on a failure; 2 usage.
`lzs audit diff A B` compares two audits record by record."""


def _epilog() -> str:
    from lzsampler.auditing.records import RULES

    return _EPILOG.format(rules="\n".join(f"{code} {name}" for code, name in RULES.items()))


@click.command(cls=_AuditCommand, short_help="Say which transcripts loop, where and how badly.", epilog=_epilog())
@click.argument("paths", nargs=-1, metavar="PATH...")
@_read_options
@option(_READ, "--by", multiple=True, callback=_listed, metavar="LIST", help="group by model,temperature,file,...")
@_count_options
@options(
    option(
        _OUTPUT,
        "-o",
        "--output",
        "outputs",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=".html report; .parquet .csv .jsonl: a row a loop; .json summary; .sarif; may be repeated",
    ),
    option(_OUTPUT, "--json", "as_json", is_flag=True, help="print the summary as JSON"),
    option(_OUTPUT, "-q", "--quiet", is_flag=True, help="print no table and no progress"),
    option(
        _OUTPUT,
        "--fail-over",
        "limits",
        multiple=True,
        callback=_limits,
        metavar="RATE=X",
        help="exit 1 where loop_rate, literal_rate or bad_rate is over X, as measured, whatever its interval; "
        "may be repeated",
    ),
    option(_OUTPUT, "--exit-zero", is_flag=True, help="exit 0 even so"),
)
@_work_options
@option(_WORK, "--resume", type=click.Path(path_type=Path), metavar="FOLDER", help="keep what is done there; go on")
def audit(paths: tuple[str, ...], **flags: Any) -> None:
    """Find every loop in what models wrote: files, folders and patterns of transcripts; - is stdin.

    `lzs audit diff A B` compares two of them.
    """
    _check_paths(paths)
    _check_outputs(flags["outputs"], paths)
    with _audited(paths, flags, by=flags["by"], resume=flags["resume"], without=flags["outputs"]) as result:
        summary = result.summary
        for path in flags["outputs"]:
            result.save(path)
        if flags["as_json"]:
            click.echo(json.dumps(summary.to_json(), ensure_ascii=False))
        elif not flags["quiet"]:
            click.echo(_table(summary))
    _warn(summary, flags["by"])
    exceeded = _exceeded(summary, flags["limits"], hint=not flags["quiet"])
    if exceeded and not flags["exit_zero"]:
        raise click.exceptions.Exit(1)


@click.command(cls=GroupedCommand, epilog="Exit status: 0; 1 where B is significantly worse, or on a failure; 2 usage.")
@click.argument("a")
@click.argument("b")
@_read_options
@_count_options
@options(
    option(_OUTPUT, "--json", "as_json", is_flag=True, help="print one JSON object instead"),
    option(_OUTPUT, "-q", "--quiet", is_flag=True, help="print nothing"),
    option(_OUTPUT, "--alpha", type=click.FloatRange(0, 1), default=0.05, metavar="P", help="significant is p below"),
    option(_OUTPUT, "--exit-zero", is_flag=True, help="exit 0 even where B is worse"),
)
@_work_options
def diff(a: str, b: str, **flags: Any) -> None:
    """Say whether the answers in B loop more than those in A to the same prompts.

    A and B: a file, a folder or a pattern of transcripts, or the --resume folder of an audit that is done. Records are
    paired by id, in files of the same name where there are several. Worse is a matter of McNemar's exact test.
    """
    from lzsampler.auditing.diff import compare

    _check_paths((a, b))
    with _side(a, flags) as left, _side(b, flags) as right:
        _check_rules(left.summary, right.summary)
        made = compare(left.outcomes(), right.outcomes())
    if flags["as_json"]:
        click.echo(json.dumps(made.to_json(flags["alpha"]), ensure_ascii=False))
    elif not flags["quiet"]:
        click.echo("\n".join(_comparison(made, a, b, flags["alpha"])))
    if made.verdict(flags["alpha"]) == "worse" and not flags["exit_zero"]:
        raise click.exceptions.Exit(1)


# -- the audit --


@contextmanager
def _audited(paths: Sequence[str], flags: dict[str, Any], **more: Any) -> Iterator["Audit"]:
    from lzsampler.auditing.run import audit_files

    rules = {name: flags[name] for name in _FLAGS if flags[name] not in (None, ())}
    read = {name: flags[name] for name in ("format", "field", "workers", "tokenizer")}
    line = _ProgressLine(shown=not flags["quiet"] and sys.stderr.isatty())
    try:
        try:
            result = audit_files(list(paths), **read, **more, **rules, progress=line.show)
        finally:
            line.clear()
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        raise click.UsageError(f"{_FLAGS.get(name, name)} {rest}") from error
    except KeyboardInterrupt:
        if more.get("resume") is not None:
            click.echo("lzs: interrupted: the same command goes on from here", err=True)
        raise
    with result:
        yield result


@contextmanager
def _side(path: str, flags: dict[str, Any]) -> Iterator["Audit"]:
    """Give what a comparison is about: an audit that is done, or one that is made now."""
    from lzsampler.auditing.run import is_audit, load

    if is_audit(path):
        yield load(path)
        return
    with _audited([path], flags) as result:
        if not result.summary.total.records:
            _nothing(result.summary)
        yield result


class _ProgressLine:
    """One line on a terminal that is written over again and again."""

    def __init__(self, *, shown: bool) -> None:
        self.shown = shown
        self._drawn = False

    def show(self, progress: "Progress") -> None:
        if not self.shown:
            return
        seconds = max(progress.seconds, 1e-3)
        speed = (progress.bytes - progress.resumed) / 1e6 / seconds
        share = 100 * progress.bytes / max(progress.total_bytes, 1)
        click.echo(
            f"\r\x1b[K{share:3.0f} % of {progress.total_bytes / 1e6:,.0f} MB, {speed:,.0f} MB/s, "
            f"{progress.records / seconds:,.0f} records/s",
            err=True,
            nl=False,
        )
        self._drawn = True

    def clear(self) -> None:
        if self._drawn:
            click.echo("\r\x1b[K", err=True, nl=False)


# -- what is checked before --


def _check_paths(paths: Sequence[str]) -> None:
    if not paths:
        raise click.UsageError("nothing to audit: lzs audit transcripts.jsonl, or a folder, or - for stdin")
    for path in paths:
        if path != "-" and not os.path.lexists(path) and not glob.has_magic(path):
            raise click.UsageError(f"there is no file or folder {path}")


def _check_outputs(outputs: Sequence[Path], paths: Sequence[str]) -> None:
    from lzsampler.auditing.run import check_output

    for output in outputs:
        check_output(output)
        for path in paths:
            if os.path.isfile(path) and output.exists() and output.samefile(path):
                raise click.UsageError(f"-o {output} would write over what is audited: name another file")


def _check_rules(a: "Summary", b: "Summary") -> None:
    from lzsampler import LzsError

    for name in a.rules:
        if a.rules[name] != b.rules.get(name):
            raise LzsError(
                f"A and B were not audited alike: {name} is {json.dumps(a.rules[name])} and "
                f"{json.dumps(b.rules.get(name))}"
            )


# -- what is said after --


def _table(summary: "Summary") -> str:
    from lzsampler.reports import terminal_table
    from lzsampler.reports.audit_terminal import colored
    from lzsampler.util.stats import records_needed, wilson

    table = terminal_table(summary, shutil.get_terminal_size((110, 0)).columns, color=colored(sys.stdout))
    n = summary.total.records
    high = wilson(summary.total.looping, n).high
    if n and not summary.total.looping and high > _HINT:
        needed = records_needed(0.0, _HINT)
        table += f"\n\nNo loop in {n:,} leaves room for {100 * high:.2g} %: need n >= {needed} to say less than 1 %."
    return table


def _warn(summary: "Summary", by: Sequence[str]) -> None:
    if not summary.total.records:
        _nothing(summary)
    for i, key in enumerate(by):
        if all(not values[i] for values in summary.groups):
            click.echo(f"lzs: no record has {key!r}, which --by asks for", err=True)


def _nothing(summary: "Summary") -> None:
    from lzsampler import LzsError

    why = "no text of a model was found"
    if summary.bad:
        why = f"{summary.bad[0].file}: {summary.bad[0].reason}"
    raise LzsError(f"no record was audited: {why}")


def _exceeded(summary: "Summary", limits: dict[str, float], *, hint: bool) -> bool:
    """Say which rates are over their limits, and where a small number of records may be why."""
    from lzsampler.util.stats import records_needed, wilson

    counts = {"loop_rate": summary.total.looping, "literal_rate": summary.total.literal}
    n = summary.total.records
    exceeded = False
    for name, limit in limits.items():
        rate = getattr(summary, name)
        if rate > limit:
            exceeded = True
            click.echo(f"lzs: {name} {rate:.4g} is over {limit:g}", err=True)
        if not hint or name not in counts:
            continue
        low, high = wilson(counts[name], n)
        needed = records_needed(rate, limit)
        if low <= limit <= high and needed is not None:
            between = f"{low:.3g} to {high:.3g} (95 % interval)"
            click.echo(f"lzs: {name} is {between}: need n >= {needed:,} to tell it from {limit:g}", err=True)
    return exceeded


def _comparison(made: "Comparison", a: str, b: str, alpha: float) -> Iterator[str]:
    from lzsampler.reports.text import percent, visible

    def side(name: str, path: str, looping: int) -> str:
        rate = percent(looping / made.records)
        return f"{name}  {visible(path, 60)}: {looping:,} of {made.records:,} records loop, {rate}"

    yield side("A", a, len(made.cured) + len(made.still))
    yield side("B", b, len(made.newly) + len(made.still))
    if made.only_a or made.only_b:
        yield f"left out: {made.only_a:,} records only in A, {made.only_b:,} only in B"
    low, high = made.interval
    yield (
        f"B - A: {100 * made.difference:+.3g} % (95 % interval {100 * low:+.3g} to {100 * high:+.3g}, bootstrap); "
        f"McNemar exact p = {made.p:.2g}: {made.verdict(alpha)}"
    )
    for title, pairs in (("newly looping", made.newly), ("cured", made.cured), ("still looping", made.still)):
        yield f"\n{title}: {len(pairs):,}"
        yield from (f"  {_place(pair, visible)}" for pair in pairs[:_NAMED])
        if len(pairs) > _NAMED:
            yield f"  ... and {len(pairs) - _NAMED:,} more (--json has all)"


def _place(pair: "Pair", visible: Callable[[str, int], str]) -> str:
    return f"{visible(pair.id, 60)}  {visible(pair.file_b, 60)}"
