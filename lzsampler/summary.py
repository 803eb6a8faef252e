"""`Summary`: the figures of an audit, made by adding `Audited` records in the order of their files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .records import Audited, BadRecord, Rule

VERSION = 1  # of summary.json
WORST = 10  # records that the terminal shows, by wasted tokens
LISTED = 100  # bad records that are named


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
