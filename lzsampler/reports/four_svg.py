"""The SVG picture of `lzs bench --four`: bars for the speed of each way to run a model, beside the speeds of `ARTICLE`.

A few bars and texts need no plotting library.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from .._values import counted
from ..util.files import replacing
from .charts import tag

if TYPE_CHECKING:
    from ..quantizing.four import Four

_WIDTH, _LEFT, _RIGHT = 720, 130, 110  # pixels; the bars are between the names and the figures
_TOP, _ROW, _BAR = 96, 64, 20
# An SVG in an <img> follows the reader's light or dark setting.
_STYLE = Markup("""
text { font: 14px system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; fill: #1f2328 }
.page { fill: #ffffff; stroke: #d1d9e0 } .title { font-size: 18px; font-weight: 600 } .quiet { fill: #59636e }
.small { font-size: 12px } .strong { font-weight: 600 } .here { fill: #1f6feb } .there { fill: #c9d1d9 }
.range { stroke: #1f2328; stroke-width: 1.5 } .base { stroke: #8c959f; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .page { fill: #0d1117; stroke: #3d444d } .quiet { fill: #9198a1 } .here { fill: #4493f8 }
  .there { fill: #3d444d } .range { stroke: #e6edf3 }
}
""")


def write_picture(path: str | Path, four: "Four") -> None:
    """Write the picture; LzsError, in one line, if the file cannot be written."""
    with replacing(path) as file:
        file.write(picture(four).encode("utf-8"))


def picture(four: "Four") -> str:
    """Return the picture as SVG."""
    from ..quantizing.four import ARTICLE

    most = max(*(made.speedup[2] for made in four.ways.values()), *(high for _, high in ARTICLE.values()))
    scale = (_WIDTH - _LEFT - _RIGHT) / most
    threads = counted(four.n_threads, "thread")
    rows = [
        _text(24, 36, "Tokens a second, as a multiple of the base", "title"),
        _text(
            24, 60, f"{four.target} in {four.type} and MXFP4, draft {four.draft}, blocks of {four.n_max}, {threads}",
            "quiet",
        ),
    ]  # fmt: skip
    said = []
    for number, (name, made) in enumerate(four.ways.items()):
        y = _TOP + number * _ROW
        low, middle, high = made.speedup
        rows.append(_text(24, y + 15, name, "strong"))
        rows.append(_bar(y, middle * scale, "here"))
        if high > low:
            rows.append(_line(_LEFT + low * scale, y + _BAR / 2, _LEFT + high * scale, y + _BAR / 2, "range"))
        rows.append(_text(_LEFT + max(middle, high) * scale + 8, y + 15, f"{middle:.2f}", "strong"))
        least, greatest = ARTICLE[name]
        rows.append(_bar(y + _BAR + 4, greatest * scale, "there", 12))
        shown = f"{least:g}" if least == greatest else f"{least:g} to {greatest:g}"
        rows.append(_text(_LEFT + greatest * scale + 8, y + _BAR + 14, f"article: {shown}", "quiet small"))
        said.append(f"{name} {middle:.2f}, in the article {shown}")
    bottom = _TOP + len(four.ways) * _ROW
    rows.append(_line(_LEFT + scale, _TOP - 8, _LEFT + scale, bottom - 8, "base"))
    notes = (
        f"Medians and quartiles of {four.texts} texts in each way, without the prompt.",
        "Article: Figures 7 and 8, about; models of 7 billion weights, MXFP6, blocks of 7, an accelerator.",
    )
    rows += [_text(24, bottom + 12 + 18 * n, note, "quiet small") for n, note in enumerate(notes)]
    height = bottom + 48
    page = tag("rect", x=0.5, y=0.5, width=_WIDTH - 1, height=height - 1, rx=8, class_="page")
    return tag(
        "svg", tag("style", _STYLE), page, *rows, xmlns="http://www.w3.org/2000/svg", width=_WIDTH, height=height,
        viewBox=f"0 0 {_WIDTH} {height}", role="img", aria_label=f"Tokens a second: {'; '.join(said)}",
    ) + "\n"  # fmt: skip


def _text(x: float, y: float, text: str, kind: str) -> Markup:
    return tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", class_=kind)


def _bar(y: float, width: float, kind: str, height: float = _BAR) -> Markup:
    return tag("rect", x=_LEFT, y=f"{y:.1f}", width=f"{width:.1f}", height=height, rx=3, class_=kind)


def _line(x: float, y: float, x2: float, y2: float, kind: str) -> Markup:
    return tag("line", x1=f"{x:.1f}", y1=f"{y:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)
