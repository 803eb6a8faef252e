"""The texts that a cost is measured on: which files and rows they are, and of which kind."""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from lzsampler import LzsError, Params
from lzsampler.errors import ArgumentError
from lzsampler.evaluation.cost_texts import read_texts
from lzsampler.evaluation.grid import Grid, Setting
from lzsampler.evaluation.right_texts import SETS, SHIPPED, set_texts
from lzsampler.models import default_model


def test_kinds_are_folders_or_endings(write: Callable[[str, bytes], Path], tmp_path: Path) -> None:
    for name in ("in/a.py", "in/code/b.py", "in/code/deep/c.txt", "in/logs/d", "in/.hidden", "in/e.TXT.gz", "in/f"):
        write(name, b"some text")
    top = tmp_path / "in"
    texts, bad = read_texts(top)
    kinds = {os.path.relpath(t.name, top): t.kind for t in texts}
    assert not bad
    assert kinds == {
        "a.py": "py", "f": "no ending", "e.TXT.gz": "txt",
        "code/b.py": "code", "code/deep/c.txt": "code", "logs/d": "logs",
    }  # fmt: skip
    several, _ = read_texts([top / "code", top / "logs", top / "a.py", top / "code" / "b.py"])
    assert [t.kind for t in several] == ["code", "code", "logs", "py"]  # and no file twice


def test_rows_of_json_lines(write: Callable[[str, bytes], Path]) -> None:
    def rows(*given: Any) -> bytes:
        return b"".join(json.dumps(row).encode() + b"\n" for row in given)

    chat = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "1", "reasoning_content": "hm"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "2"},
    ]
    paths = [
        write("tasks.jsonl", rows({"id": "a", "prompt": "p", "answer": "the answer", "task": "sums"}, [1],
                                  {"question": "q", "answer": "1 + 1 = 2\n#### 2"}, {"prompt": "p"}) + b"{broken\n"),
        write("chats.jsonl", rows({"messages": chat})),
        write("log.jsonl", rows({"time": 1, "event": "start"}, {"time": 2, "event": "stop"})),
        write("shared.ndjson", rows({"conversations": [{"from": "me", "value": "q"}, {"from": "gpt", "value": "a"}]})),
        write("plain.json", rows({"prompt": "p", "answer": "a"})),
    ]  # fmt: skip
    texts, bad = read_texts(paths)
    one, two, conversation, log, shared, plain = texts
    assert [part.text for part in one.parts + two.parts] == ["the answer", "1 + 1 = 2\n#### 2"]
    assert one.parts[0].asked == "p"
    assert two.parts[0].asked == [{"role": "user", "content": "q"}]
    assert (one.kind, two.kind) == ("sums", "jsonl")
    assert one.name.endswith("tasks.jsonl:1")
    assert [(part.text, part.reasoning, len(part.asked or "")) for part in conversation.parts] == [
        ("1", "hm", 1),
        ("2", "", 3),
    ]
    assert log.parts[0].text == paths[2].read_text()
    assert shared.parts[0].text == "a"
    assert shared.parts[0].asked is None
    assert plain.parts[0].text == paths[4].read_text()
    assert [(each.line, each.reason.partition(":")[0]) for each in bad] == [
        (2, "it has neither an answer nor a message of the assistant"),
        (4, "it has neither an answer nor a message of the assistant"),
        (5, "not JSON"),
    ]
    assert len({t.digest for t in texts}) == 6


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"ELF\0\1", "it is not a text: byte 3 is zero"),
        (b"ab\xff", "it is not UTF-8 (byte 2): save it as UTF-8"),
        (b"\xff\xfea\0b", "it is not UTF-16 (byte 4): save it as UTF-8"),
        (b"\x1f\x8b\x08broken", "the compressed stream"),
    ],
)
def test_a_file_that_is_not_a_text_is_one_line(write: Callable[[str, bytes], Path], data: bytes, reason: str) -> None:
    path = write("file.log", data)
    good = write("good.log", b"text")
    texts, bad = read_texts([path, good, path.parent / "missing"])
    assert [each.parts[0].text for each in texts] == ["text"]
    assert [each.reason.startswith(reason) for each in bad] == [True, False]
    assert str(bad[1]) == f"{path.parent / 'missing'}: it cannot be read: No such file or directory"


def test_utf_16_and_unknown_formats(write: Callable[[str, bytes], Path]) -> None:
    texts, bad = read_texts(write("a.log", "über".encode("utf-16")))
    assert texts[0].parts[0].text == "über"
    assert not bad
    with pytest.raises(ValueError, match="unknown format 'x': choose one of text"):
        read_texts(".", format="x")


