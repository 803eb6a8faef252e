"""The vocabulary of `--tokenizer`, loaded once per process. Only this module of the audit knows llama.cpp."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from .findings import Tokenizer


def tokenizer_of(path: str | Path | None) -> Tokenizer | None:
    """Return the tokenizer of a GGUF file; None for None. Raises what `Vocabulary` raises."""
    if path is None:
        return None
    found: Tokenizer = vocabulary_of(path).tokenize
    return found


@lru_cache(maxsize=1)
def vocabulary_of(path: str | Path) -> Any:
    """Return the `Vocabulary` of a GGUF file. Raises what `Vocabulary` raises."""
    from ..llama import gguf

    gguf.read(path)  # so that a bad file is reported as such even without llama-cpp-python
    from ..llama.vocabulary import vocabulary

    return vocabulary(path)
