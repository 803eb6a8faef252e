"""`lzs generate`: continue a prompt with a local GGUF model."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from .help import GroupedCommand, option, options
from .options import count, dry_breakers, loop_options, model_options, params_from, sampling_options, with_tokens
from .output import Output, loop_line, summary

_PROMPT, _OUTPUT = "Prompt", "Output"

_options = options(
    option(_PROMPT, "-p", "--prompt", "prompt_option", metavar="TEXT", help="the same as PROMPT"),
    option(_PROMPT, "-f", "--file", "prompt_file", metavar="FILE", help="read it from a UTF-8 file; - is stdin"),
    option(_PROMPT, "--chat", is_flag=True, help="a question to the model's chat template"),
    option(_PROMPT, "--system", metavar="TEXT", help="system message of the chat"),
    option(_OUTPUT, "-n", "--n-predict", **count(-1), default=512, help="most new tokens; -1 is no limit"),
    option(_OUTPUT, "--stop", multiple=True, metavar="TEXT", help="end before TEXT; may be repeated"),
    option(_OUTPUT, "--no-stream", is_flag=True, help="print the text when it is complete"),
    option(_OUTPUT, "--json", "as_json", is_flag=True, help="print one JSON object (docs/transcript.md) instead"),
    option(_OUTPUT, "--save", type=click.Path(path_type=Path), metavar="FILE", help="append a transcript (JSONL)"),
)


@click.command(cls=GroupedCommand, short_help="Continue a prompt without loops.")
@click.argument("prompt", required=False)
@model_options
@_options
@sampling_options
@loop_options
def generate(prompt: str | None, **flags: Any) -> None:
    """Continue PROMPT (or -p, -f, stdin) greedily, with the LZ penalty against loops.

    The text goes to stdout as it comes, a summary with repetition figures to stderr. Ctrl-C keeps what was written.
    """
    params = params_from(flags)
    if flags["trim_loop"] and params.repetition_detection is None:
        raise click.UsageError("--trim-loop cuts a text that was ended for its loop: add --stop-on-loop")
    text = _prompt(prompt, flags.pop("prompt_option"), flags.pop("prompt_file"))
    if flags["system"] is not None and not flags["chat"]:
        raise click.UsageError("--system is part of a chat: add --chat")
    system = [] if flags["system"] is None else [{"role": "system", "content": flags["system"]}]
    asked = [*system, {"role": "user", "content": text}] if flags["chat"] else text

    from lzsampler.auditing.repetition import repetition
    from lzsampler.decoding.generate import generate as run
    from lzsampler.decoding.transcript import TranscriptFile, record, to_line
    from lzsampler.llama.model import Model
    from lzsampler.models import default_model

    path = flags["model"] or default_model()
    output = Output(live=not (flags["as_json"] or flags["no_stream"] or flags["trim_loop"]))
    settings = {name: flags[name] for name in ("n_ctx", "n_batch", "n_threads", "n_gpu_layers")}
    limits: dict[str, Any] = {name: flags[name] for name in ("n_predict", "stop", "trim_loop")}
    with TranscriptFile(flags["save"]) if flags["save"] else nullcontext() as file, Model(path, **settings) as model:
        params = with_tokens(params, model.llm, flags)
        generation = run(model, asked, params, on_text=output.write, **limits)
        breakers = dry_breakers(params, flags)
        figures = repetition(generation.text)
        transcript = record(model, asked, params, generation, figures.to_json(), **limits, dry_breakers=breakers)
        output.finish(to_line(transcript) if flags["as_json"] else generation.text)
        if file is not None:
            file.append(transcript)
    if flags["model"] is None:
        click.echo(f"lzs: embedded model {path.name} (-m FILE for yours)", err=True)
    if generation.finish_reason == "context":
        click.echo(f"lzs: the context of {model.n_ctx} tokens is full (-c N for more)", err=True)
    if generation.loop is not None:
        click.echo(f"lzs: {loop_line(generation.loop, trimmed=flags['trim_loop'])}", err=True)
    click.echo(f"lzs: {summary(generation, params, figures)}", err=True)
    if output.error is not None:
        raise output.error
    if generation.finish_reason == "interrupted":
        raise KeyboardInterrupt


def _prompt(*sources: str | None) -> str:
    """Return the prompt of the one source that was given: argument, option, file; stdin when there is none."""
    given = [source is not None for source in sources]
    if sum(given) > 1:
        raise click.UsageError("give the prompt once: as PROMPT, with -p or with -f")
    argument, option_text, file = sources
    text = argument if argument is not None else option_text
    if text is None:
        if file is None and sys.stdin.isatty():
            raise click.UsageError('no prompt: lzs generate "Once upon a time", or -p, -f, or pipe it in')
        from_stdin = file in (None, "-")
        data = sys.stdin.buffer.read() if from_stdin else Path(str(file)).read_bytes()
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            where = "stdin" if from_stdin else file
            raise click.UsageError(f"{where} is not UTF-8 text (byte {error.start}): convert it first") from error
        text = text.removesuffix("\n").removesuffix("\r")  # the end of a text file's last line; llama.cpp drops it too
    if not text:
        raise click.UsageError("the prompt is empty: give the beginning of a text")
    return text
