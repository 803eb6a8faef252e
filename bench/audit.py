"""The audit's speed on one core, next to the filter that others use: MB of UTF-8 a second, all in one run.

    python bench/audit.py [--rounds 3] [--datatrove 40] [--json]

Documents: those of `bench/scan.py` (prose and source code, 20 kB pieces, a fifth with a loop). The scanner alone for 20
and for 3 copies; the audit of one record a document, with every level and metric, from str and from lines of JSON; and
datatrove's GopherRepetitionFilter as it is, on some documents of either kind (it takes minutes for all), where
datatrove and spaCy are installed: pip install datatrove spacy
"""

import argparse
import json
import sysconfig
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lzsampler.auditing.findings import audit_record
from lzsampler.auditing.records import Field, Record
from lzsampler.auditing.rules import Rules
from measure import interleave, report
from scan import PROSE, nothing, pieces
from scan import scan as scan_of

Job = Callable[[int], object]


def audit_texts(texts: list[str]) -> Job:
    rules = Rules()
    return lambda _: [audit_record(Record("", i, "", (Field("answer", text),)), rules) for i, text in enumerate(texts)]


def audit_lines(lines: list[str]) -> Job:
    rules = Rules()

    def run(_: int) -> None:
        for i, line in enumerate(lines):
            audit_record(Record("", i, "", (Field("answer", json.loads(line)["text"]),)), rules)

    return run


def datatrove_filter(texts: list[str]) -> Job | None:
    """Return its filter over documents; None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import spacy  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
            from datatrove.data import Document  # type: ignore[import-not-found,unused-ignore]
            from datatrove.pipeline.filters import GopherRepetitionFilter  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    judge = GopherRepetitionFilter()
    return lambda _: [judge.filter(Document(text=text, id="")) for text in texts]


def measure(name: str, documents: list[Any], rounds: int, n_datatrove: int) -> dict[str, Any]:
    """Return MB/s of each, the medians of rounds in turn; datatrove's on some documents, and ours on the same."""
    texts = [document.tobytes().decode("utf-8", "replace") for document in documents]
    few = texts[:: max(1, len(texts) // n_datatrove)]
    jobs: dict[str, tuple[Job, list[str]]] = {
        "scanner, k = 20": (scan_of(documents, 20), texts),
        "scanner, k = 3": (scan_of(documents, 3), texts),
        "audit": (audit_texts(texts), texts),
        "audit of JSONL": (audit_lines([json.dumps({"text": text}) for text in texts]), texts),
        "audit of some": (audit_texts(few), few),
    }
    filter_them = datatrove_filter(few)
    if filter_them is not None:
        jobs["datatrove"] = (filter_them, few)
    times = interleave({key: (nothing, job) for key, (job, _) in jobs.items()}, rounds)
    row: dict[str, Any] = {"texts": name, "MB": sum(len(text.encode()) for text in texts) / 1e6}
    for key, (_, of) in jobs.items():
        row[f"{key}, MB/s"] = float(sum(len(text.encode()) for text in of) / np.median(times[key]))
    if filter_them is not None:
        row["audit / datatrove"] = row["audit of some, MB/s"] / row["datatrove, MB/s"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--documents", type=int, default=300, help="of each kind")
    parser.add_argument("--datatrove", type=int, default=20, help="documents for its filter")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    prose = pieces(list(PROSE.glob("*.txt")))[: arguments.documents]
    code = pieces(list(Path(sysconfig.get_path("stdlib")).glob("*.py")))[: arguments.documents]
    results = [
        measure(name, documents, arguments.rounds, arguments.datatrove)
        for name, documents in (("prose", prose), ("Python source", code))
    ]
    report(results, arguments.json)


if __name__ == "__main__":
    main()
