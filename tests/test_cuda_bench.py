"""What of bench/cuda.py runs without a GPU: the rows on the twin, the judgement of its table, and what is missing."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lzsampler.cuda import library
from native import ROOT
from test_cuda import built, twin  # noqa: F401

BENCH = ROOT / "bench"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    import cuda_table

    return cuda_table


def cuda(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(BENCH / "cuda.py"), *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300)


def test_the_check_passes_on_the_twin(built: Path) -> None:  # noqa: F811
    """What `make cuda-check` runs on a GPU first."""
    done = cuda("--twin", "--rows", "12")
    assert (done.returncode, done.stdout) == (0, "rows that are the CPU's: 12\ncuda: pass\n"), done.stderr


def test_nothing_to_check_with_is_one_line_and_status_2(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError")
    done = cuda(PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cuda: not checked: torch with CUDA is needed, and it is not installed for this Python\n"
    (tmp_path / "torch.py").write_text("class cuda:\n    is_available = staticmethod(lambda: False)\n")
    done = cuda(PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (2, "cuda: not checked: torch finds no CUDA device\n")
    done = cuda("--twin", **{library.VARIABLE: str(tmp_path / "missing.so")})
    assert done.returncode == 2
    assert done.stderr.startswith("cuda: not checked: ")
    assert done.stderr.count("\n") == 1


def lines(**changes: Any) -> list[dict[str, Any]]:
    """A table in which each aim is just met."""
    base = {"read": 10.0, "ours": 15.0, "without LZ": 8.2, "torch": 75.0}
    made: list[dict[str, Any]] = [
        {"V": 1000, "B": n, "dtype": dtype, **base} for n in (1, 32, 256) for dtype in ("float32", "bfloat16")
    ]
    for line in made:
        line["without LZ"] = line["ours"] - 2 - 0.05 * line["B"] + 1e-9
    made[2].update(changes)  # 32 rows of float32
    return made


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, []),
        ({"read": 9.9}, [0]),
        ({"torch": 74.0}, [1]),
        ({"without LZ": 11.0}, [2]),
        ({"torch": None, "flashinfer": None}, []),
        ({"dtype": "bfloat16", "read": 1.0, "torch": 1.0, "without LZ": 0.0}, []),
    ],
)
def test_aims_are_judged(table: Any, changes: dict[str, Any], missed: list[int]) -> None:
    judged = table.judged(lines(**changes))
    assert [i for i, (met, _) in enumerate(judged) if not met] == missed
    assert not changes.get("read") or "B=32 V=1000" in judged[0][1] or "dtype" in changes


def test_without_torchs_time_its_aim_is_not_met(table: Any) -> None:
    judged = table.judged([{**line, "torch": None} for line in lines()])
    assert judged[1] == (False, "at least 5 times as fast as torch: 0.0 (not measured)")


NSIGHT = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name","Grid Size","dram__bytes_read.sum","dram__bytes_write.sum"
"","","","","byte","byte"
"0","7","lzs_fold_kernel(lzs_launch)","(1, 1, 1)","1,000","20"
"1","7","lzs_pick_kernel(lzs_launch)","(1, 1, 1)","300","4"
"2","7","lzs_fold_kernel(lzs_launch)","(8, 1, 1)","5","0"
"3","7","lzs_read_kernel(lzs_launch)","(16, 8, 1)","70","0"
"4","7","lzs_weigh_kernel(lzs_launch)","(16, 8, 1)","6","0"
"5","7","lzs_pick_kernel(lzs_launch)","(8, 1, 1)","0","8"
"""


def test_the_bytes_of_steps_are_read_from_nsight(table: Any) -> None:
    assert table.steps_of(NSIGHT) == [1324.0, 89.0]
    assert table.steps_of("==ERROR== no permission\n") == []


def test_arms_that_do_not_work_are_said(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    import cuda_arms

    class Torch:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("no device\nand more")

    assert cuda_arms.peers(Torch()) == {}
    said = capsys.readouterr().out.splitlines()
    assert said == [f"{name}: not measured: no device" for name in ("torch", "flashinfer", "vllm")]
