"""`lzs eval`: loop rate and accuracy of a model over a grid of settings."""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .help import GroupedCommand, option, options
from .options import count

if TYPE_CHECKING:
    from lzsampler import Results

_WHAT, _HOW = "What to run", "How to run it"
_FIGURES = ("loop_rate", "accuracy")
_CONDITION = re.compile(r"\s*([\w.=-]+)\.(loop_rate|accuracy)\s*(<=|>=|<|>)\s*([0-9.eE+-]+)\s*")

_options = options(
    option(_WHAT, "-m", "--model", type=click.Path(path_type=Path), metavar="FILE", help="GGUF; default: the embedded"),
    option(_WHAT, "--tasks", type=click.Path(path_type=Path), metavar="FILE", help="JSON Lines with answers"),
    option(_WHAT, "--prompts", type=click.Path(path_type=Path), metavar="FILE", help="JSON Lines without"),
    option(_WHAT, "--grid", default="quick", metavar="GRID", help="quick, paper, or a TOML file"),
    option(_WHAT, "--limit", **count(1), default=None, help="only the first rows of each file"),
    option(_WHAT, "--judge", type=click.Path(path_type=Path), metavar="FILE",
           help="GGUF that is asked in the end whether each text is degenerate"),
    option(_HOW, "-o", "--out", type=click.Path(path_type=Path), default=Path("lzs-eval"), metavar="FOLDER",
           help="where transcripts and results go"),
    option(_HOW, "--resume", is_flag=True, help="go on with that folder"),
    option(_HOW, "--so-far", is_flag=True, help="no new text: print and report what that folder has by now"),
    option(_HOW, "-c", "--ctx-size", "n_ctx", **count(0), default=None, help="context of a text, as of lzs generate"),
    option(_HOW, "-np", "--parallel", "n_parallel", **count(1), default=16, help="texts at a time"),
    option(_HOW, "-t", "--threads", "n_threads", **count(1), default=None, help="default: as of lzs generate"),
    option(_HOW, "--fail-if", "conditions", multiple=True, metavar="CONDITION",
           help='exit 1 if it holds, e.g. "lz.loop_rate > 0.01", over all settings of a kind'),
    option(_HOW, "-q", "--quiet", is_flag=True, help="only the table and what went wrong"),
    option(_HOW, "--json", "as_json", is_flag=True, help="print results.json instead of a table"),
)  # fmt: skip


@click.command("eval", cls=GroupedCommand, short_help="Loop rate and accuracy over a grid of settings.")
@_options
def evaluate_command(**flags: Any) -> None:
    """Write a text for every setting of a grid and every task and prompt; print how many loop, how many are right.

    Without --tasks and --prompts those of the embedded model. Every text is kept in FOLDER as it ends; --resume goes on
    after whatever happened. In the end FOLDER/report.html shows all of it.
    """
    conditions = [_condition(text) for text in flags["conditions"]]
    results = _so_far(flags["out"]) if flags["so_far"] else _run(flags, conditions)
    click.echo(json.dumps(results.to_json()) if flags["as_json"] else results.table())
    if results.judged is not None and not flags["as_json"]:
        click.echo(f"\n{results.judged}")
    for name, rows in results.bad.items():
        for row in rows[:5]:
            click.echo(f"lzs: {name}, line {row.line}: {row.reason}", err=True)
        if len(rows) > 5:
            click.echo(f"lzs: {name}: {len(rows) - 5} more bad rows, all in {flags['out'] / 'results.json'}", err=True)
    if not flags["quiet"]:
        click.echo(f"report: {flags['out'] / 'report.html'}", err=True)
    held = [text for text, holds in ((c[0], _holds(results, c)) for c in conditions) if holds]
    if held:
        raise click.exceptions.Exit(_failed(held))


def _so_far(folder: Path) -> "Results":
    from lzsampler import Results

    results = Results.read(folder)
    results.save(folder / "report.html")
    return results


def _run(flags: dict[str, Any], conditions: "list[_Condition]") -> "Results":
    from lzsampler import evaluate
    from lzsampler.evaluation.grid import read_grid
    from lzsampler.models import default_model, default_prompts, default_tasks

    tasks, prompts = flags["tasks"], flags["prompts"]
    if tasks is None and prompts is None:
        tasks, prompts = default_tasks(), default_prompts()
    grid = read_grid(flags["grid"])
    for text, kind, figure, *_ in conditions:  # what can never be answered shows before all the work
        try:
            grid.of_kind(kind)
        except ValueError as error:
            raise click.UsageError(f"--fail-if {text}: {error}") from error
        if figure == "accuracy" and tasks is None:
            raise click.UsageError(f"--fail-if {text}: there are no tasks with answers")
    names = ("limit", "n_ctx", "n_parallel", "n_threads", "resume", "judge")
    silent = flags["quiet"] or not sys.stderr.isatty()
    shown, judged = (None, None) if silent else (_Progress("texts"), _Progress("judged"))
    try:
        return evaluate(
            flags["model"] or default_model(),
            flags["out"],
            tasks=tasks,
            prompts=prompts,
            grid=grid,
            on_text=shown,
            on_judged=judged,
            **{name: flags[name] for name in names},
        )
    finally:
        if shown is not None:
            shown.end()


def _failed(held: list[str]) -> int:
    click.echo(f"lzs: --fail-if {'; '.join(held)}", err=True)
    return 1


class _Progress:
    """One line on stderr: texts done, all of them, time left."""

    def __init__(self, what: str) -> None:
        from time import monotonic

        self._what = what
        self._now = monotonic
        self._first: tuple[int, float] | None = None

    def __call__(self, done: int, total: int) -> None:
        before, start = self._first = self._first or (done, self._now())
        left = (self._now() - start) / max(done - before, 1) * (total - done)
        sys.stderr.write(f"\r{done}/{total} {self._what}, {left:.0f} s left\x1b[K")
        sys.stderr.flush()

    def end(self) -> None:
        """Clear the line."""
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


_Condition = tuple[str, str, str, str, float]


def _condition(text: str) -> _Condition:
    """Return (text, kind, figure, comparison, number) of a condition; a usage error when it is none."""
    match = _CONDITION.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        kind, figure, sign, number = match.groups()
        return text, kind, figure, sign, float(number)
    except ValueError:
        raise click.UsageError(
            f'--fail-if takes a condition like "lz.loop_rate > 0.01" ({" or ".join(_FIGURES)}), got {text!r}'
        ) from None


def _holds(results: "Results", condition: _Condition) -> bool:
    text, kind, figure, sign, number = condition
    try:
        counts = results.counts(kind=kind)
    except ValueError as error:
        raise click.UsageError(f"--fail-if {text}: {error}") from error
    rate = counts.loop_rate if figure == "loop_rate" else counts.accuracy
    if rate is None:
        raise click.UsageError(f"--fail-if {text}: there are no tasks with answers")
    return {"<": rate < number, ">": rate > number, "<=": rate <= number, ">=": rate >= number}[sign]
