"""Right texts of eleven kinds, to measure on them what a penalty costs.

    python bench/everyday/right_texts.py FOLDER
    lzs cost -m smollm2 --grid bench/everyday/held.toml --max-tokens 500 FOLDER

Twenty texts of at most 3,000 characters of each kind, each kind in a folder of its own: passages of the books in
bench/train_embedded/corpus, files of this package, and pieces of bench/data/clean.jsonl.xz, spread evenly.
"""

import argparse
import json
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path

_EACH, _LENGTH = 20, 3000
_ROOT = Path(__file__).resolve().parents[2]
_PIECES = ["Markdown", "JSON", "C", "HTML", "JavaScript", "TypeScript", "changelogs", "diffs", "verse"]


def main() -> None:
    """Write the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the texts are written")
    folder: Path = parser.parse_args().folder
    for kind, whole in kinds():
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for number, text in enumerate(_spread(whole)):
            path = folder / kind / f"{number:02}.txt"
            path.write_text(text[:_LENGTH], encoding="utf-8", newline="\n")


def kinds() -> Iterator[tuple[str, list[str]]]:
    """Return the kinds, and the texts that there are of each."""
    books = sorted((_ROOT / "bench" / "train_embedded" / "corpus").glob("*.txt"))
    yield "prose", [_middle(path.read_text(encoding="utf-8")) for path in books]
    modules = sorted((_ROOT / "lzsampler").rglob("*.py"))
    yield "Python", [text for path in modules if len(text := path.read_text(encoding="utf-8")) >= _LENGTH]
    with lzma.open(_ROOT / "bench" / "data" / "clean.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for kind in _PIECES:
        yield kind, [row["text"] for row in rows if row["kind"] == kind]


def _middle(book: str) -> str:
    """Return the book from the paragraph in its middle on."""
    return book[book.index("\n", len(book) // 2) + 1 :]


def _spread(texts: Sequence[str]) -> list[str]:
    return [texts[i * len(texts) // _EACH] for i in range(_EACH)]


if __name__ == "__main__":
    main()
