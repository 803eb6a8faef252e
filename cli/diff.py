"""`lzs diff`: compares two audits of answers to the same prompts, record by record."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lzsampler._values import counted

from .audit import (
    COUNTS,
    READ,
    CountOptions,
    ReadOptions,
    WorkOptions,
    audited,
    check_counted,
    check_paths,
    check_tokens,
    refuse_nothing,
    too_many_bad,
)
from .console import console, general_options
from .fields import opt, takes
from .help import GroupedCommand, GroupedOption, refuse_given

if TYPE_CHECKING:
    from lzsampler.auditing.audit_files import Audit
    from lzsampler.auditing.diff import Comparison, Pair
    from lzsampler.auditing.summary import Summary

_OUTPUT = "Output"
_NAMED = 20  # largest number of records listed under each title
_EPILOG = """\b
Exit status: 0 no significant difference, or B is better; 1 B is worse, more
than 10 % of A or B could not be read, or fewer than half of A or B was
compared; 2 an error; 130 Ctrl-C."""


def _alpha(ctx: click.Context, _: click.Parameter, given: float) -> float:
    if not 0 <= given <= 1:
        raise click.UsageError(f"--alpha must be from 0 to 1, got {given:g}", ctx)
    return given


@dataclass(frozen=True, kw_only=True)
class DiffOptions:
    """The options of `lzs diff`."""

    read: ReadOptions
    count: CountOptions
    as_json: bool = opt(_OUTPUT, "--json", help="print one JSON object instead of text")
    alpha: float = opt(
        _OUTPUT, "--alpha", callback=_alpha, default=0.05, metavar="P",
        help="significance level: a difference counts if p is below P, 0 to 1",
    )  # fmt: skip
    exit_zero: bool = opt(_OUTPUT, "--exit-zero", help="exit with status 0 instead of 1")
    work: WorkOptions


@click.command(cls=GroupedCommand, epilog=_EPILOG)
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@takes(DiffOptions)
@general_options(quiet="print nothing; the exit status gives the result")
def diff(options: DiffOptions, a: str, b: str) -> None:
    """Say whether the answers in B loop more than the answers in A to the same prompts.

    A and B are each a file, folder or glob pattern of transcripts, or the --resume folder of a finished audit. lzs
    pairs records by id and, if there are several files, by file name. If rows have no id, lzs pairs them by line
    number. If two evaluations have one setting each, lzs pairs them by prompt and seed. A note tells you when lzs pairs
    records in one of these two ways. If no record is in both, lzs compares A and B as two groups. A permutation test
    over whole conversations (mid-p) decides whether B is worse. If each conversation has one record, this is McNemar's
    test.
    """
    from lzsampler.auditing.diff import compare

    check_paths((a, b))
    _check_folders(a, b)
    if "LZR012" in options.count.select:
        raise click.UsageError("lzs diff compares records, and LZR012 is about conversations: leave it out")
    check_tokens(options.count)
    check_counted("the verdict", "loop_rate", options.count)
    with _side(a, options) as left, _side(b, options) as right:
        _check_rules(left.summary, right.summary)
        made = compare(left.outcomes(), right.outcomes())
        unread = [f"{path}: {bad}" for path, side in ((a, left), (b, right)) if (bad := too_many_bad(side.summary))]
    in_a, in_b = _lengths(a), _lengths(b)
    for name in in_a:
        if name in in_b and in_a[name] != in_b[name]:
            console.note(
                f"{name} differs: {in_a[name]} in A and {in_b[name]} in B; longer texts have more room to loop"
            )
    if options.as_json:
        console.json(made.to_json(options.alpha))
    elif not console.quiet:
        console.print("\n".join(_comparison(made, a, b, options.alpha)))
    for said in unread:
        console.error(f"{said}: --exit-zero accepts that")
    if made.few:
        of = f"{made.records:,} of {made.records + made.only_a:,} records of A and {made.records + made.only_b:,} of B"
        console.error(f"only {of} were compared, fewer than half of a side: --exit-zero accepts that")
    fails = made.verdict(options.alpha) == "worse" or unread or made.few
    if fails and not options.exit_zero:
        raise click.exceptions.Exit(1)


@contextmanager
def _side(path: str, options: DiffOptions) -> Iterator["Audit"]:
    """Yield one side of the comparison: a finished audit, or a new one."""
    from lzsampler.auditing.audit_files import is_audit, load

    if is_audit(path):
        yield load(path)
        return
    with audited([path], options.read, options.count, options.work) as result:
        if not result.summary.total.records:
            refuse_nothing(result.summary)
        yield result


def _check_folders(a: str, b: str) -> None:
    """Raise a usage error for an option about reading or counting if both sides are finished audits."""
    from lzsampler.auditing.audit_files import is_audit

    if not (is_audit(a) and is_audit(b)):
        return
    params = click.get_current_context().command.params
    about = (param.name for param in params if isinstance(param, GroupedOption) and param.group in (READ, COUNTS))
    refuse_given(tuple(name for name in about if name), "on two finished audits: give it to lzs audit")


def _check_rules(a: "Summary", b: "Summary") -> None:
    from lzsampler import LzsError

    for name in a.rules:
        if a.rules[name] != b.rules.get(name):
            raise LzsError(
                f"A and B were audited with different settings: {name} is {json.dumps(a.rules[name])} in A and "
                f"{json.dumps(b.rules.get(name))} in B; audit both with the same settings"
            )


def _lengths(path: str) -> dict[str, object]:
    """Return the settings that limit the length of an evaluation's texts; empty for other paths."""
    from lzsampler import LzsError
    from lzsampler.evaluation.run_folder import RunFolder

    try:
        grid = RunFolder(path).manifest().get("grid")
    except LzsError:  # ``path`` has no run.json, so it is not the folder of an evaluation.
        return {}
    if not isinstance(grid, dict):
        return {}
    return {"max_tokens": grid.get("max_tokens"), "ignore_eos": grid.get("ignore_eos", False)}


