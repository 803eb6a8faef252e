"""The Python blocks of the README and of the pages on applications and on the sampler run as printed; links lead
somewhere.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SAMPLER_PAGE = (ROOT / "docs" / "sampler.md").read_text(encoding="utf-8")
PAGES = [README, (ROOT / "docs" / "llama-cpp-python.md").read_text(encoding="utf-8"), SAMPLER_PAGE]
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
    if block in SAMPLER_PAGE:  # where the comment after each print begins with what is printed
        comments = re.findall(r"print\(.*\)  # (.*)", block)
        for comment, line in zip(comments, done.stdout.splitlines(), strict=True):
            assert comment.startswith(line)


SECTIONS = {  # heading: files that its block leaves
    "Audit your transcripts": ["runs.jsonl", "report.html", "loops.jsonl", "summary.json"],
    "Does it work on my model?": [
        *("lzs-eval/run.json", "lzs-eval/transcripts.jsonl", "lzs-eval/timings.jsonl"),
        *("lzs-eval/results.json", "lzs-eval/report.html"),
    ],
}


@pytest.mark.parametrize("heading", SECTIONS)
def test_shell_block(heading: str, tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    section = README.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "loop" in done.stdout
    assert all((tmp_path / name).stat().st_size for name in SECTIONS[heading])


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 11


LINKS = [(folder, target) for folder, page in (("", README), ("docs", SAMPLER_PAGE))
         for target in sorted(set(re.findall(r"\]\(([^)]+)\)", page)))]  # fmt: skip


@pytest.mark.parametrize(("folder", "target"), LINKS)
def test_link(folder: str, target: str) -> None:
    if not target.startswith("http"):
        assert (ROOT / folder / target).exists()
