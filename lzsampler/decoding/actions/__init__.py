"""The actions on a loop: a file for each, and `ACTIONS`, which has them by name."""

from .action import ActionTaken, Decision, Draw, LoopAction, LoopingText
from .boost import Boost
from .close_think import CloseThink
from .off import Off
from .rewind import Rewind
from .stop import Stop
from .trim import Trim

__all__ = [
    "ACTIONS",
    "ActionTaken",
    "Decision",
    "Draw",
    "LoopAction",
    "LoopingText",
    "Off",
    "Stop",
    "describe",
    "names",
]

ACTIONS: dict[str, type[LoopAction]] = {action.name: action for action in (Off, Stop, Trim, Rewind, CloseThink, Boost)}


def names(of: str, wanted: bool = True) -> str:
    """Return the names of the actions that have an attribute, or that have it not, for messages; without "off"."""
    listed = [each.name for each in ACTIONS.values() if each is not Off and getattr(each, of) == wanted]
    return f"{', '.join(listed[:-1])} or {listed[-1]}" if len(listed) > 1 else "".join(listed)


def describe(taken: ActionTaken) -> str:
    """Return in a line what was done about a loop, and where."""
    return ACTIONS[taken.name].describe(taken)
