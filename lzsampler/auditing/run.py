"""`audit_files`: the audit of files of any size, shared out to processes, in memory that does not grow with them.

Shards of files are put together to tasks of about 4 MB. A task's result is a part in a work folder; the summary is
merged from the parts in the order of the files, so that it does not depend on who did what, or when, or in which run.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from .._check import integer
from ..errors import LzsError
from ..util.files import locked, replacing
from .findings import audit_record
from .pool import Work, run
from .reading.read import read
from .reading.shard import Shard, find
from .records import Audited, BadRecord
from .rules import Rules
from .store import Outcome, WorkFolder, unpack_bad
from .summary import Summary
from .tokens import tokenizer_of

ENDINGS = (".html", ".parquet", ".csv", ".jsonl", ".json", ".sarif")  # of reports
SHARD_BYTES = TASK_BYTES = 4 << 20  # small enough for workers to end at about the same time
_TASK_SHARDS = 1000  # small files in a task
_MAX_WORKERS = 1024


class Progress(NamedTuple):
    """How far an audit is: bytes of files (compressed ones as they are), records, and seconds since it began.

    ``resumed``: bytes that an earlier run has done.
    """

    bytes: int
    total_bytes: int
    records: int
    seconds: float
    resumed: int


class Audit:
    """The result of `audit_files`: its ``summary``, and by iteration the records that have findings.

    The records are on the disk, in the order of their files; each iteration reads them anew. Without ``resume`` they
    are in a temporary folder that goes with this object, or at the end of a ``with`` block.
    """

    def __init__(self, summary: Summary, folder: WorkFolder, temporary: "weakref.finalize[Any, Any] | None") -> None:
        self.summary = summary
        self._folder, self._temporary = folder, temporary

    def __iter__(self) -> Iterator[Audited]:
        return self._folder.audited()

    def outcomes(self) -> Iterator[Outcome]:
        """Yield file, id, whether it loops and the metrics that are compared, of every record, in their order."""
        return self._folder.outcomes()

    def save(self, path: str | Path) -> None:
        """Write a report, by the ending of ``path``: .html, .parquet, .csv or .jsonl (a row a loop), .json, .sarif.

        ValueError for another ending, LzsError when it cannot be written.
        """
        from .. import reports

        ending = check_output(path)
        if ending == ".html":
            reports.write_html(path, self.summary, self)
        elif ending == ".sarif":
            reports.write_sarif(path, self.summary, self)
        elif ending == ".json":
            with replacing(path) as file:
                text = json.dumps(self.summary.to_json(), ensure_ascii=False, allow_nan=False, indent=1)
                file.write(text.encode("utf-8", "backslashreplace") + b"\n")  # a lone surrogate as JSON escapes it
        else:
            reports.write_loops(path, self)

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._temporary is not None:
            self._temporary()

    def __enter__(self) -> "Audit":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def audit_files(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,
    field: str | None = None,
    by: Sequence[str] = (),
    workers: int | None = None,
    tokenizer: str | Path | None = None,
    resume: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    without: Iterable[str | Path] = (),
    **rules: Any,
) -> Audit:
    """Audit transcripts in files, folders and globs ("-" is stdin), and return the figures and what was found.

    ``format``: one of `lzsampler.auditing.formats.FORMATS`, None to see by the content. ``field``: where the text is in
    JSON or Parquet of another form, as a path. ``by``: keys that group the summary: "file", and what the format has
    ("model", "temperature", ...). ``workers``: processes, None for one a core. ``tokenizer``: a GGUF file (its
    vocabulary is enough) for the level "token". ``resume``: a folder that keeps what is done; the same call goes on
    from there. ``progress`` is called after each part, some 4 MB. ``without``: files and folders to leave out, such as
    reports. ``rules``: settings, as those of `lzsampler.audit`.

    What cannot be read is counted and listed in the summary. ValueError for bad arguments, LzsError for a ``resume``
    folder of another audit, one that cannot be written to, and for an extra that is not installed; OSError for a disk
    that is full.
    """
    begun = time.monotonic()
    settings = _Settings(Rules(**rules), tuple(by), None if tokenizer is None else Path(tokenizer))
    processes = integer("workers", _cores() if workers is None else workers, 1, _MAX_WORKERS)
    names = [str(paths)] if isinstance(paths, str | Path) else [str(path) for path in paths]
    if resume is not None and "-" in names:
        raise ValueError("stdin cannot be read again by resume: save it to a file first")
    tokenizer_of(settings.tokenizer)  # whether it loads, before the work begins
    shards, bad = find(
        names,
        format=format,
        field=field,
        by=settings.by,
        tokenizer=settings.tokenizer,
        shard_bytes=SHARD_BYTES,
    )
    left_out = [os.path.realpath(path) for path in (*without, *([] if resume is None else [resume]))]
    shards = [shard for shard in shards if not _is_in(shard.file, left_out)]
    bad = [record for record in bad if not _is_in(record.file, left_out)]
    tasks = _tasks(shards)
    manifest = {
        "tasks": len(tasks),
        "settings": settings.to_json(),
        "inputs": {shard.file: _identity(shard.path or shard.file) for shard in shards},
        "cuts": hashlib.sha256(repr(tasks).encode("utf-8", "surrogatepass")).hexdigest(),
        "bad": [astuple(record) for record in bad],
    }
    path = Path(tempfile.mkdtemp(prefix="lzs-audit-")) if resume is None else Path(resume)
    folder = WorkFolder(path, lasting=resume is not None)
    temporary = weakref.finalize(folder, shutil.rmtree, path, ignore_errors=True) if resume is None else None
    try:
        with locked(path):
            folder.begin(manifest)
            try:
                _work(folder, settings, tasks, processes, begun, progress)
            finally:
                folder.tidy()
        return Audit(_merged(folder), folder, temporary)
    except BaseException:  # Ctrl-C too
        if temporary is not None:
            temporary()
        raise


def load(folder: str | Path) -> Audit:
    """Return the audit that `audit_files(..., resume=folder)` left. LzsError when it is none, or not finished."""
    work = WorkFolder(Path(folder), lasting=True)
    if not is_audit(folder):
        raise LzsError(f"{folder} is no folder of an audit")
    return Audit(_merged(work), work, None)


def is_audit(folder: str | Path) -> bool:
    """Return whether a folder is one of ``resume``, finished or not."""
    return WorkFolder(Path(folder), lasting=True).is_one()


def check_output(path: str | Path) -> str:
    """Return the ending by which `Audit.save` chooses what to write, in lower case.

    ValueError when there is none such, LzsError when there is no folder for the file or pyarrow is not installed: what
    is better known before an audit than after it.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{path} cannot be written: its ending must be one of {', '.join(ENDINGS)}")
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise LzsError(f"{path} cannot be written: {_reason(path)}")
    if ending == ".parquet" and find_spec("pyarrow") is None:
        raise LzsError(f'{path} needs pyarrow: pip install "lzsampler[audit]"')
    return ending


