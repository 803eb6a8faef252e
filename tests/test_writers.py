"""The registry of reports: what `save`, the checks and the help come from, and that each function named is there."""

from pathlib import Path

import pytest

from lzsampler import LzsError
from lzsampler.errors import MissingExtra
from lzsampler.reports import writers


@pytest.mark.parametrize("table", [writers.AUDIT, writers.EVALUATION], ids=["audit", "evaluation"])
def test_every_writer_is_there_and_described(table: dict[str, writers.Writer]) -> None:
    for ending, writer in table.items():
        assert ending.startswith(".")
        assert callable(writers.function(writer.function))
        assert ending in writers.described(table)
        assert writer.help in writers.described(table)
    for name in (writers.TABLE, writers.ARROW, writers.FRAME):
        assert callable(writers.function(name))


def test_endings_with_one_meaning_stand_together() -> None:
    assert ".parquet .csv .jsonl (a row for each loop)" in writers.described(writers.AUDIT)


def test_a_report_is_saved_by_its_ending(tmp_path: Path) -> None:
    made = {".txt": writers.Writer("test_writers:write_note", "a note")}
    writers.save(tmp_path / "n.TXT", made, "content")
    assert (tmp_path / "n.TXT").read_text() == "content"
    with pytest.raises(ValueError, match=r"cannot write .*n\.md: its name must end in \.txt"):
        writers.save(tmp_path / "n.md", made, "content")
    with pytest.raises(LzsError, match=r"there is no folder .*none"):
        writers.check(tmp_path / "none" / "n.txt", made)
    (tmp_path / "f.txt").mkdir()
    with pytest.raises(LzsError, match="it is a folder"):
        writers.check(tmp_path / "f.txt", made)
    missing = {".x": writers.Writer("test_writers:write_note", "a note", needs="no_such_package")}
    with pytest.raises(MissingExtra, match="without no_such_package: pip install no_such_package"):
        writers.check(tmp_path / "n.x", missing)


def write_note(path: Path, content: str) -> None:
    path.write_text(content)
