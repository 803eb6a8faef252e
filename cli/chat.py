"""`lzs generate -cnv`: a conversation on the terminal, one line for each message."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import click

from lzsampler.decoding.actions import describe
from lzsampler.util.signals import ended_by

from .console import console
from .drafts import open_draft
from .grammars import grammar_from, say_what_is_missing
from .options import is_broken, open_model
from .output import Output, figures_of, summary, transcript_of
from .progress import prompt_progress
from .sampling import with_tokens

if TYPE_CHECKING:
    from lzsampler.decoding.config import GenerationConfig
    from lzsampler.decoding.policy import LoopPolicy
    from lzsampler.llama.model import Model
    from lzsampler.params import Params

    from .generate_options import GenerateOptions

_HELP = (
    "/exit or Ctrl-D ends, /reset starts over, Ctrl-C stops an answer; a line that ends with a backslash continues in "
    "the next one"
)


def converse(params: "Params", policy: "LoopPolicy", options: "GenerateOptions", first: str | None) -> None:
    """Answer the message ``first``, if it is given, and then each message on stdin."""
    from lzsampler import LzsError
    from lzsampler.decoding.draft import warn_of_change
    from lzsampler.decoding.transcript import TranscriptFile

    with ExitStack() as stack:
        file = stack.enter_context(TranscriptFile(options.output.save)) if options.output.save else None
        model = stack.enter_context(open_model(options.model))
        params = with_tokens(params, model.llm, options.sampling)
        draft = open_draft(stack, model, options.draft, n_threads=options.model.n_threads)
        if draft is not None:  # A refused draft must raise its error before the first message.
            warn_of_change(model, draft, model.n_ctx, stacklevel=1)
        grammar = grammar_from(model, options.grammar)
        chat = _chat(model, options.config(params, policy, grammar, draft), options.prompt.system)
        if options.model.path is None:
            console.note(f"embedded model {model.path.name}; use -m FILE for another")
        if sys.stdin.isatty():
            console.note(_HELP)
        for message in _messages(first):
            if message in ("/exit", "/quit"):
                break
            if message in ("/help", "/?"):
                console.error(_HELP)
                continue
            if message in ("/reset", "/clear"):
                chat.reset()
                console.note("the conversation starts over")
                continue
            if re.fullmatch("/[a-z]+", message):
                console.error(f"there is no command {message}: {_HELP}")
                continue
            if is_broken(message):
                console.error("the message is not UTF-8 text: write it again")
                continue
            output = Output(live=not options.loops.cuts)
            try:
                with prompt_progress(model):
                    generation = chat.say(message, on_text=output.write)
            except LzsError as error:  # /reset may help, for example if the context is full.
                console.error(f"{error} (/reset begins a new conversation)")
                continue
            figures = figures_of(generation)
            turn = chat.turn
            try:
                if file is not None:  # The transcript is saved first, because printing may wait for a reader.
                    breakers = options.sampling.breakers
                    file.append(transcript_of(model, turn.messages, turn.config, generation, figures, breakers))
            finally:
                output.finish(generation.text)
            if output.error is not None:
                raise output.error
            if ended_by():
                raise KeyboardInterrupt
            for action in generation.actions:
                console.note(describe(action))
            say_what_is_missing(grammar, generation, options.grammar.scope)
            if generation.finish_reason == "context":
                console.note(f"the context of {model.n_ctx} tokens is full: /reset, or start again with a larger -c N")
            if generation.speculated is not None:
                console.detail(f"speculation: {generation.speculated}")
            console.detail(summary(generation, turn.config.params, figures))


def _chat(model: "Model", config: "GenerationConfig", system: str | None) -> Any:
    from lzsampler.decoding.chat import Chat  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return Chat(model, config, system=system)


def _messages(first: str | None) -> Iterator[str]:
    """Yield the messages: the first, then nonempty lines of stdin; a terminal shows the prompt ">"."""
    if first is not None:
        yield first
    on_terminal = sys.stdin.isatty()
    if on_terminal:
        with suppress(ImportError):
            import readline  # noqa: F401  (input() then has a history and line editing)
    lines: list[str] = []
    for line in _typed() if on_terminal else _piped():
        if line.endswith("\\"):
            lines.append(line[:-1])
            continue
        message = "\n".join([*lines, line]).strip()
        lines = []
        if message:
            yield message
    if message := "\n".join(lines).strip():
        yield message


def _typed() -> Iterator[str]:
    while True:
        try:
            line = input("> ")
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            raise
        yield line


def _piped() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise click.ClickException(f"stdin, line {number}, is not UTF-8 text: convert it first") from error
