"""`lzs bench --four`: a model as it is, in MXFP4, with a draft, and with both."""

import json
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
    from lzsampler.decoding.speedup import Quartiles, Timed
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
        from lzsampler.reports.writers import FOUR, check

        check(flags["output"], FOUR)


def measure(params: "Params", flags: dict[str, Any]) -> None:
    """Measure the four ways and print them."""
    from lzsampler.decoding.draft import N_MAX
    from lzsampler.quantizing.four import four
    from lzsampler.reports.writers import FOUR, save

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
            max_tokens=flags["max_tokens"],
            pairs=flags["rounds"],
            on_progress=show,
            on_note=console.note,
            **{name: flags[name] for name in ("n_ctx", "n_batch", "n_threads", "n_gpu_layers", "flash_attn")},
        )
    if flags["as_json"]:
        from lzsampler.params import to_json

        click.echo(json.dumps({**made.to_json(), "params": to_json(params)}))
    else:
        click.echo(described(made, brief=console.quiet))
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


def described(four: "Four", *, brief: bool) -> str:
    """Return the figures as a table, with what they mean around it unless ``brief``."""
    rows = [_HEAD, *(_row(name, made, four) for name, made in four.ways.items())]
    if brief:
        return "\n".join(rows)
    threads = counted(four.n_threads, "thread")
    base, scaled, draft = (n / 1e6 for n in (four.weights["base"], four.weights["MX"], four.draft_weights))
    converted = ", converted for this" if four.converted else ""
    about = (
        f"{four.target}: base {four.type}{converted}, {base:,.0f} MB of weights, MXFP4 {scaled:,.0f} MB; draft "
        f"{four.draft}, {draft:,.0f} MB, blocks of {four.n_max}; {threads}; {four.texts} texts in each way"
    )
    return "\n".join([harmless(about), *rows, _FOOT.format(four.bandwidth / 1e9)])


_HEAD = """\
              tokens  times the base, median (quartiles)  accepted, tokens  time, %:             at most  the
            a second  decoding           with the prompt         %  a call  draft  target  rest  a second article"""
_FOOT = """\
at most: what {:.1f} GB/s from memory allow, if a call reads every weight once. the article: of Figures 7 and 8, about;
7 billion weights, MXFP6, FP16 as the base, blocks of 7, an accelerator (docs/speculative.md)"""


def _row(name: str, made: "Timed", four: "Four") -> str:
    from lzsampler.quantizing.four import ARTICLE

    drafted = made.tokens_per_call > 1 or made.draft_share > 0
    accepted, calls, draft = (
        (f"{100 * made.acceptance:.0f}", f"{made.tokens_per_call:.2f}", f"{100 * made.draft_share:.1f}")
        if drafted
        else ("", "", "")
    )
    least, most = ARTICLE[name]
    article = f"{least:g}" if least == most else f"{least:g}-{most:g}"
    return (
        f"{name:12}{1e3 / made.ms[1]:8.1f}  {_times(made.speedup):19}{_times(made.speedup_whole):19}{accepted:>5}"
        f"{calls:>8}{draft:>7}{100 * made.target_share:>8.1f}{100 * made.other_share:>6.1f}"
        f"{four.bounds[name]:10.0f} {article}"
    )


def _times(given: "Quartiles") -> str:
    low, middle, high = given
    return f"{middle:.2f} ({low:.2f}, {high:.2f})"
