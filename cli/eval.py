"""`lzs eval`: measures loop rate and accuracy of a model over a grid of settings."""

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lzsampler._values import counted
from lzsampler.errors import ArgumentError
from lzsampler.util.harmless import harmless

from .console import console, general_options
from .cost import RATES, check_groups, held, say_if_unfit
from .drafts import DraftOptions, check_draft, open_draft_for
from .fields import opt, takes
from .help import GroupedCommand, ModelFile
from .limits import Limit, limits
from .options import MODEL_HELP, THREADS_HELP, FlashAttention, flash_attn_option, refused_download
from .output import for_chat
from .progress import progress

if TYPE_CHECKING:
    from lzsampler import Results

_WHAT, _HOW, _OUTPUT = "What to run", "How to run it", "Output"
_BAD_ROWS = 5  # largest number of bad rows that messages name for a file


@dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """The options of `lzs eval`."""

    model: Path | None = opt(_WHAT, "-m", "--model", type=ModelFile(), metavar="FILE", help=MODEL_HELP)
    tasks: Path | None = opt(_WHAT, "--tasks", metavar="FILE", help="JSON Lines file of questions with answers")
    prompts: Path | None = opt(_WHAT, "--prompts", metavar="FILE", help="JSON Lines file of prompts without answers")
    allow_code: bool = opt(
        _WHAT, "--allow-code", help='let tasks with "compare": "module:function" import and call that function'
    )
    grid: str = opt(
        _WHAT, "--grid", default="quick", metavar="GRID",
        help="settings to compare: quick, presets, paper, everyday, long, or a TOML file",
    )  # fmt: skip
    max_tokens: int | None = opt(
        _WHAT, "-n", "--n-predict", low=1, help="write at most N tokens per text (default: as in the grid)"
    )
    limit: int | None = opt(_WHAT, "--limit", low=1, help="use only N rows of each file, spread evenly over it")
    judge: Path | None = opt(
        _WHAT, "--judge", type=ModelFile(), metavar="FILE",
        help="at the end, ask this GGUF model whether each text is degenerate",
    )  # fmt: skip
    texts: tuple[str, ...] = opt(
        _WHAT, "--texts", type=click.Path(), metavar="FOLDER",
        help="at the end, measure what the penalties cost on these reference texts (lzs cost); repeatable",
    )  # fmt: skip
    out: Path = opt(
        _HOW, "-o", "--out", default=Path("lzs-eval"), metavar="FOLDER", help="folder for transcripts and results"
    )
    resume: bool = opt(_HOW, "--resume", help="continue the evaluation in the folder of -o, and retry failed texts")
    so_far: bool = opt(_HOW, "--so-far", help="write no new text; print and report the results so far in the folder")
    n_ctx: int | None = opt(
        _HOW, "-c", "--ctx-size", low=0,
        help="context size of each text in tokens; 0 is the size that the model was trained with (default: up to 4096, "
        "or more if the grid has longer texts)",
    )  # fmt: skip
    n_parallel: int = opt(_HOW, "-np", "--parallel", low=1, default=16, help="number of texts decoded together")
    n_threads: int | None = opt(_HOW, "-t", "--threads", low=1, help=THREADS_HELP)
    flash_attn: FlashAttention = flash_attn_option(_HOW)
    fail_over: tuple[Limit, ...] = opt(
        _OUTPUT, "--fail-over", metavar="LIMIT", callback=limits(("loop_rate", "accuracy", *RATES)),
        help='exit with status 1 if a rate exceeds its limit, such as loop_rate=1%, "lz.loop_rate > 0.01" (settings of '
        'kind lz), "accuracy < 50%" or, with --texts, "lz.cost > 0.05" (any setting of kind lz); repeatable',
    )  # fmt: skip
    as_json: bool = opt(_OUTPUT, "--json", help="print results.json instead of a table")
    draft: DraftOptions


_EPILOG = """\b
Exit status: 0 success; 1 a limit of --fail-over is exceeded or cannot be
decided yet, or a row or text failed; 2 an error; 130 Ctrl-C.
docs/evaluate.md describes grids, tasks and the folder."""


