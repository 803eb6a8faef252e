"""`find`: finds files and cuts them into shards. A shard is a part of a file, which `read` can read in any process."""

import contextlib
import errno
import glob
import io
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath
from typing import Any

from ..._check import integer
from ...errors import ArgumentError, MissingExtra
from ..formats import FORMATS, ROW_FORMATS, SLOT, TEXT, TRANSCRIPT, by_name, chat_text
from ..records import BadRecord
from . import decode, parquet, sqlite, tables
from .field import format_of
from .format import Format, NoTextError
from .nested import Path, shown, within
from .sniff import LONGEST, ROWS, WINDOW, Container, UnknownFormatError, choose, container, first_rows

# In a folder, only files with a suffix of _TEXTS or _DATA are read. A file that the user names may have any suffix.
_TEXTS = (".txt", ".md")
# Suffixes of files that often contain other data. In a folder, such a file is skipped if its format is unknown.
_OFTEN_OTHERS = (".csv", ".tsv", ".yaml", ".yml", ".xml", ".db", ".sqlite", ".sqlite3")
_AIDER = ".aider.chat.history.md"  # aider's history, which is read although it is a hidden file
_DATA = (
    *(".jsonl", ".ndjson", ".json", ".parquet", ".zip", ".eval", ".traj", ".sse"),
    *(".csv", ".tsv", ".yaml", ".yml", ".xml", ".arrow", ".db", ".sqlite", ".sqlite3"),
)
_ENDS: dict[Container, tuple[str, ...]] = {"csv": (".csv", ".tsv"), "yaml": (".yaml", ".yml"), "xml": (".xml",)}
_LINES = (".jsonl", ".ndjson")
_PARTLY = 4 << 20  # maximum number of bytes of a document that are parsed in part; more bytes would take seconds
_TABLE_ROWS = 1000  # maximum number of rows of a table that are read to recognise the format
_PACKED = (".gz", ".zst")
# The files that `lzs eval` keeps in its folder beside the transcripts.
_EVALUATION = frozenset(("run.json", "results.json", "timings.jsonl", "judge.jsonl", "costs.jsonl"))
# Keys that identify summary.json and the table of loops, which an earlier audit may have written into the folder.
_RESULTS = ({"loop_rate", "literal_rate", "interval"}, {"rule", "period", "copies", "unit", "wasted_tokens"})


class OwnResultError(NoTextError):
    """The file is a summary or a table that `lzs audit` wrote."""


