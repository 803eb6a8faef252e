"""The scanner of runs: MB/s over ordinary documents, one long text and hostile ones, next to a copy of the same bytes.

    python bench/scan.py [--rounds 5] [--min-copies 3 4 8 20] [--json]

Documents: pieces of at most 20 kB of prose (the corpus of the embedded model) and of source code (Python's standard
library), a fifth of them with a loop at the end: a unit of 1 to 1,500 bytes, 20 to 60 times. All runs of 64 bytes or
more. The regular expression that people use for 20 copies gets one piece of 5 kB, since it is quadratic.
"""

import argparse
import re
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lzsampler.auditing.scan import Text, runs
from measure import interleave, report

PROSE = Path(__file__).with_name("train_embedded") / "corpus"
MIN_LENGTH = 64
PIECE = 20_000
REGEX = re.compile(rb"(.+?)\1{19,}", re.DOTALL)

Documents = list[npt.NDArray[np.uint8]]


def pieces(paths: list[Path]) -> Documents:
    """Return the files cut into pieces, uint8[<= PIECE] each, every fifth with a loop at its end."""
    rng = np.random.default_rng(3)
    made: Documents = []
    for path in sorted(paths):
        data = np.frombuffer(path.read_bytes(), np.uint8)
        for start in range(0, data.size, PIECE):
            piece = data[start : start + PIECE]
            if len(made) % 5 == 4:
                unit = piece[: int(1500 ** rng.random())]
                piece = np.concatenate([piece, np.tile(unit, rng.integers(20, 61))])
            made.append(piece)
    return made


def hostile(n: int) -> dict[str, Documents]:
    """Return texts of n bytes that cost a scan most, each alone in its list."""
    rng = np.random.default_rng(4)
    sparse = np.zeros(n, np.uint8)
    sparse[rng.random(n) < 1 / 300] = 1
    broken = np.zeros(n, np.uint8)
    broken[::1000] = 1
    broken[rng.random(n) < 1e-4] = 2
    halves = np.zeros(n, np.uint8)
    halves[n // 2] = 1
    fibonacci, previous = b"ab", b"a"
    while len(fibonacci) < n:
        fibonacci, previous = fibonacci + previous, fibonacci
    return {
        "one byte": [np.zeros(n, np.uint8)],
        "a^n b a^n": [halves],
        "one loop, period 1000": [np.resize(rng.integers(0, 256, 1000).astype(np.uint8), n)],
        "random bits": [rng.integers(0, 2, n).astype(np.uint8)],
        "Fibonacci word": [np.frombuffer(fibonacci[:n], np.uint8)],
        "one letter, broken every 300": [sparse],
        "a loop, broken every 10,000": [broken],
    }


def nothing(_: int) -> None:
    pass


def scan(documents: list[Text], min_copies: int) -> Callable[[int], None]:
    def run(_: int) -> None:
        for document in documents:
            runs(document, min_copies=min_copies, min_length=MIN_LENGTH)

    return run


def copy(documents: Documents) -> Callable[[int], None]:
    to = np.empty(max(document.size for document in documents), np.uint8)

    def run(_: int) -> None:
        for document in documents:
            to[: document.size] = document

    return run


def measure(name: str, documents: Documents, min_copies: list[int], rounds: int) -> dict[str, Any]:
    """Return MB/s of a copy and of the scans, the medians of rounds in turn."""
    functions: dict[str, tuple[Callable[[int], object], Callable[[int], object]]] = {"copy": (nothing, copy(documents))}
    functions |= {f"k = {k}": (nothing, scan(list(documents), k)) for k in min_copies}
    size = sum(document.size for document in documents)
    row: dict[str, Any] = {"text": name, "documents": len(documents), "MB": size / 1e6}
    for key, times in interleave(functions, rounds).items():
        row[f"{key}, MB/s"] = float(size / np.median(times))
    row[f"runs, k = {min_copies[0]}"] = sum(
        runs(document, min_copies=min_copies[0], min_length=MIN_LENGTH).start.size for document in documents
    )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--min-copies", type=int, nargs="+", default=[3, 4, 8, 20])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    prose = pieces(list(PROSE.glob("*.txt")))
    code = pieces(list(Path(sysconfig.get_path("stdlib")).glob("*.py")))
    texts = {"prose": prose, "code": code, "prose, as one": [np.concatenate(prose)], **hostile(1_000_000)}
    results = [measure(name, text, arguments.min_copies, arguments.rounds) for name, text in texts.items()]
    sample = prose[0][:5000].tobytes()
    times = interleave({"regex": (nothing, lambda _: REGEX.search(sample))}, arguments.rounds)["regex"]
    results.append({"text": "5 kB of prose, regex", "MB": 0.005, "k = 20, MB/s": float(5000 / np.median(times))})
    report(results, arguments.json)


if __name__ == "__main__":
    main()
