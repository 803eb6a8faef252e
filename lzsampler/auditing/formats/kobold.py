"""Stories saved by KoboldAI Lite. In the list `actions`, the texts of the user and the model alternate."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import ONE_CHAT, Format, Message, Source

_INPUT, _OUTPUT = "{{[INPUT]}}", "{{[OUTPUT]}}"  # In instruct mode, these tags begin the user's and the model's text.


def matches(row: Any) -> bool:
    """Recognise a story by `gamestarted` and its actions."""
    return isinstance(row, dict) and "gamestarted" in row and isinstance(row.get("actions"), list)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every answer. In a story without tags, yield every text after the prompt."""
    if not matches(row):
        raise KeyError("actions")
    for i, action in enumerate(row["actions"]):
        if _INPUT in action:
            action = action.rpartition(_OUTPUT)[2] if _OUTPUT in action else ""
            if not action.strip():
                continue
        yield Message(action.removeprefix(_OUTPUT), number=i, conversation=ONE_CHAT)


FORMAT = Format("kobold", "stories saved by KoboldAI Lite", matches, messages)