@click.command("eval", cls=GroupedCommand, epilog=_EPILOG)
@takes(EvalOptions)
@refused_download
@general_options(
    quiet="print the table and errors only",
    verbose="also print settings, times, the traceback of an error and a second table, in the terms of other work",
)
def evaluate_command(options: EvalOptions) -> None:
    """Generate a text for every setting of a grid and every task and prompt, and print loop rates and accuracy.

    Without --tasks and --prompts, the embedded model gets tasks and prompts made for it, and other models get everyday
    ones. lzs saves each text in FOLDER as soon as the text ends, and --resume continues after an interruption.
    FOLDER/report.html shows the results.
    """
    from lzsampler import Results, save
    from lzsampler.reports.eval_markdown import markdown_table
    from lzsampler.reports.text import visible

    check_draft(options.draft)
    try:
        results = Results.read(options.out) if options.so_far else _run(options)
    except KeyboardInterrupt:
        console.error(f"interrupted: {_saved(options.out)}")
        raise
    click.echo(json.dumps(results.to_json()) if options.as_json else markdown_table(results))
    if console.verbose and not options.as_json:
        click.echo(f"\n{markdown_table(results, terms=True)}")
    if results.judged is not None and not options.as_json:
        click.echo(f"\n{harmless(str(results.judged))}")
    done = f"{len(results.outcomes):,} of {counted(results.expected or 0, 'text')}"
    if results.missing:
        console.note(f"the evaluation is not finished: {done}. Settings may have different prompts")
    for name, rows in results.bad.items():
        file = {"tasks": options.tasks, "prompts": options.prompts}.get(name) or name
        for row in rows[:_BAD_ROWS]:
            console.error(f"{file}, line {row.line}: {row.reason}" if row.line else f"{file}: {row.reason}")
        if len(rows) > _BAD_ROWS:
            more = len(rows) - _BAD_ROWS
            console.error(f"{file}: {counted(more, 'more bad row')}, all listed in {options.out / 'results.json'}")
    if options.texts and results.costs is not None:
        say_if_unfit(results.costs, model=options.model)
    if results.speculated is not None:
        console.note(f"speculation: {results.speculated}")
    save(results, options.out / "report.html")  # after the table, because the disk may be full
    console.note(f"report: {options.out / 'report.html'}")
    if results.failed:
        console.error(f"{visible(results.failure, 1000)}; --resume tries again")
    over = [said for limit in options.fail_over for said in _held(results, limit)]
    for said in over:
        console.error(said)
    priced = any(limit.rate in RATES for limit in options.fail_over)
    unchecked = not over and bool((results.missing and options.fail_over) or (results.unscored and priced))
    if unchecked:
        left = done if results.missing else f"the cost of {counted(results.unscored, 'text')}"
        console.error(f"--fail-over cannot pass: the evaluation is not finished ({left}); --resume continues it")
    if over or unchecked or results.failed or any(rows for name, rows in results.bad.items() if name != "transcripts"):
        raise click.exceptions.Exit(1)


# Phrases in errors of `evaluate`, which name its arguments -> phrases that name options.
_FLAGS = {
    "give resume=True to": "give --resume to",
    "another folder as out=": "another folder as -o",
    "max_tokens=": "-n ",
    "n_ctx=": "-c ",
    "flash_attn=": "-fa ",
    "continue it as it was started": "the options that it was started with continue it",
}


