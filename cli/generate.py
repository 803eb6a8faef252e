"""`lzs generate`: continue a prompt with a local GGUF model, answer a question, chat, or write many texts."""

import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import brief, counted, noun
from lzsampler.decoding.actions import describe, names

from .console import console, general_options
from .drafts import check_draft, open_draft
from .grammars import (
    GRAMMAR,
    bytes_of,
    check_grammar,
    grammar_from,
    grammar_options,
    say_what_is_missing,
    text_of,
)
from .help import GroupedCommand, option, options
from .options import (
    PARTS,
    asked_with,
    config_from,
    cuts,
    draft_options,
    dry_breakers,
    is_broken,
    loop_options,
    loops_from,
    model_options,
    open_model,
    params_from,
    sampling_options,
    speculation_options,
    unescaped,
    unsupported_options,
    whole,
    with_tokens,
)
from .output import Output, figures_of, for_chat, summary, transcript_of
from .progress import prompt_progress

if TYPE_CHECKING:
    from lzsampler.decoding.generation import Generation
    from lzsampler.llama.model import Model
    from lzsampler.params import Params

_PROMPT, _OUTPUT, _SAMPLING = "Prompt", "Output", "Sampling"
_FILE = click.Path(path_type=Path)
# Endings of files that hold something else than lines of JSON.
_NOT_LINES = (
    ".arrow", ".csv", ".bz2", ".gguf", ".gz", ".htm", ".html", ".md", ".parquet", ".pdf", ".png", ".svg", ".tsv", ".xz",
    ".yaml", ".yml", ".zip", ".zst"
)  # fmt: skip
_READ = {
    "-f": "prompt_file",
    "--prompts": "prompts",
    "-j": "schema",
    "-jf": "schema_file",
    "--yaml-schema": "yaml",
    "--grammar-file": "gbnf_file",
}

_options = options(
    option(_PROMPT, "-p", "--prompt", "prompt_option", metavar="TEXT", help="the same as PROMPT"),
    option(_PROMPT, "-f", "--file", "prompt_file", metavar="FILE", help="read the prompt from a text file; - is stdin"),
    option(
        _PROMPT, "--chat", "-st", "--single-turn", "chat", is_flag=True,
        help="wrap the prompt in the model's chat template and print one answer",
    ),
    option(
        _PROMPT, "-cnv/-no-cnv", "--conversation/--no-conversation", "conversation", default=False,
        help="chat on the terminal: a line is a message, an empty prompt waits for the first",
    ),
    option(
        _PROMPT, "-sys", "--system-prompt", "--system", "system", metavar="TEXT",
        help="system message; implies --chat unless -cnv is given",
    ),
    option(
        _PROMPT, "-e", "--escape/--no-escape", "escape", default=False,
        help=r"replace \n, \t, \r, \", \', \\ and \xHH in prompt, system message and -r",
    ),
    option(
        _PROMPT, "--prompts", type=_FILE, metavar="FILE",
        help='continue many prompts together: JSON Lines with "prompt" or "messages"; needs --save or --json',
    ),
    option(_PROMPT, "-np", "--parallel", "n_parallel", **whole(1), default=16, help="texts at a time with --prompts"),
    option(
        _OUTPUT, "-n", "--n-predict", "max_tokens", **whole(-1), default=512, help="most new tokens; -1 is no limit",
    ),
    option(
        _OUTPUT, "-r", "--reverse-prompt", "--stop", "stop", multiple=True, metavar="TEXT",
        help="end the text before TEXT; repeatable",
    ),
    option(
        GRAMMAR, "--grammar-scope", type=PARTS, multiple=True, metavar="PART",
        help="part of a text where the grammar holds: thinking, answer or tool (tool calls); repeatable; answer must "
        "be among them; without thinking the grammar begins behind the thinking that the chat template opens, and "
        "holds to the end (default: all parts)",
    ),
    option(
        GRAMMAR, "--no-fast-forward", is_flag=True,
        help="sample also where the grammar allows one token only, which is otherwise taken and decoded with others",
    ),
    option(
        _SAMPLING, "--sampler", type=click.Choice(["auto", "cpu", "graph"]), default="auto",
        help="where penalties and masks are applied: on the CPU, or in llama.cpp's graph, on the device that has the "
        "logits (docs/graph.md); auto is the graph where the model's last layer is on a GPU",
    ),
    option(_OUTPUT, "--ignore-eos", is_flag=True, help="go on where the model would end the text"),
    option(_OUTPUT, "--explain", is_flag=True, help="say on stderr which tokens the penalties changed, and why"),
    option(_OUTPUT, "--no-stream", is_flag=True, help="print the text when it is complete"),
    option(_OUTPUT, "--json", "as_json", is_flag=True, help="print a JSON object (docs/transcript.md) instead of text"),
    option(_OUTPUT, "--save", type=_FILE, metavar="FILE", help="append the transcript to a JSON Lines file"),
    click.option("--jinja", "--no-display-prompt", hidden=True, is_flag=True, expose_value=False),  # always so here
)  # fmt: skip


