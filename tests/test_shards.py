"""Files to shards: cuts, folders, packed files, Parquet, slots, and that no bytes of any kind raise."""

import gzip
import io
import json
import os
import socket
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runs
from lzsampler.auditing.formats import FORMATS
from lzsampler.auditing.reading import decode
from lzsampler.auditing.reading.read import read
from lzsampler.auditing.reading.shard import find
from lzsampler.auditing.records import BadRecord, FileRead, PassedOver, Record
from lzsampler.evaluation.run_folder import JUDGED, TRANSCRIPTS
from transcripts import CHAT, CHATGPT, INSPECT, INSPECT_SAMPLE, USER, WEBUI, Write, everything, jsonl, said, texts, told

# -- shards --


def _line() -> st.SearchStrategy[bytes]:
    good = st.builds(
        lambda text, n: json.dumps({"messages": [said(text)] * n}, ensure_ascii=False).encode("utf-8", "replace"),
        st.text(max_size=20),
        st.integers(0, 3),
    )
    odd = st.sampled_from(
        [b"", b"  ", b"{", b'{"messages": 5}', b"[]", b"null", b'{"messages": [{"role": "ass\xff"}]}']
    )
    return st.tuples(st.one_of(good, odd), st.sampled_from([b"\n", b"\r\n"])).map(b"".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.lists(_line(), max_size=12), st.integers(1, 120), st.booleans())
def test_shards_of_any_size_give_the_same(tmp_path: Path, lines: list[bytes], shard_bytes: int, ended: bool) -> None:
    path = tmp_path / "x.jsonl"
    data = json.dumps({"messages": [said("first")]}).encode() + b"\n" + b"".join(lines)
    path.write_bytes(data if ended else data.rstrip(b"\r\n"))
    shards, bad = find(path, shard_bytes=shard_bytes)
    assert not bad
    assert [shard.start for shard in shards[1:]] == [shard.end for shard in shards[:-1]]
    assert sum(shard.size for shard in shards) == path.stat().st_size == shards[-1].end
    (whole,), _ = find(path)
    assert [item for shard in shards for item in read(shard)] == list(read(whole))


def test_numbers_are_those_of_lines(write: Write) -> None:
    rows = [b"\n" if i % 7 == 3 else jsonl({"messages": [said(f"{i}")]}) for i in range(500)]
    path = write("n.jsonl", jsonl(*rows))
    shards, _ = find(path, shard_bytes=100)
    assert len(shards) > 100
    records, bad = everything(path, shard_bytes=100)
    assert not bad
    assert [record.number for record in records] == [i for i in range(500) if i % 7 != 3]
    assert all(told(record)[2] == record.id == str(record.number) for record in records)


# -- files and folders --


def test_a_folder(write: Write, tmp_path: Path) -> None:
    row = jsonl({"messages": [said("a")]})
    for name in ("b/2.jsonl", "b/1.jsonl", "a.JSONL", "b/.hidden.jsonl", ".git/x.jsonl", "README.md", "b/photo.png"):
        write(name, row)
    write("c/answer.md", b"text")
    write("c/config.json", b'{"a": 1}')
    write("c/empty.jsonl", b"")
    (tmp_path / "b" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "b" / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "b" / "link.jsonl").symlink_to(tmp_path / "a.JSONL")
    os.mkfifo(tmp_path / "c" / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "c" / "s.jsonl"))
        shards, bad = find([tmp_path, tmp_path / "b" / "1.jsonl"])
    names = [os.path.relpath(shard.file, tmp_path) for shard in shards]
    assert names == ["a.JSONL", "b/1.jsonl", "b/2.jsonl", "b/link.jsonl", "c/answer.md"]
    assert {os.path.relpath(record.file, tmp_path): record.reason for record in bad} == {
        "b/again": "a link leads back to a folder that contains it; it is read once",
        "b/gone.jsonl": "the link points to a file that does not exist",
        "c/config.json": "the format is not known (its keys: a): give --field PATH, such as "
        "choices[*].message.content, or --format",
        "c/empty.jsonl": "it is empty",
        "c/pipe.jsonl": "it is a pipe: give files, or - for standard input",
        "c/s.jsonl": "it is a socket: give files, or - for standard input",
    }


