"""`compare`: compares two audits of answers to the same prompts, and tests whether the difference may be chance."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from ..errors import LzsError
from ..util.clustered import clustered, difference_interval, flip_test, group_test, paired_difference
from ..util.stats import CONFIDENCE, Interval
from .work_folder import Outcome

VERSION = 1  # version of the format of `Comparison.to_json`
ALPHA = 0.05


# The name of a record has four parts: the name of its file, its id, a flag, and its model. The flag is False if the id
# is a line number. The model is "" unless the record is one of `_modelled`.
_Name = tuple[str, str, bool, str]
_Key = tuple[str, str, bool, str, int]  # name of a record, and number of earlier records with the same name
_Names = dict[str, str]  # name of each file by its path


class Pair(NamedTuple):
    """A pair of records, one from each audit.

    ``id``: the id that the records share, or the prompt and seed. ``record_a`` and ``record_b``: the numbers of the
    records in ``file_a`` and ``file_b``, from 0.
    """

    id: str
    file_a: str
    file_b: str
    record_a: int
    record_b: int


@dataclass(frozen=True)
class Comparison:
    """What changed from A to B. ``records``: the number of pairs of records.

    If no records are paired, ``paired`` is False, and all records of A are compared with all records of B, as two
    groups.

    ``newly``: pairs that loop only in B. ``cured``: pairs that loop only in A. ``still``: pairs that loop in both.
    ``records_a`` and ``records_b``: how many records of A and of B are compared. ``looping_a`` and ``looping_b``: how
    many of the compared records loop. ``conversations``: the number of conversations of the pairs. If nothing is
    paired, it is the number of conversations of A and B together. ``only_a`` and ``only_b``: how many records of A and
    of B are in no pair.

    ``by_number``: the number of pairs of records without ids. Such records are paired by line, which is right only if
    both sides have the same order. ``by_prompt``: the number of pairs of the same prompt and seed under different
    settings. Such pairs are made if two evaluations, each of one setting, have no id in common.
    ``by_order``: the number of pairs whose id several records of a file share. Such records are paired in their order.

    ``few``: whether fewer than half of the records of A or of B are compared. Texts of an evaluation do not count here:
    their settings may be missing in the other evaluation. ``repeated_a`` and ``repeated_b``: how many records of A and
    of B have the id of an earlier record of the same file. Records with the same id belong to one conversation.

    ``stuck_a`` and ``stuck_b``: how many of the compared records of A and of B are stuck (LZR011). The verdict does not
    depend on stuck records. ``interval``: the confidence interval of ``difference``, from `paired_difference`. If
    nothing is paired, it is Newcombe's interval, made of the intervals of the two rates.

    ``p``: the two-sided mid-p of a permutation test over conversations. For pairs, the test swaps the sides of each
    conversation (`flip_test`). If each conversation has one record, this is McNemar's test. For groups, the test
    assigns each conversation to A or B (`group_test`).
    """

    paired: bool
    records: int
    records_a: int
    records_b: int
    looping_a: int
    looping_b: int
    conversations: int
    by_number: int
    by_prompt: int
    by_order: int
    few: bool
    repeated_a: int
    repeated_b: int
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
        """Loop rate of A, 0..1."""
        return self.looping_a / self.records_a

    @property
    def rate_b(self) -> float:
        """Loop rate of B, 0..1."""
        return self.looping_b / self.records_b

    @property
    def difference(self) -> float:
        """Loop rate of B minus loop rate of A, -1..1."""
        if self.paired:  # The difference of integers is exact, so only the division rounds.
            return (len(self.newly) - len(self.cured)) / self.records
        return self.rate_b - self.rate_a

    def verdict(self, alpha: float = ALPHA) -> str:
        """Return whether B is "worse" or "better" than A if p < ``alpha``, else "no significant difference"."""
        if self.p >= alpha or not self.difference:
            return "no significant difference"
        return "worse" if self.difference > 0 else "better"

    def to_json(self, alpha: float = ALPHA) -> dict[str, Any]:
        """Return the comparison, ready for json.dumps (docs/audit_summary.md)."""
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

    If both sides have several files, records are paired within files of the same name. A name is relative to the folder
    that contains all files of its side. If the sides share no file name, or each side is one file, ids alone decide.

    An id may belong to several records of one side. If a model then has records with this id on both sides, records
    with this id are paired only within one model. If several records still match, such as several answers to a prompt,
    the records are paired in their order. If a record has no id, its line number serves as id. Such a record is never
    paired with a record that has this number as its id in the file.

    If no records can be paired, and each side is an evaluation of one setting, texts are paired by prompt and seed. If
    there are still no pairs, all of A is compared with all of B, as two groups of conversations.

    LzsError if A or B is empty, or if the same id is in several files of one side and ids alone decide.
    """
    left, right = list(a), list(b)
    names_a, names_b = _names(left), _names(right)
    if len(names_a) == len(names_b) == 1 or not set(names_a.values()) & set(names_b.values()):
        for outcomes in (left, right):
            _check_ids(outcomes)
        names_a, names_b = dict.fromkeys(names_a, ""), dict.fromkeys(names_b, "")
    if not left or not right:
        raise LzsError(f"there is nothing to compare: {'A' if not left else 'B'} has no record")
    modelled = _modelled(left, right, names_a, names_b)
    keyed_a, keyed_b = _keyed(left, names_a, modelled), _keyed(right, names_b, modelled)
    pairs = _pairs(keyed_a, keyed_b)
    by_prompt = not pairs
    if by_prompt:
        pairs = _pairs(_by_prompt(left, names_a), _by_prompt(right, names_b))
    if not pairs:
        return _of_groups(left, right, names_a, names_b)

    def those(before: bool, after: bool) -> tuple[Pair, ...]:
        return tuple(
            Pair(one.counterpart if by_prompt else one.id, one.file, other.file, one.number, other.number)
            for _, one, other in pairs
            if (one.looping, other.looping) == (before, after)
        )

    newly, cured, still = those(False, True), those(True, False), those(True, True)
    conversations = [_conversation(key[0], one) for key, one, _ in pairs]
    gained: Counter[tuple[str, str]] = Counter()
    lost: Counter[tuple[str, str]] = Counter()
    for conversation, (_, one, other) in zip(conversations, pairs, strict=True):
        gained[conversation] += other.looping and not one.looping
        lost[conversation] += one.looping and not other.looping
    sizes = Counter(conversations)
    several = {key[:-1] for key in (*keyed_a, *keyed_b) if key[-1]}
    up, down = ([counts[conversation] for conversation in sizes] for counts in (gained, lost))
    return Comparison(
        paired=True,
        records=len(pairs),
        records_a=len(pairs),
        records_b=len(pairs),
        looping_a=len(cured) + len(still),
        looping_b=len(newly) + len(still),
        conversations=len(sizes),
        by_number=0 if by_prompt else sum(not one.named for _, one, _ in pairs),
        by_prompt=by_prompt * len(pairs),
        by_order=0 if by_prompt else sum(key[:-1] in several for key, _, _ in pairs),
        few=any(2 * len(pairs) < sum(not one.counterpart for one in outcomes) for outcomes in (left, right)),
        repeated_a=_repeated(left),
        repeated_b=_repeated(right),
        newly=newly,
        cured=cured,
        still=still,
        only_a=len(left) - len(pairs),
        only_b=len(right) - len(pairs),
        stuck_a=sum(one.stuck for _, one, _ in pairs),
        stuck_b=sum(other.stuck for _, _, other in pairs),
        interval=paired_difference(up, down, list(sizes.values())),
        p=flip_test([more - fewer for more, fewer in zip(up, down, strict=True)]),
    )