@click.command(cls=GroupedCommand)
@click.argument("prompt", required=False)
@model_options
@_options
@grammar_options
@sampling_options
@loop_options
@draft_options
@speculation_options
@unsupported_options
@general_options(quiet="print the text only, and errors")
def generate(prompt: str | None, **flags: Any) -> None:
    """Continue PROMPT (or -p, -f, stdin; - is stdin, too), by default greedily and with the LZ penalty against loops.

    The text goes to stdout as it comes, a line of figures to stderr. Ctrl-C ends it and keeps what was written.
    """
    params = params_from(flags)
    loops = loops_from(flags)
    if prompt == "-" and flags["prompt_file"] is None:
        prompt, flags["prompt_file"] = None, "-"
    _check_modes(prompt, flags)
    if flags["escape"]:
        flags["stop"] = tuple(map(unescaped, flags["stop"]))
        flags["system"] = None if flags["system"] is None else unescaped(flags["system"])
    if flags["prompts"] is not None:
        from .prompts import write_all

        write_all(params, loops, flags)
        return
    if flags["conversation"]:
        from .chat import converse

        first = prompt if prompt is not None else flags["prompt_option"]
        converse(params, loops, flags, first and unescaped(first) if flags["escape"] else first)
        return
    text = _prompt(prompt, flags["prompt_option"], flags["prompt_file"])
    text = unescaped(text) if flags["escape"] else text
    asked = asked_with(text, flags)

    from lzsampler.decoding.generate import generate as run
    from lzsampler.decoding.transcript import TranscriptFile, to_line

    output = Output(live=not any(flags[name] for name in ("as_json", "no_stream", "explain")) and not cuts(flags))
    explainer = _Explainer()
    hooks: dict[str, Any] = {"on_explanation": explainer} if flags["explain"] else {}
    with ExitStack() as stack:
        file = stack.enter_context(TranscriptFile(flags["save"])) if flags["save"] else None
        model = stack.enter_context(open_model(flags))
        params = with_tokens(params, model.llm, flags)
        console.detail(f"Params({', '.join(f'{name}={brief(value)}' for name, value in vars(params).items())})")
        shown = output.show if flags["spec_show"] else None
        draft = open_draft(stack, model, flags, on_proposed=shown)
        grammar = grammar_from(model, flags)
        config = config_from(params, loops, flags, grammar, draft)
        with prompt_progress(model):
            generation = run(model, asked, config, on_text=output.write, **hooks)
        figures = figures_of(generation)
        transcript = transcript_of(model, asked, config, generation, figures, dry_breakers(flags))
        try:
            if file is not None:  # before what may wait for a reader
                file.append(transcript)
        finally:
            output.finish(to_line(transcript) if flags["as_json"] else generation.text)
    _say_what_happened(model, generation, flags)
    say_what_is_missing(grammar, generation, flags)
    if flags["explain"] and explainer.silent:
        console.note(f"no penalty changed a token that the model liked; {_unpenalised(params)}")
    if flags["spec_show"] and not console.colored(sys.stdout):
        console.note("stdout takes no colours, which --spec-show needs: --color always writes them all the same")
    if generation.speculated is not None:
        console.note(f"speculation: {generation.speculated}")
    if generation.forced:
        were = noun(generation.forced, "was", "were")
        of = counted(generation.completion_tokens, "token")
        console.note(f"{generation.forced:,} of {of} {were} not sampled: the grammar allowed nothing else")
    console.note(summary(generation, params, figures))
    if output.error is not None:
        raise output.error
    if generation.finish_reason == "interrupted":
        raise KeyboardInterrupt


class _Explainer:
    """Prints to stderr what penalties did to the token of each `Explanation`, and to others that the model liked."""

    def __init__(self) -> None:
        self.silent = True

    def __call__(self, step: Any) -> None:
        others = tuple(other for other in step.others if other.is_penalised)
        if others or step.token.is_penalised:
            self.silent = False
            click.echo(str(replace(step, others=others)), err=True)


def _unpenalised(params: "Params") -> str:
    if params.lz_rule == "paper" and params.lz_penalty:
        return f"the LZ penalty begins after {counted(params.lz_buffer or 0, 'token')} (--lz-buffer)"
    if params.lz_penalty:
        return f"the LZ penalty is for repetitions of {params.lz_min_match} tokens or more (--lz-min-match)"
    if params.lz_run_penalty:
        return f"the text may copy itself for {counted(params.lz_run_allowance, 'token')} (--lz-run-allowance)"
    return "the LZ penalty is off"


