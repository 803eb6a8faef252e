"""GBNF, llama.cpp's grammar language, for samplers of lzsampler. llama.cpp reads the grammars and makes the masks."""

import os
import tempfile
from collections.abc import Callable
from typing import Any, Protocol
from weakref import finalize

import numpy as np
import numpy.typing as npt

from ..constraint.matcher import words_of
from ..errors import ArgumentError
from .binding import llama_cpp
from .gbnf_rules import check
from .log import captured_log, quiet
from .pick_first import allowed_of, candidates_of

ROOT = "root"  # name of the rule that matches the whole text, as in llama.cpp
MOST_BYTES = 1 << 16  # the longest grammar; llama.cpp follows rules by recursion, and could overflow the stack
_SHOWN = 200  # the most characters of llama.cpp's reason in an error message


class LoadedVocabulary(Protocol):
    """A `Vocabulary`. The vocabulary must stay open while a grammar uses it, because llama.cpp reads it."""

    n_vocab: int

    @property
    def pointer(self) -> Any:
        """The ``llama_vocab *``."""


def matchers(text: str, vocabulary: LoadedVocabulary, end: int) -> "Callable[[], GbnfMatcher]":
    """Return a factory of `GbnfMatcher` objects, each in the grammar's start state.

    ``vocabulary``: a vocabulary for these matchers alone, so that they can outlive the model. ``end``: a token that
    ends a text. ValueError, with llama.cpp's reason, for a text that llama.cpp cannot read.
    """
    _check(text)
    beginning = GbnfMatcher(_sampler_of(text, vocabulary.pointer), vocabulary, end)
    return beginning.copy


class GbnfMatcher:
    """A state of a GBNF grammar (`lzsampler.constraint.matcher.Matcher`). The matcher owns a llama.cpp sampler and
    frees it.
    """

    failed = False

    def __init__(self, sampler: Any, vocabulary: LoadedVocabulary, end: int) -> None:
        self._sampler = sampler
        self._vocabulary = vocabulary  # kept alive: llama.cpp reads the vocabulary
        self._end = end
        finalize(self, llama_cpp.llama_sampler_free, sampler)

    def copy(self) -> "GbnfMatcher":
        """Return another matcher in the same state, without reading the grammar again."""
        return GbnfMatcher(llama_cpp.llama_sampler_clone(self._sampler), self._vocabulary, self._end)

    def allows(self, token: int) -> bool:
        """Return whether a token may come next."""
        return bool(allowed_of(self._sampler, candidates_of([token]))[0])

    def take(self, token: int) -> None:
        """Advance by an allowed token. For any other token llama.cpp ends the process."""
        llama_cpp.llama_sampler_accept(self._sampler, token)

    def accepts(self) -> bool:
        """Return whether the text may end here."""
        return self.allows(self._end)

    def mask(self) -> npt.NDArray[np.uint32]:
        """Return the tokens that may come next, uint32[ceil(n_vocab / 32)]."""
        return words_of(allowed_of(self._sampler, candidates_of(np.arange(self._vocabulary.n_vocab))))


def _check(text: str) -> None:
    """Raise ValueError for a grammar with which llama.cpp would end the process, loop forever or allow everything."""
    if "\0" in text:
        raise ArgumentError("text must be GBNF, but it has a NUL character")
    n_bytes = len(text.encode("utf-8"))
    if n_bytes > MOST_BYTES:
        raise ArgumentError(f"text must have at most {MOST_BYTES:,} bytes, got {n_bytes:,}")
    check(text)


def _sampler_of(text: str, vocab: Any) -> Any:
    """Return llama.cpp's sampler for a grammar. llama.cpp writes some messages to its log and others to stderr only."""
    with quiet, tempfile.TemporaryFile() as written:
        kept = os.dup(2)
        os.dup2(written.fileno(), 2)
        try:
            with captured_log() as errors:
                sampler = llama_cpp.llama_sampler_init_grammar(vocab, text.encode("utf-8"), ROOT.encode())
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        written.seek(0)
        said = written.read().decode("utf-8", "replace") + "".join(errors)
    if not sampler:
        raise ArgumentError(f"text must be GBNF that llama.cpp can use: {_reason(said)}")
    return sampler


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first = lines[0] if lines else "llama.cpp gives no reason"
    return first.removeprefix("parse: ").removeprefix("error parsing grammar: ")[:_SHOWN]
