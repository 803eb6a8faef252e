"""Reads the reference texts of `cost`: plain files of any kind, and answers in transcripts, tasks and conversations.

Files are read in sequence. A file or line that cannot be read becomes a `BadFile`, and reading continues.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..auditing.formats import FORMATS, ROW_FORMATS
from ..auditing.formats.plain_text import message
from ..auditing.reading import decode
from ..auditing.reading.read import read
from ..auditing.reading.shard import find
from ..auditing.reading.sniff import UnknownFormatError, choose
from ..auditing.records import BadRecord, Record
from ..errors import ArgumentError, LzsError
from .right_texts import ALL, SETS, set_texts
from .tasks import task_of

if TYPE_CHECKING:
    from ..llama.model import Messages

_LINES = (".jsonl", ".ndjson")
_CONTAINERS = (".parquet", ".zip", ".eval")  # these files hold transcripts, and are read as `lzs audit` reads them
_PACKED = (".gz", ".zst")
_ROWS = 5  # the first 5 rows of a JSON Lines file decide how the file is read
_NO_ENDING = "no ending"


@dataclass(frozen=True)
class Part:
    """A text to score. ``asked``: the prompt before ``text``, as text or messages; None if it is unknown.

    ``reasoning``: the model's reasoning before ``text``, if a transcript stores it separately; it is scored, too.
    """

    text: str
    asked: "str | Messages | None" = None
    reasoning: str = ""


@dataclass(frozen=True)
class RightText:
    """A reference text: a file, a row of JSON Lines, or a whole conversation. It is one cluster in the statistics.

    ``name``: the file's name, with the line or id of a row; unique within one call of `read_texts`. ``kind``: the group
    of the text in the figures.
    """

    name: str
    kind: str
    parts: tuple[Part, ...]

    @property
    def digest(self) -> str:
        """A hash of everything that is decoded and scored."""
        whole = repr([(part.asked, part.reasoning, part.text) for part in self.parts])
        return blake2b(whole.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


@dataclass(frozen=True)
class BadFile:
    """A file or line that could not be read or scored. ``line``: from 1; 0 is the whole file."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}" if self.line else f"{self.file}: {self.reason}"


def read_texts(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    *,
    sets: str | Sequence[str] = (),
    format: str | None = None,
) -> tuple[list[RightText], list[BadFile]]:
    """Return the texts of files, folders (with all folders inside) and sets, and the files that could not be read.

    A file of JSON Lines (.jsonl, .ndjson) holds a text in each row if `lzs audit` knows the rows, or if they are tasks
    with answers. A Parquet file, a .zip and an .eval also hold a text in each row. Any other file, even a .json, is one
    text, unchanged. Files may be compressed (.gz, .zst). In folders, hidden files and anything that is not a regular
    file are skipped. ``format``: one of the formats of `lzs audit`, in which every file is read.

    If the row of a text has a ``task`` or ``kind``, this is the kind of the text. Otherwise the kind is the name of a
    folder. If you give several paths, this is the given folder. If you give one path, it is the folder directly inside
    the given folder. If there is no such folder, the kind is the file's suffix.

    ``sets``: names of `lzsampler.evaluation.right_texts.SETS`, or "all". A set is read like a folder with the name of
    the set, which has a folder for each kind of text.

    ValueError for an unknown format or set.
    """
    if format is not None and format not in FORMATS:
        raise ArgumentError(f"unknown format {format!r}: choose one of {', '.join(FORMATS)}")
    given = [os.fspath(p) for p in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    chosen = _chosen([sets] if isinstance(sets, str) else sets)
    alone = len(given) + len(chosen) == 1
    texts: dict[str, RightText] = {}
    bad: list[BadFile] = []
    seen: set[str] = set()
    for top in given:
        for path, kind in _files(top, bad, alone=alone):
            if (real := os.path.realpath(path)) in seen:
                continue
            seen.add(real)
            try:
                for found in _texts(path, kind, format):
                    if isinstance(found, BadFile):
                        bad.append(found)
                    elif not any(part.text.strip() for part in found.parts):
                        bad.append(BadFile(found.name, 0, "it is empty"))
                    else:
                        texts[_unused(found.name, texts)] = found
            except LzsError as error:  # a library is missing, or the file is too large
                bad.append(BadFile(_printable(path), 0, str(error)))
    for name in chosen:
        for number, one in enumerate(set_texts(name), 1):
            asked: Messages | None = [{"role": "user", "content": one.asked}] if one.asked else None
            unused = _unused(f"{name}/{one.kind}/{number}", texts)
            texts[unused] = RightText(unused, one.kind if alone else name, (Part(one.text, asked),))
    return [text if text.name == name else RightText(name, text.kind, text.parts) for name, text in texts.items()], bad


def _chosen(names: Sequence[str]) -> list[str]:
    """Return each named set once. ValueError for an unknown name."""
    unknown = [name for name in names if name not in (*SETS, ALL)]
    if unknown:
        raise ArgumentError(f"unknown set of texts {unknown[0]!r}: choose one of {', '.join((*SETS, ALL))}")
    return list(SETS) if ALL in names else list(dict.fromkeys(names))


def _unused(name: str, taken: Mapping[str, object]) -> str:
    """Return a name that no other text has, because several rows may have the same id."""
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name}/{number}"
    return made


def _files(top: str, bad: list[BadFile], *, alone: bool) -> Iterator[tuple[str, str]]:
    """Yield the files below a path, sorted by name, each with its folder as the kind; "" if there is no folder.

    Folders that cannot be read are added to ``bad``.
    """

    def refuse(error: OSError) -> None:
        bad.append(BadFile(_printable(str(error.filename)), 0, f"the folder cannot be read: {error.strerror}"))

    if not os.path.isdir(top):
        yield top, ""
        return
    own = "" if alone else os.path.basename(os.path.abspath(top))
    for folder, inner, names in os.walk(top, onerror=refuse):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        below = os.path.relpath(folder, top)
        kind = own or ("" if below == os.curdir else Path(below).parts[0])
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.startswith(".") and os.path.isfile(path):
                yield path, kind


