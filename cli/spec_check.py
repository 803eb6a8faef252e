"""`lzs spec-check`: checks that a draft changes neither the texts nor the distribution of a model."""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .console import console, general_options
from .drafts import in_flags, say_if_large, settings_of
from .fields import opt, takes
from .help import GroupedCommand, ModelFile
from .options import ModelOptions, open_model, refused_download
from .progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from lzsampler.decoding.spec_check import SpecCheck

_CHECK = "Check"
_DIFFERENT = 1


@dataclass(frozen=True, kw_only=True)
class SpecCheckOptions:
    """The options of `lzs spec-check`."""

    model: ModelOptions
    model_draft: Path | None = opt(
        _CHECK, "-md", "--model-draft", type=ModelFile(), metavar="FILE",
        help="draft model, or the name tale-1m (default: check only --draft lookup)",
    )  # fmt: skip
    max_tokens: int = opt(
        _CHECK, "-n", "--n-predict", low=2, default=64,
        help="tokens per text, 2 to 4096; whatever N is, logits are also compared in contexts of more than 256 tokens",
    )  # fmt: skip
    runs: int = opt(_CHECK, "--runs", low=50, default=150, help="texts drawn per distribution, 50 to 100,000")
    as_json: bool = opt(_CHECK, "--json", help="print a JSON object instead of text")


@click.command(cls=GroupedCommand)
@takes(SpecCheckOptions)
@refused_download
@general_options(quiet="print the verdict only")
def spec_check_command(options: SpecCheckOptions) -> None:
    """Check on your own models whether a draft changes a text, and how many of its tokens are accepted.

    lzs generates a story, a task and a copied passage with and without the draft, at temperature 0 and 0.8 with the
    default penalty, in blocks of 1 to 8 tokens. Logits must be the same, bit by bit, whether tokens are decoded
    together or one by one. In mode mrs, lzs compares the distribution of short texts with the target's. It also checks
    --draft lookup. Exit status: 0 no difference found, 1 a difference, 2 an error.
    """
    from lzsampler.decoding.spec_check import spec_check
    from lzsampler.llama.model import Model

    with ExitStack() as stack:
        model = stack.enter_context(open_model(options.model))
        draft = None
        if options.model_draft is not None:
            settings = settings_of(model, options.model.n_threads)
            draft = stack.enter_context(Model(options.model_draft, **settings))
            say_if_large(model.header, draft)
        with progress("texts") as bar:
            checked = spec_check(model, draft, max_tokens=options.max_tokens, runs=options.runs, on_progress=bar.update)
    if options.as_json:
        click.echo(json.dumps({"model": model.path.name, "draft": draft and draft.path.name, **checked.to_json()}))
    else:
        if not console.quiet:
            console.draw(_table(checked))
        click.echo(in_flags(checked.verdict))
    if not checked.same:
        click.get_current_context().exit(_DIFFERENT)


def _table(checked: "SpecCheck") -> "Table":
    from lzsampler.reports.terminal import table

    rows = table()
    for head in ("text", "draft"):
        rows.add_column(head)
    for head in ("temp", "accepted", "tokens a call"):
        rows.add_column(head, justify="right")
    for row in checked.kept:
        share = "-" if row.acceptance is None else f"{100 * row.acceptance:.0f} %"
        rows.add_row(row.text, row.draft, f"{row.temperature:.1f}", share, f"{row.tokens_per_call:.1f}")
    return rows
