"""judge.jsonl: the verdicts on the texts of an evaluation, and how far they agree with the exact rule.

Importing this module does not load llama_cpp, so that results can be read without it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from .._values import counted
from ..errors import ArgumentError
from ..util.stats import Agreement, agreement
from .run_folder import JUDGED, TRANSCRIPTS, Key, RunFolder

if TYPE_CHECKING:
    from .judge import Judge


class Verdict(NamedTuple):
    """A judge's verdict on a text: P(yes) / (P(yes) + P(no)) of its first token, 0..1, and P(yes) + P(no), 0..1.

    If ``answered`` is small, the judge does not answer the question, and ``degenerate`` means little.
    """

    degenerate: float
    answered: float


@dataclass(frozen=True)
class Judged:
    """The verdicts of a judge on the texts of a run, compared with the exact rule.

    ``agreement``: a is the judge and b the rule; ``answered``: the mean of `Verdict.answered`.
    """

    file: str
    agreement: Agreement
    answered: float

    def to_json(self) -> dict[str, Any]:
        """Return it for results.json."""
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


def refuse_another(judge: "Judge", folder: RunFolder) -> None:
    """Raise ValueError if a folder has verdicts of another judge."""
    for line in folder.lines(JUDGED):
        if line.row is not None and line.row.get("judge") != judge.identity:
            raise ArgumentError(
                f"{folder.path / JUDGED} was written by another judge, context or version: "
                "use that judge, or move the file away to judge again"
            )


def judge_folder(judge: "Judge", folder: RunFolder, *, on_text: Callable[[int, int], object] | None = None) -> None:
    """Judge the texts of a folder that have no verdict yet; each verdict is a line of judge.jsonl at once.

    ``on_text`` is called with (done, all) after each. Raises as `refuse_another`, and LzsError for files and the
    model.
    """
    from ..decoding.transcript import TranscriptFile

    refuse_another(judge, folder)
    done = {line.key: line.row["text"] for line in folder.lines(JUDGED) if line.row and _verdict(line.row)}
    texts = {line.key: _digest(line.row) for line in folder.lines(TRANSCRIPTS) if line.key and line.row}
    missing = {key: digest for key, digest in texts.items() if done.get(key) != digest}
    asked: deque[Key] = deque()

    def to_judge() -> Iterator[str]:
        for line in folder.lines(TRANSCRIPTS):
            if line.key in missing and line.key is not None and line.row is not None:
                asked.append(line.key)
                yield _text(line.row)

    n = len(texts) - len(missing)
    with TranscriptFile(folder.path / JUDGED) as file:
        for verdict in judge.verdicts(to_judge()):
            key = asked.popleft()
            names = dict(zip(("setting", "prompt", "seed"), key, strict=True))
            file.append({**names, **verdict._asdict(), "text": missing[key], "judge": judge.identity})
            n += 1
            if on_text is not None:
                on_text(n, len(texts))


def read_judged(folder: RunFolder, looping: Mapping[Key, bool]) -> Judged | None:
    """Return how the verdicts in a folder agree with the rule, by the key of the text; None if there are none."""
    name, verdicts = "", {}
    for line in folder.lines(JUDGED):
        if line.key is not None and line.key in looping and line.row and (verdict := _verdict(line.row)):
            verdicts[line.key] = verdict
            name = str(line.row["judge"]["file"])
    if not verdicts:
        return None
    table = agreement([v.degenerate > 0.5 for v in verdicts.values()], [looping[key] for key in verdicts])
    return Judged(name, table, sum(v.answered for v in verdicts.values()) / len(verdicts))


def _verdict(row: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict of a line; None if it is damaged."""
    try:
        _ = row["text"], row["judge"]["file"]
        return Verdict(float(row["degenerate"]), float(row["answered"]))
    except (LookupError, TypeError, ValueError):
        return None


def _text(transcript: Mapping[str, Any]) -> str:
    """Return all that the model wrote."""
    answer = transcript["messages"][-1]
    return "\n".join(part for part in (answer.get("reasoning_content"), answer["content"]) if part)


def _digest(transcript: Mapping[str, Any]) -> str:
    return blake2b(_text(transcript).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
