"""`lzs generate --prompts`: continues the prompts of a JSON Lines file together and writes a transcript of each."""

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import counted

from .console import console
from .drafts import open_draft
from .grammars import bytes_of, grammar_from
from .options import is_broken, open_model
from .output import figures_of, for_chat, transcript_of
from .progress import progress
from .sampling import with_tokens

if TYPE_CHECKING:
    from lzsampler.decoding.config import GenerationConfig
    from lzsampler.decoding.policy import LoopPolicy
    from lzsampler.params import Params

    from .generate_options import GenerateOptions, PromptOptions

_HALF = "half of a surrogate pair, such as \\ud800, which is not a character: remove it"
_MAX_NAMES = 5  # largest number of ids in a message


@dataclass(frozen=True)
class Row:
    """A prompt of the file.

    ``number``: index of the prompt, from 0. ``line``: line number in the file, from 1. ``prompt``: text or messages.
    """

    number: int
    line: int
    id: str
    prompt: str | list[dict[str, str]]


def write_all(params: "Params", policy: "LoopPolicy", options: "GenerateOptions", path: Path) -> None:
    """Write a text for every row of the file at ``path``. The transcripts have the rows' order and ids.

    Each row has its own seed, which its transcript names. After Ctrl-C the complete texts are kept. If a row fails, its
    transcript says why, and the exit status is 1.
    """
    from lzsampler.decoding.draft import Speculated
    from lzsampler.decoding.many import Request, generate_many
    from lzsampler.decoding.transcript import TranscriptFile, to_line
    from lzsampler.sampler import sequence_seed

    rows = _rows(path, options.prompt)
    save_to = options.output.save
    where = "" if save_to is None else f" to {save_to}"
    waiting: dict[int, dict[str, Any]] = {}  # finished transcripts that wait for earlier rows, by row number
    saved: dict[int, dict[str, Any]] = {}  # saved transcripts that are not printed yet, by row number
    n_texts = 0  # number of complete texts that were saved
    with ExitStack() as stack:

        def say_what_is_there(raised: type[BaseException] | None, *_: object) -> None:
            if raised is KeyboardInterrupt:
                console.error(f"interrupted: wrote {n_texts:,} of {counted(len(rows), 'text')}{where}")

        stack.push(say_what_is_there)  # called last, after the progress bar is cleared
        file = stack.enter_context(TranscriptFile(save_to)) if save_to else None

        def save(number: int) -> None:
            nonlocal n_texts
            if file is not None:
                file.append(waiting[number])
            saved[number] = waiting.pop(number)
            n_texts += saved[number]["finish_reason"] != "failed"

        def show(number: int) -> None:
            transcript = saved.pop(number)
            if options.output.as_json:
                click.echo(to_line(transcript))

        bar = stack.enter_context(progress("texts"))
        bar.say("loading the model")
        model = stack.enter_context(open_model(options.model))
        params = with_tokens(params, model.llm, options.sampling)
        draft = open_draft(stack, model, options.draft, n_threads=options.model.n_threads)
        grammar = grammar_from(model, options.grammar)
        config = options.config(params, policy, grammar, None)

        def config_of(row: Row) -> "GenerationConfig":
            return replace(config, params=replace(params, seed=sequence_seed(params.seed, row.number)))

        requests = (Request(row, row.prompt, config_of(row)) for row in rows)
        written = tokens = acted = silent = 0
        unfinished: list[Row] = []
        failed: list[tuple[Row, str]] = []
        cut = False
        speculated = Speculated()
        try:
            for request, made in generate_many(model, requests, n_parallel=options.prompt.n_parallel, draft=draft):
                row = request.id
                figures = None if isinstance(made, Exception) else figures_of(made)
                of_text = replace(request.config, draft=draft)
                transcript = transcript_of(model, row.prompt, of_text, made, figures, options.sampling.breakers)
                waiting[row.number] = {**transcript, "id": row.id}
                if isinstance(made, Exception):
                    failed.append((row, str(made)))
                else:
                    tokens += made.completion_tokens
                    acted += bool(made.actions)
                    silent += made.template_unused
                    speculated.add(made.speculated)
                    if transcript.get("grammar_match", "yes") != "yes":
                        unfinished.append(row)
                        cut |= made.finish_reason == "length"
                while written in waiting:
                    save(written)
                    show(written)
                    written += 1
                bar.update(written + len(waiting), len(rows))
        finally:
            for number in sorted(waiting):  # All texts are saved first, because printing may wait for a reader.
                save(number)
            for number in sorted(saved):
                show(number)
    if params.temperature > 0 or (acted and policy.kind.random):
        console.note(f"seed {params.seed}")
    if acted:
        console.note(f"{acted:,} of {counted(len(rows), 'text')} looped (--on-loop {options.loops.on_loop})")
    if draft is not None:
        console.note(f"speculation: {speculated}")
    if unfinished:
        some = counted(len(unfinished), "text ends before it matches", "texts end before they match")
        longer = ": -n N allows longer texts" if cut else ""
        console.note(f"{some} the grammar ({_names(unfinished)}){longer}")
    if silent:
        what = f"the model ended {silent:,} of {counted(len(rows), 'text')} without an answer"
        console.note(for_chat(what, "add --chat"))
    console.note(f"wrote {counted(n_texts, 'text')}, {counted(tokens, 'token')}{where}")
    if failed:
        first, reason = min(failed, key=lambda one: one[0].number)
        names = _names([row for row, _ in failed])
        console.error(f"{counted(len(failed), 'prompt')} failed ({names}); the first, of line {first.line}: {reason}")
        raise click.exceptions.Exit(1)


