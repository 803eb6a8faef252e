"""`lzs demo`: three prompts decoded greedily without and with the LZ penalty, side by side."""

import shutil
import sys
import textwrap
from itertools import zip_longest
from typing import TYPE_CHECKING

import click

from .console import console, general_options
from .help import GroupedCommand, option
from .options import whole
from .output import figures_of, repeats

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
_WIDEST = 120  # columns
_LEAST = 30  # columns of a text; where a terminal has less, one text is below the other


@click.command(cls=GroupedCommand)
@option("Texts", "-n", "--n-predict", **whole(1), default=512, help="new tokens of each text")
@general_options(quiet="print the figures only, not the texts")
def demo(n_predict: int) -> None:
    """Show three texts of the embedded model without and with the LZ penalty, decoded greedily."""
    from lzsampler.decoding.generate import generate
    from lzsampler.llama.model import Model
    from lzsampler.models import default_model
    from lzsampler.params import Params

    width = min(_WIDEST, shutil.get_terminal_size().columns)
    column = (width - len(_MARGIN)) // 2
    side_by_side = column >= _LEAST
    column = column if side_by_side else width
    colored = console.colored(sys.stdout)
    off, on = Params(temperature=0.0), Params(temperature=0.0, lz_penalty=STRENGTH)
    with Model(default_model()) as model:
        console.detail(f"{model.path}: context {model.n_ctx:,} tokens, {model.n_threads} CPU thread(s)")
        console.print(
            textwrap.fill(f"{model.header.name}, greedy: how {n_predict} new tokens begin, and their figures", width)
        )
        for prompt in PROMPTS:
            sides = [_block(generate(model, prompt, params, n_predict=n_predict), column) for params in (off, on)]
            title = textwrap.fill("> " + prompt, width)
            console.print(f"\n{click.style(title, bold=True) if colored else title}")
            titles = ("without the penalty", f"with --lz-penalty {STRENGTH}")
            left, right = ([name, "-" * column, *side] for name, side in zip(titles, sides, strict=True))
            if side_by_side:
                rows = [f"{a or '':{column}}{_MARGIN}{b or ''}".rstrip() for a, b in zip_longest(left, right)]
            else:
                rows = [*left, "", *right]
            console.print("\n".join(rows))


def _block(generation: "Generation", width: int) -> list[str]:
    """Return the beginning of a text and its figures as lines of at most ``width`` characters."""
    figures = figures_of(generation)
    zlib = "" if figures.zlib_ratio is None else f", zlib ratio {figures.zlib_ratio:.2f}"
    last = [repeats(figures), f"rep-4 {figures.rep4:.3f}{zlib}"]
    shown = [line for text in last for line in textwrap.wrap(text, width)]
    if console.quiet:
        return shown
    lines = textwrap.wrap(" ".join(generation.text.split()), width, max_lines=_LINES, placeholder=" ...")
    return [*lines, *[""] * (_LINES - len(lines) + 1), *shown]
