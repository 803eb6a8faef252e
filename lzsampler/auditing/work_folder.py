"""`WorkFolder`: the results of an audit on the disk, with a part for each task.

A folder contains `audit.json`, the manifest, with the files and the rules of the audit. The part of task n is
`n.jsonl.gz` (records) and `n.json` (summary). Files are never half written. `n.json` is written last, so its presence
shows that the task is done. Everything is JSON, so reading a folder from somebody else runs no code.
"""

import gzip
import json
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from .. import __version__
from .._values import counted
from ..errors import ArgumentError, LzsError
from ..util.files import LOCKS, UNFINISHED, replacing
from ..util.typed import checked, of
from . import coverage
from .clusters import Clusters
from .metrics import Sums
from .records import Audited, BadRecord, FileRead, Finding, PassedOver, Rule, TurnsRead
from .summary import Group, Summary

VERSION = 7  # version of the format of the folder's files
MANIFEST = "audit.json"
_OUTCOMES = 1000  # number of outcomes on a line
_PIECE = 1 << 20  # number of characters of a text that become JSON in one step

_T = TypeVar("_T")
_FINDING = [field.name for field in fields(Finding)]
_finding = attrgetter(*_FINDING)
_AUDITED = tuple(field.name for field in fields(Audited))
_LISTS = ("starts", "periods", "clusters")
_GROUP = [field.name for field in fields(Group)]


class Outcome(NamedTuple):
    """What `compare` needs of every record, looping or not.

    ``stuck`` is as in `Audited`, and ``model`` is from the record's groups ("" if missing). The fields from ``named``
    to ``number`` are as in `Record`.
    """

    file: str
    id: str
    looping: bool
    stuck: bool = False
    named: bool = True
    conversation: str = ""
    counterpart: str = ""
    number: int = 0
    model: str = ""


