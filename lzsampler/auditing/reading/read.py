"""`read`: turns a shard into records."""

import os
import zipfile
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from ..._values import counted
from ...errors import MissingExtra
from ..formats import ROW_FORMATS, TEXT, by_name, chat_text, plain_text
from ..records import BadRecord, Field, FileRead, PassedOver, Record, fields_of
from . import decode, parquet, slot, sqlite, tables
from .decode import JsonError, loads
from .format import Format, Message, NoTextError, Source
from .messages import GROUP_KEYS, NAME_KEYS, calls_of, kind_of
from .shard import Shard, kept_text, recognised, table_rows
from .sniff import WINDOW, UnknownFormatError, container, event_data

Read = Record | BadRecord | FileRead | PassedOver

_MALFORMED = (TypeError, KeyError, AttributeError, IndexError, ValueError, RecursionError)


def read(shard: Shard) -> Iterator[Read]:
    """Yield the records of a shard, and a `BadRecord` for every unreadable part, in the order of the file.

    If a line, row or element has several messages of the model, they become records with the same number and different
    ids. A `FileRead`, which names the format, comes before the first record of a file. If a file is damaged, or needs a
    library that is not installed, a `BadRecord` is the last item.
    """
    n = 0
    try:
        for item in _read(shard):
            n += not isinstance(item, FileRead | PassedOver)
            yield item
    except decode.STREAM_ERRORS as error:
        yield BadRecord(shard.file, 0, decode.stream_reason(error))
    except (MissingExtra, UnknownFormatError) as error:
        yield BadRecord(shard.file, 0, str(error))
    else:
        if not n and shard.container != "zip" and shard.is_whole:
            yield BadRecord(shard.file, 0, f"it was read as {shard.described}, and contains no text of a model")


def _read(shard: Shard) -> Iterator[Read]:
    if shard.container == "zip":
        yield from _zip(shard)
        return
    if shard.start == 0:
        yield FileRead(shard.file, shard.described)
    if shard.container == "parquet":
        yield from _parquet(shard)
    elif shard.container in ("sqlite", "arrow"):
        path = shard.path or shard.file
        rows = sqlite.rows(path) if shard.container == "sqlite" else parquet.arrow_rows(path)
        yield from _rows(shard, ((0, row) for row in rows))
    elif shard.container == "slot":
        yield from _slot(shard)
    else:
        with decode.opened(shard.path or shard.file, shard.packed) as stream:
            if shard.container == "lines":
                stream.seek(shard.start) if shard.start else None
            yield from _stream(shard, stream)


def _stream(shard: Shard, stream: Any) -> Iterator[Read]:
    if shard.container in ("lines", "events"):
        yield from _lines(shard, stream)
    elif shard.container == "csv":
        yield from _rows(shard, tables.csv_rows(stream, shard.file.lower()))
    elif shard.container in ("document", "yaml", "xml"):
        yield from _document(shard, stream)
    else:
        data, ended = decode.whole(stream)
        if data and shard.container == "transcript":
            for message in chat_text.messages(plain_text.decoded(data)):
                yield _record(shard.file, message.number or 0, message.id or str(message.number), message)
        elif data:
            yield _record(shard.file, 0, "0", plain_text.message(data))
        if ended:
            yield BadRecord(shard.file, 0, ended)


# -- containers --


def _lines(shard: Shard, stream: Any) -> Iterator[Read]:
    format, source, number = shard.row_format, _source(shard), shard.first - 1
    lines = decode.lines(stream, None if shard.packed else shard.end - shard.start)
    named_lines = shard.file.lower().removesuffix(".gz").removesuffix(".zst").endswith((".jsonl", ".ndjson"))
    events = shard.container == "events"
    try:
        for line in lines:
            number += 1
            if line is None:
                yield BadRecord(shard.file, number + 1, f"the line is longer than {decode.MAX_LINE >> 20} MiB")
                continue
            if number == 0:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.isspace():
                continue
            if events:
                line = event_data(line)
                if line == b"[DONE]":
                    yield from _finished(format, source)
                    continue
            if not line:
                continue
            held = [line]
            del line  # Otherwise the texts of the line would be in memory twice.
            try:
                row = loads(held.pop())
            except JsonError as error:
                if _is_damaged(stream):
                    number -= 1  # The error is reported below, for this line.
                else:
                    yield BadRecord(shard.file, number + 1, str(error))
                continue
            alone = number == 0 and not named_lines and _is_at_end(stream)
            yield from records_of(format, row, source, number, number + 1, "", alone)
        changed = "" if shard.packed else _changed(shard, stream)
    except decode.STREAM_ERRORS as error:
        changed = ""
        yield BadRecord(shard.file, number + 2, decode.stream_reason(error))
    yield from _finished(format, source)
    if changed:
        yield BadRecord(shard.file, 0, changed)


