"""`lzs bench`: what sampling costs on a model, and what the LZ penalty adds."""

import json
from dataclasses import asdict
from typing import Any

import click

from .console import console, general_options
from .help import GroupedCommand, option, options
from .options import model_options, open_model, params_from, sampling_options, whole, with_tokens

_RUNS = "Runs"

_options = options(
    option(_RUNS, "-p", "--prompt", default="Once upon a time there was", metavar="TEXT", help="how every run begins"),
    option(_RUNS, "-n", "--n-predict", **whole(1), default=128, help="tokens per run"),
    option(_RUNS, "--pairs", **whole(2), default=10, help="pairs of runs, one without LZ and one with it"),
    option(_RUNS, "--json", "as_json", is_flag=True, help="print one JSON object instead of text"),
)


@click.command(cls=GroupedCommand)
@model_options
@_options
@sampling_options
@general_options(quiet="print the four figures only, not the model and the runs")
def bench(**flags: Any) -> None:
    """Time decoding and sampling on a model, with and without the LZ penalty in turn.

    The slowdown is that of a whole token, decoding and sampling, as in Table 1 of arXiv 2504.20131.
    """
    params = params_from(flags)
    if params.lz_penalty == 0:
        raise click.UsageError("--lz-penalty must be above 0, because the runs are compared with those without it")

    from lzsampler.decoding.benchmark import benchmark
    from lzsampler.params import to_json

    with open_model(flags) as model:
        params = with_tokens(params, model.llm, flags)
        result = benchmark(model, flags["prompt"], params, tokens=flags["n_predict"], pairs=flags["pairs"])
        name, n_vocab, n_threads = model.path.name, model.n_vocab, model.n_threads
    if flags["as_json"]:
        about = {"model": name, "n_vocab": n_vocab, "n_threads": n_threads, "params": to_json(params)}
        click.echo(json.dumps({**about, **asdict(result)}))
        return
    if not console.quiet:
        threads = "1 thread" if n_threads == 1 else f"{n_threads} threads"
        click.echo(
            f"{name}: V = {n_vocab}, {threads}; {result.pairs} pairs of runs, {result.tokens} tokens per run, medians"
        )
    low, high = result.quartiles
    click.echo(
        f"decode            {result.decode_ms:10.3f} ms/token\n"
        f"sampling          {result.sampling_us:10.1f} µs/token\n"
        f"sampling with LZ  {result.sampling_lz_us:10.1f} µs/token, {100 * result.share:.2f} % of a token\n"
        f"LZ slowdown       {result.slowdown_percent:+10.2f} %       (quartiles {low:+.2f} to {high:+.2f})"
    )
