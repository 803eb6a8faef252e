"""`audit_files`: audits files of any size in several processes, in memory that does not grow with the files.

Files are cut into shards, and shards are combined into tasks of about 4 MB. Each task writes its result as a part in a
work folder. The parts are merged in the order of the files, so the summary does not depend on the timing of the
processes.
"""

import glob
import hashlib
import json
import os
import shutil
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._check import integer
from .._values import shown
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..models import find_model
from ..util.cores import usable_cores
from ..util.files import TemporaryFolder, locked
from . import coverage
from .findings import audit_record
from .gguf_tokenizer import tokenizer_of
from .loop_rows import arrow_table, data_frame
from .reading.read import read
from .reading.shard import Shard, find
from .records import Audited, BadRecord, FileRead, PassedOver, Record, TurnsRead
from .rules import RuleOptions, Rules, names, takes_rules
from .summary import Summary
from .turns import Turns
from .work_folder import Outcome, WorkFolder, unpack_bad
from .workers import Work, run

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from typing_extensions import Unpack

STDIN = "-"
SHARD_BYTES = TASK_BYTES = 4 << 20  # bytes; small tasks let the workers end at about the same time
_TASK_SHARDS = 1000
_MAX_WORKERS = 1024
_COPIED_AT_ONCE = 1 << 20  # number of bytes of stdin that are copied in one step


class Progress(NamedTuple):
    """The progress of an audit.

    ``bytes``: how many of the ``total_bytes`` of the files are audited. A compressed file counts by its size on the
    disk. ``records``: the number of records that this run audited. ``seconds``: the time since the start. ``resumed``:
    the number of bytes that an earlier run audited.
    """

    bytes: int
    total_bytes: int
    records: int
    seconds: float
    resumed: int


