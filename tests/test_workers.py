"""The pool of processes: everything comes back, whoever dies; nothing hangs, nothing stays."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from lzsampler import LzsError
from lzsampler.auditing.workers import Work, run
from pool_work import work


def results(folder: Path, *tasks: list[Any], workers: int = 2) -> list[Any]:
    """What comes of each task, in the order of the tasks."""
    return [done for _, done, _ in sorted(run(Work(work, folder), list(enumerate(tasks)), workers))]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_task_is_done(tmp_path: Path, workers: int) -> None:
    assert results(tmp_path, *[[i, i + 1] for i in range(40)], workers=workers) == [[i, i + 1] for i in range(40)]
    assert results(tmp_path, workers=workers) == []


def test_one_worker_is_this_process_and_several_are_others(tmp_path: Path) -> None:
    assert {pid for _, _, pid in run(Work(work, tmp_path), [(0, []), (1, [])], 1)} == {os.getpid()}
    pids = {pid for _, _, pid in run(Work(work, tmp_path), [(i, []) for i in range(30)], 3)}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 3


def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    assert results(tmp_path, [1], [2, "kill once", 3], [4]) == [[1], [2, "kill once", 3], [4]]
    assert (tmp_path / "killed").exists()


def test_a_piece_that_kills_twice_is_left_out_by_name(tmp_path: Path) -> None:
    first, second, third = results(tmp_path, [1, "kill", 2, "segfault"], ["exit"], [3, 4])
    assert first == [
        1,
        "the worker process was ended by SIGKILL (out of memory?)",
        2,
        "the worker process was ended by SIGSEGV",
    ]
    assert second == ["the worker process ended with status 3"]
    assert third == [3, 4]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_ends_the_run(tmp_path: Path, workers: int) -> None:
    with pytest.raises(OSError, match="No space left on device: 'part'"):
        results(tmp_path, [1], ["full"], *[[2]] * 20, workers=workers)
    with pytest.raises(LzsError, match="what to install"):
        results(tmp_path, [1], ["lzs"], workers=workers)


def test_an_exception_that_does_not_pickle_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(LzsError, match=r"UnpicklableError: cannot come back \(pool_work\.py, line \d+\)"):
        results(tmp_path, ["unpicklable"], [1])


def test_the_traceback_of_a_worker_is_the_cause(tmp_path: Path) -> None:
    for piece in ("unpicklable", "full", "lzs"):
        with pytest.raises((LzsError, OSError)) as error:
            results(tmp_path, [piece], [1])
        said = str(error.value.__cause__)
        assert "Traceback (most recent call last):" in said
        assert "pool_work.py" in said
        assert "in work" in said


def test_what_a_worker_says_before_it_dies_is_told(tmp_path: Path) -> None:
    (aborted,) = results(tmp_path, ["abort"], [])[0]
    words = "Loading. | Fatal Python error: Aborted | File 'x.py', line 3 in f"
    assert aborted == f"the worker process ended with status 134; it last wrote: {words}"


def test_what_libraries_print_is_not_taken_for_a_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert results(tmp_path, ["talk"], ["talk"]) == [["talk"], ["talk"]]
    assert capfd.readouterr() == ("", "")


def test_closing_early_kills_the_workers(tmp_path: Path) -> None:
    running = run(Work(work, tmp_path), [(0, [1]), (1, ["sleep"]), (2, ["sleep"])], 2)
    assert next(running)[:2] == (0, [1])
    while len(list(tmp_path.glob("pid-*"))) < 2:
        time.sleep(0.01)
    running.close()  # type: ignore[attr-defined]
    assert not (tmp_path / "slept").exists()
    for path in tmp_path.glob("pid-*"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.name.removeprefix("pid-")), 0)


def test_workers_that_do_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lzsampler.auditing.workers._SERVE", "import no_such_module")
    why = "the worker process ended with status 1; it last wrote: .*No module named 'no_such_module'"
    with pytest.raises(LzsError, match=f"worker processes cannot be started: {why}"):
        results(tmp_path, [1], [2])
