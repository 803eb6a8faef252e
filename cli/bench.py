"""`lzs bench`: what sampling costs on a model and what the LZ penalty adds, or what MXFP4 and a draft gain."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import counted
from lzsampler.util.harmless import harmless

from .console import console, general_options
from .four import check_flags, measure
from .help import GroupedCommand, ModelFile, option, options, refuse_given
from .options import model_options, open_model, params_from, sampling_options, whole, with_tokens

if TYPE_CHECKING:
    from lzsampler.decoding.benchmark import Benchmark

_RUNS, _FOUR = "Runs", "Speculative decoding and microscaling (docs/speculative.md)"
_MOST = 256  # texts decoded together


def _sizes(_: click.Context, __: click.Parameter, given: str) -> list[int]:
    sizes = [int(size) if re.fullmatch(r"\d{1,3}", size) else 0 for size in given.split(",")]
    if not all(1 <= size <= _MOST for size in sizes):
        raise click.UsageError(f"--batch must be numbers from 1 to {_MOST} and commas, such as 1,8,32, got {given!r}")
    return sizes


_options = options(
    option(_RUNS, "-p", "--prompt", default="Once upon a time there was", metavar="TEXT", help="how every text begins"),
    option(_RUNS, "-n", "--n-predict", "max_tokens", **whole(1), default=128, help="tokens of a text in a round"),
    option(_RUNS, "--rounds", **whole(2), default=10, help="how often the same is measured"),
    option(_RUNS, "--batch", "sizes", default="1", callback=_sizes, metavar="N,N,...",
           help="texts decoded together, 1 to 256; a row of figures for each number"),
    option(_RUNS, "--cpu-time", is_flag=True,
           help="count the time that lzs computes, not the time that passes: for a busy machine; needs -t\xa01"),
    option(_RUNS, "--json", "as_json", is_flag=True, help="print a JSON object for each batch size instead of text"),
    option(_FOUR, "--four", is_flag=True,
           help="measure the model as it is (BF16 or F16), in MXFP4, with a draft, and with both; quantizes by itself"),
    option(_FOUR, "-md", "--model-draft", "model_draft", type=ModelFile(), metavar="FILE",
           help="the draft: a smaller GGUF model of the same vocabulary, or the name tale-1m"),
    option(_FOUR, "--spec-draft-n-max", "n_max", **whole(1), default=None,
           help="tokens proposed at a time, 1 to 32 (default: 3)"),
    option(_FOUR, "--prompts", type=click.Path(path_type=Path), metavar="FILE",
           help="prompts of the texts in JSON Lines, as for lzs eval, in place of -p"),
    option(_FOUR, "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="also a picture, FILE.svg"),
)  # fmt: skip


@click.command(cls=GroupedCommand)
@model_options
@_options
@sampling_options
@general_options(quiet="print the figures only, not the model and the runs")
def bench(**flags: Any) -> None:
    """Time decoding and sampling on a model, with and without the LZ penalty and with llama.cpp's own sampler chain.

    The slowdown is that of a whole token, decoding and sampling, as in Table 1 of arXiv 2504.20131; latency and tokens
    a second are those with LZ. The three ways of sampling take turns at every token.

    With --four, texts are written in four ways that take turns, --rounds texts in each: this shows what a draft and
    fewer bits gain on this machine.
    """
    params = params_from(flags)
    refuse_given(("structure",), "in lzs bench, whose texts have no grammar: leave it out")
    check_flags(flags)
    if flags["four"]:
        measure(params, flags)
        return
    if not (params.lz_penalty or params.lz_run_penalty):
        raise click.UsageError("--lz-penalty must be above 0, because the runs are compared with those without it")

    from lzsampler.decoding.benchmark import benchmark
    from lzsampler.params import to_json

    if flags["cpu_time"] and flags["n_threads"] != 1:
        raise click.UsageError("--cpu-time needs -t 1, because the times of several threads would add up")
    with open_model(flags) as model:
        params = with_tokens(params, model.llm, flags)
        about = {"model": model.path.name, "n_vocab": model.n_vocab, "n_threads": model.n_threads}
        if not flags["as_json"] and not console.quiet:
            threads, tokens = counted(model.n_threads, "thread"), counted(flags["max_tokens"], "token")
            click.echo(
                f"{harmless(model.path.name)}: V = {model.n_vocab}, {threads}; {flags['rounds']} rounds of {tokens} a "
                f"text; medians of {'CPU time' if flags['cpu_time'] else 'time'}"
            )
        if not flags["as_json"]:
            click.echo(_HEAD)
        for size in flags["sizes"]:
            result = benchmark(
                model,
                flags["prompt"],
                params,
                tokens=flags["max_tokens"],
                rounds=flags["rounds"],
                batch=size,
                cpu_time=flags["cpu_time"],
            )
            if flags["as_json"]:
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
