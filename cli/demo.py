"""`lzs demo`: shows the greedy texts of three prompts without and with the LZ penalty, side by side.

The texts are laid out by hand, because a rich table cannot limit the lines of a cell.
"""

import shutil
import sys
import textwrap
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lzsampler._values import counted
from lzsampler.util.harmless import harmless

from .console import console, general_options
from .fields import opt, takes
from .help import GroupedCommand, ModelFile
from .options import MODEL_HELP, refused_download
from .output import figures_of, repeats

if TYPE_CHECKING:
    from lzsampler.decoding.generation import Generation

# The embedded model loops on each of these sentences. It was trained on other parts of the same books.
PROMPTS = (
    "From the ship's bows, nearly all the seamen now hung inactive;",
    "Still Sunday said nothing, but only",
    "Instantly she was whirling through the",
)
# Questions for chat models. SmolLM2 loops on each.
QUESTIONS = (
    "Tell me a long story about a letter to a friend about summer.",
    "Tell me a long story about a locked garden.",
    "Explain how soap cleans step by step, in as much detail as you can.",
)
_LINES = 10  # lines shown of each text
_MARGIN = " | "
_WIDEST = 120  # largest number of columns of the output
_LEAST = 30  # columns of a text; if the terminal is narrower, the second text is below the first


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """The options of `lzs demo`."""

    model: Path | None = opt("Texts", "-m", "--model", type=ModelFile(), metavar="FILE", help=MODEL_HELP)
    max_tokens: int = opt("Texts", "-n", "--n-predict", low=1, default=512, help="new tokens of each text")


@click.command(cls=GroupedCommand)
@takes(DemoOptions)
@refused_download
@general_options(quiet="print the figures only, not the texts")
def demo(options: DemoOptions) -> None:
    """Show three texts of a model without and with the LZ penalty, decoded greedily.

    The embedded model and models without a chat template continue sentences; other models are asked questions.
    """
    from lzsampler.decoding.config import GenerationConfig
    from lzsampler.decoding.generate import generate
    from lzsampler.llama.model import Model
    from lzsampler.models import default_model
    from lzsampler.params import Params

    width = min(_WIDEST, shutil.get_terminal_size().columns)
    column = (width - len(_MARGIN)) // 2
    side_by_side = column >= _LEAST
    column = column if side_by_side else width
    colored = console.colored(sys.stdout)
    with Model(options.model or default_model()) as opened:
        off, on = Params(temperature=0.0), Params.recommended(opened, temperature=0.0)
        console.detail(
            f"{opened.path}: context {opened.n_ctx:,} tokens, {counted(opened.n_threads, 'CPU thread')}; {on}"
        )
        name = harmless(opened.path.name)
        title = f"{name}, greedy: how {options.max_tokens} new tokens begin, and their figures"
        console.print(textwrap.fill(title, width))
        chats = opened.path != default_model() and opened.header.chat_template is not None
        for prompt in QUESTIONS if chats else PROMPTS:
            asked = [{"role": "user", "content": prompt}] if chats else prompt
            sides = []
            for params in (off, on):
                made = generate(opened, asked, GenerationConfig(params, max_tokens=options.max_tokens))
                if made.finish_reason == "interrupted":
                    raise KeyboardInterrupt
                sides.append(_block(made, column))
            title = textwrap.fill("> " + prompt, width)
            console.print(f"\n{click.style(title, bold=True) if colored else title}")
            titles = ("without the penalty", "with the LZ penalty")
            left, right = ([name, "-" * column, *side] for name, side in zip(titles, sides, strict=True))
            if side_by_side:
                rows = [f"{a or '':{column}}{_MARGIN}{b or ''}".rstrip() for a, b in zip_longest(left, right)]
            else:
                rows = [*left, "", *right]
            console.print("\n".join(rows))


def _block(generation: "Generation", width: int) -> list[str]:
    """Return the beginning of a text and its figures, in lines of at most ``width`` characters."""
    figures = figures_of(generation)
    zlib = "" if figures.zlib_ratio is None else f", zlib ratio {figures.zlib_ratio:.2f}"
    last = [repeats(figures), f"rep-4 {figures.rep4:.3f}{zlib}"]
    shown = [line for text in last for line in textwrap.wrap(text, width)]
    if console.quiet:
        return shown
    lines = textwrap.wrap(" ".join(generation.text.split()), width, max_lines=_LINES, placeholder=" ...")
    return [*lines, *[""] * (_LINES - len(lines) + 1), *shown]
