"""`Summary`: the counts, rates and metrics of an audit, summed over `Audited` records in the order of their files."""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, MutableSequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from ..util.stats import CONFIDENCE, Interval, wilson
from .clusters import Clusters, Property, key_of
from .coverage import Coverage
from .metrics import Sums
from .records import LOOPING, Audited, BadRecord, FieldName, FileRead, Finding, PassedOver, Rule, TurnsRead

VERSION = 1  # version of the format of summary.json
WORST = 10  # maximum length of `Summary.worst` and `Summary.worst_turns`
LISTED = 100  # maximum length of `Summary.bad`
POINTS = 5_000  # maximum number of points in the scatter plot of periods and copies


def loops(audited: Audited) -> list[Finding]:
    """Return the findings that make a record loop, the most wasteful first. Of overlapping findings, one is kept."""
    taken: list[Finding] = []
    covered: dict[FieldName, tuple[list[int], list[int]]] = {}  # sorted starts and ends of the findings in `taken`
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


def begins(audited: Audited, loop: Finding) -> float:
    """Return where the degenerate part of a field begins, as a share of the field, 0..1.

    ``loop``: one of the field's `loops`. In the record's first looping field, the result is `Audited.onset`. In other
    fields the onset is unknown, and the result is the start of ``loop``.
    """
    first = min(loops(audited), key=lambda found: (found.field == "answer", found.start))
    return audited.onset if audited.onset is not None and loop.field == first.field else loop.share


def wasted_tokens(audited: Audited) -> int:
    """Return how many tokens all loops of a record waste together."""
    return sum(finding.wasted_tokens for finding in audited.findings if finding.rule in LOOPING)


def values(audited: Audited, by: tuple[str, ...]) -> tuple[str, ...]:
    """Return a record's values for the keys of `--by`. If the record lacks a key, the value is ""."""
    return tuple(audited.file if key == "file" else audited.groups.get(key, "") for key in by)


def _shares() -> MutableSequence[float]:
    return array("d")  # Millions of records may loop, and a list would need several times the memory.


def _lengths() -> MutableSequence[int]:
    return array("q")


@dataclass
class Group:
    """Counts of the records that share the values of `--by`. ``stuck``: the number of records with LZR011.

    ``starts``: `Audited.onset` of each looping record. ``periods``: the period of each looping record's first loop, in
    characters. ``clusters``: the counts by conversation. If ``clusters`` is empty, records count as independent.
    """

    records: int = 0
    looping: int = 0
    literal: int = 0
    stuck: int = 0
    characters: int = 0
    wasted_tokens: int = 0
    starts: MutableSequence[float] = field(default_factory=_shares)
    periods: MutableSequence[int] = field(default_factory=_lengths)
    clusters: Clusters = field(default_factory=Clusters, repr=False, compare=False)

    @property
    def conversations(self) -> int:
        """The number of conversations. If all records are independent, this is the number of records."""
        return self.clusters.conversations if self.clusters else self.records

    def interval(self, of: Property) -> Interval:
        """Return the 95 % confidence interval of the share of records that are looping, literal or stuck."""
        return self.clusters.interval(of) if self.clusters else wilson(getattr(self, of), self.records)

    def add(self, item: Audited, cluster: int) -> None:
        """Count a record. ``cluster``: the key of its conversation (`key_of`).

        The caller must update ``wasted_tokens``, ``starts`` and ``periods``.
        """
        self.records += 1
        self.looping += item.looping
        self.literal += item.literal
        self.stuck += item.stuck
        self.characters += item.characters
        self.clusters.add(cluster, item.looping, item.literal, item.stuck)

    def merge(self, other: "Group") -> None:
        """Add the counts of ``other``, whose records come after the records of this group."""
        self.records += other.records
        self.looping += other.looping
        self.literal += other.literal
        self.stuck += other.stuck
        self.characters += other.characters
        self.wasted_tokens += other.wasted_tokens
        self.starts.extend(other.starts)
        self.periods.extend(other.periods)
        self.clusters.merge(other.clusters)

    def to_json(self) -> dict[str, Any]:
        """Return counts, rates with confidence intervals, and medians (None without loops), ready for JSON."""
        return {
            "records": self.records,
            "conversations": self.conversations,
            "looping": self.looping,
            "loop_rate": _rate(self.looping, self.records),
            "interval": list(self.interval("looping")),
            "literal": self.literal,
            "literal_rate": _rate(self.literal, self.records),
            "literal_interval": list(self.interval("literal")),
            "stuck": self.stuck,
            "stuck_rate": _rate(self.stuck, self.records),
            "stuck_interval": list(self.interval("stuck")),
            "characters": self.characters,
            "wasted_tokens": self.wasted_tokens,
            "median_start": _median(self.starts),
            "median_period": _median(self.periods),
        }


