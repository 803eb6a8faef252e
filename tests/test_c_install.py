"""The way of a C user: configure, build, install; then a CMake project and a pkg-config line build c/example.c.

The same for the library for llama.cpp, which contains the sampler, and for the text library, which does without it.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from native import ROOT, check_example, compiler, run, tool

_PARTS = ("explain", "grammar", "plan", "separators", "threads", "verify")
SAMPLER = ("lzsampler.h", *(f"lzsampler_{name}.h" for name in _PARTS))
LIBRARIES = {  # the headers whose functions each exports
    "lzsampler": SAMPLER,
    "lzsampler_llama": (*SAMPLER, "lzsampler_llama.h"),
    "lzsampler_text": ("lzsampler_text.h",),
}

TEXT_PROGRAM = r"""
#include <stdio.h>
#include <lzsampler_text.h>

int main(void) {
    static const uint8_t text[] = "the loop the loop the loop ";
    lzs_repetition runs[4];
    size_t n_runs;
    if (lzs_byte_runs(text, sizeof text - 1, 2, 9, 0, runs, 4, &n_runs) != LZS_OK) return 1;
    for (size_t i = 0; i < n_runs; i++) printf("%d %d\n", (int)runs[i].length, (int)runs[i].period);
    return 0;
}
"""

LLAMA_PROGRAM = r"""
#include <stdio.h>
#include <lzsampler_llama.h>

static void *chain_sampler[2]; /* as libllama's: its functions, its context */

static void *init(void *functions, void *context) { /* stands for llama_sampler_init */
    chain_sampler[0] = functions;
    chain_sampler[1] = context;
    return chain_sampler;
}

int main(void) {
    lzs_params params;
    lzs_params_init(&params);
    lzs_sampler *sampler;
    void *made;
    if (lzs_sampler_new(27, &params, &sampler) != LZS_OK) return 1;
    if (lzs_chain_sampler_new(sampler, LZS_CHAIN_PENALTIES, (void *)init, &made) != LZS_OK) return 2;
    if (made != chain_sampler || lzs_chain_sampler_status(made) != LZS_OK) return 3;
    printf("%d %d\n", (int)lzs_n_vocab(lzs_chain_sampler_inner(made)), lzs_chain_sampler_inner(made) != sampler);
    lzs_sampler_free(sampler);
    return 0;
}
"""

OTHERS = {  # library: prefix of its targets, a program, what that prints
    "lzsampler_llama": ("llama_", LLAMA_PROGRAM, "27 1\n"),
    "lzsampler_text": ("text_", TEXT_PROGRAM, "27 9\n"),
}

OTHER_CONSUMER = """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(lzsampler 0.1 REQUIRED)
foreach(kind static shared)
  add_executable(program_${kind} program.c)
  target_link_libraries(program_${kind} PRIVATE lzsampler::PREFIX${kind})
endforeach()
"""

CONSUMER = """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(lzsampler 0.1 REQUIRED)
foreach(kind static shared)
  add_executable(example_${kind} "EXAMPLE")
  target_link_libraries(example_${kind} PRIVATE lzsampler::${kind})
