"""`lzs generate`: continue a prompt with a local GGUF model, answer a question, chat, or write many texts."""

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import brief, counted, noun
from lzsampler.decoding.actions import describe

from .console import console, general_options
from .drafts import check_draft, open_draft
from .fields import takes
from .generate_options import GenerateOptions
from .grammars import bytes_of, check_grammar, grammar_from, say_what_is_missing, text_of
from .help import GroupedCommand
from .options import (
    accepted_already,
    detection_from,
    is_broken,
    open_model,
    policy_from,
    refused_download,
    refused_lora,
    refused_samplers,
    unescaped,
)
from .output import Output, figures_of, for_chat, summary, transcript_of
from .progress import prompt_progress
from .sampling import params_from, with_tokens

if TYPE_CHECKING:
    from lzsampler.decoding.generation import Generation
    from lzsampler.llama.model import Model
    from lzsampler.params import Params

# Endings of files that are not JSON Lines.
_NOT_LINES = (
    ".arrow", ".csv", ".bz2", ".gguf", ".gz", ".htm", ".html", ".md", ".parquet", ".pdf", ".png", ".svg", ".tsv", ".xz",
    ".yaml", ".yml", ".zip", ".zst"
)  # fmt: skip


# The options that -h lists; --help lists all.
_COMMON = (
    "-m", "-c", "-t", "-ngl", "-f", "--chat", "-cnv", "-sys", "--prompts", "-n", "-r", "--explain", "--json", "--save",
    "--regex", "-j", "--temp", "--top-k", "--top-p", "--min-p", "-s", "--preset", "--lz-penalty", "--on-loop", "-md",
)  # fmt: skip
_EXAMPLES = """\b
Examples:
  lzs generate "Once upon a time"
  lzs generate -m model.gguf --chat "Why is the sky blue?"
  lzs generate -m model.gguf --prompts prompts.jsonl --save texts.jsonl"""


@click.command(cls=GroupedCommand, common=_COMMON, epilog=_EXAMPLES)
@click.argument("prompt", required=False)
@takes(GenerateOptions)
@refused_download
@refused_samplers
@refused_lora
@accepted_already
@general_options(quiet="print the text only, and errors")
def generate(options: GenerateOptions, prompt: str | None) -> None:
    """Continue PROMPT, by default greedily and with the LZ penalty against loops.

    The prompt may also come from -p, -f or stdin (-). lzs prints the text to stdout while the model writes it, and a
    line of figures to stderr. Ctrl-C ends the text and keeps it.
    """
    params = params_from(options.sampling, structure=options.grammar.structure, detection=detection_from(options.loops))
    policy = policy_from(options.loops)
    if prompt == "-" and options.prompt.file is None:
        prompt, options = None, replace(options, prompt=replace(options.prompt, file="-"))
    _check_modes(prompt, options)
    if options.prompt.escape:
        options = _unescaped(options)
    if options.prompt.prompts is not None:
        from .prompts import write_all

        write_all(params, policy, options, options.prompt.prompts)
        return
    if options.prompt.conversation:
        from .chat import converse

        first = prompt if prompt is not None else options.prompt.prompt_text
        converse(params, policy, options, first and options.prompt.typed(first))
        return
    text = options.prompt.typed(_prompt(prompt, options.prompt.prompt_text, options.prompt.file))
    asked = options.prompt.asked_with(text)

    from lzsampler.decoding.generate import generate as run
    from lzsampler.decoding.transcript import TranscriptFile, to_line

    output = Output(live=not (options.output.as_json or options.output.explain or options.loops.cuts))
    explainer = _Explainer()
    with ExitStack() as stack:
        file = stack.enter_context(TranscriptFile(options.output.save)) if options.output.save else None
        model = stack.enter_context(open_model(options.model))
        params = with_tokens(params, model.llm, options.sampling)
        console.detail(f"Params({', '.join(f'{name}={brief(value)}' for name, value in vars(params).items())})")
        draft = open_draft(stack, model, options.draft, n_threads=options.model.n_threads)
        grammar = grammar_from(model, options.grammar)
        config = options.config(params, policy, grammar, draft)
        with prompt_progress(model):
            explained = explainer if options.output.explain else None
            generation = run(model, asked, config, on_text=output.write, on_explanation=explained)
        figures = figures_of(generation)
        transcript = transcript_of(model, asked, config, generation, figures, options.sampling.breakers)
        try:
            if file is not None:  # The transcript is saved first, because printing may wait for a reader.
                file.append(transcript)
        finally:
            output.finish(to_line(transcript) if options.output.as_json else generation.text)
    _say_what_happened(model, generation, options)
    say_what_is_missing(grammar, generation, options.grammar.scope)
    if options.output.explain and explainer.silent:
        console.note(f"no penalty changed a likely token; {_unpenalized(params)}")
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


def _unescaped(options: GenerateOptions) -> GenerateOptions:
    """Return the options with -e applied to the system message and the stop strings."""
    system = options.prompt.system
    return replace(
        options,
        prompt=replace(options.prompt, system=None if system is None else unescaped(system)),
        limits=replace(options.limits, stop=tuple(map(unescaped, options.limits.stop))),
    )


class _Explainer:
    """Prints each `Explanation` to stderr: how penalties changed the logits of the chosen and other likely tokens."""

    def __init__(self) -> None:
        self.silent = True

    def __call__(self, step: Any) -> None:
        others = tuple(other for other in step.others if other.is_penalised)
        if others or step.token.is_penalised:
            self.silent = False
            click.echo(str(replace(step, others=others)), err=True)


