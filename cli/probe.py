"""`lzs probe`: tests what a server does with penalties, defaults and seeds."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from .console import console, general_options
from .fields import opt, takes
from .help import GroupedCommand
from .progress import progress

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from lzsampler.probing.finding import Finding, Probe

_SERVER, _OUTPUT = "Server", "Output"
_KEY = "OPENAI_API_KEY"
_SHOWN = 500  # characters of a request or an answer that -v shows
_LONGEST = 400  # characters of evidence that a row of the table shows
_COLOURS = {"yes": "green", "no": "yellow", "cannot tell": "cyan"}

_EPILOG = """\b
Exit status: 0 the server applies what was requested, and nothing else; 1 it
does not, or a check of --require has another answer than yes; 2 an error,
such as no server, or the probe could not decide for any penalty; 130 Ctrl-C.
docs/probe.md explains the checks."""


def _required(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    if given:
        from lzsampler.probing.checks import CHECKS

        for name in given:
            if name not in CHECKS:
                raise click.UsageError(f"--require takes the name of a check ({', '.join(CHECKS)}), got {name!r}")
    return given


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """The options of `lzs probe`."""

    model: str | None = opt(
        _SERVER, "--model", metavar="NAME", help="model to request (default: the first that the server lists)"
    )
    api_key: str | None = opt(
        _SERVER, "--api-key", metavar="KEY", help=f"key to send (default: the variable {_KEY}); it is never printed"
    )
    timeout: float = opt(_SERVER, "--timeout", default=60.0, metavar="SECONDS", help="the longest wait for an answer")
    endpoint: Literal["completions", "chat", "both"] = opt(
        _SERVER, "--endpoint", default="both", metavar="NAME",
        help="completions, chat or both; an endpoint that the server lacks is left out",
    )  # fmt: skip
    require: tuple[str, ...] = opt(
        _OUTPUT, "--require", callback=_required, metavar="CHECK",
        help="exit with status 1 unless the answer of CHECK is yes, such as dry_multiplier or window; repeatable",
    )  # fmt: skip
    as_json: bool = opt(_OUTPUT, "--json", help="print one JSON object instead of a table")


@click.command("probe", cls=GroupedCommand, epilog=_EPILOG)
@click.argument("url")
@takes(ProbeOptions)
@general_options(quiet="print only wrong findings", verbose="also print each request and its answer")
def probe_command(options: ProbeOptions, url: str) -> None:
    """Check what the OpenAI-compatible server at URL does with penalties, defaults and seeds.

    lzs sends a few hundred short requests and compares the texts. It checks whether the server applies each penalty,
    whether a penalty counts the prompt, and how many tokens the penalties look back. It also checks whether a seed
    repeats its text, and what the defaults are.
    """
    from lzsampler import probe

    both: tuple[Literal["completions", "chat"], ...] = ("completions", "chat")
    with progress("requests") as bar:
        found = probe(
            url,
            model=options.model,
            api_key=options.api_key or os.environ.get(_KEY) or None,
            timeout=options.timeout,
            endpoints=both if options.endpoint == "both" else (options.endpoint,),
            on_request=_show if console.verbose else None,
            on_step=bar.say,
            on_finding=None if console.shows_progress else _tell,
        )
    missing = [name for name in options.require if not _is_met(found, name)]
    if options.as_json:
        console.json(found.to_json())
    else:
        console.draw(*_parts(found, console.quiet))
    if missing:
        console.error(f"--require: the answer is not yes for {', '.join(missing)}")
    if missing or not found.ok:
        raise click.exceptions.Exit(1)
    if not found.told:
        console.error("the probe could not decide for any penalty; the evidence says why")
        raise click.exceptions.Exit(2)


def _is_met(found: "Probe", name: str) -> bool:
    endpoints = {finding.endpoint for finding in found.findings}
    met = {finding.endpoint for finding in found.findings if finding.check == name and finding.answer == "yes"}
    return met == endpoints


def _tell(finding: "Finding") -> None:
    """Print the answer of a check. It is called only if no progress bar is shown."""
    console.note(f"{finding.endpoint}, {finding.check}: {_answer(finding)}")


def _answer(finding: "Finding") -> str:
    return f"{finding.answer}{' !' if finding.wrong else ''}"


def _show(method: str, path: str, body: dict[str, Any] | None, came: str) -> None:
    from lzsampler.reports.text import visible

    asked = "" if body is None else " " + visible(json.dumps(body, ensure_ascii=False), _SHOWN)
    console.detail(f"{method} {path}{asked}")
    console.detail(f"  {visible(came, _SHOWN)}")


def _parts(found: "Probe", quiet: bool) -> Iterator["RenderableType"]:
    """Yield the findings as lines and tables; with ``quiet`` only the wrong ones."""
    from rich.text import Text

    from lzsampler.reports.text import visible

    if not quiet:
        model = "" if found.model is None else f", model {visible(found.model, 60)}"
        yield Text(f"{visible(found.url, 200)}{model}: {found.requests:,} requests")
    for endpoint in dict.fromkeys(finding.endpoint for finding in found.findings):
        shown = [f for f in found.findings if f.endpoint == endpoint and (f.wrong or not quiet)]
        if shown:
            yield Text("")
            yield Text(endpoint, "bold")
            yield _rows(shown)
    if not quiet:
        yield Text("")
        wrong = ", ".join(f"{finding.check} ({finding.endpoint})" for finding in found.wrong)
        applied = "Everything that was requested seems to be applied." if found.told else "Nothing wrong was found."
        verdict = f"Not as requested: {wrong}" if wrong else applied
        yield Text(verdict, "bold red" if wrong else "bold")


def _rows(findings: "list[Finding]") -> "Table":
    from rich.text import Text

    from lzsampler.reports.terminal import table
    from lzsampler.reports.text import visible

    rows = table()
    rows.add_column("check", no_wrap=True)
    rows.add_column("answer", no_wrap=True)
    rows.add_column("evidence")
    for finding in findings:
        style = "bold red" if finding.wrong else _COLOURS[finding.answer]
        rows.add_row(Text(finding.check), Text(_answer(finding), style), Text(visible(finding.evidence, _LONGEST)))
    return rows
