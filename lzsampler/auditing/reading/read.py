"""`read`: a shard to records."""

import struct
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..formats import ROW_FORMATS, TEXT, by_name, text
from ..records import BadRecord, Field, Record, fields_of
from . import decode, parquet, slot
from .decode import JsonError, loads
from .format import Format, Message, NoTextError, Source
from .messages import GROUP_KEYS, NAME_KEYS, kind_of
from .shard import Shard, recognised
from .sniff import WINDOW, UnknownFormatError, container, first_rows

Read = Record | BadRecord

# What zipfile raises for damaged names, sizes, offsets and methods besides its own error; RuntimeError: encrypted.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    RuntimeError,
    ValueError,
    KeyError,
    IndexError,
    struct.error,
    OverflowError,
    MemoryError,
    *decode.STREAM_ERRORS,
)
_MALFORMED = (TypeError, KeyError, AttributeError, IndexError, ValueError, RecursionError)


def read(shard: Shard) -> Iterator[Read]:
    """Yield the records of a shard, and a `BadRecord` for every part that cannot be read, in the order of the file.

    A line, row or element with several messages of the model gives several records with the same number and different
    ids. Only a library that is not installed raises (MissingExtra); a damaged file ends with a `BadRecord`.
    """
    try:
        if shard.container == "parquet":
            yield from _parquet(shard)
        elif shard.container == "zip":
            yield from _zip(shard)
        elif shard.container == "slot":
            yield from _slot(shard)
        else:
            with decode.opened(shard.path or shard.file, shard.packed) as stream:
                if shard.container == "lines":
                    stream.seek(shard.start) if shard.start else None
                yield from _stream(shard, stream)
    except decode.STREAM_ERRORS as error:
        yield BadRecord(shard.file, 0, decode.stream_reason(error))


def _stream(shard: Shard, stream: Any) -> Iterator[Read]:
    if shard.container == "lines":
        yield from _lines(shard, stream)
    elif shard.container == "document":
        yield from _document(shard, stream)
    else:
        data, ended = decode.whole(stream)
        if data:
            yield _record(shard.file, 0, "0", text.message(data))
        if ended:
            yield BadRecord(shard.file, 0, ended)


# -- containers --


def _lines(shard: Shard, stream: Any) -> Iterator[Read]:
    format, source, number = shard.row_format, _source(shard), shard.first - 1
    lines = decode.lines(stream, None if shard.packed else shard.end - shard.start)
    named_lines = shard.file.lower().removesuffix(".gz").removesuffix(".zst").endswith((".jsonl", ".ndjson"))
    try:
        for line in lines:
            number += 1
            if line is None:
                yield BadRecord(shard.file, number + 1, f"the line is longer than {decode.MAX_LINE >> 20} MiB")
                continue
            if number == 0:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                row = loads(line)
            except JsonError as error:
                if not line.isspace() and line:
                    yield BadRecord(shard.file, number + 1, str(error))
                continue
            alone = number == 0 and not named_lines and _is_at_end(stream)
            yield from records_of(format, row, source, number, number + 1, "", alone)
    except decode.STREAM_ERRORS as error:
        yield BadRecord(shard.file, number + 2, decode.stream_reason(error))


def _is_at_end(stream: Any) -> bool:
    """Return whether nothing follows in the file: after the first line, that it is all of it."""
    try:
        return not stream.peek(1)
    except decode.STREAM_ERRORS:
        return False


def _document(shard: Shard, stream: Any) -> Iterator[Read]:
    data, ended = decode.whole(stream)
    if ended:
        yield BadRecord(shard.file, 0, ended)
        return
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    alone = not data.startswith(b"[")
    try:
        rows, ended = decode.elements(data)
    except JsonError as error:
        yield BadRecord(shard.file, 0, str(error))
        return
    del data
    format, source = shard.row_format, _source(shard)
    for number, row in enumerate(rows):
        yield from records_of(format, row, source, number, 0, "" if alone else f"element {number}: ", alone)
    if ended:
        yield BadRecord(shard.file, 0, ended)


def _parquet(shard: Shard) -> Iterator[Read]:
    format, source = shard.row_format, _source(shard)
    columns = [*format.columns, *shard.by, *NAME_KEYS, *GROUP_KEYS] if format.columns else None
    rows = parquet.rows(shard.path or shard.file, shard.start, shard.end, columns)
    number = shard.first - 1
    try:
        for number, row in enumerate(rows, shard.first):  # read after the loop, where it ends early
            where = f"row {number}: "
            if isinstance(row, Exception):
                yield BadRecord(shard.file, 0, f"{where}{row}")
            else:
                yield from records_of(format, row, source, number, 0, where, False)
    except OSError as error:
        yield BadRecord(shard.file, 0, f"damaged after row {number}: {error}")


