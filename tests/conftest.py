"""Fixtures of several files: the embedded model in `llama_cpp.Llama`, SmolLM2, Chromium, and a writer of small files.

What needs llama_cpp comes late.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from lzsampler.errors import MissingExtra

# No example may fail for the time it takes: a busy machine is no error. What CI sets otherwise stays.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")

# llama.cpp's threads sleep while they wait for each other. By default they spin, which on a busy machine takes minutes.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Jobs in the background ignore Ctrl-C, and those of nohup SIGHUP. Children would ignore them, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def written(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return written


@pytest.fixture(scope="session")
def browser() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("needs Chromium")
    return found


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The file of SmolLM2; its tests are marked `real`."""
    from lzsampler.models import find_model

    try:
        return find_model("smollm2")
    except MissingExtra as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def plain() -> Iterator[Any]:
    from applications import new

    model = new()
    yield model
    model.close()


@pytest.fixture
def llm(plain: Any) -> Iterator[Any]:
    """The model, untouched, and given back untouched."""
    import llama_cpp

    plain.reset()
    plain.set_seed(llama_cpp.LLAMA_DEFAULT_SEED)
    yield plain
    if "lz" in plain.__dict__:
        plain.lz.detach()
