"""The audit of many files: the same bytes whoever does the work and however often it was broken off."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lzsampler
from corpora import PROSE, corpus, looping, transcript
from lzsampler import LzsError, audit_files, save
from lzsampler.auditing import audit_files as batch
from lzsampler.auditing.audit_files import Audit, Progress, is_audit, load
from lzsampler.auditing.workers import Work
from lzsampler.errors import MissingExtra
from lzsampler.reports.save import AUDIT, check

OUTPUTS = ("report.html", "loops.csv", "loops.jsonl", "loops.parquet", "summary.json", "loops.sarif")
RUN = """
import sys
from lzsampler import audit_files
from lzsampler.auditing import audit_files as batch
from lzsampler import save
batch.TASK_BYTES = 1
folder, resume, workers = sys.argv[1:]
said = lambda progress: print(progress.records, flush=True)
audit_files(folder, by=("model", "file"), resume=resume, workers=int(workers), progress=said)
"""


@pytest.fixture(autouse=True)
def every_file_is_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "TASK_BYTES", 1)


def outputs(audit: Audit, folder: Path) -> dict[str, bytes]:
    """What each kind of output holds."""
    pytest.importorskip("pyarrow")
    folder.mkdir()
    for name in OUTPUTS:
        save(audit, folder / name)
    return {name: (folder / name).read_bytes() for name in OUTPUTS}


# -- what comes out --


def test_figures_of_a_folder(tmp_path: Path) -> None:
    with audit_files(corpus(tmp_path / "in"), by=["model"], workers=1) as audit:
        summary = audit.summary
        assert (summary.total.records, summary.total.looping) == (240, 6 * looping(40))
        assert summary.bad_records == 6
        assert [Path(bad.file).name for bad in summary.bad] == [f"{i}.jsonl" for i in range(6)]
        assert {bad.line for bad in summary.bad} == {2}
        assert sorted(summary.groups) == [("m0",), ("m1",), ("m2",)]
        assert sum(group.records for group in summary.groups.values()) == 240
        records = [record for record in audit if record.looping]
        assert [record.id for record in records] == [f"r{i}" for i in range(40) if i % 7 == 3] * 6
        assert records[0].number == 4  # the broken line counts
        for record in records:
            loop = max(record.findings, key=lambda finding: finding.end - finding.start)
            text = dict(record.texts)["answer"]
            assert text[loop.start : loop.start + loop.period] == text[loop.end - loop.period : loop.end] or loop.tail
        assert [outcome.id for outcome in audit.outcomes()] == [f"r{i}" for i in range(40)] * 6
        assert sum(outcome.looping for outcome in audit.outcomes()) == summary.total.looping


def test_it_is_public_and_takes_rules(tmp_path: Path) -> None:
    corpus(tmp_path, files=1)
    file = tmp_path / "0.jsonl"
    assert lzsampler.audit_files is audit_files
    with audit_files(str(file)) as strict, audit_files([file], copies=10_000, length=100_000, near=False) as loose:
        assert strict.summary.total.looping == looping(40)
        assert loose.summary.total.looping == 0
        assert loose.summary.rules["copies"] == 10_000
    with pytest.raises(ValueError, match="copies"):
        audit_files(file, copies=1)
    with pytest.raises(ValueError, match="workers must be from 1 to 1024, got 0"):
        audit_files(file, workers=0)
    with pytest.raises(ValueError, match="resume does not work with stdin"):
        audit_files("-", resume=tmp_path / "work")


def test_one_worker_and_several_give_the_same_bytes(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "in")
    made = []
    for workers in (1, 2, 3):
        with audit_files(folder, by=["model", "file"], workers=workers) as audit:
            made.append(outputs(audit, tmp_path / f"out{workers}"))
    assert made[0] == made[1] == made[2]
    assert len({len(content) for content in made[0].values()}) == len(OUTPUTS)


def test_small_files_share_a_task_and_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = corpus(tmp_path / "in", files=9, records=5)
    with audit_files(folder, workers=1) as alone:
        monkeypatch.setattr(batch, "TASK_BYTES", 16 << 20)
        with audit_files(folder, resume=tmp_path / "work", workers=1) as together:
            assert len(list((tmp_path / "work").glob("*.gz"))) == 1
            assert list(alone) == list(together)
            assert alone.summary.total == together.summary.total


def test_files_that_are_cut_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = corpus(tmp_path / "in", files=3)
    with audit_files(folder, workers=1) as whole:
        monkeypatch.setattr(batch, "SHARD_BYTES", 5000)
        with audit_files(folder, workers=2, resume=tmp_path / "work") as cut:
            assert len(list((tmp_path / "work").glob("*.gz"))) > 9
            assert list(cut) == list(whole)
            assert cut.summary.bad == whole.summary.bad
            assert cut.summary.total == whole.summary.total
            assert cut.summary.metrics == pytest.approx(whole.summary.metrics, rel=1e-12)


def test_the_temporary_folder_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus(tmp_path / "in", files=2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    audit = audit_files(tmp_path / "in", workers=1)
    assert len(os.listdir(tmp_path / "t")) == 1
    del audit
    assert os.listdir(tmp_path / "t") == []
    with audit_files(tmp_path / "in", workers=1):
        pass
    assert os.listdir(tmp_path / "t") == []

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    for workers in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            audit_files(tmp_path / "in", workers=workers, progress=interrupt)
        assert os.listdir(tmp_path / "t") == []


def test_progress_adds_up(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "in")
    seen: list[Progress] = []
    audit_files(folder, workers=2, progress=seen.append).close()
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert len(seen) == 6
    assert [p.total_bytes for p in seen] == [size] * 6
    assert (seen[-1].bytes, seen[-1].records, seen[-1].resumed) == (size, 240, 0)
    assert sorted(p.seconds for p in seen) == [p.seconds for p in seen]


def test_what_is_left_out(tmp_path: Path) -> None:
    """Reports in a folder that is audited are no transcripts, nor is the folder of --resume."""
    folder = corpus(tmp_path / "in", files=2)
    with audit_files(folder, workers=1) as first:
        save(first, folder / "loops.jsonl")
    work = folder / "work"
    for _ in range(2):
        with audit_files(folder, workers=1, resume=work, without=[folder / "loops.jsonl"]) as again:
            assert (again.summary.total.records, again.summary.bad_records) == (80, 2)


# -- broken off --


def test_resume_after_an_interruption_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "in")
    work = tmp_path / "work"
    seen: list[Progress] = []

    def stop_after_two(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_files(folder, by=["file"], workers=1, resume=work, progress=stop_after_two)
    assert is_audit(work)
    assert len(list(work.glob("*.gz"))) == 2
    with pytest.raises(LzsError, match="is not complete, 4 of 6 parts are missing"):
        load(work)
    done = {path: path.stat().st_mtime_ns for path in work.glob("0*")}
    rest: list[Progress] = []
    with audit_files(folder, by=["file"], workers=2, resume=work, progress=rest.append) as resumed:
        assert len(rest) == 4
        assert rest[0].resumed == seen[-1].bytes
        assert done == {path: path.stat().st_mtime_ns for path in done}
        got = outputs(resumed, tmp_path / "a")
    with audit_files(folder, by=["file"], workers=1) as whole:
        assert got == outputs(whole, tmp_path / "b")
    with load(work) as loaded:
        assert got == outputs(loaded, tmp_path / "c")
    assert work.exists()


def kill_after_first(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()


def interrupt_after_first(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("stop", [kill_after_first, interrupt_after_first])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_that_was_killed_goes_on(
    tmp_path: Path, stop: Callable[["subprocess.Popen[str]"], None], workers: str
) -> None:
    folder, work = corpus(tmp_path / "in", files=30, records=60), tmp_path / "work"
    command = [sys.executable, "-c", RUN, str(folder), str(work), workers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        stop(process)
    assert process.returncode == (-signal.SIGKILL if stop is kill_after_first else -signal.SIGINT)
    parts = len(list(work.glob("??????.json")))
    assert 0 < parts < 30
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 0 < len(done.stdout.splitlines()) <= 30 - parts + int(workers)
    with load(work) as resumed, audit_files(folder, by=("model", "file"), workers=1) as whole:
        assert outputs(resumed, tmp_path / "a") == outputs(whole, tmp_path / "b")
    assert not list(work.glob("*.tmp"))


def test_workers_of_a_killed_run_end(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    folder = corpus(tmp_path / "in", files=30, records=60)
    command = [sys.executable, "-c", RUN, str(folder), str(tmp_path / "work"), "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        workers = psutil.Process(process.pid).children()
        process.kill()
    assert len(workers) == 2
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive


def test_a_folder_is_for_one_run_at_a_time(tmp_path: Path) -> None:
    folder, work = corpus(tmp_path / "in", files=2), tmp_path / "work"

    def again(_: Progress) -> None:
        with pytest.raises(LzsError, match="another process is using"):
            audit_files(folder, resume=work, workers=1)

    audit_files(folder, resume=work, workers=1, progress=again)
    audit_files(folder, resume=work, workers=1)


def test_another_audit_in_the_folder_is_refused(tmp_path: Path) -> None:
    folder, work = corpus(tmp_path / "in", files=2), tmp_path / "work"
    audit_files(folder, resume=work, workers=1)
    with pytest.raises(LzsError, match=r"contains another audit \(rules was .*\"copies\": 20.*now .*\"copies\": 8"):
        audit_files(folder, resume=work, workers=1, copies=8)
    with pytest.raises(LzsError, match=r"contains another audit \(by was \[\], now \[\"model\"\]"):
        audit_files(folder, resume=work, workers=1, by=["model"])
    with (folder / "1.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(LzsError, match=r"1\.jsonl has changed"):
        audit_files(folder, resume=work, workers=1)


def test_a_file_that_was_changed_in_place_is_another(tmp_path: Path) -> None:
    """Of the same size, but written later: its results must not be taken for those of the file as it is now."""
    folder, work = corpus(tmp_path / "in", files=2), tmp_path / "work"
    audit_files(folder, resume=work, workers=1)
    changed = folder / "1.jsonl"
    data, status = changed.read_bytes(), changed.stat()
    changed.write_bytes(data.replace(b"Tell me more.", b"Tell us more.", 1))
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert changed.stat().st_size == status.st_size
    with pytest.raises(LzsError, match=r"1\.jsonl has changed"):
        audit_files(folder, resume=work, workers=1)


# -- what goes wrong --


@pytest.mark.parametrize("at", [1, 5, 9])
def test_a_worker_that_is_killed_is_tried_again(tmp_path: Path, at: int) -> None:
    """Killed once from outside, after some of the files: the result is the same, and nothing hangs.

    Only once, since a second kill may meet the same file again, which is then left out by name, as it must be.
    """
    psutil = pytest.importorskip("psutil")
    folder = corpus(tmp_path / "in", files=12, records=60)
    parts: list[Progress] = []
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        parts.append(progress)
        children = psutil.Process().children()
        if len(parts) >= at and children and not killed:
            killed.append(children[0].pid)
            children[0].kill()

    with audit_files(folder, workers=2, progress=kill_one) as audit, audit_files(folder, workers=1) as whole:
        assert len(killed) == 1
        assert outputs(audit, tmp_path / "a") == outputs(whole, tmp_path / "b")


def deadly(shared: Any, task: Any, skipped: Any, start: Callable[[int], None]) -> Any:
    """`_audit_task`, but that file 1 kills whoever reads it."""
    from corpora import deadly_file

    return batch._audit_task(shared, task, skipped, deadly_file(task, start))


def test_a_file_that_kills_workers_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, work = corpus(tmp_path / "in", files=4), tmp_path / "work"
    with monkeypatch.context() as patch:
        patch.setattr(batch, "Work", lambda function, shared: Work(deadly, shared))
        with audit_files(folder, workers=2, resume=work) as audit:
            assert (audit.summary.total.records, audit.summary.bad_records) == (120, 4)
            bad = next(bad for bad in audit.summary.bad if bad.line == 0)
            reason = "it was not audited: the worker process was ended by SIGKILL (out of memory?)"
            assert (bad.file, bad.reason) == (str(folder / "1.jsonl"), reason)
    with audit_files(folder, workers=2, resume=work) as audit:  # and is tried again another time
        assert (audit.summary.total.records, audit.summary.bad_records) == (160, 4)


def test_a_file_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = corpus(tmp_path / "in", files=3)
    seen: list[Progress] = []

    def remove(progress: Progress) -> None:
        seen.append(progress)
        (folder / "2.jsonl").unlink(missing_ok=True)

    with audit_files(folder, workers=1, progress=remove) as audit:
        assert (audit.summary.total.records, audit.summary.bad_records) == (80, 3)
        assert "No such file" in audit.summary.bad[-1].reason


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    folder = corpus(tmp_path / "in", files=1)
    with pytest.raises(LzsError, match=r"cannot write to .*: (Not a directory|File exists)"):
        audit_files(folder, resume=folder / "0.jsonl" / "work")


@pytest.mark.skipif(sys.platform == "win32", reason="no limits")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_full_disk_is_one_error(tmp_path: Path, workers: str) -> None:
    folder = corpus(tmp_path / "in", files=4)
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000));"
    command = [sys.executable, "-c", limit + RUN, str(folder), str(tmp_path / "work"), workers]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"lzsampler.errors.LzsError: cannot write {tmp_path / 'work'}")
    assert said.endswith("File too large")
    assert not list((tmp_path / "work").glob("*.tmp"))


def test_nothing_to_audit(tmp_path: Path) -> None:
    with audit_files(tmp_path) as audit:
        assert audit.summary.to_json()["records"] == 0
        assert list(audit) == []
        assert list(audit.outcomes()) == []
    with audit_files(tmp_path / "*.jsonl") as audit:
        assert (audit.summary.total.records, audit.summary.bad_records) == (0, 1)


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("Fine.")
    for paths in (tmp_path / "none.jsonl", [tmp_path / "there.txt", tmp_path / "none.jsonl"]):
        with pytest.raises(FileNotFoundError, match=r"none\.jsonl does not exist: give files, folders or"):
            audit_files(paths)


def test_one_name_need_not_be_a_list(tmp_path: Path) -> None:
    """A string is one name, and not a sequence of letters."""
    folder = corpus(tmp_path / "in", files=2)
    with audit_files(folder, without=str(folder / "1.jsonl"), by="model", select="LZR001", workers=1) as audit:
        assert audit.summary.total.records == 40
        assert audit.summary.by == ("model",)
        assert audit.summary.rules["select"] == ["LZR001"]
    with audit_files(folder, without=folder / "1.jsonl", workers=1) as audit:
        assert audit.summary.total.records == 40


def test_a_closed_audit_says_so(tmp_path: Path) -> None:
    with audit_files(corpus(tmp_path / "in", files=1), workers=1) as audit:
        before = list(audit)
    assert before
    for use in (lambda: list(audit), lambda: list(audit.outcomes()), lambda: save(audit, tmp_path / "x.csv")):
        with pytest.raises(LzsError, match=r"this audit is closed: use it inside its with block, or keep .* resume"):
            use()
    assert not (tmp_path / "x.csv").exists()
    assert audit.summary.total.records == 40


@pytest.mark.parametrize("name", ["out.txt", "out", "out.jsonl.gz"])
def test_an_output_of_no_known_kind(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"its name must end in one of \.html, \.parquet"):
        check(tmp_path / name, AUDIT)


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()
    for path, why in (("x.json", "it is a folder"), ("none/x.csv", "there is no folder .*none")):
        with pytest.raises(LzsError, match=why):
            check(tmp_path / path, AUDIT)


# -- much of it --


def test_a_hundred_thousand_small_records(tmp_path: Path) -> None:
    file = tmp_path / "tiny.jsonl"
    file.write_text("".join(transcript(i, f"yes {i}") for i in range(100_000)))
    with audit_files(file) as audit:
        assert audit.summary.total.records == 100_000
        assert sum(1 for _ in audit.outcomes()) == 100_000


PEAK = """
import resource, sys
from lzsampler import audit_files
audit = audit_files(sys.argv[1], workers=int(sys.argv[2]))
status = open("/proc/self/status").read()  # unlike ru_maxrss without the memory of the process that started this one
own = int(status.partition("VmHWM:")[2].split()[0])
print(audit.summary.total.records, own >> 10, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
"""


def peak(file: Path, workers: int) -> tuple[int, int]:
    """Records, and MB of the largest process of an audit."""
    command = [sys.executable, "-c", PEAK, str(file), str(workers)]
    records, own, children = map(int, subprocess.check_output(command, text=True).split())
    return records, max(own, children)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    line = [transcript(i, PROSE[1000 * i : 1000 * i + 5000]) for i in range(100)]
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    small.write_text("".join(line * 40))
    large.write_text("".join(line * 400))
    assert large.stat().st_size > 200e6
    (n, little), (m, much) = peak(small, 2), peak(large, 2)
    assert (n, m) == (4000, 40_000)
    assert much < little + 40
    assert much < 200


def test_a_json_summary_is_what_summary_json_holds(tmp_path: Path) -> None:
    with audit_files(corpus(tmp_path / "in", files=1), workers=1) as audit:
        save(audit, tmp_path / "s.json")
        assert json.loads((tmp_path / "s.json").read_text("utf-8")) == audit.summary.to_json()


# -- as tables --


def test_loops_as_a_table_of_arrow(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    with audit_files(corpus(tmp_path / "in", files=2), workers=1) as audit:
        save(audit, tmp_path / "l.parquet")
        table = audit.to_arrow()
        assert table.num_rows == sum(len(record.findings) for record in audit) > 0
    assert table.to_pylist() == parquet.read_table(tmp_path / "l.parquet").to_pylist()
    with pytest.raises(LzsError, match="this audit is closed"):
        audit.to_arrow()


def test_loops_as_a_data_frame(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    with audit_files(corpus(tmp_path / "in", files=2), workers=1) as audit:
        frame = audit.to_pandas()
        records = list(audit)
    assert list(frame["id"]) == [record.id for record in records for _ in record.findings]
    assert list(frame["rule"]) == [finding.rule for record in records for finding in record.findings]
    assert frame["wasted_tokens"].sum() == sum(f.wasted_tokens for record in records for f in record.findings)
    assert frame["groups"][0] == records[0].groups


@pytest.mark.parametrize(
    ("package", "what", "install"),
    [("pandas", "to_pandas", "pip install pandas"), ("pyarrow", "to_arrow", "pip install pyarrow")],
)
def test_a_table_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, what: str, install: str
) -> None:
    with audit_files(corpus(tmp_path / "in", files=1), workers=1) as audit:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtra, match=re.escape(install)):
            getattr(audit, what)()