@dataclass(frozen=True)
class Shard:
    """A part of a file, as plain data that can be pickled.

    ``start`` and ``end``: the range of the shard, in bytes of a file of lines or in row groups of a Parquet file. Other
    files have only one shard. ``first``: the number of the shard's first line or row, from 0. ``size``: the bytes that
    the shard adds to the progress. The sizes of a file's shards add up to the size of the file. ``is_last``: whether
    the shard is the last of its file. ``path``: the file to open, if it is not ``file``. ``packed``: "", "gz", "zst",
    "utf-16" or "zip".

    ``format``: the name of the format; "" for a zip whose files have different formats, which `read` detects.
    ``detected``: whether the format was detected from the first rows. If so, other rows may have other formats.
    ``field``: the path of `--field`, or None. ``inside``: the path of the format's rows inside the file's rows; empty
    if both are the same. ``head``: `Source.head` as pairs. ``by``: further keys to return as groups. ``turns``: whether
    tool calls are read, too.
    """

    file: str
    format: str
    field: str | None
    start: int
    end: int
    first: int
    container: Container
    size: int
    packed: str = ""
    head: tuple[tuple[str, str], ...] = ()
    by: tuple[str, ...] = ()
    tokenizer: str | None = None
    path: str = ""
    inside: Path = ()
    is_last: bool = True
    turns: bool = False
    detected: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the shard is the whole file."""
        return self.start == 0 and self.is_last

    @property
    def row_format(self) -> Format:
        """The format that reads the rows."""
        format = format_of(self.field) if self.field is not None else by_name(self.format)
        return within(format, self.inside) if self.inside else format

    @property
    def described(self) -> str:
        """The name of the format or field. If the rows are nested, their path follows."""
        named = f"field {self.field}" if self.field is not None else self.format
        return f"{named} at {shown(self.inside)}" if self.inside else named


def find(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    field: str | None = None,
    by: Sequence[str] = (),
    tokenizer: str | os.PathLike[str] | None = None,
    shard_bytes: int = 16 << 20,
    passed: list[BadRecord] | None = None,
    turns: bool = False,
    stdin: str | os.PathLike[str] | None = None,
) -> tuple[list[Shard], list[BadRecord]]:
    """Return the shards of files, folders, patterns and "-" (standard input), and what cannot be read.

    Shards are in the order of ``paths``, and within a folder in the order of names. If a file occurs twice, it is read
    once. In folders, lzsampler reads slots of llama-server and the files with a suffix that docs/formats.md lists.
    Hidden files, README files and the tables of `lzs eval` are skipped. The skipped files are appended to ``passed``.

    ``format``: one of `FORMATS`; if it is None, the format of each file is detected. ``field``: the path of the texts
    in any JSON, instead of a format. ``by``: keys of a row that become groups, besides model, temperature, task,
    finish_reason and seed. ``tokenizer``: a GGUF file for formats that contain tokens. ``shard_bytes``: the size after
    which a file of lines or a Parquet file is cut, at the next end of a line or row group. ``turns``: whether to read
    tool calls, too. ``stdin``: the path of a file with the content of standard input.

    Raises ValueError for an unknown format, or if ``field`` is not a path.
    """
    tokenizer, stdin = (None if path is None else os.fspath(path) for path in (tokenizer, stdin))
    asked = _Asked(format, field, tuple(by), tokenizer, shard_bytes, stdin)
    shards: list[Shard] = []
    bad: list[BadRecord] = []
    others = [] if passed is None else passed
    for file in _files([paths] if isinstance(paths, str | os.PathLike) else paths, asked):
        if isinstance(file, BadRecord):
            bad.append(file)
            continue
        if file.passed:
            others.append(BadRecord(file.name, 0, file.passed))
            continue
        try:
            shards.extend(replace(shard, turns=True) if turns else shard for shard in _shards(file, asked))
        except (UnknownFormatError, tables.TableError) as error:
            often_others = not file.named and _inner_name(file.name).endswith(_OFTEN_OTHERS)
            if often_others:
                others.append(BadRecord(file.name, 0, f"{PurePath(file.name).suffix} files in no known format"))
            else:
                bad.append(BadRecord(file.name, 0, str(error)))
        except OwnResultError as error:
            (bad if file.named else others).append(BadRecord(file.name, 0, str(error)))
        except (NoTextError, MissingExtra) as error:
            bad.append(BadRecord(file.name, 0, str(error)))
        except decode.STREAM_ERRORS as error:
            bad.append(BadRecord(file.name, 0, decode.stream_reason(error)))
    return shards, bad


@dataclass(frozen=True)
class _Asked:
    """The arguments of `find`."""

    format: str | None
    field: str | None
    by: tuple[str, ...]
    tokenizer: str | None
    shard_bytes: int
    stdin: str | None

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ArgumentError(f"unknown format {self.format!r}: choose one of {', '.join(FORMATS)}")
        if self.field is not None:
            format_of(self.field)
            if self.format is not None:
                raise ArgumentError("give either a format or a field, not both")
        integer("shard_bytes", self.shard_bytes, 1, 1 << 62)

    @property
    def nothing(self) -> bool:
        """Whether the format of each file must be detected."""
        return self.format is None and self.field is None

    def formats(self) -> tuple[Format, ...]:
        """Return the formats from which the format of a file is chosen."""
        if self.field is not None:
            return (format_of(self.field),)
        return ROW_FORMATS if self.format is None else (by_name(self.format),)


@dataclass(frozen=True)
class _File:
    """A file.

    ``named``: whether the user named the file, and not its folder. ``passed``: why the file is skipped, or "".
    """

    name: str
    path: str
    named: bool
    passed: str = ""


# -- files --


def _files(paths: Sequence[str | os.PathLike[str]], asked: _Asked) -> Iterator[_File | BadRecord]:
    seen: set[str] = set()
    for given in paths:
        for found in _expanded(os.fspath(given), asked):
            if isinstance(found, _File):
                key = os.path.abspath(found.path)
                if key in seen:
                    continue
                seen.add(key)
            yield found


def _expanded(given: str, asked: _Asked) -> Iterator[_File | BadRecord]:
    if given == "-" and asked.stdin is not None:
        yield _File("-", asked.stdin, named=True)
        return
    if os.path.lexists(given) or not glob.has_magic(given):
        names = [given]
    else:
        names = sorted(glob.glob(given, recursive=True))
        if not names:
            yield BadRecord(given, 0, "no file matches")
    for name in names:
        if os.path.isdir(name):
            inside = list(_folder(name, asked, ()))
            yield from inside
            if all(isinstance(one, _File) and one.passed for one in inside):
                yield BadRecord(_printable(name), 0, "no supported files in this folder (docs/formats.md)")
        elif problem := _problem(name):
            yield BadRecord(_printable(name), 0, problem)
        else:
            yield _File(_printable(name), name, named=True)


def _printable(name: str) -> str:
    """Return a name with U+FFFD in place of bytes that are not UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace")


