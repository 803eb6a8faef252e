"""Recognises from the first bytes of a file how its rows are stored (its container) and in which format."""

import codecs
import json
import re
from typing import Any, Literal

from .decode import JsonError, loads
from .format import Format
from .nested import Path, places

Container = Literal[
    "lines",
    "events",
    "document",
    "parquet",
    "arrow",
    "zip",
    "text",
    "transcript",
    "csv",
    "yaml",
    "xml",
    "sqlite",
    "slot",
]

WINDOW = 1 << 18  # number of bytes at the beginning of a file that are read first
LONGEST = 64 << 20  # maximum number of bytes that are read to recognise a file
SLOT_MAGIC = b"qsgg"  # "ggsq" as a little-endian number
_SQLITE, _ARROW = b"SQLite format 3\0", b"ARROW1\0\0"
_ARROW_STREAM = b"\xff\xff\xff\xff"  # first bytes of a message of Arrow's IPC format
_EVENT = re.compile(rb"\s*(?:(?:event|id|retry)?:[^\n]*\n\s*)*data: ?[\[{]")  # server-sent events whose data are JSON
ROWS = 5  # maximum number of first rows that are examined
_DEPTH = 500
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.S)
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")  # an incomplete escape at the end of a text


class UnknownFormatError(ValueError):
    """A file has no known format. The message says why and what to do."""


def container(head: bytes) -> Container | None:
    """Return how a file stores its rows. None if the file may be plain text or blank."""
    if head.startswith(SLOT_MAGIC):
        return "slot"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(_SQLITE):
        return "sqlite"
    if head.startswith((_ARROW, _ARROW_STREAM)):
        return "arrow"
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if start == b'"':
        return "lines" if isinstance(first_rows(head, "lines")[0], str) else None
    if start not in (b"{", b"["):
        return "events" if _EVENT.match(head.removeprefix(codecs.BOM_UTF8)) else None
    return "lines" if _is_lines(head) else "document"


def event_data(line: bytes) -> bytes:
    """Return the data of a line of server-sent events; b"" for other lines."""
    return line[5:].strip() if line.startswith(b"data:") else b""


def _is_lines(head: bytes) -> bool:
    """Return whether every line is a row, and the lines together are not one JSON text."""
    rows = [line.rstrip() for line in head.removeprefix(codecs.BOM_UTF8).split(b"\n") if line.strip()][: ROWS + 1]
    if rows[0].lstrip().startswith(b"["):
        return len(rows) > 1 and _parses(rows[0]) and rows[1].startswith((b"[", b"{"))
    if len(rows) == 1 or _parses(rows[0]):
        return True
    # The first row is damaged, or the file is one indented object, in which no line is an object by itself.
    return any(row.startswith(b"{") and len(row) > 2 and _parses(row) for row in rows[1:])


def _parses(line: bytes) -> bool:
    try:
        return isinstance(loads(line), dict | list)
    except JsonError:
        return False


def first_rows(head: bytes, kept: Container) -> list[Any]:
    """Return the first rows of a JSON file from its first bytes ``head``. The last row may be incomplete."""
    if kept == "document":
        try:
            value = partial(head.decode("utf-8", "ignore").removeprefix("\ufeff"))
        except RecursionError:
            raise UnknownFormatError("it is nested too deeply") from None
        return value[:ROWS] if isinstance(value, list) else [value]
    rows, too_deep = [], False
    lines = head.removeprefix(codecs.BOM_UTF8).split(b"\n")[: 4 * ROWS]
    for line in lines if kept == "lines" else map(event_data, lines):
        if line.strip() and line != b"[DONE]":
            try:
                rows.append(loads(line))
            except JsonError:
                try:
                    rows.append(partial(line.decode("utf-8", "ignore")))
                except RecursionError:
                    too_deep = True
    if too_deep and not rows:
        raise UnknownFormatError("it is nested too deeply")
    return rows[:ROWS]


def partial(text: str) -> Any:
    """Return the value of a JSON text that may be cut off at its end. None if the text is not JSON.

    RecursionError if the text is nested too deeply.
    """
    closing: list[str] = []
    at = end = 0
    before = ""
    while at < len(text):
        found = _TOKEN.search(text, at)
        if found is None or '"' in text[at : found.start()]:  # The text ends inside a string.
            quote = text.find('"', at)
            if quote >= 0 and (before == ":" or closing[-1:] == ["]"]):
                text = _ESCAPE.sub("", text) + '"'
                end = len(text)
            break
        token, at = found[0], found.end()
        if token in "{[":
            closing.append("}" if token == "{" else "]")
            end = at
        elif token in "}]":
            if not closing or closing.pop() != token:
                return None
            end = at
        elif token == ",":
            end = found.start()
        if len(closing) > _DEPTH:
            raise RecursionError
        if not closing:
            break
        before = token
    try:
        return json.loads(text[:end] + "".join(reversed(closing)), strict=False)
    except ValueError:
        return None


def choose(rows: list[Any], formats: tuple[Format, ...]) -> tuple[Format, Path, Any]:
    """Return (format, path, row): the first format that matches a row, or a value at a path inside a row.

    Whole rows are tried before the values inside rows; for a whole row the path is (). `UnknownFormatError` if no
    format matches.
    """
    for row in rows:
        for format in formats:
            if format.matches(row) and not (format.whole and isinstance(row, dict) and len(rows) > 1):
                return format, (), row
    for row in rows:
        for path, value, listed in places(row):
            for format in formats:
                if format.whole or not format.matches(value):
                    continue
                if listed or format.is_certain is None or format.is_certain(value):
                    return format, path, row
    if not rows:
        raise UnknownFormatError("it has no rows")
    keys = next((", ".join(map(str, list(row)[:8])) for row in rows if isinstance(row, dict) and row), "")
    seen = f" (its keys: {keys})" if keys else ""
    raise UnknownFormatError(
        f"the format is not known{seen}: give --field PATH, such as choices[*].message.content, or --format"
    )
