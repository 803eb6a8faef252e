"""`lzs demo`: three prompts decoded greedily without and with the LZ penalty, side by side."""

import shutil
import textwrap
from itertools import zip_longest
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lzsampler.decoding.generate import Generation

# Held-out sentences of the books that the embedded model was trained on (public domain); it loops on each of them.
PROMPTS = (
    "Of Silver we have heard no more. That formidable seafaring man with one",
    "Still Sunday said nothing, but only",
    "Instantly she was whirling through the",
)
STRENGTH = 0.15
_LINES = 10  # of each text
_MARGIN = " | "


@click.command(short_help="Decode three prompts without and with the LZ penalty.")
@click.option("-n", "--n-predict", type=click.IntRange(1), default=512, show_default=True, help="New tokens for each.")
def demo(n_predict: int) -> None:
    """Show what the LZ penalty does: the embedded model, greedy, without it and with it."""
    from lzsampler.decoding.generate import generate
    from lzsampler.llama.model import Model
    from lzsampler.models import default_model
    from lzsampler.params import Params

    width = max(80, min(120, shutil.get_terminal_size().columns))
    column = (width - len(_MARGIN)) // 2
    off, on = Params(temperature=0.0), Params(temperature=0.0, lz_penalty=STRENGTH)
    with Model(default_model()) as model:
        click.echo(
            f"{model.header.name}, greedy, {n_predict} new tokens: the beginnings, and figures of the whole texts"
        )
        for prompt in PROMPTS:
            left, right = (_block(generate(model, prompt, params, n_predict=n_predict), column) for params in (off, on))
            click.echo(f"\n{click.style(textwrap.fill('> ' + prompt, width), bold=True)}")
            rows = [
                ("without", f"with --lz-penalty {STRENGTH}"),
                ("-" * column, "-" * column),
                *zip_longest(left, right),
            ]
            for a, b in rows:
                click.echo(f"{a or '':{column}}{_MARGIN}{b or ''}".rstrip())


def _block(generation: "Generation", width: int) -> list[str]:
    """Return the beginning of a text and its figures as lines of at most ``width`` characters."""
    from lzsampler.auditing.repetition import repetition

    lines = textwrap.wrap(" ".join(generation.text.split()), width, max_lines=_LINES, placeholder=" ...")
    figures = repetition(generation.text)
    run = figures.run
    repeats = "largest run: none" if run is None else f"largest run: {run.period} x {run.count}"
    return [
        *lines,
        *[""] * (_LINES - len(lines) + 1),
        repeats + (" characters: a LOOP" if figures.loops else ""),
        f"rep-4 {figures.rep4:.3f}, zlib ratio {figures.zlib_ratio:.2f}",
    ]
