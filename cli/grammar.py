"""`lzs grammar`: check what a grammar allows, and show the automaton that it is."""

import json
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import counted
from lzsampler.reports.save import AUTOMATON, check, write

from .console import console, general_options
from .grammars import ANY, bytes_of, given_grammar, grammar_from, grammar_options, text_of
from .help import GroupedCommand, ModelFile, option, options

if TYPE_CHECKING:
    from lzsampler.constraint.grammar import Grammar

_OUTPUT = "Output"
_SHOWN = 40  # characters of a text
_FILE = click.Path(path_type=Path)

_options = options(
    option(
        "Model", "-m", "--model", type=ModelFile(), metavar="FILE",
        help="GGUF file of the vocabulary, or the name smollm2 (default: the embedded model)",
    ),
    option("Texts", "-f", "--file", type=_FILE, metavar="FILE", help="check the text of a file, too; - is stdin"),
    option(_OUTPUT, "-o", "--output", type=_FILE, metavar="FILE", help="draw a small automaton into FILE.svg"),
    option(_OUTPUT, "--json", "as_json", is_flag=True, help="print one JSON object"),
)  # fmt: skip


@click.command(cls=GroupedCommand)
@click.argument("action", type=click.Choice(["check", "show"]), metavar="check|show")
@click.argument("given", nargs=-1, metavar="[TEXT]...")
@grammar_options
@_options
@general_options(quiet="print nothing; the exit status says whether all texts match")
def grammar(action: str, given: tuple[str, ...], **flags: Any) -> None:
    """Check a grammar and texts, or show what the grammar is.

    check says whether the grammar can be used with the vocabulary and whether each TEXT matches: yes, no and from where
    on, or that it is only the beginning of one that does. A text that matches is spelled with the longest tokens that
    fit, and it says how many these are and how many of them the grammar forces. The exit status is 1 where a text does
    not match.

    show prints how many states the automaton has, how many tokens its masks allow, and in how many
    states a token is forced. -o draws a small automaton.
    """
    _check_flags(action, given, flags)
    from lzsampler.llama.vocabulary import Vocabulary
    from lzsampler.models import default_model

    path = flags["model"] or default_model()
    with closing(Vocabulary(path)) as vocabulary:
        made = grammar_from(vocabulary, flags)
    assert made is not None
    console.detail(f"the grammar is for the {made.vocabulary.n_vocab:,} tokens of {path}")
    if action == "show":
        _show(made, flags)
        return
    texts = [*given, *([] if flags["file"] is None else [_read(flags["file"])])]
    rows = [_row(made, text) for text in texts]
    if flags["as_json"]:
        console.json({"texts": rows})
    elif not console.quiet:
        if not rows:
            click.echo("the grammar can be used; give texts to check them")
        for row in rows:
            click.echo(_line(row))
    if any(row["match"] != "yes" for row in rows):
        raise click.exceptions.Exit(1)


def _check_flags(action: str, given: tuple[str, ...], flags: dict[str, Any]) -> None:
    if given_grammar(flags) is None:
        raise click.UsageError(f"there is no grammar: give {ANY}")
    if action == "show" and flags["tokenization"] != "any":
        raise click.UsageError(
            "lzs grammar show counts tokens of any kind: --tokenization forced and proper are for check"
        )
    if action == "show" and (given or flags["file"] is not None):
        raise click.UsageError("lzs grammar show takes no texts: lzs grammar check does")
    if action == "check" and flags["output"] is not None:
        raise click.UsageError("-o draws what lzs grammar show shows: use it there")
    if flags["output"] is not None:
        check(flags["output"], AUTOMATON)


def _read(path: Path) -> str:
    return text_of(bytes_of(path), path).removesuffix("\n").removesuffix("\r")


def _row(made: "Grammar", text: str) -> dict[str, Any]:
    from lzsampler.decoding.forced import forced_of

    match = made.match(text)
    row: dict[str, Any] = {"text": text, "match": match}
    if match == "no":
        good, bad = 0, len(text)  # the longest beginning that can go on
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
        return f"yes        {text}: not counted, since its longest tokens are not those of the tokenizer"
    share = 100 * row["forced"] / max(row["tokens"], 1)
    return f"yes        {text}: {counted(row['tokens'], 'token')}, {row['forced']:,} forced ({share:.0f} %)"


def _quoted(text: str, longest: int) -> str:
    """Return the beginning of a text in quotes, with escapes for what a terminal would not show as it is."""
    return repr(text[:longest]) + ("…" if len(text) > longest else "")


def _show(made: "Grammar", flags: dict[str, Any]) -> None:
    from lzsampler.constraint.automaton import automaton_of

    automaton = automaton_of(made)
    if flags["output"] is not None:
        write(flags["output"], AUTOMATON, automaton)
        console.note(f"picture: {flags['output']}")
    masks = [state.allowed for state in automaton.states]
    figures = {
        "states": len(masks),
        "complete": automaton.complete,
        "matching": sum(state.matches for state in automaton.states),
        "forced": automaton.forced,
        "mask_tokens": {"least": min(masks), "median": median(masks), "most": max(masks)},
        "n_vocab": made.vocabulary.n_vocab,
    }
    if flags["as_json"]:
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
