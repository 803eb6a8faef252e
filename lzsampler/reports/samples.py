"""Samples for HTML reports, such as an audit's worst looping records, cut around their loops to a limited size."""

import heapq
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..auditing.records import Audited, Finding
from ..auditing.summary import begins, loops, values, wasted_tokens
from ..util.json_text import json_html
from .text import visible

SAMPLES = 1000  # maximum number of samples in a report
CHARACTERS = 20_000  # maximum number of characters of a sample
_LOOPS = 4  # maximum number of loops that are shown in a long field
_FINDINGS = 40  # maximum number of findings in the list of a sample
_COPIES = 2000  # maximum number of copies of a loop that are marked separately
_NAME = 200  # maximum number of characters of a file's name or the value of a group
_ID = 60  # maximum number of characters of an id
_SLICES = 64  # number of slices of a text for `_news`, which needs at least 32 characters a slice
_FLUSH = 5  # bytes that a flush of zlib adds

Piece = tuple[str, str | int]


@dataclass(frozen=True)
class Sample:
    """A text that a report shows. ``row``: its row in the table, as JSON data. ``page``: texts and findings as JSON."""

    row: dict[str, Any]
    page: bytes


def worst(audited: Iterable[Audited], by: tuple[str, ...], most: int = SAMPLES) -> list[Sample]:
    """Return the ``most`` looping records that waste the most tokens, the worst first.

    Of records that waste equally many tokens, the earlier comes first. Each record is cut as soon as it is read, so
    memory does not grow with the number of records or the length of their texts.
    """
    heap: list[tuple[int, int, Sample]] = []
    for order, record in enumerate(audited):
        if not record.looping or not loops(record):
            continue
        tokens = wasted_tokens(record)
        if len(heap) < most:
            heapq.heappush(heap, (tokens, -order, sample(record, tokens, by)))
        elif tokens > heap[0][0]:
            heapq.heapreplace(heap, (tokens, -order, sample(record, tokens, by)))
    return [sample for _, _, sample in sorted(heap, key=lambda item: item[:2], reverse=True)]


def sample(record: Audited, tokens: int, by: tuple[str, ...], prompt: str = "") -> Sample:
    """Return the sample of a record. ``tokens``: its wasted tokens. ``prompt``: a text to show before the record."""
    found = loops(record)
    # If a format has only tokens, there is no text, and offsets count tokens.
    lengths = {f.field: max(g.end for g in found if g.field == f.field) for f in found}
    lengths.update((name, len(text)) for name, text in record.texts if text)
    room = CHARACTERS // max(1, len(record.texts))
    fields = [_prompt(prompt)] if prompt else []
    for name, text in record.texts:
        here = sorted((f for f in found if f.field == name), key=lambda f: f.start)
        fields.append(
            {
                "name": name,
                "length": len(text),
                "bands": [_band(f, lengths[name]) for f in here[:_FINDINGS]],
                "news": _news(text),
                "pieces": pieces(text, here, room),
            }
        )
    row = {
        "id": visible(record.id, _ID),
        "file": visible(record.file, _NAME),
        "record": record.number,
        "by": [visible(value, _NAME) for value in values(record, by)],
        "groups": [[visible(key, _ID), visible(value, _NAME)] for key, value in list(record.groups.items())[:40]],
        "wasted": tokens,
        "rules": sorted({f.rule for f in record.findings}),
        **(_main(found[0], lengths[found[0].field], begins(record, found[0])) if found else _NO_LOOP),
    }
    findings = sorted(record.findings, key=lambda f: (f.field != row["field"], f.start, f.rule))
    page = {
        "fields": fields,
        "findings": [_finding(f) for f in findings[:_FINDINGS]],
        "more": max(0, len(findings) - _FINDINGS),
    }
    return Sample(row, json_html(page))


_NO_LOOP: dict[str, Any] = {
    "field": "", "rule": "", "period": 0, "copies": 0, "share": 1, "tail": False, "unit": "", "band": [],
}  # fmt: skip


def _main(f: Finding, length: int, begin: float) -> dict[str, Any]:
    return {
        "field": f.field, "rule": f.rule, "period": f.period, "copies": round(f.copies, 2), "share": round(begin, 4),
        "tail": f.tail, "unit": visible(f.unit, 120), "band": _band(f, length),
    }  # fmt: skip


