"""`lzs bench`: what sampling costs on a model, and what the LZ penalty adds."""

import json
from dataclasses import asdict
from typing import Any

import click

from .help import GroupedCommand, option, options
from .options import count, model_options, params_from, sampling_options, with_tokens

_RUNS = "Runs"

_options = options(
    option(_RUNS, "-p", "--prompt", default="Once upon a time there was", metavar="TEXT", help="how every run begins"),
    option(_RUNS, "-n", "--n-predict", **count(1), default=128, help="tokens a run"),
    option(_RUNS, "--pairs", **count(2), default=10, help="pairs of runs, without LZ and with it"),
    option(_RUNS, "--json", "as_json", is_flag=True, help="print one JSON object instead"),
)


@click.command(cls=GroupedCommand, short_help="Measure what sampling and the LZ penalty cost.")
@model_options
@_options
@sampling_options
def bench(**flags: Any) -> None:
    """Time decoding and sampling on a model, with and without the LZ penalty in turn.

    The slowdown is that of a whole token, decode and sampling, as in the paper's Table 1.
    """
    params = params_from(flags)
    if params.lz_penalty == 0:
        raise click.UsageError("--lz-penalty must be above 0: the bench compares with it off")

    from lzsampler.decoding.benchmark import benchmark
    from lzsampler.llama.model import Model
    from lzsampler.models import default_model
    from lzsampler.params import to_json

    path = flags["model"] or default_model()
    settings = {name: flags[name] for name in ("n_ctx", "n_batch", "n_threads", "n_gpu_layers")}
    with Model(path, **settings) as model:
        params = with_tokens(params, model.llm, flags)
        result = benchmark(model, flags["prompt"], params, tokens=flags["n_predict"], pairs=flags["pairs"])
        n_vocab, n_threads = model.n_vocab, model.n_threads
    if flags["as_json"]:
        about = {"model": path.name, "n_vocab": n_vocab, "n_threads": n_threads, "params": to_json(params)}
        click.echo(json.dumps({**about, **asdict(result)}))
        return
    low, high = result.quartiles
    click.echo(
        f"{path.name}: V = {n_vocab}, {n_threads} threads; {result.pairs} pairs of runs, {result.tokens} tokens each\n"
        f"decode            {result.decode_ms:10.3f} ms/token\n"
        f"sampling          {result.sampling_us:10.1f} µs/token\n"
        f"sampling with LZ  {result.sampling_lz_us:10.1f} µs/token, {100 * result.share:.2f} % of a token\n"
        f"LZ slowdown       {result.slowdown_percent:+10.2f} %       (quartiles {low:+.2f} to {high:+.2f})"
    )
