"""The words of the source: sentences that a reader takes in at once."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(path for folder in ("lzsampler", "cli") for path in (ROOT / folder).rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
SOURCES = sorted(path for path in (ROOT / "c").rglob("*") if path.suffix in (".c", ".h", ".cu"))
MOST_WORDS = 25  # of a sentence in the first paragraph of a docstring
STRANGE = re.compile(r"\b(?:again and again|all the same[.,:;*)|]|(?:is|are) told|dearer)", re.IGNORECASE)


def sentences(docstring: str) -> list[str]:
    """Split the first paragraph; code and what stands in brackets count as one word or none."""
    text = re.sub(r"``[^`]*``|`[^`]*`", "x", docstring.split("\n\n")[0])
    text = re.sub(r"\((?:[^()]|\([^()]*\))*\)", "", text)
    return re.split(r"(?<=[.!?])\s+", text)


def test_the_split_is_right() -> None:
    assert sentences("Return `a b c` (or (not) that). Raise\nit.\n\nMore.") == ["Return x .", "Raise\nit."]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_first_paragraphs_have_short_sentences(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for sentence in sentences(ast.get_docstring(node) or ""):
                assert len(sentence.split()) <= MOST_WORDS, sentence


@pytest.mark.parametrize("path", [*MODULES, *SOURCES, *PAGES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_strange_words(path: Path) -> None:
    assert STRANGE.findall(path.read_text(encoding="utf-8")) == []
