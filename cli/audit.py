"""`lzs audit`: finds repetition loops in saved model output."""

import glob
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import counted, noun
from lzsampler.reports.save import AUDIT, check, described, save

from .console import console, general_options
from .fields import opt, takes
from .help import GroupedCommand, ModelFile
from .limits import Limit, limits
from .progress import progress

if TYPE_CHECKING:
    from lzsampler.auditing.audit_files import Audit, Progress
    from lzsampler.auditing.clusters import Property
    from lzsampler.auditing.summary import Group, Summary

READ, COUNTS, _OUTPUT, _WORK = "What is read", "What counts as a loop", "Output", "Work"
_RATES = ("loop_rate", "stuck_rate", "literal_rate", "bad_rate", "turn_loop_rate")
_BAD = Limit("bad_rate=10%", None, "bad_rate", "=", 0.1)  # applies unless --fail-over limits bad_rate
_ENOUGH = 0.01  # If no record loops, `_table` names the number of records that would rule out this loop rate.
_WITHOUT_GROUP = {"bad_rate": "bad records", "turn_loop_rate": "loops over turns"}


def _listed(_: click.Context, __: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    """Split "a,b" into "a" and "b"."""
    return tuple(part.strip() for text in given for part in text.split(",") if part.strip())


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read files."""

    format: str | None = opt(
        READ, "--format", metavar="NAME", help="input format of all files, see docs/formats.md (default: detect each)"
    )
    field: str | None = opt(
        READ, "--field", metavar="PATH",
        help="path of the text in files of other formats: choices[*].text, messages[role=assistant].content",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CountOptions:
    """What counts as a loop. Most fields are named after arguments of `Rules`."""

    levels: tuple[str, ...] = opt(
        COUNTS, "--level", callback=_listed, metavar="LIST",
        help="units that are searched for repeats, of char,word,line,token (default: all)",
    )  # fmt: skip
    copies: int | None = opt(COUNTS, "--copies", help="copies that make a loop, however short (default: 20)")
    length: int | None = opt(
        COUNTS, "--length", help="characters that --length-copies copies must have together to be a loop (default: 100)"
    )
    length_copies: int | None = opt(
        COUNTS, "--length-copies", help="copies that make a loop of --length characters (default: 3)"
    )
    no_near: bool = opt(
        COUNTS, "--no-near", help="leave out near loops, whose copies differ only in digits, case or white space"
    )
    near_copies: int | None = opt(COUNTS, "--near-copies", help="copies that make a near loop (default: 8)")
    select: tuple[str, ...] = opt(COUNTS, "--select", callback=_listed, metavar="CODES", help="apply only these rules")
    ignore: tuple[str, ...] = opt(
        COUNTS, "--ignore", callback=_listed, metavar="CODES", help="apply all rules but these"
    )
    tokenizer: Path | None = opt(
        COUNTS, "--tokenizer", type=ModelFile(), metavar="GGUF",
        help="count tokens with this model's tokenizer; needed for --level token",
    )  # fmt: skip

    @property
    def rules(self) -> dict[str, Any]:
        """The arguments of `Rules` that were given."""
        others = ("tokenizer", "no_near")
        given = {name: value for name, value in vars(self).items() if name not in others and value not in (None, ())}
        return {**given, "near": False} if self.no_near else given


@dataclass(frozen=True, kw_only=True)
class WorkOptions:
    """How to do the work."""

    workers: int | None = opt(_WORK, "--workers", low=1, help="number of processes (default: one per CPU core)")


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of `lzs audit`."""

    read: ReadOptions
    by: tuple[str, ...] = opt(
        READ, "--by", callback=_listed, metavar="LIST", help="group the results by model,temperature,file,..."
    )
    count: CountOptions
    turns: bool = opt(
        COUNTS, "--turns", help="also find conversations in which a model repeats whole answers or tool calls"
    )
    lz_bits: bool = opt(
        COUNTS, "--lz-bits", help="also measure bits per token under the paper's LZ compressor; needs --tokenizer"
    )
    outputs: tuple[Path, ...] = opt(
        _OUTPUT, "-o", "--output", metavar="FILE",
        help=f"write a report, whose type follows from the file's ending: {described(AUDIT)}; repeatable",
    )  # fmt: skip
    as_json: bool = opt(_OUTPUT, "--json", help="print the summary as JSON")
    fail_over: tuple[Limit, ...] = opt(
        _OUTPUT, "--fail-over", callback=limits(_RATES), metavar="LIMIT",
        help='exit with status 1 if a rate exceeds its limit, such as loop_rate=1% or "stuck_rate > 0.02"; with --by '
        'also "GROUP.loop_rate > 0.01"; repeatable (default: bad_rate=10%, the rate of records that cannot be read)',
    )  # fmt: skip
    exit_zero: bool = opt(_OUTPUT, "--exit-zero", help="exit with status 0 even if a limit is exceeded")
    work: WorkOptions
    resume: Path | None = opt(
        _WORK, "--resume", metavar="FOLDER", help="save finished work in FOLDER; the same command continues the audit"
    )


class _AuditCommand(GroupedCommand):
    """A command whose help ends with the rules, which are loaded only for the help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the definition of a loop, and the rules."""
        from lzsampler.auditing.records import RULES

        self.epilog = _EPILOG.format(rules="\n".join(f"  {code} {name}" for code, name in RULES.items()))
        super().format_epilog(ctx, formatter)


_EPILOG = """\b
The loop rate is the share of records that loop. A record loops if a unit
repeats 20 times in a row, or 3 times over 100 characters or more. A single
character, such as "!" or a line break, must repeat 100 times.
The literal rate (--json) is only for comparison: any unit that repeats 20
times counts, as in arXiv 2504.20131, footnote 7, taken literally. Most source
code has such a repeat.
\b
Rules:
{rules}
\b
Exit status: 0 success; 1 a limit of --fail-over is exceeded; 2 an error;
130 Ctrl-C. To compare two audits record by record: lzs diff A B."""


@click.command(cls=_AuditCommand)
@click.argument("paths", nargs=-1, metavar="PATH...", type=click.Path())
@takes(AuditOptions)
@general_options(quiet="print no table and no progress")
def audit(options: AuditOptions, paths: tuple[str, ...]) -> None:
    """Find loops in saved model output. PATH is a file, folder or glob pattern of transcripts; - is stdin."""
    check_paths(paths)
    _check_outputs(paths, options)
    if not options.turns and any(limit.rate == "turn_loop_rate" for limit in options.fail_over):
        raise click.UsageError("turn_loop_rate is measured only with --turns: add it")
    _check_codes(options)
    for limit in options.fail_over:
        check_counted(f"--fail-over {limit.text}", limit.rate, options.count)
    more: dict[str, Any] = {"turns": True} if options.turns else {}
    if options.lz_bits:
        from lzsampler.auditing.gguf_tokenizer import vocabulary_of

        if options.count.tokenizer is None:
            raise click.UsageError("--lz-bits needs the tokens: give the model that wrote the texts with --tokenizer")
        more["lz_vocab"] = vocabulary_of(options.count.tokenizer).n_vocab
    kept = "nothing is saved; --resume FOLDER keeps finished work"
    if options.resume is not None:
        kept = f"finished work is saved in {options.resume}; the same command continues it"
    with audited(
        paths,
        options.read,
        options.count,
        options.work,
        kept=kept,
        by=options.by,
        resume=options.resume,
        without=options.outputs,
        **more,
    ) as result:
        summary = result.summary
        for path in options.outputs:
            save(result, path)
        if options.as_json:
            console.json(summary.to_json())
        elif not console.quiet:
            console.print(_table(summary))
    _warn(summary, turns=options.turns)
    exceeded = [limit for limit in options.fail_over if _exceeds(summary, limit)]
    bad = too_many_bad(summary)
    if bad is not None and all(limit.rate != "bad_rate" for limit in options.fail_over):
        console.error(f"{bad}: --fail-over bad_rate=1 accepts that")
        exceeded.append(_BAD)
    if exceeded and not options.exit_zero:
        raise click.exceptions.Exit(1)


# -- the audit --


@contextmanager
def audited(
    paths: Sequence[str],
    read: ReadOptions,
    count: CountOptions,
    work: WorkOptions,
    *,
    kept: str = "nothing is saved",
    **more: Any,
) -> Iterator["Audit"]:
    """Yield the audit of some paths.

    ``kept``: what the message after Ctrl-C says about saved work. ``more``: further arguments of `audit_files`.
    """
    from lzsampler.auditing.audit_files import audit_files

    start = monotonic()
    check_tokens(count)
    try:
        with progress("MB") as bar:
            bar.say("looking at the files")

            def show(now: "Progress") -> None:
                seconds = max(now.seconds, 1e-3)
                speed = (now.bytes - now.resumed) / 1e6 / seconds
                bar.update(
                    now.bytes,
                    now.total_bytes,
                    f"of {now.total_bytes / 1e6:,.0f} MB, {speed:,.0f} MB/s, {now.records / seconds:,.0f} records/s",
                )

            result = audit_files(
                list(paths),
                format=read.format,
                field=read.field,
                workers=work.workers,
                tokenizer=count.tokenizer,
                progress=show,
                **more,
                **count.rules,
            )
    except KeyboardInterrupt:
        console.error(f"interrupted: {kept}")
        raise
    records = counted(result.summary.total.records, "record")
    console.detail(f"audited {records} in {monotonic() - start:.2f} s; rules: {count.rules or 'default'}")
    with result:
        yield result


# -- checks before the audit --


def check_paths(paths: Sequence[str]) -> None:
    """Raise a usage error for a path that does not exist, or if there is no path."""
    if not paths:
        raise click.UsageError("nothing to audit: give files or folders, or - for stdin: lzs audit transcripts.jsonl")
    for path in paths:
        if path != "-" and not os.path.lexists(path) and not glob.has_magic(path):
            raise click.UsageError(f"there is no file or folder {path}")


def _check_codes(options: AuditOptions) -> None:
    """Raise a usage error for rule LZR012 without --turns, or --turns without rule LZR012."""
    if options.turns and "LZR012" in options.count.ignore:
        raise click.UsageError("--ignore LZR012 turns off the only rule of --turns: leave out one of them")
    if not options.turns and "LZR012" in options.count.select:
        raise click.UsageError("LZR012 is found only with --turns: add --turns")


def check_tokens(count: CountOptions) -> None:
    """Raise a usage error if tokens are needed and no tokenizer is given."""
    for what, given in (("--level token", count.levels), ("--select LZR006", count.select)):
        if what.split()[1] in given and count.tokenizer is None:
            raise click.UsageError(f"{what} needs the tokens: give the model that wrote the texts with --tokenizer")


def check_counted(what: str, rate: str, count: CountOptions) -> None:
    """Raise a usage error if none of the rules that ``rate`` counts is applied: the rate would always be 0."""
    from lzsampler.auditing.records import LOOPING
    from lzsampler.auditing.rules import Rules

    codes = {"loop_rate": LOOPING, "stuck_rate": ("LZR011",)}.get(rate)
    if codes is not None and Rules(**count.rules).reported.isdisjoint(codes):
        said = " to ".join(dict.fromkeys((codes[0], codes[-1])))
        raise click.UsageError(f"{what} counts {said}, but --select, --ignore, --level or --no-near turn them off")


def _check_outputs(paths: Sequence[str], options: AuditOptions) -> None:
    from lzsampler.auditing.reading.shard import find

    for output in options.outputs:
        check(output, AUDIT)
    there = {os.path.realpath(output): output for output in options.outputs if output.is_file()}
    if not there:
        return
    files = [path for path in paths if path != "-"]
    shards, _ = find(files, format=options.read.format, field=options.read.field)
    for path in (*files, *(shard.file for shard in shards)):
        if overwritten := there.get(os.path.realpath(path)):
            raise click.UsageError(f"-o {overwritten} would overwrite what is audited: name another file")


# -- messages after the audit --


def _table(summary: "Summary") -> str:
    from lzsampler.reports.audit_terminal import terminal_table
    from lzsampler.util.stats import records_needed

    table = terminal_table(summary, console.columns, color=console.colored(sys.stdout))
    n = summary.total.records
    high = summary.total.interval("looping").high
    if n and not summary.total.looping and high > _ENOUGH:
        needed = records_needed(0.0, _ENOUGH)
        table += (
            f"\n\nNo loop in {counted(n, 'record')}, but the true rate may still be up to {100 * high:.2g} %; "
            f"{needed} {_kind(summary.total, needed or 0)} without a loop would show that it is below 1 %."
        )
    return table


def _warn(summary: "Summary", *, turns: bool) -> None:
    if not summary.total.records and not summary.turn_conversations:
        refuse_nothing(summary)
    if turns and not summary.turn_conversations:
        console.error("--turns: no conversation with turns of a model was read")
    for key in summary.absent:
        console.error(f"--by {key}: no record has {key!r}")


def too_many_bad(summary: "Summary") -> str | None:
    """Return a message if more than 10 % of the records could not be read; else None."""
    if not _BAD.is_exceeded(summary.bad_rate):
        return None
    read = summary.total.records + summary.bad_records
    return f"{summary.bad_records:,} of {counted(read, 'record')} could not be read ({100 * summary.bad_rate:.3g} %)"


def refuse_nothing(summary: "Summary") -> None:
    """Raise an LzsError: no record was audited. If there are bad records, it has the reason of the first."""
    from lzsampler import LzsError

    why = "no text written by a model was found"
    if summary.bad:
        why = f"{summary.bad[0].file}: {summary.bad[0].reason}"
        if summary.bad_records > 1:
            why += f" (and {summary.bad_records - 1:,} more that could not be read)"
    raise LzsError(f"no record was audited: {why}")


def _exceeds(summary: "Summary", limit: Limit) -> bool:
    """Return whether the total, or any group that the limit names, exceeds the limit."""
    if limit.group is None:
        return _group_exceeds(summary, summary.total, limit)
    groups = _groups(summary, limit)
    if limit.rate in _WITHOUT_GROUP:
        what = _WITHOUT_GROUP[limit.rate]
        raise click.UsageError(f"--fail-over {limit.text}: {what} belong to no group; leave out {limit.group}.")
    return max([_group_exceeds(summary, group, limit) for group in groups])  # a list, so that every group is reported


def _group_exceeds(summary: "Summary", group: "Group", limit: Limit) -> bool:
    """Print whether a limit is exceeded, and whether more records are needed to be sure.

    Return whether it is exceeded.
    """
    from lzsampler.util.stats import records_needed

    properties: dict[str, Property] = {"loop_rate": "looping", "stuck_rate": "stuck", "literal_rate": "literal"}
    of = properties.get(limit.rate)
    if limit.rate == "turn_loop_rate" and not summary.turn_conversations:
        raise click.UsageError(f"--fail-over {limit.text}: no conversation with turns of a model was read")
    rate = getattr(summary, limit.rate) if of is None else getattr(group, of) / group.records
    name = limit.rate if limit.group is None else f"{limit.group}.{limit.rate}"
    exceeded = limit.is_exceeded(rate)
    if exceeded:
        console.error(limit.said(rate, name))
    if of is not None and not console.quiet:
        low, high = group.interval(of)
        needed = records_needed(rate, limit.number)
        if low <= limit.number <= high and needed is not None:
            there = (
                group.conversations
            )  # For few conversations, the formula is too low: ``needed`` may be below ``there``.
            more = f"{needed:,} {_kind(group, needed)}" if needed > there else f"more {_kind(group, there + 1)}"
            console.note(
                f"the 95 % interval of {name}, {low:.3g} to {high:.3g}, includes the limit {limit.number:g}; "
                f"{more} would be enough to decide"
            )
    return exceeded


def _kind(group: "Group", n: int) -> str:
    """Return "records", or "independent records" if some conversation has several records."""
    records = noun(n, "record")
    return records if group.conversations == group.records else f"independent {records}"


def _groups(summary: "Summary", limit: Limit) -> list["Group"]:
    """Return the groups that a limit names. The name of a group joins its values of --by with " / ", as in the table.

    Two groups may share a name, because an absent value and the value "-" are both shown as "-".
    """
    names: dict[str, list[Group]] = {}
    for values, group in summary.groups.items():
        names.setdefault(" / ".join(value or "-" for value in values), []).append(group)
    if not summary.by:
        raise click.UsageError(f"--fail-over {limit.text}: there are no groups; add --by to make them")
    if limit.group not in names:
        raise click.UsageError(
            f"--fail-over {limit.text}: there is no group {limit.group!r}; there are {', '.join(sorted(names)[:10])}"
        )
    return names[limit.group]
