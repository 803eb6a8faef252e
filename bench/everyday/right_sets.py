"""Writes the right texts of the package that are taken from elsewhere: lzsampler/evaluation/right_texts.jsonl.

    python bench/everyday/right_sets.py

It needs the history of this repository, since the code and the diffs are its own, as they were at one commit. All else
is in the public domain or CC0: books of bench/train_embedded/corpus and pieces of bench/data/clean.jsonl.xz.
`lzsampler.evaluation.right_texts` makes the other sets itself.
"""

import json
import lzma
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lzsampler.evaluation.right_texts import SHIPPED

_LENGTH = 3000
_ROOT = Path(__file__).resolve().parents[2]
_COMMIT = "aa633c1"
_BOOKS = (
    "andersen-tales austen-emma carroll-alice doyle-sherlock grimm-tales kipling-jungle-book melville-moby_dick "
    "twain-tom-sawyer"
)
_CODE = {
    "python": (
        "cli/bench.py lzsampler/evaluation/results.py lzsampler/integrations/hf.py lzsampler/util/stats.py "
        "tests/test_batch.py"
    ),
    "c": "c/sampler.c c/constraint/regex.c c/backend/truncate.c c/state/history.c c/text/runs.c",
}


def main() -> None:
    """Write the file."""
    with SHIPPED.open("w", encoding="utf-8", newline="\n") as file:
        for row in _rows():
            file.write(json.dumps({**row, "text": row["text"][:_LENGTH]}, ensure_ascii=False) + "\n")


def _rows() -> Iterator[dict[str, Any]]:
    for book in _BOOKS.split():
        text = (_ROOT / "bench" / "train_embedded" / "corpus" / f"{book}.txt").read_text(encoding="utf-8")
        middle = text[text.index("\n", len(text) // 2) + 1 :]
        yield {"set": "prose", "kind": "book", "source": book, "licence": "public domain", "text": middle}
    for kind, paths in _CODE.items():
        for path in paths.split():
            shown = subprocess.run(["git", "show", f"{_COMMIT}:{path}"], cwd=_ROOT, capture_output=True, check=True)
            about = {"set": "code", "kind": kind, "source": f"lzsampler:{path}", "licence": "MIT"}
            yield {**about, "text": shown.stdout.decode()}
    with lzma.open(_ROOT / "bench" / "data" / "clean.jsonl.xz", "rt", encoding="utf-8") as file:
        pieces = [json.loads(line) for line in file]
    free = [each for each in pieces if each["licence"] == "CC0-1.0"]
    own = [each for each in pieces if each["source"].startswith("lzsampler:")]
    for name, kind, found in (
        ("code", "css", [each for each in free if each["kind"] == "CSS"]),
        ("code", "diff", own),
        ("json", "package", [each for each in free if each["source"].endswith("/package.json")]),
        ("json", "data", [each for each in free if each["source"].startswith("npm:cssdb/cssdb.json")]),
        ("markdown", "readme", [each for each in free if each["source"].endswith("/README.md")]),
        ("markdown", "changelog", [each for each in free if each["kind"] == "changelogs"]),
    ):
        long = [each for each in found if len(each["text"]) >= 1800]
        for each in long[:: max(1, len(long) // 5)][:5]:
            yield {"set": name, "kind": kind, **{key: each[key] for key in ("source", "licence", "text")}}


if __name__ == "__main__":
    main()
