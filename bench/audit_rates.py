"""How often the audit calls a clean text a looping one, by kind and rule, and whether it finds loops that are there.

    python bench/audit_rates.py [--show] [--texts FOLDER ...] [--json]

Clean texts: the suite of clean.py, and with --texts pieces of 6,000 characters of all files below these folders that
are UTF-8, by their endings. --show prints every loop that is found in them.
Loops that are there: those of tests/planted.py in books, in Chinese, Japanese and Russian texts, in data and in code;
near copies of a sentence (stuck.py); runs of one character or a few; and texts of models that loop (data/README.md).
A planted loop counts as found if one with its very period starts within one unit of it; a run, if a loop covers it; a
near copy and a text of a model, if it loops.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from clean import packed, suite  # noqa: E402
from lzsampler import Report, audit  # noqa: E402
from lzsampler.auditing.records import LOOPING, RULES  # noqa: E402
from lzsampler.util.stats import wilson  # noqa: E402
from measure import DATA, report  # noqa: E402
from negatives import PIECE, Piece  # noqa: E402
from planted import RUNS, Planted, planted, planted_elsewhere, planted_in_the_middle, planted_runs  # noqa: E402
from stuck import stuck_texts  # noqa: E402

MARKUP = ("Markdown", "JSON", "C", "HTML")
WRITING = ("prose", "verse", "Chinese", "Chinese verse", "Japanese", "Russian", "other languages")
PLANTED = 400  # loops of a kind
MARKS = "`{}[]()<>|#*=/\\_~$@&-0123456789\u25a1"  # of code, links and characters that are lost, which are no sentences


class Verdict(NamedTuple):
    """What was found in a piece of a kind."""

    kind: str
    found: Report


def rates(name: str, verdicts: list[Verdict]) -> dict[str, Any]:
    """Return how many texts loop, and in how many each rule finds something."""
    n, looping = len(verdicts), sum(verdict.found.looping for verdict in verdicts)
    low, high = wilson(looping, n)
    rules = [{finding.rule for finding in verdict.found.findings} for verdict in verdicts]
    return {
        "texts": name,
        "n": n,
        "loop": looping,
        "%": 100 * looping / n,
        "interval, %": f"{100 * low:.2f} to {100 * high:.2f}",
        "literal, %": 100 * sum(verdict.found.literal for verdict in verdicts) / n,
    } | {rule: sum(rule in found for found in rules) for rule in RULES}


def by_kind(pieces: Iterable[Piece], show: bool) -> list[dict[str, Any]]:
    """Return the rates of all pieces, of the groups of kinds that have a limit of their own, and of each kind."""
    verdicts: list[Verdict] = []
    for piece in pieces:
        verdicts.append(Verdict(piece.kind, audit(piece.text)))
        for f in verdicts[-1].found.findings:
            if show and f.rule in LOOPING:
                where = f"{f.start} to {f.end} of {len(piece.text)}"
                print(f"{piece.kind}: {f.rule}, {where}, {f.copies:.1f} x {f.unit!r}", file=sys.stderr)
    kinds = dict.fromkeys(verdict.kind for verdict in verdicts)
    groups = {"all": kinds, ", ".join(MARKUP): MARKUP, "prose, verse, Chinese, Japanese, Russian ...": WRITING}
    groups |= {kind: (kind,) for kind in kinds}
    made = {name: [verdict for verdict in verdicts if verdict.kind in of] for name, of in groups.items()}
    return [rates(name, of) for name, of in made.items() if of]


def files(folders: list[Path]) -> Iterator[Piece]:
    """Yield pieces of the files below folders, each once."""
    seen = set[str]()
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        for at in range(0, len(text), PIECE):
            piece = text[at : at + PIECE]
            if piece not in seen:
                seen.add(piece)
                yield Piece(path.suffix or "no ending", piece)


def is_found(sample: Planted) -> bool:
    """Whether a planted loop is reported with its very period and a start within one unit of it."""
    return any(
        finding.rule in LOOPING
        and finding.period == sample.period
        and abs(sample.start - finding.start) < sample.period
        for finding in audit(sample.text).findings
    )


def is_covered(sample: Planted) -> bool:
    """Whether a loop is reported that covers all whole copies of a planted one."""
    return any(
        finding.rule in LOOPING and finding.start <= sample.start and sample.end - sample.period < finding.end
        for finding in audit(sample.text).findings
    )


def recall() -> list[dict[str, Any]]:
    """Return how many of the loops that are there are found, by kind."""
    texts: dict[str, list[str]] = {}
    for piece in packed():
        texts.setdefault(piece.kind, []).append(piece.text)
    kinds: dict[str, Iterable[Planted]] = {
        "planted in books": planted(seed=11, n=PLANTED),
        "3 to 12 copies in the middle of books": planted_in_the_middle(seed=12, n=PLANTED),
    }
    for kind in ("Chinese", "Chinese verse", "Japanese", "Russian", "verse"):
        sentences = planted_elsewhere(texts[kind], seed=14, n=PLANTED, few=(3, 12), without=MARKS)
        kinds[f"3 to 12 copies of sentences, {kind}"] = sentences
    for kind in MARKUP:
        kinds[f"3 to 12 copies at the end, 12 to 20 in the middle, {kind}"] = planted_elsewhere(
            texts[kind], seed=15, n=PLANTED, few=(12, 20)
        )
    rows = [{"loops": name, **share([is_found(sample) for sample in samples])} for name, samples in kinds.items()]
    near: dict[str, list[bool]] = {}
    everything = [text for kind in texts.values() for text in kind]
    for run in planted_runs(everything, seed=16, n=25 * len(RUNS)):
        unit = run.text[run.start : run.start + run.period]
        near.setdefault(f"runs of {unit!a}", []).append(is_covered(run))
    for text in stuck_texts():
        if text.kind in ("rising numbers", "a number inside"):
            near.setdefault(text.kind, []).append(audit(text.text).looping)
    with gzip.open(DATA / "loops.jsonl.gz", "rt", encoding="utf-8") as lines:
        near["texts of SmolLM2 that loop"] = [audit(json.loads(line)["text"]).looping for line in lines]
    return rows + [{"loops": name, **share(found)} for name, found in near.items()]


def share(found: list[bool]) -> dict[str, Any]:
    return {"n": len(found), "found": sum(found), "%": 100 * sum(found) / len(found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="folders with more clean texts")
    parser.add_argument("--show", action="store_true", help="print the loops that are found in clean texts to stderr")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report(by_kind(files(arguments.texts) if arguments.texts else suite(), arguments.show), arguments.json)
    report(recall(), arguments.json)


if __name__ == "__main__":
    main()