def _run(options: EvalOptions) -> "Results":
    from lzsampler import evaluate
    from lzsampler.evaluation.grid import read_grid
    from lzsampler.evaluation.tasks import read_tasks
    from lzsampler.llama import gguf
    from lzsampler.models import default_model

    model = options.model or default_model()
    tasks, prompts = options.tasks, options.prompts
    if tasks is None and prompts is None:
        tasks, prompts = _rows_for(model)
    grid = read_grid(options.grid)
    if options.max_tokens is not None:
        grid = replace(grid, max_tokens=options.max_tokens)
    for limit in options.fail_over:  # A limit that can never be decided is refused before the evaluation.
        if limit.group is not None and limit.rate not in RATES:
            try:
                grid.of_kind(limit.group)
            except ArgumentError as error:
                raise click.UsageError(f"--fail-over {limit.text}: {error}") from error
        if limit.rate in RATES and not options.texts:
            raise click.UsageError(f"--fail-over {limit.text}: the cost needs texts; give --texts")
        if limit.rate == "accuracy" and tasks is None:
            raise click.UsageError(f"--fail-over {limit.text}: accuracy needs answers; give --tasks")
    check_groups((limit for limit in options.fail_over if limit.rate in RATES), grid, options.texts)
    console.detail(
        f"{model}: grid {grid.name}, {counted(len(grid.settings), 'setting')}, seeds {grid.seeds}, to {options.out}"
    )
    with ExitStack() as stack:
        draft = None
        if options.draft.is_on:
            settings = {name: getattr(options, name) for name in ("n_ctx", "flash_attn", "n_threads")}
            draft = open_draft_for(stack, gguf.read(model), options.draft, settings)
        bar = stack.enter_context(progress("texts"))
        bar.say("loading the model")
        try:
            results = evaluate(
                model,
                options.out,
                tasks=tasks,
                prompts=prompts,
                grid=grid,
                texts=options.texts or None,
                draft=draft,
                on_text=bar.update,
                on_scored=lambda done, total: bar.update(done, total, f"{done:,}/{total:,} characters scored"),
                on_judged=lambda done, total: bar.update(done, total, f"{done:,}/{total:,} texts judged"),
                limit=options.limit,
                n_ctx=options.n_ctx,
                n_parallel=options.n_parallel,
                n_threads=options.n_threads,
                flash_attn=options.flash_attn,
                resume=options.resume,
                allow_code=options.allow_code,
                judge=options.judge,
            )
        except ArgumentError as error:
            said = str(error)
            for argument, flag in _FLAGS.items():
                said = said.replace(argument, flag)
            raise ArgumentError(said) from error
    if tasks is not None and gguf.read(model).chat_template is not None:
        rows, _ = read_tasks(tasks, allow_code=options.allow_code)
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
    """Return what an interrupted run has saved, and how to continue it."""
    from lzsampler.evaluation.run_folder import RUN, TRANSCRIPTS, RunFolder

    folder = RunFolder(out)
    if not (out / RUN).exists():
        return "nothing was begun"
    is_current = folder.is_current()
    there = len({line.key for line in folder.lines(TRANSCRIPTS) if is_current(line)})
    texts = counted(int(folder.manifest()["texts"]), "text")
    return f"{there:,} of {texts} are saved in {out}; the same command with --resume continues"


def _rows_for(model: Path) -> tuple[Path, Path]:
    """Return packaged tasks and prompts that suit a model: tales if its name has the word tale, else everyday ones."""
    from lzsampler import models
    from lzsampler.llama import gguf

    if "tale" in gguf.read(model).name.casefold().split():
        return models.default_tasks(), models.default_prompts()
    return models.everyday_tasks(), models.everyday_prompts()


def _held(results: "Results", limit: Limit) -> list[str]:
    """Return a line for each excess over a limit. If the rate is not known yet, the list is empty."""
    if limit.rate in RATES:
        if results.costs is None and (results.missing or results.unscored):
            return []
        if results.costs is None:
            raise click.UsageError(f"--fail-over {limit.text}: no cost was measured; give --texts")
        return held(results.costs, limit)
    try:
        counts = results.counts() if limit.group is None else results.counts(kind=limit.group)
    except ArgumentError as error:
        raise click.UsageError(f"--fail-over {limit.text}: {error}") from error
    rate = counts.loop_rate if limit.rate == "loop_rate" else counts.accuracy
    if rate is None:
        if results.failed or results.missing:  # Other messages report failed and missing texts.
            return []
        raise click.UsageError(f"--fail-over {limit.text}: there are no tasks with answers")
    name = limit.rate if limit.group is None else f"{limit.group}.{limit.rate}"
    return [limit.said(rate, name)] if limit.is_exceeded(rate) else []
