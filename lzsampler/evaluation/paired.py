"""`Paired`: texts of a setting next to those of the same prompt and seed without a penalty."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..util.stats import Interval, bootstrap_mean, mcnemar
from .counts import Outcome


@dataclass(frozen=True)
class Paired:
    """Texts next to those of the same prompt and seed without a penalty, at the same temperature and truncation.

    ``newly``: loop only with the penalty, ``cured``: only without; ``loop_p``: McNemar's exact test, two-sided.
    ``loop_difference``: loop rate with it minus that without, -1..1. ``gained``, ``lost``: right only with it, only
    without, among ``answered`` pairs; ``accuracy_p`` and ``accuracy_difference`` likewise, the latter None without
    tasks. Intervals: 95 %, bootstrap, whole prompts drawn.
    """

    pairs: int
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

    def to_json(self) -> dict[str, Any]:
        """Return it for results.json."""
        return {name: list(v) if isinstance(v, Interval) else v for name, v in vars(self).items()}


def paired(pairs: Sequence[tuple[Outcome, Outcome]]) -> Paired:
    """Return how texts differ from their partners without a penalty, which come second in each pair."""
    prompts = [text.prompt for text, _ in pairs]
    loops = [int(text.looping) - int(none.looping) for text, none in pairs]
    tasks = [(text, none) for text, none in pairs if text.right is not None and none.right is not None]
    rights = [int(bool(text.right)) - int(bool(none.right)) for text, none in tasks]
    return Paired(
        pairs=len(pairs),
        newly=loops.count(1),
        cured=loops.count(-1),
        loop_p=mcnemar(loops.count(1), loops.count(-1)),
        loop_difference=sum(loops) / len(pairs),
        loop_interval=bootstrap_mean(loops, prompts),
        answered=len(tasks),
        gained=rights.count(1),
        lost=rights.count(-1),
        accuracy_p=mcnemar(rights.count(1), rights.count(-1)),
        accuracy_difference=sum(rights) / len(tasks) if tasks else None,
        accuracy_interval=bootstrap_mean(rights, [text.prompt for text, _ in tasks]) if tasks else None,
    )