def test_a_library_that_is_missing_for_one_file_loses_no_other(
    write: Callable[[str, bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    files = [write("a.parquet", b"PAR1" + bytes(20) + b"PAR1"), write("b.txt", b"A text.")]
    texts, bad = read_texts(files)
    assert [text.name for text in texts] == [str(files[1])]
    assert [each.file for each in bad] == [str(files[0])]
    assert "pip install pyarrow" in bad[0].reason


def test_a_text_on_which_llama_cpp_fails_is_named_and_the_others_go_on(
    write: Callable[[str, bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llama_cpp")
    from lzsampler.evaluation.cost import cost
    from lzsampler.llama.model import Model

    grid = Grid("g", (Setting("none", "none", Params()), Setting("lz", "lz", Params(lz_penalty=0.2), 0.2)))
    paths = [
        write(f"{name}.txt", (f"{name} " + "It rained on the hills of Barton, and nobody went out. " * 9).encode())
        for name in "abc"
    ]
    whole = cost(default_model(), paths, grid=grid, n_threads=1)
    decode, texts = Model.decode_rows, []

    def fails(self: Model, tokens: Any) -> Any:
        texts.append(1)
        if len(texts) == 2:
            raise LzsError("llama_decode failed")
        return decode(self, tokens)

    monkeypatch.setattr(Model, "decode_rows", fails)
    made = cost(default_model(), paths, grid=grid, n_threads=1)
    assert made.texts == (whole.texts[0], whole.texts[2])
    assert [(each.file, each.reason) for each in made.bad] == [(str(paths[1]), "llama_decode failed")]


# ---- sets ----

DIGESTS = {
    "prose": "9b4d9121460dc5dc",
    "code": "d5ab18e94af56c37",
    "json": "c085d93faada1aca",
    "markdown": "5379d60d402fb24d",
    "lists": "ead1f61b7b15ea84",
    "tables": "46e960cb27619b05",
    "rows": "ea233543114bc3fc",
    "forms": "080e420e91fc85c6",
    "equal": "e1ef53d1c913a186",
}


@pytest.mark.parametrize("name", SETS)
def test_the_texts_of_a_set_never_change(name: str) -> None:
    texts = set_texts(name)
    assert texts == set_texts(name)
    assert sha256(json.dumps(texts).encode()).hexdigest()[:16] == DIGESTS[name]
    assert all(each.text.strip() and len(each.text) <= 3000 for each in texts)


def test_a_set_is_like_a_folder_of_kinds(write: Callable[[str, bytes], Path]) -> None:
    alone, bad = read_texts(sets="tables")
    assert not bad
    assert {text.kind for text in alone} == {"markdown", "csv", "html", "columns"}
    assert alone[0].name == "tables/markdown/1"
    together, _ = read_texts(write("right/a.txt", b"A text."), sets=["tables", "equal", "tables"])
    assert list(dict.fromkeys(text.kind for text in together)) == ["txt", "tables", "equal"]
    assert len({text.name for text in together}) == len(together) == 1 + 8 + 16
    every, _ = read_texts(sets=["prose", "all"])
    assert list(dict.fromkeys(text.kind for text in every)) == list(SETS)
    with pytest.raises(ArgumentError, match=r"unknown set of texts 'list': choose one of prose, .*, equal, all"):
        read_texts(sets="list")


def test_equal_values_answer_their_question() -> None:
    texts = set_texts("equal")
    assert Counter((each.kind, each.text.count(each.kind)) for each in texts) == Counter(
        (value, n) for value, few in (("false", 40), ("true", 36), ("ok", 30), ("0", 40)) for n in (few, 100, 200, 400)
    )
    for each in texts:
        values = json.loads(each.text)
        assert set(map(str, values)) == {str(json.loads(each.kind) if each.kind != "ok" else "ok")}
        assert f" {len(values)} " in each.asked
    (part,) = read_texts(sets="equal")[0][0].parts
    assert part.asked == [{"role": "user", "content": texts[0].asked}]


def test_what_is_shipped_may_be_shipped() -> None:
    rows = [json.loads(line) for line in SHIPPED.read_text(encoding="utf-8").splitlines()]
    assert SHIPPED.stat().st_size < 300_000
    for row in rows:
        own = row["source"].startswith("lzsampler:")
        assert row["licence"] == "MIT" if own else row["licence"] in ("public domain", "CC0-1.0")
