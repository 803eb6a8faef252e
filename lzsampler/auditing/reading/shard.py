"""`find`: makes shards of paths; `read` reads these pieces of files one by one, in any process."""

import atexit
import glob
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..._check import integer
from ..formats import FORMATS, ROW_FORMATS, SLOT, TEXT, by_name
from ..records import BadRecord
from . import decode, parquet
from .field import format_of
from .format import Format, NoTextError
from .sniff import WINDOW, Container, UnknownFormatError, choose, container, first_rows

# What is read of a folder, by the ends of names; files that are named themselves may have any.
_TEXTS = (".txt", ".md")
_DATA = (".jsonl", ".ndjson", ".json", ".parquet", ".zip", ".eval")
_LINES = (".jsonl", ".ndjson")
_PACKED = (".gz", ".zst")
# What `lzs eval` keeps in its folder beside the transcripts.
_EVALUATION = frozenset(("run.json", "results.json", "timings.jsonl", "judge.jsonl", "tax.jsonl"))


@dataclass(frozen=True)
class Shard:
    """A piece of a file: plain data that can be pickled.

    ``start``, ``end``: bytes of a file of lines, row groups of a Parquet file, or all bytes of another file. ``first``:
    the number of its first line or row, from 0. ``format``: "" if it is detected for each file of a zip. ``field``: the
    path of `--field`, or None. ``size``: the bytes that it counts for in the progress; they add up to those of the
    files. ``by``: further groups. ``head``: what the first row of the file says about all rows. ``path``: where the
    bytes are, if not at ``file``. ``packed``: "", "gz", "zst" or "zip".
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

    @property
    def row_format(self) -> Format:
        """The format that takes the rows apart."""
        return format_of(self.field) if self.field is not None else by_name(self.format)


def find(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    field: str | None = None,
    by: Sequence[str] = (),
    tokenizer: str | os.PathLike[str] | None = None,
    shard_bytes: int = 16 << 20,
) -> tuple[list[Shard], list[BadRecord]]:
    """Return the shards of files, folders, patterns and "-" (standard input), and what cannot be read.

    They come in the order of ``paths``, and in a folder in the order of names; a file that occurs twice is read once.
    In folders, slots of llama-server and files ending in .txt .md .jsonl .ndjson .json .parquet .zip .eval (also with
    .gz or .zst after that) are read, but not hidden files, README files and the tables of `lzs eval`. ``format``: one
    of `FORMATS`; None detects it for each file. ``field``: the path of the texts in any JSON, instead of a format.
    ``by``: keys of a row that become groups beside model, temperature, task, finish_reason and seed. ``tokenizer``: a
    GGUF file for formats that hold tokens. ``shard_bytes``: the size after which a file of lines or of Parquet is cut,
    at the end of a line or row group.

    Raises ValueError for an unknown format or a bad path, MissingExtra if a library that the files need is not
    installed.
    """
    asked = _Asked(format, field, tuple(by), None if tokenizer is None else os.fspath(tokenizer), shard_bytes)
    shards: list[Shard] = []
    bad: list[BadRecord] = []
    for file in _files([paths] if isinstance(paths, str | os.PathLike) else paths, asked):
        if isinstance(file, BadRecord):
            bad.append(file)
            continue
        try:
            shards.extend(_shards(file, asked))
        except (UnknownFormatError, NoTextError) as error:
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

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ValueError(f"unknown format {self.format!r}: choose one of {', '.join(FORMATS)}")
        if self.field is not None:
            format_of(self.field)
            if self.format is not None:
                raise ValueError("give either a format or a field, not both")
        integer("shard_bytes", self.shard_bytes, 1, 1 << 62)

    @property
    def nothing(self) -> bool:
        """Whether the format of each file has to be detected."""
        return self.format is None and self.field is None

    def formats(self) -> tuple[Format, ...]:
        """Return the formats that the rows of a file may have."""
        if self.field is not None:
            return (format_of(self.field),)
        return ROW_FORMATS if self.format is None else (by_name(self.format),)


@dataclass(frozen=True)
class _File:
    """A file to read. ``named``: the user gave its own name, and not that of a folder."""

    name: str
    path: str
    named: bool


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
    if given == "-":
        yield _File("-", _spooled(), named=True)
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
            yield from inside or [BadRecord(_printable(name), 0, "no supported files in this folder (docs/formats.md)")]
        elif problem := _problem(name):
            yield BadRecord(_printable(name), 0, problem)
        else:
            yield _File(_printable(name), name, named=True)


def _printable(name: str) -> str:
    """Return a name as text that any encoding takes: one that is not UTF-8 has U+FFFD in it."""
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
    left_out = _EVALUATION if {"run.json", "transcripts.jsonl"} <= set(names) else frozenset()
    for name in names:
        path = os.path.join(folder, name)
        if name.startswith(".") or name in left_out:
            continue
        if os.path.isdir(path):
            yield from _folder(path, asked, (*above, here))
        elif _is_wanted(path, name.lower(), asked):
            problem = _problem(path)
            label = _printable(path)
            yield BadRecord(label, 0, problem) if problem else _File(label, path, named=False)


def _is_wanted(path: str, name: str, asked: _Asked) -> bool:
    inner = next((name.removesuffix(end) for end in _PACKED if name.endswith(end)), name)
    if asked.format == TEXT:
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


def _problem(path: str) -> str:
    """Return why a file cannot be opened, "" when it can."""
    try:
        status = os.stat(path)
    except OSError as error:
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


def _spooled() -> str:
    """Return the path of a copy of standard input, by which workers read it; it is removed when this process ends."""
    with tempfile.NamedTemporaryFile(prefix="lzs-stdin-", delete=False) as copy:
        atexit.register(_remove, copy.name, os.getpid())
        shutil.copyfileobj(sys.stdin.buffer, copy, decode.BUFFER)
    return copy.name


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a worker that was forked
        Path(path).unlink(missing_ok=True)


# -- shards --


def _shards(file: _File, asked: _Asked) -> Iterator[Shard]:
    with open(file.path, "rb") as stream:
        packed = decode.compression(stream.read(4))
        size = os.fstat(stream.fileno()).st_size
    if not size:
        raise UnknownFormatError("it is empty")
    with decode.opened(file.path, packed) as stream:
        head = _window(stream)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) and asked.format != TEXT and not _is_text(file):
        raise UnknownFormatError("it is UTF-16: save it as UTF-8")
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
    if kept in ("text", "slot"):
        yield replace(whole, format=TEXT if kept == "text" else SLOT, field=None)
    elif kept == "zip":
        yield replace(whole, format=asked.format or "")
    elif kept == "parquet":
        yield from _row_groups(whole, asked)
    else:
        rows = first_rows(head, kept)
        made = recognised(whole, rows, asked.formats())
        if kept == "lines" and not packed and made.row_format.cut:
            yield from _byte_ranges(made, asked.shard_bytes)
        else:
            yield made


def _window(stream: decode.Stream) -> bytes:
    pieces: list[bytes] = []
    n = 0
    try:
        while n < WINDOW and (piece := stream.read1(WINDOW - n)):
            pieces.append(piece)
            n += len(piece)
    except decode.STREAM_ERRORS:
        if not n:
            raise
    return b"".join(pieces)


def _is_text(file: _File) -> bool:
    name = file.name.lower()
    return next((name.removesuffix(end) for end in _PACKED if name.endswith(end)), name).endswith(_TEXTS)


def _container(file: _File, head: bytes, asked: _Asked) -> Container:
    if asked.format == TEXT or (asked.nothing and _is_text(file)):
        return "text"
    kept = container(head)
    if asked.format == SLOT and kept != "slot":
        raise UnknownFormatError("it is not a slot of llama-server: it does not begin with ggsq")
    if kept is not None:
        return kept
    if b"\n{" in head and file.name.lower().endswith(_LINES):  # the first line is damaged
        return "lines"
    if asked.nothing and not file.name.lower().endswith(_DATA) and head.strip() and b"\0" not in head:
        return "text"
    raise UnknownFormatError("it is not a JSON, Parquet or zip file" if head.strip() else "it is blank")


def recognised(shard: Shard, rows: list[Any], formats: tuple[Format, ...]) -> Shard:
    """Return a shard with its format, one of ``formats``, and its head, from the first rows.

    Raises `UnknownFormatError` and `NoTextError`.
    """
    if len(formats) > 1:
        format, row = choose(rows, formats)
    else:
        (format,) = formats
        row = next((row for row in rows if format.matches(row)), rows[0] if rows else None)
    try:
        head = format.head(shard.file, row)
    except (TypeError, KeyError, AttributeError, IndexError):
        head = {}
    return replace(shard, format=format.name, head=tuple(head.items()))


def _byte_ranges(shard: Shard, shard_bytes: int) -> Iterator[Shard]:
    """Cut a file of lines at the first line end after every ``shard_bytes``, counting the lines on the way."""
    if shard.end <= shard_bytes:
        yield shard
        return
    start = first = at = lines = 0
    with open(shard.path or shard.file, "rb", 0) as file:
        while piece := file.read(decode.BUFFER):
            done = 0
            while (cut := piece.find(b"\n", max(done, start + shard_bytes - 1 - at))) >= 0:
                lines += piece.count(b"\n", done, cut + 1)
                done = cut + 1
                yield replace(shard, start=start, end=at + done, first=first, size=at + done - start)
                start, first = at + done, lines
            lines += piece.count(b"\n", done)
            at += len(piece)
    if at > start:
        yield replace(shard, start=start, end=at, first=first, size=at - start)


def _row_groups(shard: Shard, asked: _Asked) -> Iterator[Shard]:
    """Cut a Parquet file between row groups, so that a shard has about ``shard_bytes`` of them, unpacked."""
    groups, row = parquet.opening(shard.path or shard.file)
    shard = recognised(shard, [row], asked.formats())
    columns = shard.row_format.columns
    if columns and isinstance(row, dict) and not {column.partition(".")[0] for column in columns} & row.keys():
        raise UnknownFormatError(
            f"it has no column called {' or '.join(columns)} (its columns: {', '.join(list(row)[:8])})"
        )
    total = sum(rows for rows, _ in groups)
    start = first = rows = unpacked = 0
    for i, (n, n_bytes) in enumerate(groups):
        rows += n
        unpacked += n_bytes
        if unpacked >= asked.shard_bytes or i + 1 == len(groups):
            size = shard.size * (first + rows) // total - shard.size * first // total
            yield replace(shard, start=start, end=i + 1, first=first, size=size)
            start, first, rows, unpacked = i + 1, first + rows, 0, 0
