"""The tests' own tools: valgrind on programs with instructions that it does not know, and on programs with errors."""

from collections.abc import Callable
from pathlib import Path

import pytest

from native import compiler, run, valgrind

# valgrind preloads libraries of its own: so only the run under it comes to the instruction, and no CPU need have it
AVX512 = """
#include <stdlib.h>
__attribute__((target("avx512f"))) int main(void) {
    if (getenv("LD_PRELOAD")) __asm__ volatile("vpaddd %%zmm1, %%zmm2, %%zmm3" ::: "xmm3");
    return 0;
}
"""


@pytest.fixture
def built(tmp_path: Path) -> Callable[[str], Path]:
    def build(source: str) -> Path:
        (tmp_path / "program.c").write_text(source)
        run([compiler(), "-g", "program.c", "-o", "program"], tmp_path)
        return tmp_path / "program"

    return build


def test_an_unknown_instruction_skips(built: Callable[[str], Path]) -> None:
    try:
        program = built(AVX512)
    except AssertionError:
        pytest.skip("this compiler does not build for x86-64 with AVX-512")
    with pytest.raises(pytest.skip.Exception, match="does not know an instruction"):
        valgrind([program])


def test_an_illegal_instruction_does_not_skip(built: Callable[[str], Path]) -> None:
    assert valgrind([built("int main(void) { __builtin_trap(); }")]).returncode != 0


def test_an_error_is_reported(built: Callable[[str], Path]) -> None:
    program = built("#include <stdlib.h>\nint main(void) { volatile char *p = malloc(1); p[1] = 0; return 0; }")
    assert valgrind([program], "--error-exitcode=99").returncode == 99
    assert valgrind([built("int main(void) { return 0; }")], "--error-exitcode=99").returncode == 0
