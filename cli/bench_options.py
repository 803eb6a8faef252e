"""`BenchOptions`: the options of `lzs bench`."""

import re
from dataclasses import dataclass
from pathlib import Path

import click

from .fields import opt
from .help import ModelFile
from .options import ModelOptions
from .sampling import SamplingOptions

_RUNS, _FOUR = "Runs", "Speculative decoding and microscaling (docs/speculative.md)"
_MOST = 256  # largest number of texts decoded together


def _sizes(_: click.Context, __: click.Parameter, given: str) -> tuple[int, ...]:
    sizes = tuple(int(size) if re.fullmatch(r"\d{1,3}", size) else 0 for size in given.split(","))
    if not all(1 <= size <= _MOST for size in sizes):
        raise click.UsageError(f"--batch must be numbers from 1 to {_MOST} and commas, such as 1,8,32, got {given!r}")
    return sizes


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The options of `lzs bench`."""

    model: ModelOptions
    prompt: str = opt(
        _RUNS, "-p", "--prompt", default="Once upon a time there was", metavar="TEXT", help="prompt of every text"
    )
    max_tokens: int = opt(_RUNS, "-n", "--n-predict", low=1, default=128, help="tokens per text in each round")
    rounds: int = opt(_RUNS, "--rounds", low=2, default=10, help="number of measurements")
    sizes: tuple[int, ...] = opt(
        _RUNS, "--batch", multiple=False, type=str, default="1", callback=_sizes, metavar="N,N,...",
        help="numbers of texts decoded together, 1 to 256; each number gets a row of figures",
    )  # fmt: skip
    as_json: bool = opt(_RUNS, "--json", help="print a JSON object for each batch size instead of text")
    four: bool = opt(
        _FOUR, "--four",
        help="measure a BF16 or F16 model as it is, in MXFP4 (lzs quantizes it), with a draft, and with both",
    )  # fmt: skip
    model_draft: Path | None = opt(
        _FOUR, "-md", "--model-draft", type=ModelFile(), metavar="FILE",
        help="draft model: a smaller GGUF model with the same vocabulary, or the name tale-1m",
    )  # fmt: skip
    n_max: int | None = opt(_FOUR, "--spec-draft-n-max", low=1, help="tokens drafted at a time, 1 to 32 (default: 3)")
    prompts: Path | None = opt(
        _FOUR, "--prompts", metavar="FILE", help="JSON Lines file of prompts, as for lzs eval; replaces -p"
    )
    output: Path | None = opt(_FOUR, "-o", "--output", metavar="FILE", help="also draw the figures, into FILE.svg")
    sampling: SamplingOptions
