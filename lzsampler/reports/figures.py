"""What several reports say about a summary and its records, in the same words and the same order."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..records import LOOPING, Audited, Finding
from ..summary import Group, Summary

_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?|\d+(?:\.\d+)?")

LITERAL = "any unit, 20 copies"  # the paper's rule, arXiv 2504.20131, footnote 7


def loops(audited: Audited) -> list[Finding]:
    """Return the findings that make a record a looping one, the largest waste first, without what overlaps those.

    The same stretch is often found as characters, as words and as lines: it is one loop, and its waste counts once.
    """
    found = [finding for finding in audited.findings if finding.rule in LOOPING]
    found.sort(key=lambda f: (-f.wasted_tokens, f.rule, f.start))
    return disjoint(found)


def disjoint(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that overlap none before them, in their order."""
    taken: list[Finding] = []
    for finding in findings:
        if all(finding.field != f.field or finding.end <= f.start or f.end <= finding.start for f in taken):
            taken.append(finding)
    return taken


def wasted_tokens(audited: Audited) -> int:
    """Return the tokens that all loops of a record waste together."""
    return sum(finding.wasted_tokens for finding in loops(audited))


def ordered(groups: Mapping[tuple[str, ...], Group]) -> list[tuple[tuple[str, ...], Group]]:
    """Return groups by their values, numbers as numbers: 0.6 before 1, 8b before 14b."""
    return sorted(groups.items(), key=lambda item: [_natural(value) for value in item[0]])


def _natural(value: str) -> list[Any]:
    parts: list[Any] = []
    end = 0
    for match in _NUMBER.finditer(value):
        parts += [(0, 0.0, value[end : match.start()]), (1, float(match[0]), "")]
        end = match.end()
    return [*parts, (0, 0.0, value[end:]), value]


def selected(summary: Summary, most: int) -> list[tuple[tuple[str, ...], Group]]:
    """Return at most ``most`` groups in order: all, or those that waste most tokens."""
    if len(summary.groups) <= most:
        return ordered(summary.groups)
    worst = sorted(summary.groups.items(), key=lambda item: (-item[1].wasted_tokens, -item[1].looping, item[0]))
    return ordered(dict(worst[:most]))


def values(audited: Audited, by: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of the groups that a record belongs to."""
    return tuple(audited.file if key == "file" else audited.groups.get(key, "") for key in by)
