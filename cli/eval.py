"""`lzs eval`: loop rate and accuracy of a model over a grid of settings."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import counted
from lzsampler.errors import ArgumentError
from lzsampler.util.harmless import harmless

from .console import console, general_options
from .cost import RATES, check_groups, held, say_if_unfit
from .drafts import check_draft, drafts, open_draft_for
from .help import GroupedCommand, ModelFile, option, options
from .limits import Limit, limits
from .options import draft_options, flash_attn_option, refused_download, whole
from .output import for_chat
from .progress import progress

if TYPE_CHECKING:
    from lzsampler import Results

_WHAT, _HOW, _OUTPUT = "What to run", "How to run it", "Output"
_FILE = click.Path(path_type=Path)
_BAD_ROWS = 5  # of a file that are named

_options = options(
    option(_WHAT, "-m", "--model", type=ModelFile(), metavar="FILE",
           help="GGUF model, or the name smollm2 (docs/install.md) (default: the embedded model, 8\xa0MB)"),
    refused_download,
    option(_WHAT, "--tasks", type=_FILE, metavar="FILE", help="JSON Lines: questions with answers"),
    option(_WHAT, "--prompts", type=_FILE, metavar="FILE", help="JSON Lines: prompts without answers"),
    option(_WHAT, "--allow-code", is_flag=True,
           help='let tasks with "compare": "module:function" import and call that function'),
    option(_WHAT, "--grid", default="quick", metavar="GRID",
           help="settings: quick, presets, paper, everyday, long, or a TOML file"),
    option(_WHAT, "-n", "--predict", "max_tokens", **whole(1), default=None,
           help="tokens of a text at most (default: as in the grid)"),
    option(_WHAT, "--limit", **whole(1), default=None, help="use only N rows of each file, spread evenly over it"),
    option(_WHAT, "--judge", type=ModelFile(), metavar="FILE",
           help="GGUF model that is asked at the end whether each text is degenerate"),
    option(_WHAT, "--texts", type=click.Path(), multiple=True, metavar="FOLDER",
           help="measure at the end what the penalties cost on these texts, which are right (lzs cost); repeatable"),
    option(_HOW, "-o", "--out", type=_FILE, default=Path("lzs-eval"), metavar="FOLDER",
           help="folder for transcripts and results"),
    option(_HOW, "--resume", is_flag=True, help="continue the evaluation in that folder, and try again what failed"),
    option(_HOW, "--so-far", is_flag=True, help="write no new text; print and report what the folder has now"),
    option(_HOW, "-c", "--ctx-size", "n_ctx", **whole(0), default=None,
           help="context of each text, tokens; 0 is all that the model was trained with (default: up to 4096, or more "
           "where the grid has longer texts)"),
    option(_HOW, "-np", "--parallel", "n_parallel", **whole(1), default=16, help="texts decoded at a time"),
    option(_HOW, "-t", "--threads", "n_threads", **whole(1), default=None,
           help="CPU threads (default: physical cores, fewer for a small model)"),
    flash_attn_option(_HOW),
    option(_OUTPUT, "--fail-if", "--fail-over", "limits", multiple=True, metavar="LIMIT",
           callback=limits(("loop_rate", "accuracy", *RATES)),
           help='exit with status 1 if it holds: loop_rate=1%, "lz.loop_rate > 0.01" (settings of kind lz only), '
           '"accuracy < 50%", and with --texts "lz.cost > 0.05" (for a setting); repeatable'),
    option(_OUTPUT, "--json", "as_json", is_flag=True, help="print results.json instead of a table"),
)  # fmt: skip


_EPILOG = """\b
Exit status: 0 success; 1 a limit of --fail-if is exceeded, or given for a run
that is not finished, or a row or text failed; 2 an error; 130 Ctrl-C.
docs/evaluate.md describes grids, tasks and the folder."""


@click.command("eval", cls=GroupedCommand, epilog=_EPILOG)
@_options
@draft_options
@general_options(
    quiet="print the table and errors only",
    verbose="also print a table in the terms of other work, settings, times and the traceback of an error",
)
def evaluate_command(**flags: Any) -> None:
    """Write a text for every setting of a grid and every task and prompt, and print loop rates and accuracy.

    Without --tasks and --prompts, the embedded model gets those made for it, and any other model the everyday ones.
    Every text is saved in FOLDER when it
    ends, so that --resume can continue after any interruption. FOLDER/report.html shows the results.
    """
    from lzsampler import Results
    from lzsampler.reports.text import visible

    check_draft(flags)
    try:
        results = Results.read(flags["out"]) if flags["so_far"] else _run(flags)
    except KeyboardInterrupt:
        console.error(f"interrupted: {_saved(flags['out'])}")
        raise
    click.echo(json.dumps(results.to_json()) if flags["as_json"] else results.table())
    if console.verbose and not flags["as_json"]:
        click.echo(f"\n{results.table(terms=True)}")
    if results.judged is not None and not flags["as_json"]:
        click.echo(f"\n{harmless(str(results.judged))}")
    done = f"{len(results.outcomes):,} of {counted(results.expected or 0, 'text')}"
    if results.missing:
        console.note(f"the evaluation is not finished: {done}, so that settings may have different prompts")
    for name, rows in results.bad.items():
        file = flags[name] if name in ("tasks", "prompts") and flags[name] else name
        for row in rows[:_BAD_ROWS]:
            console.error(f"{file}, line {row.line}: {row.reason}" if row.line else f"{file}: {row.reason}")
        if len(rows) > _BAD_ROWS:
            more = len(rows) - _BAD_ROWS
            console.error(f"{file}: {counted(more, 'more bad row')}, all listed in {flags['out'] / 'results.json'}")
    if flags["texts"] and results.costs is not None:
        say_if_unfit(results.costs, flags)
    if results.speculated is not None:
        console.note(f"speculation: {results.speculated}")
    if flags["so_far"]:  # after the table, which a folder that cannot be written does not take away
        results.save(flags["out"] / "report.html")
    console.note(f"report: {flags['out'] / 'report.html'}")
    if results.failed:
        console.error(f"{visible(results.failure, 1000)}; --resume tries again")
    over = [said for limit in flags["limits"] for said in _held(results, limit)]
    for said in over:
        console.error(said)
    priced = any(limit.rate in RATES for limit in flags["limits"])
    unchecked = not over and bool((results.missing and flags["limits"]) or (results.unscored and priced))
    if unchecked:
        left = done if results.missing else f"the cost of {counted(results.unscored, 'text')}"
        console.error(f"--fail-if cannot pass: the evaluation is not finished ({left}); --resume continues it")
    if over or unchecked or results.failed or any(rows for name, rows in results.bad.items() if name != "transcripts"):
        raise click.exceptions.Exit(1)


# What errors of `evaluate` say of its arguments, and what this command says.
_FLAGS = {
    "give resume=True to": "give --resume to",
    "another folder as out=": "another folder as -o",
    "max_tokens=": "-n ",
    "n_ctx=": "-c ",
    "flash_attn=": "-fa ",
    "continue it as it was started": "the options that it was started with continue it",
}


def _run(flags: dict[str, Any]) -> "Results":
    from lzsampler import evaluate
    from lzsampler.evaluation.grid import read_grid
    from lzsampler.evaluation.tasks import read_tasks
    from lzsampler.llama import gguf
    from lzsampler.models import default_model

    model = flags["model"] or default_model()
    tasks, prompts = flags["tasks"], flags["prompts"]
    if tasks is None and prompts is None:
        tasks, prompts = _rows_for(model)
    grid = read_grid(flags["grid"])
    if flags["max_tokens"] is not None:
        grid = replace(grid, max_tokens=flags["max_tokens"])
    for limit in flags["limits"]:  # what can never be answered shows before all the work
        if limit.group is not None and limit.rate not in RATES:
            try:
                grid.of_kind(limit.group)
            except ArgumentError as error:
                raise click.UsageError(f"--fail-if {limit.text}: {error}") from error
        if limit.rate in RATES and not flags["texts"]:
            raise click.UsageError(f"--fail-if {limit.text}: the cost needs texts; give --texts")
        if limit.rate == "accuracy" and tasks is None:
            raise click.UsageError(f"--fail-if {limit.text}: accuracy needs answers; give --tasks")
    check_groups((limit for limit in flags["limits"] if limit.rate in RATES), grid, flags["texts"])
    names = ("limit", "n_ctx", "n_parallel", "n_threads", "flash_attn", "resume", "allow_code", "judge")
    console.detail(
        f"{model}: grid {grid.name}, {counted(len(grid.settings), 'setting')}, seeds {grid.seeds}, to {flags['out']}"
    )
    with ExitStack() as stack:
        draft = None
        if drafts(flags):
            settings = {name: flags[name] for name in ("n_ctx", "flash_attn")}
            draft = open_draft_for(stack, gguf.read(model), flags, settings)
        bar = stack.enter_context(progress("texts"))
        bar.say("loading the model")
        try:
            results = evaluate(
                model,
                flags["out"],
                tasks=tasks,
                prompts=prompts,
                grid=grid,
                texts=flags["texts"] or None,
                draft=draft,
                on_text=bar.update,
                on_scored=lambda done, total: bar.update(done, total, f"{done:,}/{total:,} characters scored"),
                on_judged=lambda done, total: bar.update(done, total, f"{done:,}/{total:,} texts judged"),
                **{name: flags[name] for name in names},
            )
        except ArgumentError as error:
            said = str(error)
            for argument, flag in _FLAGS.items():
                said = said.replace(argument, flag)
            raise ArgumentError(said) from error
    if tasks is not None and gguf.read(model).chat_template is not None:
        rows, _ = read_tasks(tasks, allow_code=flags["allow_code"])
        plain = sum(isinstance(task.prompt, str) and task.answer is not None for task in rows)
        if plain:
            what = counted(
                plain,
                'task has a "prompt", which the model continues',
                'tasks have a "prompt", which the model continues',
            )
            console.note(for_chat(what, 'give "messages"'))
    return results


def _saved(out: Path) -> str:
    """Return what a run that was interrupted has saved, and how it goes on."""
    from lzsampler.evaluation.run_folder import RUN, TRANSCRIPTS, RunFolder

    folder = RunFolder(out)
    if not (out / RUN).exists():
        return "nothing was begun"
    is_current = folder.is_current()
    there = len({line.key for line in folder.lines(TRANSCRIPTS) if is_current(line)})
    texts = counted(int(folder.manifest()["texts"]), "text")
    return f"{there:,} of {texts} are saved in {out}; the same command with --resume continues"


def _rows_for(model: Path) -> tuple[Path, Path]:
    """Return tasks and prompts that suit a model: the tale models, which say so in their file, know nothing else."""
    from lzsampler import models
    from lzsampler.llama import gguf

    if "tale" in gguf.read(model).name.casefold().split():
        return models.default_tasks(), models.default_prompts()
    return models.everyday_tasks(), models.everyday_prompts()


def _held(results: "Results", limit: Limit) -> list[str]:
    """Return in words that a limit holds, with the measured rate; nothing if it does not, or that is not known yet."""
    if limit.rate in RATES:
        if results.costs is None and (results.missing or results.unscored):
            return []
        if results.costs is None:
            raise click.UsageError(f"--fail-if {limit.text}: no cost was measured; give --texts")
        return held(results.costs, limit)
    try:
        counts = results.counts() if limit.group is None else results.counts(kind=limit.group)
    except ArgumentError as error:
        raise click.UsageError(f"--fail-if {limit.text}: {error}") from error
    rate = counts.loop_rate if limit.rate == "loop_rate" else counts.accuracy
    if rate is None:
        if results.failed or results.missing:  # another line names these, and they have the same exit status
            return []
        raise click.UsageError(f"--fail-if {limit.text}: there are no tasks with answers")
    name = limit.rate if limit.group is None else f"{limit.group}.{limit.rate}"
    return [limit.said(rate, name)] if limit.is_exceeded(rate) else []
