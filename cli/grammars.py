"""The options that give a grammar, their checks, and the `Grammar` that they describe."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lzsampler.decoding.actions import ACTIONS, names
from lzsampler.errors import ArgumentError
from lzsampler.params import Structure
from lzsampler.util.files import whole, whole_of

from .console import console
from .fields import opt
from .help import refuse_given
from .options import Part

if TYPE_CHECKING:
    from lzsampler.constraint.grammar import Grammar
    from lzsampler.constraint.tokens import HasTokenBytes
    from lzsampler.decoding.generation import Generation

GRAMMAR = "Grammar (docs/grammar.md)"
ANY = "--regex, --choice, -j, -jf, --yaml-schema, --grammar or --grammar-file"


def _one(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> str | None:
    """Return the only pattern, if any. An empty pattern is refused: it may come from an unset shell variable."""
    if len(given) > 1:
        raise click.UsageError("--regex can be given once: join the patterns with |")
    if given == ("",):
        raise click.UsageError("--regex is empty, and matches only an empty text: give a pattern")
    return given[0] if given else None


@dataclass(frozen=True, kw_only=True)
class GrammarOptions:
    """Which texts to allow."""

    pattern: str | None = opt(
        GRAMMAR, "--regex", metavar="R", multiple=True, callback=_one,
        help="write only what the regular expression R matches from beginning to end",
    )  # fmt: skip
    texts: tuple[str, ...] = opt(GRAMMAR, "--choice", metavar="TEXT", help="write one of these texts; repeatable")
    schema: str | None = opt(
        GRAMMAR, "-j", "--json-schema", metavar="SCHEMA",
        help="write JSON that meets SCHEMA, which is a JSON Schema or the name of its file",
    )  # fmt: skip
    schema_file: Path | None = opt(
        GRAMMAR, "-jf", "--json-schema-file", metavar="FILE", help="write JSON that meets the JSON Schema in a file"
    )
    yaml: str | None = opt(
        GRAMMAR, "--yaml-schema", metavar="SCHEMA",
        help="write YAML whose values meet SCHEMA, which is a JSON Schema or the name of its file",
    )  # fmt: skip
    gbnf: str | None = opt(
        GRAMMAR, "--grammar", metavar="GBNF",
        help="write what this llama.cpp grammar allows; its rule root is the whole text",
    )  # fmt: skip
    gbnf_file: Path | None = opt(
        GRAMMAR, "--grammar-file", metavar="FILE", help="write what the llama.cpp grammar in a file allows"
    )
    tokenization: Literal["any", "forced", "proper"] = opt(
        GRAMMAR, "--tokenization", default="any",
        help="tokens that may spell the text. any: all tokens. forced: only the tokenizer's tokens where the grammar "
        "leaves one choice. proper: only the tokenizer's tokens everywhere",
    )  # fmt: skip

    @property
    def given(self) -> str | None:
        """The option that gives the grammar, or None; a usage error if there are two."""
        by_name = {
            "--regex": self.pattern,
            "--choice": self.texts or None,
            "-j": self.schema,
            "-jf": self.schema_file,
            "--yaml-schema": self.yaml,
            "--grammar": self.gbnf,
            "--grammar-file": self.gbnf_file,
        }
        given = [name for name, value in by_name.items() if value is not None]
        if self.texts == ("",):
            raise click.UsageError("the only --choice is an empty text: give the texts to choose from")
        if len(given) > 1:
            raise click.UsageError(f"{given[0]} and {given[1]} exclude each other: give one of them")
        if given and given[0] in ("--grammar", "--grammar-file") and self.tokenization != "any":
            raise click.UsageError(f"--tokenization is for lzsampler's own grammars: leave it out with {given[0]}")
        return given[0] if given else None


@dataclass(frozen=True, kw_only=True)
class TextGrammarOptions(GrammarOptions):
    """The grammar of a generated text: which parts it constrains, and how penalties apply under it."""

    grammar_scope: tuple[Part, ...] = opt(
        GRAMMAR, "--grammar-scope", metavar="PART",
        help="part to constrain: thinking, answer or tool (tool calls); repeatable; answer must be one of the parts. "
        "Without thinking, the grammar begins after the thinking that the chat template opens (default: all parts)",
    )  # fmt: skip
    structure: Structure = opt(
        GRAMMAR, "--structure", default="scale", metavar="WHAT",
        help="how penalties apply under a grammar: scale multiplies the penalty of a token by the share of its bytes "
        "that the grammar leaves free; free also leaves forced tokens out of the history; off does neither",
    )  # fmt: skip

    @property
    def scope(self) -> tuple[Part, ...] | None:
        """The constrained parts; None is all parts."""
        return self.grammar_scope or None


def check_grammar(options: TextGrammarOptions, *, on_loop: str, ignore_eos: bool) -> None:
    """Raise a usage error for a grammar that conflicts with other options of lzs generate."""
    name = options.given
    if name is None and options.tokenization == "forced":
        raise click.UsageError(f"--tokenization forced is about what a grammar forces: give {ANY}")
    if name is None and options.tokenization == "proper":
        name = "--tokenization proper"
    if name is None:
        refuse_given(("grammar_scope", "structure"), f"without a grammar: add {ANY}")
        return
    if ignore_eos:
        raise click.UsageError(f"--ignore-eos forbids the tokens that end a text, which {name} needs: leave it out")
    scope = options.scope
    if scope and "answer" not in scope:
        raise click.UsageError("--grammar-scope must include answer, which ends the text: add --grammar-scope answer")
    action = ACTIONS[on_loop]
    if action.writes and (scope is None or "thinking" in scope or not action.needs_template):
        raise click.UsageError(f"--on-loop {on_loop} writes what {name} may forbid: use {names('writes', False)}")


def say_what_is_missing(grammar: "Grammar | None", generation: "Generation", scope: tuple[Part, ...] | None) -> None:
    """Report that a text ends before it matches its grammar, or that its beginning or all of it is thinking."""
    if grammar is None:
        return
    if generation.reasoning and scope is None:
        console.note(
            "the model closes a thought within this text, so its beginning is thinking: add --grammar-scope answer"
            if generation.content
            else "the chat template opens a thought, so all of this text is thinking: add --grammar-scope answer"
        )
    waits = scope is not None and "thinking" not in scope
    if waits and generation.constrained == generation.text != "":
        console.note("the chat template opens no thought, so the grammar applied from the first token")
    if grammar.match(generation.constrained or "") != "yes":
        longer = ": -n N lets it be longer" if generation.finish_reason == "length" else ""
        console.note(f"the text ends before it matches the grammar{longer}")


def grammar_from(vocabulary: "HasTokenBytes", options: GrammarOptions) -> "Grammar | None":
    """Return the grammar that the options describe, for a vocabulary; None if they describe none."""
    from lzsampler.constraint.grammar import Grammar

    tokenization = options.tokenization
    if options.pattern is not None:
        return Grammar.regex(options.pattern, vocabulary, tokenization=tokenization)
    if any(given is not None for given in (options.schema, options.schema_file, options.yaml)):
        text, path = _schema(options)
        make = Grammar.json_schema if options.yaml is None else Grammar.yaml_schema
        try:
            return make(text, vocabulary, tokenization=tokenization)
        except ArgumentError as error:
            if path is not None:
                raise click.UsageError(f"{path}: {error}") from error
            if options.yaml is None:
                raise  # the error already names the flag
            raise click.UsageError(f"--yaml-schema {str(error).removeprefix('schema ')}") from error
    if options.gbnf is not None or options.gbnf_file is not None:
        name = "--grammar" if options.gbnf_file is None else str(options.gbnf_file)
        try:
            return Grammar.gbnf(_gbnf(options), vocabulary)
        except ArgumentError as error:
            hint = "; for a file there is --grammar-file" if os.path.isfile(options.gbnf or "") else ""
            raise click.UsageError(f"{name} {str(error).removeprefix('text ')}{hint}") from error
    if options.texts:
        return Grammar.choices(options.texts, vocabulary, tokenization=tokenization)
    return Grammar.proper(vocabulary) if tokenization == "proper" else None


def bytes_of(path: object) -> bytes:
    """Return the bytes of a file, or of stdin for "-" and None. Raises OSError, and LzsError for more than 1 GiB."""
    if path is None or str(path) == "-":
        return whole_of(sys.stdin.buffer, "stdin")
    return whole(str(path))


def text_of(data: bytes, where: object) -> str:
    """Return bytes as text, without a byte order mark. If they are not UTF-8, raise an error that names ``where``."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{where} is not UTF-8 text (byte {error.start}): convert it first") from error


def _gbnf(options: GrammarOptions) -> str:
    """Return the text of the llama.cpp grammar."""
    path = options.gbnf_file
    return str(options.gbnf) if path is None else text_of(whole(path), path)


def _schema(options: GrammarOptions) -> tuple[str | bytes, Path | None]:
    """Return the text of the schema, and its file if it comes from a file."""
    name, given = ("-j", options.schema) if options.yaml is None else ("--yaml-schema", options.yaml)
    if given is None:
        assert options.schema_file is not None
        return whole(options.schema_file), options.schema_file
    if given.lstrip()[:1] in ("{", "") or given in ("true", "false"):
        return given, None
    path = Path(given)
    if not os.path.exists(path):  # also False for a name that is too long for a file
        raise click.UsageError(f"{name} {given!r:.60} is neither a JSON Schema, such as {{...}}, nor a file")
    return whole(path), path