def _zip(shard: Shard) -> Iterator[Read]:
    try:
        with zipfile.ZipFile(shard.path or shard.file) as archive:
            names = {info.filename for info in archive.infolist() if not info.is_dir()}
            head: Shard | None = None
            if any(name.startswith("samples/") for name in names):  # a log of inspect-ai
                head = _eval_head(shard, archive, names)
                names = {name for name in names if name.startswith("samples/") and name.endswith(".json")}
            for number, name in enumerate(sorted(names)):
                if _is_member(name):
                    yield from _member(shard, archive, name, head, number)
    except _ZIP_ERRORS as error:
        yield BadRecord(shard.file, 0, f"the zip file is damaged or encrypted: {error}")


def _is_member(name: str) -> bool:
    parts = name.split("/")
    return not any(part.startswith((".", "__MACOSX")) for part in parts) and name.lower().endswith(
        (".json", ".jsonl", ".ndjson", ".txt", ".md")
    )


def _member(shard: Shard, archive: zipfile.ZipFile, name: str, head: Shard | None, number: int) -> Iterator[Read]:
    """Yield the records of a file in a zip, or of a sample of a log, whose samples count as one file."""
    file = f"{shard.file}/{name}"
    try:
        if head is not None:
            with decode.member(archive, name) as stream:
                data, ended = decode.whole(stream)
            if ended:
                raise UnknownFormatError(ended)
            yield from records_of(head.row_format, loads(data), _source(head), number, 0, f"{name}: ", False)
            return
        with decode.member(archive, name) as stream:
            inner = _recognised_member(shard, file, stream.read(WINDOW))
        with decode.member(archive, name) as stream:
            yield from _stream(inner, stream)
    except (UnknownFormatError, NoTextError, JsonError) as error:
        yield BadRecord(file if head is None else shard.file, 0, str(error) if head is None else f"{name}: {error}")
    except _ZIP_ERRORS as error:
        yield BadRecord(file, 0, f"damaged or encrypted: {error}")


def _recognised_member(shard: Shard, file: str, first: bytes) -> Shard:
    # Packed: the sizes of the archive say nothing of where a member ends.
    inner = replace(shard, file=file, path="", packed="zip", start=0, end=0, container="text", format=TEXT)
    kept = container(first)
    if shard.format == TEXT or (not shard.format and file.lower().endswith((".txt", ".md"))):
        return inner
    if kept not in ("lines", "document"):
        raise UnknownFormatError("it is not JSON")
    formats = (shard.row_format,) if shard.format or shard.field is not None else ROW_FORMATS
    return recognised(replace(inner, container=kept), first_rows(first, kept), formats)


def _eval_head(shard: Shard, archive: zipfile.ZipFile, names: set[str]) -> Shard:
    """Return the shard of an .eval with what its header says, as far as that was written."""
    about: Any = {}
    for name in ("header.json", "_journal/start.json"):
        if name in names:
            try:
                with decode.member(archive, name) as stream:
                    about = loads(stream.read())
                break
            except JsonError:
                continue
    return recognised(replace(shard, container="document"), [about], (by_name("inspect"),))


def _slot(shard: Shard) -> Iterator[Read]:
    if shard.tokenizer is None:
        yield BadRecord(
            shard.file, 0, "a slot holds tokens, not text: give the model that wrote it with --tokenizer MODEL.gguf"
        )
        return
    try:
        tokens = slot.tokens(shard.path or shard.file)
        told = slot.text(tokens, shard.tokenizer)
    except ValueError as error:
        yield BadRecord(shard.file, 0, str(error))
        return
    yield Record(shard.file, 0, "0", (Field("answer", told, tokens),))


# -- records --


def _source(shard: Shard) -> Source:
    return Source(shard.file, dict(shard.head), shard.by, bool(shard.packed))


def records_of(
    format: Format, row: Any, source: Source, number: int, line: int, where: str, is_file: bool
) -> Iterator[Read]:
    """Yield the records of a row. ``line`` counts from 1, 0: none; ``is_file``: the row is all of its file."""
    seen: dict[str, int] = {}
    try:
        for message in format.messages(row, source):
            n = number if message.number is None or not is_file else message.number
            id = str(n) if message.id is None else message.id
            count = seen[id] = seen.get(id, 0) + 1
            yield _record(source.file, n, id if count == 1 else f"{id}/{count}", message, 0 if source.packed else line)
    except NoTextError as error:
        yield BadRecord(source.file, line, where + str(error))
    except _MALFORMED as error:
        if isinstance(row, dict) or format.matches(row):
            what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        else:
            what = f"the row is {kind_of(row)}, not an object"
        yield BadRecord(source.file, line, f"{where}not in the form of {format.name}: {what}")


def _record(file: str, number: int, id: str, message: Message, line: int = 0) -> Record:
    return Record(file, number, id, fields_of(message.answer, message.reasoning), message.groups, line)
