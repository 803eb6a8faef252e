"""`audit`: finds the stretches of a text that repeat, and names the rule for each (docs/audit.md)."""

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
"""A function that takes a text. It returns the token ids, int32[n], and the start of each token in characters,
int64[n], in ascending order."""

UNIT = 200  # maximum length of `Finding.unit` in characters
MOST = 1000  # maximum number of loops that are listed for a field at one level; the longest loops are listed

_CHARACTERS_PER_TOKEN = 4  # assumed length of a token if there is no tokenizer
_PIECE = 4096  # number of characters of a unit that `_distinct` reads at once
_LONG = 4  # Data in the middle of a text is a loop if its copies together have 4 * `Rules.length` characters.
_WORDS = 4  # minimum number of different words of a sentence; names in data have two or three words
_LETTERS = 20  # minimum number of letters in the words of near copies, for each number that changes
_LETTERS_OF_MANY = 12  # replaces _LETTERS if there are at least `Rules.copies` near copies
_COMPARED = 8  # maximum number of near copies whose numbers are compared
_FIGURES = 4 << 20  # bytes; C computes the figures of a longer text in pieces (lzs_text_figures)
_LONG_TEXT = 1 << 20  # bytes; in a longer text, the middle of a loop is left out of further scans


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `audit`. `lzsampler.auditing.records` and docs/audit.md describe ``findings`` and ``metrics``.

    ``looping``: whether there is a significant loop. ``literal``: whether any unit occurs 20 times in a row, which is
    literally the definition of a loop in arXiv 2504.20131. Most source code meets this definition.
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
    """Find what repeats in a text, or in tokens (ids of 0 or more). ``rules``: the fields of `Rules`.

    Reasoning between a model's tags, such as ``<think>``, is audited as a separate field, as in files. The offsets of
    findings are in characters of the whole text (code points), or in tokens. Every loop is found, since the whole text
    is compared exactly, and not by hashes. ``tokenizer``: splits the text into tokens, for the level "token" and for
    counting wasted tokens. The speed is about 30 MB/s, and the scans release the GIL.

    A string is always a text, even if it names a file; `audit_files` reads files. ValueError for values out of range,
    TypeError for unknown rules and for a value that is neither a text nor tokens.
    """
    settings = Rules(**rules)  # type: ignore[arg-type] # Rules turns a single value into a tuple
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
    """Return what repeats in a record's fields. The offsets of findings are as in `Finding`."""
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
    """Return the `onset` of the field's first loop, as a share of the field; None if no loop is reported."""
    if not found.found:
        return None
    loops = [finding for finding in found.findings() if finding.rule in LOOPING and finding.rule in rules.reported]
    if not loops:
        return None
    return onset(loops[0], found.found, field.text, None if field.text else field.tokens) / found.size


