"""Conversations in plain text or Markdown: `llm logs`, aider's `.aider.chat.history.md`, and copied chats.

A copied chat has a heading, a bold word or a label for each speaker (`## User`, `**Assistant:**`, `User: ...`). The
first speaker is the user or the system. A title may stand before the first speaker. Only the model's text is read.
"""

import re
from collections.abc import Iterator

from ..reading.format import ONE_CHAT, Message

NAME = "transcript"
HELP = "conversations in Markdown or plain text: llm logs, aider, copied chats"

_LOGS = re.compile(r"^# \d{4}-\d\d-\d\dT\S+ +conversation: (?P<conversation>\S+)(?: id: (?P<id>\S+))?.*$", re.M)
_SECTION = re.compile(r"^## Response:?[ \t]*\n", re.M)
_REASONING = re.compile(r"^## Reasoning:?[ \t]*\n", re.M)
_AFTER = re.compile(r"^## (?:Token usage|Tool calls|Tool results)\b.*", re.M | re.S)
_MODEL = re.compile(r"^Model: \*\*(.+?)\*\*", re.M)
_AIDER = re.compile(r"^# aider chat started at ", re.M)
_USER = r"user|human|you|me|prompt|question|system"
_ANSWER = r"assistant|ai|bot|model|response|answer|chatgpt|(?:gpt|claude|gemini|llama)[-\w. ]{0,12}"
_NAMES = rf"(?P<user>{_USER})|(?P<model>{_ANSWER})"
_STYLES = (
    re.compile(rf"^#{{1,6}}[ \t]+(?:\*\*)?(?:{_NAMES}):?(?:\*\*)?:?[ \t]*$\n?", re.M | re.I),
    re.compile(rf"^(?:\*\*|__)(?:{_NAMES})(?::(?:\*\*|__)|(?:\*\*|__):?)[ \t]*\n?", re.M | re.I),
    re.compile(rf"^(?:{_NAMES}):[ \t]*\n?", re.M | re.I),
)
_TITLE = re.compile(r"\A\s*(?:#[^\n]*\n\s*)?(?:---\s*)?")


def matches(text: str) -> bool:
    """Recognise the beginning of a conversation."""
    return bool(_LOGS.match(text) or _AIDER.match(text.lstrip()) or _style(text))


def messages(text: str) -> Iterator[Message]:
    """Yield every answer of the model."""
    if _LOGS.match(text):
        yield from _logs(text)
    elif _AIDER.match(text.lstrip()):
        yield from _aider(text)
    elif style := _style(text):
        speakers = list(style.finditer(text))
        ends = [speaker.start() for speaker in speakers[1:]] + [len(text)]
        answers = (text[one.end() : end] for one, end in zip(speakers, ends, strict=True) if one["model"])
        yield from (Message(answer.strip("\n-"), number=i, conversation=ONE_CHAT) for i, answer in enumerate(answers))


def _style(text: str) -> "re.Pattern[str] | None":
    start = _TITLE.match(text)
    at = start.end() if start else 0
    for style in _STYLES:
        first = style.match(text, at) or style.match(text)
        if first and first["user"] and any(speaker["model"] for speaker in style.finditer(text, first.end())):
            return style
    return None


def _logs(text: str) -> Iterator[Message]:
    heads = list(_LOGS.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for i, (head, end) in enumerate(zip(heads, ends, strict=True)):
        part = text[head.end() : end]
        said = _SECTION.search(part)
        if said is None:
            continue
        thought = _REASONING.search(part, 0, said.start())
        model = _MODEL.search(part)
        reasoning = part[thought.end() : said.start()].strip("\n") if thought else None
        answer = _AFTER.sub("", part[said.end() :]).strip("\n")
        yield Message(answer, reasoning, head["id"], {"model": model[1]} if model else {}, i, head["conversation"])


def _aider(text: str) -> Iterator[Message]:
    said: list[str] = []
    number = 0
    for line in [*text.splitlines(keepends=True), "#### "]:
        if not line.startswith(("#### ", "> ", ">\n", "# aider chat started at")):
            said.append(line)
            continue
        if line.startswith("#### ") or not "".join(said).strip():
            answer = "".join(said).strip("\n")
            said = []
            if answer.strip():
                yield Message(answer, number=number, conversation=ONE_CHAT)
                number += 1