class Audit:
    """The result of `audit_files`: the ``summary``. A loop over the object yields the records that have findings.

    The records are on the disk, in the order of their files, and each iteration reads them again. Without ``resume``,
    the records are in a temporary folder, which is removed with this object or at the end of a ``with`` block. Without
    the folder, only the summary remains, and everything else raises LzsError.
    """

    def __init__(self, summary: Summary, folder: WorkFolder, temporary: TemporaryFolder | None) -> None:
        self.summary = summary
        self._folder, self._temporary = folder, temporary

    def __iter__(self) -> Iterator[Audited]:
        return self._open().audited()

    def outcomes(self) -> Iterator[Outcome]:
        """Yield the `Outcome` of every record, looping or not, in the order of the files."""
        return self._open().outcomes()

    def _open(self) -> WorkFolder:
        if self._temporary is not None and not self._temporary.is_open:
            raise LzsError("this audit is closed: use it inside its with block, or keep its records by resume=FOLDER")
        return self._folder

    def to_arrow(self) -> "pyarrow.Table":
        """Return a table with a row for each finding (docs/report.md). MissingExtra if pyarrow is not installed."""
        return arrow_table(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a data frame with a row for each finding (docs/report.md). MissingExtra if pandas is not installed."""
        return data_frame(self)

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._temporary is not None:
            self._temporary.close()

    def __enter__(self) -> "Audit":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@takes_rules
def audit_files(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,
    field: str | None = None,
    by: str | Sequence[str] = (),
    workers: int | None = None,
    tokenizer: str | Path | None = None,
    resume: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    without: str | Path | Iterable[str | Path] = (),
    **rules: "Unpack[RuleOptions]",
) -> Audit:
    """Audit transcripts in files, folders and glob patterns ("-" is stdin). Return the summary and the findings.

    ``format``: one of `lzsampler.auditing.formats.FORMATS`; None detects the format of each file. ``field``: the path
    of the text within a row, if a JSON or Parquet file has none of the known formats. ``by``: one or more keys that
    group the summary: "file", or a key of the rows ("model", "temperature", "eval.kind", ...). The summary's ``absent``
    lists the keys that no record has. ``workers``: number of processes; None means a process for each core.

    ``tokenizer``: a GGUF file (its vocabulary is enough) or the name of a model; the level "token" needs a tokenizer.
    ``resume``: a folder for the finished work. If a run is interrupted, the same call continues the run.
    ``progress``: a function that is called after each task of about 4 MB. ``without``: files and folders to leave out,
    such as reports. ``rules``: the fields of `Rules`.

    The summary lists the parts of files that could not be read, for example because a package is missing. It also lists
    the files of a folder that were skipped. Raises FileNotFoundError for a path that does not exist, and ValueError for
    bad arguments. Raises LzsError for a ``resume`` folder of another audit, a folder that cannot be written to, or a
    full disk. Raises MissingExtra if ``tokenizer`` needs a package that is not installed.
    """
    begun = time.monotonic()
    chosen = Rules(**rules)  # type: ignore[arg-type] # Rules turns a single value into a tuple
    chosen.check_tokenizer(tokenizer)
    settings = _Settings(chosen, names(by), None if tokenizer is None else find_model(tokenizer))
    processes = integer("workers", usable_cores() if workers is None else workers, 1, _MAX_WORKERS)
    given = names(paths)
    for argument, value in (("format", format), ("field", field)):
        if not isinstance(value, str | None):
            raise ArgumentTypeError(f"{argument} must be a string, got {shown(value)}")
    if progress is not None and not callable(progress):
        raise ArgumentTypeError(f"progress must be a function, got {shown(progress)}")
    for name in given:
        if name != STDIN and not os.path.lexists(name) and not glob.has_magic(name):
            raise FileNotFoundError(f"{name} does not exist: give files, folders or patterns of files")
    if resume is not None and STDIN in given:
        raise ArgumentError("resume does not work with stdin, which cannot be read twice: save it to a file first")
    tokenizer_of(settings.tokenizer)  # If the tokenizer cannot be loaded, the error is raised here and not in a worker.
    with _copy_of_stdin(STDIN in given) as copy:
        passed: list[BadRecord] = []
        shards, bad = find(
            given,
            format=format,
            field=field,
            by=settings.by,
            tokenizer=settings.tokenizer,
            shard_bytes=SHARD_BYTES,
            passed=passed,
            turns=chosen.turns,
            stdin=copy,
        )
        left_out = [os.path.realpath(path) for path in (*names(without), *([] if resume is None else [resume]))]
        shards = [shard for shard in shards if not _is_in(shard.file, left_out)]
        bad = [record for record in bad if not _is_in(record.file, left_out)]
        passed = [record for record in passed if not _is_in(record.file, left_out)]
        tasks = _tasks(shards)
        manifest = {
            "tasks": len(tasks),
            "settings": settings.to_json(),
            "inputs": {shard.file: _identity(shard.path or shard.file) for shard in shards},
            "cuts": hashlib.sha256(repr(tasks).encode("utf-8", "surrogatepass")).hexdigest(),
            "bad": [astuple(record) for record in bad],
            "passed": _passed(passed),
        }
        temporary = None
        if resume is not None:
            folder = WorkFolder(Path(resume), lasting=True)
        else:
            temporary = TemporaryFolder()
            folder = WorkFolder(temporary.path, lasting=False)
            weakref.finalize(folder, temporary.close)  # An iterator of the records may outlive the Audit.
        try:
            folder.refuse_other()  # The check must come before `locked`, which writes a lock file into the folder.
            with locked(folder.path):
                folder.begin(manifest)
                try:
                    _work(folder, settings, tasks, processes, begun, progress)
                finally:
                    folder.tidy()
            return Audit(_merged(folder), folder, temporary)
        except BaseException:  # Ctrl-C is not an Exception.
            if temporary is not None:
                temporary.close()
            raise


@contextmanager
def _copy_of_stdin(wanted: bool) -> Iterator[Path | None]:
    """Yield the path of a copy of standard input for the workers. The copy is removed at the end."""
    if not wanted:
        yield None
        return
    with TemporaryFolder() as folder:
        path = folder.path / "stdin"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, _COPIED_AT_ONCE)
        yield path


def load(folder: str | Path) -> Audit:
    """Load the audit that `audit_files(..., resume=folder)` wrote. LzsError if the audit is missing or incomplete."""
    work = WorkFolder(Path(folder), lasting=True)
    if not is_audit(folder):
        raise LzsError(f"{folder} contains no audit: give the folder that --resume (resume=) wrote")
    return Audit(_merged(work), work, None)


def is_audit(folder: str | Path) -> bool:
    """Tell whether a folder contains an audit that ``resume`` can continue. The audit may be finished."""
    return WorkFolder(Path(folder), lasting=True).is_one()


# -- planning the tasks --


@dataclass(frozen=True)
class _Settings:
    rules: Rules
    by: tuple[str, ...]
    tokenizer: Path | None

    def to_json(self) -> dict[str, Any]:
        tokenizer = None if self.tokenizer is None else [str(self.tokenizer), *_identity(self.tokenizer)]
        rules: dict[str, Any] = json.loads(json.dumps(asdict(self.rules)))
        return {"rules": rules, "by": list(self.by), "tokenizer": tokenizer}


def _passed(records: list[BadRecord]) -> dict[str, Any]:
    """Return a packed `Coverage` that counts the skipped files by reason."""
    counts = coverage.Coverage()
    for record in records:
        counts.pass_over(record.file, record.reason)
    return counts.pack()


class _Task(NamedTuple):
    number: int
    size: int  # sum of the shards' sizes in bytes
    shards: tuple[tuple[int, Shard], ...]  # number of each shard among all shards, and the shard


def _identity(path: str | Path) -> list[int]:
    """Return what identifies the content of a file: its size in bytes and its modification time in ns."""
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def _is_in(file: str, left_out: list[str]) -> bool:
    """Return whether ``left_out`` (real paths) contains a file, or a folder that contains the file."""
    path = os.path.realpath(file) if left_out else ""
    return any(path == other or path.startswith(other + os.sep) for other in left_out)


def _tasks(shards: list[Shard]) -> list[_Task]:
    tasks: list[_Task] = []
    current: list[tuple[int, Shard]] = []
    size = 0
    for number, shard in enumerate(shards):
        if current and (size + shard.size > TASK_BYTES or len(current) >= _TASK_SHARDS):
            tasks.append(_Task(len(tasks), size, tuple(current)))
            current, size = [], 0
        current.append((number, shard))
        size += shard.size
    if current:
        tasks.append(_Task(len(tasks), size, tuple(current)))
    return tasks


# -- running the tasks --


def _work(
    folder: WorkFolder,
    settings: _Settings,
    tasks: list[_Task],
    processes: int,
    begun: float,
    progress: Callable[[Progress], None] | None,
) -> None:
    todo = [task for task in tasks if not folder.is_done(task.number)]
    total, left = sum(task.size for task in tasks), sum(task.size for task in todo)
    done = resumed = total - left
    records = 0
    for size, n in run(Work(_audit_task, (folder, settings)), todo, processes):
        done, records = done + size, records + n
        if progress is not None:
            progress(Progress(done, total, records, time.monotonic() - begun, resumed))


def _audit_task(
    shared: tuple[WorkFolder, _Settings], task: _Task, skipped: Mapping[int, str], start: Callable[[int], None]
) -> tuple[int, int]:
    """Audit a task in a worker and write its part. Return the task's bytes and number of records."""
    folder, settings = shared
    summary = Summary({}, settings.by)
    with folder.part(task.number, summary, skipped=len(skipped)) as part:
        for number, shard in task.shards:
            if number in skipped:
                part.add(BadRecord(shard.file, 0, f"{_where(shard)} was not audited: {skipped[number]}"))
                continue
            start(number)
            if shard.start > 0:
                part.add(FileRead(shard.file, shard.described, again=True))
            for item in _audited(shard, settings):
                part.add(item)
    return task.size, summary.total.records


def _audited(shard: Shard, settings: _Settings) -> Iterator[Audited | BadRecord | FileRead | PassedOver | TurnsRead]:
    tokenizer = tokenizer_of(settings.tokenizer)
    turns = Turns(settings.rules) if settings.rules.turns else None
    try:
        for item in read(shard):
            if not isinstance(item, Record):
                yield item
                continue
            if turns is not None:
                turns.add(item)
            if item.fields:
                yield audit_record(item, settings.rules, tokenizer)
        if turns is not None and "LZR012" in settings.rules.reported:
            yield TurnsRead(turns.conversations)
            yield from turns.loops()
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "out of memory"
        yield BadRecord(shard.file, 0, f"the rest of {_where(shard)} was not audited: {reason}")


def _where(shard: Shard) -> str:
    return f"the part from {shard.start:,} to {shard.end:,}" if shard.start else "it"


def _merged(folder: WorkFolder) -> Summary:
    manifest = folder.manifest()
    summary = Summary(manifest["settings"]["rules"], tuple(manifest["settings"]["by"]))
    for bad in unpack_bad(manifest["bad"]):
        summary.add(bad)
    summary.coverage.merge(coverage.unpack(manifest["passed"]))
    for part in folder.summaries():
        summary.merge(part)
    return summary
