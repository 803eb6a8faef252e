"""What the commands share that take a grammar: its options, their check, and `Grammar` out of them."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lzsampler.decoding.actions import ACTIONS, names
from lzsampler.errors import ArgumentError
from lzsampler.util.files import whole, whole_of

from .console import console
from .help import option, options, refuse_given

if TYPE_CHECKING:
    from lzsampler.constraint.grammar import Grammar
    from lzsampler.constraint.tokens import HasTokenBytes
    from lzsampler.decoding.generation import Generation

GRAMMAR = "Grammar (docs/grammar.md)"
_FIELDS = {
    "--regex": "pattern",
    "--choice": "texts",
    "-j": "schema",
    "-jf": "schema_file",
    "--yaml-schema": "yaml",
    "--grammar": "gbnf",
    "--grammar-file": "gbnf_file",
}

ANY = "--regex, --choice, -j, -jf, --yaml-schema, --grammar or --grammar-file"


def _one(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> str | None:
    """Return the pattern, of which there is one at most, and not an empty one, as of a variable that is not set."""
    if len(given) > 1:
        raise click.UsageError("--regex can be given once: join the patterns with |")
    if given == ("",):
        raise click.UsageError("--regex is empty, so that it matches an empty text only: give a pattern")
    return given[0] if given else None


grammar_options = options(
    option(
        GRAMMAR, "--regex", "pattern", metavar="R", multiple=True, callback=_one,
        help="write only what the regular expression R matches from beginning to end",
    ),
    option(GRAMMAR, "--choice", "texts", multiple=True, metavar="TEXT", help="write one of these texts; repeatable"),
    option(
        GRAMMAR, "-j", "--json-schema", "schema", metavar="SCHEMA",
        help="write JSON that meets this JSON Schema, or the one in a file of this name",
    ),
    option(
        GRAMMAR, "-jf", "--json-schema-file", "schema_file", type=click.Path(path_type=Path), metavar="FILE",
        help="write JSON that meets the JSON Schema in a file",
    ),
    option(
        GRAMMAR, "--yaml-schema", "yaml", metavar="SCHEMA",
        help="write YAML whose values meet this JSON Schema, or the one in a file of this name",
    ),
    option(
        GRAMMAR, "--grammar", "gbnf", metavar="GBNF",
        help="write what this grammar of llama.cpp allows, whose rule root is the whole text",
    ),
    option(
        GRAMMAR, "--grammar-file", "gbnf_file", type=click.Path(path_type=Path), metavar="FILE",
        help="write what the grammar of llama.cpp in a file allows",
    ),
    option(
        GRAMMAR, "--tokenization", type=click.Choice(["any", "forced", "proper"]), default="any",
        help="allow any tokens that spell the text, those the model's tokenizer would write where the grammar leaves "
        "no choice (forced), or only those (proper)",
    ),
)  # fmt: skip


def given_grammar(flags: Mapping[str, Any]) -> str | None:
    """Return the option of `grammar_options` that was given, or None; a usage error where there are two."""
    given = [name for name, field in _FIELDS.items() if flags[field] not in (None, ())]
    if flags["texts"] == ("",):
        raise click.UsageError("the only --choice is an empty text: give the texts to choose from")
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} exclude each other: give one of them")
    if given and given[0] in ("--grammar", "--grammar-file") and flags["tokenization"] != "any":
        raise click.UsageError(f"--tokenization is for lzsampler's own grammars: leave it out with {given[0]}")
    return given[0] if given else None


def check_grammar(flags: Mapping[str, Any]) -> None:
    """Raise a usage error for a grammar that does not go with other flags of lzs generate."""
    name = given_grammar(flags)
    if name is None and flags["tokenization"] == "forced":
        raise click.UsageError(f"--tokenization forced is about what a grammar forces: give {ANY}")
    if name is None and flags["tokenization"] == "proper":
        name = "--tokenization proper"
    if name is None:
        if flags["grammar_scope"]:
            raise click.UsageError(f"--grammar-scope has no effect without a grammar: add {ANY}")
        if flags["no_fast_forward"]:
            raise click.UsageError(f"--no-fast-forward has no effect without a grammar: add {ANY}")
        refuse_given(("structure",), f"without a grammar: add {ANY}")
        return
    if flags["no_fast_forward"] and flags["prompts"] is not None:
        raise click.UsageError(
            "--no-fast-forward has no effect with --prompts, which samples every token: leave it out"
        )
    if flags["ignore_eos"]:
        raise click.UsageError(f"--ignore-eos forbids the tokens that end a text, which {name} needs: leave it out")
    scope = flags["grammar_scope"]
    if scope and "answer" not in scope:
        raise click.UsageError("--grammar-scope must have answer, with which the text ends: add --grammar-scope answer")
    if ACTIONS[flags["on_loop"]].needs_template and (not scope or "thinking" in scope):
        raise click.UsageError(
            f"--on-loop {flags['on_loop']} writes a mark that {name} may forbid: use {names('needs_template', False)}"
        )


def say_what_is_missing(grammar: "Grammar | None", generation: "Generation", flags: Mapping[str, Any]) -> None:
    """Say that a text ends before it matches its grammar, or that it counts as thinking, as a whole or in part."""
    if grammar is not None and generation.reasoning and not flags["grammar_scope"]:
        console.note(
            "the model closes a thought within this text, so its beginning is thinking: add --grammar-scope answer"
            if generation.content
            else "the chat template opens a thought, so all of this text is thinking: add --grammar-scope answer"
        )
    waits = grammar is not None and "thinking" not in (flags["grammar_scope"] or ("thinking",))
    if waits and generation.constrained == generation.text != "":
        console.note("the chat template opens no thought, so the grammar held from the first token")
    if grammar is not None and grammar.match(generation.constrained or "") != "yes":
        longer = ": -n N lets it be longer" if generation.finish_reason == "length" else ""
        console.note(f"the text ends before it matches what was asked for{longer}")


def grammar_from(vocabulary: "HasTokenBytes", flags: Mapping[str, Any]) -> "Grammar | None":
    """Return the grammar that the flags of `grammar_options` describe, for a vocabulary; None where there is none."""
    from lzsampler.constraint.grammar import Grammar

    tokenization = flags["tokenization"]
    if flags["pattern"] is not None:
        return Grammar.regex(flags["pattern"], vocabulary, tokenization=tokenization)
    if any(flags[name] is not None for name in ("schema", "schema_file", "yaml")):
        text, path = _schema(flags)
        make = Grammar.json_schema if flags["yaml"] is None else Grammar.yaml_schema
        try:
            return make(text, vocabulary, tokenization=tokenization)
        except ArgumentError as error:
            if path is not None:
                raise click.UsageError(f"{path}: {error}") from error
            if flags["yaml"] is None:
                raise  # it names the flag
            raise click.UsageError(f"--yaml-schema {str(error).removeprefix('schema ')}") from error
    if flags["gbnf"] is not None or flags["gbnf_file"] is not None:
        name = "--grammar" if flags["gbnf_file"] is None else str(flags["gbnf_file"])
        try:
            return Grammar.gbnf(_gbnf(flags), vocabulary)
        except ArgumentError as error:
            hint = "; for a file there is --grammar-file" if os.path.isfile(flags["gbnf"] or "") else ""
            raise click.UsageError(f"{name} {str(error).removeprefix('text ')}{hint}") from error
    if flags["texts"]:
        return Grammar.choices(flags["texts"], vocabulary, tokenization=tokenization)
    return Grammar.proper(vocabulary) if tokenization == "proper" else None


def bytes_of(path: object) -> bytes:
    """Return the bytes of a file, or of stdin for "-" and None. OSError; LzsError if they do not end within 1 GiB."""
    if path is None or str(path) == "-":
        return whole_of(sys.stdin.buffer, "stdin")
    return whole(str(path))


def text_of(data: bytes, where: object) -> str:
    """Return the text of a file or of stdin, without a byte order mark; an error that names ``where`` if not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{where} is not UTF-8 text (byte {error.start}): convert it first") from error


def _gbnf(flags: Mapping[str, Any]) -> str:
    """Return the text of the grammar of llama.cpp."""
    path: Path | None = flags["gbnf_file"]
    return str(flags["gbnf"]) if path is None else text_of(whole(path), path)


def _schema(flags: Mapping[str, Any]) -> tuple[str | bytes, Path | None]:
    """Return the text of the schema, and its file if it is from one."""
    name, given = ("-j", flags["schema"]) if flags["yaml"] is None else ("--yaml-schema", flags["yaml"])
    if given is not None and (given.lstrip()[:1] in ("{", "") or given in ("true", "false")):
        return str(given), None
    path: Path = Path(given) if given is not None else flags["schema_file"]
    if given is not None and not os.path.exists(path):  # False, too, where no name can be so long
        raise click.UsageError(f"{name} {given!r:.60} is neither a JSON Schema, such as {{...}}, nor a file")
    return whole(path), path
