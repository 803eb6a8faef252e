"""`lzs spec-check`: does a draft leave the texts and the distribution of a model as they are?"""

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from .console import console, general_options
from .drafts import in_flags, open_draft_model, say_if_large, settings_of
from .help import GroupedCommand, ModelFile, option, options
from .options import model_options, open_model, whole
from .progress import progress

if TYPE_CHECKING:
    from lzsampler.decoding.spec_check import SpecCheck

_CHECK = "Check"
_DIFFERENT = 1

_options = options(
    option(
        _CHECK, "-md", "--model-draft", "model_draft", type=ModelFile(), metavar="FILE",
        help="draft model, or the name tale-1m (default: --draft lookup alone is checked)",
    ),
    option(
        _CHECK, "-n", "--n-predict", "max_tokens", **whole(2), default=64,
        help="tokens of a text, 2 to 4096; logits are compared in contexts of more than 256 tokens, too, whatever N is",
    ),
    option(_CHECK, "--runs", **whole(50), default=150, help="texts drawn for a distribution, 50 to 100,000"),
    option(_CHECK, "--json", "as_json", is_flag=True, help="print a JSON object instead of text"),
)  # fmt: skip


@click.command(cls=GroupedCommand)
@model_options
@_options
@general_options(quiet="print the verdict only")
def spec_check_command(**flags: Any) -> None:
    """Check on your own models whether a draft changes a text, and see how much of it stands.

    A story, a task and a copied passage at temperature 0 and 0.8 with the default penalty must be those without a
    draft, for blocks of 1 to 8 tokens, and the model's logits the same bits for tokens that are decoded together and
    one by one; in mode mrs short texts must have the target's distribution. --draft lookup is checked too. Exit
    status: 0 no difference found, 1 a difference, 2 an error.
    """
    from lzsampler.decoding.spec_check import spec_check

    with ExitStack() as stack:
        model = stack.enter_context(open_model(flags))
        draft = None
        if flags["model_draft"] is not None:
            draft = stack.enter_context(open_draft_model(flags, settings_of(model)))
            say_if_large(model.header, draft)
        with progress("texts") as bar:
            checked = spec_check(
                model, draft, max_tokens=flags["max_tokens"], runs=flags["runs"], on_progress=bar.update
            )
    if flags["as_json"]:
        click.echo(json.dumps({"model": model.path.name, "draft": draft and draft.path.name, **checked.to_json()}))
    else:
        if not console.quiet:
            click.echo(_table(checked))
        click.echo(in_flags(checked.verdict))
    if not checked.same:
        click.get_current_context().exit(_DIFFERENT)


def _table(checked: "SpecCheck") -> str:
    rows = ["text   draft   temp  accepted  tokens a call"]
    for row in checked.kept:
        share = "-" if row.acceptance is None else f"{100 * row.acceptance:.0f} %"
        rows.append(f"{row.text:<7}{row.draft:<7}{row.temperature:5.1f}{share:>10}{row.tokens_per_call:15.1f}")
    return "\n".join(rows)
