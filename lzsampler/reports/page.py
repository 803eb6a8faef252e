"""`write_page`: one page for the browser that contains everything it shows and loads nothing.

The templates (templates/*.html) escape every value that is not `Markup`. The table of samples and their texts are JSON,
which report.js shows as text (textContent), never as markup. The Content-Security-Policy allows report.js and
report.css by their hashes, and forbids everything else.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .._values import counted, noun
from ..auditing.records import RULES
from ..util.files import replacing
from ..util.json_text import json_html
from . import charts
from .text import between, count, percent, visible, whole

if TYPE_CHECKING:
    from .samples import Sample


def write_page(
    path: str | Path, template: str, *, by: Sequence[str], samples: "Sequence[Sample]", **values: Any
) -> None:
    """Write a report as one HTML file that works offline.

    ``values``: the variables of the template. ``by``: names of the columns of each sample's ``row["by"]``. LzsError if
    the file cannot be written.
    """
    from .. import __version__

    style, script = _resource("report.css"), _resource("report.js")
    data = {"by": [visible(key) for key in by], "rules": RULES, "samples": [sample.row for sample in samples]}
    page = (
        environment()
        .get_template(template)
        .stream(
            values,
            version=__version__,
            policy=_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            data=Markup(json_html(data).decode()),
            samples=samples,
            texts=(Markup(sample.page.decode()) for sample in samples),
        )
    )
    page.enable_buffering(100)
    with replacing(path) as file:
        page.dump(file, "utf-8")


@cache
def environment() -> Environment:
    """Return the environment of all templates: it shows None as a dash, and raises for a misspelt name."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters.update({
        "between": _dash(lambda interval: between(*interval)),
        "count": _dash(count),
        "median": lambda values: median(values) if values else None,
        "number": _dash(lambda n, form=",": format(n, form)),
        "percent": _dash(percent),
        "points": _points,
        "sd": _dash(lambda sd: f"{100 * sd:.2g}"),
        "visible": visible,
        "whole": _dash(whole),
    })  # fmt: skip
    made.globals.update({chart.__name__: chart for chart in charts.IN_TEMPLATES}, counted=counted, noun=noun)
    return made


def scale(values: Iterable[float]) -> float:
    """Return the end of a scale for rates: slightly more than the largest rate, at most 1."""
    return min(1.0, 1.08 * max(values, default=1.0)) or 1.0


def _dash(write: Callable[..., str]) -> Callable[..., str]:
    return lambda value, *how: "–" if value is None else write(value, *how)


def _points(share: float) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return f"{100 * share:+.1f}".replace("-", "−").replace("+0.0", "0").replace("−0.0", "0")


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> Markup:
    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    # The policy is Markup, so that its quotes are not escaped. No part of the policy comes from outside.
    return Markup(
        f"default-src 'none'; script-src {source(script)}; style-src {source(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