def test_the_folder_of_an_evaluation(tmp_path: Path) -> None:
    """Its own tables are not transcripts; the names are those that an evaluation writes."""
    grid = runs.grid()
    made = runs.transcript(grid.settings[0], "p", 1, "Fine.")
    folder = runs.write_run(tmp_path / "runs" / "x", grid, [made], [runs.timing(made, 1.0, 1.0)])
    (folder / "results.json").write_text("{}")
    (folder / JUDGED).write_text("{}\n")
    shards, bad = find(tmp_path / "runs")
    assert [os.path.basename(shard.file) for shard in shards] == [TRANSCRIPTS]
    assert bad == []
    (folder / TRANSCRIPTS).unlink()
    assert len(find(folder)[1]) == 4  # another folder that happens to have files of these names


def test_patterns_and_names(write: Write, tmp_path: Path) -> None:
    write("a1.jsonl", jsonl({"messages": [said("a")]}))
    write("a2.out", b"any name, when it is given")
    write("d/a[1].txt", b"b")
    records, bad = everything([str(tmp_path / "a*"), str(tmp_path / "**" / "a?.jsonl"), tmp_path / "d" / "a[1].txt"])
    assert (texts(records), bad) == (["a", "any name, when it is given", "b"], [])
    _, bad = everything([str(tmp_path / "z*"), tmp_path / "none", tmp_path / "d" / "no"])
    assert [record.reason for record in bad] == ["no file matches"] + [
        "it cannot be read: No such file or directory"
    ] * 2
    (tmp_path / "nothing").mkdir()
    assert "no supported files" in everything(tmp_path / "nothing")[1][0].reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(write: Write) -> None:
    path = write("a.jsonl", CHAT)
    path.chmod(0)
    assert everything(path) == ([], [BadRecord(str(path), 0, "it cannot be read: Permission denied")])


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.jsonl"
    with open(path, "wb") as file:
        file.write(jsonl({"messages": [said("a")]}))
    records, bad = everything(tmp_path)
    assert (texts(records), bad) == (["a"], [])
    assert records[0].file.encode() == os.fsencode(tmp_path) + "/\ufffd.jsonl".encode()


def test_standard_input(write: Write) -> None:
    shards, bad = find("-", stdin=write("copy", gzip.compress(CHAT)))
    assert not bad
    records = [item for shard in shards for item in read(shard) if isinstance(item, Record)]
    assert len(records) == 8
    assert {record.file for record in records} == {"-"}


def test_arguments_are_checked(write: Write) -> None:
    path = write("a.jsonl", CHAT)
    for options in ({"format": "csv"}, {"field": "a["}, {"field": "a", "format": "text"}, {"shard_bytes": 0}):
        with pytest.raises(ValueError, match=r"format|field|shard_bytes"):
            find(path, **options)


# -- packed files --


def zstd(data: bytes) -> bytes:
    library = decode.ZSTD
    if library is None:
        pytest.skip("no zstd")
    packed: bytes = library.compress(data, options={library.CompressionParameter.checksum_flag: True})
    return packed


def test_a_zstd_file_may_begin_with_a_frame_to_skip(write: Write) -> None:
    skipped = b"\x53\x2a\x4d\x18\x04\x00\x00\x00abcd"  # RFC 8878, section 3.1.2
    records, bad = everything(write("a.jsonl.zst", skipped + zstd(jsonl({"messages": [said("hello")]}))))
    assert (texts(records), bad) == (["hello"], [])