def _folder(folder: str, asked: _Asked, above: tuple[tuple[int, int], ...]) -> Iterator[_File | BadRecord]:
    try:
        status = os.stat(folder)
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield BadRecord(_printable(folder), 0, f"the folder cannot be read: {error.strerror}")
        return
    here = (status.st_dev, status.st_ino)
    if here in above:
        yield BadRecord(_printable(folder), 0, "a link leads back to a folder that contains it; it is read once")
        return
    if {"audit.json", "000000.json"} <= set(names):
        yield _File(_printable(folder), folder, False, "folders of lzs audit --resume")
        return
    left_out = _EVALUATION if {"run.json", "transcripts.jsonl"} <= set(names) else frozenset()
    for name in names:
        path = os.path.join(folder, name)
        label = _printable(path)
        if name.startswith(".") and name != _AIDER:
            yield _File(label, path, False, "hidden files and folders")
        elif name in left_out:
            yield _File(label, path, False, "tables of lzs eval")
        elif os.path.isdir(path):
            yield from _folder(path, asked, (*above, here))
        elif _is_wanted(path, name.lower(), asked):
            problem = _problem(path)
            yield BadRecord(label, 0, problem) if problem else _File(label, path, named=False)
        else:
            yield _File(label, path, False, _why_not(name.lower()))


def _is_wanted(path: str, name: str, asked: _Asked) -> bool:
    inner = next((name.removesuffix(end) for end in _PACKED if name.endswith(end)), name)
    if asked.format in (TEXT, TRANSCRIPT):
        return inner.endswith(_TEXTS) and not name.startswith("readme")
    if inner.endswith(_DATA):
        return asked.format != SLOT
    if asked.nothing and inner.endswith(_TEXTS):
        return not name.startswith("readme")
    if asked.format not in (None, SLOT) or asked.field is not None or not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return container(file.read(4)) == "slot"
    except OSError:
        return False


def _why_not(name: str) -> str:
    if name.startswith("readme"):
        return "README files"
    suffix = PurePath(name).suffix
    return f"files ending in {suffix}" if suffix else "files without an ending"


def _problem(path: str) -> str:
    """Return why a file cannot be opened; "" if it can."""
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "the link leads back to itself"
        return (
            "the link points to a file that does not exist"
            if os.path.islink(path)
            else f"it cannot be read: {error.strerror}"
        )
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
        return f"it is {kinds.get(kind, 'not a regular file')}: give files, or - for standard input"
    if not os.access(path, os.R_OK):
        return "it cannot be read: Permission denied"
    return "" if status.st_size else "it is empty"


# -- shards --


def _shards(file: _File, asked: _Asked) -> Iterator[Shard]:
    with open(file.path, "rb") as stream:
        packed = decode.compression(stream.read(4))
        size = os.fstat(stream.fileno()).st_size
    if not size:
        raise UnknownFormatError("it is empty")
    with decode.opened(file.path, packed) as stream:
        head = _window(stream, b"", WINDOW)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) and asked.format != TEXT and not _is_text(file):
        raise UnknownFormatError("it is UTF-16 inside a compressed file: save it as UTF-8")
    kept = _container(file, head, asked)
    whole = Shard(
        file.name,
        "",
        asked.field,
        0,
        size,
        0,
        kept,
        size,
        packed,
        (),
        asked.by,
        asked.tokenizer,
        file.path if file.path != file.name else "",
    )
    if kept in ("text", "slot", "transcript"):
        names = {"text": TEXT, "slot": SLOT, "transcript": TRANSCRIPT}
        yield replace(whole, format=names[kept], field=None)
    elif kept == "zip":
        yield replace(whole, format=asked.format or "")
    elif kept == "parquet":
        yield from _row_groups(whole, asked)
    elif kept in ("sqlite", "arrow"):
        if packed:
            raise UnknownFormatError("it is compressed: unpack it first")
        rows = (sqlite.rows if kept == "sqlite" else parquet.arrow_rows)(file.path)
        yield recognised(whole, list(islice(rows, ROWS)), asked.formats())
    else:
        made = _recognised_rows(file, whole, head, asked)
        if kept == "lines" and not packed and made.row_format.cut:
            yield from _byte_ranges(made, asked.shard_bytes)
        else:
            yield made