class WorkFolder:
    """A folder with the results of an audit. ``lasting``: whether the files must survive a power cut."""

    def __init__(self, path: Path, *, lasting: bool) -> None:
        self.path, self.lasting = path, lasting

    # -- the manifest --

    def refuse_other(self) -> None:
        """Raise LzsError if the folder exists and contains something other than an audit."""
        if not self.path.is_dir() or self.is_one():
            return
        if any(file.name not in LOCKS and not file.name.endswith(UNFINISHED) for file in self.path.iterdir()):
            raise LzsError(f"{self.path} is not empty and contains no audit: choose another folder")

    def begin(self, manifest: Mapping[str, Any]) -> None:
        """Make the folder and write the manifest. If the folder has a manifest, check that it is the same.

        ``manifest``: "tasks" (number of tasks), "settings", "inputs" (identity of each file's content), "cuts" (a hash
        of how the files are divided into tasks), "bad" (rows of `BadRecord`) and "passed" (packed counts of the skipped
        files). If the folder belongs to another audit, LzsError says what differs. OSError if the folder cannot be
        made.
        """
        wanted = json.loads(json.dumps({"version": VERSION, "lzsampler": __version__, **manifest}))
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.is_one():
            self.refuse_other()
            self.tidy()
            with self._replacing(MANIFEST) as file:
                file.write(json.dumps(wanted, indent=1).encode())
            return
        change = _difference(self.manifest(), wanted)
        if change:
            raise LzsError(f"{self.path} contains another audit ({change}): choose another folder, or delete this one")
        self.tidy()

    def tidy(self) -> None:
        """Remove the unfinished files of killed processes. No process may be using the folder."""
        for left in self.path.glob(f"*{UNFINISHED}"):
            left.unlink(missing_ok=True)

    def is_one(self) -> bool:
        """Return whether the folder contains an audit, finished or not."""
        return (self.path / MANIFEST).is_file()

    def manifest(self) -> dict[str, Any]:
        """Return the manifest that `begin` wrote. LzsError if the file is damaged or of another version."""
        with self._intact(MANIFEST) as read:
            manifest: dict[str, Any] = dict(read)
            version = manifest["version"]
        if version != VERSION:
            raise LzsError(
                f"{self.path} was made by another version of lzs audit (folder format {version}, this one reads "
                f"{VERSION}): choose another folder, or delete this one and audit again"
            )
        with _damaged(self.path / MANIFEST):
            _ = (
                of(manifest["tasks"], int),
                dict(manifest["inputs"]),
                unpack_bad(manifest["bad"]),
                manifest["cuts"],
                coverage.unpack(manifest["passed"]),
            )
            _ = dict(manifest["settings"]["rules"]), of(manifest["settings"]["by"], list[str])
        return manifest

    # -- parts --

    def is_done(self, task: int) -> bool:
        """Return whether the part of a task exists, and no shard of it was skipped because a worker died."""
        if not (self.path / f"{task:06}.json").exists():
            return False
        with self._intact(f"{task:06}.json") as part:
            return not part["skipped"]

    def records(self, task: int) -> int:
        """Return the number of records in a finished part."""
        with self._intact(f"{task:06}.json") as part:
            return int(part["summary"]["total"]["records"])

    @contextmanager
    def part(self, task: int, summary: Summary, *, skipped: int) -> Iterator["PartWriter"]:
        """Write the part of a task. In the ``with`` block, add the records to the writer, which updates ``summary``.

        ``skipped``: the number of shards that are left out. If the block raises, nothing of the part remains.
        """
        with self._replacing(f"{task:06}.jsonl.gz") as file, gzip.GzipFile("", "wb", 1, file, mtime=0) as compressed:
            writer = PartWriter(compressed, summary)
            yield writer
            writer.flush()
        with self._replacing(f"{task:06}.json") as file:
            file.write(json.dumps({"skipped": skipped, "summary": _pack_summary(summary)}).encode())

    def summaries(self) -> Iterator[Summary]:
        """Yield the summaries of all tasks in order. LzsError if a part is missing."""
        manifest = self.manifest()
        tasks, n_keys = manifest["tasks"], len(manifest["settings"]["by"])
        numbers = [file.stem for file in self.path.glob("*.json") if file.stem.isdecimal()]
        missing = tasks - sum(int(number) < tasks for number in numbers)
        if missing:
            parts = f"{missing:,} of {counted(tasks, 'part is', 'parts are')} missing"
            raise LzsError(f"{self.path} is not complete, {parts}: finish the audit first")
        for task in range(tasks):
            with self._intact(f"{task:06}.json") as part:
                summary = _unpack_summary(part["summary"])
                if any(len(key) != n_keys for key in summary.groups):
                    raise ArgumentError("a group has another number of keys than the audit")
            yield summary

    def audited(self) -> Iterator[Audited]:
        """Yield the records that have findings, in the order of their files."""
        yield from self._rows('{"audited"', lambda row: [_unpack(row["audited"])])

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the `Outcome` of every record, in the order of the files."""
        yield from self._rows('{"outcomes"', lambda row: [checked(Outcome(*outcome)) for outcome in row["outcomes"]])

    def _rows(self, start: str, unpacked: Callable[[Any], list[_T]]) -> Iterator[_T]:
        for task in range(self.manifest()["tasks"]):
            path = self.path / f"{task:06}.jsonl.gz"
            try:
                if path.stat().st_size == 0:  # gzip would read an empty file as a file without lines.
                    raise EOFError
                with gzip.open(path, "rt", encoding="ascii") as lines:
                    for line in lines:
                        if line.startswith(start):
                            with _damaged(path):
                                rows = unpacked(json.loads(line, parse_constant=_refuse))
                            del line  # Otherwise a long text would be in memory twice.
                            yield from rows
            except (EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
                raise LzsError(f"{path} is damaged: delete the folder and audit again") from error

    @contextmanager
    def _intact(self, name: str) -> Iterator[Any]:
        """Read a JSON file. If the file or its content is not as the ``with`` block expects, LzsError is raised."""
        with _damaged(self.path / name):
            yield json.loads((self.path / name).read_bytes(), parse_constant=_refuse)

    def _replacing(self, name: str) -> AbstractContextManager[BinaryIO]:
        return replacing(self.path / name, durable=self.lasting)


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise LzsError(f"{path} is damaged: delete the folder and audit again") from error


class PartWriter:
    """Writes the records of a part and adds them to its summary."""

    def __init__(self, file: Any, summary: Summary) -> None:
        self._file, self.summary = file, summary
        self._outcomes: list[Outcome] = []

    def add(self, item: Audited | BadRecord | FileRead | PassedOver | TurnsRead) -> None:
        """Count a record, and write it if it has findings."""
        self.summary.add(item)
        if not isinstance(item, Audited):
            return
        if item.is_conversation:
            self._write_audited(item)
            return
        about = item.named, item.conversation, item.counterpart, item.number, item.groups.get("model", "")
        self._outcomes.append(Outcome(item.file, item.id, item.looping, item.stuck, *about))
        if item.findings:
            self._write_audited(item)
        if len(self._outcomes) >= _OUTCOMES:
            self.flush()

    def flush(self) -> None:
        """Write the outcomes that are still in memory."""
        if self._outcomes:
            self._write({"outcomes": self._outcomes})
            self._outcomes = []

    def _write(self, row: dict[str, Any]) -> None:
        self._file.write(_dumped(row) + b"\n")

    def _write_audited(self, item: Audited) -> None:
        """Write a record. A long text is written in pieces, since all of its JSON would double the memory."""
        if sum(len(text) for _, text in item.texts) <= _PIECE:
            self._write({"audited": _pack(item)})
            return
        packed, place = _pack(replace(item, texts=())), _AUDITED.index("texts")
        self._file.write(b'{"audited":' + _dumped(packed[:place])[:-1] + b",[")
        for number, (field, text) in enumerate(item.texts):
            self._file.write((b"," if number else b"") + b'["' + field.encode("ascii") + b'","')
            for at in range(0, len(text), _PIECE):
                self._file.write(_dumped(text[at : at + _PIECE])[1:-1])
            self._file.write(b'"]')
        self._file.write(b"]," + _dumped(packed[place + 1 :])[1:] + b"}\n")


def _refuse(constant: str) -> None:
    """Refuse Infinity and NaN, which Python's JSON reader accepts."""
    raise ArgumentError(f"{constant} is not a number")