@pytest.mark.parametrize(("end", "pack"), [(".gz", gzip.compress), (".zst", zstd)])
def test_a_packed_file(write: Write, end: str, pack: Callable[[bytes], bytes]) -> None:
    rows = [jsonl({"messages": [said(f"{i} " + os.urandom(200).hex())]}) for i in range(3000)]
    data = b"".join(rows)
    expected, _ = everything(write("a.jsonl", data))
    for packed in (pack(data), pack(data[:5000]) + pack(data[5000:])):  # also in two members
        records, bad = everything(write("a.jsonl" + end, packed))
        assert (texts(records), bad) == (texts(expected), [])
    whole = pack(data)
    for cut in (len(whole) // 2, len(whole) - 3):
        records, bad = everything(write("cut.jsonl" + end, whole[:cut]))
        assert 1000 < len(records) <= 3000
        assert texts(records) == texts(expected)[: len(records)]
        assert len(bad) == 1
        assert (bad[0].line, "cut off" in bad[0].reason) == (len(records) + 1, True)
    for n in (1, 3):  # the last line has no end
        records, bad = everything(write("junk.jsonl" + end, pack(b"".join(rows[:n]).rstrip()) + b"\n"))
        assert texts(records) == texts(expected)[:n]
        assert [(one.line, "what came before it was read" in one.reason) for one in bad] == [(n + 1, True)]
    for name, data, told_of in (
        ("junk.txt", b"a", ["a"]),
        ("junk.csv", b"id,response\n1,a\n2,b", ["a", "b"]),
        ("junk.tsv", b'id\tresponse\n1\ta\n2\t"b\nc', ["a", "b\nc\n"]),
    ):
        records, bad = everything(write(name + end, pack(data) + b"\n"))
        assert texts(records) == told_of
        assert bad
    array = b"[" + b",\n".join(row.rstrip() for row in rows) + b"]"
    records, bad = everything(write("cut.json" + end, pack(array)[: len(whole) // 2]))
    assert 1000 < len(records) < 3000
    assert texts(records) == texts(expected)[: len(records)]
    assert ["cut off" in one.reason for one in bad] == [True]
    _, bad = everything(write("no.jsonl" + end, whole[:6] + b"\0" * 40))
    assert len(bad) == 1
    records, bad = everything(write("t.txt" + end, pack(os.urandom(500_000).hex().encode())[:-100]))
    assert len(records[0].fields[0].text) > 1000
    assert len(bad) == 1
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 255
    records, bad = everything(write("damaged.jsonl" + end, bytes(damaged)))
    assert bad


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_a_zip(write: Write) -> None:
    files = {"b.jsonl": WEBUI, "a.json": json.dumps(CHATGPT).encode(), "user.json": b"{}"}
    data = zipped({**files, "photo.png": b"\x89PNG", "__MACOSX/a.json": b""})
    path = write("w.zip", data)
    records, bad = everything(path)
    assert texts(records) == ["t | -", "ø", "r | ô", "again"]
    assert [record.file for record in records] == [f"{path}/a.json"] * 2 + [f"{path}/b.jsonl"] * 2
    assert [os.path.basename(record.file) for record in bad] == ["a.json", "b.jsonl", "user.json"]
    for cut in (10, len(data) // 2, len(data) - 5):
        assert everything(write("cut.zip", data[:cut]))[1]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("end", "name"), [("zip", "a.jsonl"), ("eval", "samples/4_epoch_2.json")])
def test_files_of_one_name_in_a_zip(write: Write, end: str, name: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for text in ("earlier", "t"):
            sample = {**INSPECT_SAMPLE, "output": {"choices": [{"message": said(text)}]}, "messages": []}
            archive.writestr(name, json.dumps(sample) if end == "eval" else jsonl({"messages": [said(text)]}))
        archive.writestr("b.png", b"")
        archive.writestr("b.png", b"")
        if end == "eval":
            archive.writestr("header.json", json.dumps({"eval": INSPECT["eval"]}))
    path = write(f"w.{end}", buffer.getvalue())
    records, bad = everything(path)
    assert texts(records) == ["t"]
    said_of = "the zip has 2 files of this name: only the last was read"
    assert [(one.file, one.reason) for one in bad] == [(f"{path}/{name}", said_of)]


def test_a_log_of_inspect(write: Write) -> None:
    files = {
        "header.json": json.dumps({key: INSPECT[key] for key in ("eval", "plan")}).encode(),
        "samples/4_epoch_2.json": json.dumps(INSPECT_SAMPLE).encode(),
        "samples/5_epoch_1.json": b"{",
        "summaries.json": b"[]",
    }
    groups = {"task": "t", "model": "m", "temperature": "0.5", "finish_reason": "length"}
    for archive in (zipped(files), zipped_by_zstd(files)):
        records, bad = everything(write("a.eval", archive))
        assert [told(record) for record in records] == [("4, epoch 2", 0, "t | č", groups)]
        assert [record.reason.partition(":")[0] for record in bad] == ["samples/5_epoch_1.json"]


def zipped_by_zstd(files: dict[str, bytes]) -> bytes:
    """What inspect-ai writes: zstd frames, of which a large file has several."""
    local, central = b"", b""
    for name, data in files.items():
        packed = b"".join(zstd(data[at : at + 100]) for at in range(0, len(data), 100))
        about = struct.pack("<5HIIIHH", 63, 0, 93, 0, 33, zlib.crc32(data), len(packed), len(data), len(name), 4)
        central += b"PK\1\2" + struct.pack("<H", 63) + about + struct.pack("<3HII", 0, 0, 0, 0, len(local))
        central += name.encode() + b"\xfe\xca\0\0"
        local += b"PK\3\4" + about + name.encode() + b"\xfe\xca\0\0" + packed
    end = struct.pack("<4HIIH", 0, 0, len(files), len(files), len(central), len(local), 0)
    return local + central + b"PK\5\6" + end


def test_a_damaged_file_in_a_zip_of_zstd(write: Write) -> None:
    rows = jsonl(*({"messages": [said(f"text {n}")]} for n in range(30)))
    whole = zipped_by_zstd({"a.jsonl": rows})
    good, bad = everything(write("w.zip", whole))
    assert texts(good) == [f"text {n}" for n in range(30)]
    assert not bad
    data = range(whole.index(b"\xfe\xca\0\0") + 4, whole.index(b"PK\1\2"))
    for at in data[::3]:
        records, bad = everything(write("w.zip", whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]))
        assert bad or texts(records) == texts(good)  # some bits of a frame mean nothing
    for size in range(0, len(whole), 7):
        assert everything(write("w.zip", whole[:size]))[1]
    flags = bytearray(zipped_by_zstd({"a.json": json.dumps(CHATGPT).encode()}))
    flags[flags.index(b"PK\1\2") + 8] |= 1
    assert [record.reason for record in everything(write("e.zip", bytes(flags)))[1]] == ["it is encrypted"]


# -- Parquet --


def parquet(rows: list[dict[str, Any]], path: Path, row_group_size: int = 2) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pyarrow.Table.from_pylist(rows), path, row_group_size=row_group_size
    )
    return path


def test_parquet(tmp_path: Path) -> None:
    chats = [{"id": f"r{i}", "model": "m", "junk": "x" * 100, "messages": [USER, said(f"ä{i}")]} for i in range(7)]
    path = parquet(chats, tmp_path / "chats.parquet")
    records, bad = everything(path)
    assert [told(record) for record in records] == [(f"r{i}", i, f"ä{i}", {"model": "m"}) for i in range(7)]
    assert not bad
    shards, _ = find(path, shard_bytes=1)
    assert [(shard.start, shard.end, shard.first) for shard in shards] == [(0, 1, 0), (1, 2, 2), (2, 3, 4), (3, 4, 6)]
    assert sum(shard.size for shard in shards) == path.stat().st_size
    assert everything(path, shard_bytes=1) == (records, [])
    assert everything(path, by=["junk"])[0][0].groups["junk"] == "x" * 100
    assert texts(everything(path, field="messages[0].content")[0]) == ["q"] * 7
    assert "column" in everything(path, format="sharegpt")[1][0].reason


def test_parquet_of_other_kinds(tmp_path: Path) -> None:
    cases: list[tuple[list[dict[str, Any]], list[str]]] = [
        ([{"conversations": [{"from": "gpt", "value": "a"}]}, {"conversations": None}], ["a"]),
        ([{"conversations": [said("a")]}], ["a"]),
        ([{"prompt": "p", "completion": "a"}, {"prompt": "p", "completion": None}], ["a"]),
        ([{"prompt": "p", "response": [said("a", reasoning_content="r")]}], ["r | a"]),
        ([{"text": "a</think>b"}], ["a | b"]),
    ]
    for rows, expected in cases:
        records, bad = everything(parquet(rows, tmp_path / "x.parquet"))
        assert texts(records) == expected
        assert len(bad) == len(rows) - len(expected)


def test_lighteval(tmp_path: Path) -> None:
    rows = [
        {"doc": {"id": "7", "query": "q", "task_name": "aime"}, "metric": {"em": 1.0},
         "model_response": {"text": ["a", "<think>t</think>b"], "reasonings": ["r", None], "output_tokens": [[1], []]}},
        {"doc": {"id": "8", "query": "q", "task_name": "aime"}, "metric": {"em": 0.0},
         "model_response": {"text": [], "reasonings": [], "output_tokens": []}},
    ]  # fmt: skip
    (tmp_path / "details" / "org" / "m" / "d").mkdir(parents=True)
    name = "details/org/m/d/details_aime_2026-01-02T03-04-05.6.parquet"
    records, bad = everything(parquet(rows, tmp_path / name))
    assert [told(record) for record in records] == [
        ("7", 0, "r | a", {"task": "aime", "model": "org/m"}),
        ("7/2", 0, "t | b", {"task": "aime", "model": "org/m"}),
    ]
    assert [record.reason for record in bad] == ["row 1: there is no text, only log-likelihoods of given answers"]


def test_damaged_parquet(tmp_path: Path) -> None:
    path = parquet([{"text": os.urandom(500).hex()} for _ in range(50)], tmp_path / "a.parquet", 10)
    data = path.read_bytes()
    for cut in (4, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        records, bad = everything(path)
        assert (records, len(bad)) == ([], 1)
    path.write_bytes(data[:30_000] + bytes(100) + data[30_100:])
    records, bad = everything(path)
    assert len(records) + len(bad) > 1
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.array([b"a", b"\xff\xfe", b"c"]).view(pyarrow.string())
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"text": column}), path)
    records, bad = everything(path)
    assert (texts(records), [record.reason for record in bad]) == (
        ["a", "c"],
        ["row 1: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"],
    )
    times = pyarrow.array([1], pyarrow.timestamp("ns"))
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"created": times, "text": ["a"]}), path)
    assert texts(everything(path)[0]) == ["a"]


