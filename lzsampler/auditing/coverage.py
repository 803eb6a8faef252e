"""`Coverage`: counts the files and records that an audit read, and what it could not read, by file and reason."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..util.typed import checked, of
from .records import BadRecord, FileRead

LISTED = 1_000  # maximum length of `Coverage.files` and of `Coverage.unread`
NAMED = 5  # maximum length of `Passed.files`

_NUMBER = re.compile(r"\d[\d,.]*")


@dataclass
class FileCount:
    """The format of a file, the number of its records that were read, and the number of its bad records."""

    format: str
    records: int = 0
    bad: int = 0


@dataclass
class Unread:
    """The parts of a file that could not be read for one reason.

    ``line``: the line of the first such part. ``count``: the number of parts.
    """

    line: int
    reason: str
    count: int = 0


@dataclass
class Passed:
    """The number of files that were skipped for one reason, and the names of the first `NAMED` files."""

    count: int = 0
    files: list[str] = field(default_factory=list)


@dataclass
class Coverage:
    """The files that an audit read, and what it did not read.

    ``formats``: [number of files, number of records] of each format. ``files``: the counts of the first 1,000 files.
    ``unread``: the first 1,000 pairs of a file and a reason. Parts of the file could not be read for this reason.
    Reasons that differ only in numbers count as one. ``unread_rest``: the number of bad records not in ``unread``.
    ``passed``: the skipped files of folders, by reason.
    """

    formats: dict[str, list[int]] = field(default_factory=dict)
    files: dict[str, FileCount] = field(default_factory=dict)
    unread: dict[tuple[str, str], Unread] = field(default_factory=dict)
    unread_rest: int = 0
    passed: dict[str, Passed] = field(default_factory=dict)
    _format: str = field(default="", repr=False, compare=False)
    _file: FileCount | None = field(default=None, repr=False, compare=False)

    def begin(self, read: FileRead) -> None:
        """Count a file unless it is counted already. The next calls of `record` are about this file."""
        counts = self.formats.setdefault(read.format, [0, 0])
        counts[0] += not read.again
        self._format = read.format
        self._file = self.files.get(read.file)
        if self._file is None and len(self.files) < LISTED:
            self._file = self.files[read.file] = FileCount(read.format)

    def record(self) -> None:
        """Count a record of the file that `begin` was last called with."""
        if self._format:
            self.formats[self._format][1] += 1
            if self._file is not None:
                self._file.records += 1

    def bad(self, bad: BadRecord) -> None:
        """Count a part of a file that could not be read."""
        if bad.file in self.files:
            self.files[bad.file].bad += 1
        self._count(bad.file, bad.line, bad.reason, 1)

    def pass_over(self, file: str, reason: str) -> None:
        """Count a skipped file of a folder."""
        passed = self.passed.setdefault(reason, Passed())
        passed.count += 1
        if len(passed.files) < NAMED:
            passed.files.append(file)

    def merge(self, other: "Coverage") -> None:
        """Add the counts of ``other``, whose files come after the files counted here."""
        for format, (files, records) in other.formats.items():
            counts = self.formats.setdefault(format, [0, 0])
            counts[0] += files
            counts[1] += records
        for file, count in other.files.items():
            if file in self.files:
                self.files[file].records += count.records
                self.files[file].bad += count.bad
            elif len(self.files) < LISTED:
                self.files[file] = FileCount(count.format, count.records, count.bad)
        for (file, _), unread in other.unread.items():
            self._count(file, unread.line, unread.reason, unread.count)
        self.unread_rest += other.unread_rest
        for reason, passed in other.passed.items():
            mine = self.passed.setdefault(reason, Passed())
            mine.count += passed.count
            mine.files += passed.files[: NAMED - len(mine.files)]

    def _count(self, file: str, line: int, reason: str, n: int) -> None:
        key = (file, _NUMBER.sub("#", reason))
        if key not in self.unread:
            if len(self.unread) >= LISTED:
                self.unread_rest += n
                return
            self.unread[key] = Unread(line, reason)
        self.unread[key].count += n

    @property
    def n_files(self) -> int:
        """The number of files that were read."""
        return sum(files for files, _ in self.formats.values())

    def to_json(self) -> dict[str, Any]:
        """Return the entries "formats", "files", "unread" and "passed_over" of summary.json (docs/audit_summary.md)."""
        return {
            "formats": {
                format: {"files": files, "records": records}
                for format, (files, records) in sorted(self.formats.items())
            },
            "files": [
                {"file": file, "format": count.format, "records": count.records, "bad_records": count.bad}
                for file, count in self.files.items()
            ],
            "unread": [
                {"file": file, "reason": unread.reason, "count": unread.count, "line": unread.line or None}
                for (file, _), unread in self.unread.items()
            ],
            "passed_over": [
                {"reason": reason, "count": passed.count, "files": passed.files}
                for reason, passed in self.passed.items()
            ],
        }

    def pack(self) -> dict[str, Any]:
        """Return all counts, ready for JSON and for `unpack`."""
        return {
            "formats": self.formats,
            "files": [[file, count.format, count.records, count.bad] for file, count in self.files.items()],
            "unread": [[file, u.line, u.reason, u.count] for (file, _), u in self.unread.items()],
            "unread_rest": self.unread_rest,
            "passed": [[reason, passed.count, passed.files] for reason, passed in self.passed.items()],
        }


def unpack(packed: Mapping[str, Any]) -> Coverage:
    """Return the `Coverage` that was packed by `Coverage.pack`."""
    formats = {format: [files, records] for format, (files, records) in packed["formats"].items()}
    coverage = Coverage(formats=of(formats, dict[str, list[int]]))
    coverage.files = {of(file, str): checked(FileCount(*count)) for file, *count in packed["files"]}
    for file, line, reason, count in packed["unread"]:
        coverage._count(of(file, str), of(line, int), of(reason, str), of(count, int))
    coverage.unread_rest += of(packed["unread_rest"], int)
    coverage.passed = {of(reason, str): checked(Passed(*passed)) for reason, *passed in packed["passed"]}
    return coverage