def _of_groups(left: list[Outcome], right: list[Outcome], names_a: _Names, names_b: _Names) -> Comparison:
    """Compare two sides without pairs, as two groups of records."""
    sides = []
    for outcomes, names in ((left, names_a), (right, names_b)):
        records: Counter[tuple[str, str]] = Counter()
        looping: Counter[tuple[str, str]] = Counter()
        for outcome in outcomes:
            conversation = _conversation(names[outcome.file] or outcome.file, outcome)
            records[conversation] += 1
            looping[conversation] += outcome.looping
        sides.append(([looping[conversation] for conversation in records], list(records.values())))
    (looping_a, records_a), (looping_b, records_b) = sides
    rate_a, rate_b = sum(looping_a) / len(left), sum(looping_b) / len(right)
    return Comparison(
        paired=False,
        records=0,
        records_a=len(left),
        records_b=len(right),
        looping_a=sum(looping_a),
        looping_b=sum(looping_b),
        conversations=len(records_a) + len(records_b),
        by_number=0,
        by_prompt=0,
        by_order=0,
        few=False,
        repeated_a=_repeated(left),
        repeated_b=_repeated(right),
        newly=(),
        cured=(),
        still=(),
        only_a=len(left),
        only_b=len(right),
        stuck_a=sum(outcome.stuck for outcome in left),
        stuck_b=sum(outcome.stuck for outcome in right),
        interval=difference_interval(clustered(looping_a, records_a), rate_a, clustered(looping_b, records_b), rate_b),
        p=group_test(looping_a, records_a, looping_b, records_b),
    )


