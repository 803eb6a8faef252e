"""The groups of a summary, in the order and number in which reports show them."""

import re
from collections.abc import Mapping
from typing import Any

from .._values import counted
from ..auditing.records import Finding
from ..auditing.summary import Group, Summary

_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?|\d+(?:\.\d+)?")


def literal_rule(summary: Summary) -> str:
    """Describe the rule for a literal loop in words. The default is the rule of arXiv 2504.20131, footnote 7."""
    return f"any unit, {summary.rules.get('literal_copies', 20)} copies"


def turns_of(finding: Finding) -> str:
    """Describe a loop over turns (LZR012): how many turns are repeated, how often, and where. Turns count from 0."""
    cycle = "turn" if finding.period == 1 else counted(finding.period, "turn")
    return f"the same {cycle} {finding.copies:.4g} times in a row, turns {finding.start:,} to {finding.end - 1:,}"


def ordered(groups: Mapping[tuple[str, ...], Group]) -> list[tuple[tuple[str, ...], Group]]:
    """Return groups sorted by their values, with numbers in numeric order: 0.6 before 1, 8b before 14b."""
    return sorted(groups.items(), key=lambda item: [_natural(value) for value in item[0]])


def _natural(value: str) -> tuple[list[Any], str]:
    parts: list[Any] = []
    end = 0
    for match in _NUMBER.finditer(value):
        parts += [(0, 0.0, value[end : match.start()]), (1, float(match[0]), "")]
        end = match.end()
    return [*parts, (0, 0.0, value[end:])], value


def selected(summary: Summary, most: int) -> list[tuple[tuple[str, ...], Group]]:
    """Return at most ``most`` groups, in order. If there are more, return the groups that waste the most tokens."""
    if len(summary.groups) <= most:
        return ordered(summary.groups)
    worst = sorted(summary.groups.items(), key=lambda item: (-item[1].wasted_tokens, -item[1].looping, item[0]))
    return ordered(dict(worst[:most]))
