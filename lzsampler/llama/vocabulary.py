"""The vocabulary of a GGUF file, without its weights: text to tokens for the audit, and tokens to text."""

import atexit
import ctypes
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .. import gguf
from .._check import LzsError
from .links import llama_cpp

if TYPE_CHECKING:
    from ..findings import Tokenizer


class Vocabulary:
    """A vocabulary. ValueError for a path that is no file, LzsError, in one line, for what is no GGUF with one."""

    def __init__(self, path: str | Path) -> None:
        from ..model import captured_log, reason  # which imports this package

        self.path = gguf.read(path).path
        settings = llama_cpp.llama_model_default_params()
        settings.vocab_only = True
        with captured_log() as errors:
            self._model = llama_cpp.llama_model_load_from_file(os.fsencode(self.path), settings)
        if not self._model:
            raise LzsError(
                f"llama.cpp cannot load the vocabulary of {self.path}: {reason(errors) or 'no reason given'}"
            )
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self.n_vocab = int(llama_cpp.llama_vocab_n_tokens(self._vocab))
        self._piece = lru_cache(maxsize=None)(self._piece_of)

    def close(self) -> None:
        """Free it; it cannot be used after it."""
        llama_cpp.llama_model_free(self._model)

    def tokenize(self, text: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return a text's tokens, int32[n], and the character at which each starts, int64[n], ascending.

        No BOS, and special tokens are text. Tokens that are part of a character start at it. Where a vocabulary
        changes the text (white space, case) a token starts where the bytes of the one before are found to end.
        """
        data = text.encode("utf-8", "replace")  # a lone surrogate is a character and a byte
        tokens = self._tokens(data)
        starts = np.empty(tokens.size, np.int64)
        at = 0
        for i, token in enumerate(tokens.tolist()):
            starts[i] = at
            piece = self._piece(token)
            if data.startswith(piece, at):
                at += len(piece)
            elif data.startswith(piece[1:], at) and piece.startswith(b" "):  # put before the text by the tokenizer
                at += len(piece) - 1
            else:
                at = min(len(data), at + len(piece))
        begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
        before = np.concatenate(([0], np.cumsum(begins)))  # characters that begin before each byte
        inside = np.concatenate((~begins, [False]))
        return tokens, before[starts] - inside[starts]

    def detokenize(self, tokens: npt.NDArray[np.int32]) -> str:
        """Return the text of tokens, special ones by their names; what is no UTF-8 becomes U+FFFD.

        ValueError for a token that the vocabulary does not have.
        """
        outside = (tokens < 0) | (tokens >= self.n_vocab)
        if outside.any():
            raise ValueError(f"token {tokens[outside.argmax()]} is none of the {self.n_vocab} of {self.path}")
        return b"".join(map(self._piece, tokens.tolist())).decode("utf-8", "replace")

    def _tokens(self, data: bytes) -> npt.NDArray[np.int32]:
        room = len(data) // 2 + 16
        while True:
            tokens = np.empty(room, np.int32)
            pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
            n = llama_cpp.llama_tokenize(self._vocab, data, len(data), pointer, room, False, False)
            if n >= 0:
                return tokens[:n]
            if n == -(2**31):
                raise LzsError(f"llama.cpp cannot tokenize a text of {len(data):,} bytes: it is too long")
            room = -n

    def _piece_of(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(64)
        n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, True)
        if n < 0:
            buffer = ctypes.create_string_buffer(-n)
            n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, True)
        return bytes(buffer.raw[: max(n, 0)])


@lru_cache(maxsize=1)
def vocabulary(path: str | Path) -> Vocabulary:
    """Return the vocabulary of a file, loaded once, closed when Python ends."""
    made = Vocabulary(path)
    atexit.register(made.close)  # later it would find llama_cpp taken down already
    return made


def tokenizer(path: str | Path) -> "Tokenizer":
    """Return what `lzsampler.audit` takes as a tokenizer."""
    return vocabulary(path).tokenize
