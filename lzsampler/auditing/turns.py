"""`Turns`: finds loops over the turns of a conversation (LZR012). A turn is a message or tool call of the model.

An agent may call the same tools with the same arguments repeatedly, or a model may give the same answer to every
question. No single message then contains repetition.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .findings import UNIT
from .records import Audited, Finding, Record
from .rules import Rules
from .scan import runs

_LONG = 4  # The turns of a loop need 4 * `Rules.length` characters together.
_ANSWER = 40  # minimum length of a cycle without tool calls; shorter answers are rightly repeated
_CHARACTERS_PER_TOKEN = 4


@dataclass
class _Conversation:
    """The turns of one conversation. ``texts``: a number for each turn; equal turns have equal numbers."""

    first: Record
    texts: list[int] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)  # number and line of each turn's record


class Turns:
    """Finds the loops over the turns of the conversations of a shard: `add` its records, then call `loops`.

    Two turns are equal if their reasoning, answer and tool calls are equal, apart from surrounding white space. The
    user's messages and the tool results between two turns do not count.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._numbers: dict[tuple[str, ...], int] = {}
        self._conversations: dict[str, _Conversation] = {}

    def add(self, record: Record) -> None:
        """Add a record if it is a turn."""
        if not record.turn_of:
            return
        text = (*(part.text.strip() for part in record.fields), record.calls)
        conversation = self._conversations.setdefault(record.turn_of, _Conversation(record))
        conversation.texts.append(self._numbers.setdefault(text, len(self._numbers)))
        conversation.places.append((record.number, record.line))

    @property
    def conversations(self) -> int:
        """The number of conversations."""
        return len(self._conversations)

    def loops(self) -> Iterator[Audited]:
        """Yield the looping conversations in the order of the file, with a finding for each loop."""
        texts = list(self._numbers)
        sizes = np.array([sum(map(len, text)) for text in texts], np.int64)
        for conversation in self._conversations.values():
            found = tuple(self._findings(conversation, texts, sizes))
            if not found:
                continue
            first = conversation.first
            number, line = conversation.places[found[0].start]
            yield Audited(first.file, number, first.id, first.groups, False, False, 0, found, {}, (), line, first.named)

    def _findings(
        self, conversation: _Conversation, texts: list[tuple[str, ...]], sizes: npt.NDArray[np.int64]
    ) -> Iterator[Finding]:
        """Yield the loops of a conversation. If loops overlap, only the longest is yielded."""
        turns = np.array(conversation.texts, np.int32)
        found = runs(turns, min_copies=self._rules.turn_copies, min_length=0)
        before = np.concatenate(([0], np.cumsum(sizes[turns])))
        taken = np.zeros(turns.size, np.bool_)
        chosen = []
        for i in np.lexsort((found.start, found.period, -found.length)).tolist():
            start, period, length = int(found.start[i]), int(found.period[i]), int(found.length[i])
            end = start + length
            cycle, total = int(before[start + period] - before[start]), int(before[end] - before[start])
            has_calls = any(texts[turn][-1] for turn in turns[start : start + period])
            if taken[start:end].any() or total < _LONG * self._rules.length or (cycle < _ANSWER and not has_calls):
                continue
            taken[start:end] = True
            unit = " | ".join(" ".join(filter(None, texts[turn])) for turn in turns[start : min(end, start + period)])
            chosen.append(
                Finding(
                    field="turns",
                    level="turn",
                    rule="LZR012",
                    start=start,
                    end=end,
                    period=period,
                    copies=length / period,
                    unit=unit[:UNIT],
                    share=start / turns.size,
                    tail=end == turns.size,
                    wasted_tokens=round((total - cycle) / _CHARACTERS_PER_TOKEN),
                )
            )
        yield from sorted(chosen, key=lambda finding: finding.start)
