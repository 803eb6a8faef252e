"""Files that programs wrote, and what the audit says of them: formats, records, loops, and what was not read."""

import csv
import gzip
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import runs
import transcripts
from lzsampler import audit_files, compare, save
from lzsampler.auditing.formats import stream
from lzsampler.auditing.reading.field import format_of
from lzsampler.auditing.reading.format import Source
from lzsampler.auditing.reading.read import read
from lzsampler.auditing.reading.shard import find
from lzsampler.auditing.reading.tables import TableError, xml_rows
from lzsampler.auditing.records import LOOPING
from lzsampler.auditing.summary import Summary
from lzsampler.reports.audit_terminal import terminal_table
from transcripts import CHAT, USER, Write, chunk, everything, jsonl, said, texts, told

DATA = Path(__file__).parent / "data" / "formats"
LEDGER = [json.loads(line) for line in (DATA / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]
LOOP, FINE = "I will check again. " * 30, "The boat came in late, and nobody had waited for it at the pier. " * 2


def audited(path: Path | str, **options: Any) -> tuple[Summary, int]:
    """Return the summary of a file or folder, and how many records loop in their reasoning."""
    with audit_files(path, workers=1, **options) as audit:
        inside = sum(any(f.field == "reasoning" and f.rule in LOOPING for f in record.findings) for record in audit)
        return audit.summary, inside


@pytest.mark.parametrize("row", LEDGER, ids=lambda row: row["file"])
def test_a_file_of_a_program(row: dict[str, Any]) -> None:
    if row["file"].endswith((".yaml", "res.txt")):
        pytest.importorskip("yaml")
    if row["file"].endswith(".parquet"):
        pytest.importorskip("pyarrow")
    summary, inside = audited(DATA / row["file"])
    (count,) = summary.coverage.files.values()
    found = (count.format, count.records, summary.total.looping, inside)
    assert found == (row["format"], row["records"], row["loops"], row["in_reasoning"])


def test_every_file_is_in_the_ledger() -> None:
    assert {row["file"] for row in LEDGER} == {path.name for path in DATA.iterdir()} - {"ledger.jsonl", "README.md"}


# -- shapes --

ROW, OTHER = {"prompt": "q", "response": FINE}, {"prompt": "q", "response": LOOP}
WRAPPED: list[tuple[Any, str]] = [
    ({"model": "m", "results": [ROW, OTHER]}, "completion at results[*]"),
    ({"data": [{"messages": [USER, said(FINE)]}, {"messages": [USER, said(LOOP)]}]}, "openai-chat at data[*]"),
    ({"a": [ROW], "b": [OTHER]}, "completion at [*][*]"),
    ({"0": {"origin_prompt": "q", "prediction": FINE}, "1": {"origin_prompt": "q", "prediction": LOOP}},
     "completion at [*]"),
    ([[USER, said(FINE)], [USER, said(LOOP)]], "openai-chat"),
    ([[{"generated_text": [USER, said(FINE)]}], [{"generated_text": [USER, said(LOOP)]}]], "completion"),
    ({"request_states": [{"instance": {"input": {"text": "q"}, "references": [{"output": {"text": "g"}}]},
                          "result": {"completions": [{"text": text}]}} for text in (FINE, LOOP)]},
     "completion at request_states[*].result"),
    ({"run": {"outputs": [{"llm": said(FINE)}, {"llm": said(LOOP)}]}}, "openai-chat at run.outputs[*].llm"),
]  # fmt: skip
OTHERS: list[Any] = [  # files that hold no text of a model, in words that some format has, too
    {"name": "x", "version": "1", "description": "A long description of a package that nobody has needed so far."},
    {"name": "x", "tool": {"output": "CHANGELOG.md", "template": "keep"}},
    {"results": {"gsm8k": {"exact_match": 0.1}}, "configs": {"gsm8k": {"doc_to_text": "Question: {{question}}"}}},
    {"openapi": "3", "paths": {"/x": {"get": {"responses": {"200": {"description": "ok"}}}}}},
    {"custom_id": "a", "method": "POST", "url": "/v1", "body": {"messages": [USER, said(LOOP), USER]}},
    {"a": "Save", "b": "Open", "c": "Close"},
    {"types": {"text/plain": ["txt"], "text/html": ["html", "htm"], "x/y": []}},
]


@pytest.mark.parametrize(("value", "format"), WRAPPED, ids=[format for _, format in WRAPPED])
def test_rows_inside_other_objects(write: Write, value: Any, format: str) -> None:
    summary, _ = audited(write("x.json", json.dumps(value).encode()))
    (count,) = summary.coverage.files.values()
    assert (count.format, count.records, summary.total.looping) == (format, 2, 1)


@pytest.mark.parametrize("value", OTHERS, ids=[", ".join(value)[:20] for value in OTHERS])
def test_other_json_is_not_taken_for_transcripts(write: Write, value: Any) -> None:
    records, bad = everything(write("x.json", json.dumps(value).encode()))
    assert not records
    assert "the format is not known" in bad[0].reason


def test_failed_requests_say_why(write: Write) -> None:
    rows = [
        {"custom_id": "a", "result": {"type": "succeeded", "message": said(FINE)}},
        {"custom_id": "b", "result": {"type": "errored", "error": {"error": {"message": "too long"}}}},
    ]
    records, bad = everything(write("b.jsonl", jsonl(*rows)))
    assert [record.id for record in records] == ["a"]
    assert [(one.line, one.reason) for one in bad] == [(2, "the request failed: too long")]
    ours = json.loads(transcripts.LZS.splitlines()[0])
    failed = {**ours, "messages": [USER], "finish_reason": "failed", "error": "too long"}
    records, bad = everything(write("c.jsonl", jsonl(ours, failed)))
    assert [record.id for record in records] == ["lzs-1"]
    assert [(one.line, one.reason) for one in bad] == [(2, "the request failed: too long")]


def test_streams_of_several_answers_at_once(write: Write) -> None:
    words = LOOP.split(" ")
    rows = [chunk(f"{word} ", id=name) for word in words for name in "ab"]
    records, bad = everything(write("s.jsonl", jsonl(*rows)))
    assert not bad
    assert [record.id for record in records] == ["a", "b"]
    assert all(record.fields[0].text.startswith(LOOP) for record in records)


def test_only_the_last_answers_of_a_stream_are_remembered() -> None:
    source = Source("s.jsonl", {}, ())
    for i in range(3000):
        row = {"id": f"c{i}", "object": "chat.completion.chunk", "choices": [{"delta": {"content": "a"}}]}
        row["choices"][0]["finish_reason"] = "stop"  # type: ignore[index]
        assert [made.answer for made in stream.FORMAT.messages(row, source)] == ["a"]
    late = {**row, "choices": [{"delta": {}, "finish_reason": "stop"}]}
    assert list(stream.FORMAT.messages(late, source)) == []
    assert len(source.state["finished"]) == 1000


def test_a_stream_among_answers_says_what_to_do(write: Write) -> None:
    rows = [{"id": "x", "choices": [{"message": said("a")}]}, chunk("b")]
    records, bad = everything(write("s.jsonl", jsonl(*rows)))
    assert texts(records) == ["a"]
    assert "--format stream" in bad[0].reason
    assert texts(everything(write("s.jsonl", jsonl(*rows)), format="stream")[0]) == ["a", "b"]


@pytest.mark.parametrize("size", [300_000, 5_000_000])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_long_first_row_is_no_obstacle(write: Write, size: int, indent: int | None) -> None:
    rows = [{"prompt": "x y " * (size // 4), "completion": text} for text in (FINE, LOOP)]
    if indent is None:
        path = write("long.jsonl", jsonl(*rows))
    else:
        path = write("long.json", json.dumps(rows, indent=indent).encode())
    assert texts(everything(path)[0]) == [FINE, LOOP]
    ids = {"version": 2, "eval": {"task": "t", "dataset": {"sample_ids": ["x" * 20] * (size // 20)}}, "samples": []}
    _, bad = everything(write("i.json", json.dumps(ids).encode()))
    assert bad[0].reason == "it was read as inspect, and contains no text of a model"


def test_values_one_after_another(write: Write) -> None:
    data = "\n".join(json.dumps(row, indent=2) for row in (ROW, OTHER)).encode()
    assert texts(everything(write("x.json", data))[0]) == [FINE, LOOP]
    records, bad = everything(write("x.json", data + b"\n{"))
    assert texts(records) == [FINE, LOOP]
    assert "the 2 values before it were read" in bad[0].reason


# -- tables and databases --


def test_tables(write: Write) -> None:
    rows = [("prompt", "response"), ("q", 'a, "b"\nc'), ("q", "d")]
    quoted = ['"' + cell.replace('"', '""') + '"' for row in rows for cell in row]
    for name, between in (("t.csv", ","), ("t.tsv", "\t"), ("t.CSV", ";")):
        lines = [between.join(quoted[i : i + 2]) for i in (0, 2, 4)]
        records, bad = everything(write(name, "\r\n".join(lines).encode("utf-8-sig")))
        assert (texts(records), bad) == (['a, "b"\nc', "d"], [])
        assert [record.line for record in records] == [2, 4]
    _, bad = everything(write("u.csv", b"a,b\n1,2\n"))
    assert "its keys: a, b" in bad[0].reason
    assert texts(everything(write("u.csv", b"a,b\n1,2\n3,4\n"), field="b")[0]) == ["2", "4"]


@pytest.mark.parametrize(("name", "between"), [("t.csv", ","), ("t.csv.gz", ","), ("t.tsv", "\t")])
@pytest.mark.parametrize("field", [None, "response"])
def test_a_quote_that_is_not_closed(write: Write, name: str, between: str, field: str | None) -> None:
    """It took in the rest of the file in silence: 2 records for 4, the last of which was said to loop."""

    def read(*lines: str) -> tuple[list[str], list[tuple[int, str]]]:
        data = "".join(line.replace("|", between) for line in ("id|response\n", *lines)).encode()
        records, bad = everything(write(name, gzip.compress(data) if name.endswith("gz") else data), field=field)
        return texts(records), [(one.line, one.reason) for one in bad]

    says = "the quote that opens here is not closed: "
    found, bad = read("1|a\n", '2|"it said\n', "3|c\n", "4|d\n")
    assert found == ["a", "it said\n", "c", "d"]
    assert bad == [(3, f"{says}what follows (rows: 2, bytes: 8) was read as if the quote were closed in its line")]
    # One that is closed by the quote of another cell.
    found, bad = read("1|a\n", '2|"it said\n', '3|"say ""go"""\n', "4|d\n")
    assert found == ["a", "it said\n", 'say "go"', "d"]
    assert bad == [(3, f"{says}what follows (rows: 1, bytes: 15) was read as if the quote were closed in its line")]
    found, bad = read('1|"two\n', 'lines" and more\n', "2|b\n")
    assert found == ["two\nlines and more", "b"]
    assert bad == [(2, f"{says}its cell was read up to the next quote (further lines: 1, bytes: 16)")]
    assert read('1|"a" b\n', '2|c "d"\n') == (["a b", 'c "d"'], [])  # careless, and within a line
    # A file that is cut off within a cell of several lines.
    found, bad = read("1|a\n", '2|"two\nlines"\n', '3|"of one text\n', "the second line\n", "and the th")
    assert found == ["a", "two\nlines", "of one text\nthe second line\nand the th"]
    assert bad == [(5, f"{says}its cell was read up to the end of the file (further lines: 2, bytes: 26)")]
    found, bad = read('1|"a\n', 'b"|"c')
    assert found == []
    assert bad[0][0] == 2
    assert "more cells than the header" in bad[0][1]
    assert bad[1:] == [(3, f"{says}its cell was read up to the end of the file (further lines: 0, bytes: 0)")]
    assert read('1|"a""\n', '"""\n', "2|b") == (['a"\n"', "b"], [])


def test_a_quote_that_is_not_closed_is_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('id,response\n1,"it said\n' + "".join(f"{i},fine {i}\n" for i in range(2, 30)))
    (tmp_path / "u.csv").write_text('id,"response\n1,a\n')
    with audit_files([tmp_path / "t.csv", tmp_path / "u.csv"], workers=1) as audit:
        summary = audit.summary
    assert (summary.total.records, summary.bad_records) == (29, 2)
    unread = {Path(row["file"]).name: row for row in summary.coverage.to_json()["unread"]}
    assert (unread["t.csv"]["line"], unread["t.csv"]["count"]) == (2, 1)
    assert "(rows: 28, bytes:" in unread["t.csv"]["reason"]
    assert "a quote in its header is not closed in its line" in unread["u.csv"]["reason"]
    told = ":2: the quote that opens here is not closed: what follows (rows: 28"
    assert told in terminal_table(summary, 250)


@pytest.mark.parametrize(("name", "between"), [("t.csv", "comma"), ("t.tsv", "tab"), ("t.csv.gz", "semicolon")])
def test_a_row_with_more_cells_than_the_header_is_a_bad_record(write: Write, name: str, between: str) -> None:
    """Its text was cut at its first comma, or the text was the model of the row."""

    def read(*lines: str) -> tuple[list[str], list[tuple[int, str]]]:
        data = "\n".join(lines).replace("|", {"comma": ",", "tab": "\t", "semicolon": ";"}[between]).encode()
        records, bad = everything(write(name, gzip.compress(data) if name.endswith("gz") else data))
        return texts(records), [(one.line, one.reason) for one in bad]

    reason = f"the row has more cells than the header: put quotes around texts that have a {between}"
    assert read("id|model|response", "0|m|Well| so it is", '1|m|"Well| so"', "2|m|fine|||") == (
        ["Well| so".replace("|", {"comma": ",", "tab": "\t", "semicolon": ";"}[between]), "fine"],
        [(2, reason)],
    )
    found, bad = read("id|response|model", *["0|Well| so it is|m"] * 9)
    assert (found, bad) == ([], [(line, reason) for line in range(2, 11)])
    assert read("id|response", '1|"it said', "3|c", "4|d|e", "5|f")[1][:1] == [(4, reason)]


def test_rows_that_end_early(write: Write) -> None:
    records, bad = everything(write("t.csv", b"id,response,model\n" + b"0\n" * 9 + b"1,fine\n2,good,m\n3,\n"))
    assert [told(record)[::2] for record in records] == [("1", "fine"), ("2", "good"), ("3", "")]
    assert [record.groups for record in records] == [{}, {"model": "m"}, {}]
    assert [one.line for one in bad] == list(range(2, 11))
    assert {one.reason.partition(" completion")[0] for one in bad} == {"the row has no answer: it needs one of"}


CHAT_CELL = [USER, said(None, tool_calls=[{}]), {"role": "observation", "content": "o"}, said(FINE)]
CELLS: list[tuple[str, Any, list[str]]] = [  # what programs write into a column for a text
    ("messages", CHAT_CELL, [FINE]),
    ("chosen", CHAT_CELL, [FINE, "x"]),
    ("completion", [said(FINE)], [FINE]),
    ("response", said(FINE), [FINE]),
    ("response", {"choices": [{"message": said(FINE), "finish_reason": "stop"}]}, [FINE]),
    ("content", [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": FINE}], [f"t | {FINE}"]),
    ("content", [{"type": "tool_use", "name": "f", "input": {}}], []),
    (
        "response",
        {"output": {"message": {"role": "assistant", "content": [{"text": FINE}]}}, "stopReason": "x"},
        [FINE],
    ),
    ("content", [{"thought": True, "text": "t"}, {"text": FINE}], [f"t | {FINE}"]),
    ("response", {"model": "m", "response": FINE, "done": True}, [FINE]),
    ("response", {"text": FINE, "finish_reason": "COMPLETE"}, [FINE]),
    ("completion", [{"generated_text": FINE}], [FINE]),
    ("output", {"model": "m", "choices": [{"text": FINE}]}, [FINE]),
    ("responses", [FINE, "another"], [FINE, "another"]),
    ("output_list", [FINE, "another"], [FINE, "another"]),
]


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows of texts to a CSV file or a database."""
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        names = ", ".join(rows[0])
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f"create table answers ({names})")
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(f"insert into answers values ({marks})", [tuple(row.values()) for row in rows])
    return path


@pytest.mark.parametrize("end", ["csv", "db"])
def test_an_answer_that_is_json_is_a_text(tmp_path: Path, end: str) -> None:
    """Each of its sentences was a record, so that none looped."""
    told = [json.dumps([FINE] * 40), json.dumps({"a": [FINE] * 40}), '{"from": "me", "text": "b"}', repr(["c", "d"])]
    told += [json.dumps({"question": "q", "choices": ["a", "b"]}), '[{"type": []}]', "[]", "{}", *["a plain one"] * 5]
    for column in ("response", "text", "modelOutput", "final_answer", "content"):
        rows = [{"role": "assistant", "id": str(i), column: text} for i, text in enumerate(told)]
        records, bad = everything(table(tmp_path / f"{column}.{end}", rows))
        assert (texts(records), bad) == (told, [])
    pairs = [{"chosen": one, "rejected": "x"} for one in told]
    records, bad = everything(table(tmp_path / f"pairs.{end}", pairs))
    assert (texts(records)[::2], bad) == (told, [])
    scored = [{"Score": "1", "[m] q": one} for one in told]  # of promptfoo
    if end == "csv":
        records, bad = everything(table(tmp_path / f"scored.{end}", scored))
        assert (texts(records), bad) == (told, [])


@pytest.mark.parametrize("end", ["csv", "db"])
@pytest.mark.parametrize(("column", "value", "expected"), CELLS)
def test_a_cell_of_json_that_a_program_wrote(
    tmp_path: Path, end: str, column: str, value: Any, expected: list[str]
) -> None:
    row = {"role": "assistant"} if column == "content" else {"rejected": "x"} if column == "chosen" else {"id": "1"}
    first = [{**row, column: "plain"}] if expected == [] else []
    for written in (json.dumps(value), repr(value)):
        path = table(tmp_path / f"t.{end}", [*first, {**row, column: written}])
        records, bad = everything(path)
        assert (texts(records), bad) == (["plain"] * len(first) + expected, [])
        path.unlink()


def test_the_first_row_may_have_no_answer(tmp_path: Path) -> None:
    """A database or a Parquet file was of no known format then."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, Any]] = [{"id": "0", "response": None}, {"id": "1", "response": FINE}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "t.parquet")
    for path in (table(tmp_path / "t.db", rows), tmp_path / "t.parquet"):
        records, bad = everything(path)
        assert texts(records) == [FINE]
        assert [one.reason.partition(" completion")[0] for one in bad] == [
            "row 0: the row has no answer: it needs one of"
        ]


def test_a_path_goes_into_a_text_of_json(tmp_path: Path, write: Write) -> None:
    answer = json.dumps({"items": [{"text": FINE}, {"text": "b"}], "kind": "k"})
    paths = [table(tmp_path / f"t.{end}", [{"id": "1", "response": answer}]) for end in ("csv", "db")]
    for path in (*paths, write("t.jsonl", jsonl({"response": answer}))):
        records, bad = everything(path, field="response.items[*].text", by=("response.kind",))
        assert (texts(records), bad) == ([FINE, "b"], [])
        assert records[0].groups == {"response.kind": "k"}
        assert texts(everything(path, field="response")[0]) == [answer]


def test_yaml(write: Write) -> None:
    pytest.importorskip("yaml")
    data = b"on: 1\nresults:\n- &a {prompt: q, response: fine}\n- {prompt: q, response: again}\n- *a\n"
    assert texts(everything(write("x.yaml", data))[0]) == ["fine", "again", "fine"]
    assert "not YAML" in everything(write("x.yaml", b"a: [1\nb: }"))[1][0].reason


def test_yaml_without_the_library(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    _, bad = everything([write("x.yaml", b"a: 1"), write("c.jsonl", CHAT)])
    assert "YAML files need PyYAML: pip install pyyaml" in [one.reason for one in bad]


def test_xml(write: Write) -> None:
    row = "<results><response><output>{}</output></response></results>"
    data = f"<?xml version='1.0'?><promptfoo><results>{row.format('a b c')}{row.format('d')}</results></promptfoo>"
    assert texts(everything(write("x.xml", data.encode()))[0]) == ["a b c", "d"]
    bomb = "<!DOCTYPE x [<!ENTITY a 'aaaa'>]><x>&a;</x>"
    for encoding in ("utf-8", "utf-16", "utf-16-le"):
        with pytest.raises(TableError, match="it is XML with a document type, which is not read"):
            xml_rows(bomb.encode(encoding))


def test_xml_without_the_library(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "defusedxml", None)
    _, bad = everything(write("x.xml", b"<a><response>fine</response></a>"))
    assert [one.reason for one in bad] == ["XML files need defusedxml: pip install defusedxml"]


def test_long_cells_leave_the_limit_of_the_csv_module(write: Write) -> None:
    before = csv.field_size_limit()
    path = write("long.csv", b"id,response\n1," + b"so it is " * 50_000 + b"\n2,fine\n")
    (shard,), _ = find(path)
    for item in read(shard):
        assert csv.field_size_limit() == before, item
    assert len(everything(path)[0]) == 2


def test_databases(tmp_path: Path) -> None:
    def made(name: str, *statements: str) -> Path:
        path = tmp_path / name
        with sqlite3.connect(path) as database:
            for statement in statements:
                database.execute(statement)
        database.close()
        return path

    def both(path: Path) -> tuple[list[Any], list[str]]:
        records, bad = everything(path)
        return [told(record)[:3:2] for record in records], [one.reason for one in bad]

    columns = "id text, model text, prompt text, response text, conversation_id text, reasoning text, datetime_utc text"
    old = made(
        "logs.db",
        f"create table responses ({columns})",
        "insert into responses values ('a', 'm', 'q', 'one', 'c', 'hm', '1')",
        "insert into responses values ('b', 'm', 'q', 'two', 'c', null, '2')",
    )
    assert both(old) == ([("a", "hm | one"), ("b", "two")], [])
    new = made(
        "logs",
        f"create table responses ({columns})",
        "create table turns (id text, thread_id text, tip_message_hash text, model text, datetime_utc text)",
        "create table parts (id integer, message_hash text, position integer, type text, text text)",
        "insert into turns values ('t', 'c', 'h', 'm', '1')",
        "insert into parts values (1, 'h', 1, 'text', 'so'), (2, 'h', 0, 'reasoning', 'hm'), (3, 'x', 0, 'text', 'q')",
    )
    assert both(new) == ([("t", "hm | so")], [])
    code = made(
        "opencode.db",
        "create table message (id text, session_id text, time_created integer, data text)",
        "create table part (id text, message_id text, session_id text, data text)",
        """insert into message values ('m', 's', 1, '{"role": "user"}'), ('n', 's', 2, '{"role": "assistant"}')""",
        """insert into part values ('1', 'm', 's', '{"type": "text", "text": "q"}')""",
        """insert into part values ('2', 'n', 's', '{"type": "reasoning", "text": "r"}')""",
        """insert into part values ('3', 'n', 's', '{"type": "text", "text": "t"}')""",
    )
    assert both(code) == ([("s", "r | t")], [])
    chat = json.dumps({"history": {"messages": {"1": USER, "2": said("w")}}})
    webui = made("webui.db", "create table chat (id text, user_id text, created_at integer, chat text)",
                 f"insert into chat values ('c', 'u', 1, '{chat}')")  # fmt: skip
    assert both(webui) == ([("c", "w")], [])
    own = made("own.sqlite", "create table people (name text)", "insert into people values ('x')",
               "create table answers (id integer, prompt text, completion text)",
               "insert into answers values (7, 'q', 'the answer is long')")  # fmt: skip
    assert both(own) == ([("7", "the answer is long")], [])
    assert "the format is not known" in both(made("none.db", "create table x (y)", "insert into x values (1)"))[1][0]
    damaged = tmp_path / "bad.db"
    damaged.write_bytes(b"SQLite format 3\0" + b"x" * 200)
    assert "cannot be read" in both(damaged)[1][0]


def test_a_database_that_is_written_to_is_never_an_old_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("create table a (id, prompt, response)")
        writer.execute("insert into a values (1, 'q', 'the first answer')")
        monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0.01))
        writer.execute("begin exclusive")
        records, bad = everything(path)
        assert records == []
        assert [one.reason for one in bad] == [
            "it cannot be read: database is locked: end the program that writes to it, or audit a copy"
        ]
        writer.execute("commit")
        writer.execute("pragma journal_mode = wal")
        writer.execute("insert into a values (2, 'q', 'the second answer')")
        assert texts(everything(path)[0]) == ["the first answer", "the second answer"]  # the second is in the log
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("pragma journal_mode = delete")
    writer.execute("pragma cache_size = 1")
    writer.execute("begin")
    writer.executemany("insert into a values (3, 'q', ?)", [("long " * 99,)] * 999)
    copy = tmp_path / "copy.db"
    for end in ("", "-journal"):  # of a program that died within a transaction
        Path(f"{copy}{end}").write_bytes(Path(f"{path}{end}").read_bytes())
    writer.close()
    records, bad = everything(copy)
    assert records == []
    assert [one.reason for one in bad] == [
        "it cannot be read: part of it is in copy.db-journal, which cannot be read here: copy both files to a folder "
        "that can be written to, and open the copy once with the program that made it"
    ]


def test_a_database_on_a_medium_that_is_read_only(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("pragma journal_mode = wal")
        writer.execute("create table a (id, prompt, response)")
        writer.execute("insert into a values (1, 'q', 'the first answer')")
    log = tmp_path / "log.db-wal"
    log.symlink_to(tmp_path / "missing" / "log")  # so that even root cannot write it
    records, bad = everything(path)
    assert (texts(records), bad) == (["the first answer"], [])
    log.unlink()
    log.mkdir()  # a log with something in it that cannot be opened
    records, bad = everything(path)
    assert records == []
    assert "part of it is in log.db-wal, which cannot be read here" in bad[0].reason


def test_arrow(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    ipc = pytest.importorskip("pyarrow.ipc")
    table = pyarrow.Table.from_pylist([{"messages": [USER, said(text)]} for text in ("a", "b")])
    for name, writer in (("s.arrow", ipc.new_stream), ("f.arrow", ipc.new_file)):
        with writer(tmp_path / name, table.schema) as file:
            file.write_table(table)
        assert texts(everything(tmp_path / name)[0]) == ["a", "b"]
    (tmp_path / "cut.arrow").write_bytes((tmp_path / "s.arrow").read_bytes()[:100])
    assert everything(tmp_path / "cut.arrow")[1]


# -- --field --


def test_a_field_keeps_reasoning_apart_and_takes_one_role(write: Write) -> None:
    parts = [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]
    rows = [
        {"messages": [USER, {"role": "assistant", "content": parts}, said("b", reasoning_content="r")]},
        {"messages": [USER]},
    ]
    path = write("x.jsonl", jsonl(*rows))
    records, bad = everything(path, field="messages[role=assistant].content")
    assert (texts(records), bad) == (["t | a", "r | b"], [])
    assert texts(everything(path, field='messages[role="assistant"]')[0]) == ["t | a", "r | b"]
    records, bad = everything(path, field="messages[role=model].content")
    assert records == []
    assert "contains no text of a model" in bad[0].reason
    lines = write("y.jsonl", jsonl(USER, said("c"), {"type": "x"}))
    records, bad = everything(lines, field="[role=assistant].content")
    assert (texts(records), len(bad)) == (["c"], 1)


def test_a_field_of_arrays_of_texts(write: Write) -> None:
    assert texts(everything(write("x.json", b'["a", "b"]'), field="[*]")[0]) == ["a", "b"]
    assert texts(everything(write("x.jsonl", b'["a", "b"]\n["c"]\n'), field="[*]")[0]) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="is not a path"):
        format_of("a[b=]c=]")


# -- what was done --


def test_the_summary_says_what_was_read_and_what_was_not(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    (folder / ".cache").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(jsonl(ROW, OTHER, {"x": 1}, {"x": 2}, b"{\n"))
    (folder / "b.json").write_bytes(json.dumps({"results": [ROW]}).encode())
    (folder / "c.json").write_bytes(b'{"config": 1}')
    (folder / "d.yaml").write_bytes(b"a,b\n")
    (folder / "p.html").write_bytes(b"<p>")
    (folder / "q.html").write_bytes(b"<p>")
    (folder / "README.md").write_bytes(b"# Readme")
    (folder / "t.csv").write_bytes(b"name,size\nx,1\n")
    made = audited(folder)[0].to_json()
    name = str(folder)
    assert made["formats"] == {
        "completion": {"files": 1, "records": 2}, "completion at results[*]": {"files": 1, "records": 1}}  # fmt: skip
    assert made["files"] == [
        {"file": f"{name}/a.jsonl", "format": "completion", "records": 2, "bad_records": 3},
        {"file": f"{name}/b.json", "format": "completion at results[*]", "records": 1, "bad_records": 0},
    ]
    unread = {(one["file"], one["line"], one["count"]) for one in made["unread"]}
    assert {(f"{name}/c.json", None, 1), (f"{name}/a.jsonl", 3, 2), (f"{name}/a.jsonl", 5, 1)} <= unread
    passed = {one["reason"]: one["count"] for one in made["passed_over"]}
    assert passed["files ending in .html"] == 2
    assert passed["README files"] == passed["hidden files and folders"] == 1
    assert passed[".csv files in no known format"] == 1
    assert made["passed_over"][0]["files"]


def test_reasons_are_not_in_the_words_of_python(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(
        b'{"type": "chat", "model": {}, "lzsampler": "1", "settings": null, "messages": null}'
    )
    rows = [{**ROW}, {"prompt": "p", "response": ["x", 3, None, {"text": None}]}, {"messages": [None, 5]}]
    (tmp_path / "b.jsonl").write_bytes(jsonl(*rows))
    with audit_files(tmp_path, workers=1) as audit:
        reasons = [unread.reason for unread in audit.summary.coverage.unread.values()]
    assert reasons
    assert not [reason for reason in reasons if "NoneType" in reason or " object " in reason or "index out" in reason]


def test_terminal_and_report_say_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(ROW, *[{"x": 1}] * 220))
    (tmp_path / "b.jsonl").write_bytes(jsonl(chunk("a"), chunk("b", reason="stop"), {"x": 1}))
    (tmp_path / "p.html").write_bytes(b"<p>")
    with audit_files(tmp_path, workers=1) as audit:
        table = terminal_table(audit.summary, 160)
        save(audit, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "2 files read: 1 as completion, 1 as stream" in table
    assert "(220 times)" in " ".join(table.split())  # a long reason goes on in the next line
    assert ":3: not in the form of stream" in table  # the other file's 220 do not push it out
    assert "Passed over: files ending in .html (1)" in table
    assert all(
        part in page for part in ("What was read", "<td>stream</td>", "(220 times)", "files ending in .html (1)")
    )


def test_the_summary_is_the_same_however_the_files_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        (tmp_path / f"{i}.jsonl").write_bytes(jsonl(*[ROW] * 20, {"x": 1}))
    whole = audited(tmp_path)[0].coverage.to_json()
    monkeypatch.setattr("lzsampler.auditing.audit_files.SHARD_BYTES", 300)
    monkeypatch.setattr("lzsampler.auditing.audit_files.TASK_BYTES", 700)
    assert audited(tmp_path)[0].coverage.to_json() == whole
    assert whole["formats"] == {"completion": {"files": 3, "records": 60}}


def test_evaluations_are_compared_by_what_was_asked(tmp_path: Path) -> None:
    """By the number of the line, other prompts were partners where one side had fewer, and answers were "cured"."""
    setting = runs.grid().settings[0]
    both = [runs.transcript(setting, prompt, 2, text) for prompt, text in (("p1", FINE), ("p7", LOOP))]
    (tmp_path / "a.jsonl").write_bytes(jsonl(*both))
    (tmp_path / "b.jsonl").write_bytes(jsonl(both[1]))
    with audit_files(tmp_path / "a.jsonl") as a, audit_files(tmp_path / "b.jsonl") as b:
        made = compare(a.outcomes(), b.outcomes())
    assert (made.records, len(made.still), made.only_a, made.by_number) == (1, 1, 1, 0)
    assert made.still[0].id == "p7, T=0, seed 2"


def test_pairs_made_by_line_number_are_counted_and_said(tmp_path: Path) -> None:
    for name, texts_of in (("a.jsonl", (FINE, LOOP)), ("b.jsonl", (FINE, FINE))):
        rows = [{"prompt": "q", "response": text} for text in texts_of]
        (tmp_path / name).write_bytes(jsonl(*rows, {"id": "x", "response": FINE}))
    sides = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    with audit_files(sides[0]) as a, audit_files(sides[1]) as b:
        assert compare(a.outcomes(), b.outcomes()).by_number == 2
    command = [sys.executable, "-m", "lzsampler.cli.main", "diff", *sides]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "Paired by line number, because the rows have no id: 2 of 3 pairs" in done.stdout


def test_nothing_is_passed_over_in_silence(write: Write) -> None:
    """Files of a known format without a text of a model, and a zip without a file that is read."""
    _, bad = everything(write("x.jsonl", jsonl(USER, USER)))
    assert [one.reason for one in bad] == ["it was read as openai-chat, and contains no text of a model"]
    assert find(write("page.html", b"<html>"))[1][0].reason.startswith("it is HTML")
