"""`lzs cost`: measures what penalties cost on reference texts."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lzsampler._values import counted
from lzsampler.errors import ArgumentError
from lzsampler.evaluation.right_texts import ALL, SETS
from lzsampler.reports.save import COSTS, described

from .console import console, general_options
from .fields import opt, takes
from .help import GroupedCommand, ModelFile
from .limits import Limit, limits
from .options import MODEL_HELP, THREADS_HELP, refused_download
from .progress import progress

if TYPE_CHECKING:
    from lzsampler import Costs
    from lzsampler.evaluation.grid import Grid

RATES = ("cost", "lost")
_WHAT, _HOW, _OUTPUT = "What is measured", "How", "Output"
_BAD_FILES = 5  # largest number of bad files that messages name
_TABLES = tuple(f"{ending}{packed}" for ending in (".csv", ".tsv") for packed in ("", ".gz", ".zst"))
_STRANGE = 5.0  # A model that needs more nats per token does not know the text; 2 to 4 are usual for prose.


@dataclass(frozen=True, kw_only=True)
class CostOptions:
    """The options of `lzs cost`."""

    model: Path | None = opt(_WHAT, "-m", "--model", type=ModelFile(), metavar="FILE", help=MODEL_HELP)
    sets: tuple[str, ...] = opt(
        _WHAT, "--set", type=click.Choice([*SETS, ALL]), metavar="NAME",
        help=f"measure on a set of reference texts in the package: {', '.join(SETS)}, or all of them; repeatable",
    )  # fmt: skip
    grid: str = opt(
        _WHAT, "--grid", default="presets", metavar="GRID",
        help="settings to measure: presets, quick, paper, everyday, long, or a TOML file",
    )  # fmt: skip
    format: str | None = opt(
        _WHAT, "--format", metavar="NAME",
        help="read all files in this format of lzs audit (default: JSON Lines, Parquet, .zip and .eval files hold "
        "several texts, any other file holds one text)",
    )  # fmt: skip
    skip: int = opt(_WHAT, "--skip", low=0, default=64, help="leave out the first N tokens of each text")
    max_tokens: int | None = opt(_WHAT, "--max-tokens", low=2, help="read at most N tokens of each text (default: all)")
    n_ctx: int | None = opt(
        _HOW, "-c", "--ctx-size", low=0,
        help="context size in tokens; longer texts are cut into pieces; 0 is the size that the model was trained with "
        "(default: this size, but at most 4096)",
    )  # fmt: skip
    n_threads: int | None = opt(_HOW, "-t", "--threads", low=1, help=THREADS_HELP)
    outputs: tuple[Path, ...] = opt(
        _OUTPUT, "-o", "--output", metavar="FILE",
        help=f"write a report, whose type follows from the file's ending: {described(COSTS)}; repeatable",
    )  # fmt: skip
    as_json: bool = opt(_OUTPUT, "--json", help="print all figures as JSON instead of a table")
    fail_over: tuple[Limit, ...] = opt(
        _OUTPUT, "--fail-over", metavar="LIMIT", callback=limits(RATES),
        help='exit with status 1 if a setting exceeds a limit, such as "cost > 0.05" (extra nats per token), "lost > '
        '2%" (tokens that are no longer the first choice), "lz.cost > 0.1" (settings of kind lz) or "json.cost > 0.1" '
        "(texts of kind json); repeatable",
    )  # fmt: skip


_EPILOG = """\b
The kind of a text is its folder or set, or else the ending of its file.
docs/cost.md describes what is measured, and how texts are read.
\b
Exit status: 0 success; 1 a limit of --fail-over is exceeded, or a text could
not be read or scored; 2 an error; 130 Ctrl-C, after the table of what was
done."""


@click.command(cls=GroupedCommand, epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@takes(CostOptions)
@refused_download
@general_options(quiet="print the table and errors only")
def cost(options: CostOptions, paths: tuple[str, ...]) -> None:
    """Measure what penalties cost on reference texts: answers, code, JSON, logs.

    lzs scores each text as if the model had written it. The cost of a setting is how much its penalties raise the mean
    negative log likelihood (NLL) of a token, in nats.
    """
    from lzsampler.evaluation.grid import read_grid
    from lzsampler.reports.cost_terminal import costs_table
    from lzsampler.reports.save import check, save

    _check_paths(paths, options.sets)
    for output in options.outputs:
        check(output, COSTS)
        for path in map(os.path.realpath, paths):
            if os.path.realpath(output) == path or os.path.realpath(output).startswith(path + os.sep):
                raise click.UsageError(f"-o {output} would be among the texts: name a file elsewhere")
    grid = read_grid(options.grid)
    check_groups(options.fail_over, grid, paths, sets=options.sets, format=options.format)
    try:
        made = _measured(paths, grid, options)
    except KeyboardInterrupt:
        console.error("interrupted: no text was scored yet")
        raise
    if options.as_json:
        click.echo(json.dumps(made.to_json()))
    else:
        colored = console.colored(sys.stdout)
        console.print(costs_table(made, console.columns, color=colored))
        say_if_unfit(made, model=options.model, format=options.format)
    for bad in made.bad[:_BAD_FILES]:
        console.error(str(bad))
    if len(made.bad) > _BAD_FILES:
        console.error(f"... and {len(made.bad) - _BAD_FILES:,} more (--json and -o cost.json list all)")
    for output in options.outputs:  # after the table, because the disk may be full
        save(made, output)
    if made.interrupted:
        n = counted(len(made.texts), "text")
        console.error(
            f"interrupted: these are the figures of {n}; lzs cost starts over, while lzs eval --texts keeps its scores "
            "for --resume"
        )
        raise KeyboardInterrupt
    failed = [said for limit in options.fail_over for said in held(made, limit)]
    for said in failed:
        console.error(said)
    if made.bad:
        every = counted(len(made.texts) + made.short + len(made.bad), "text")
        console.error(f"{len(made.bad):,} of {every} could not be read or scored")
    if made.bad or failed:
        raise click.exceptions.Exit(1)


def check_groups(
    limits: Iterable[Limit],
    grid: "Grid",
    paths: Sequence[str],
    *,
    sets: Sequence[str] = (),
    format: str | None = None,
) -> None:
    """Raise a usage error, before the measurement, if a cost limit names a group that will not exist.

    A group is a kind of settings or a kind of texts. The texts are read only if a group is not a kind of settings.
    """
    from lzsampler.evaluation.cost_texts import read_texts

    kinds: dict[str, None] | None = None
    for limit in limits:
        if limit.group is None:
            continue
        with suppress(ValueError):
            grid.of_kind(limit.group)
            continue
        if kinds is None:
            kinds = dict.fromkeys(text.kind for text in read_texts(paths, sets=sets, format=format)[0])
        if limit.group not in kinds:
            every = ", ".join(dict.fromkeys((*grid.kinds, *kinds)))
            raise click.UsageError(f"--fail-over {limit.text}: there is no kind {limit.group}, only {every}")


def say_if_unfit(made: "Costs", *, model: Path | None, format: str | None = None) -> None:
    """Warn if the cost may mislead: with the embedded model, for texts that the model does not know, and for CSV."""
    if model is None:
        console.note("this is the cost for the embedded model, which knows only stories; use -m FILE for your model")
    tables = [text.name for text in made.texts if text.name.lower().endswith(_TABLES)]
    if tables and format is None:
        which = tables[0] if len(tables) == 1 else f"{tables[0]} and {counted(len(tables) - 1, 'more file')}"
        console.note(f"{which}: CSV is read as one text, not row by row (docs/cost.md, How texts are read)")
    if (nats := made.base().nats) > _STRANGE:
        console.note(
            f"without a penalty a token costs {nats:.1f} nats: the model does not know such texts, so for a model "
            "that knows them the cost may be quite different"
        )


def held(made: "Costs", limit: Limit) -> list[str]:
    """Return a line for each setting that exceeds a limit, with its rate, the worst first.

    Raises a usage error if the limit names a group that does not exist.
    """
    try:
        every = made.rates(limit.rate, limit.group)
    except ArgumentError as error:
        raise click.UsageError(f"--fail-over {limit.text}: {error}") from error
    over = sorted((rate, name) for name, rate in every.items() if limit.is_exceeded(rate))
    what = limit.rate if limit.group is None else f"{limit.group}.{limit.rate}"
    farthest_first = over if limit.sign in ("<", "<=") else reversed(over)
    return [limit.said(rate, f"{what} of {name}:") for rate, name in farthest_first]


def _check_paths(paths: tuple[str, ...], sets: tuple[str, ...]) -> None:
    if not paths and not sets:
        raise click.UsageError(
            "nothing to measure: give files or folders of reference texts, or a set of the package: lzs cost "
            "texts/, lzs cost --set lists"
        )
    for path in paths:
        if not os.path.lexists(path):
            raise click.UsageError(f"there is no file or folder {path}")


def _measured(paths: tuple[str, ...], grid: "Grid", options: CostOptions) -> "Costs":
    import lzsampler
    from lzsampler.models import default_model

    model = options.model or default_model()
    console.detail(f"{model}: grid {grid.name}, {counted(len(grid.settings), 'setting')}")
    with progress("characters") as bar:
        bar.say("loading the model")
        return lzsampler.cost(
            model,
            paths,
            grid=grid,
            on_progress=bar.update,
            sets=options.sets,
            skip=options.skip,
            max_tokens=options.max_tokens,
            format=options.format,
            n_ctx=options.n_ctx,
            n_threads=options.n_threads,
        )