def _check_modes(prompt: str | None, flags: dict[str, Any]) -> None:
    """Raise a usage error for a text that is not UTF-8, a file that is both read and written, or conflicting flags."""
    _check_texts(prompt, flags)
    check_grammar(flags)
    if flags["save"] is not None:
        _check_save(flags["save"], flags)
    check_draft(flags)
    if flags["sampler"] == "graph" and flags["explain"]:
        raise click.UsageError("--explain needs the model's logits, which --sampler graph keeps: leave one of them out")
    if flags["sampler"] == "graph" and flags["prompts"] is not None:
        raise click.UsageError("--sampler graph is for one text at a time, not for --prompts: leave one of them out")
    if flags["spec_show"]:
        _check_live(flags)
    if flags["prompts"] is None:
        if flags["conversation"] and flags["explain"]:
            raise click.UsageError("--explain is for one text, not for -cnv: leave one of them out")
        if flags["conversation"] and flags["as_json"]:
            raise click.UsageError("--json prints one answer, but -cnv is a conversation: use --save FILE with it")
        if flags["conversation"] and flags["prompt_file"] is not None:
            raise click.UsageError("-cnv reads messages from stdin: give the first one as PROMPT instead of with -f")
        return
    given = {
        "PROMPT": prompt,
        "-p": flags["prompt_option"],
        "-f": flags["prompt_file"],
        "-cnv": flags["conversation"] or None,
        "--explain": flags["explain"] or None,
    }
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"--prompts and {name} exclude each other: give one of them")
    if flags["save"] is None and not flags["as_json"]:
        raise click.UsageError("--prompts needs a place for the texts: --save FILE, or --json to print them")


def _check_live(flags: dict[str, Any]) -> None:
    """Raise a usage error where a text is not printed as it comes, so that its tokens cannot be shown."""
    other = {"prompts": "--prompts", "as_json": "--json", "no_stream": "--no-stream", "explain": "--explain"}
    for name, flag in other.items():
        if flags[name]:
            raise click.UsageError(
                f"--spec-show colours a text as it comes, which {flag} does not print: leave one out"
            )
    if cuts(flags):
        raise click.UsageError(
            f"--spec-show colours a text as it comes, and --on-loop {flags['on_loop']} may cut it: "
            f"use {names('cuts', False)}"
        )


def _check_texts(prompt: str | None, flags: dict[str, Any]) -> None:
    texts = {
        "PROMPT": [prompt],
        "-p": [flags["prompt_option"]],
        "-sys": [flags["system"]],
        "--stop": flags["stop"],
        "--regex": [flags["pattern"]],
        "--choice": flags["texts"],
        "-j": [flags["schema"]],
        "--yaml-schema": [flags["yaml"]],
        "--grammar": [flags["gbnf"]],
        "--exempt": flags["exempt"],
        "--dry-sequence-breaker": flags["dry_breakers"],
    }
    for name, given in texts.items():
        if any(text is not None and is_broken(text) for text in given):
            raise click.UsageError(f"{name} is not UTF-8 text: convert it first")


def _check_save(path: Path, flags: dict[str, Any]) -> None:
    """Raise a usage error for a name that promises what JSON Lines are not, and for a file that is read."""
    if str(path) == "-":
        raise click.UsageError("--save needs the name of a file; on standard output --json writes the same lines")
    if path.suffix.lower() in _NOT_LINES:
        raise click.UsageError(f"--save writes JSON Lines, which {path.suffix} does not stand for: name a .jsonl file")
    for name, field in _READ.items():
        if flags[field] is not None and _is_same_file(flags[field], path):
            raise click.UsageError(f"--save {path} would append to the file of {name}: name another file")


def _is_same_file(a: str | Path, b: str | Path) -> bool:
    return str(a) != "-" and os.path.isfile(a) and os.path.isfile(b) and os.path.samefile(a, b)


def _say_what_happened(model: "Model", generation: "Generation", flags: dict[str, Any]) -> None:
    if flags["model"] is None:
        console.note(f"embedded model {model.path.name}; use -m FILE for another")
    if flags["penalty_scope"] == ("thinking",) and not generation.reasoning:
        console.note("this text has no thinking, so --penalty-scope thinking left it without any penalty")
    if generation.finish_reason == "context":
        console.note(f"the context of {model.n_ctx} tokens is full; -c N makes it larger")
    for action in generation.actions:
        console.note(describe(action))
    if generation.template_unused:
        console.note(for_chat("the model ended without an answer", "add --chat"))


def _prompt(*sources: str | None) -> str:
    """Return the prompt of the one source that was given: argument, option, file; stdin when there is none."""
    given = [source is not None for source in sources]
    if sum(given) > 1:
        raise click.UsageError("give the prompt once: as PROMPT, with -p or with -f")
    argument, option_text, file = sources
    text = argument if argument is not None else option_text
    if text is None:
        if file is None and sys.stdin.isatty():
            raise click.UsageError('there is no prompt: lzs generate "Once upon a time", or use -p, -f, a pipe or -cnv')
        text = text_of(bytes_of(file), "stdin" if file in (None, "-") else file)
        text = text.removesuffix("\n").removesuffix("\r")  # the end of a text file's last line; llama.cpp drops it too
    if not text:
        raise click.UsageError("the prompt is empty: give the beginning of a text")
    return text