endforeach()
"""

SUBPROJECT = """
cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES C)
add_subdirectory(${LZSAMPLER} lzsampler EXCLUDE_FROM_ALL)
add_executable(consumer "EXAMPLE")
target_link_libraries(consumer PRIVATE lzsampler::static)
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library is installed."""
    cmake = tool("cmake")
    compiler()
    build, prefix = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("prefix")
    options = [
        "-DBUILD_TESTING=OFF",
        "-DLZS_WERROR=ON",
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        "-DCMAKE_INSTALL_LIBDIR=lib",
    ]
    run([cmake, "-S", ROOT, "-B", build, *options], build)
    run([cmake, "--build", build, "--parallel", "2"], build)
    run([cmake, "--install", build], build)
    return prefix


def test_what_is_installed(prefix: Path) -> None:
    files = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir()}
    headers = {*SAMPLER, *(f"lzsampler_{name}.h" for name in ("llama", "status", "text"))}
    assert {path for path in files if path.startswith("include/")} == {f"include/{header}" for header in headers}
    for library in LIBRARIES:
        assert {f"lib/lib{library}.a", f"lib/pkgconfig/{library}.pc"} <= files
        assert (prefix / "lib" / f"lib{library}.so.0.1").exists()  # until 1.0 the minor version is the interface
    assert "lib/cmake/lzsampler/lzsampler-config.cmake" in files
    assert ("lib/liblzsampler_preload.so" in files) == (sys.platform == "linux")
    assert not any("test" in path or "example" in path for path in files)


def test_cmake_consumer(prefix: Path, tmp_path: Path) -> None:
    cmake = tool("cmake")
    (tmp_path / "CMakeLists.txt").write_text(CONSUMER.replace("EXAMPLE", (ROOT / "c" / "example.c").as_posix()))
    run([cmake, "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"], tmp_path)
    run([cmake, "--build", "build"], tmp_path)
    outputs = [run([tmp_path / "build" / f"example_{kind}"], tmp_path) for kind in ("static", "shared")]
    assert outputs[0] == outputs[1]
    check_example(outputs[0])


@pytest.mark.parametrize("library", OTHERS)
def test_cmake_consumer_of_another_library(prefix: Path, tmp_path: Path, library: str) -> None:
    cmake = tool("cmake")
    targets, program, output = OTHERS[library]
    (tmp_path / "CMakeLists.txt").write_text(OTHER_CONSUMER.replace("PREFIX", targets))
    (tmp_path / "program.c").write_text(program)
    run([cmake, "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"], tmp_path)
    run([cmake, "--build", "build"], tmp_path)
    for kind in ("static", "shared"):
        assert run([tmp_path / "build" / f"program_{kind}"], tmp_path) == output


def test_cmake_subproject(tmp_path: Path) -> None:
    """Inside another project the library is all there is: no tests, no example, no build type of ours."""
    cmake = tool("cmake")
    (tmp_path / "CMakeLists.txt").write_text(SUBPROJECT.replace("EXAMPLE", (ROOT / "c" / "example.c").as_posix()))
    run([cmake, "-S", ".", "-B", "build", f"-DLZSAMPLER={ROOT}"], tmp_path)
    targets = run([cmake, "--build", "build", "--target", "help"], tmp_path)
    assert "lzsampler_shared" in targets
    assert "lzsampler_example" not in targets
    assert "... test_" not in targets  # make also prints folders, when it runs under another make
    cache = (tmp_path / "build" / "CMakeCache.txt").read_text()
    assert "CMAKE_BUILD_TYPE:STRING=\n" in cache
    run([cmake, "--build", "build"], tmp_path)
    check_example(run([tmp_path / "build" / "consumer"], tmp_path))
    assert not list(tmp_path.rglob("liblzsampler.so*"))


def test_cmake_consumer_of_another_version_is_refused(prefix: Path, tmp_path: Path) -> None:
    cmake = tool("cmake")
    (tmp_path / "CMakeLists.txt").write_text(CONSUMER.replace("lzsampler 0.1", "lzsampler 0.2"))
    command = [cmake, "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "0.2" in done.stderr


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_pkg_config_consumer(prefix: Path, tmp_path: Path, kind: str) -> None:
    pkg_config = tool("pkg-config", "pkgconf")
    search = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    assert run([pkg_config, "--modversion", "lzsampler"], tmp_path, **search).strip() == "0.1.0"
    flags = run(
        [pkg_config, "--cflags", "--libs", *(["--static"] if kind == "static" else []), "lzsampler"], tmp_path, **search
    ).split()
    if kind == "static":  # a linker takes the shared library where both are
        flags = [str(prefix / "lib" / "liblzsampler.a") if flag == "-llzsampler" else flag for flag in flags]
    run([compiler(), "-std=c11", ROOT / "c" / "example.c", *flags, "-o", "example"], tmp_path)
    check_example(run([tmp_path / "example"], tmp_path, LD_LIBRARY_PATH=str(prefix / "lib")))


@pytest.mark.parametrize("kind", ["shared", "static"])
@pytest.mark.parametrize("library", OTHERS)
def test_pkg_config_consumer_of_another_library(prefix: Path, tmp_path: Path, library: str, kind: str) -> None:
    pkg_config = tool("pkg-config", "pkgconf")
    search = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    assert run([pkg_config, "--modversion", library], tmp_path, **search).strip() == "0.1.0"
    command = [pkg_config, "--cflags", "--libs", *(["--static"] if kind == "static" else []), library]
    flags = run(command, tmp_path, **search).split()
    if kind == "static":  # a linker takes the shared library where both are
        flags = [str(prefix / "lib" / f"lib{flag[2:]}.a") if flag.startswith("-llz") else flag for flag in flags]
    else:
        assert [flag for flag in flags if flag.startswith("-l")] == [f"-l{library}"]
    _, program, output = OTHERS[library]
    (tmp_path / "program.c").write_text(program)
    run([compiler(), "-std=c11", "program.c", *flags, "-o", "program"], tmp_path)
    assert run([tmp_path / "program"], tmp_path, LD_LIBRARY_PATH=str(prefix / "lib")) == output


def test_the_line_in_the_example(prefix: Path, tmp_path: Path) -> None:
    """The command that c/example.c's own comment gives, with the prefix's folders."""
    line = next(line for line in (ROOT / "c" / "example.c").read_text().splitlines() if " cc " in line)
    words = line.split("cc ", 1)[1].split(" && ")[0].split()
    words = [str(ROOT / "c" / "example.c") if word == "example.c" else word for word in words]
    run([compiler(), f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", *words], tmp_path)
    check_example(run([tmp_path / "example"], tmp_path, LD_LIBRARY_PATH=str(prefix / "lib")))


@pytest.mark.parametrize("name", LIBRARIES)
def test_exported_symbols(prefix: Path, tmp_path: Path, name: str) -> None:
    """A shared library exports what its headers declare, and nothing else."""
    nm = tool("nm")
    library = next(path for path in (prefix / "lib").glob(f"lib{name}.so*") if not path.is_symlink())
    symbols = {line.split()[-1] for line in run([nm, "-D", "--defined-only", library], tmp_path).splitlines()}
    assert symbols
    assert all(symbol.startswith("lzs_") for symbol in symbols)
    text = "".join((ROOT / "c" / "include" / header).read_text() for header in LIBRARIES[name])
    declared = {part.split("(")[0].split()[-1].lstrip("*") for part in text.split("\nLZS_API ")[1:]}
    assert symbols == declared


def symbols_of(library: Path, folder: Path) -> tuple[set[str], set[str]]:
    """The symbols of ours that an archive defines, and those that it uses."""
    nm = tool("nm")
    defined, used = (
        {line.split()[-1] for line in run([nm, "-g", flag, library], folder).splitlines() if " " in line}
        for flag in ("--defined-only", "--undefined-only")
    )
    return {name for name in defined if name.startswith("lzs_")}, {name for name in used if name.startswith("lzs_")}


def test_the_libraries_share_no_symbol(prefix: Path, tmp_path: Path) -> None:
    """So a program can link those that it needs; only the one for llama.cpp needs another, the sampler."""
    sampler, of_sampler = symbols_of(prefix / "lib" / "liblzsampler.a", tmp_path)
    llama, of_llama = symbols_of(prefix / "lib" / "liblzsampler_llama.a", tmp_path)
    text, of_text = symbols_of(prefix / "lib" / "liblzsampler_text.a", tmp_path)
    assert of_sampler <= sampler
    assert of_text <= text
    assert of_text
    assert of_llama & sampler
    assert of_llama <= llama | sampler
    assert not sampler & text
    assert not llama & (sampler | text)


@pytest.mark.parametrize("library", ["lzsampler", "lzsampler_text", "lzsampler_llama"])
def test_soname(prefix: Path, tmp_path: Path, library: str) -> None:
    """Until 1.0 the minor version is the interface: a program of 0.1 must not load a library of 0.2."""
    readelf = tool("readelf")
    dynamic = run([readelf, "-d", prefix / "lib" / f"lib{library}.so"], tmp_path)
    (line,) = [line for line in dynamic.splitlines() if "SONAME" in line]
    assert line.endswith(f"[lib{library}.so.0.1]")