def _names(rows: list[Row]) -> str:
    """Return the ids of the first few rows of ``rows``, in the order of the file."""
    ids = [repr(row.id) for row in sorted(rows, key=lambda row: row.number)]
    more = [f"and {len(ids) - _MAX_NAMES:,} more"] if len(ids) > _MAX_NAMES else []
    return ("id " if len(ids) == 1 else "ids ") + ", ".join(ids[:_MAX_NAMES] + more)


def _rows(path: Path, how: "PromptOptions") -> list[Row]:
    """Return the rows of the file. If a row is not a prompt, raise an error that names its line."""
    data = bytes_of(path)
    rows: list[Row] = []
    ids: set[str] = set()
    for line, text in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            row = _row(len(rows), line, json.loads(text.decode("utf-8")), how)
        except UnicodeDecodeError as error:
            raise click.ClickException(
                f"{path}, line {line}: not UTF-8 (byte {error.start}): convert it first"
            ) from error
        except json.JSONDecodeError as error:
            raise click.ClickException(f"{path}, line {line}: not JSON: {error.msg} (column {error.colno})") from error
        except RecursionError as error:
            raise click.ClickException(f"{path}, line {line}: JSON that is nested too deeply") from error
        except ValueError as error:
            raise click.ClickException(f"{path}, line {line}: {error}") from error
        if row.id in ids:
            raise click.ClickException(f"{path}, line {line}: the id {row.id!r} is there twice; ids must differ")
        ids.add(row.id)
        rows.append(row)
    if not rows:
        raise click.ClickException(f"{path} has no prompts: it needs a JSON object per line")
    return rows


def _row(number: int, line: int, row: Any, how: "PromptOptions") -> Row:
    if not isinstance(row, dict) or ("prompt" in row) == ("messages" in row):
        raise ValueError('a row is an object with either "prompt" (text) or "messages" (a list)')
    given = row.get("id")
    if isinstance(given, bool) or not isinstance(given, str | int | float | None):
        raise ValueError('"id" must be a text or a number')
    name = str(line if given is None else given)
    if "messages" in row:
        messages = row["messages"]
        if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
            raise ValueError('"messages" must be a list of objects with "role" and "content", both texts')
        if any(is_broken(m[key]) for m in messages for key in ("role", "content")):
            raise ValueError(f'"messages" has {_HALF}')
        return Row(number, line, name, [{"role": m["role"], "content": m["content"]} for m in messages])
    text = row["prompt"]
    if not isinstance(text, str) or not text:
        raise ValueError('"prompt" must be a text that is not empty')
    if is_broken(text):
        raise ValueError(f'"prompt" has {_HALF}')
    return Row(number, line, name, how.asked_with(how.typed(text)))


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and isinstance(value.get("content"), str)
