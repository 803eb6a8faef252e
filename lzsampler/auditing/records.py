"""The data that the parts of the audit exchange: records, findings, and what could not be read.

Readers make `Record`s; `findings` turns each into an `Audited`; reports and summaries are made of those. All types are
plain data that pickles quickly, since processes send them to each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..decoding.reasoning import split

FieldName = Literal["reasoning", "answer", "turns"]  # "turns": the turns of a conversation
Level = Literal["char", "word", "line", "token", "turn"]
LEVELS: tuple[Level, ...] = ("char", "word", "line", "token")  # of a text
Rule = Literal["LZR001", "LZR002", "LZR003", "LZR004", "LZR005", "LZR006", "LZR010", "LZR011", "LZR012", "LZR020"]

RULES: dict[Rule, str] = {  # code: name. The codes up to LZR006 make a record loop.
    "LZR001": "tail loop",  # characters, up to the end of the field
    "LZR002": "middle loop",  # characters; the text continues after them
    "LZR003": "line loop",  # whole lines, apart from white space at their ends
    "LZR004": "near loop",  # characters, with masked digits, folded case and collapsed white space
    "LZR005": "word loop",  # words, with any white space between them
    "LZR006": "token loop",  # tokens of --tokenizer
    "LZR010": "high rep-4",  # many repeated 4-grams of words, without a loop
    "LZR011": "stuck",  # hardly any new words over a long stretch, with or without a period
    "LZR012": "turn loop",  # repeated turns of a conversation, or tool calls; only if `Rules.turns` is set
    "LZR020": "literal loop",  # 20 copies of any unit (arXiv 2504.20131, footnote 7) that are not a significant loop
}
LOOPING: tuple[Rule, ...] = ("LZR001", "LZR002", "LZR003", "LZR004", "LZR005", "LZR006")


@dataclass(frozen=True, slots=True)
class Field:
    """One text that a model wrote, or its tokens, int32[n], if the format has no text."""

    name: FieldName
    text: str
    tokens: npt.NDArray[np.int32] | None = None


def fields_of(answer: str | None, reasoning: str | None = None) -> tuple[Field, ...]:
    """Return the fields of a message. Reasoning between marks inside the answer becomes a field of its own."""
    if not reasoning and answer:
        reasoning, answer = split(answer)
    if not reasoning:
        return (Field("answer", answer or ""),)
    return (Field("reasoning", reasoning), Field("answer", answer)) if answer else (Field("reasoning", reasoning),)


@dataclass(frozen=True, slots=True)
class Record:
    """One message that a model wrote.

    ``number``: the number of the line, row or element in the file, from 0. ``id``: the id of the row, or else the
    number. If a conversation has several messages of the model, they share the number, and their ids end in ``/2``,
    ``/3`` and so on, from the second message on. Several rows may have the same id, so file, number and id together
    identify a record. ``named``: whether the id is from the file; if not, it is the number. ``line``: the line of the
    file that contains the record, from 1; 0 if it is not on a line of its own, or if the file is compressed.

    ``groups``: the values for `--by`, as strings: model, temperature, task, finish_reason (if the format has it; most
    loops end with "length") and others. ``conversation``: the id that dependent records of a file share: the id of
    their conversation, or of the prompt that they all answer; "" if it equals ``id``. ``counterpart``: for a text of an
    evaluation, its prompt and seed, which texts under other settings share; else "".

    ``turn_of``: if the audit looks for loops over turns, a name that all turns of one conversation share; "" if the
    record is not a turn. ``calls``: the tool calls of the message. A message that only calls tools has no fields and
    does not count as a record.
    """

    file: str
    number: int
    id: str
    fields: tuple[Field, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    line: int = 0
    named: bool = True
    conversation: str = ""
    turn_of: str = ""
    calls: str = ""
    counterpart: str = ""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A part of a file that could not be read. The audit counts and lists it, and continues.

    ``line``: the line, from 1; 0 if the part is not a line.
    """

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class FileRead:
    """The beginning of a file. ``format``: its name, and the place of its rows if they are nested in others.

    ``again``: whether it is a further piece of a file that was cut.
    """

    file: str
    format: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A file that is not read because of its name. It is counted by its reason and is not a bad record."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class TurnsRead:
    """The number of conversations whose turns were searched for loops; they are not records."""

    conversations: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One stretch that repeats.

    ``start``, ``end`` and ``period`` are in characters of the field's text; ``copies`` is at least 2.0. For levels
    other than "char", the offsets are those of the characters that the units cover, and the period is the length of the
    first copy. If a field has only tokens, offsets and period count tokens, and the unit is their ids.

    A finding of LZR010 covers the whole field; its copies are the average number of occurrences of a 4-gram. For
    LZR011, the copies are the number of occurrences of a 4-gram within the stretch: the median over its words, and at
    least `Rules.stuck_count`. Its period is the length divided by the copies. LZR012 is about a conversation:
    ``start``, ``end`` and ``period`` count the model's turns in it, from 0, and the field is "turns".

    ``unit``: the text of the first copy, at most 200 characters. ``share``: start / length of the field, 0..1.
    ``tail``: whether the stretch reaches the end of the field, apart from white space. ``wasted_tokens``: the tokens of
    all copies except the first, counted by the tokenizer, or else as characters / 4.
    """

    field: FieldName
    level: Level
    rule: Rule
    start: int
    end: int
    period: int
    copies: float
    unit: str
    share: float
    tail: bool
    wasted_tokens: int


@dataclass(frozen=True, slots=True)
class Audited:
    """A record after the audit.

    ``looping``: whether it has a finding of a selected rule of `LOOPING`. ``literal``: whether some unit occurs 20
    times in a row, reported as LZR020, or as LZR001 or LZR002 if it is significant. ``characters``: the number in all
    fields. ``metrics``: figures of all fields together, by name (docs/audit.md); figures that were not measured, as in
    fields with only tokens, are missing. ``texts``: (name, text) of the fields of looping records, for reports; empty
    for other records.

    ``line``, ``named``, ``conversation`` and ``counterpart``: as in `Record`. ``onset``: the share, 0..1, of the first
    looping field before the degenerate stretch of its first loop (`lzsampler.auditing.onset`); None if nothing loops.
    """

    file: str
    number: int
    id: str
    groups: Mapping[str, str]
    looping: bool
    literal: bool
    characters: int
    findings: tuple[Finding, ...]
    metrics: Mapping[str, float]
    texts: tuple[tuple[FieldName, str], ...] = ()
    line: int = 0
    named: bool = True
    conversation: str = ""
    onset: float | None = None
    counterpart: str = ""

    @property
    def is_conversation(self) -> bool:
        """Whether it is about the turns of a conversation (LZR012), whose messages are records of their own."""
        return bool(self.findings) and self.findings[0].field == "turns"

    @property
    def stuck(self) -> bool:
        """Whether it has a finding of LZR011."""
        return bool(self.findings) and any(finding.rule == "LZR011" for finding in self.findings)
