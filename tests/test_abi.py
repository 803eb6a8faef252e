"""The mirrored structs of c/lzs_llama_abi.h against the llama.h of the llama-cpp-python that is installed."""

import os
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMPILER = next((cc for cc in (os.environ.get("CC"), "cc", "gcc", "clang") if cc and shutil.which(cc)), None)


def installed_include() -> Path | None:
    """The folder with llama.h that the wheel brought, where it brought one."""
    for file in metadata.files("llama-cpp-python") or []:
        if file.name == "llama.h":
            path = Path(str(file.locate())).resolve()
            if path.exists() and (path.parent / "ggml.h").exists():
                return path.parent
    return None


def cache() -> Path:
    given = os.environ.get("LZS_SDIST_CACHE")
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(user) / "lzsampler" / "sdist"


def downloaded_include(version: str) -> Path:
    """The headers of this version's source distribution, by pip and its own configuration, kept in the cache."""
    folder = cache() / f"llama-cpp-python-{version}"
    if (folder / "llama.h").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--retries", "1", "--timeout", "20", "--no-binary", "llama-cpp-python", "--dest", str(folder)]
    try:
        done = subprocess.run([*command, f"llama-cpp-python=={version}"], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip(f"no source distribution of llama-cpp-python {version} within 5 minutes")
    archives = list(folder.glob("*.tar.gz"))
    if done.returncode or not archives:
        pytest.skip(f"no source distribution of llama-cpp-python {version}: {done.stderr.strip()[-300:]}")
    with tarfile.open(archives[0]) as archive:
        headers = [m for m in archive if m.isfile() and m.name.endswith(".h") and _is_public(Path(m.name))]
        # llama.h last: it stands for a complete folder
        for member in sorted(headers, key=lambda m: Path(m.name).name == "llama.h"):
            content = archive.extractfile(member)
            assert content is not None
            (folder / Path(member.name).name).write_bytes(content.read())
    archives[0].unlink()  # tens of megabytes for a few headers
    return folder


def _is_public(path: Path) -> bool:
    return path.parent.parts[-2:] == ("llama.cpp", "include") or path.parent.parts[-2:] == ("ggml", "include")


def compile_with(include: Path, *more: str) -> subprocess.CompletedProcess[str]:
    if COMPILER is None:
        pytest.skip("no C compiler")
    command = [COMPILER, "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'c'}"]
    command += ["-isystem", str(include), *more, str(ROOT / "tests" / "c" / "abi_llama.c")]
    return subprocess.run(command, capture_output=True, text=True)


def llama_cpp_version() -> str:
    try:
        return metadata.version("llama-cpp-python")
    except metadata.PackageNotFoundError:
        pytest.skip("llama-cpp-python is not installed")


def test_the_installed_header() -> None:
    version = llama_cpp_version()
    done = compile_with(installed_include() or downloaded_include(version))
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
    include = installed_include() or downloaded_include(llama_cpp_version())
    for header in include.glob("*.h"):
        shutil.copy(header, tmp_path)
    text = (tmp_path / "llama.h").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "llama.h").write_text(text.replace(old, new), encoding="utf-8")
    done = compile_with(tmp_path)
    assert done.returncode != 0
    assert complaint in done.stderr
