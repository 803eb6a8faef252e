"""Write the everyday tasks and prompts of the package anew; a test checks that the files are what this writes.

    python bench/everyday/make.py [--out FOLDER]

Everything is drawn with fixed seeds from our own words and from common facts; no sentence is taken from anywhere.
"""

import argparse
import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import prompts
import short
import thinking
import worked

MODELS = Path(__file__).resolve().parents[2] / "lzsampler" / "models"


def files() -> dict[str, Iterable[dict[str, Any]]]:
    """Return the rows of each file."""
    long_answers = prompts.long_answers()
    return {
        "everyday_tasks.jsonl": short.numbered(chain(short.first(1), short.more(2), worked.all_of(3))),
        "everyday_prompts.jsonl": [row for row in long_answers if row["split"] == "held-out"],
        "search_prompts.jsonl": [row for row in long_answers if row["split"] == "search"],
        "chapter_prompts.jsonl": prompts.chapters(),
        "thinking_tasks.jsonl": thinking.tasks(4),
    }


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=MODELS, help="folder of the files (default: that of the package)")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in files().items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (out / name).write_text(lines, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