def _unpenalized(params: "Params") -> str:
    if params.lz_rule == "paper" and params.lz_penalty:
        return f"the LZ penalty begins after {counted(params.lz_buffer or 0, 'token')} (--lz-buffer)"
    if params.lz_penalty:
        return f"the LZ penalty acts on repetitions of {params.lz_min_match} tokens or more (--lz-min-match)"
    if params.lz_run_penalty:
        return f"the text may copy itself for {counted(params.lz_run_allowance, 'token')} freely (--lz-run-allowance)"
    return "the LZ penalty is off"


def _check_modes(prompt: str | None, options: GenerateOptions) -> None:
    """Raise a usage error for a text that is not UTF-8, a file both read and written, or conflicting options."""
    _check_texts(prompt, options)
    check_grammar(options.grammar, on_loop=options.loops.on_loop, ignore_eos=options.limits.ignore_eos)
    if options.output.save is not None:
        _check_save(options.output.save, options)
    check_draft(options.draft)
    asked, output = options.prompt, options.output
    if options.sampler == "graph" and output.explain:
        raise click.UsageError(
            "--explain needs the model's logits, which --sampler graph does not return: leave one of them out"
        )
    if options.sampler == "graph" and asked.prompts is not None:
        raise click.UsageError("--sampler graph is for one text at a time, not for --prompts: leave one of them out")
    if asked.prompts is None:
        if asked.conversation and output.explain:
            raise click.UsageError("--explain is for one text, not for -cnv: leave one of them out")
        if asked.conversation and output.as_json:
            raise click.UsageError("--json prints one answer, but -cnv is a conversation: use --save FILE with it")
        if asked.conversation and asked.file is not None:
            raise click.UsageError("-cnv reads messages from stdin: give the first one as PROMPT instead of with -f")
        return
    others = {
        "PROMPT": prompt is not None,
        "-p": asked.prompt_text is not None,
        "-f": asked.file is not None,
        "-cnv": asked.conversation,
        "--explain": output.explain,
    }
    for name, is_given in others.items():
        if is_given:
            raise click.UsageError(f"--prompts and {name} exclude each other: give one of them")
    if output.save is None and not output.as_json:
        raise click.UsageError("--prompts needs a place for the texts: --save FILE, or --json to print them")


def _check_texts(prompt: str | None, options: GenerateOptions) -> None:
    texts: dict[str, Sequence[str | None]] = {
        "PROMPT": [prompt],
        "-p": [options.prompt.prompt_text],
        "-sys": [options.prompt.system],
        "-r": options.limits.stop,
        "--regex": [options.grammar.pattern],
        "--choice": options.grammar.texts,
        "-j": [options.grammar.schema],
        "--yaml-schema": [options.grammar.yaml],
        "--grammar": [options.grammar.gbnf],
        "--dry-sequence-breaker": options.sampling.dry_breakers,
    }
    for name, given in texts.items():
        if any(text is not None and is_broken(text) for text in given):
            raise click.UsageError(f"{name} is not UTF-8 text: convert it first")


def _check_save(path: Path, options: GenerateOptions) -> None:
    """Raise a usage error if --save names a file that is not JSON Lines, or a file that lzs also reads."""
    if str(path) == "-":
        raise click.UsageError("--save needs the name of a file; on standard output --json writes the same lines")
    if path.suffix.lower() in _NOT_LINES:
        raise click.UsageError(f"--save writes JSON Lines, not {path.suffix}: name a .jsonl file")
    read: dict[str, str | Path | None] = {
        "-f": options.prompt.file,
        "--prompts": options.prompt.prompts,
        "-j": options.grammar.schema,
        "-jf": options.grammar.schema_file,
        "--yaml-schema": options.grammar.yaml,
        "--grammar-file": options.grammar.gbnf_file,
    }
    for name, file in read.items():
        if file is not None and _is_same_file(file, path):
            raise click.UsageError(f"--save {path} would append to the file of {name}: name another file")


def _is_same_file(a: str | Path, b: str | Path) -> bool:
    return str(a) != "-" and os.path.isfile(a) and os.path.isfile(b) and os.path.samefile(a, b)


def _say_what_happened(model: "Model", generation: "Generation", options: GenerateOptions) -> None:
    if options.model.path is None:
        console.note(f"embedded model {model.path.name}; use -m FILE for another")
    if options.loops.penalty_scope == ("thinking",) and not generation.reasoning:
        console.note("this text has no thinking, so --penalty-scope thinking left it without any penalty")
    if generation.finish_reason == "context":
        console.note(f"the context of {model.n_ctx} tokens is full; -c N makes it larger")
    for action in generation.actions:
        console.note(describe(action))
    if generation.template_unused:
        console.note(for_chat("the model ended without an answer", "add --chat"))


def _prompt(*sources: str | None) -> str:
    """Return the prompt from its only source: argument, option or file, or stdin if none of them was given."""
    given = [source is not None for source in sources]
    if sum(given) > 1:
        raise click.UsageError("give the prompt once: as PROMPT, with -p or with -f")
    argument, option_text, file = sources
    text = argument if argument is not None else option_text
    if text is None:
        if file is None and sys.stdin.isatty():
            raise click.UsageError('there is no prompt: lzs generate "Once upon a time", or use -p, -f, a pipe or -cnv')
        text = text_of(bytes_of(file), "stdin" if file in (None, "-") else file)
        text = text.removesuffix("\n").removesuffix("\r")  # llama.cpp drops the last line end, too
    if not text:
        raise click.UsageError("the prompt is empty: give the beginning of a text")
    return text
