"""What the parts of the audit hand to each other: a record, what was found in it, and what could not be read.

Readers make `Record`s, `findings` makes an `Audited` of each, and reports and summaries are made of those. All of it is
plain data that pickles quickly, since it is sent between processes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..decoding.reasoning import split

FieldName = Literal["reasoning", "answer", "turns"]  # "turns": those of a conversation
Level = Literal["char", "word", "line", "token", "turn"]
LEVELS: tuple[Level, ...] = ("char", "word", "line", "token")  # of a text
Rule = Literal["LZR001", "LZR002", "LZR003", "LZR004", "LZR005", "LZR006", "LZR010", "LZR011", "LZR012", "LZR020"]

RULES: dict[Rule, str] = {  # code: name. Those up to LZR006 make a record a looping one.
    "LZR001": "tail loop",  # characters, up to the end of the field
    "LZR002": "middle loop",  # characters, and the text goes on
    "LZR003": "line loop",  # whole lines, apart from white space at their ends
    "LZR004": "near loop",  # characters after digits are masked, case is folded and white space collapsed
    "LZR005": "word loop",  # words, with any white space between them
    "LZR006": "token loop",  # tokens of --tokenizer
    "LZR010": "high rep-4",  # many 4-grams of words are repeated, without a loop
    "LZR011": "stuck",  # hardly a word is new over a long stretch, whether or not it has a period
    "LZR012": "turn loop",  # the same turns of a conversation over and over, or calls of tools; only if asked for
    "LZR020": "literal loop",  # any unit, 20 copies (arXiv 2504.20131, footnote 7), but not a significant loop
}
LOOPING: tuple[Rule, ...] = ("LZR001", "LZR002", "LZR003", "LZR004", "LZR005", "LZR006")


@dataclass(frozen=True, slots=True)
class Field:
    """One text that a model wrote, or its tokens, int32[n], where the format has no text."""

    name: FieldName
    text: str
    tokens: npt.NDArray[np.int32] | None = None


def fields_of(answer: str | None, reasoning: str | None = None) -> tuple[Field, ...]:
    """Return the fields of a message; reasoning that stands inside the answer, between its marks, is split off."""
    if not reasoning and answer:
        reasoning, answer = split(answer)
    if not reasoning:
        return (Field("answer", answer or ""),)
    return (Field("reasoning", reasoning), Field("answer", answer)) if answer else (Field("reasoning", reasoning),)


@dataclass(frozen=True, slots=True)
class Record:
    """One message that a model wrote.

    ``number`` counts the lines, rows or elements of the file from 0. ``id`` is the id of the row, or else the number;
    where a conversation has several messages of the model, they share the number, and their ids end in ``/2``, ``/3``
    and so on from the second on. Several rows may have the same id, so it takes the file, the number and the id to
    identify a record. ``groups``: what `--by` may ask for, as strings: model, temperature, task, finish_reason (if the
    format has it; most loops end with "length") and the like. ``line``: the line of the file that holds the record,
    from 1; 0 if it is not on a line of its own, or if the file is compressed. ``named``: the id is one that the file
    has, and not the number. ``conversation``: what records that are not independent have in common within a file: the
    id of their conversation, or of the prompt that they all answer; "" where that is ``id``. ``counterpart``: of a text
    of an evaluation, its prompt and seed, which texts under other settings share; "" of others. If loops over turns are
    looked for, ``turn_of`` is the same for all turns of one conversation ("" if it is no turn), and ``calls`` has the
    calls of tools of the message; one that only calls tools has no fields, and is not counted as a record.
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
    """Part of a file that could not be read. It is counted and listed, and never ends the audit.

    ``line`` counts from 1; 0 if the part is not a line.
    """

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that is read from here on. ``format``: its name, and where its rows are, if inside those of the file.

    ``again``: it is a further piece of a file that was cut.
    """

    file: str
    format: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A file that is not read because of its name. It is counted by its reason, and is not a bad record."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class TurnsRead:
    """How many conversations have turns in which loops were looked for; they are not records."""

    conversations: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One stretch that repeats.

    ``start``, ``end`` and ``period`` are in characters of the field's text, ``copies`` is at least 2.0. For levels
    other than "char" the offsets are those of the characters that the units cover, and the period is the length of the
    first copy. Where a field has tokens only, offsets and period count tokens, and the unit is their ids. A finding of
    LZR010 covers the whole field, and its copies are how often a 4-gram occurs on average. Those of LZR011 are how
    often the 4-grams of the stretch occur in it, the median over its words and `Rules.stuck_count` at least, and its
    period is the length divided by them. Those of LZR012 are about a conversation: ``start``, ``end`` and ``period``
    count the model's turns in it, from 0, and the field is "turns".
    ``unit``: the text of the first copy, at most 200 characters. ``share``:
    start / length of the field, 0..1. ``tail``: whether the stretch reaches the end of the field, apart from white
    space. ``wasted_tokens``: the tokens of all copies but the first,
    counted by the tokenizer, or else as characters / 4.
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
    times in a row, be it reported as LZR020 or, where it is significant, as LZR001 or LZR002. ``characters``: the
    number in all fields. ``metrics``: figures of all fields together, by name (docs/audit.md); those that were not
    measured, as in fields with tokens only, are missing. ``texts``: (name, text) of the fields of looping records, for
    reports that show them; empty for others. ``line``, ``named``, ``conversation`` and ``counterpart`` as in `Record`.
    ``onset``: the share of a field, 0..1, before the degenerate stretch to which its first loop belongs
    (`lzsampler.auditing.onset`): of the first field that loops; None if nothing loops.
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
        """Whether it is about the turns of a conversation (LZR012), whose records are counted by themselves."""
        return bool(self.findings) and self.findings[0].field == "turns"

    @property
    def stuck(self) -> bool:
        """Whether it has a finding of LZR011."""
        return bool(self.findings) and any(finding.rule == "LZR011" for finding in self.findings)