# -- slots --


def slot(tokens: list[int]) -> bytes:
    return struct.pack(f"<4sII{len(tokens)}i", b"qsgg", 3, len(tokens), *tokens) + b"\0" * 64


def test_slots(write: Write, tmp_path: Path) -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    from lzsampler.models import default_model

    vocabulary = llama_cpp.Llama(str(default_model()), vocab_only=True, verbose=False)
    tokens = vocabulary.tokenize(b"once and once and once", add_bos=False)
    vocabulary.close()
    write("slot1.bin", slot(tokens))
    write("other.bin", b"nothing of ours")
    _, bad = everything(tmp_path)
    assert len(bad) == 1
    assert "--tokenizer" in bad[0].reason
    (record,), bad = everything(tmp_path, tokenizer=default_model())
    assert not bad
    (field,) = record.fields
    assert field.text.strip() == "once and once and once"
    assert field.tokens is not None
    assert field.tokens.dtype == np.int32
    assert field.tokens.tolist() == tokens
    for data, reason in (
        (slot(tokens)[:20], "cut off"),
        (slot(tokens)[:6], "header"),
        (slot([2**30]), "give the model that wrote"),
        (slot([-5]), "give the model that wrote"),
        (slot([1])[:8] + b"\xff" * 20, "cut off"),
    ):
        records, bad = everything(write("slot1.bin", data), tokenizer=default_model())
        assert not records
        assert reason in bad[0].reason