def _changed(shard: Shard, stream: Any) -> str:
    """Return how a file of lines has changed since it was cut into shards; "" if it has not changed."""
    at, size = stream.tell(), os.fstat(stream.fileno()).st_size
    if at < shard.end:
        return f"it has become shorter while it was read: {counted(shard.end - at, 'byte is', 'bytes are')} missing"
    if shard.is_last and size > at:
        return f"it has grown while it was read: the last {counted(size - at, 'byte was', 'bytes were')} not audited"
    return ""


def _rows(shard: Shard, rows: Iterator[tuple[int, Any]]) -> Iterator[Read]:
    """Yield the records of rows that already are objects. ``rows``: (number of the line or 0, row or exception)."""
    format, source, number = shard.row_format, _source(shard), -1
    try:
        for number, (line, row) in enumerate(rows):
            where = "" if line else f"row {number}: "
            if isinstance(row, Exception):
                yield BadRecord(shard.file, line, f"{where}{row}")
            else:
                yield from records_of(format, row, source, number, line, where, False)
    except tables.TableError as error:
        yield BadRecord(shard.file, 0, str(error))
    except OSError as error:
        yield BadRecord(shard.file, 0, f"damaged after row {number}: {error}")
    yield from _finished(format, source)


def _finished(format: Format, source: Source) -> Iterator[Read]:
    """Yield the records of `Format.finish`, at the end of a file."""
    if format.finish is None:
        return
    try:
        yield from _made(format, format.finish(source), source, source.state.get("number", 0), 0, False)
    except _MALFORMED as error:
        yield BadRecord(source.file, 0, f"what was left at the end is not in the form of {format.name}: {error}")


def _is_at_end(stream: Any) -> bool:
    try:
        return not stream.peek(1)
    except decode.STREAM_ERRORS:
        return False


def _is_damaged(stream: Any) -> bool:
    """Return whether the rest of a file is unreadable. The last line that was read may then be cut off."""
    try:
        stream.peek(1)
    except decode.ZIP_ERRORS:
        return True
    return False


def _document(shard: Shard, stream: Any) -> Iterator[Read]:
    data, ended = decode.whole(stream)
    if ended and (shard.container != "document" or len(data) > decode.MAX_DOCUMENT):
        yield BadRecord(shard.file, 0, ended)
        return
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    try:
        if shard.container == "document":
            rows, cut = decode.elements(data)
            ended = ended or cut
        else:
            rows = (tables.yaml_rows if shard.container == "yaml" else tables.xml_rows)(data)
    except (JsonError, tables.TableError) as error:
        yield BadRecord(shard.file, 0, ended or str(error))
        return
    alone = len(rows) == 1 and not data.startswith(b"[")
    del data
    format, source = shard.row_format, _source(shard)
    for number, row in enumerate(rows):
        yield from records_of(format, row, source, number, 0, "" if alone else f"element {number}: ", alone)
    yield from _finished(format, source)
    if ended:
        yield BadRecord(shard.file, 0, ended)


def _parquet(shard: Shard) -> Iterator[Read]:
    format, source = shard.row_format, _source(shard)
    about = (*shard.by, *NAME_KEYS, *GROUP_KEYS)
    rows = parquet.rows(shard.path or shard.file, shard.start, shard.end, format.columns, about)
    number = shard.first - 1
    try:
        for number, row in enumerate(rows, shard.first):
            where = f"row {number}: "
            if isinstance(row, Exception):
                yield BadRecord(shard.file, 0, f"{where}{row}")
            else:
                yield from records_of(format, row, source, number, 0, where, False)
    except OSError as error:
        yield BadRecord(shard.file, 0, f"damaged after row {number}: {error}")
    yield from _finished(format, source)


