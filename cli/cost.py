"""`lzs cost`: what penalties cost on texts that are right."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lzsampler._values import counted
from lzsampler.errors import ArgumentError
from lzsampler.evaluation.right_texts import ALL, SETS
from lzsampler.util.writers import COSTS, described

from .console import console, general_options
from .help import GroupedCommand, ModelFile, option, options
from .limits import Limit, limits
from .options import refused_download, whole
from .progress import progress

if TYPE_CHECKING:
    from lzsampler import Costs
    from lzsampler.evaluation.grid import Grid

RATES = ("cost", "lost")
_WHAT, _HOW, _OUTPUT = "What is measured", "How", "Output"
_FILE = click.Path(path_type=Path)
_BAD_FILES = 5  # that are named
_TABLES = tuple(f"{ending}{packed}" for ending in (".csv", ".tsv") for packed in ("", ".gz", ".zst"))
_STRANGE = 5.0  # nats a token; good models of prose have 2 to 4

_options = options(
    option(_WHAT, "-m", "--model", type=ModelFile(), metavar="FILE",
           help="GGUF model, or the name smollm2 (docs/install.md) (default: the embedded model, 8\xa0MB)"),
    refused_download,
    option(_WHAT, "--set", "sets", multiple=True, type=click.Choice([*SETS, ALL]), metavar="NAME",
           help=f"measure on a set of right texts of the package: {', '.join(SETS)}, or all of them; repeatable"),
    option(_WHAT, "--grid", default="presets", metavar="GRID",
           help="settings: presets, quick, paper, everyday, long, or a TOML file"),
    option(_WHAT, "--format", metavar="NAME",
           help="read all files by this format of lzs audit (default: only JSON Lines, Parquet, .zip and .eval hold "
           "several texts)"),
    option(_WHAT, "--skip", **whole(0), default=64, help="leave out the first N tokens of each text"),
    option(_WHAT, "--max-tokens", **whole(2), default=None, help="read at most N tokens of each text (default: all)"),
    option(_HOW, "-c", "--ctx-size", "n_ctx", **whole(0), default=None,
           help="context, tokens; longer texts are cut in pieces; 0 is all that the model was trained with "
           "(default: up to 4096)"),
    option(_HOW, "-t", "--threads", "n_threads", **whole(1), default=None,
           help="CPU threads (default: physical cores, fewer for a small model)"),
    option(_OUTPUT, "-o", "--output", "outputs", multiple=True, type=_FILE, metavar="FILE",
           help=f"write a report, chosen by the file's ending: {described(COSTS)}; repeatable"),
    option(_OUTPUT, "--json", "as_json", is_flag=True, help="print all figures as JSON instead of a table"),
    option(_OUTPUT, "--fail-if", "--fail-over", "limits", multiple=True, callback=limits(RATES), metavar="LIMIT",
           help='exit with status 1 if it holds for a setting: "cost > 0.05" (extra nats a token), "lost > 2%", '
           '"lz.cost > 0.1" (settings of kind lz), "json.cost > 0.1" (texts of kind json); repeatable'),
)  # fmt: skip

_EPILOG = """\b
The kind of a text is its folder or set, or else the ending of its file.
docs/cost.md describes what is measured, and how texts are read.
\b
Exit status: 0 success; 1 a limit of --fail-if is exceeded, or a text could
not be read or scored; 2 an error; 130 Ctrl-C, after the table of what was
done."""


@click.command(cls=GroupedCommand, epilog=_EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@_options
@general_options(quiet="print the table and errors only")
def cost(paths: tuple[str, ...], **flags: Any) -> None:
    """Measure what penalties cost on texts that are right: answers, code, JSON, logs.

    The model is given each text as if it had written it. The cost is what a token costs more with the penalties than
    without, in nats, for every setting of a grid.
    """
    from lzsampler.evaluation.grid import read_grid
    from lzsampler.util.writers import check

    _check_paths(paths, flags["sets"])
    for output in flags["outputs"]:
        check(output, COSTS)
        for path in map(os.path.realpath, paths):
            if os.path.realpath(output) == path or os.path.realpath(output).startswith(path + os.sep):
                raise click.UsageError(f"-o {output} would be among the texts: name a file elsewhere")
    grid = read_grid(flags["grid"])
    check_groups(flags["limits"], grid, paths, sets=flags["sets"], format=flags["format"])
    try:
        made = _measured(paths, grid, flags)
    except KeyboardInterrupt:
        console.error("interrupted: no text was scored yet")
        raise
    if flags["as_json"]:
        click.echo(json.dumps(made.to_json()))
    else:
        colored = console.colored(sys.stdout)
        console.print(made.table(console.columns, color=colored))
        say_if_unfit(made, flags)
    for bad in made.bad[:_BAD_FILES]:
        console.error(str(bad))
    if len(made.bad) > _BAD_FILES:
        console.error(f"... and {len(made.bad) - _BAD_FILES:,} more (--json and -o cost.json list all)")
    for output in flags["outputs"]:  # after the table, which a full disk does not take away
        made.save(output)
    if made.interrupted:
        n = counted(len(made.texts), "text")
        console.error(
            f"interrupted: these are the figures of {n}; lzs cost begins anew, while lzs eval --texts keeps its scores "
            "for --resume"
        )
        raise KeyboardInterrupt
    failed = [said for limit in flags["limits"] for said in held(made, limit)]
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
    """Raise a usage error, before all the work, for a limit of the cost of a group that will not be there.

    A group is a kind of settings or of texts; only where it is none of settings are the texts read for it.
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
            raise click.UsageError(f"--fail-if {limit.text}: there is no kind {limit.group}, only {every}")


