"""`rows`: the rows of an evaluation's report. Before each kind is a row without a penalty at the same temperatures."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .text import visible

if TYPE_CHECKING:
    from ..evaluation.results import Results

NONE = "none"


@dataclass(frozen=True)
class Row:
    """A kind of settings at its best strength. ``settings``: names of the settings that are counted together.

    ``against``: names of the settings without a penalty with which ``settings`` are compared (`Results.against`). It is
    empty if there are none, and for a row without a penalty.
    """

    kind: str
    label: str
    settings: tuple[str, ...]
    against: tuple[str, ...] = ()


def rows(results: "Results") -> list[Row]:
    """Return a row for each kind at its best strength, after the row without a penalty with which it is compared.

    If several kinds are compared with the same texts, they share the row without a penalty. If kinds are compared with
    different texts, the labels include the temperatures. If only some settings of a kind have a partner without a
    penalty, the other settings are left out.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for kind, strength in results.chosen.items():
        settings = results.settings(kind=kind, strength=strength)
        if kind == NONE:
            if not any(map(results.against, results.grid.settings)):
                groups.setdefault((), []).insert(0, Row(NONE, NONE, tuple(each.name for each in settings)))
            continue
        partners = {each.name: none.name for each in settings if (none := results.against(each)) is not None}
        label = visible(kind) + (f" {strength:g}" if strength or len(results.strengths(kind)) > 1 else "")
        against = tuple(sorted(set(partners.values())))
        taken = tuple(partners) or tuple(each.name for each in settings)
        groups.setdefault(against, []).append(Row(kind, label, taken, against))
    made = [row for against, group in groups.items() for row in ([Row(NONE, NONE, against)] if against else []) + group]
    places = [_temperatures(results, row) for row in made]
    if len(set(places)) < 2:
        return made
    return [replace(row, label=f"{row.label} at T={place}") for row, place in zip(made, places, strict=True)]


def _temperatures(results: "Results", row: Row) -> str:
    found = {setting.params.temperature for setting in results.settings(name=row.settings)}
    return ", ".join(f"{temperature:g}" for temperature in sorted(found))
