"""Exports of Open WebUI: chats with a tree of messages.

In newer exports, `output` has the reasoning and the answer as items. In older exports, reasoning is in `content`, in
`<details type="reasoning">`. The `<details>` of tools and of the code interpreter are left out.
"""

import html
import re
from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import cut_out, groups, items, name, turn

# Open WebUI's middleware writes these details. Each line inside is quoted. Some versions also escape the line. If the
# model was still thinking, the end tag is missing. The attributes contain the escaped results of tools.
_DETAILS = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"[^<>]*>\s*<summary>[^<>]*</summary>\n?')
_ENDS = dict.fromkeys(("reasoning", "tool_calls", "code_interpreter"), re.compile("\n?</details>\n?"))
_QUOTE = re.compile(r"^> ?", re.M)


def _history(row: Any) -> Any:
    chat = row.get("chat") if isinstance(row.get("chat"), dict) else row
    return chat.get("history")


def matches(row: Any) -> bool:
    """Recognise a chat by its `history`, which is under `chat` or, in old exports, at the top level."""
    if not isinstance(row, dict):
        return False
    history = _history(row)
    return isinstance(history, dict) and isinstance(history.get("messages"), dict)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every answer of the tree, in the order of the file."""
    found, id = groups(row, source.by), name(row)
    for message in _history(row)["messages"].values():
        made = turn(message, {**found, **groups(message, source.by)}, id)
        if made is not None:
            reasoning, answer = items(message.get("output") or ())
            if any(answer):
                made = made._replace(answer="\n".join(answer))
            if any(reasoning):
                made = made._replace(reasoning="\n".join(reasoning))
            yield _without_details(made)


def _without_details(message: Message) -> Message:
    if message.answer is None or "<details" not in message.answer:
        return message
    answer, blocks = cut_out(message.answer, _DETAILS, _ENDS)
    thoughts = [_QUOTE.sub("", html.unescape(thought)) for thought in blocks["reasoning"]]
    return message._replace(reasoning=message.reasoning or "\n".join(thoughts) or None, answer=answer)


FORMAT = Format("open-webui", "chats exported from Open WebUI", matches, messages)