def _reason(path: Path) -> str:
    if path.is_dir():
        return "it is a folder"
    return f"{path.parent} is no folder" if not path.parent.is_dir() else "permission denied"


# -- what is to be done --


@dataclass(frozen=True)
class _Settings:
    rules: Rules
    by: tuple[str, ...]
    tokenizer: Path | None

    def to_json(self) -> dict[str, Any]:
        tokenizer = None if self.tokenizer is None else [str(self.tokenizer), *_identity(self.tokenizer)]
        rules: dict[str, Any] = json.loads(json.dumps(asdict(self.rules)))
        return {"rules": rules, "by": list(self.by), "tokenizer": tokenizer}


class _Task(NamedTuple):
    number: int
    size: int  # bytes
    shards: tuple[tuple[int, Shard], ...]  # with their numbers among all


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def _identity(path: str | Path) -> list[int]:
    """Return what changes with a file's content: size, and time of change in ns."""
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def _is_in(file: str, left_out: list[str]) -> bool:
    """Return whether a file is one of those left out, real paths, or in a folder of them."""
    path = os.path.realpath(file) if left_out else ""
    return any(path == other or path.startswith(other + os.sep) for other in left_out)


def _tasks(shards: list[Shard]) -> list[_Task]:
    """Return neighbouring shards put together."""
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


# -- doing it --


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
    """Write the part of a task; return its bytes and how many records it has. Runs in a worker."""
    folder, settings = shared
    summary = Summary({}, settings.by)
    with folder.part(task.number, summary, skipped=len(skipped)) as part:
        for number, shard in task.shards:
            if number in skipped:
                part.add(BadRecord(shard.file, 0, f"{_where(shard)} was not audited: {skipped[number]}"))
                continue
            start(number)
            for item in _audited(shard, settings):
                part.add(item)
    return task.size, summary.total.records


def _audited(shard: Shard, settings: _Settings) -> Iterator[Audited | BadRecord]:
    tokenizer = tokenizer_of(settings.tokenizer)
    try:
        for item in read(shard):
            yield item if isinstance(item, BadRecord) else audit_record(item, settings.rules, tokenizer)
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
    for part in folder.summaries():
        summary.merge(part)
    return summary
