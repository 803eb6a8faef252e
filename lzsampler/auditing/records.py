"""What the parts of the audit hand to each other: a record read, what was found in it, what cannot be read.

Readers make `Record`s, `findings` makes an `Audited` of each, reports and summaries are made of those. All of it is
plain data that pickles quickly, since it crosses processes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

FieldName = Literal["reasoning", "answer"]
Level = Literal["char", "word", "line", "token"]
Rule = Literal["LZR001", "LZR002", "LZR003", "LZR004", "LZR005", "LZR006", "LZR010", "LZR020"]

RULES: dict[Rule, str] = {  # code: name. Those up to LZR006 make a record a looping one.
    "LZR001": "tail loop",  # characters, up to the end of the field
    "LZR002": "middle loop",  # characters, and the text goes on
    "LZR003": "line loop",  # whole lines, white space at their ends aside
    "LZR004": "near loop",  # characters after digits are masked, case is folded and white space collapsed
    "LZR005": "word loop",  # words, whatever white space is between them
    "LZR006": "token loop",  # tokens of --tokenizer
    "LZR010": "high rep-4",  # many 4-grams of words come again, with no loop
    "LZR020": "literal loop",  # any unit, 20 copies (arXiv 2504.20131, footnote 7), that is no significant loop
}
LOOPING: tuple[Rule, ...] = ("LZR001", "LZR002", "LZR003", "LZR004", "LZR005", "LZR006")


@dataclass(frozen=True, slots=True)
class Field:
    """One text that a model wrote, or its tokens, int32[n], where a format has only those."""

    name: FieldName
    text: str
    tokens: npt.NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One generated message: ``number`` counts lines, rows or elements of its file from 0, ``id`` is its own name.

    Where a conversation has several messages of the model each is a record of the same number, with ``/2`` and so on
    after the id from the second on. The id is that of the row, which several rows may have, or else the number. So it
    is the file, the number and the id together that identify a record. ``groups``: what `--by` may ask for, as strings:
    model, temperature, task, finish_reason and the like. ``finish_reason`` is also there when the format has it
    ("length" is what a loop usually ends by).
    """

    file: str
    number: int
    id: str
    fields: tuple[Field, ...]
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A piece of a file that is no record: counted, listed, never fatal. ``line`` counts from 1; 0: there is none."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One stretch that repeats: ``start``, ``end``, ``period`` in characters of the field's text; ``copies`` >= 2.0.

    For levels other than "char" the offsets are those of the characters that the units cover, and the period is the
    length of the first copy. Of a field that has tokens only, offsets and period count tokens, and the unit is their
    ids. LZR010 covers its field; its copies are the times that a 4-gram comes, on average. ``unit``: the first copy's
    text, at most 200 characters. ``share``: start / length of the
    field, 0..1. ``tail``: it reaches the end of the field, white space aside. ``wasted_tokens``: all copies but the
    first, in tokens (of the tokenizer, or characters / 4).
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

    ``looping``: it has a finding of a rule in `LOOPING` that was asked for; ``literal``: some unit stands 20 times in a
    row, whether that is reported as LZR020 or, where it is significant, as LZR001 or LZR002. ``characters``: of all
    fields. ``metrics``: figures of all fields together, by name (docs/audit.md). ``texts``: (name, text) of the
    fields of looping records, for reports that show them; empty for others.
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