def say_if_unfit(made: "Costs", flags: Mapping[str, Any]) -> None:
    """Say what may make the cost another one than meant: the model, texts that it does not know, or tables as texts."""
    if flags["model"] is None:
        console.note("this is the cost for the embedded model, which knows stories only; use -m FILE for yours")
    tables = [text.name for text in made.texts if text.name.lower().endswith(_TABLES)]
    if tables and flags.get("format") is None:
        which = tables[0] if len(tables) == 1 else f"{tables[0]} and {counted(len(tables) - 1, 'more file')}"
        console.note(f"{which}: CSV is read as one text, not row by row (docs/cost.md, How texts are read)")
    if (nats := made.base().nats) > _STRANGE:
        console.note(
            f"without a penalty a token costs {nats:.1f} nats: the model does not know such texts, so the cost says "
            "little about a model that does"
        )


def held(made: "Costs", limit: Limit) -> list[str]:
    """Return in words each setting for which a limit holds, with its rate, that which is farthest off first.

    Raises a usage error if it names a group that is not there.
    """
    try:
        every = made.rates(limit.rate, limit.group)
    except ArgumentError as error:
        raise click.UsageError(f"--fail-if {limit.text}: {error}") from error
    over = sorted((rate, name) for name, rate in every.items() if limit.is_exceeded(rate))
    what = limit.rate if limit.group is None else f"{limit.group}.{limit.rate}"
    farthest_first = over if limit.sign in ("<", "<=") else reversed(over)
    return [limit.said(rate, f"{what} of {name}:") for rate, name in farthest_first]


def _check_paths(paths: tuple[str, ...], sets: tuple[str, ...]) -> None:
    if not paths and not sets:
        raise click.UsageError(
            "nothing to measure: give files or folders of texts that are right, or a set of the package: lzs cost "
            "texts/, lzs cost --set lists"
        )
    for path in paths:
        if not os.path.lexists(path):
            raise click.UsageError(f"there is no file or folder {path}")


def _measured(paths: tuple[str, ...], grid: "Grid", flags: dict[str, Any]) -> "Costs":
    import lzsampler
    from lzsampler.models import default_model

    model = flags["model"] or default_model()
    console.detail(f"{model}: grid {grid.name}, {counted(len(grid.settings), 'setting')}")
    names = ("sets", "skip", "max_tokens", "format", "n_ctx", "n_threads")
    with progress("characters") as bar:
        bar.say("loading the model")
        return lzsampler.cost(model, paths, grid=grid, on_progress=bar.update, **{name: flags[name] for name in names})
