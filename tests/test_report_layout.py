"""The report's parts stay inside the window, on a phone and on a laptop."""

import json
import re
from html import escape, unescape
from pathlib import Path

import pytest

from browsing import dom
from lzsampler import audit_files

# Elements that reach out of the window of a frame, and the text of each. (Chromium's own window is never as narrow.)
MEASURE = """
addEventListener("load", () => setTimeout(() => {
  const inside = document.querySelector("iframe").contentWindow;
  const range = inside.document.createRange();
  const out = [...inside.document.querySelectorAll("h2,tbody td,tbody th,p,span,div,input,select,svg")].filter(e => {
    range.selectNodeContents(e); // the text itself: it may be wider than its element
    const right = Math.max(e.getBoundingClientRect().right, range.getBoundingClientRect().right);
    return right > inside.innerWidth - 8;
  });
  const cells = inside.document.querySelectorAll("td").length;
  const texts = out.map(e => e.textContent.trim().slice(0, 50));
  document.documentElement.dataset.out = JSON.stringify([inside.innerWidth, cells, texts]);
}, 1000));
"""


@pytest.mark.parametrize("width", [390, 1366])
def test_nothing_reaches_out_of_the_window(width: int, browser: str, tmp_path: Path) -> None:
    rows = [
        {"text": "and so on, " * 50 if number % 200 == 0 else f"text {number}", "model": model, "temperature": 0.6}
        for model in ("base-8b", "tiny-0.6b")
        for number in range(200)
    ]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with audit_files(tmp_path / "runs.jsonl", by=("model", "temperature")) as found:
        found.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    measured = tmp_path / "measured.html"
    frame = f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{escape(page)}"></iframe>'
    measured.write_text(f"<!doctype html><body>{frame}<script>{MEASURE}</script>", encoding="utf-8")
    made = dom(browser, measured.as_uri(), tmp_path / "profile")
    opening = re.search(r'<html[^>]* data-out="([^"]*)"', made)
    assert opening
    inner, cells, out = json.loads(unescape(opening[1]))
    assert inner == width
    assert cells > 10
    assert out == []
