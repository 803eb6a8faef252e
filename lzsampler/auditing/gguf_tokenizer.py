"""The vocabulary of `--tokenizer`, loaded once a process: the one place of the audit that knows llama.cpp."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from .findings import Tokenizer


def tokenizer_of(path: str | Path | None) -> Tokenizer | None:
    """Return the tokenizer of a GGUF file, None for None. Raises as `Vocabulary`."""
    if path is None:
        return None
    found: Tokenizer = vocabulary_of(path).tokenize
    return found


@lru_cache(maxsize=1)
def vocabulary_of(path: str | Path) -> Any:
    """Return the `Vocabulary` of a GGUF file. Raises as `Vocabulary`."""
    from ..llama import gguf

    gguf.read(path)  # a file that cannot be read is reported as that, also where llama-cpp-python is not installed
    from ..llama.vocabulary import vocabulary

    return vocabulary(path)
