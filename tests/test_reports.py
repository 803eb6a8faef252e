"""Reports of an audit: what they hold, and that nothing of a transcript gets out of them."""

import csv
import errno
import json
import os
import re
import resource
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits import HOSTILE, clean, finding, hostile, hostile_summary, looping, summary_of
from lzsampler import LzsError
from lzsampler.auditing.loop_rows import KEYS, write_loops
from lzsampler.auditing.records import RULES, Audited, BadRecord
from lzsampler.auditing.summary import Group, Summary
from lzsampler.reports.audit_html import write_html
from lzsampler.reports.audit_terminal import terminal_table
from lzsampler.reports.sarif import write_sarif
from lzsampler.reports.text import columns, count, fit, percent, visible
from lzsampler.util.files import replacing
from lzsampler.util.harmless import cell, harmless

FIXED = ["file", "record", "id", "field", "level", "rule", "start", "end", "period", "copies", "unit"]  #


# A row a loop


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    if path.suffix == ".csv":
        kinds: dict[str, Callable[[str], Any]] = {
            **dict.fromkeys(("record", "start", "end", "period", "wasted_tokens"), int),
            **dict.fromkeys(("copies", "share"), float),
            "tail": "true".__eq__,
            "groups": json.loads,
        }
        with path.open(encoding="utf-8", newline="") as file:
            return [{key: kinds.get(key, str)(cell) for key, cell in row.items()} for row in csv.DictReader(file)]
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(path)
    return [{**row, "groups": dict(row["groups"])} for row in table.to_pylist()]


