"""`lzs bench`: measures the time of sampling and of the LZ penalty, or the speedup by MXFP4 and a draft.

The table has fixed widths, because each row is printed as soon as it is measured.
"""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lzsampler._values import counted
from lzsampler.util.harmless import harmless

from .bench_options import BenchOptions
from .console import console, general_options
from .fields import takes
from .four import check_options, measure
from .help import GroupedCommand
from .options import open_model, refused_download, refused_samplers
from .sampling import params_from, with_tokens

if TYPE_CHECKING:
    from lzsampler.decoding.benchmark import Benchmark

# The options that -h lists; --help lists all.
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

    The slowdown is measured over a whole token (decoding and sampling), as in Table 1 of arXiv 2504.20131. Latency and
    tokens per second are measured with LZ. Sampling without LZ, with LZ and by llama.cpp alternate at every token.

    With --four, lzs compares four configurations: the model as it is, in MXFP4, with a draft, and with both. They
    alternate for --rounds texts each.
    """
    params = params_from(options.sampling)
    check_options(options)
    if options.four:
        measure(params, options)
        return
    if not (params.lz_penalty or params.lz_run_penalty):
        raise click.UsageError("--lz-penalty must be above 0, because lzs compares runs with and without the penalty")

    from lzsampler.decoding.benchmark import benchmark
    from lzsampler.params import to_json

    with open_model(options.model) as model:
        params = with_tokens(params, model.llm, options.sampling)
        about = {"model": model.path.name, "n_vocab": model.n_vocab, "n_threads": model.n_threads}
        if not options.as_json and not console.quiet:
            threads, tokens = counted(model.n_threads, "thread"), counted(options.max_tokens, "token")
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
                tokens=options.max_tokens,
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