def _printable(path: str) -> str:
    """Return a path as text that every encoding can represent."""
    return os.fsencode(path).decode("utf-8", "replace")


def _texts(path: str, kind: str, format: str | None) -> Iterator[RightText | BadFile]:
    name = _printable(path)
    inner = next((name.removesuffix(end) for end in _PACKED if name.endswith(end)), name)
    kind = kind or Path(inner).suffix.lower().lstrip(".") or _NO_ENDING
    if format is not None or inner.lower().endswith(_CONTAINERS):
        yield from _transcripts(path, kind, format)
        return
    rows = inner.lower().endswith(_LINES)
    try:
        if not os.path.isfile(path) and os.path.exists(path):
            raise OSError(None, "not a file or folder")
        with open(path, "rb") as file:
            packed = decode.compression(file.read(4))
        if packed == "utf-16" and not rows:  # read the raw bytes, because the stream replaces broken bytes by U+FFFD
            packed = ""
        with decode.opened(path, packed) as stream:
            data, ended = decode.whole(stream)
    except decode.STREAM_ERRORS as error:
        yield BadFile(name, 0, decode.stream_reason(error))
        return
    if ended:
        yield BadFile(name, 0, ended)
        return
    if rows:
        held = _what(data)
        if held == "transcripts":
            yield from _transcripts(path, kind, None)
            return
        if held:
            yield from _rows(name, kind, data)
            return
    reason = _not_text(data)
    yield BadFile(name, 0, reason) if reason else RightText(name, kind, (Part(message(data).answer or ""),))


def _not_text(data: bytes) -> str:
    """Return why bytes are not a text; "" if they are a text."""
    if not data.strip():
        return "it is empty"
    encoding = "UTF-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "UTF-8"
    if encoding == "UTF-8" and b"\0" in data:  # in UTF-16 zero bytes are normal
        return f"it is not a text: byte {data.index(0)} is zero"
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        return f"it is not {encoding} (byte {error.start}): save it as UTF-8"
    return ""


# ---- rows of JSON Lines ----


def _what(data: bytes) -> str:
    """Return "rows" if the first rows are conversations or tasks, "transcripts" if the audit knows them, else ""."""
    rows: list[Any] = []
    for line in data.split(b"\n", 4 * _ROWS)[: 4 * _ROWS]:
        if line.strip() and len(rows) < _ROWS:
            try:
                rows.append(decode.loads(line))
            except decode.JsonError:
                continue
    try:
        if any(_parts(row) for row in rows):
            return "rows"
    except ValueError:  # a malformed task, which `_rows` reports
        return "rows"
    try:
        choose(rows, ROW_FORMATS)
    except UnknownFormatError:
        return ""
    return "transcripts"


def _rows(name: str, kind: str, data: bytes) -> Iterator[RightText | BadFile]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = decode.loads(line)
            parts = _parts(row)
        except (decode.JsonError, ValueError) as error:
            yield BadFile(name, number, " ".join(str(error).split()))
            continue
        if not parts:
            yield BadFile(name, number, "it has neither an answer nor a message of the assistant")
            continue
        own = next((row[key] for key in ("task", "kind") if isinstance(row.get(key), str) and row[key]), kind)
        yield RightText(f"{name}:{number}", own, parts)


def _parts(row: Any) -> tuple[Part, ...]:
    """Return the scored parts of a row: each message of the assistant, or the answer to a question; () if none.

    ValueError for a malformed task.
    """
    if not isinstance(row, dict):
        return ()
    messages = row.get("messages")
    if isinstance(messages, list) and all(_is_message(each) for each in messages):
        parts = tuple(
            Part(each["content"], _plain(messages[:i]), _reasoning(each))
            for i, each in enumerate(messages)
            if each["role"] == "assistant" and i and each["content"].strip()
        )
        if parts:
            return parts
    answer = row.get("answer", row.get("Answer"))
    if isinstance(answer, bool) or not isinstance(answer, str | int | float) or not str(answer).strip():
        return ()
    if not {"prompt", "messages", "question", "problem", "Problem"} & row.keys():
        return ()
    asked = {key: value for key, value in row.items() if key not in ("answer", "Answer", "compare", "task", "kind")}
    return (Part(str(answer), task_of({**asked, "answer": "0"}, "1").prompt),)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and isinstance(value.get("content"), str)


def _plain(messages: Sequence[Mapping[str, Any]]) -> "Messages":
    return [{"role": each["role"], "content": each["content"]} for each in messages]


def _reasoning(each: Mapping[str, Any]) -> str:
    found = each.get("reasoning_content")
    return found if isinstance(found, str) else ""


def _transcripts(path: str, kind: str, format: str | None) -> Iterator[RightText | BadFile]:
    """Yield the answers that `lzs audit` finds in a file. Their prompts are unknown, so answers have no context."""
    shards, bad = find([path], format=format)
    yield from (_bad(each) for each in bad)
    for shard in shards:
        for found in read(shard):
            if isinstance(found, BadRecord):
                yield _bad(found)
            elif isinstance(found, Record) and (text := _text(found)):
                place = found.line or found.id
                yield RightText(f"{found.file}:{place}", found.groups.get("task", kind), (Part(text),))


def _bad(found: BadRecord) -> BadFile:
    return BadFile(found.file, found.line, found.reason)


def _text(record: Record) -> str:
    return "\n\n".join(field.text for field in record.fields if field.text.strip())
