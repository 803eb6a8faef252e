"""The actions on a loop, one file for each; `ACTIONS` maps their names to their classes."""

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
    """Return the names of the actions whose attribute ``of`` equals ``wanted``, for messages. "off" is left out."""
    listed = [each.name for each in ACTIONS.values() if each is not Off and getattr(each, of) == wanted]
    return f"{', '.join(listed[:-1])} or {listed[-1]}" if len(listed) > 1 else "".join(listed)


def describe(taken: ActionTaken) -> str:
    """Return one line that says what lzsampler did about a loop, and at which token."""
    return ACTIONS[taken.name].describe(taken)
