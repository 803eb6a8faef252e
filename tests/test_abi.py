"""The mirrored structs of c/llama/abi.h against the llama.h of the llama-cpp-python that is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from native import ROOT, compiler, downloaded_include, llama_cpp_version, llama_include


def compile_with(include: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [compiler(), "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'c'}"]
    command += ["-isystem", str(include), *more, str(ROOT / "tests" / "c" / "abi_llama.c")]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_installed_header() -> None:
    done = compile_with(llama_include())
    assert done.returncode == 0, done.stderr


def test_the_header_of_the_source_distribution() -> None:
    """The way for installations without headers, tried wherever there is a network."""
    done = compile_with(downloaded_include(llama_cpp_version()))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("float logit; ", "float first, logit; ", "logit lies elsewhere"),
        ("float p; ", "double p; ", "p lies elsewhere"),
        ("int64_t selected;", "int32_t selected;", "selected lies elsewhere"),
        ("bool sorted;", "int32_t sorted;", "sorted lies elsewhere"),
        ("llama_sampler_context_t ctx;", "int before; llama_sampler_context_t ctx;", "ctx lies elsewhere"),
        ("(*name)", "(*first)(void), * (*name)", "name lies elsewhere"),
        ("(*free) ", "(*free)(struct llama_sampler *), *grown[32], (*last)", "outgrew its mirror"),
    ],
)
def test_another_layout_is_refused(old: str, new: str, complaint: str, tmp_path: Path) -> None:
    """The comparison sees a field that moved or has another size, and a struct with more members than the mirror."""
    include = llama_include()
    for header in include.glob("*.h"):
        shutil.copy(header, tmp_path)
    text = (tmp_path / "llama.h").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "llama.h").write_text(text.replace(old, new), encoding="utf-8")
    done = compile_with(tmp_path)
    assert done.returncode != 0
    assert complaint in done.stderr
