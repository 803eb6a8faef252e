"""The tables of write.py's answers and of cost.py's costs, a row for each rule.

    python bench/simple_rule/table.py [--answers ANSWERS.jsonl] [--costs COSTS.jsonl]

Beside each count of answers stands its difference from today's default on the same prompts, in answers of 100. The
one-sided 95 % bound of the worse side follows. Bounds of shares are those of Agresti and Min (2005) for pairs, which
hold for a count of 0 as well; that of rep-4 is a bootstrap over prompts.
"""

import argparse
import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from everyday_table import TIMES, N, markdown, most_often
from lzsampler import audit

_Z = 1.6449  # one-sided 95 %
_ROUNDS, _SEED = 10_000, 20131
_KINDS = ("prose", "Python", "JSON")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=Path, metavar="ANSWERS.jsonl")
    parser.add_argument("--costs", type=Path, metavar="COSTS.jsonl")
    arguments = parser.parse_args()
    if arguments.answers:
        print(markdown(answers(_rows(arguments.answers))), end="\n\n")
    if arguments.costs:
        print(markdown(costs(_rows(arguments.costs))))


def _rows(path: Path) -> list[dict[str, Any]]:
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def answers(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a line for each rule: loops, repeated 8-grams, rep-4, and answers that ended."""
    by_rule: dict[str, dict[str, tuple[bool, bool, float, bool]]] = {}
    for row in rows:
        by_rule.setdefault(row["rule"], {})[row["id"]] = _figures(row)
    lines = []
    for name, of in by_rule.items():
        before = by_rule.get("today", {})
        pairs = [(of[key], before[key]) for key in of if key in before]
        loops, repeats, rep4, ended = zip(*of.values(), strict=True)
        lines.append(
            {
                "rule": name,
                "answers": str(len(of)),
                "loop": f"{sum(loops)}{_bound([(a[0], b[0]) for a, b in pairs], 1)}",
                "repeat": f"{sum(repeats)}{_bound([(a[1], b[1]) for a, b in pairs], 1)}",
                "rep-4": f"{np.mean(rep4):.3f}{_mean_bound([a[2] - b[2] for a, b in pairs])}",
                "ended": f"{sum(ended)}{_bound([(a[3], b[3]) for a, b in pairs], -1)}",
            }
        )
    return lines


def _figures(row: Mapping[str, Any]) -> tuple[bool, bool, float, bool]:
    text: str = row["text"]
    words = text.split()
    grams = [tuple(words[i : i + 4]) for i in range(len(words) - 3)]
    rep4 = 1 - len(set(grams)) / len(grams) if grams else 0.0
    return audit(text).looping, most_often(text, N) >= TIMES, rep4, row["finish"] == "stop"


def _bound(pairs: Sequence[tuple[bool, bool]], side: int) -> str:
    """Return a difference in answers of 100, and its bound above (side 1) or below (side -1)."""
    if not pairs:
        return ""
    n = len(pairs)
    more, fewer = (sum(a and not b for a, b in pairs) + 0.5, sum(b and not a for a, b in pairs) + 0.5)
    difference = (more - fewer) / (n + 2)
    error = sqrt((more + fewer) - (more - fewer) ** 2 / (n + 2)) / (n + 2)
    seen = 100 * (more - fewer) / n
    return f" ({seen:+.1f}, {'<' if side > 0 else '>'} {100 * (difference + side * _Z * error):+.1f})"


def _mean_bound(differences: Sequence[float]) -> str:
    if not differences:
        return ""
    values = np.array(differences)
    drawn = values[np.random.default_rng(_SEED).integers(0, values.size, (_ROUNDS, values.size))].mean(1)
    return f" ({values.mean():+.3f}, < {np.quantile(drawn, 0.95):+.3f})"


def costs(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a line for each rule: nats a token on right texts and on lists, and right values among equal ones."""
    lines = []
    for name in dict.fromkeys(row["rule"] for row in rows):
        of = [row for row in rows if row["rule"] == name]
        lists = [row for row in of if row["group"] == "lists"]
        kinds = dict.fromkeys(row["kind"] for row in lists)
        worst = max((_nats([row for row in lists if row["kind"] == kind]) for kind in kinds), default=0.0)
        right = [row for row in of if row["group"] == "right"]
        line = {"rule": name, "right texts": f"{_nats(right):.3f}"}
        for kind in _KINDS:
            line[kind] = f"{_nats([row for row in right if row['kind'] == kind]):.3f}"
        line |= {"lists": f"{_nats(lists):.3f}", "worst list": f"{worst:.2f}"}
        line["changed tokens"] = f"{sum(row['lost'] for row in right)}, {sum(row['lost'] for row in lists)}"
        for row in of:
            if row["group"] == "values":
                line[f"{row['count']} {row['kind']}"] = f"{row['count'] - row['wrong']} ({row['first'] or '–'})"
        lines.append(line)
    return lines


def _nats(rows: Sequence[Mapping[str, Any]]) -> float:
    tokens = sum(row["tokens"] for row in rows)
    return float(sum(row["extra"] for row in rows) / tokens) if tokens else 0.0


if __name__ == "__main__":
    main()