# -- hostile --


def test_damaged_beginnings_and_ends(write: Write) -> None:
    rows = [{"conversations": [{"from": "gpt", "value": f"ä{i}"}]} for i in range(5)]
    for indent in (None, 0, 2):
        for form in ({"a": 1}, rows):
            data = json.dumps(form, indent=indent, ensure_ascii=False).replace("\n", "\r\n").encode()
            records, bad = everything(write("a.json", data))
            assert (len(records), len(bad)) == ((5, 0) if form is rows else (0, 1))
    records, bad = everything(write("a.json", json.dumps(rows).encode()[:-30]))
    assert texts(records) == ["ä0", "ä1", "ä2", "ä3"]
    assert bad[0].reason.endswith("the 4 elements before it were read")
    for first in (b"\0\0 garbage\n", b'{"messages": [{"ro\n', b"\xef\xbb\xbf\n\n"):
        records, bad = everything(write("a.jsonl", first + CHAT))
        assert (len(records), len(bad)) == (8, 2 + (first[0] != 0xEF))
    reasons = {
        b" \n": "it is blank",
        b"[]": "it has no rows",
        b"5": "it is not a JSON, Parquet or zip file",
    }
    for data, reason in reasons.items():
        assert [record.reason for record in everything(write("b.json", data))[1]] == [reason]
    for name in ("b.jsonl", "b.json", "b"):  # as Windows PowerShell 5 writes it
        records, bad = everything(write(name, CHAT.decode().encode("utf-16")))
        assert (texts(records), len(bad)) == (texts(everything(write("c.jsonl", CHAT))[0]), 2)
    assert "UTF-16" in everything(write("b.json.gz", gzip.compress(CHAT.decode().encode("utf-16"))))[1][0].reason


