"""The embedded model as a plain `llama_cpp.Llama`, for tests that attach to it; what needs llama_cpp comes late."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def plain() -> Iterator[Any]:
    from applications import new

    model = new()
    yield model
    model.close()


@pytest.fixture
def llm(plain: Any) -> Iterator[Any]:
    """The model, untouched, and given back untouched."""
    from lzsampler.llama.dropin import UNSEEDED

    plain.reset()
    plain.set_seed(UNSEEDED)
    yield plain
    if "lz" in plain.__dict__:
        plain.lz.detach()
