"""`audit`: finds what repeats in a text, where, and by which rule (docs/audit.md)."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import INT32_MAX, token_array
from ..decoding.reasoning import split_places
from ..errors import ArgumentError, ArgumentTypeError
from .metrics import Metrics, intern, lines, repeated_4_grams, words
from .middle import Middle, middle_of
from .normalized import NormalizedText, Offsets, characters_before, to_bytes, whole_characters
from .onset import onset
from .prefilter import LINES, LONG_BYTES, LONG_NORMALIZED, SHORT_BYTES, SHORT_NORMALIZED, WORDS, Prefilter
from .records import LOOPING, Audited, Field, FieldName, Finding, Level, Record, Rule, fields_of
from .rules import RuleOptions, Rules, takes_rules
from .scan import Runs, Text, runs
from .stuck import Stretches, stretches
from .units import (
    changing_numbers,
    collapsed_length,
    has_digits,
    has_letters,
    in_capitals,
    is_prose,
    is_unbroken,
    plain_letters,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

Tokenizer = Callable[[str], tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]
"""A function that takes a text. It returns token ids, int32[n], and where each token starts, in characters, int64[n],
in ascending order."""

UNIT = 200  # the most characters of a unit that a finding keeps
MOST = 1000  # the most loops that are listed for a field at one level: the longest ones

_CHARACTERS_PER_TOKEN = 4  # an estimate, without a tokenizer
_PIECE = 4096  # characters of a unit that are read at once
_LONG = 4  # data in the middle of a text is a loop if its copies have 4 * `Rules.length` characters together
_WORDS = 4  # a sentence has at least 4 different plain words; a name in data has two or three
_LETTERS = 20  # letters of plain words that near copies need for each changing number
_LETTERS_OF_MANY = 12  # replaces _LETTERS if there are at least `Rules.copies` near copies
_COMPARED = 8  # the numbers of at most 8 near copies are compared
_FIGURES = 4 << 20  # bytes; C computes the figures of a longer text in pieces (lzs_text_figures)
_LONG_TEXT = 1 << 20  # bytes; in a longer text, the middle of a loop is left out of further scans


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of `audit`. `lzsampler.auditing.records` and docs/audit.md describe ``findings`` and ``metrics``.

    ``looping``: whether there is a significant loop. ``literal``: whether any unit occurs 20 times in a row. This is
    the definition of arXiv 2504.20131 taken literally; most source code meets it.
    """

    looping: bool
    literal: bool
    findings: tuple[Finding, ...]
    metrics: Mapping[str, float]


@takes_rules
def audit(
    text_or_tokens: str | Sequence[int] | npt.NDArray[np.integer[Any]],
    *,
    tokenizer: Tokenizer | None = None,
    **rules: "Unpack[RuleOptions]",
) -> Report:
    """Return what repeats in a text, or in tokens (ids of 0 or more), by ``rules``: the fields of `Rules`.

    Reasoning between a model's marks, such as ``<think>``, is audited as a separate field, as in files. The offsets of
    findings are in characters of the whole text (code points), or in tokens. Every loop is found: lzsampler audits the
    whole text, and never counts by hashes alone. ``tokenizer``: splits the text into tokens, for the level "token" and
    for counting wasted tokens. The speed is about 30 MB/s; the scans release the GIL.

    A string is always a text, even if it names a file: `audit_files` reads files. ValueError for values out of range,
    TypeError for unknown rules and for a value that is neither a text nor tokens.
    """
    settings = Rules(**rules)  # type: ignore[arg-type] # Rules makes tuples of single values
    if isinstance(text_or_tokens, str):
        settings.check_tokenizer(tokenizer)
        fields = fields_of(text_or_tokens)
        begins = [place[0] if place else 0 for place in split_places(text_or_tokens)]
    elif isinstance(text_or_tokens, bytes | bytearray | memoryview):
        raise ArgumentError("audit takes a str or tokens: decode bytes first")
    elif not hasattr(text_or_tokens, "__len__") or isinstance(text_or_tokens, Mapping | Set):
        hint = ": audit_files reads files" if isinstance(text_or_tokens, os.PathLike) else ""
        raise ArgumentTypeError(f"audit takes a text or tokens, got {text_or_tokens!r:.100}{hint}")
    else:
        fields = (Field("answer", "", token_array("tokens", text_or_tokens, INT32_MAX)),)
        begins = [0, 0]
    audited = audit_record(Record("", 0, "", fields), settings, tokenizer)
    findings = tuple([_moved(finding, begins[finding.field == "answer"]) for finding in audited.findings])
    return Report(audited.looping, audited.literal, findings, audited.metrics)


