"""GBNF, the grammars of llama.cpp, for samplers of lzsampler: llama.cpp reads them and says what they allow."""

import ctypes
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np
import numpy.typing as npt

from .binding import llama_cpp
from .log import captured_log
from .vocabulary import Vocabulary

ROOT = "root"  # the rule that stands for the whole text, as in llama.cpp
MOST_BYTES = 1 << 16  # llama.cpp follows rules and brackets by recursion, so that a longer text could end the process
MOST_NESTED = 250
_NOT_BRACKETS = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|#[^\n]*', re.DOTALL)
_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])  # llama_token_data
_SHOWN = 200  # characters of an error
_stderr = Lock()


def matchers(text: str, path: Path, end: int) -> "Callable[[], GbnfMatcher]":
    """Return what makes places at the beginning of a grammar, for the vocabulary of a GGUF file.

    ``end``: a token that ends a text.
    The vocabulary is loaded for them, so that they outlive the model. ValueError for a text that llama.cpp cannot read,
    with its reason; LzsError as of `Vocabulary`.
    """
    _check(text)
    vocabulary = Vocabulary(path)
    finalize(vocabulary, llama_cpp.llama_model_free, vocabulary._model)
    return lambda: GbnfMatcher(text, vocabulary, end)


class GbnfMatcher:
    """A place in a grammar of GBNF (`lzsampler.constraint.engine.Matcher`). Errors as of `matchers`."""

    failed = False

    def __init__(self, text: str, vocabulary: Vocabulary, end: int) -> None:
        self._vocabulary = vocabulary  # which llama.cpp looks at as long as the sampler is used
        self._sampler = _sampler_of(text, vocabulary._vocab)
        self._end = end
        self._all = np.zeros(vocabulary.n_vocab, _CANDIDATE)
        self._all["id"] = np.arange(self._all.size)
        self._one = np.zeros(1, _CANDIDATE)

    def __del__(self) -> None:
        if getattr(self, "_sampler", None):
            llama_cpp.llama_sampler_free(self._sampler)

    def allows(self, token: int) -> bool:
        """Return whether a token may come next."""
        self._one["id"] = token
        return bool(self._applied(self._one)[0])

    def take(self, token: int) -> None:
        """Go on behind a token that is allowed; llama.cpp ends the process for another one."""
        llama_cpp.llama_sampler_accept(self._sampler, token)

    def accepts(self) -> bool:
        """Return whether the text may end here."""
        return self.allows(self._end)

    def mask(self) -> npt.NDArray[np.uint32]:
        """Return the tokens that may come next, uint32[ceil(n_vocab / 32)]."""
        bits = np.packbits(self._applied(self._all), bitorder="little")
        return np.pad(bits, (0, -bits.size % 4)).view(np.uint32)

    def _applied(self, candidates: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        candidates["logit"] = 0
        data = candidates.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        array = llama_cpp.llama_token_data_array(data, candidates.size, -1, False)
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))
        return np.asarray(candidates["logit"] == 0)


def _check(text: str) -> None:
    """Raise ValueError for what would end the process, or would allow everything."""
    if not _NOT_BRACKETS.sub('"', text).strip('" \t\r\n'):
        raise ValueError("text must be GBNF, but there is no rule in it")
    if "\0" in text:
        raise ValueError("text must be GBNF, but it has a NUL character")
    n_bytes = len(text.encode("utf-8"))
    if n_bytes > MOST_BYTES:
        raise ValueError(f"text must have at most {MOST_BYTES:,} bytes, got {n_bytes:,}")
    marks = _NOT_BRACKETS.sub("", text)
    for count, low, high in re.findall(r"(\{\s*(\d+)\s*,\s*(\d+)\s*\})", marks):
        if len(high.lstrip("0")) < 9 and int(high) < int(low):  # llama.cpp would count without end
            raise ValueError(f"text must be GBNF, but the count {count} ends before it begins")
    depth = deepest = 0
    for mark in re.findall(r"[()]", marks):
        depth += 1 if mark == "(" else -1
        deepest = max(deepest, depth)
    if deepest > MOST_NESTED:
        raise ValueError(f"text must have groups nested at most {MOST_NESTED} deep, got {deepest:,}")


def _sampler_of(text: str, vocab: Any) -> Any:
    """Return llama.cpp's sampler of a grammar. Of its messages some are in its log, and others on stderr alone."""
    with _stderr, tempfile.TemporaryFile() as written:
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
        raise ValueError(f"text must be GBNF that llama.cpp can use: {_reason(said)}")
    return sampler


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first = lines[0] if lines else "it gives no reason"
    return first.removeprefix("parse: ").removeprefix("error parsing grammar: ")[:_SHOWN]