def _dumped(value: Any) -> bytes:
    """Return JSON in ASCII, since texts may contain lone surrogates, which UTF-8 cannot encode."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe the first difference between two manifests; "" if there is none."""
    if old.get("lzsampler") != new["lzsampler"]:
        return f"it was made by lzsampler {old.get('lzsampler')}, this is {new['lzsampler']}"
    for name in sorted({*old["settings"], *new["settings"]}):
        before, now = (settings["settings"].get(name) for settings in (old, new))
        if before != now:
            return f"{name} was {json.dumps(before)}, now {json.dumps(now)}"
    for file in sorted({*old["inputs"], *new["inputs"]}):
        before, now = (settings["inputs"].get(file) for settings in (old, new))
        if before != now:
            return f"{file} " + ("is new" if before is None else "is gone" if now is None else "has changed")
    return "" if old["cuts"] == new["cuts"] and old["tasks"] == new["tasks"] else "its files are divided in another way"


# -- records and summaries as JSON --


def _pack(audited: Audited) -> list[Any]:
    """Return the fields of a record in order, ready for JSON."""
    values = {name: getattr(audited, name) for name in _AUDITED}
    values["groups"], values["metrics"] = dict(audited.groups), dict(audited.metrics)
    values["findings"] = [_finding(finding) for finding in audited.findings]
    return list(values.values())


def _unpack(row: list[Any]) -> Audited:
    values = dict(zip(_AUDITED, row, strict=True))
    values["findings"] = tuple(checked(Finding(*finding)) for finding in values["findings"])
    values["texts"] = tuple((field, text) for field, text in values["texts"])
    return checked(Audited(**values))


def _pack_summary(summary: Summary) -> dict[str, Any]:
    return {
        "total": _pack_group(summary.total),
        "groups": [[key, _pack_group(group)] for key, group in summary.groups.items()],
        "rule_counts": summary.rule_counts,
        "metrics": summary.metrics,
        "measured": summary.measured,
        "points": summary.points,
        "point_keys": summary.point_keys,
        "worst": [_pack(audited) for audited in summary.worst],
        "turn_loops": summary.turn_loops,
        "turn_conversations": summary.turn_conversations,
        "worst_turns": [_pack(audited) for audited in summary.worst_turns],
        "bad_records": summary.bad_records,
        "bad": [astuple(bad) for bad in summary.bad],
        "coverage": summary.coverage.pack(),
    }


def _unpack_summary(row: dict[str, Any]) -> Summary:
    return Summary(
        rules={},
        total=_unpack_group(row["total"]),
        groups={of(tuple(key), tuple[str, ...]): _unpack_group(group) for key, group in row["groups"]},
        rule_counts=of(row["rule_counts"], dict[Rule, int]),
        sums=_sums(of(row["metrics"], dict[str, float]), of(row["measured"], dict[str, int])),
        points=of([(period, copies) for period, copies in row["points"]], list[tuple[int, float]]),
        point_keys=list(array("Q", row["point_keys"])),
        worst=[_unpack(audited) for audited in row["worst"]],
        turn_loops=of(row["turn_loops"], int),
        turn_conversations=of(row["turn_conversations"], int),
        worst_turns=[_unpack(audited) for audited in row["worst_turns"]],
        bad_records=of(row["bad_records"], int),
        bad=unpack_bad(row["bad"]),
        coverage=coverage.unpack(row["coverage"]),
    )


def _sums(sums: dict[str, float], counts: dict[str, int]) -> Sums:
    if sums.keys() != counts.keys() or min(counts.values(), default=1) < 1:
        raise ArgumentError("the sums and the counts are of different metrics")
    return Sums(sums, counts)


def unpack_bad(rows: Iterable[Any]) -> list[BadRecord]:
    """Return the bad records that `dataclasses.astuple` and JSON turned into ``rows``."""
    return [checked(BadRecord(*row)) for row in rows]


def _pack_group(group: Group) -> dict[str, Any]:
    packed = {name: getattr(group, name) for name in _GROUP}
    lists = {"starts": list(group.starts), "periods": list(group.periods), "clusters": group.clusters.pack()}
    return {**packed, **lists}


def _unpack_group(row: dict[str, Any]) -> Group:
    group = Group(**{name: of(row[name], int) for name in _GROUP if name not in _LISTS})
    group.clusters = Clusters.unpack(row["clusters"])
    group.starts.extend(row["starts"])
    group.periods.extend(row["periods"])
    return group