def scalars(value: Any) -> Any:
    """What CSV and Parquet can hold of a value: no lone surrogates."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {scalars(key): scalars(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_rows_come_back(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    records = [*hostile(), looping(3, "等一下，"), clean(4), looping(5, groups={})]
    path = tmp_path / f"loops.{ending}"
    write_loops(path, iter(records))
    rows = rows_of(path)
    wanted = [
        {
            "file": r.file, "record": r.number, "id": r.id, "field": f.field, "level": f.level, "rule": f.rule,
            "start": f.start, "end": f.end, "period": f.period, "copies": f.copies, "unit": f.unit, "share": f.share,
            "tail": f.tail, "wasted_tokens": f.wasted_tokens, "groups": dict(r.groups),
        }
        for r in records for f in r.findings
    ]  # fmt: skip
    if ending != "jsonl":
        wanted = [{key: scalars(value) for key, value in row.items()} for row in wanted]
    if ending == "csv":
        wanted = [{k: cell(v) if isinstance(v, str) else v for k, v in row.items()} for row in wanted]
    assert rows == wanted
    assert [list(row) for row in rows] == [list(KEYS)] * len(rows)
    assert list(KEYS)[: len(FIXED)] == FIXED


@pytest.mark.parametrize("first", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_no_cell_of_csv_is_a_formula_or_steers_a_terminal(tmp_path: Path, first: str) -> None:
    steering = "\x1b[2J\x07\x9b1m\x7f\u202e\U000e0041"
    record = looping(0, f"{first} {steering}", groups={"model": f"{first}{steering}"})
    record = replace(record, id=f"{first}{steering}", file=f"{first}{steering}.jsonl")
    write_loops(tmp_path / "l.csv", [record])
    data = (tmp_path / "l.csv").read_text(encoding="utf-8")
    assert not [c for c in data if unicodedata.category(c) in ("Cc", "Cf") and c not in "\r\n\t"]
    for row in rows_of(tmp_path / "l.csv"):
        assert all(row[key].startswith("'") for key in ("file", "id", "unit"))
        assert row["groups"] == {"model": f"{first}{steering}"}
        assert row["id"] == cell(record.id)


def test_texts_without_anything_odd_are_as_they_were() -> None:
    for text in ("", "Ärger, 等一下 \u200d👩\u200d🚀", "a = b", "5", "x\ny\tz"):
        assert cell(text) == text
    assert harmless("a\x1b\u2028\ud800\U000e0041\n") == "a\\u001b\\u2028\\ud800\\udb40\\udc41\\u000a"
    assert json.loads(harmless(json.dumps("\x7f\x9b\U000e0041", ensure_ascii=False))) == "\x7f\x9b\U000e0041"


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_no_rows_are_a_file_with_its_columns(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / f"loops.{ending}"
    write_loops(path, [])
    assert rows_of(path) == []
    if ending == "parquet":
        assert parquet.read_schema(path).names == list(KEYS)
    if ending == "csv":
        assert path.read_bytes() == ",".join(KEYS).encode() + b"\r\n"


def test_parquet_is_written_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("lzsampler.auditing.loop_rows._ROWS", 8)
    write_loops(tmp_path / "l.PARQUET", (looping(i) for i in range(10)))
    assert parquet.ParquetFile(tmp_path / "l.PARQUET").num_row_groups == 3


def test_pandas_filters_parquet_by_the_rule(tmp_path: Path) -> None:
    """A column of categories, which pandas makes of a dictionary, cannot be compared by <=."""
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    write_loops(tmp_path / "l.parquet", [looping(0), looping(1)])
    rows = pandas.read_parquet(tmp_path / "l.parquet")
    assert list(rows[rows.rule <= "LZR006"].rule) == ["LZR001", "LZR001"]
    assert [dict(groups)["model"] for groups in rows.groups] == ["small"] * 4


def test_jsonl_has_a_line_a_row_for_every_reader(tmp_path: Path) -> None:
    write_loops(tmp_path / "l.jsonl", hostile())
    assert len((tmp_path / "l.jsonl").read_text(encoding="utf-8").splitlines()) == 2 * len(HOSTILE)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(LzsError, match="pip install pyarrow"):
        write_loops(tmp_path / "l.parquet", [looping()])
    assert list(tmp_path.iterdir()) == []


def test_other_endings_are_refused(tmp_path: Path) -> None:
    for name in ("loops.xlsx", "loops", "jsonl"):
        with pytest.raises(ValueError, match=r"must end in one of \.parquet, \.csv, \.jsonl"):
            write_loops(tmp_path / name, [])


# SARIF


def sarif_of(tmp_path: Path, records: list[Audited], summary: Summary | None = None) -> Any:
    path = tmp_path / "loops.sarif"
    write_sarif(path, summary or summary_of(records), iter(records))
    return json.loads(path.read_bytes().decode("utf-8"))


def test_sarif_has_what_the_standard_asks(tmp_path: Path) -> None:
    records = hostile()
    log = sarif_of(tmp_path, records, hostile_summary())
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    for rule in rules:
        assert rule["help"]["text"]
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]+", rule["name"])
    assert len(run["results"]) == 2 * len(records)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("warning", "note")
        assert result["message"]["text"].isprintable()
        (location,) = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri)
        assert "region" not in location["physicalLocation"]  # no such files
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert len(notes) == len(HOSTILE)
    assert "region" not in notes[0]["locations"][0]["physicalLocation"]  # line 0: there is none


def test_sarif_points_into_plain_text(tmp_path: Path) -> None:
    text = "One.\nTwo. \U0001f600 " + "ab\n" * 50
    found = (finding(text, "ab\n"),)
    path = tmp_path / "a b.txt"
    path.write_text(text, encoding="utf-8")
    record = looping(file=str(path), texts=(("answer", text),), findings=found)
    (result,) = sarif_of(tmp_path, [record])["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"file://{tmp_path}/a%20b.txt"
    region = place["region"]
    assert (region["charOffset"], region["charLength"]) == (12, 150)
    assert (region["startLine"], region["startColumn"]) == (2, 8)
    assert (region["endLine"], region["endColumn"]) == (52, 1)


def test_sarif_messages_hold_no_links_and_no_arguments(tmp_path: Path) -> None:
    evil = "[x](http://example.com) {0} \\ "
    (result, _) = sarif_of(tmp_path, [looping(unit=evil)])["runs"][0]["results"]
    assert r"\[x\](http://example.com) {{0}} \\" in result["message"]["text"].replace("\\\\", "\\")


def test_sarif_without_findings(tmp_path: Path) -> None:
    assert sarif_of(tmp_path, [clean(0)])["runs"][0]["results"] == []


# Terminal


def test_table_has_the_figures() -> None:
    records = [*(looping(i, groups={"model": "small"}) for i in range(5)), *map(clean, range(5, 50))]
    table = terminal_table(summary_of(records), 110)
    lines = table.split("\n")
    assert lines[0].startswith("5 of 50 records loop: 10.0 % (95 % interval 4.35 to 21.4 %)")
    assert (
        lines[1] == "5 have literal repeats (any unit, 20 copies), which may not be loops: indentation and dashes count"
    )
    small = next(line for line in lines if line.startswith("small"))
    assert small.split() == ["small", "5", "100", "%", "56.6", "to", "100", "%", "4", "%", "20", "725"]
    assert next(line for line in lines if line.startswith("large")).split()[-3:] == ["-", "-", "0"]
    assert '"Wait, let me think." ×30 from 4 % p=20' in table


@pytest.mark.parametrize("width", [20, 33, 47, 60, 72, 80, 100, 200])
def test_table_fits_and_nothing_steers_the_terminal(width: int) -> None:
    records = [
        *hostile(),
        looping(9, "等一下，让我再想想。" * 3),
        looping(10, "e\u0301\u0302" * 9),
        looping(11, "\U0001f600 "),
    ]
    summary = summary_of(records, bad=tuple(hostile_summary().bad))
    summary.by = (HOSTILE[3],)
    plain = terminal_table(summary, width)
    for line in plain.split("\n"):
        assert columns(line) <= width
        assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in line)
    colours = re.sub(r"\x1b\[[0-9;]*m", "", terminal_table(summary, width, color=True))
    assert colours == plain


def test_table_of_many_groups_and_bad_records_is_short() -> None:
    summary = summary_of([clean(i) for i in range(100)], by=())
    summary.by = ("file",)
    summary.groups = {(f"f{i}",): Group(records=1) for i in range(100)}
    for i in range(1000):
        summary.add(BadRecord("x" if i < 900 else f"y{i}", i, f"cut at {i}"))
    table = terminal_table(summary, 80)
    assert "60 more groups" in table
    assert "1,000 bad records" in table
    assert "x: cut at 0 (900 times)" in table
    assert "96 more" in table
    assert len(table.split("\n")) < 60


def test_table_of_nothing() -> None:
    assert terminal_table(Summary({}), 80) == "0 records: nothing to audit"


def test_joiners_and_variation_selectors_are_letters_of_their_words() -> None:
    for word in ("می\u200cخواهم", "ශ්\u200dරී", "👩\u200d💻", "❤\ufe0f"):
        assert visible(word) == word
    assert columns("می\u200cخواهم") == 7
    for steering in ("\u202e", "\u2066", "\u200e", "\U000e0041", "\x1b", "\x9b", "\ud800", "\ufeff"):
        assert visible(f"a{steering}b") == "a\ufffdb"


@given(st.text(max_size=50), st.integers(1, 60))
def test_fit_fits(text: str, width: int) -> None:
    line = visible(text)
    assert columns(fit(line, width)) <= width
    assert line.count("\n") == 0
    if columns(line) <= width:
        assert fit(line, width) == line


def test_numbers_as_people_read_them() -> None:
    assert [percent(x) for x in (0, 1, 0.4, 0.03412, 0.000381, 1e-7, 0.99999)] == [
        "0 %", "100 %", "40.0 %", "3.41 %", "0.0381 %", "<0.001 %", ">99.9 %",
    ]  # fmt: skip
    assert [count(n) for n in (0, 999, 12345, 1_234_567, 999_999_999_999)] == [
        "0",
        "999",
        "12,345",
        "1.23 M",
        "1e+03 G",
    ]


# Files


WRITERS: dict[str, Callable[[Path, list[Audited]], None]] = {
    "r.html": lambda path, records: write_html(path, summary_of(records), records),
    "r.sarif": lambda path, records: write_sarif(path, summary_of(records), records),
    "r.jsonl": lambda path, records: write_loops(path, records),
    "r.csv": lambda path, records: write_loops(path, records),
    "r.parquet": lambda path, records: write_loops(path, records),
}


@pytest.mark.parametrize("name", WRITERS)
def test_full_disk_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    records = [looping(i, unit=f"{i * 7919} und so weiter, {os.urandom(40).hex()} ") for i in range(50)]
    path = tmp_path / name
    path.write_text("before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(LzsError, match=f"^cannot write .*{name}: {os.strerror(errno.EFBIG)}$"):
            WRITERS[name](path, records)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert path.read_text() == "before"
    WRITERS[name](path, records)
    assert path.stat().st_size > 1000


def test_an_error_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[Audited]:
        yield looping()
        raise KeyboardInterrupt

    for name in ("r.jsonl", "r.csv"):
        with pytest.raises(KeyboardInterrupt):
            write_loops(tmp_path / name, broken())
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none" / "r.csv", "No such file"), (tmp_path, "is a folder")):
        with pytest.raises(LzsError, match=reason), replacing(path):
            pass
    with pytest.raises(LzsError, match="No space left"), replacing("/dev/full") as file:
        file.write(b"x" * 100_000)


def test_replacing_keeps_links_and_modes(tmp_path: Path) -> None:
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)
    with replacing(link) as file:
        file.write(b"after")
        assert real.read_text() == "before"
    assert link.is_symlink()
    assert real.read_text() == "after"
    assert real.stat().st_mode & 0o777 == 0o640


def test_same_records_make_the_same_files(tmp_path: Path) -> None:
    records = [looping(i) for i in range(5)]
    for name, write in WRITERS.items():
        if name.endswith("parquet"):
            continue
        write(tmp_path / name, records)
        first = (tmp_path / name).read_bytes()
        write(tmp_path / name, records)
        assert (tmp_path / name).read_bytes() == first
