"""Hostile files: damaged, swollen, in the wrong encoding, of the wrong kind; each with what an audit has to say of it.

`cases` makes 200 of them and more, each with a reason for what is not read, as a regular expression, and the number of
records that are read all the same.
"""

import gzip
import io
import json
import os
import socket
import sqlite3
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transcripts import said

Make = Callable[[Path], None]
DEEP = 1_000_000  # arrays inside each other
LIMIT = 6 << 20  # bytes of a line and of a document in the tests: hundreds of megabytes would take too long
BOMB = LIMIT + (1 << 19)


@dataclass(frozen=True)
class Hostile:
    """A file: its ``name``, what writes it, a ``reason`` (regular expression; "": none) and its good ``records``."""

    name: str
    make: Make
    reason: str
    records: int = 0


def row(number: int) -> dict[str, Any]:
    return {"id": f"r{number}", "messages": [{"role": "user", "content": "ö?"}, said(f"Answer ä {number}.")]}


def lines(n: int = 3) -> bytes:
    return b"".join(json.dumps(row(i), ensure_ascii=False).encode() + b"\n" for i in range(n))


def array(n: int = 3) -> bytes:
    return json.dumps([row(i) for i in range(n)], ensure_ascii=False).encode()


def zstd(data: bytes) -> bytes:
    from lzsampler.auditing.reading.decode import ZSTD

    packed: bytes = ZSTD.compress(data)
    return packed


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def file(name: str, data: bytes, reason: str, records: int = 0) -> Hostile:
    def make(path: Path) -> None:
        path.write_bytes(data)

    return Hostile(name, make, reason, records)


def packed(name: str, data: bytes, reason: str, records: int = 0) -> Iterator[Hostile]:
    """The same bytes as they are, in gzip, in zstd, and in a zip."""
    stem, end = name.rsplit(".", 1)
    yield file(name, data, reason, records)
    yield file(f"{stem}-packed.{end}.gz", gzip.compress(data), reason, records)
    yield file(f"{stem}-packed.{end}.zst", zstd(data), reason, records)
    yield file(f"{stem}-{end}-packed.zip", zipped({f"inner.{end}": data}), reason, records)


def cases() -> list[Hostile]:
    """All of them; names do not occur twice."""
    kinds = (
        cut_rows, cut_arrays, cut_streams, cut_files, deep, bombs, encodings, kinds_of_files, rows_of_other_forms,
        zips, tables, databases, xml_and_yaml, binaries, streams_of_events,
    )  # fmt: skip
    return [case for kind in kinds for case in kind()]


# -- cut off --

_CUTS = {  # what a row ends in
    "in-a-text": b'{"id": "x", "messages": [{"role": "assistant", "content": "so it',
    "in-a-key": b'{"id": "x", "mess',
    "after-a-key": b'{"id": "x", "messages"',
    "after-a-colon": b'{"id": "x", "messages":',
    "after-a-comma": b'{"id": "x",',
    "in-an-escape": b'{"id": "x", "messages": [{"role": "assistant", "content": "so\\u00',
    "after-a-backslash": b'{"id": "x", "messages": [{"role": "assistant", "content": "so\\',
    "in-a-character": b'{"id": "x", "messages": [{"role": "assistant", "content": "so \xe2\x82',
    "in-a-word": b'{"id": "x", "messages": nul',
    "in-a-number": b'{"id": 1e',
}


def cut_rows() -> Iterator[Hostile]:
    for where, end in _CUTS.items():
        yield from packed(f"row-cut-{where}.jsonl", lines() + end, r"not JSON: .*", 3)


def cut_arrays() -> Iterator[Hostile]:
    for where, end in _CUTS.items():
        data = array().rstrip(b"]") + b", " + end
        yield from packed(f"array-cut-{where}.json", data, "the 3 elements before it were read", 3)