@dataclass
class Summary:
    """The counts, rates and metrics of an audit.

    ``rules``: the settings of the audit. ``by``: the keys that group the records. ``groups``: the groups by the values
    of these keys. ``total``: the group of all records. ``rule_counts``: the number of records with a finding of each
    rule. ``points``: (period, copies) of the first loop of each looping record, in the order of the records. If there
    are more than 5,000 points, the 5,000 with the smallest ``point_keys`` are kept. ``sums``: the sum of each metric
    over the records that have the metric. ``worst``: the records that waste the most tokens, without their texts.

    ``bad``: the first bad records. ``coverage``: counts of files and formats, and what was not read.
    ``turn_conversations``: the number of conversations whose turns were searched for loops. ``turn_loops``: how many of
    these conversations loop (LZR012). ``worst_turns``: the conversations whose loops over turns waste the most tokens.
    Each message of a conversation also counts as a record. After `merge`, no list exceeds its maximum length.

    The result does not depend on how the work is divided among processes. Each task's records are summed separately,
    and the sums are merged in the order of the tasks. The tasks of the same files are always the same, so even the
    rounding of float sums is the same.
    """

    rules: Mapping[str, Any]
    by: tuple[str, ...] = ()
    total: Group = field(default_factory=Group)
    groups: dict[tuple[str, ...], Group] = field(default_factory=dict)
    rule_counts: dict[Rule, int] = field(default_factory=dict)
    sums: Sums = field(default_factory=Sums)
    points: list[tuple[int, float]] = field(default_factory=list)
    worst: list[Audited] = field(default_factory=list)
    bad_records: int = 0
    bad: list[BadRecord] = field(default_factory=list)
    point_keys: list[int] = field(default_factory=list, repr=False)
    coverage: Coverage = field(default_factory=Coverage)
    turn_loops: int = 0
    turn_conversations: int = 0
    worst_turns: list[Audited] = field(default_factory=list)

    @property
    def metrics(self) -> dict[str, float]:
        """The sum of each metric, by name, over the records that have the metric."""
        return self.sums.sums

    @property
    def measured(self) -> dict[str, int]:
        """The number of records that have each metric."""
        return self.sums.counts

    @property
    def absent(self) -> tuple[str, ...]:
        """The keys of ``by`` that no record has; they may be misspelled."""
        return tuple(key for i, key in enumerate(self.by) if self.groups and not any(of[i] for of in self.groups))

    @property
    def loop_rate(self) -> float:
        """Share of the records that loop, 0..1; 0 if there are no records."""
        return _rate(self.total.looping, self.total.records)

    @property
    def literal_rate(self) -> float:
        """Share of the records with a literal loop, 0..1. LZR020 reports the literal loops that are not significant."""
        return _rate(self.total.literal, self.total.records)

    @property
    def stuck_rate(self) -> float:
        """Share of the records with a finding of LZR011, 0..1."""
        return _rate(self.total.stuck, self.total.records)

    @property
    def turn_loop_rate(self) -> float:
        """Share of the conversations whose turns loop (LZR012), 0..1; 0 if no turns were searched."""
        return _rate(self.turn_loops, self.turn_conversations)

    @property
    def turn_interval(self) -> Interval:
        """Wilson's 95 % confidence interval of `turn_loop_rate`."""
        return wilson(self.turn_loops, self.turn_conversations)

    @property
    def bad_rate(self) -> float:
        """Share of bad records among all records, 0..1."""
        return _rate(self.bad_records, self.total.records + self.bad_records)

    def add(self, item: Audited | BadRecord | FileRead | PassedOver | TurnsRead) -> None:
        """Count a record, the beginning of a file, a skipped file, conversations, or an unreadable part."""
        if not isinstance(item, Audited):
            self._add_other(item)
        elif item.is_conversation:
            self.turn_loops += 1
            self.rule_counts["LZR012"] = self.rule_counts.get("LZR012", 0) + 1
            self.worst_turns = _most_wasteful([*self.worst_turns, item])
        else:
            self._add_record(item)

    def _add_other(self, item: BadRecord | FileRead | PassedOver | TurnsRead) -> None:
        if isinstance(item, FileRead):
            self.coverage.begin(item)
        elif isinstance(item, TurnsRead):
            self.turn_conversations += item.conversations
        elif isinstance(item, PassedOver):
            self.coverage.pass_over(item.file, item.reason)
        else:
            self.coverage.bad(item)
            self.bad_records += 1
            if len(self.bad) < LISTED:
                self.bad.append(item)

    def _add_record(self, item: Audited) -> None:
        self.coverage.record()
        found = loops(item) if item.looping else []
        first = min(found, key=lambda f: (f.field == "answer", f.start)) if found else None
        wasted = wasted_tokens(item) if found else 0
        groups = [self.total]
        if self.by:
            groups.append(self.groups.setdefault(values(item, self.by), Group()))
        cluster = key_of(item)
        for group in groups:
            group.add(item, cluster)
            group.wasted_tokens += wasted
            if first is not None:
                group.starts.append(first.share if item.onset is None else item.onset)
                group.periods.append(first.period)
        for rule in {finding.rule for finding in item.findings}:
            self.rule_counts[rule] = self.rule_counts.get(rule, 0) + 1
        self.sums.add(item.metrics)
        if first is not None:
            self.points.append((first.period, first.copies))
            self.point_keys.append(_point_key(item))
            self.worst.append(replace(item, texts=()))
            if len(self.worst) > 2 * WORST:  # Trimming sorts the list, so it is not done for each record.
                self._trim_worst()
            if len(self.points) > 2 * POINTS:
                self._trim_points()

    def merge(self, other: "Summary") -> None:
        """Add a summary of later records under the same rules."""
        self.total.merge(other.total)
        for key, group in other.groups.items():
            self.groups.setdefault(key, Group()).merge(group)
        for rule, count in other.rule_counts.items():
            self.rule_counts[rule] = self.rule_counts.get(rule, 0) + count
        self.sums.merge(other.sums)
        self.points += other.points
        self.point_keys += other.point_keys
        self.worst += other.worst
        self.coverage.merge(other.coverage)
        self.bad_records += other.bad_records
        self.bad += other.bad[: LISTED - len(self.bad)]
        self.turn_loops += other.turn_loops
        self.turn_conversations += other.turn_conversations
        self.worst_turns = _most_wasteful([*self.worst_turns, *other.worst_turns])
        self._trim_worst()
        self._trim_points()

    def _trim_worst(self) -> None:
        self.worst = sorted(self.worst, key=lambda audited: -wasted_tokens(audited))[:WORST]

    def _trim_points(self) -> None:
        if len(self.points) > POINTS:
            kept = sorted(sorted(range(len(self.points)), key=self.point_keys.__getitem__)[:POINTS])
            self.points = [self.points[i] for i in kept]
            self.point_keys = [self.point_keys[i] for i in kept]

    def to_json(self) -> dict[str, Any]:
        """Return summary.json as docs/audit_summary.md describes it, ready for json.dumps."""
        return {
            "version": VERSION,
            **self.total.to_json(),
            "confidence": CONFIDENCE,
            "rules": dict(self.rules),
            "rule_counts": dict(sorted(self.rule_counts.items())),
            "metrics": {name: total / self.measured[name] for name, total in sorted(self.metrics.items())},
            "turn_conversations": self.turn_conversations,
            "turn_loops": self.turn_loops,
            "turn_loop_rate": self.turn_loop_rate,
            "turn_loop_interval": list(self.turn_interval),
            "worst_turns": [
                {
                    "file": one.file,
                    "id": one.id,
                    "line": one.line or None,
                    "first": found.start,
                    "end": found.end,
                    "period": found.period,
                    "copies": found.copies,
                    "unit": found.unit,
                    "wasted_tokens": found.wasted_tokens,
                }
                for one in self.worst_turns
                for found in one.findings
            ],
            "by": list(self.by),
            "groups": [
                {"group": dict(zip(self.by, (value or None for value in key), strict=True)), **group.to_json()}
                for key, group in sorted(self.groups.items())
            ],
            "bad_records": self.bad_records,
            "bad_rate": self.bad_rate,
            "bad": [{"file": bad.file, "line": bad.line or None, "reason": bad.reason} for bad in self.bad],
            **self.coverage.to_json(),
        }


def _most_wasteful(conversations: list[Audited]) -> list[Audited]:
    return sorted(conversations, key=lambda one: -sum(found.wasted_tokens for found in one.findings))[:WORST]


def _rate(count: int, n: int) -> float:
    return count / n if n else 0.0


def _median(numbers: MutableSequence[Any]) -> float | None:
    return float(np.median(np.asarray(numbers))) if numbers else None


def _point_key(audited: Audited) -> int:
    """Return a 64-bit hash of a record's file, number and id. The points with the smallest hashes are kept."""
    name = f"{audited.file}\0{audited.number}\0{audited.id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big")