class _Stretches(NamedTuple):
    """Repeating stretches: stretch i has ``start[i]``, ``end[i]``, ``period[i]`` and ``copies[i]`` copies.

    The offsets are in characters or tokens of a field, or in bytes of its UTF-8.
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
    """The audit of one field, level by level. Exact loops come before near loops.

    A stretch that is reported claims its characters or tokens. If half or more of a later stretch is already claimed,
    the later stretch is not reported.
    """

    def __init__(self, name: FieldName, size: int, rules: Rules) -> None:
        self.name, self.size, self.rules = name, size, rules
        self.end = size  # end of the field without trailing white space
        self.found: list[Finding] = []
        self.literal = False
        self._claimed = _NOTHING  # a flag for each character or token, allocated by `take`

    def unit(self, start: int, end: int) -> str:
        """Return the text of a stretch, cut to `UNIT` characters."""
        raise NotImplementedError

    def wasted(self, start: int, end: int, unclaimed: int) -> int:
        """Return how many tokens the copies after the first copy waste. These copies extend from ``start`` to ``end``.

        ``unclaimed``: how many characters or tokens of these copies no earlier finding has claimed. Claimed characters
        or tokens are not wasted again.
        """
        raise NotImplementedError

    def enough(
        self, copies_of: Offsets, length: Offsets, period: Offsets, *, near: bool = False
    ) -> npt.NDArray[np.bool_]:
        """Return a mask of the runs that are long enough to be significant.

        ``copies_of``: the length of each run in the unit of ``period``: characters, words, lines or tokens. ``length``:
        the length of each run in characters.
        """
        rules = self.rules
        few = rules.near_copies if near else rules.length_copies
        return (copies_of >= rules.copies * period) | ((copies_of >= few * period) & (length >= rules.length))

    @property
    def all_claimed(self) -> bool:
        """Whether so much is claimed that no further loop can be reported.

        More than half of a loop must be unclaimed.
        """
        free = self.size - int(np.count_nonzero(self._claimed))
        return free < min(self.rules.copies, (self.rules.length + 1) // 2)

    def take(
        self, level: Level, rule: Rule, found: _Stretches, is_unit: Callable[[int], bool], most: int = MOST
    ) -> None:
        """Report the stretches that are not yet claimed, longest first.

        ``is_unit``: tells whether the unit of the stretch with a given index counts. ``most``: the maximum number of
        stretches to report.
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
        """Add a finding. If a stretch of LZR001 does not reach the end of the field, its rule becomes LZR002."""
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
        """Report each stuck stretch of words or tokens, unless loops cover half of it or it repeats only data.

        ``ids``: the numbers of the words, or the tokens. ``edges``: the start and the end of each stretch in the field.
        ``is_word``: tells whether the word or token with a given index has a letter; True if this is unknown.
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
        """Whether a stretch repeats only data, such as equal cells or zeros. ``first``: the index of the stretch's
        first word or token.

        A stretch that ends the text, or is at least half of the text, is never data. Any other stretch is data unless
        at least `_WORDS` different words with a letter repeat in it.
        """
        if end >= self.end or 2 * (end - start) >= self.size:
            return False
        _, at, times = np.unique(ids, return_index=True, return_counts=True)
        return sum(map(is_word, (at[times > 1] + first).tolist())) < _WORDS

    def findings(self) -> list[Finding]:
        """Return all findings, sorted by their start."""
        return sorted(self.found, key=lambda finding: (finding.start, finding.end, finding.rule))


_last: list[tuple[Rules, Prefilter]] = []  # the rules of the last audit, and their prefilter


def _prefilter(rules: Rules) -> Prefilter:
    for known, kept in _last[:]:  # The copy is safe if other threads change the list.
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
    """Return the long runs of a text, the short runs, or both. No other run is significant.

    A long run has at least `Rules.length` units, and at least min(``copies``, ``length_copies``) copies. A short run
    has at least ``copies`` copies, and a period so short that ``copies`` copies have fewer than `Rules.length` units.
    ``known``: the long runs, if the prefilter has found them already.
    """
    found = []
    longest = (rules.length - 1) // copies  # the longest period of a short run
    if short:
        found.append(runs(text, min_copies=copies, min_length=0, max_period=longest))
    if long:
        found.append(known or runs(text, min_copies=min(copies, length_copies), min_length=rules.length))
    return found[0] if len(found) == 1 else Runs(*(np.concatenate(pair) for pair in zip(*found, strict=True)))


def _of_bytes(data: bytes, found: Runs) -> _Stretches:
    """Return runs of UTF-8 as stretches in bytes. Incomplete characters at the ends of a run are cut off."""
    start, end = whole_characters(data, found.start, found.start + found.length)
    kept = _Stretches(start, end, found.period, (end - start) / found.period)
    return kept if data.isascii() else kept.where(end - start >= 2 * found.period)  # A stretch needs two periods.


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
            each = 1 / (1 - rep4)  # mean number of occurrences of a 4-gram
            self.report("word", "LZR010", 0, self.size, round(self.size / each), each, round(self.size * rep4))
        if rules.stuck_score and "word" in rules.levels:
            self._stuck(repeated_4_grams(counts))

    def _stuck(self, repeated: int) -> None:
        """Report the stuck stretches of the text. ``repeated``: the number of 4-grams of words that occurred before.

        If ``repeated`` is too small for a stuck stretch, the text is not searched. Let g be `Rules.stuck_ngram`. A word
        is old if it is in a repeated n-gram of g words, so old words come in rows of r >= g words. Such a row contains
        at least r - 3 >= r (g - 3) / g repeated 4-grams. A text of more than 4 MiB is always searched: its figures are
        summed over pieces and miss the 4-grams across two pieces.
        """
        rules = self.rules
        least = rules.stuck_score * (rules.stuck_ngram - 3)
        if repeated * rules.stuck_ngram < least and len(self.data) <= _FIGURES:
            return
        if not self._stuck_in(self._middle):
            self._stuck_in(_NO_MIDDLE)

    def _stuck_in(self, middle: Middle) -> bool:
        """Search the text without ``middle``, the middle of a run, and report the stuck stretches.

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
        """Whether copies are a loop. They must be numerous or long enough, and must not be data that is rightly
        repeated.

        Repeated sentences are a loop. Nearly any repetition that ends the text or makes up half of it is a loop. In the
        middle of a text, data, code and markup need more or longer copies. A repeated single character always needs
        `Rules.length` characters, since rulers, indentation and padding are shorter.
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
        """Report the exact loops of characters. Return the stretches with at least `Rules.literal_copies` copies."""
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
            enough &= (in_characters.period > 1) | (length >= self.rules.length)  # leaves out indentation
            significant = in_characters.where(enough)
            # An incomplete last copy may have characters of other byte lengths, so copies are counted in characters.
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
        """Report as LZR020 the longest stretch that is not claimed."""
        if found.start.size:
            length, loops = found.end - found.start, len(self.found)
            for least in (int(length.max()), 0):  # The longest stretch usually suffices; sorting all takes long.
                if len(self.found) == loops:
                    self.take("char", "LZR020", found.where(length >= least), lambda _: True, most=1)

    def _spans(self, level: Level, rule: Rule) -> None:
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
        # A stretch has at least as many bytes as characters, so this first test excludes no loop.
        maybe = self.enough(found.length, end - start, found.period)
        if not maybe.any():
            return
        # White space between words or lines is not compared. It counts as one character of the length.
        edges = spans if self._rest.isascii() else characters_before(self._rest, spans.astype(np.int64))
        before = np.zeros(len(spans) + 1, np.int64)
        np.cumsum(edges[:, 1] - edges[:, 0], out=before[1:])
        length = before[found.start + found.length] - before[found.start] + found.length - 1
        enough = maybe & self.enough(found.length, length, found.period)
        significant = _in_characters(self.data, in_bytes.where(enough))
        self.take(level, rule, significant, self._unit_test(significant))

    def _of_tokens(self, tokens: npt.NDArray[np.int32], offsets: Offsets) -> None:
        found = runs(tokens, min_copies=min(self.rules.copies, self.rules.length_copies), min_length=0)
        edges = np.append(offsets, self.size)
        start, end = edges[found.start], edges[found.start + found.length]
        in_text = _Stretches(start, end, edges[found.start + found.period] - start, found.length / found.period)
        significant = in_text.where(self.enough(found.length, end - start, found.period) & (in_text.period > 0))
        self.take("token", "LZR006", significant, self._unit_test(significant))

    def _near(self, long: bool, short: bool) -> None:
        """Report near loops: repetition in the normalized text. A unit needs two distinct letters.

        Lengths and copies are counted in the normalized text.
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
        """Whether near copies are sentences with changing numbers, and not data whose content is the numbers.

        ``edges``: the start of each compared copy, and the end of the last copy.
        """
        units = [self.text[start:end] for start, end in pairwise(edges)]
        changing = changing_numbers(units, [start == 0 or self.text[start - 1] == "\n" for start in edges[:-1]])
        letters = plain_letters(units[0])
        if copies >= self.rules.copies:
            return letters >= max(_LETTERS_OF_MANY * changing, 2) and not in_capitals(units[0])
        return letters >= _LETTERS * max(changing, 1)


def _stuck(ids: npt.NDArray[np.int32], rules: Rules) -> Stretches:
    return stretches(
        ids,
        threshold=rules.stuck_score,
        ngram=rules.stuck_ngram,
        min_count=rules.stuck_count,
        weight=rules.stuck_weight,
        window=rules.stuck_window,
    )


def _distinct(unit: str, is_left_out: Callable[[str], bool]) -> int:
    """Return the number of distinct characters of a unit, at most 2. Characters for which ``is_left_out`` is true do
    not count."""
    seen: set[str] = set()
    for at in range(0, len(unit), _PIECE):
        seen.update(character for character in set(unit[at : at + _PIECE]) if not is_left_out(character))
        if len(seen) >= 2:
            return 2
    return len(seen)


class _TokenAudit(_FieldAudit):
    """The audit of a field that has only tokens. Any unit may loop. A token counts as four characters."""

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