def cut_streams() -> Iterator[Hostile]:
    """Compressed files, cut at several places: whatever comes out of them is read."""
    data = lines(2000)
    for name, pack in (("gz", gzip.compress), ("zst", zstd)):
        whole = pack(data)
        for part, share in (("header", 0.0), ("tenth", 0.1), ("half", 0.5), ("end", 1.0)):
            size = 6 if share == 0 else len(whole) - 5 if share == 1 else int(share * len(whole))
            for end in ("jsonl", "json"):
                reason = "the compressed stream is (cut off|damaged) here|it is blank|not JSON"
                yield file(f"stream-cut-{part}.{end}.{name}", whole[:size], reason, -1)
    flipped = bytearray(gzip.compress(data))
    flipped[-6] ^= 1
    yield file("wrong-checksum.jsonl.gz", bytes(flipped), "the compressed stream is damaged here: CRC", -1)
    flipped[len(flipped) // 2] ^= 1
    yield file("flipped-bit.jsonl.gz", bytes(flipped), "the compressed stream is damaged here", -1)
    yield file(
        "rest-after-the-end.jsonl.gz", gzip.compress(lines()) + b"garbage", "the compressed stream is damaged", 3
    )
    yield file("two-members.jsonl.gz", gzip.compress(lines()) + gzip.compress(lines())[:-9], "is cut off here", -1)


def cut_files() -> Iterator[Hostile]:
    for size in (4, 12, 40):
        yield file(f"cut-{size}.parquet", (b"PAR1" + bytes(60))[:size], "it cannot be read|damaged|Parquet")
        yield file(
            f"cut-{size}.sqlite", (b"SQLite format 3\0" + bytes(60))[: max(size, 16)], "it cannot be read|not known"
        )
        yield file(f"cut-{size}.arrow", (b"ARROW1\0\0" + bytes(60))[: max(size, 8)], "it cannot be read|damaged")
        yield file(f"cut-{size}.zip", zipped({"a.jsonl": lines()})[: max(size, 8)], "the zip file is damaged")
        yield file(f"cut-{size}.bin", (b"qsgg" + bytes(60))[:size], "a slot")
    whole = zipped({"a.jsonl": lines(), "b.jsonl": lines()})
    yield file("without-its-directory.zip", whole[:-60], "the zip file is damaged")
    yield file("without-its-directory.eval", whole[:-60], "the zip file is damaged")


# -- deep and large --


def deep() -> Iterator[Hostile]:
    arrays, objects = b"[" * DEEP, b'{"a":' * DEEP
    mixed = b'[{"a":' * (DEEP // 2)
    for name, nested in (("arrays", arrays), ("objects", objects), ("both", mixed)):
        yield from packed(
            f"deep-{name}.jsonl", lines() + b'{"messages": ' + nested + b"\n" + lines(1), "not (read|JSON)", 4
        )
        yield from packed(f"deep-{name}.json", nested, "it is nested too deeply")
    closed = b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    yield from packed("deep-closed.jsonl", lines() + closed, "not read: it is nested too deeply", 3)
    yield file("deep-cell.csv", b"id,response\n1,fine\n2," + b"[" * 100_000 + b"\n", "", 2)
    yield file("deep.yaml", b"a: " + b"[" * 2000, "not YAML")
    yield file("deep.xml", b"<a>" * 20_000, "not XML")


def bombs() -> Iterator[Hostile]:
    """What unpacks to more than the limits, and what is large within them."""
    text = b"all work and no play " * (BOMB // 21)
    row_of = b'{"id": "big", "response": "' + text + b'"}\n'
    good = b'{"id": "good", "response": "It is so."}\n'
    yield from packed("bomb-line.jsonl", good + row_of + good, "the line is longer than 6 MiB", 2)
    yield from packed("bomb-zeros.jsonl", good + bytes(BOMB) + b"\n" + good, "the line is longer than 6 MiB", 2)
    yield from packed("bomb-array.json", b"[" + row_of + b"]", "it is longer than")
    yield from packed("bomb-page.txt", text, "it is longer than", -1)
    yield file("bomb-twice.jsonl.gz", gzip.compress(gzip.compress(bytes(BOMB))), "not known|not JSON|not a JSON")
    yield file("bomb-inside.zip", zipped({"inner.zip": zipped({"a.jsonl": row_of})}), "no file in this zip")
    number = b'{"id": 1, "response": "a", "n": ' + b"9" * 100_000 + b"}\n"
    yield from packed("bomb-number.jsonl", lines() + number, "not read: it has a number of thousands of digits", 3)
    keys = b'{"id": "k", ' + b",".join(b'"k%d": 1' % i for i in range(100_000)) + b', "response": "fine"}\n'
    yield file("bomb-keys.jsonl", good + keys, "", 2)
    yield file("bomb-key.jsonl", good + b'{"' + b"k" * 500_000 + b'": 1, "response": "fine"}\n', "", 2)
    yield file("bomb-spaces.jsonl", good + b" " * 900_000 + b"\n" + good, "", 2)
    yield file("bomb-lines.jsonl", good + b"\n" * 500_000 + good, "", 2)
    yield file("bomb-backslashes.jsonl", b'{"response": "' + b"\\\\" * 400_000 + b'"}\n' + good, "", 2)
    yield file("bomb-escapes.jsonl", b'{"response": "' + b'\\"' * 400_000 + b"\n" + good, "not JSON", 1)


# -- encodings --


def encodings() -> Iterator[Hostile]:
    told = lines().decode()
    yield file("utf-16.jsonl", told.encode("utf-16"), "", 3)
    yield file("utf-16-big.jsonl", b"\xfe\xff" + told.encode("utf-16-be"), "", 3)
    yield file("utf-16-odd.jsonl", told.encode("utf-16")[:-1], "not JSON", 2)
    yield file("utf-16-inside.jsonl.gz", gzip.compress(told.encode("utf-16")), "UTF-16")
    yield file("utf-16-inside.zip", zipped({"a.jsonl": told.encode("utf-16")}), "not JSON")
    for name in ("utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "cp037"):
        yield file(f"{name}-unmarked.jsonl", told.encode(name), "not JSON|not a JSON|not known|UTF", -1)
    for name in ("latin-1", "cp1252", "shift-jis", "gb18030", "utf-8-sig", "mac-roman"):
        mixed = lines(2) + told.replace("ä", "a").replace("ö", "o").encode(name) + lines(1)
        yield from packed(f"mixed-{name}.jsonl", mixed, "", 6)
    yield file("utf-7.jsonl", told.encode("utf-7"), "", 3)
    latin = told.encode("latin-1")
    yield file("all-latin.jsonl", latin, "", 3)
    yield file("utf-16-in-the-middle.jsonl", lines(2) + told.encode("utf-16-le") + b"\n" + lines(1), "not JSON", 3)
    for name, odd in (
        ("overlong", b"\xc0\xaf"), ("surrogate", b"\xed\xa0\x80"), ("beyond", b"\xf5\x80\x80\x80"), ("alone", b"\x80"),
        ("nul", b"\0"), ("control", b"\x01\x1b[2J"), ("ff", b"\xff\xfe"), ("cut", b"\xe2\x82"),
    ):  # fmt: skip
        line = b'{"id": "o", "response": "a' + odd + b'b"}\n'
        yield file(f"bytes-{name}.jsonl", line + line, "", 2)
        yield file(f"bytes-{name}.txt", b"a" + odd + b"b", "", 1)
    yield file("escaped-halves.jsonl", rb'{"response": "\ud800 and \udc00\ud800"}' + b"\n", "", 1)


# -- what is not a file of rows --


def kinds_of_files() -> Iterator[Hostile]:
    yield Hostile("pipe.jsonl", lambda path: os.mkfifo(path), "it is a pipe")
    yield Hostile("socket.jsonl", _socket, "it is a socket")
    yield Hostile("device.jsonl", lambda path: path.symlink_to("/dev/zero"), "it is a device")
    yield Hostile("full.json", lambda path: path.symlink_to("/dev/full"), "it is a device")
    yield Hostile("link-to-nothing.jsonl", lambda path: path.symlink_to("nowhere.jsonl"), "does not exist")
    yield Hostile("link-to-itself.jsonl", lambda path: path.symlink_to(path.name), "the link leads back to itself")
    yield Hostile("link-there.jsonl", _circle, "the link leads back to itself")
    yield Hostile("folder.jsonl", _folder_with_a_way_back, "a link leads back to a folder", 3)
    yield Hostile("empty-folder.jsonl", lambda path: path.mkdir(), "no supported files in this folder")
    yield file("empty.jsonl", b"", "it is empty")
    yield file("empty.json.gz", gzip.compress(b""), "it is blank")
    yield file("empty.parquet", b"", "it is empty")
    for name, blank in (
        ("spaces", b"  \n \n"),
        ("mark", b"\xef\xbb\xbf"),
        ("lines", b"\n" * 1000),
        ("zeros", bytes(5000)),
    ):
        yield file(f"blank-{name}.jsonl", blank, "it is blank|not a JSON|not JSON|no rows|not known")
        yield file(f"blank-{name}.json", blank, "it is blank|not a JSON|not JSON|no rows|not known")
    yield Hostile("holes.jsonl", _holes, "the line is longer than 6 MiB", 2)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket has room for 100 characters only
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _circle(path: Path) -> None:
    other = path.with_name("link-back.other")
    other.symlink_to(path.name)
    path.symlink_to(other.name)


def _folder_with_a_way_back(path: Path) -> None:
    path.mkdir()
    (path / "good.jsonl").write_bytes(lines())
    (path / "back").symlink_to(".")


def _holes(path: Path) -> None:
    """A file of 64 MiB of zeros that takes no place on the disk, with a row at each end."""
    with path.open("wb") as made:
        made.write(lines(1))
        made.seek(64 << 20, os.SEEK_CUR)
        made.write(b"\n" + lines(1))


# -- JSON of another form --


def rows_of_other_forms() -> Iterator[Hostile]:
    odd: dict[str, Any] = {
        "null": None, "number": 5, "text": "a", "list": [1], "empty": {}, "messages-null": {"messages": None},
        "messages-number": {"messages": 3}, "messages-text": {"messages": "hello"}, "messages-empty": {"messages": []},
        "messages-of-numbers": {"messages": [1, 2]}, "messages-of-nulls": {"messages": [None]},
        "no-role": {"messages": [{"content": "a"}]}, "role-number": {"messages": [{"role": 5, "content": "a"}]},
        "role-list": {"messages": [{"role": ["assistant"], "content": "a"}]},
        "content-number": {"messages": [{"role": "assistant", "content": 5}]},
        "content-true": {"messages": [{"role": "assistant", "content": True}]},
        "parts-of-numbers": {"messages": [{"role": "assistant", "content": [1]}]},
        "parts-of-nulls": {"messages": [{"role": "assistant", "content": [None]}]},
        "users-only": {"messages": [{"role": "user", "content": "a"}]},
        "failed": {"error": {"message": "timeout"}}, "other": {"x": 1},
    }  # fmt: skip
    for name, value in odd.items():
        yield file(
            f"row-{name}.jsonl",
            lines() + json.dumps(value).encode() + b"\n" + lines(2),
            "^(not in the form of openai-chat: (?!.*object has no)|the conv)",
            5,
        )
    yield file("row-twice.jsonl", lines() + b'{"messages": 1, "messages": 2}\n', ".", 3)
    yield file("row-nan.jsonl", lines() + b'{"messages": NaN}\n', ".", 3)
    yield file("row-commented.jsonl", lines() + b'// a comment\n{"a": 1,}\n', "not JSON", 3)
    yield file("row-single-quotes.jsonl", lines() + b"{'messages': []}\n", "not JSON", 3)


# -- zips --


def zips() -> Iterator[Hostile]:
    good = {"good.jsonl": lines()}
    whole = zipped({**good, "bad.jsonl": lines(500)})
    for name, at, value in (("method", 10, 77), ("flags", 8, 1)):
        data = bytearray(whole)
        start = data.index(b"PK\x03\x04", 4)
        entry = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 4)
        struct.pack_into("<H", data, start + at - 2, value)
        struct.pack_into("<H", data, entry + at, value)
        yield file(f"zip-{name}.zip", bytes(data), "damaged: That compression method|it is encrypted", 3)
    data = bytearray(zipped({**good, "bad.jsonl": lines(50)}, zipfile.ZIP_STORED))
    data[data.index(b"Answer", data.index(b"bad.jsonl"))] ^= 1
    yield file("zip-checksum.zip", bytes(data), "damaged: Bad CRC-32", -1)
    data = bytearray(whole)
    data[data.index(b"bad.jsonl")] = ord("x")
    yield file("zip-names.zip", bytes(data), "damaged: File name in directory", 3)
    yield file("zip-empty.zip", zipped({}), "no file in this zip")
    yield file("zip-of-pictures.zip", zipped({"a.png": b"x"}), "no file in this zip")
    yield file("zip-upwards.zip", zipped({"../../up.jsonl": lines(), "/abs.jsonl": lines()}), "", 6)
    yield file("zip-blank.zip", zipped({**good, "blank.json": b" "}), "blank.json|it is blank|not JSON", 3)
    yield file("zip-other.zip", zipped({**good, "other.json": b'{"x": 1}'}), "the format is not known", 3)
    yield file("zip-rest.zip", whole + b"rest" * 10, "", 503)
    yield file("zip-garbage.zip", b"PK\x03\x04" + bytes(range(256)), "the zip file is damaged")
    yield file("zip-samples.eval", zipped({"header.json": b"{", "samples/1.json": b"{"}), ".")


# -- tables and databases --


def tables() -> Iterator[Hostile]:
    head = b"id,prompt,response\n1,p,It is so.\n"
    yield file("nul.csv", head + b"2,p,a\0b\n", "", -1)
    yield file("quote.csv", head + b'2,p,"never closed\n3,p,x\n', "the quote that opens here is not closed", -1)
    yield file("ragged.csv", head + b"2\n3,p,fine,more,and,more\n4,p,fine\n", "more cells than the header", 2)
    yield file("header-only.csv", b"id,prompt,response\n", "no rows|not known|contains no text")
    yield file("no-header.csv", b"\n\n\n", "it has no header|blank|no rows")
    yield file("twice.csv", b"response,response\na,b\n", "", 1)
    yield file("columns.csv", b",".join(b"c%d" % i for i in range(20_000)) + b"\n", "not known|no rows")
    yield file("other.csv", b"a,b\n1,2\n", "not known")
    yield file("packed.csv.gz", gzip.compress(head + b"2,p,x\n")[:-9], "cut off here", -1)


def databases() -> Iterator[Hostile]:
    yield file("random.db", b"SQLite format 3\0" + bytes(range(256)) * 20, "it cannot be read: file is not a database")
    yield Hostile("other.db", lambda path: _database(path, "create table t (a)"), "not known \\(its tables: t\\)")
    yield Hostile("none.db", lambda path: _database(path, "create table t (a); drop table t"), "its tables: none")
    yield Hostile("blobs.db", _blobs, ".")
    yield Hostile("torn.db", _torn, ".", -1)
    cell = "hex(zeroblob(400000000))"
    yield Hostile(
        "bomb-cell.db",
        lambda path: _database(path, f"create table a (response, prompt as ({cell})); insert into a values ('x')"),
        "it cannot be read: string or blob too big",
    )
    yield file("db.db.gz", gzip.compress(b"SQLite format 3\0" + bytes(100)), "it is compressed: unpack it first")


def _database(path: Path, script: str) -> None:
    database = sqlite3.connect(path)
    database.executescript(script)
    database.commit()
    database.close()


def _blobs(path: Path) -> None:
    _database(path, "create table a (id, response); insert into a values (1, x'00ff'), (2, null), (3, 5)")


def _torn(path: Path) -> None:
    values = ",".join(f"({i}, 'p', '{'It is so. ' * 40}')" for i in range(300))
    _database(path, f"create table a (id, prompt, response); insert into a values {values}")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 3000] = b"\xaa" * 3000
    path.write_bytes(data)


# -- XML and YAML --


def xml_and_yaml() -> Iterator[Hostile]:
    laughs = b'<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "' + b"&b;" * 99 + b'">]><a>&c;</a>'
    yield file("laughs.xml", laughs, "a document type, which is not read")
    yield file("outside.xml", b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "document type")
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        yield file(f"laughs-{encoding}.xml", laughs.decode().encode(encoding), "a document type|not a JSON|not known")
    yield file("encoding.xml", b'<?xml version="1.0" encoding="x"?><a/>', "not XML")
    yield file("open.xml", b"<a><b>", "not XML")
    yield file("text.xml", b"just words", "not XML")
    yield file("other.xml", b"<a><b>1</b><c>2</c></a>", "not known")
    yield file("nul.xml", b"<a>\0</a>", "not XML")
    anchors = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (i, i, b",".join([b"*%c" % (i - 1)] * 9)) for i in range(ord("b"), ord("j"))
    )
    yield file("laughs.yaml", anchors, "the aliases of its YAML stand for too much")
    merged = b"a: &a {k: 1}\n" + b"".join(
        b"%c: &%c {<<: [%s]}\n" % (i, i, b",".join([b"*%c" % (i - 1)] * 9)) for i in range(ord("b"), ord("m"))
    )
    yield file("merged.yaml", merged, "the aliases of its YAML stand for too much")
    answers = b"- &a {prompt: p, response: " + b"so it is " * 20_000 + b"}\n" + b"- *a\n" * 20_000
    yield file("long-laughs.yaml", answers, "the aliases of its YAML stand for too much")
    yield file("itself.yaml", b"&a [*a, *a]", "contains itself")
    for name, value in (("bool", "maybe"), ("timestamp", "x"), ("int", "''"), ("float", "''")):
        yield file(f"no-{name}.yaml", f"a: !!{name} {value}\n".encode(), "not YAML")
    yield file("minutes.yaml", b"a: " + b"1:" * 2000 + b"1.5", "not YAML|not known")
    yield file("digits.yaml", b"a: " + b"1:" * 50_000 + b"1", "a number of thousands of digits")
    yield file("aliases.yaml", b"- &a {prompt: p, response: 'It is so.'}\n" + b"- *a\n" * 2000, "", 2001)
    yield file("object.yaml", b"!!python/object/apply:os.system ['true']\n", "not YAML")
    yield file("tabs.yaml", b"a:\n\t- b\n", "not YAML")
    yield file("anchor.yaml", b"a: *missing\n", "not YAML")
    yield file("second.yaml", b"response: fine\nprompt: p\n---\na: [\n", "not YAML")
    yield file("other.yaml", b"a: 1\n", "not known")
    yield file("dates.yaml", b"a: 2020-99-99\n? [1, 2]\n: 3\n", "not YAML|not known")


# -- binaries --


def binaries() -> Iterator[Hostile]:
    noise = bytes((i * i * 7 + i) % 251 for i in range(4000))
    for end in ("jsonl", "json", "csv", "yaml", "xml", "parquet", "arrow", "zip", "eval", "db"):
        reason = "not|damaged|cannot|blank|no rows|no objects|too long"
        yield file(f"noise.{end}", noise, reason)
        yield file(f"picture.{end}", b"\x89PNG\r\n\x1a\n" + noise, reason)
    yield file("noise.jsonl.gz", b"\x1f\x8b\x08" + noise, "the compressed stream is damaged here|is cut off")
    yield file(
        "noise.jsonl.zst", b"\x28\xb5\x2f\xfd" + noise, "the compressed stream is damaged here|is cut off|window"
    )
    yield file("noise.parquet.gz", gzip.compress(b"PAR1" + noise), "not|damaged|cannot")
    yield file("page.html", b"<!doctype html><p>hello", "HTML|files ending in .html")


# -- events --


def streams_of_events() -> Iterator[Hostile]:
    chunk = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "so"}}]}
    event = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    yield file("cut.sse", 3 * event + event[:40], "not JSON", 1)
    yield file("broken.sse", event + b"data: {broken}\n\n" + event + b"data: [DONE]\n\n", "not JSON", 1)
    yield file("only-done.sse", b"data: [DONE]\n\n", "not|no rows|contains no text|blank")
    yield file("failed.sse", event + b'data: {"error": {"message": "overloaded"}}\n\n' + event, ".", 1)
    yield file("other.sse", b'data: {"x": 1}\n\n', "not known")