def test_odd_json(write: Write) -> None:
    lines = [
        rb'{"messages": [{"role": "assistant", "content": "a\ud800b \ud83d\ude00"}]}',
        b'{"messages": [{"role": "assistant", "content": "nul \0 \\u0000 \xff\xc3"}]}',
        b'{"messages": [{"role": "assistant", "content": "a", "x": NaN}], "n": ' + b"9" * 5000 + b"}",
        b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"messages": ' + b'{"a":' * 2_000_000,
        b"\0" * 100,
        b'{"messages": [{"role": "assistant", "content": "same id"}], "id": 1}',
        b'{"messages": [{"role": "assistant", "content": "same id"}], "id": 1}',
        b'{"messages": [{"role": "assistant", "content": "\xe2\x80\xa8\xc2\x85"}]}',
        b'{"messages": [{"role": "assistant", "content": "cut of',
    ]
    records, bad = everything(write("odd.jsonl", b"\xef\xbb\xbf" + b"\n".join(lines)))
    assert texts(records) == ["a\ufffdb 😀", "nul \0 \0 \ufffd\ufffd", "same id", "same id", "\u2028\x85"]
    assert [record.id for record in records] == ["0", "1", "1", "1", "8"]
    assert [record.line for record in bad] == [3, 4, 5, 6, 10]
    assert [record.reason.partition(":")[0] for record in bad] == ["not read"] * 3 + ["not JSON"] * 2
    json.dumps([texts(records), [record.reason for record in bad]], ensure_ascii=False).encode()


def test_a_row_that_is_larger_than_a_shard_or_a_line_may_be(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    row = jsonl({"messages": [said("a")]})
    long = jsonl({"text": "x" * 3_000_000, "messages": [said("loop " * 600_000)]})
    path = write("long.jsonl", row + long + row)
    shards, _ = find(path, shard_bytes=1000)
    assert [shard.first for shard in shards] == [0, 2]
    records, bad = everything(path, shard_bytes=1000)
    assert ([len(text) for text in texts(records)], bad) == ([1, 3_000_000, 1], [])
    assert len(texts(everything(write("one.jsonl", long))[0])[0]) == 3_000_000  # sniffed from its beginning
    assert len(texts(everything(write("one.json", b"[" + long + b"]"))[0])[0]) == 3_000_000
    monkeypatch.setattr(decode, "MAX_LINE", 1 << 20)
    monkeypatch.setattr(decode, "MAX_DOCUMENT", 1 << 20)
    records, bad = everything(path, shard_bytes=1000)
    assert [record.number for record in records] == [0, 2]
    assert [(record.line, record.reason) for record in bad] == [(2, "the line is longer than 1 MiB")]
    assert "longer than" in everything(write("one.json", b"[" + long + b"]"))[1][0].reason
    records, bad = everything(write("long.jsonl.gz", gzip.compress(row + long + row)))
    assert ([record.number for record in records], [record.line for record in bad]) == ([0, 2], [2])


NAMES = ["a.jsonl", "a.json", "a.txt", "a.parquet", "a.zip", "a.eval", "a.bin", "a", "a.jsonl.gz", "a.json.zst"]
SEEDS = [
    CHAT,
    WEBUI,
    gzip.compress(CHAT),
    json.dumps(CHATGPT, indent=1).encode(),
    json.dumps(INSPECT).encode(),
    slot([1, 2, 3]),
    b"PAR1" + bytes(40) + b"PAR1",
    zipped({"a.json": json.dumps(CHATGPT).encode(), "b.jsonl": WEBUI, "c.txt": b"c"}),
    zipped({"header.json": json.dumps(INSPECT).encode(), "samples/1.json": json.dumps(INSPECT_SAMPLE).encode()}),
    b"\x28\xb5\x2f\xfd" + bytes(20),
    b'{"a": [{"b": "',
    b"[[[{",
]


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        data[at : at + draw(st.integers(0, 9))] = draw(st.binary(max_size=6))
    return bytes(data[: draw(st.integers(0, len(data)))])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=200), _damaged()), st.sampled_from(NAMES), st.sampled_from([None, "a.b[*]"]))
