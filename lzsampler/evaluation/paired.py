"""`Paired`: the texts of a setting, compared with the texts of the same prompt and seed without a penalty."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..util.clustered import paired_difference
from ..util.stats import Interval, mcnemar
from .counts import Outcome


@dataclass(frozen=True)
class Paired:
    """Texts with a penalty, each paired with its partner: the text without a penalty of the same prompt and seed.

    A text and its partner have the same temperature and truncation. ``looping_none``: partners that loop. ``newly``:
    pairs in which only the text loops. ``cured``: pairs in which only the partner loops. ``loop_p``: McNemar's exact
    test, two-sided. ``loop_difference``: the loop rate of the texts minus the loop rate of the partners, -1..1.
    ``answered``: pairs whose answers were compared. ``gained``: answered pairs in which only the text is correct.
    ``lost``: answered pairs in which only the partner is correct. ``accuracy_p`` and ``accuracy_difference``: as for
    loops, but for correct answers; the difference is None without tasks. Intervals are the 95 % intervals of
    `paired_difference`, with the prompts as clusters. ``stuck``: answered pairs whose partner loops.
    ``stuck_right_none``: pairs in ``stuck`` whose partner is correct. ``stuck_right``: pairs in ``stuck`` whose text is
    correct.
    """

    pairs: int
    looping_none: int
    newly: int
    cured: int
    loop_p: float
    loop_difference: float
    loop_interval: Interval
    answered: int
    gained: int
    lost: int
    accuracy_p: float
    accuracy_difference: float | None
    accuracy_interval: Interval | None
    stuck: int
    stuck_right_none: int
    stuck_right: int

    def to_json(self) -> dict[str, Any]:
        """Return the entry for results.json."""
        return {name: list(v) if isinstance(v, Interval) else v for name, v in vars(self).items()}


def paired(pairs: Sequence[tuple[Outcome, Outcome]]) -> Paired:
    """Return how texts differ from their partners without a penalty. ``pairs``: (text, partner) for each text."""
    loops = [int(text.looping) - int(none.looping) for text, none in pairs]
    tasks = [(text, none) for text, none in pairs if text.right is not None and none.right is not None]
    stuck = [(text, none) for text, none in tasks if none.looping]
    rights = [int(bool(text.right)) - int(bool(none.right)) for text, none in tasks]
    return Paired(
        pairs=len(pairs),
        looping_none=sum(none.looping for _, none in pairs),
        newly=loops.count(1),
        cured=loops.count(-1),
        loop_p=mcnemar(loops.count(1), loops.count(-1)),
        loop_difference=sum(loops) / len(pairs),
        loop_interval=_interval(pairs, loops),
        answered=len(tasks),
        gained=rights.count(1),
        lost=rights.count(-1),
        accuracy_p=mcnemar(rights.count(1), rights.count(-1)),
        accuracy_difference=sum(rights) / len(tasks) if tasks else None,
        accuracy_interval=_interval(tasks, rights) if tasks else None,
        stuck=len(stuck),
        stuck_right_none=sum(none.right is True for _, none in stuck),
        stuck_right=sum(text.right is True for text, _ in stuck),
    )


def _interval(pairs: Sequence[tuple[Outcome, Outcome]], changes: Sequence[int]) -> Interval:
    """Return the interval of the mean of ``changes``, each 1, 0 or -1, with the prompts of ``pairs`` as clusters."""
    prompts: dict[str, list[int]] = {}
    for (text, _), change in zip(pairs, changes, strict=True):
        prompts.setdefault(text.prompt, []).append(change)
    gained, lost = ([of.count(sign) for of in prompts.values()] for sign in (1, -1))
    return paired_difference(gained, lost, [len(of) for of in prompts.values()])
