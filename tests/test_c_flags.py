"""The kernels as users build them, without sanitizers: the same tokens at every level of optimisation and with no flags
of ours at all; and the flags that would break them are refused."""

import platform
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
    "test_rebuilt": [],
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


@pytest.mark.parametrize(
    "flags",
    [
        ("-ffast-math",),
        ("-Ofast",),
        ("-ffinite-math-only",),
        ("-fno-signed-zeros",),
        ("-freciprocal-math",),
        ("-funsafe-math-optimizations",),
        ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"),
        ("-D_M_FP_FAST",),  # MSVC's /fp:fast
    ],
    ids=" ".join,
)
def test_fast_math_is_refused_or_undone(flags: tuple[str, ...], tmp_path: Path) -> None:
    """GCC says all of them by macros; clang some, and the others a pragma undoes."""
    sources = [ROOT / "tests" / "c" / "test_arithmetic.c", ROOT / "c" / "backend" / "kernels_scalar.c"]
    command = [compiler(), "-std=c11", "-O2", *flags, *INCLUDE, *map(str, sources), "-lm", "-o", "arithmetic"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if done.returncode:
        assert "lzsampler needs IEEE arithmetic" in done.stderr
    else:
        run([tmp_path / "arithmetic"], tmp_path)


def test_contraction(tmp_path: Path) -> None:
    """GCC's -ffp-contract=fast is undone by a pragma. clang's is not, and then the test of the arithmetic says so."""
    machine = ["-mfma"] if platform.machine() in {"x86_64", "AMD64"} else []
    source = ROOT / "tests" / "c" / "test_arithmetic.c"
    command = [compiler(), "-std=c11", "-O2", "-ffp-contract=fast", *machine, *INCLUDE]
    run([*command, source, "-lm", "-o", "fused"], tmp_path)
    cpu = Path("/proc/cpuinfo")
    if machine and cpu.exists() and "fma" not in cpu.read_text(encoding="utf-8"):
        pytest.skip("this CPU has no fused multiply-add")
    done = subprocess.run([tmp_path / "fused"], capture_output=True, text=True)
    if done.returncode:
        assert "product_sum" in done.stderr
        assert "clang" in run([compiler(), "--version"], tmp_path)