def test_bytes_of_any_kind_never_raise(tmp_path: Path, data: bytes, name: str, field: str | None) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    shards, bad = find([path], field=field, shard_bytes=50)
    found = [item for shard in shards for item in read(shard)]
    assert all(isinstance(item, Record | BadRecord | FileRead | PassedOver) for item in [*found, *bad])
    assert all(item.file.startswith(str(path)) for item in [*found, *bad])
    if not data:
        assert bad


@pytest.mark.parametrize("name", sorted(FORMATS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(data=_damaged())
def test_the_wrong_format_never_raises(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    shards, _ = find([path], format=name)
    assert all(isinstance(item, Record | BadRecord | FileRead | PassedOver) for shard in shards for item in read(shard))


def test_what_is_not_installed_is_said_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "a.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    (tmp_path / "a.jsonl").write_bytes(CHAT)
    code = """
import sys
for name in ("orjson", "pyarrow", "backports.zstd", "compression.zstd"):
    sys.modules[name] = None
from lzsampler.auditing.formats import FORMATS
from lzsampler.auditing.reading import decode
from lzsampler.auditing.reading.read import read
from lzsampler.auditing.reading.shard import find
from lzsampler.auditing.records import FileRead
shards, bad = find(".")
print(len([item for shard in shards for item in read(shard) if not isinstance(item, FileRead)]))
for record in bad:
    print(record.reason)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "10",
        "files packed by zstd need backports.zstd: pip install backports.zstd",
        "Parquet files need pyarrow: pip install pyarrow",
    ]