def _zip(shard: Shard) -> Iterator[Read]:
    try:
        with zipfile.ZipFile(shard.path or shard.file) as archive:
            times = Counter(info.filename for info in archive.infolist() if not info.is_dir())
            names = set(times)
            head: Shard | None = None
            if any(name.startswith("samples/") for name in names):  # The zip is a log of inspect-ai.
                head = _eval_head(shard, archive, names)
                yield FileRead(shard.file, head.described)
                names = {name for name in names if name.startswith("samples/") and name.endswith(".json")}
            n = 0
            for number, name in enumerate(sorted(names)):
                if passed := _why_not(name):
                    yield PassedOver(f"{shard.file}/{name}", passed)
                else:
                    n += 1
                    yield from _member(shard, archive, name, head, number)
                    if times[name] > 1:
                        said = f"the zip has {times[name]} files of this name: only the last was read"
                        yield BadRecord(f"{shard.file}/{name}", 0, said)
            if not n:
                yield BadRecord(shard.file, 0, "no file in this zip has an ending that is read (docs/formats.md)")
    except MissingExtra:
        raise
    except decode.ZIP_ERRORS as error:
        yield BadRecord(shard.file, 0, f"the zip file is damaged or encrypted: {error}")


_MEMBERS = (".json", ".jsonl", ".ndjson", ".txt", ".md", ".csv", ".tsv", ".yaml", ".yml", ".sse", ".traj")


def _why_not(name: str) -> str:
    """Return why a file in a zip is skipped; "" if it is read."""
    if any(part.startswith((".", "__MACOSX")) and part != ".." for part in name.split("/")):
        return "hidden files in a zip"
    if name.lower().endswith(_MEMBERS):
        return ""
    suffix = PurePosixPath(name).suffix
    return f"files in a zip ending in {suffix}" if suffix else "files in a zip without an ending"


def _member(shard: Shard, archive: zipfile.ZipFile, name: str, head: Shard | None, number: int) -> Iterator[Read]:
    """Yield the records of a file in a zip. ``head``: if the zip is a log of inspect-ai, the shard of the log.

    In a log, each file is a sample, and all samples count as one file.
    """
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
        yield FileRead(file, inner.described)
        with decode.member(archive, name) as stream:
            yield from _stream(inner, stream)
    except (UnknownFormatError, NoTextError, JsonError, tables.TableError) as error:
        yield BadRecord(file if head is None else shard.file, 0, str(error) if head is None else f"{name}: {error}")
    except decode.ZIP_ERRORS as error:
        yield BadRecord(file, 0, "it is encrypted" if "is encrypted" in str(error) else f"damaged: {error}")


def _recognised_member(shard: Shard, file: str, first: bytes) -> Shard:
    # The packing "zip" means that `start` and `end` are not used. Both are unknown for a file in a zip.
    inner = replace(shard, file=file, path="", packed="zip", start=0, end=0, container="text", format=TEXT)
    kept, name = container(first), file.lower()
    if shard.format == TEXT:
        return inner
    if shard.format == chat_text.NAME:
        return replace(inner, container="transcript", format=chat_text.NAME)
    if not shard.format and shard.field is None and name.endswith((".txt", ".md")):
        kept = kept_text(first)
        if kept in ("text", "transcript"):
            return replace(inner, container=kept, format=TEXT if kept == "text" else chat_text.NAME)
    if kept is None and name.endswith((".csv", ".tsv")):
        kept = "csv"
    elif kept is None and name.endswith((".yaml", ".yml")):
        kept = "yaml"
    if kept not in ("lines", "events", "document", "csv", "yaml"):
        raise UnknownFormatError("it is not JSON")
    formats = (shard.row_format,) if shard.format or shard.field is not None else ROW_FORMATS
    rows = table_rows(kept, first, file, len(first) < WINDOW)
    return recognised(replace(inner, container=kept), rows, formats)


