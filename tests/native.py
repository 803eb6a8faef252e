"""What the tests that build C share: tools, the installed llama.cpp and its headers, what c/example.c must print."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


# .venv's own cmake first: that of `make test`
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def tool(*names: str) -> str:
    for name in names:
        path = shutil.which(name, path=PATH)
        if path:
            return path
    pytest.skip(f"no {' or '.join(names)}")


def compiler() -> str:
    return tool(os.environ.get("CC") or "cc", "cc", "gcc", "clang")


def run(command: Sequence[str | Path], cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": PATH, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def valgrind(
    command: Sequence[str | Path], *options: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command under valgrind; skip the test where valgrind does not know an instruction of the program.

    Valgrind has no AVX-512 and ends such a program by SIGILL. So does a real illegal instruction, but that one ends the
    program without valgrind, too.
    """
    words = [str(part) for part in command]
    settings: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "timeout": 300, "cwd": cwd}
    settings["env"] = {**os.environ, "PATH": PATH, **environment}
    done: subprocess.CompletedProcess[str] = subprocess.run([tool("valgrind"), "--quiet", *options, *words], **settings)
    killed = done.returncode == -signal.SIGILL or "(SIGILL)" in done.stderr
    if killed and subprocess.run(words, **settings).returncode != -signal.SIGILL:
        pytest.skip("valgrind does not know an instruction of this program, such as those of AVX-512")
    return done


def check_example(output: str) -> None:
    """Without the penalty the toy model loops to the end; with it, not past the second time."""
    without, with_lz = (line.partition(": ")[2] for line in output.splitlines())
    assert without == "loping" * 10
    assert len(with_lz) == 60
    assert "loping" * 3 not in with_lz


def llama_cpp_version() -> str:
    try:
        return metadata.version("llama-cpp-python")
    except metadata.PackageNotFoundError:
        pytest.skip("llama-cpp-python is not installed")


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


def llama_include() -> Path:
    """The folder with the llama.h of the installed llama-cpp-python; skips the test where there is none."""
    version = llama_cpp_version()
    return installed_include() or downloaded_include(version)
