"""How often the audit calls a clean text a looping one, and whether it finds the loops that were planted.

    python bench/audit_rates.py [--folder FOLDER] [--markdown FOLDER ...] [--show] [--planted 2000] [--json]

Clean texts: pieces of 4,000 characters of prose (the corpus of the embedded model, or the .txt files of a folder), of
source code (Python's standard library) and of Markdown (files of this repository, the READMEs of what is installed,
as the wheels' METADATA holds them, and all .md files below the folders given). A text that is there twice counts once.
--show prints every significant loop that is found in them.
Planted: tests/planted.py; found is a loop that starts within one unit of the planted one and has its very period.
"""

import argparse
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from lzsampler import Report, audit  # noqa: E402
from lzsampler.auditing.records import LOOPING, RULES  # noqa: E402
from measure import report  # noqa: E402
from planted import CORPUS, planted  # noqa: E402

PIECE = 4000


def pieces(paths: list[Path]) -> dict[str, str]:
    """Return pieces of the files, and where each of them is from."""
    made: dict[str, str] = {}
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.name == "METADATA":
            text = text.partition("\n\n")[2]  # headers come before it
        for at in range(0, len(text), PIECE):
            made.setdefault(text[at : at + PIECE], f"{path.parent.name}/{path.name}, {at}")
    return made


def rates(name: str, texts: dict[str, str], show: bool) -> dict[str, Any]:
    """Return the share of texts that each definition, and each rule, finds something in, in per cent."""
    reports = [audit(text) for text in texts]
    for place, made in zip(texts.values(), reports, strict=True):
        for f in made.findings:
            if show and f.rule in LOOPING:
                print(f"{name}: {place} + {f.start}: {f.rule}, {f.copies:.1f} x {f.unit!r}", file=sys.stderr)
    counts = Counter(rule for made in reports for rule in {f.rule for f in made.findings})
    row: dict[str, Any] = {"texts": name, "n": len(texts), "literal, %": share(reports, "literal")}
    row["significant, %"] = share(reports, "looping")
    exact = sum(any(f.rule in ("LZR001", "LZR002") for f in made.findings) for made in reports)
    row["exact by character, %"] = 100 * exact / len(texts)
    return row | {rule: counts[rule] for rule in RULES}


def share(reports: list[Report], name: str) -> float:
    return 100 * sum(bool(getattr(made, name)) for made in reports) / len(reports)


def recall(n: int) -> dict[str, Any]:
    """Return the share of planted loops that each definition finds, in per cent, and of exact periods and starts."""
    found = literal = many = 0
    for sample in planted(seed=11, n=n):
        made = audit(sample.text)
        literal += made.literal
        many += sample.end - sample.start >= 20 * sample.period
        found += any(
            f.rule in ("LZR001", "LZR002") and f.period == sample.period and 0 <= sample.start - f.start < sample.period
            for f in made.findings
        )
    row = {"texts": "planted", "n": n, "literal, %": 100 * literal / n, "significant, %": 100 * found / n}
    return row | {"of 20 copies": many}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=CORPUS, help="of .txt files with clean prose")
    parser.add_argument("--markdown", type=Path, nargs="*", default=[], help="folders with more Markdown")
    parser.add_argument("--show", action="store_true", help="print the significant loops of clean texts to stderr")
    parser.add_argument("--planted", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    library = Path(sysconfig.get_path("stdlib"))
    installed = Path(sysconfig.get_path("purelib"))
    readmes = [path for path in installed.glob("*.dist-info/METADATA") if b"text/markdown" in path.read_bytes()]
    markdown = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *installed.rglob("*.md"), *readmes]
    markdown += [path for folder in arguments.markdown for path in folder.rglob("*.[mM][dD]")]
    results = [
        rates("prose", pieces(list(arguments.folder.glob("*.txt"))), arguments.show),
        rates("Python source", pieces(list(library.glob("*.py"))), arguments.show),
        rates("Markdown", pieces(markdown), arguments.show),
        recall(arguments.planted),
    ]
    report(results, arguments.json)


if __name__ == "__main__":
    main()