def _moved(finding: Finding, by: int) -> Finding:
    return replace(finding, start=finding.start + by, end=finding.end + by) if by else finding


def audit_record(record: Record, rules: Rules, tokenizer: Tokenizer | None = None) -> Audited:
    """Return what repeats in a record's fields. Offsets are as in `Finding`, in tokens if a field has only tokens."""
    metrics, findings, literal, begins = Metrics(), [], False, None
    for field in record.fields:
        if field.text or field.tokens is None:
            found: _FieldAudit = _TextAudit(field, rules, tokenizer, metrics)
        else:
            found = _TokenAudit(field.tokens, field, rules)
            if rules.lz_vocab:
                metrics.add_tokens(field.tokens, rules.lz_vocab)
        findings += found.findings()
        if begins is None:
            begins = _onset(found, field, rules)
        literal |= found.literal
    reported = tuple([finding for finding in findings if finding.rule in rules.reported])
    looping = bool(reported) and any(finding.rule in LOOPING for finding in reported)
    return Audited(
        file=record.file,
        number=record.number,
        id=record.id,
        groups=record.groups,
        looping=looping,
        literal=literal,
        characters=sum([len(field.text) for field in record.fields]),
        findings=reported,
        metrics=metrics.figures(),
        texts=tuple((field.name, field.text) for field in record.fields) if looping else (),
        line=record.line,
        named=record.named,
        conversation=record.conversation,
        onset=begins,
        counterpart=record.counterpart,
    )


def _onset(found: "_FieldAudit", field: Field, rules: Rules) -> float | None:
    """Return where the first loop has its onset (`onset`), as a share of the field; None if nothing loops."""
    if not found.found:
        return None
    loops = [finding for finding in found.findings() if finding.rule in LOOPING and finding.rule in rules.reported]
    if not loops:
        return None
    return onset(loops[0], found.found, field.text, None if field.text else field.tokens) / found.size


class _Stretches(NamedTuple):
    """Repeating stretches, one per index. ``copies``: the number of copies, float64[n].

    ``start``, ``end`` and ``period``: int64[n], in characters or tokens of the field, or in bytes of its UTF-8.
    """

    start: Offsets
    end: Offsets
    period: Offsets
    copies: npt.NDArray[np.float64]

    def where(self, mask: npt.NDArray[np.bool_]) -> "_Stretches":
        return _Stretches(self.start[mask], self.end[mask], self.period[mask], self.copies[mask])


_NONE = _Stretches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
_NOTHING = np.zeros(0, np.bool_)
_NO_MIDDLE = Middle()


