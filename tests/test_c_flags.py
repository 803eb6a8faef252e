"""The kernels as users build them, without sanitizers: the same tokens at every level of optimisation and with no flags
of ours at all; and the flags that would break them are refused."""

import subprocess
from pathlib import Path

import pytest

from native import ROOT, compiler, run

SOURCES = sorted(
    path
    for folder in (".", "state", "penalty", "constraint", "plan", "backend", "verify")
    for path in (ROOT / "c" / folder).glob("*.c")
    if path.name not in {"example.c", "llama_example.c"}
)
INCLUDE = [f"-I{ROOT / folder}" for folder in ("c", "c/include", "tests/c")]
TESTS: dict[str, list[str]] = {
    "test_kernels": [],
    "test_race": [],
    "test_backend": ["10"],
    "test_draws": ["5000", "11"],
    "test_speculation": [],
}


@pytest.mark.parametrize("flags", ["-std=c11 -O1", "-std=c11 -O2", "-std=c11 -O3", "-O2"])
def test_the_same_tokens(flags: str, tmp_path: Path) -> None:
    """The last flags leave the compiler its own C dialect and its contraction of a * b + c, as a copy of c/ inside
    another project's build does."""
    command = [compiler(), *flags.split(), *INCLUDE]
    run([*command, "-c", *SOURCES], tmp_path)
    objects = sorted(tmp_path.glob("*.o"))
    for name, arguments in TESTS.items():
        run([*command, ROOT / "tests" / "c" / f"{name}.c", *objects, "-lm", "-o", name], tmp_path)
        run([tmp_path / name, *arguments], tmp_path)


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast"])
def test_fast_math_is_refused(flag: str, tmp_path: Path) -> None:
    command = [compiler(), "-std=c11", flag, *INCLUDE, "-c", str(ROOT / "c" / "backend" / "kernels_scalar.c")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "lzsampler needs IEEE arithmetic" in done.stderr
