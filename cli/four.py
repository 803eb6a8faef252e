"""`lzs bench --four`: times a model as it is, in MXFP4, with a draft, and with both."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lzsampler._values import counted
from lzsampler.util.harmless import harmless

from .bench_options import BenchOptions
from .console import console
from .drafts import rounding_said
from .help import refuse_given
from .options import open_model
from .progress import progress
from .sampling import with_tokens

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from lzsampler.decoding.speedup import Timed
    from lzsampler.llama.model import Prompt
    from lzsampler.params import Params
    from lzsampler.quantizing.four import Four


def check_options(options: BenchOptions) -> None:
    """Raise a usage error for options that have no effect, with or without --four."""
    if not options.four:
        refuse_given(("model_draft", "n_max", "prompts", "output"), "without --four: add it, or leave this option out")
        return
    refuse_given(("sizes", "use_mlock"), "with --four: leave one of them out")
    if options.model_draft is None:
        raise click.UsageError("--four needs a draft: add -md FILE, or -md tale-1m for the embedded model")
    given = click.get_current_context().get_parameter_source("prompt") is click.core.ParameterSource.COMMANDLINE
    if options.prompts is not None and given:
        raise click.UsageError("-p and --prompts both give prompts: leave one of them out")
    if options.output is not None:
        from lzsampler.reports.save import FOUR, check

        check(options.output, FOUR)


def measure(params: "Params", options: BenchOptions) -> None:
    """Time the four configurations and print the figures."""
    from lzsampler.decoding.draft import N_MAX
    from lzsampler.quantizing.four import four
    from lzsampler.reports.save import FOUR, write

    assert options.model_draft is not None  # `check_options` refuses None.
    prompts = [options.prompt] if options.prompts is None else _prompts(options.prompts)
    with open_model(options.model) as model:
        params = with_tokens(params, model.llm, options.sampling)
    with rounding_said(), progress("texts") as bar:

        def show(stage: str, done: int, total: int) -> None:
            bar.update(done, total, None if stage == "texts" else stage)

        made = four(
            model.path,
            options.model_draft,
            prompts,
            params,
            n_max=N_MAX if options.n_max is None else options.n_max,
            max_tokens=options.max_tokens,
            pairs=options.rounds,
            on_progress=show,
            on_note=console.note,
            n_ctx=options.model.n_ctx,
            n_batch=options.model.n_batch,
            n_threads=options.model.n_threads,
            n_gpu_layers=options.model.n_gpu_layers,
            flash_attn=options.model.flash_attn,
        )
    if options.as_json:
        from lzsampler.params import to_json

        click.echo(json.dumps({**made.to_json(), "params": to_json(params)}))
    else:
        console.draw(*described(made, brief=console.quiet))
    if options.output is not None:
        write(options.output, FOUR, made)


def _prompts(path: Path) -> "list[Prompt]":
    from lzsampler.errors import LzsError
    from lzsampler.evaluation.tasks import read_tasks

    tasks, bad = read_tasks(path)
    if bad:
        raise LzsError(f"{path}, line {bad[0].line}: {bad[0].reason}")
    if not tasks:
        raise LzsError(f"{path} has no prompts")
    return [task.prompt for task in tasks]


def described(four: "Four", *, brief: bool) -> "Iterator[RenderableType]":
    """Yield the figures as a table, with explanations around it unless ``brief``."""
    if brief:
        yield _table(four)
        return
    threads = counted(four.n_threads, "thread")
    base, scaled, draft = (n / 1e6 for n in (four.weights["base"], four.weights["MX"], four.draft_weights))
    converted = ", converted for this" if four.converted else ""
    about = (
        f"{four.target}: base {four.type}{converted}, {base:,.0f} MB of weights, MXFP4 {scaled:,.0f} MB; draft "
        f"{four.draft}, {draft:,.0f} MB, blocks of {four.n_max}; {threads}; {four.texts} texts in each configuration"
    )
    yield harmless(about)
    yield _table(four)
    yield _FOOT.format(four.bandwidth / 1e9)


_FOOT = """\
"times the base" is a median over pairs of texts. "at most" is what {:.1f} GB/s
from memory allow if a call reads every weight once. "the article" has
approximate values of Figures 7 and 8, for an accelerator, 7 billion weights,
MXFP6, FP16 as the base and blocks of 7 (docs/speculative.md)"""


def _table(four: "Four") -> "Table":
    """Return a table, at most 80 characters wide, with a column for each configuration."""
    from lzsampler.reports.terminal import table

    rows = table()
    rows.add_column(no_wrap=True)
    for name in four.ways:
        rows.add_column(name, justify="right", no_wrap=True)
    made = [_figures(name, timed, four) for name, timed in four.ways.items()]
    for figure in made[0]:
        rows.add_row(figure, *(figures[figure] for figures in made))
    return rows


def _figures(name: str, made: "Timed", four: "Four") -> dict[str, str]:
    from lzsampler.quantizing.four import ARTICLE

    low, median, high = made.speedup
    whole_low, whole_median, whole_high = made.speedup_whole
    drafted = made.tokens_per_call > 1 or made.draft_share > 0
    least, most = ARTICLE[name]
    return {
        "tokens a second": f"{1e3 / made.ms[1]:.1f}",
        "times the base": f"{median:.2f}",
        "  quartiles": f"{low:.2f}, {high:.2f}",
        "  with the prompt": f"{whole_median:.2f}",
        "  quartiles of that": f"{whole_low:.2f}, {whole_high:.2f}",
        "accepted, %": f"{100 * made.acceptance:.0f}" if drafted else "",
        "tokens a call": f"{made.tokens_per_call:.2f}" if drafted else "",
        "time in the draft, %": f"{100 * made.draft_share:.1f}" if drafted else "",
        "time in the target, %": f"{100 * made.target_share:.1f}",
        "time in the rest, %": f"{100 * made.other_share:.1f}",
        "at most, a second": f"{four.bounds[name]:.0f}",
        "the article": f"{least:g}" if least == most else f"{least:g} to {most:g}",
    }