def _comparison(made: "Comparison", a: str, b: str, alpha: float) -> Iterator[str]:
    from lzsampler.reports.text import percent, visible

    def side(name: str, path: str, looping: int, records: int, stuck: int) -> str:
        loop = f"{looping:,} of {counted(records, 'record loops', 'records loop')}"
        said = f"{name}  {visible(path, 60)}: {loop}, {percent(looping / records)}"
        if made.stuck_a or made.stuck_b:
            said += f"; {counted(stuck, 'is', 'are')} stuck (LZR011)"
        return said

    yield side("A", a, made.looping_a, made.records_a, made.stuck_a)
    yield side("B", b, made.looping_b, made.records_b, made.stuck_b)
    if not made.paired:
        yield (
            "No record of A has the id of a record of B, so A and B are compared as two groups. Pairs would tell more: "
            "write both sides with lzs generate --prompts FILE, which keeps ids, or with lzs eval and grids that have "
            "one setting each or share a setting"
        )
    elif made.only_a or made.only_b:
        yield f"not compared: {counted(made.only_a, 'record')} only in A, {made.only_b:,} only in B"
    if made.by_number:
        yield (
            f"Paired by line number, because the rows have no id: {made.by_number:,} of "
            f"{counted(made.records, 'pair')}. That is right only if both sides hold the "
            "answers to the same prompts in the same order"
        )
    for name, repeated in (("A", made.repeated_a), ("B", made.repeated_b)):
        if repeated:
            yield (
                f"{name} has {counted(repeated, 'record')} with the id of an earlier record: the test counts records "
                "with the same id as one conversation"
            )
    if made.by_order:
        yield (
            f"Paired by order, because several records of a file have the same id: {made.by_order:,} of "
            f"{counted(made.records, 'pair')}. That is right only if both sides hold these records in the same order; "
            "otherwise give each an id of its own"
        )
    if made.by_prompt:
        yield (
            f"Paired by prompt and seed, because the two evaluations have different settings: "
            f"{counted(made.by_prompt, 'pair')}"
        )
    low, high = made.interval
    verdict = made.verdict(alpha)
    if console.colored(sys.stdout):
        verdict = click.style(verdict, fg={"worse": "red", "better": "green"}.get(verdict), bold=True)
    yield (
        f"B - A: {100 * made.difference:+.3g} percentage points "
        f"(95 % interval {100 * low:+.3g} to {100 * high:+.3g}); "
        f"permutation test over {counted(made.conversations, 'conversation')}, p = {made.p:.2g}: {verdict}"
    )
    if not made.paired:
        return
    numbered = bool(made.repeated_a or made.repeated_b)
    for title, pairs in (("newly looping", made.newly), ("cured", made.cured), ("still looping", made.still)):
        yield f"\n{title}: {len(pairs):,}"
        yield from (f"  {_place(pair, numbered)}" for pair in pairs[:_NAMED])
        if len(pairs) > _NAMED:
            yield f"  ... and {len(pairs) - _NAMED:,} more (--json lists all)"


def _place(pair: "Pair", numbered: bool) -> str:
    from lzsampler.reports.text import visible

    number = f"  record {pair.record_a} in A, {pair.record_b} in B" if numbered else ""
    return f"{visible(pair.id, 60)}  {visible(pair.file_b, 60)}{number}"