def _prompt(text: str) -> dict[str, Any]:
    """Return a prompt as a field that is not searched for loops."""
    return {"name": "prompt", "length": len(text), "bands": [], "news": [], "pieces": pieces(text, [], CHARACTERS)}


def _finding(f: Finding) -> dict[str, Any]:
    return {
        "rule": f.rule, "field": f.field, "level": f.level, "start": f.start, "end": f.end, "period": f.period,
        "copies": round(f.copies, 2), "wasted": f.wasted_tokens, "unit": visible(f.unit, 120),
    }  # fmt: skip


def pieces(text: str, found: list[Finding], room: int) -> list[Piece]:
    """Return a text cut to about ``room`` characters around its loops, in pieces.

    A piece is ("text", a text), ("first", the first copy of a loop), or ("cut", the number of characters left out).
    Further copies are alternately ("copy", a copy) and ("other", a copy).
    """
    shown = _shown(text, found, room)
    marks: list[tuple[int, int, str]] = []
    end = 0
    for f in found:
        marks += [(end, f.start, "text"), *_copies(f)]
        end = f.end
    marks.append((end, len(text), "text"))
    made: list[Piece] = []
    at = 0
    for low, high in shown:
        if low > at:
            made.append(("cut", low - at))
        for start, stop, kind in marks:
            if max(start, low) < min(stop, high):
                made.append((kind, text[max(start, low) : min(stop, high)]))
        at = high
    if at < len(text):
        made.append(("cut", len(text) - at))
    return made


def _copies(f: Finding) -> list[tuple[int, int, str]]:
    """Return the copies of a loop as (start, end, kind)."""
    first = min(f.start + max(f.period, 1), f.end)
    # Copies have equal lengths only if characters repeat.
    exact = f.level == "char" and f.rule != "LZR004" and f.end - f.start <= _COPIES * f.period
    if not exact:
        return [(f.start, first, "first"), (first, f.end, "copy")]
    starts = range(first, f.end, f.period)
    further = [(start, min(start + f.period, f.end), ("copy", "other")[i % 2]) for i, start in enumerate(starts)]
    return [(f.start, first, "first"), *further]


def _shown(text: str, found: list[Finding], room: int) -> list[tuple[int, int]]:
    """Return the parts of a text to show, at most ``room`` characters together, in order and without overlap."""
    if len(text) <= room:
        return [(0, len(text))]
    marked = sorted(sorted(found, key=lambda f: -f.wasted_tokens)[:_LOOPS], key=lambda f: f.start)
    share = int(0.8 * room) // max(1, len(marked))
    wanted = [(0, room // 10), (len(text) - room // 10, len(text))]
    for f in marked:
        wanted += [(f.start - share // 4, f.start + share // 2), (f.end - share // 8, f.end + share // 8)]
    parts: list[tuple[int, int]] = []
    for start, stop in sorted((max(0, low), min(len(text), high)) for low, high in wanted):
        if parts and start <= parts[-1][1]:
            parts[-1] = (parts[-1][0], max(stop, parts[-1][1]))
        else:
            parts.append((start, stop))
    return parts


def _news(text: str) -> list[float]:
    """Return the compressed size / size of each slice of a text. zlib also has the 32 KiB before the slice.

    The ratio is about 0.4 to 0.7 in prose, and near 0 in a loop.
    """
    size = -(-len(text) // _SLICES)
    if size < 32:
        return []
    # Level 1 is three times as fast as level 6, and only the shape of the curve matters.
    compressor, news = zlib.compressobj(1), []
    for start in range(0, len(text), size):
        data = text[start : start + size].encode("utf-8", "surrogatepass")
        made = len(compressor.compress(data)) + len(compressor.flush(zlib.Z_SYNC_FLUSH))
        news.append(round(min(1.0, max(0, made - _FLUSH) / len(data)), 3))
    return news


def _band(f: Finding, length: int) -> list[float]:
    """Return the beginning and the end of a loop as shares of its field."""
    return [round(f.start / length, 4), round(f.end / length, 4)]