class _FieldAudit:
    """The findings of one field, made level by level: exact loops before near ones.

    The first level that finds a stretch claims its characters or tokens. If half or more of a later stretch is already
    claimed, the later stretch is not reported.
    """

    def __init__(self, name: FieldName, size: int, rules: Rules) -> None:
        self.name, self.size, self.rules = name, size, rules
        self.end = size  # a text ends before its trailing white space
        self.found: list[Finding] = []
        self.literal = False
        self._claimed = _NOTHING  # a flag for each character or token; made on first use

    def unit(self, start: int, end: int) -> str:
        """Return the text of a stretch, cut to `UNIT` characters."""
        raise NotImplementedError

    def wasted(self, start: int, end: int, unclaimed: int) -> int:
        """Return how many tokens are wasted from ``start`` to ``end``, the copies after the first.

        ``unclaimed``: how many of these characters, or tokens, no earlier finding has claimed. Only they count.
        """
        raise NotImplementedError

    def enough(
        self, copies_of: Offsets, length: Offsets, period: Offsets, *, near: bool = False
    ) -> npt.NDArray[np.bool_]:
        """Return a mask of the runs that are long enough to be significant.

        ``copies_of``: the length of each run, counted like ``period`` in characters, words, lines or tokens.
        ``length``: the length in characters.
        """
        rules = self.rules
        few = rules.near_copies if near else rules.length_copies
        return (copies_of >= rules.copies * period) | ((copies_of >= few * period) & (length >= rules.length))

    @property
    def all_claimed(self) -> bool:
        """Whether the unclaimed part is too short for another loop. More than half of a loop must be unclaimed."""
        free = self.size - int(np.count_nonzero(self._claimed))
        return free < min(self.rules.copies, (self.rules.length + 1) // 2)

    def take(
        self, level: Level, rule: Rule, found: _Stretches, is_unit: Callable[[int], bool], most: int = MOST
    ) -> None:
        """Report the stretches that are not yet claimed, longest first.

        ``is_unit``: whether the unit of the stretch with a given index counts. ``most``: the most stretches to report.
        """
        if not found.start.size:
            return
        order = np.lexsort((found.start, found.period, found.start - found.end))
        if not self._claimed.size:
            self._claimed = np.zeros(self.size, np.bool_)
        taken = 0
        for i in order.tolist():
            start, end, period = int(found.start[i]), int(found.end[i]), int(found.period[i])
            if 2 * int(np.count_nonzero(self._claimed[start:end])) >= end - start or not is_unit(i):
                continue
            unclaimed = end - start - period - int(np.count_nonzero(self._claimed[start + period : end]))
            self._claimed[start:end] = True
            self.report(level, rule, start, end, period, float(found.copies[i]), unclaimed)
            taken += 1
            if taken == most:
                break

    def report(
        self, level: Level, rule: Rule, start: int, end: int, period: int, copies: float, unclaimed: int
    ) -> None:
        """Add a finding. LZR001 becomes LZR002 if it is not at the end of the field."""
        tail = end >= self.end
        self.found.append(
            Finding(
                field=self.name,
                level=level,
                rule="LZR002" if rule == "LZR001" and not tail else rule,
                start=start,
                end=end,
                period=period,
                copies=copies,
                unit=self.unit(start, start + period),
                share=start / self.size,
                tail=tail,
                wasted_tokens=self.wasted(start + period, end, unclaimed),
            )
        )

    def stuck(
        self,
        level: Level,
        ids: npt.NDArray[np.int32],
        found: Stretches,
        edges: tuple[Offsets, Offsets],
        is_word: Callable[[int], bool],
    ) -> None:
        """Report the stuck stretches of words, or of tokens, of which loops cover less than half.

        ``edges``: the start and the end of each stretch in the field. ``is_word``: whether the unit with a given number
        has a letter; True if this is unknown.
        """
        starts, ends = (each.tolist() for each in edges)
        for first, last, old, start, end in zip(found.start, found.end, found.old, starts, ends, strict=True):
            if self.is_looping(start, end) or self._is_data(ids[first:last], first, start, end, is_word):
                continue
            grams = [ids[at : at + 4].tobytes() for at in range(first, last)]
            times = Counter(grams)
            copies = float(max(median(times[gram] for gram in grams), self.rules.stuck_count))
            unclaimed = round((end - start) * old / (last - first))
            self.report(level, "LZR011", start, end, max(1, round((end - start) / copies)), copies, unclaimed)

    def is_looping(self, start: int, end: int) -> bool:
        """Return whether the loops found so far cover at least half of a stretch."""
        loops = (finding for finding in self.found if finding.rule in LOOPING)
        return 2 * sum(max(0, min(end, loop.end) - max(start, loop.start)) for loop in loops) >= end - start

    def _is_data(
        self, ids: npt.NDArray[np.int32], first: int, start: int, end: int, is_word: Callable[[int], bool]
    ) -> bool:
        """Whether a stretch repeats only data, such as equal cells or zeros. ``first``: the number of its first unit.

        If a stretch ends the text, or is at least half of the text, it is never data; the same holds for loops. Any
        other stretch is data unless at least `_WORDS` different words with a letter repeat in it.
        """
        if end >= self.end or 2 * (end - start) >= self.size:
            return False
        _, at, times = np.unique(ids, return_index=True, return_counts=True)
        return sum(map(is_word, (at[times > 1] + first).tolist())) < _WORDS

    def findings(self) -> list[Finding]:
        """Return all findings in the order of their start."""
        return sorted(self.found, key=lambda finding: (finding.start, finding.end, finding.rule))


_last: list[tuple[Rules, Prefilter]] = []  # the last rules and their prefilter; the next text usually has the same


def _prefilter(rules: Rules) -> Prefilter:
    for known, kept in _last[:]:  # a copy of the list, since other threads may change the list
        if known is rules:
            return kept
    made = Prefilter(
        length=rules.length,
        of_bytes=(min(rules.copies, rules.literal_copies), rules.length_copies),
        of_spans=(rules.copies, rules.length_copies),
        of_normalized=(rules.copies, rules.near_copies),
    )
    _last[:] = [(rules, made)]
    return made


def _repeating(
    text: Text, rules: Rules, copies: int, length_copies: int, *, long: bool, short: bool, known: Runs | None = None
) -> Runs:
    """Return the runs of a text that may count: the long ones, the short ones, or both.

    A long run has at least `Rules.length` units, and at least min(``copies``, ``length_copies``) copies. ``known``: the
    long runs, if the prefilter has found them already. A short run has at least ``copies`` copies, and a period so
    short that ``copies`` copies have fewer than `Rules.length` units.
    """
    found = []
    longest = (rules.length - 1) // copies  # the longest period of a short run
    if short:
        found.append(runs(text, min_copies=copies, min_length=0, max_period=longest))
    if long:
        found.append(known or runs(text, min_copies=min(copies, length_copies), min_length=rules.length))
    return found[0] if len(found) == 1 else Runs(*(np.concatenate(pair) for pair in zip(*found, strict=True)))


def _of_bytes(data: bytes, found: Runs) -> _Stretches:
    """Return runs of UTF-8 as stretches in bytes, cut to begin and end with whole characters."""
    start, end = whole_characters(data, found.start, found.start + found.length)
    kept = _Stretches(start, end, found.period, (end - start) / found.period)
    return kept if data.isascii() else kept.where(end - start >= 2 * found.period)  # the cut must leave two periods


def _in_characters(data: bytes, found: _Stretches) -> _Stretches:
    """Convert stretches of UTF-8 from bytes to characters."""
    if data.isascii():
        return found
    places = characters_before(data, np.stack((found.start, found.end, found.start + found.period)))
    return _Stretches(places[0], places[1], places[2] - places[0], found.copies)


class _TextAudit(_FieldAudit):
    def __init__(self, field: Field, rules: Rules, tokenizer: Tokenizer | None, metrics: Metrics) -> None:
        super().__init__(field.name, len(field.text), rules)
        self.text, self.data = field.text, to_bytes(field.text)
        self._middle, self._rest = _NO_MIDDLE, self.data
        self.end = len(field.text.rstrip())
        self._tokens = None if tokenizer is None else tokenizer(field.text)
        counts, scans, long_runs = _prefilter(rules)(self.data)
        rep4 = metrics.add(self.data, counts)
        if rules.lz_vocab and self._tokens is not None:
            metrics.add_tokens(self._tokens[0], rules.lz_vocab)
        literal = self._exact(long_runs, bool(scans & LONG_BYTES), bool(scans & SHORT_BYTES))
        if scans & LINES and "line" in rules.levels and not self.all_claimed:
            self._spans("line", "LZR003")
        if scans & WORDS and "word" in rules.levels and not self.all_claimed:
            self._spans("word", "LZR005")
        if "token" in rules.levels and self._tokens is not None and not self.all_claimed:
            self._of_tokens(*self._tokens)
        if scans & (LONG_NORMALIZED | SHORT_NORMALIZED) and rules.near and not self.all_claimed:
            self._near(bool(scans & LONG_NORMALIZED), bool(scans & SHORT_NORMALIZED))
        loops = len(self.found)
        self._literal(literal)
        many = rep4 >= rules.rep4 and self.size >= rules.length
        if many and not loops and 2 * int(np.count_nonzero(self._claimed)) < self.size:
            each = 1 / (1 - rep4)  # occurrences of a 4-gram, on average
            self.report("word", "LZR010", 0, self.size, round(self.size / each), each, round(self.size * rep4))
        if rules.stuck_score and "word" in rules.levels:
            self._stuck(repeated_4_grams(counts))

    def _stuck(self, repeated: int) -> None:
        """Report the stuck stretches. ``repeated``: how many 4-grams of words occurred before.

        If ``repeated`` is too small for a stuck stretch, the text is not searched. Old n-grams have g words, so r old
        words in a row have r >= g, and contain at least r - 3 >= r (g - 3) / g repeated 4-grams. A text of more than
        4 MiB is always searched: its figures are summed over pieces, and lack the 4-grams across the cuts.
        """
        rules = self.rules
        least = rules.stuck_score * (rules.stuck_ngram - 3)
        if repeated * rules.stuck_ngram < least and len(self.data) <= _FIGURES:
            return
        if not self._stuck_in(self._middle):
            self._stuck_in(_NO_MIDDLE)

    def _stuck_in(self, middle: Middle) -> bool:
        """Report the stuck stretches of the text from which ``middle``, the middle of a run, is left out.

        If loops cover less than half of a stretch that contains ``middle``, report nothing and return False.
        """
        data = middle.left_out(self.data)
        spans = words(data)
        ids = intern(data, spans)
        found = _stuck(ids, self.rules)
        edges = np.stack((spans[found.start, 0], spans[found.end - 1, 1])).astype(np.int64)
        around = (edges[0] < middle.start) & (middle.start < edges[1])
        first, last = characters_before(self.data, middle.places(edges))
        if any(not self.is_looping(int(first[i]), int(last[i])) for i in np.flatnonzero(around)):
            return False

        def is_word(i: int) -> bool:
            return has_letters(data[spans[i, 0] : spans[i, 1]].decode("utf-8", "surrogatepass"))

        self.stuck("word", ids, found, (first, last), is_word)
        return True

    def unit(self, start: int, end: int) -> str:
        return self.text[start : min(end, start + UNIT)]

    def wasted(self, start: int, end: int, unclaimed: int) -> int:
        if self._tokens is None:
            return round(unclaimed / _CHARACTERS_PER_TOKEN)
        offsets = self._tokens[1]
        n_tokens = int(np.searchsorted(offsets, end) - np.searchsorted(offsets, start))
        return round(n_tokens * unclaimed / (end - start)) if end > start else 0

    def _unit_test(self, found: _Stretches) -> Callable[[int], bool]:
        def test(i: int) -> bool:
            start, end, period = int(found.start[i]), int(found.end[i]), int(found.period[i])
            return self._is_loop(start, end, self.text[start : start + period], found.copies[i])

        return test

    def _is_loop(self, start: int, end: int, unit: str, copies: float) -> bool:
        """Whether copies are numerous or long enough, and are a loop and not data that is rightly repeated.

        Repeated sentences are a loop. So is nearly anything that ends the text or makes up half of it. Data, code and
        markup in the middle of a text need more evidence. A single repeated character must reach `Rules.length`,
        however many copies there are. Rulers, indentation and padding are shorter.
        """
        rules = self.rules
        one = _distinct(unit, str.isspace) < 2
        many = copies >= rules.copies and not one
        length = end - start if unit.isspace() else (end - start) * collapsed_length(unit) // len(unit)
        if not many and length < rules.length:
            return False
        if not one and (
            is_prose(unit, _WORDS) or (copies >= rules.near_copies and is_prose(unit, 1) and not in_capitals(unit))
        ):
            return True
        if end >= self.end or 2 * (end - start) >= self.size:
            return many or one or has_letters(unit) or has_digits(unit)
        if length >= _LONG * rules.length:
            return has_letters(unit) or is_unbroken(unit)
        return many and has_letters(unit) and not has_digits(unit) and not in_capitals(unit)

    def _exact(self, known: Runs | None, long: bool, short: bool) -> _Stretches:
        """Report what repeats character by character; return the stretches that meet the literal definition."""
        if not (long or short):
            return _NONE
        rules = self.rules
        copies = min(rules.copies, rules.literal_copies)
        found = _repeating(self.data, rules, copies, rules.length_copies, long=long, short=short, known=known)
        in_characters = _in_characters(self.data, _of_bytes(self.data, found))
        length = in_characters.end - in_characters.start
        literal = in_characters.where(length >= rules.literal_copies * in_characters.period)
        self.literal = literal.start.size > 0
        if "char" in rules.levels:
            enough = self.enough(length, length, in_characters.period)
            enough &= (in_characters.period > 1) | (length >= self.rules.length)  # leaves out thousands of indentations
            significant = in_characters.where(enough)
            # copies counted in bytes are slightly off if an incomplete last copy has characters of other lengths
            in_units = significant._replace(copies=(significant.end - significant.start) / significant.period)
            self.take("char", "LZR001", significant, self._unit_test(in_units))
            if len(self.data) > _LONG_TEXT:
                self._leave_out(middle_of(self.data, found, rules))
        return literal

    def _leave_out(self, middle: Middle) -> None:
        """Exclude the middle of a run from further scans, if the run was reported."""
        start, end = characters_before(self.data, np.array([middle.start, middle.end])).tolist()
        if any(loop.start <= start < end <= loop.end for loop in self.found):
            self._middle, self._rest = middle, middle.left_out(self.data)

    def _literal(self, found: _Stretches) -> None:
        """Report the longest stretch that counts only by the literal definition."""
        if found.start.size:
            length, loops = found.end - found.start, len(self.found)
            for least in (int(length.max()), 0):  # the longest first: an indented text has thousands to sort
                if len(self.found) == loops:
                    self.take("char", "LZR020", found.where(length >= least), lambda _: True, most=1)

    def _spans(self, level: Level, rule: Rule) -> None:
        """Report repeated words or lines."""
        spans = (words if level == "word" else lines)(self._rest)
        copies = min(self.rules.copies, self.rules.length_copies)
        found = runs(intern(self._rest, spans), min_copies=copies, min_length=0)
        if not found.start.size:
            return
        start = spans[found.start, 0].astype(np.int64)
        end = spans[found.start + found.length - 1, 1].astype(np.int64)
        second = spans[found.start + found.period, 0].astype(np.int64)
        around = (start < self._middle.start) & (self._middle.start < end)
        more = around * self._middle.copies * (self._middle.words if level == "word" else self._middle.lines)
        start, end, second = self._middle.places(np.stack((start, end, second)))
        in_bytes = _Stretches(start, end, second - start, (found.length + more) / found.period)
        maybe = self.enough(found.length, end - start, found.period)  # in bytes, at least as many as the characters
        if not maybe.any():
            return
        # Units are compared without the white space between them. However long it is, it counts as one character.
        edges = spans if self._rest.isascii() else characters_before(self._rest, spans.astype(np.int64))
        before = np.zeros(len(spans) + 1, np.int64)
        np.cumsum(edges[:, 1] - edges[:, 0], out=before[1:])
        length = before[found.start + found.length] - before[found.start] + found.length - 1
        enough = maybe & self.enough(found.length, length, found.period)
        significant = _in_characters(self.data, in_bytes.where(enough))
        self.take(level, rule, significant, self._unit_test(significant))

    def _of_tokens(self, tokens: npt.NDArray[np.int32], offsets: Offsets) -> None:
        """Report repeated tokens."""
        found = runs(tokens, min_copies=min(self.rules.copies, self.rules.length_copies), min_length=0)
        edges = np.append(offsets, self.size)
        start, end = edges[found.start], edges[found.start + found.length]
        in_text = _Stretches(start, end, edges[found.start + found.period] - start, found.length / found.period)
        significant = in_text.where(self.enough(found.length, end - start, found.period) & (in_text.period > 0))
        self.take("token", "LZR006", significant, self._unit_test(significant))

    def _near(self, long: bool, short: bool) -> None:
        """Report repetition in the normalized text, where lengths and copies are counted.

        A unit needs two distinct letters.
        """
        normalized = NormalizedText(self._rest)
        rules = self.rules
        cut, end = map(int, characters_before(self.data, np.array([self._middle.start, self._middle.end])))

        def places(at: Offsets) -> Offsets:
            here = normalized.places(at)
            return np.asarray(here + (end - cut) * (here > cut))

        repeating = _repeating(normalized.data, rules, rules.copies, rules.near_copies, long=long, short=short)
        found = _of_bytes(normalized.data, repeating)
        in_characters = _in_characters(normalized.data, found)
        length = in_characters.end - in_characters.start
        mask = self.enough(length, length, in_characters.period, near=True)
        kept = found.where(mask)
        if not kept.start.size:
            return
        in_text = places(np.stack((kept.start, kept.end, kept.start + kept.period)))
        around = (in_text[0] < cut) & (end < in_text[1])
        more = around * self._middle.copies * self._middle.normalized / kept.period
        kept = kept._replace(copies=kept.copies + more)
        compared = np.minimum(kept.copies.astype(np.int64)[:, None], np.arange(_COMPARED + 1))
        edges = places(kept.start[:, None] + kept.period[:, None] * compared)

        def is_unit(i: int) -> bool:
            start = int(kept.start[i])
            unit = normalized.data[start : start + int(kept.period[i])].decode("utf-8", "surrogatepass")
            if _distinct(unit, lambda character: not character.isalpha()) < 2:
                return False
            return self._says_it_again(edges[i, : int(kept.copies[i]) + 1].tolist(), kept.copies[i])

        significant = _Stretches(in_text[0], in_text[1], in_text[2] - in_text[0], kept.copies)
        self.take("char", "LZR004", significant, is_unit)

    def _says_it_again(self, edges: Sequence[int], copies: float) -> bool:
        """Whether near copies are sentences with changing numbers, and not data, whose numbers are the content.

        ``edges``: where each of the first near copies starts, and where the last of them ends.
        """
        units = [self.text[start:end] for start, end in pairwise(edges)]
        changing = changing_numbers(units, [start == 0 or self.text[start - 1] == "\n" for start in edges[:-1]])
        letters = plain_letters(units[0])
        if copies >= self.rules.copies:
            return letters >= max(_LETTERS_OF_MANY * changing, 2) and not in_capitals(units[0])
        return letters >= _LETTERS * max(changing, 1)


def _stuck(ids: npt.NDArray[np.int32], rules: Rules) -> Stretches:
    """Return the stuck stretches, in units."""
    return stretches(
        ids,
        threshold=rules.stuck_score,
        ngram=rules.stuck_ngram,
        min_count=rules.stuck_count,
        weight=rules.stuck_weight,
        window=rules.stuck_window,
    )


def _distinct(unit: str, is_left_out: Callable[[str], bool]) -> int:
    """Return the number of distinct characters of a unit; 2 means 2 or more. ``is_left_out``: what does not count."""
    seen: set[str] = set()
    for at in range(0, len(unit), _PIECE):
        seen.update(character for character in set(unit[at : at + _PIECE]) if not is_left_out(character))
        if len(seen) >= 2:
            return 2
    return len(seen)


class _TokenAudit(_FieldAudit):
    """The audit of a field that has only tokens. Any unit counts. A token counts as four characters of a length."""

    def __init__(self, tokens: npt.NDArray[np.int32], field: Field, rules: Rules) -> None:
        super().__init__(field.name, len(tokens), rules)
        self.tokens = tokens
        copies = min(rules.copies, rules.length_copies, rules.literal_copies)
        found = runs(tokens, min_copies=copies, min_length=0)
        found_in_tokens = _Stretches(found.start, found.start + found.length, found.period, found.length / found.period)
        self.literal = bool((found.length >= rules.literal_copies * found.period).any())
        if "token" in rules.levels:
            enough = self.enough(found.length, found.length * _CHARACTERS_PER_TOKEN, found.period)
            self.take("token", "LZR006", found_in_tokens.where(enough), lambda _: True)
            if rules.stuck_score:
                stuck = _stuck(tokens, rules)
                self.stuck("token", tokens, stuck, (stuck.start, stuck.end), lambda _: True)

    def unit(self, start: int, end: int) -> str:
        ids: list[str] = []
        for token in self.tokens[start : min(end, start + UNIT)].tolist():
            if len(" ".join([*ids, str(token)])) > UNIT:
                break
            ids.append(str(token))
        return " ".join(ids)

    def wasted(self, start: int, end: int, unclaimed: int) -> int:
        return unclaimed