def _recognised_rows(file: _File, whole: Shard, head: bytes, asked: _Asked) -> Shard:
    """Recognise the format of a file of rows, and return its shard. ``head``: the first bytes of the file.

    If the first bytes are not enough, more bytes are read: a row may begin with a prompt of megabytes.
    """
    kept, formats = whole.container, asked.formats()
    more = len(head) >= WINDOW
    complete = kept not in ("lines", "events") or not more or b"\n" in head
    if complete:
        try:
            return recognised(whole, table_rows(kept, head, file.name, not more), formats)
        except (UnknownFormatError, tables.TableError):
            if not more:
                raise
    if kept == "lines" and not complete:  # One undamaged row is enough.
        with (
            contextlib.suppress(decode.JsonError, UnknownFormatError, *decode.STREAM_ERRORS),
            decode.opened(file.path, whole.packed) as stream,
        ):
            return recognised(whole, _first_row(stream), formats)
    with decode.opened(file.path, whole.packed) as stream:
        size = WINDOW
        while True:
            size = min(16 * size, LONGEST)
            head = _window(stream, head if size > 16 * WINDOW else b"", size)
            last = len(head) < size or size == LONGEST
            try:
                return recognised(whole, table_rows(kept, head, file.name, last), formats)
            except (UnknownFormatError, tables.TableError):
                if last:
                    raise


def _first_row(stream: decode.Stream) -> list[Any]:
    held = [stream.readline(decode.MAX_LINE).removeprefix(b"\xef\xbb\xbf")]
    return [decode.loads(held.pop())]


def table_rows(kept: Container, head: bytes, name: str, whole: bool) -> list[Any]:
    """Return a file's first rows. ``head``: its first bytes. ``whole``: whether ``head`` is the whole file."""
    if kept == "csv":
        rows: list[Any] = []
        bad: list[Any] = []  # If no row is good, the format is detected from the bad rows.
        try:
            for _, row in islice(tables.csv_rows(io.BytesIO(head), name.lower()), _TABLE_ROWS):
                if not isinstance(row, tables.TableError):
                    rows.append(row)
                elif row.row is not None:
                    bad.append(row.row)
        except tables.TableError:
            if not rows:
                raise
        return sorted(rows or bad, key=len, reverse=True)[:ROWS]  # Rows with many cells tell most about the format.
    if kept in ("yaml", "xml"):
        if not whole:
            raise UnknownFormatError("it is too long")
        return (tables.yaml_rows if kept == "yaml" else tables.xml_rows)(head)[:ROWS]
    if kept == "document" and whole and len(head) > _PARTLY:
        with contextlib.suppress(decode.JsonError):
            return decode.elements(head.removeprefix(b"\xef\xbb\xbf").lstrip())[0][:ROWS]
    return first_rows(head[:_PARTLY] if kept == "document" else head, kept)


def _window(stream: decode.Stream, before: bytes, size: int) -> bytes:
    pieces: list[bytes] = [before]
    n = len(before)
    try:
        while n < size and (piece := stream.read1(size - n)):
            pieces.append(piece)
            n += len(piece)
    except decode.STREAM_ERRORS:
        if not n:
            raise
    return b"".join(pieces)


def _is_text(file: _File) -> bool:
    return _inner_name(file.name).endswith(_TEXTS)


def _inner_name(name: str) -> str:
    """Return a name in lower case, without the suffix of a compressed file."""
    name = name.lower()
    return next((name.removesuffix(end) for end in _PACKED if name.endswith(end)), name)


