"""judge.jsonl: the verdicts on the texts of an evaluation, and how well they agree with the exact rule.

Importing this module does not load llama_cpp, so results can be read without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from .._values import counted
from ..util.stats import Agreement, agreement
from .run_folder import JUDGED, Key, RunFolder


class Verdict(NamedTuple):
    """A judge's verdict on a text. ``degenerate``: P(yes) / (P(yes) + P(no)) of the answer's first token, 0..1.

    ``answered``: P(yes) + P(no), 0..1. If ``answered`` is small, the judge does not answer the question, and
    ``degenerate`` means little.
    """

    degenerate: float
    answered: float


@dataclass(frozen=True)
class Judged:
    """The verdicts of a judge on the texts of a run, compared with the exact rule.

    ``file``: the name of the judge's file. ``agreement``: the table of agreement, in which a is the judge and b the
    rule. ``answered``: the mean of `Verdict.answered`.
    """

    file: str
    agreement: Agreement
    answered: float

    def to_json(self) -> dict[str, Any]:
        """Return the entry for results.json."""
        a = self.agreement
        return {
            "file": self.file,
            "texts": a.n,
            "both": a.both,
            "only_judge": a.only_a,
            "only_rule": a.only_b,
            "neither": a.neither,
            "agreement": a.share,
            "kappa": a.kappa,
            "answered": self.answered,
        }

    def __str__(self) -> str:
        a = self.agreement
        kappa = "" if a.kappa is None else f" (kappa {a.kappa:.2f})"
        return (
            f"judge {self.file}: agrees with the rule on {a.both + a.neither} of {counted(a.n, 'text')}{kappa}; "
            f"both find a loop in {a.both}, the judge alone in {a.only_a}, the rule alone in {a.only_b}; "
            f"yes and no together have {100 * self.answered:.1f} % of its probability"
        )


def read_judged(folder: RunFolder, looping: Mapping[Key, bool]) -> Judged | None:
    """Return how well the verdicts in a folder agree with the exact rule. ``looping``: the rule's results.

    None if there are no verdicts.
    """
    name, verdicts = "", {}
    for line in folder.lines(JUDGED):
        if line.key is not None and line.key in looping and line.row and (verdict := verdict_of(line.row)):
            verdicts[line.key] = verdict
            name = str(line.row["judge"]["file"])
    if not verdicts:
        return None
    table = agreement([v.degenerate > 0.5 for v in verdicts.values()], [looping[key] for key in verdicts])
    return Judged(name, table, sum(v.answered for v in verdicts.values()) / len(verdicts))


def verdict_of(row: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict in a line of judge.jsonl; None if the line is damaged."""
    try:
        _ = row["text"], row["judge"]["file"]
        return Verdict(float(row["degenerate"]), float(row["answered"]))
    except (LookupError, TypeError, ValueError):
        return None


def text_of(transcript: Mapping[str, Any]) -> str:
    """Return the text that the model wrote, with its reasoning."""
    answer = transcript["messages"][-1]
    return "\n".join(part for part in (answer.get("reasoning_content"), answer["content"]) if part)


def digest_of(transcript: Mapping[str, Any]) -> str:
    """Return a hash that identifies a text in judge.jsonl."""
    return blake2b(text_of(transcript).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
