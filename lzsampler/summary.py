"""`Summary`: the figures of an audit, made by adding `Audited` records in the order of their files."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .records import LOOPING, Audited, BadRecord, FieldName, Finding, Rule

VERSION = 1  # of summary.json
WORST = 10  # records that the terminal shows, by wasted tokens
LISTED = 100  # bad records that are named


def loops(audited: Audited) -> list[Finding]:
    """Return the findings that make a record a looping one, the largest waste first, without what overlaps those.

    The same stretch is often found as characters, as words and as lines: it is one loop, and its waste counts once.
    """
    taken: list[Finding] = []
    covered: dict[FieldName, tuple[list[int], list[int]]] = {}  # starts and ends of those taken, in order
    for finding in sorted(audited.findings, key=lambda f: (-f.wasted_tokens, f.rule, f.start)):
        if finding.rule not in LOOPING:
            continue
        starts, ends = covered.setdefault(finding.field, ([], []))
        at = bisect_right(ends, finding.start)
        if at == len(starts) or finding.end <= starts[at]:
            starts.insert(at, finding.start)
            ends.insert(at, finding.end)
            taken.append(finding)
    return taken


def wasted_tokens(audited: Audited) -> int:
    """Return the tokens that all loops of a record waste together."""
    return sum(finding.wasted_tokens for finding in loops(audited))


def values(audited: Audited, by: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of `--by` that a record has, "" for one it does not have; "file" is always there."""
    return tuple(audited.file if key == "file" else audited.groups.get(key, "") for key in by)


@dataclass
class Group:
    """Counts of the records that share a value of `--by`; ``starts`` and ``periods`` have an entry a looping record.

    ``starts``: share of the text before its first loop, 0..1; ``periods``: that loop's, in characters.
    """

    records: int = 0
    looping: int = 0
    literal: int = 0
    characters: int = 0
    wasted_tokens: int = 0
    starts: list[float] = field(default_factory=list)
    periods: list[int] = field(default_factory=list)


@dataclass
class Summary:
    """All of it. ``rules``: the settings in force; ``by``: names of the groups' keys; ``groups``: by their values.

    ``total`` is the group of all records. ``rule_counts``: records that have a finding of each rule. ``points``:
    (period, copies) of the first loop of each looping record, at most 5,000 of them. ``metrics``: sums over records.
    """

    rules: Mapping[str, Any]
    by: tuple[str, ...] = ()
    total: Group = field(default_factory=Group)
    groups: dict[tuple[str, ...], Group] = field(default_factory=dict)
    rule_counts: dict[Rule, int] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    points: list[tuple[int, float]] = field(default_factory=list)
    worst: list[Audited] = field(default_factory=list)
    bad_records: int = 0
    bad: list[BadRecord] = field(default_factory=list)
