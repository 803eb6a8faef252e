"""GBNF, the grammars of llama.cpp, for samplers of lzsampler: llama.cpp reads them and says what they allow."""

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

ROOT = "root"  # the rule that stands for the whole text, as in llama.cpp
MOST_BYTES = 1 << 16  # llama.cpp follows rules by recursion, so that a longer text could end the process
_SHOWN = 200  # characters of an error


class LoadedVocabulary(Protocol):
    """A `Vocabulary`, which llama.cpp looks at as long as a grammar of it is used."""

    n_vocab: int

    @property
    def pointer(self) -> Any:
        """The ``llama_vocab *``."""


def matchers(text: str, vocabulary: LoadedVocabulary, end: int) -> "Callable[[], GbnfMatcher]":
    """Return what makes places at the beginning of a grammar.

    ``vocabulary``: one of their own, so that they outlive the model. ``end``: a token that ends a text. ValueError for
    a text that llama.cpp cannot read, with its reason.
    """
    _check(text)
    beginning = GbnfMatcher(_sampler_of(text, vocabulary.pointer), vocabulary, end)
    return beginning.copy


class GbnfMatcher:
    """A place in a grammar of GBNF (`lzsampler.constraint.matcher.Matcher`), which frees its sampler of llama.cpp."""

    failed = False

    def __init__(self, sampler: Any, vocabulary: LoadedVocabulary, end: int) -> None:
        self._sampler = sampler
        self._vocabulary = vocabulary  # which llama.cpp looks at as long as the sampler is used
        self._end = end
        finalize(self, llama_cpp.llama_sampler_free, sampler)

    def copy(self) -> "GbnfMatcher":
        """Return the same place once more, without reading the grammar again."""
        return GbnfMatcher(llama_cpp.llama_sampler_clone(self._sampler), self._vocabulary, self._end)

    def allows(self, token: int) -> bool:
        """Return whether a token may come next."""
        return bool(allowed_of(self._sampler, candidates_of([token]))[0])

    def take(self, token: int) -> None:
        """Go on behind a token that is allowed; llama.cpp ends the process for another one."""
        llama_cpp.llama_sampler_accept(self._sampler, token)

    def accepts(self) -> bool:
        """Return whether the text may end here."""
        return self.allows(self._end)

    def mask(self) -> npt.NDArray[np.uint32]:
        """Return the tokens that may come next, uint32[ceil(n_vocab / 32)]."""
        return words_of(allowed_of(self._sampler, candidates_of(np.arange(self._vocabulary.n_vocab))))


def _check(text: str) -> None:
    """Raise ValueError for what would end the process, go on for ever, or allow everything."""
    if "\0" in text:
        raise ArgumentError("text must be GBNF, but it has a NUL character")
    n_bytes = len(text.encode("utf-8"))
    if n_bytes > MOST_BYTES:
        raise ArgumentError(f"text must have at most {MOST_BYTES:,} bytes, got {n_bytes:,}")
    check(text)


def _sampler_of(text: str, vocab: Any) -> Any:
    """Return llama.cpp's sampler of a grammar. Of its messages some are in its log, and others on stderr alone."""
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
    first = lines[0] if lines else "it gives no reason"
    return first.removeprefix("parse: ").removeprefix("error parsing grammar: ")[:_SHOWN]
