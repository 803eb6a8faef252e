"""`lzs bench --four`: a model as it is, in MXFP4, with a draft, and with both."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import counted
from lzsampler.util.harmless import harmless

from .console import console
from .drafts import rounding_said
from .options import open_model, with_tokens
from .progress import progress

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from lzsampler.decoding.speedup import Timed
    from lzsampler.llama.model import Prompt
    from lzsampler.params import Params
    from lzsampler.quantizing.four import Four

NOTHING_WITHOUT = {
    "model_draft": "-md", "n_max": "--spec-draft-n-max", "prompts": "--prompts", "output": "-o"
}  # fmt: skip
_NOT_HERE = {"cpu_time": "--cpu-time", "sizes": "--batch", "use_mlock": "--mlock"}


def check_flags(flags: dict[str, Any]) -> None:
    """Raise a usage error for flags that have no effect, with --four or without it."""
    given = click.get_current_context().get_parameter_source
    if not flags["four"]:
        for name, flag in NOTHING_WITHOUT.items():
            if flags[name] is not None:
                raise click.UsageError(f"{flag} has no effect without --four: add it, or leave {flag} out")
        return
    for name, flag in _NOT_HERE.items():
        if given(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{flag} has no effect with --four: leave one of them out")
    if flags["model_draft"] is None:
        raise click.UsageError("--four needs a draft: add -md FILE, or -md tale-1m for the embedded model")
    if flags["prompts"] is not None and given("prompt") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("-p and --prompts both give prompts: leave one of them out")
    if flags["output"] is not None:
        from lzsampler.util.writers import FOUR, check

        check(flags["output"], FOUR)


def measure(params: "Params", flags: dict[str, Any]) -> None:
    """Measure the four ways and print them."""
    from lzsampler.decoding.speculative import N_MAX
    from lzsampler.quantizing.four import four
    from lzsampler.util.writers import FOUR, save

    prompts = [flags["prompt"]] if flags["prompts"] is None else _prompts(flags["prompts"])
    with open_model(flags) as model:
        params = with_tokens(params, model.llm, flags)
    with rounding_said(), progress("texts") as bar:

        def show(stage: str, done: int, total: int) -> None:
            bar.update(done, total, None if stage == "texts" else stage)

        made = four(
            model.path,
            flags["model_draft"],
            prompts,
            params,
            n_max=N_MAX if flags["n_max"] is None else flags["n_max"],
            n_predict=flags["n_predict"],
            pairs=flags["rounds"],
            on_progress=show,
            on_note=console.note,
            **{name: flags[name] for name in ("n_ctx", "n_batch", "n_threads", "n_gpu_layers", "flash_attn")},
        )
    if flags["as_json"]:
        from lzsampler.params import to_json

        click.echo(json.dumps({**made.to_json(), "params": to_json(params)}))
    else:
        console.draw(*described(made, brief=console.quiet))
    if flags["output"] is not None:
        save(flags["output"], FOUR, made)


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
    """Yield the figures as a table, with what they mean around it unless ``brief``."""
    if brief:
        yield _table(four)
        return
    threads = counted(four.n_threads, "thread")
    base, scaled, draft = (n / 1e6 for n in (four.weights["base"], four.weights["MX"], four.draft_weights))
    converted = ", converted for this" if four.converted else ""
    about = (
        f"{four.target}: base {four.type}{converted}, {base:,.0f} MB of weights, MXFP4 {scaled:,.0f} MB; draft "
        f"{four.draft}, {draft:,.0f} MB, blocks of {four.n_max}; {threads}; {four.texts} texts in each way"
    )
    yield harmless(about)
    yield _table(four)
    yield _FOOT.format(four.bandwidth / 1e9)


_FOOT = """\
times the base: median and quartiles. at most: what {:.1f} GB/s from memory allow,
if a call reads every weight once. the article: of Figures 7 and 8, about;
7 billion weights, MXFP6, FP16 as the base, blocks of 7, an accelerator
(docs/speculative.md)"""


def _table(four: "Four") -> "Table":
    """Return a column for each way, so that the table fits into 80 columns."""
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
