"""The pages: their Python blocks run as printed, the README's commands too, and every link leads somewhere.

A block is run by itself, in an empty folder. One that cannot be run, since it needs a server, say, has a comment in the
line before it that says why: ``<!-- not run: REASON -->``.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import click
import pytest

from native import ROOT

PAGES = sorted(
    path
    for folder in ("", "docs", "docs/api", "bench", "lzsampler/models", "tests/vectors")
    for path in (ROOT / folder).glob("*.md")
)
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXTRAS = {  # what a block needs, and what the test needs for it; any other missing import is an error of the page
    "lzsampler.llama": "llama_cpp",
    "lzsampler.models": "llama_cpp",
    "llama_cpp": "llama_cpp",
    "torch": "torch",
    "transformers": "transformers",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
}
PICTURES = sorted((ROOT / "docs" / "images").glob("*.svg"))


class Block(NamedTuple):
    page: str
    text: str
    reason: str  # why it is not run; "" when it is


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: str, text: str) -> list[Block]:
    found = re.findall(r"(?:^<!-- not run: (.+?) -->\n)?^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [Block(page, code, reason) for reason, code in found]


BLOCKS = [block for path in PAGES for block in blocks(name(path), path.read_text(encoding="utf-8"))]


def test_blocks_are_found() -> None:
    page = "text\n<!-- not run: a server -->\n```python\na = 1\n```\n\n```python\nb = 2\n```\n```sh\nls\n```\n"
    assert blocks("x", page) == [Block("x", "a = 1\n", "a server"), Block("x", "b = 2\n", "")]
    assert len(BLOCKS) >= 15
    everywhere = sum(path.read_text(encoding="utf-8").count("```python\n") for path in PAGES)
    assert len(BLOCKS) == everywhere


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: f"{b.page}:{b.text.splitlines()[0]}")
def test_python_block(block: Block, tmp_path: Path) -> None:
    compile(block.text, block.page, "exec")
    if block.reason:
        pytest.skip(f"not run: {block.reason}")
    for module, package in EXTRAS.items():
        if re.search(rf"\b{re.escape(module)}\b", block.text):
            pytest.importorskip(package)
    done = subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert ("print" in block.text) == bool(done.stdout.strip())
    if block.page == "docs/sampler.md":  # where the comment after each print begins with what is printed
        comments = re.findall(r"print\(.*\)  # (.*)", block.text)
        for comment, line in zip(comments, done.stdout.splitlines(), strict=True):
            assert comment.startswith(line)


COMMANDS = {  # heading of the README: files that its block leaves
    "On the command line": ["answers.jsonl"],
    "Audit what your models wrote": ["runs.jsonl", "report.html", "loops.jsonl", "summary.json"],
    "Does it work on my model?": [
        *("lzs-eval/run.json", "lzs-eval/transcripts.jsonl", "lzs-eval/timings.jsonl"),
        *("lzs-eval/results.json", "lzs-eval/report.html"),
    ],
}


@pytest.mark.parametrize("heading", COMMANDS)
def test_commands(heading: str, tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    section = README.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert all((tmp_path / name).stat().st_size for name in COMMANDS[heading])


def test_no_command_of_the_readme_is_left_out() -> None:
    sections = re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE)
    assert [heading for heading, text in sections if "```sh\n" in text] == list(COMMANDS)


def test_the_readme_is_short() -> None:
    assert README.count("\n") <= 150


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def targets(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [*re.findall(r"\]\(([^)\s]+)\)", prose), *re.findall(r'(?:src|srcset)="([^"]+)"', prose)]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "c" / "README.md"], ids=name)
def test_links(page: Path) -> None:
    """Files and headings; not what is on the web."""
    for target in targets(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert file.resolve().is_relative_to(ROOT), target
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), target


def test_the_page_of_the_command_line_has_every_option() -> None:
    """Each spelling of each option of each command stands in the table, and the table names no other."""
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = re.search(r"^## Every option\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    assert table is not None
    rows = re.findall(r"^\| (`-.*?) \| (`.*?) \| .*\|$", table[1], re.MULTILINE)
    listed: dict[str, set[str]] = {}
    for names, commands in rows:
        for command in re.findall(r"`(.*?)`", commands):
            listed.setdefault(command, set()).update(re.findall(r"`(.*?)`", names))
    main = importlib.import_module("lzsampler.cli.main")
    there: dict[str, set[str]] = {}
    for command in main.COMMANDS:
        for option in main.lzs.get_command(None, command).params:
            if isinstance(option, click.Option) and not option.hidden:
                there.setdefault(command, set()).update((*option.opts, *option.secondary_opts))
    assert listed == there


@pytest.mark.parametrize("picture", PICTURES, ids=name)
def test_pictures_stand_alone(picture: Path) -> None:
    """Well-formed, for light and dark surroundings, described, and nothing is fetched or run."""
    text = picture.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.get("aria-label")
    assert "prefers-color-scheme: dark" in text
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {"svg", "style", "rect", "line", "text"}
    assert not re.search(r"url\(|@import|href", text)


def test_the_picture_shows_the_demo() -> None:
    """What it says beside each text: the model loops without the penalty and not with it."""
    label = ElementTree.fromstring((ROOT / "docs/images/comparison.svg").read_text(encoding="utf-8")).get("aria-label")
    assert re.search(r"Without a penalty: a loop: \d+ characters, \d+ times; .*: \d+ tokens, no loop$", label or "")


def test_a_package_index_gets_no_link_that_leads_nowhere() -> None:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "pages.py")
    assert spec
    assert spec.loader
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    page = site.index_page(README)
    assert page.startswith("# lzsampler\n")
    assert "arxiv.org" in page
    assert all(target.startswith("https://") for target in targets(page))
    assert "<img" not in page
    assert "<picture" not in page
    assert '\n    pip install "lzsampler[llama]"\n' in page
    assert blocks("", page) == blocks("", README)
    assert site.relinked("a [b [c]](d.md#e) `[f](g)` ![h](i.png)", {"d.md": "x/d.md"}.get) == "a [b [c]](x/d.md#e) `f` "