def _eval_head(shard: Shard, archive: zipfile.ZipFile, names: set[str]) -> Shard:
    """Return the shard of a log of inspect-ai. An unfinished log has only a part of the header."""
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
            shard.file, 0, "a slot contains tokens, not text: give the model that wrote it with --tokenizer MODEL.gguf"
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
    return Source(shard.file, dict(shard.head), shard.by, bool(shard.packed), turns=shard.turns, mixed=shard.detected)


def records_of(
    format: Format, row: Any, source: Source, number: int, line: int, where: str, is_file: bool
) -> Iterator[Read]:
    """Yield the records of a row. ``line``: number of the line, or 0. ``is_file``: whether the row is a whole file."""
    if format.finish is not None:
        source.state["number"] = number
    reason = ""
    try:
        if (yield from _made(format, format.messages(row, source), source, number, line, is_file)):
            return
    except NoTextError as error:
        reason = str(error)
    except _MALFORMED as error:
        if isinstance(row, dict) or format.matches(row):
            what = _said_of(error)
        else:
            what = f"the row is {kind_of(row)}, not an object"
        reason = f"not in the form of {format.name}: {what}"
    other = _other_format(format, row) if source.mixed else None
    if other is not None and other.cut and other.finish is None:
        if other not in source.state:
            source.state[other] = replace(source, head=_head(other, source.file, row), state={}, mixed=False)
        yield from records_of(other, row, source.state[other], number, line, where, is_file)
        return
    if other is not None:
        reason = f"not in the form of {format.name}: its form is {other.name}, whose rows need a file of their own"
    if reason:
        yield BadRecord(source.file, line, where + reason)


def _head(format: Format, file: str, row: Any) -> dict[str, str]:
    try:
        return format.head(file, row)
    except _MALFORMED:
        return {}


def _other_format(format: Format, row: Any) -> Format | None:
    """Return a row's format if it differs from ``format``, the format of the file. None if it is equal or unknown."""
    if format.matches(row):
        return None
    for other in ROW_FORMATS:
        if not other.whole and other.matches(row):
            return other if other.is_certain is None or other.is_certain(row) else None
    return None


def _said_of(error: Exception) -> str:
    """Return what is wrong with a row, for users who do not know Python."""
    if isinstance(error, KeyError):
        return f"there is no {error}"
    if isinstance(error, IndexError):
        return "a list in it is too short"
    of_python = isinstance(error, AttributeError) or (isinstance(error, TypeError) and "' object " in str(error))
    return "a value in it has the wrong type" if of_python else str(error)


def _made(
    format: Format, messages: Iterable[Message], source: Source, number: int, line: int, is_file: bool
) -> Generator[Record, None, bool]:
    """Yield messages as records; return whether there was any message."""
    some = False
    seen: dict[str, int] = source.state.setdefault("seen", {}) if format.session else {}
    joined = format.finish is not None
    for message in messages:
        some = True
        silent = message.calls is not None and message.answer is None and message.reasoning is None
        if silent and not source.turns:
            continue
        n = number if message.number is None or not (is_file or joined) else message.number
        if joined and line:
            line = n + 1
        id = str(n) if message.id is None else message.id
        at = 0 if source.packed else line
        if silent:
            yield _turn(Record(source.file, n, id, (), message.groups, at), message, format, number)
            continue
        count = seen[id] = seen.get(id, 0) + 1
        record = _record(source.file, n, id if count == 1 else f"{id}/{count}", message, at)
        yield _turn(record, message, format, number) if source.turns and message.is_turn else record
    return some


def _turn(record: Record, message: Message, format: Format, number: int) -> Record:
    """Return a record as a turn of its conversation (`Record.turn_of`).

    In a format with `Format.session`, the message names the conversation. Otherwise each row is a conversation.
    """
    of = message.conversation or message.id or str(record.number)
    return replace(record, turn_of=of if format.session else f"{number}: {message.id}", calls=calls_of(message.calls))


def _record(file: str, number: int, id: str, message: Message, line: int = 0) -> Record:
    fields, named = fields_of(message.answer, message.reasoning), message.id is not None
    conversation = message.conversation or message.id or str(number)
    return Record(
        file,
        number,
        id,
        fields,
        message.groups,
        line,
        named,
        "" if conversation == id else conversation,
        counterpart=message.counterpart or "",
    )