def _container(file: _File, head: bytes, asked: _Asked) -> Container:
    if asked.format == TEXT:
        return "text"
    kept = container(head)
    if asked.format == SLOT and kept != "slot":
        raise UnknownFormatError("it is not a slot of llama-server: it does not begin with ggsq")
    name = _inner_name(file.name)
    if asked.format == TRANSCRIPT or (asked.nothing and _is_text(file)):
        return kept_text(head) if asked.nothing else "transcript"
    if kept is not None:
        return kept
    if b"\n{" in head and name.endswith(_LINES):  # The first line is damaged.
        return "lines"
    for table, ends in _ENDS.items():
        if name.endswith(ends) and head.strip():
            return table
    if name.endswith((".html", ".htm")):
        raise UnknownFormatError("it is HTML: give the data that the page was made of, or save its text as .txt")
    if asked.nothing and not name.endswith(_DATA) and head.strip() and b"\0" not in head:
        return kept_text(head)
    raise UnknownFormatError("it is not a JSON, Parquet or zip file" if head.strip() else "it is blank")


def kept_text(head: bytes) -> Container:
    """Return the container of a text file: events of a server, a conversation, promptfoo's YAML, or one text."""
    if container(head) == "events":
        return "events"
    if head.startswith(b"evalId: "):  # Promptfoo writes YAML to files of any name.
        return "yaml"
    return "transcript" if chat_text.matches(head.decode("utf-8", "ignore").removeprefix("\ufeff")) else "text"


def recognised(shard: Shard, rows: list[Any], formats: tuple[Format, ...]) -> Shard:
    """Choose one of ``formats`` for a shard by its first rows. Return the shard with its format and head.

    Raises `UnknownFormatError` and `NoTextError`.
    """
    if any(isinstance(row, dict) and keys <= row.keys() for row in rows[:1] for keys in _RESULTS):
        raise OwnResultError("results of lzs audit")
    path: Path = ()
    if len(formats) > 1:
        format, path, row = choose(rows, formats)
    else:
        (format,) = formats
        row = next((row for row in rows if format.matches(row)), rows[0] if rows else None)
        if shard.field is None and not any(map(format.matches, rows)):
            with contextlib.suppress(UnknownFormatError):
                _, path, row = choose(rows, formats)
    try:
        head = format.head(shard.file, row)
    except (TypeError, KeyError, AttributeError, IndexError):
        head = {}
    return replace(shard, format=format.name, head=tuple(head.items()), inside=path, detected=len(formats) > 1)


def _byte_ranges(shard: Shard, shard_bytes: int) -> Iterator[Shard]:
    """Cut a file of lines into shards. A shard ends at the first line end after ``shard_bytes`` bytes."""
    if shard.end <= shard_bytes:
        yield shard
        return
    start = first = at = lines = 0
    ranges: list[tuple[int, int, int]] = []
    with open(shard.path or shard.file, "rb", 0) as file:
        while piece := file.read(decode.BUFFER):
            done = 0
            while (cut := piece.find(b"\n", max(done, start + shard_bytes - 1 - at))) >= 0:
                lines += piece.count(b"\n", done, cut + 1)
                done = cut + 1
                ranges.append((start, at + done, first))
                start, first = at + done, lines
            lines += piece.count(b"\n", done)
            at += len(piece)
    if at > start:
        ranges.append((start, at, first))
    for start, end, first in ranges:
        yield replace(shard, start=start, end=end, first=first, size=end - start, is_last=end == ranges[-1][1])


def _row_groups(shard: Shard, asked: _Asked) -> Iterator[Shard]:
    """Cut a Parquet file into shards of whole row groups, with about ``shard_bytes`` unpacked bytes each."""
    groups, opening = parquet.opening(shard.path or shard.file)
    shard = recognised(shard, opening, asked.formats())
    columns, names = shard.row_format.columns, list(opening[0])
    there = not {column.partition(".")[0] for column in columns}.isdisjoint(names)
    if columns and not there and (shard.field is not None or not any(map(shard.row_format.matches, opening))):
        raise UnknownFormatError(
            f"it has no column called {' or '.join(columns)} (its columns: {', '.join(names[:8])})"
        )
    total = sum(rows for rows, _ in groups)
    start = first = rows = unpacked = 0
    for i, (n, n_bytes) in enumerate(groups):
        rows += n
        unpacked += n_bytes
        if unpacked >= asked.shard_bytes or i + 1 == len(groups):
            size = shard.size * (first + rows) // total - shard.size * first // total
            yield replace(shard, start=start, end=i + 1, first=first, size=size, is_last=i + 1 == len(groups))
            start, first, rows, unpacked = i + 1, first + rows, 0, 0
