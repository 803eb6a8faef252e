"""`lzs grammar`: checks what a grammar allows, and shows its automaton."""

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import counted
from lzsampler.reports.save import AUTOMATON, check, write

from .console import console, general_options
from .fields import opt, takes
from .grammars import ANY, GrammarOptions, bytes_of, grammar_from, text_of
from .help import GroupedCommand, ModelFile

if TYPE_CHECKING:
    from lzsampler.constraint.grammar import Grammar

_OUTPUT = "Output"
_SHOWN = 40  # largest number of characters of a text that are printed


@dataclass(frozen=True, kw_only=True)
class GrammarCommandOptions:
    """The options of `lzs grammar`."""

    grammar: GrammarOptions
    model: Path | None = opt(
        "Model", "-m", "--model", type=ModelFile(), metavar="FILE",
        help="GGUF file of the vocabulary, or the name smollm2 (default: the embedded model)",
    )  # fmt: skip
    file: Path | None = opt("Texts", "-f", "--file", metavar="FILE", help="also check the text of a file; - is stdin")
    output: Path | None = opt(_OUTPUT, "-o", "--output", metavar="FILE", help="draw a small automaton into FILE.svg")
    as_json: bool = opt(_OUTPUT, "--json", help="print one JSON object")


@click.command(cls=GroupedCommand)
@click.argument("action", type=click.Choice(["check", "show"]), metavar="check|show")
@click.argument("given", nargs=-1, metavar="[TEXT]...")
@takes(GrammarCommandOptions)
@general_options(quiet="print nothing; the exit status says whether all texts match")
def grammar(options: GrammarCommandOptions, action: str, given: tuple[str, ...]) -> None:
    """Check a grammar and texts, or show what the grammar is.

    check says whether the vocabulary can spell the grammar. It also says whether each TEXT matches, is the beginning of
    a match, or is wrong from some character on. If a TEXT matches, check splits it into tokens, each time taking the
    longest token that the grammar allows. It prints the number of tokens, and how many of them are forced: no other
    token was allowed. The exit status is 1 if a text does not match.

    show prints how many states the automaton has, how many tokens the states allow, and how many states allow only one
    token. -o draws a small automaton.
    """
    _check(action, given, options)
    from lzsampler.llama.vocabulary import Vocabulary
    from lzsampler.models import default_model

    path = options.model or default_model()
    with closing(Vocabulary(path)) as vocabulary:
        made = grammar_from(vocabulary, options.grammar)
    assert made is not None
    console.detail(f"the grammar is for the {made.vocabulary.n_vocab:,} tokens of {path}")
    if action == "show":
        _show(made, options)
        return
    texts = [*given, *([] if options.file is None else [_read(options.file)])]
    rows = [_row(made, text) for text in texts]
    if options.as_json:
        console.json({"texts": rows})
    elif not console.quiet:
        if not rows:
            click.echo("the grammar can be used; give texts to check them")
        for row in rows:
            click.echo(_line(row))
    if any(row["match"] != "yes" for row in rows):
        raise click.exceptions.Exit(1)


def _check(action: str, given: tuple[str, ...], options: GrammarCommandOptions) -> None:
    if options.grammar.given is None:
        raise click.UsageError(f"there is no grammar: give {ANY}")
    if action == "show" and options.grammar.tokenization != "any":
        raise click.UsageError(
            "lzs grammar show counts tokens of any kind: --tokenization forced and proper are for check"
        )
    if action == "show" and (given or options.file is not None):
        raise click.UsageError("lzs grammar show takes no texts: lzs grammar check does")
    if action == "check" and options.output is not None:
        raise click.UsageError("-o draws an automaton: use it with lzs grammar show")
    if options.output is not None:
        check(options.output, AUTOMATON)


def _read(path: Path) -> str:
    return text_of(bytes_of(path), path).removesuffix("\n").removesuffix("\r")


def _row(made: "Grammar", text: str) -> dict[str, Any]:
    from lzsampler.decoding.forced import forced_of

    match = made.match(text)
    row: dict[str, Any] = {"text": text, "match": match}
    if match == "no":
        good, bad = 0, len(text)  # ``good``: length of the longest beginning that can continue to a match
        while good + 1 < bad:
            middle = (good + bad) // 2
            good, bad = (good, middle) if made.match(text[:middle]) == "no" else (middle, bad)
        row["wrong_at"] = good
    counted = forced_of(made, text) if match == "yes" else None
    if counted is not None:
        row["forced"], row["tokens"] = counted
    return row


def _line(row: dict[str, Any]) -> str:
    text = _quoted(row["text"], _SHOWN)
    if row["match"] == "beginning":
        return f"beginning  {text}: a longer text can match"
    if row["match"] == "no":
        rest = _quoted(row["text"][row["wrong_at"] :], 20)
        return f"no         {text}: wrong at character {row['wrong_at']}, {rest}"
    if "tokens" not in row:
        return f"yes        {text}: tokens not counted, because the grammar does not allow its longest tokens"
    share = 100 * row["forced"] / max(row["tokens"], 1)
    return f"yes        {text}: {counted(row['tokens'], 'token')}, {row['forced']:,} forced ({share:.0f} %)"


def _quoted(text: str, longest: int) -> str:
    """Return the beginning of a text in quotes, with escapes for characters that a terminal would not show."""
    return repr(text[:longest]) + ("…" if len(text) > longest else "")


def _show(made: "Grammar", options: GrammarCommandOptions) -> None:
    from lzsampler.constraint.automaton import automaton_of

    automaton = automaton_of(made)
    if options.output is not None:
        write(options.output, AUTOMATON, automaton)
        console.note(f"picture: {options.output}")
    masks = [state.allowed for state in automaton.states]
    figures = {
        "states": len(masks),
        "complete": automaton.complete,
        "matching": sum(state.matches for state in automaton.states),
        "forced": automaton.forced,
        "mask_tokens": {"least": min(masks), "median": median(masks), "most": max(masks)},
        "n_vocab": made.vocabulary.n_vocab,
    }
    if options.as_json:
        click.echo(json.dumps(figures))
        return
    if console.quiet:
        return
    n = len(masks)
    more = "" if automaton.complete else " looked at; there are more"
    click.echo(f"states  {n:,}{more}; in {figures['matching']:,} of them the text may end")
    click.echo(
        f"masks   {min(masks):,} to {max(masks):,} of {made.vocabulary.n_vocab:,} tokens, median {median(masks):,.0f}"
    )
    forced = counted(automaton.forced, "state allows", "states allow")
    click.echo(f"forced  {forced} one token only ({100 * automaton.forced / n:.0f} %)")
