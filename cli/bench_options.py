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
_MOST = 256  # texts decoded together


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
        _RUNS, "-p", "--prompt", default="Once upon a time there was", metavar="TEXT", help="how every text begins"
    )
    max_tokens: int = opt(_RUNS, "-n", "--n-predict", low=1, default=128, help="tokens of a text in a round")
    rounds: int = opt(_RUNS, "--rounds", low=2, default=10, help="how often the same is measured")
    sizes: tuple[int, ...] = opt(
        _RUNS, "--batch", multiple=False, type=str, default="1", callback=_sizes, metavar="N,N,...",
        help="texts decoded together, 1 to 256; a row of figures for each number",
    )  # fmt: skip
    as_json: bool = opt(_RUNS, "--json", help="print a JSON object for each batch size instead of text")
    four: bool = opt(
        _FOUR, "--four",
        help="measure the model as it is (BF16 or F16), in MXFP4, with a draft, and with both; lzs quantizes it",
    )  # fmt: skip
    model_draft: Path | None = opt(
        _FOUR, "-md", "--model-draft", type=ModelFile(), metavar="FILE",
        help="the draft: a smaller GGUF model of the same vocabulary, or the name tale-1m",
    )  # fmt: skip
    n_max: int | None = opt(_FOUR, "--spec-draft-n-max", low=1, help="tokens proposed at a time, 1 to 32 (default: 3)")
    prompts: Path | None = opt(
        _FOUR, "--prompts", metavar="FILE", help="prompts of the texts in JSON Lines, as for lzs eval, in place of -p"
    )
    output: Path | None = opt(_FOUR, "-o", "--output", metavar="FILE", help="also write a picture, FILE.svg")
    sampling: SamplingOptions