def _names(outcomes: list[Outcome]) -> dict[str, str]:
    """Return the name of each file, relative to the folder that contains all files."""
    files = dict.fromkeys(outcome.file for outcome in outcomes)
    folders = [os.path.dirname(os.path.abspath(file)) for file in files]
    common = os.path.commonpath(folders) if folders else ""
    return {file: os.path.relpath(os.path.abspath(file), common) for file in files}


def _check_ids(outcomes: list[Outcome]) -> None:
    """Raise LzsError if an id is in two files, since ids alone then do not identify the records."""
    file_of: dict[str, str] = {}
    for outcome in outcomes:
        file = file_of.setdefault(outcome.id, outcome.file)
        if file != outcome.file:
            raise LzsError(
                f"id {outcome.id!r} is in {file} and in {outcome.file}, and the other side has files with other names: "
                "compare them file by file"
            )


def _repeated(outcomes: list[Outcome]) -> int:
    return len(outcomes) - len({(outcome.file, outcome.id) for outcome in outcomes})


def _modelled(left: list[Outcome], right: list[Outcome], names_a: _Names, names_b: _Names) -> set[_Name]:
    """Return the names that several records of a side share and that both sides have for the same model."""
    sides: list[dict[_Name, list[str]]] = []
    for side, names in ((left, names_a), (right, names_b)):
        models: dict[_Name, list[str]] = {}
        for one in side:
            models.setdefault(_name(one, names), []).append(one.model)
        sides.append(models)
    here, there = sides
    several = {name for models in sides for name, those in models.items() if len(those) > 1}
    return {name for name in several if not set(here.get(name, ())).isdisjoint(there.get(name, ()))}


def _name(outcome: Outcome, names: _Names) -> _Name:
    return names[outcome.file], outcome.id, outcome.named, ""


def _keyed(outcomes: list[Outcome], names: _Names, modelled: set[_Name]) -> dict[_Key, Outcome]:
    seen: Counter[_Name] = Counter()
    keyed: dict[_Key, Outcome] = {}
    for outcome in outcomes:
        name = _name(outcome, names)
        if name in modelled:
            name = (*name[:-1], outcome.model)
        keyed[(*name, seen[name])] = outcome
        seen[name] += 1
    return keyed


def _by_prompt(outcomes: list[Outcome], names: _Names) -> dict[_Key, Outcome]:
    """Return the texts of an evaluation by prompt and seed.

    If a record is not of an evaluation, or two texts have the same prompt and seed, the dict is empty.
    """
    keyed: dict[_Key, Outcome] = {
        (names[one.file], one.counterpart, True, "", 0): one for one in outcomes if one.counterpart
    }
    return keyed if len(keyed) == len(outcomes) else {}


def _pairs(left: dict[_Key, Outcome], right: dict[_Key, Outcome]) -> list[tuple[_Key, Outcome, Outcome]]:
    return [(key, one, right[key]) for key, one in left.items() if key in right]


def _conversation(name: str, outcome: Outcome) -> tuple[str, str]:
    """Return the key of a record's conversation.

    ``name``: the name of the record's file. Records with equal keys are dependent.
    """
    return name, outcome.conversation or outcome.id
