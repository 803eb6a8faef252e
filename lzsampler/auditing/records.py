"""The data types of the audit: records, findings, and what could not be read.

Readers make a `Record` for each message. `findings` turns each `Record` into an `Audited`. Reports and summaries are
made from the `Audited` records. All types are plain data that pickles quickly, since processes exchange such objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..decoding.reasoning import split

FieldName = Literal["reasoning", "answer", "turns"]  # "turns" stands for all turns of a conversation
Level = Literal["char", "word", "line", "token", "turn"]
LEVELS: tuple[Level, ...] = ("char", "word", "line", "token")  # the levels of a text; "turn" is for conversations
Rule = Literal["LZR001", "LZR002", "LZR003", "LZR004", "LZR005", "LZR006", "LZR010", "LZR011", "LZR012", "LZR020"]

# Code and name of each rule. A record loops if it has a finding of LZR001 to LZR006.
RULES: dict[Rule, str] = {
    "LZR001": "tail loop",  # repeated characters up to the end of the field
    "LZR002": "middle loop",  # repeated characters with other text after them
    "LZR003": "line loop",  # repeated lines, compared without the white space at their ends
    "LZR004": "near loop",  # repeated characters, compared with masked digits, folded case and collapsed white space
    "LZR005": "word loop",  # repeated words, with any white space between them
    "LZR006": "token loop",  # repeated tokens of --tokenizer
    "LZR010": "high rep-4",  # many repeated 4-grams of words, without a loop
    "LZR011": "stuck",  # a long stretch with hardly any new words, with or without a period
    "LZR012": "turn loop",  # repeated messages or tool calls of a conversation; only if `Rules.turns` is set
    "LZR020": "literal loop",  # 20 copies of any unit (arXiv 2504.20131, footnote 7) that are not a significant loop
}
LOOPING: tuple[Rule, ...] = ("LZR001", "LZR002", "LZR003", "LZR004", "LZR005", "LZR006")


@dataclass(frozen=True, slots=True)
class Field:
    """One text that a model wrote. ``tokens``: the token ids, int32[n], if the file has them instead of a text."""

    name: FieldName
    text: str
    tokens: npt.NDArray[np.int32] | None = None


def fields_of(answer: str | None, reasoning: str | None = None) -> tuple[Field, ...]:
    """Return the fields of a message. Reasoning between tags such as ``<think>`` in the answer becomes a field."""
    if not reasoning and answer:
        reasoning, answer = split(answer)
    if not reasoning:
        return (Field("answer", answer or ""),)
    return (Field("reasoning", reasoning), Field("answer", answer)) if answer else (Field("reasoning", reasoning),)


@dataclass(frozen=True, slots=True)
class Record:
    """One message that a model wrote.

    ``number``: the number of the line, row or element in the file, from 0. ``id``: the id of the row, or ``number`` if
    the row has no id. ``named``: whether the row has an id. If a row has several messages of the model, the messages
    share ``number``. From the second message on, ``id`` ends in ``/2``, ``/3`` and so on. Several rows may have the
    same id, so file, number and id together identify a record. ``line``: the number, from 1, of the line with the
    record; 0 if the rows are not lines, or if the file is compressed.

    ``groups``: the values for `--by` as strings, such as the model, the temperature, the task and the finish_reason.
    ``conversation``: the id of the conversation, or of the prompt, to which the record belongs; "" if it equals ``id``.
    Records of a file with the same ``conversation`` are not independent. ``counterpart``: the prompt and seed of a text
    that `lzs eval` wrote, which are the same for the texts of all settings; "" for other records.

    ``turn_of``: a name that all turns of one conversation share. It is "" if the record is not a turn, or if the audit
    does not look for loops over turns. ``calls``: the tool calls of the message. A message that only calls tools has no
    fields and does not count as a record.
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
    """A part of a file that could not be read. The audit counts and lists bad records, and continues.

    ``line``: the number of the line, from 1; 0 if the part is not a line.
    """

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class FileRead:
    """The beginning of a file, or of a shard of a file.

    ``format``: the name of the format. If the rows are nested in others, their path follows. ``again``: whether this is
    the beginning of a later shard, and not of the file.
    """

    file: str
    format: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A file that the audit skips because of its name. Skipped files are counted by reason, not as bad records."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class TurnsRead:
    """The number of conversations whose turns were searched for loops. Conversations do not count as records."""

    conversations: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One stretch that repeats.

    ``start``, ``end`` and ``period`` are in characters of the field's text, and ``copies`` is at least 2.0. At the
    levels "word", "line" and "token", ``period`` is the length of the first copy. If a field has only tokens,
    ``start``, ``end`` and ``period`` count tokens, and ``unit`` lists token ids.

    LZR010: the finding covers the whole field, and ``copies`` is the mean number of occurrences of a 4-gram of words.
    LZR011: for the 4-gram at each word of the stretch, its occurrences in the stretch are counted. ``copies`` is the
    median of these counts, but at least `Rules.stuck_count`. ``period`` is the length of the stretch divided by
    ``copies``. LZR012: the finding is about a conversation. ``start``, ``end`` and ``period`` count the model's turns
    in the conversation, from 0, and ``field`` is "turns".

    ``unit``: the text of the first copy, at most 200 characters. ``share``: start / length of the field, 0..1.
    ``tail``: whether the stretch reaches the end of the field, apart from white space. ``wasted_tokens``: the number of
    tokens in all copies but the first. Without a tokenizer, four characters count as a token.
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

    ``looping``: whether a selected rule of `LOOPING` has a finding in the record. ``literal``: whether some unit occurs
    20 times in a row. If this repetition is significant, LZR001 or LZR002 reports it, otherwise LZR020. ``characters``:
    the number of characters in all fields. ``metrics``: the metrics of all fields together, by name (docs/audit.md).
    Metrics that were not measured are missing. A field with only tokens has few metrics. ``texts``: the name and text
    of each field of a looping record, for reports; empty for other records.

    ``line``, ``named``, ``conversation`` and ``counterpart``: as in `Record`. ``onset``: where the degenerate stretch
    that contains the first loop begins (`lzsampler.auditing.onset`). It is a share of the field, 0..1; None if nothing
    loops.
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
        """Whether the findings are about a conversation (LZR012). Each message of a conversation is also a record."""
        return bool(self.findings) and self.findings[0].field == "turns"

    @property
    def stuck(self) -> bool:
        """Whether the record has a finding of LZR011."""
        return bool(self.findings) and any(finding.rule == "LZR011" for finding in self.findings)
