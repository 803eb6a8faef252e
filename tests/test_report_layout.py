"""The report's parts stay inside the window, on a phone and on a laptop, and no label covers a mark."""

import json
import re
from html import escape, unescape
from pathlib import Path
from random import Random

import pytest

from browsing import dom
from lzsampler import audit_files, save
from lzsampler.reports import charts as charts_module
from lzsampler.reports.charts import Mark, scatter, tradeoff

# Elements that reach out of the window of a frame, and labels that overlap a circle of a chart, each with its text.
# (Chromium's own window is never as narrow.)
MEASURE = """
addEventListener("load", () => setTimeout(() => {
  const inside = document.querySelector("iframe").contentWindow;
  const all = selector => [...inside.document.querySelectorAll(selector)];
  const range = inside.document.createRange();
  const out = all("h2,tbody td,tbody th,p,span,div,input,select,svg,text").filter(e => {
    range.selectNodeContents(e); // the text itself: it may be wider than its element
    const right = Math.max(e.getBoundingClientRect().right, range.getBoundingClientRect().right);
    return right > inside.innerWidth - 8;
  });
  const circles = all("circle").map(e => e.getBoundingClientRect());
  const over = all("text").filter(e => {
    const box = e.getBoundingClientRect();
    return circles.some(circle => {
      const x = (circle.left + circle.right) / 2, y = (circle.top + circle.bottom) / 2;
      const dx = x - Math.min(Math.max(x, box.left), box.right), dy = y - Math.min(Math.max(y, box.top), box.bottom);
      return Math.hypot(dx, dy) < circle.width / 2 - 0.5;
    });
  });
  const texts = list => list.map(e => e.textContent.trim().slice(0, 50));
  const counts = [all("td").length, all("text").length, circles.length];
  document.documentElement.dataset.out = JSON.stringify([inside.innerWidth, counts, texts(out), texts(over)]);
}, 1000));
"""
WIDE = "body { letter-spacing: .05em }"  # fonts differ: here is one that takes more room than usual


def measured(
    browser: str, page: str, width: int, folder: Path, style: str = ""
) -> tuple[list[int], list[str], list[str]]:
    """Return how many cells, labels and circles a page has, what reaches out of it, and labels over circles."""
    page = re.sub(r"<meta http-equiv=.?Content-Security-Policy[^>]*>", "", page)  # which forbids another style
    page = page.replace("</style>", f"{style}</style>", 1)
    file = folder / "measured.html"
    frame = f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{escape(page)}"></iframe>'
    file.write_text(f"<!doctype html><body>{frame}<script>{MEASURE}</script>", encoding="utf-8")
    made = dom(browser, file.as_uri(), folder / "profile")
    opening = re.search(r'<html[^>]* data-out="([^"]*)"', made)
    assert opening
    inner, counts, out, over = json.loads(unescape(opening[1]))
    assert inner == width
    return counts, out, over


@pytest.mark.parametrize("style", ["", WIDE], ids=["usual", "wide"])
@pytest.mark.parametrize("width", [390, 1366])
def test_nothing_reaches_out_of_the_window(width: int, style: str, browser: str, tmp_path: Path) -> None:
    """And no label covers a circle."""
    rows = [
        {"text": "and so on, " * 50 if number % 200 == 0 else f"text {number}", "model": model, "temperature": 0.6}
        for model in ("base-8b", "tiny-0.6b")
        for number in range(200)
    ]
    unit = "abcdefghijklmnopqrstuvwxyz" * 40
    rows += [{"text": unit[: 7**i // 5**i] * n, "model": "big"} for i in range(1, 21) for n in range(20, 2000, 90)]
    rows += [{"text": "!" * n, "model": "runs"} for n in range(1, 2000, 9)]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with audit_files(tmp_path / "runs.jsonl", by=("model", "temperature")) as found:
        save(found, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    counts, out, over = measured(browser, page, width, tmp_path, style)
    assert min(counts) > 10
    assert (out, over) == ([], [])


@pytest.mark.parametrize("width", [390, 1366])
def test_no_label_of_a_chart_covers_a_mark(width: int, browser: str, tmp_path: Path) -> None:
    """Crowded charts: loops of one character, which stand at the edge, and settings that are almost the same."""
    random = Random(1)
    charts = []
    for _ in range(8):
        loops = [(1, random.uniform(2, 300)) for _ in range(300)]
        loops += [
            (int(10 ** random.uniform(0, 3)), 10 ** random.uniform(0.4, 2)) for _ in range(random.choice([3, 300]))
        ]
        charts.append(scatter(loops))
        x, marks = 0.0, []
        for number in range(random.choice([2, 6, 12])):
            x += random.choice([0.0, 0.001, 0.02])
            marks.append(Mark(x, min(1.0, 0.2 * number), f"lz {x:.3f} and more", "title", best=random.random() < 0.7))
        charts.append(tradeoff(marks, "nats", "said"))
    style = Path(charts_module.__file__).with_name("report.css").read_text(encoding="utf-8")
    page = f"<style>{style}</style><div class=figures>{''.join(f'<figure>{chart}</figure>' for chart in charts)}</div>"
    (_, labels, circles), out, over = measured(browser, f"<!doctype html>{page}", width, tmp_path, WIDE)
    assert labels > 100
    assert circles > 200
    assert (out, over) == ([], [])
