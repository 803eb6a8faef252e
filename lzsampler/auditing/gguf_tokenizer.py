"""Loads the vocabulary of `--tokenizer`, once per process. No other module of the audit uses llama.cpp."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from .findings import Tokenizer


def tokenizer_of(path: str | Path | None) -> Tokenizer | None:
    """Return the tokenizer of a GGUF file, or None if ``path`` is None. Raises the errors of `Vocabulary`."""
    if path is None:
        return None
    found: Tokenizer = vocabulary_of(path).tokenize
    return found


@lru_cache(maxsize=1)
def vocabulary_of(path: str | Path) -> Any:
    """Return the `Vocabulary` of a GGUF file. Raises the errors of `Vocabulary`."""
    from ..llama import gguf

    gguf.read(path)  # Reports a bad file even if llama-cpp-python is not installed.
    from ..llama.vocabulary import vocabulary

    return vocabulary(path)
