"""The Python blocks of the README and of the pages on applications run as printed; links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [README, (ROOT / "docs" / "llama-cpp-python.md").read_text(encoding="utf-8")]
BLOCKS = [block for page in PAGES for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.splitlines()[0])
def test_python_block(block: str, tmp_path: Path) -> None:
    for package in ("llama_cpp", "torch", "transformers"):
        if package in block:
            pytest.importorskip(package)
    if "lzsampler.llama" in block:
        pytest.importorskip("llama_cpp")
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert ("print" in block) == bool(done.stdout.strip())


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 6


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)]+)\)", README))))
def test_link(target: str) -> None:
    if not target.startswith("http"):
        assert (ROOT / target).exists()
