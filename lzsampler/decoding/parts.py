"""The parts of a text: thinking, answer and tool calls, which marks such as `<think>` separate."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from .._check import integer
from ..errors import ArgumentError, ArgumentTypeError
from ..llama.marks import MARKS, TOOL_MARKS
from .reasoning import ANSWER_OF_CHANNELS

Part = Literal["thinking", "answer", "tool"]
PARTS: tuple[Part, ...] = get_args(Part)

_ANALYSIS = ("<|channel|>analysis", "<|start|>assistant<|channel|>analysis")
_FINAL = "<|channel|>final"
_THINKING = {
    **{mark.encode(): closing.encode() for mark, closing in MARKS.items()},
    **{mark.encode(): _FINAL.encode() for mark in _ANALYSIS},
}
_TOOLS = {mark.encode(): closing.encode() for mark, closing in TOOL_MARKS.items()}
_TOOL = re.compile(b"|".join(map(re.escape, _TOOLS)))
_LONGEST = max(len(mark) for mark in (*_THINKING, *_THINKING.values(), *_TOOLS, *_TOOLS.values()))
_BEFORE_THINKING = 200  # thinking begins within this many characters from the beginning, as in `reasoning.split`


class PartTracker:
    """Tells in which part of a text the next token falls. `cut` goes back to an earlier token.

    ``opened``: the opening mark of reasoning at the end of the prompt (`reasoning.opened`), "" if there is no such
    mark. Thinking begins where `reasoning.split` finds it, and only once: a block that opens after the beginning of a
    text belongs to the answer. A closing mark belongs to the part that it ends, an opening mark to the part before it.
    A mark may consist of several tokens. Control tokens count as the text that `Model.piece` returns for them.
    """

    def __init__(self, opened: str = "") -> None:
        # For each token: (part after it, mark that ends this part or b"", text that may begin a mark).
        begin = ("thinking", MARKS[opened].encode(), b"") if opened else ("begin", b"", b"")
        self._states: list[tuple[str, bytes, bytes]] = [begin]

    @property
    def part(self) -> Part:
        """The part in which the next token falls."""
        part = self._states[-1][0]
        return "thinking" if part == "thinking" else "tool" if part == "tool" else "answer"

    @property
    def closing(self) -> str | None:
        """The text that would end the thinking here; None if the text is not in its thinking."""
        part, mark, _ = self._states[-1]
        if part != "thinking":
            return None
        closing = mark.decode()
        return ANSWER_OF_CHANNELS if closing == _FINAL else closing

    def add(self, fragment: str | bytes) -> None:
        """Take the text that one token adds, which may be empty or part of a character."""
        data = fragment.encode("utf-8", "surrogatepass") if isinstance(fragment, str) else fragment
        self._states.append(_after(*self._states[-1], data) if data else self._states[-1])

    def cut(self, n: int) -> None:
        """Go back to the state after the first ``n`` tokens."""
        n = integer("n", n, 0, len(self._states) - 1)
        del self._states[n + 1 :]


def _after(part: str, mark: bytes, tail: bytes, data: bytes) -> tuple[str, bytes, bytes]:
    text = tail + data
    if part == "begin":
        begin = text.lstrip()
        opening = next((mark for mark in _THINKING if begin.startswith(mark)), None)
        if opening is not None:
            return _after("thinking", _THINKING[opening], b"", begin[len(opening) :])
        if len(text) < _BEFORE_THINKING and any(mark.startswith(begin) for mark in _THINKING):
            return part, b"", text
        return _after("answer", b"", b"", text)
    if part == "answer":
        found = _TOOL.search(text)
        if found is None:
            return part, b"", text[-_LONGEST:]
        return _after("tool", _TOOLS[found[0]], b"", text[found.end() :])
    if mark:
        at = text.find(mark)
        if at >= 0:
            return _after("answer", b"", b"", text[at + len(mark) :])
    return part, mark, text[-_LONGEST:]


def parts_of(name: str, parts: Sequence[str] | None) -> tuple[Part, ...]:
    """Return the given parts in their usual order, all parts for None; ValueError for an unknown part or no part."""
    if parts is None:
        return PARTS
    if not isinstance(parts, Iterable):
        raise ArgumentTypeError(f"{name} must be a list of parts, got {parts!r}")
    given = [parts] if isinstance(parts, str) else list(parts)
    for part in given:
        if part not in PARTS:
            raise ArgumentError(f"{name} must be some of {', '.join(PARTS)}, got {part!r}")
    if not given:
        raise ArgumentError(f"{name} must have a part: {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in given)


def parts_of_grammar(parts: Sequence[str] | None, has_grammar: bool) -> tuple[Part, ...]:
    """Return the parts of ``grammar_scope`` as `parts_of` does. ValueError also if the answer or the grammar is
    missing.
    """
    if parts is not None and not has_grammar:
        raise ArgumentError("grammar_scope has no effect without a grammar: give a grammar, or leave grammar_scope out")
    scope = parts_of("grammar_scope", parts)
    if "answer" not in scope:
        raise ArgumentError(f"grammar_scope must have the answer, which ends the text, got {parts!r}")
    return scope
