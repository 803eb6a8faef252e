"""Stories saved by KoboldAI Lite: `actions`, in which the texts of the user and the model alternate."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import ONE_CHAT, Format, Message, Source

_INPUT, _OUTPUT = "{{[INPUT]}}", "{{[OUTPUT]}}"  # the marks of turns in its instruct mode


def matches(row: Any) -> bool:
    """Recognise a story by `gamestarted` and its actions."""
    return isinstance(row, dict) and "gamestarted" in row and isinstance(row.get("actions"), list)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every answer; in a story without marks, every text after the prompt."""
    if not matches(row):
        raise KeyError("actions")
    for i, action in enumerate(row["actions"]):
        if _INPUT in action:
            action = action.rpartition(_OUTPUT)[2] if _OUTPUT in action else ""
            if not action.strip():
                continue
        yield Message(action.removeprefix(_OUTPUT), number=i, conversation=ONE_CHAT)


FORMAT = Format("kobold", "stories saved by KoboldAI Lite", matches, messages)
