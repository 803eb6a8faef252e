"""The registry of reports: what `save`, the checks and the help come from."""

from pathlib import Path
from typing import Any

import pytest

from lzsampler import LzsError, save, table
from lzsampler.errors import MissingExtra
from lzsampler.reports.save import AUDIT, EVALUATION, Writer, check, described, write


@pytest.mark.parametrize("writers", [AUDIT, EVALUATION], ids=["audit", "evaluation"])
def test_every_writer_is_described(writers: dict[str, Writer]) -> None:
    for ending, writer in writers.items():
        assert ending.startswith(".")
        assert ending in described(writers)
        assert writer.help in described(writers)


def test_endings_with_one_meaning_stand_together() -> None:
    assert ".parquet .csv .jsonl (a row for each loop)" in described(AUDIT)


def test_a_report_is_saved_by_its_ending(tmp_path: Path) -> None:
    made = {".txt": Writer(write_note, "a note")}
    write(tmp_path / "n.TXT", made, "content")
    assert (tmp_path / "n.TXT").read_text() == "content"
    with pytest.raises(ValueError, match=r"cannot write .*n\.md: its name must end in \.txt"):
        write(tmp_path / "n.md", made, "content")
    with pytest.raises(LzsError, match=r"there is no folder .*none"):
        check(tmp_path / "none" / "n.txt", made)
    (tmp_path / "f.txt").mkdir()
    with pytest.raises(LzsError, match="it is a folder"):
        check(tmp_path / "f.txt", made)
    missing = {".x": Writer(write_note, "a note", needs="no_such_package")}
    with pytest.raises(MissingExtra, match="without no_such_package: pip install no_such_package"):
        check(tmp_path / "n.x", missing)


def test_other_things_have_no_report(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="result must be an Audit, Results or Costs, got 'text'"):
        save("text", tmp_path / "n.html")
    with pytest.raises(TypeError, match="result must be an Audit, Results or Costs, got 7"):
        table(7)


def test_names_that_no_file_can_have_are_one_line(tmp_path: Path) -> None:
    for name in ("x" * 300 + ".txt", "a\0b.txt", "\ud800.txt"):
        with pytest.raises(LzsError, match=r"^cannot write "):
            check(tmp_path / name, {".txt": Writer(write_note, "a note")})
    with pytest.raises(TypeError, match="path must be the name of a file, got None"):
        check(None, AUDIT)  # type: ignore[arg-type]


def write_note(path: Path, content: Any) -> None:
    path.write_text(content)
