"""`compare`: two audits of answers to the same prompts, record by record: what changed, and whether by chance."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from ..errors import LzsError
from ..util.stats import CONFIDENCE, Interval, bootstrap_mean, mcnemar
from .store import Outcome

VERSION = 1  # of `to_json`
ALPHA = 0.05
_RANDOM_ID = "lzs-"  # the beginning of the ids that `lzs generate --save` draws


class Pair(NamedTuple):
    """A record that is in both audits, with its file in each."""

    id: str
    file_a: str
    file_b: str


@dataclass(frozen=True)
class Comparison:
    """What changed from A to B among the records that are in both, ``records`` of them.

    ``newly``: records that loop in B only; ``cured``: in A only; ``still``: in both. ``only_a``, ``only_b``: the number
    of records without a partner, which count nowhere else. ``by_number``: pairs whose records have no id in their
    file, and were paired by their lines: they belong together only if both sides have the same order. ``stuck_a``,
    ``stuck_b``: the number of pairs whose record in A, or in B, is stuck (LZR011), on which the verdict does not
    depend. ``difference``: the loop rate of B minus that of A, -1..1, with its ``interval`` (bootstrap in which whole
    conversations are drawn). ``p``: McNemar's exact test, two-sided.
    """

    records: int
    by_number: int
    newly: tuple[Pair, ...]
    cured: tuple[Pair, ...]
    still: tuple[Pair, ...]
    only_a: int
    only_b: int
    stuck_a: int
    stuck_b: int
    interval: Interval
    p: float

    @property
    def rate_a(self) -> float:
        """Loop rate of A among the pairs, 0..1."""
        return (len(self.cured) + len(self.still)) / self.records

    @property
    def rate_b(self) -> float:
        """Loop rate of B among the pairs, 0..1."""
        return (len(self.newly) + len(self.still)) / self.records

    @property
    def difference(self) -> float:
        """Loop rate of B minus that of A."""
        return (len(self.newly) - len(self.cured)) / self.records

    def verdict(self, alpha: float = ALPHA) -> str:
        """Return "worse" or "better" (B than A) when p < ``alpha``, else "no significant difference"."""
        if self.p >= alpha or not self.difference:
            return "no significant difference"
        return "worse" if self.difference > 0 else "better"

    def to_json(self, alpha: float = ALPHA) -> dict[str, Any]:
        """Return all of it, ready for json.dumps (docs/audit_summary.md)."""
        return {
            "version": VERSION,
            **asdict(self),
            "newly": [pair._asdict() for pair in self.newly],
            "cured": [pair._asdict() for pair in self.cured],
            "still": [pair._asdict() for pair in self.still],
            "loop_rate_a": self.rate_a,
            "loop_rate_b": self.rate_b,
            "difference": self.difference,
            "confidence": CONFIDENCE,
            "alpha": alpha,
            "verdict": self.verdict(alpha),
        }


def compare(a: Iterable[Outcome], b: Iterable[Outcome]) -> Comparison:
    """Compare the outcomes of two audits (`Audit.outcomes`), paired by id.

    If both sides have several files, partners are in files of the same name (relative to the folder that holds all
    files of a side). If no name is in both, or each side is one file, ids alone decide. Of records with the same id,
    such as several answers to a prompt, the first is the partner of the first, and so on.

    LzsError if no record is in both, or if the same id is in several files and the names of the files differ.
    """
    left, right = list(a), list(b)
    names_a, names_b = _names(left), _names(right)
    if len(names_a) == len(names_b) == 1 or not set(names_a.values()) & set(names_b.values()):
        for outcomes in (left, right):
            _check_ids(outcomes)
        names_a, names_b = dict.fromkeys(names_a, ""), dict.fromkeys(names_b, "")
    keyed = _keyed(right, names_b)
    pairs = [(key, one, keyed.pop(key)) for key, one in _keyed(left, names_a).items() if key in keyed]
    if not pairs:
        hint = ""
        if any(outcome.id.startswith(_RANDOM_ID) for outcome in (*left, *right)):
            hint = "; write both sides with lzs generate --prompts FILE, which keeps ids"
        ids = f"ids are {_some_ids(left)} in A and {_some_ids(right)} in B"
        raise LzsError(f"A and B have no record in common: {ids}{hint}")

    def those(before: bool, after: bool) -> tuple[Pair, ...]:
        return tuple(
            Pair(one.id, one.file, other.file)
            for _, one, other in pairs
            if (one.looping, other.looping) == (before, after)
        )

    newly, cured = those(False, True), those(True, False)
    known = {key[:2] for key, _, _ in pairs}
    return Comparison(
        records=len(pairs),
        by_number=sum(not (one.named and other.named) for _, one, other in pairs),
        newly=newly,
        cured=cured,
        still=those(True, True),
        only_a=len(left) - len(pairs),
        only_b=len(keyed),
        stuck_a=sum(one.stuck for _, one, _ in pairs),
        stuck_b=sum(other.stuck for _, _, other in pairs),
        interval=bootstrap_mean(
            [int(other.looping) - int(one.looping) for _, one, other in pairs],
            [_conversation(key[0], key[1], known) for key, _, _ in pairs],
        ),
        p=mcnemar(len(cured), len(newly)),
    )


_Key = tuple[str, str, int]  # name of the file, id, how many records before it have the same


def _names(outcomes: list[Outcome]) -> dict[str, str]:
    """Return the files, each with its name under the folder that holds all of them."""
    files = dict.fromkeys(outcome.file for outcome in outcomes)
    folders = [os.path.dirname(os.path.abspath(file)) for file in files]
    common = os.path.commonpath(folders) if folders else ""
    return {file: os.path.relpath(os.path.abspath(file), common) for file in files}


def _check_ids(outcomes: list[Outcome]) -> None:
    """Raise LzsError if an id is in two files: without the names of the files it is not clear which one is meant."""
    file_of: dict[str, str] = {}
    for outcome in outcomes:
        file = file_of.setdefault(outcome.id, outcome.file)
        if file != outcome.file:
            raise LzsError(
                f"id {outcome.id!r} is in {file} and in {outcome.file}, and the other side has files with other names: "
                "compare them file by file"
            )


def _keyed(outcomes: list[Outcome], names: dict[str, str]) -> dict[_Key, Outcome]:
    seen: Counter[tuple[str, str]] = Counter()
    keyed: dict[_Key, Outcome] = {}
    for outcome in outcomes:
        name = (names[outcome.file], outcome.id)
        keyed[(*name, seen[name])] = outcome
        seen[name] += 1
    return keyed


def _conversation(file: str, name: str, ids: set[tuple[str, str]]) -> tuple[str, str]:
    """Return the first message of the conversation of a record, which may be name/2, /3...: they are one cluster."""
    first, slash, number = name.rpartition("/")
    return (file, first) if slash and number.isdigit() and (file, first) in ids else (file, name)


def _some_ids(outcomes: list[Outcome]) -> str:
    return ", ".join(repr(outcome.id) for outcome in outcomes[:2]) + (", ..." if len(outcomes) > 2 else "") or "none"
