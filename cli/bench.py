"""`lzs bench`: what sampling costs on a model and what the LZ penalty adds, or what MXFP4 and a draft gain.

A row is printed when it is measured. rich needs all rows of a table first, so the widths are fixed by hand.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lzsampler._values import counted
from lzsampler.util.harmless import harmless

from .console import console, general_options
from .fields import opt, takes
from .four import check_options, measure
from .help import GroupedCommand, ModelFile
from .options import ModelOptions, open_model, refused_download, refused_samplers
from .sampling import SamplingOptions, params_from, with_tokens

if TYPE_CHECKING:
    from lzsampler.decoding.benchmark import Benchmark

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
    n_predict: int = opt(_RUNS, "-n", "--n-predict", low=1, default=128, help="tokens of a text in a round")
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


# What -h lists; --help lists all.
_COMMON = (
    "-m", "-c", "-t", "-ngl", "-p", "-n", "--rounds", "--batch", "--json", "--four", "-md", "--temp", "--top-k",
    "--top-p", "--min-p", "-s", "--preset", "--lz-penalty",
)  # fmt: skip


@click.command(cls=GroupedCommand, common=_COMMON)
@takes(BenchOptions)
@refused_download
@refused_samplers
@general_options(quiet="print the figures only, not the model and the runs")
def bench(options: BenchOptions) -> None:
    """Time decoding and sampling on a model, with and without the LZ penalty and with llama.cpp's own sampler chain.

    The slowdown is that of a whole token, decoding and sampling, as in Table 1 of arXiv 2504.20131; latency and tokens
    a second are those with LZ. The three ways of sampling take turns at every token.

    With --four, lzs measures four ways that take turns, --rounds texts each: what a draft and fewer bits gain here.
    """
    params = params_from(options.sampling)
    check_options(options)
    if options.four:
        measure(params, options)
        return
    if not (params.lz_penalty or params.lz_run_penalty):
        raise click.UsageError("--lz-penalty must be above 0, because the runs are compared with those without it")

    from lzsampler.decoding.benchmark import benchmark
    from lzsampler.params import to_json

    with open_model(options.model) as model:
        params = with_tokens(params, model.llm, options.sampling)
        about = {"model": model.path.name, "n_vocab": model.n_vocab, "n_threads": model.n_threads}
        if not options.as_json and not console.quiet:
            threads, tokens = counted(model.n_threads, "thread"), counted(options.n_predict, "token")
            click.echo(
                f"{harmless(model.path.name)}: V = {model.n_vocab}, {threads}; {options.rounds} rounds of {tokens} a "
                "text; medians of time"
            )
        if not options.as_json:
            click.echo(_HEAD)
        for size in options.sizes:
            result = benchmark(
                model,
                options.prompt,
                params,
                tokens=options.n_predict,
                rounds=options.rounds,
                batch=size,
            )
            if options.as_json:
                click.echo(json.dumps({**about, "params": to_json(params), **asdict(result)}))
            else:
                click.echo(_row(result))


_HEAD = """\
         latency   tokens     sampling, µs a token    LZ   LZ slowdown, %     against
batch         ms a second  no LZ     LZ  llama.cpp  adds, %   (quartiles)   llama.cpp, %"""


def _row(result: "Benchmark") -> str:
    llama = "-" if result.sampling_llama_us is None else f"{result.sampling_llama_us:.1f}"
    against = "-" if result.slowdown_llama_percent is None else f"{result.slowdown_llama_percent:+.1f}"
    low, high = result.quartiles
    slowdown = f"{result.slowdown_percent:+.1f} ({low:+.1f}, {high:+.1f})"
    return (
        f"{result.batch:5}{result.latency_ms:11.3f}{result.tokens_per_second:9.0f}{result.sampling_us:7.1f}"
        f"{result.sampling_lz_us:7.1f}{llama:>11}{result.added_percent:9.2f}  {slowdown:18}{against:>10}"
    )
