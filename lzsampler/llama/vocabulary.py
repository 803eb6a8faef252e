"""The vocabulary of a GGUF file, without its weights: text to tokens for the audit, and tokens to text."""

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import gguf
from .._check import LzsError
from .links import llama_cpp


class Vocabulary:
    """A vocabulary. ValueError for a path that is no file, LzsError, in one line, for what is no GGUF with one."""

    def __init__(self, path: str | Path) -> None:
        self.path = gguf.read(path).path
        try:
            self._llm = llama_cpp.Llama(model_path=str(self.path), vocab_only=True, verbose=False)
        except (ValueError, RuntimeError, OSError, AssertionError) as error:
            raise LzsError(f"llama.cpp cannot load the vocabulary of {self.path}: {error}") from error
        self._vocab = llama_cpp.llama_model_get_vocab(self._llm.model)
        self.n_vocab = int(llama_cpp.llama_vocab_n_tokens(self._vocab))
        self._piece = lru_cache(maxsize=None)(self._piece_of)

    def tokenize(self, text: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return a text's tokens, int32[n], and the character at which each starts, int64[n], ascending.

        No BOS, and special tokens are text. Tokens that are part of a character start at it. Where a vocabulary
        changes the text (white space, case) a token starts where the bytes of the one before are found to end.
        """
        data = text.encode("utf-8", "replace")  # a lone surrogate is a character and a byte
        tokens = np.array(self._llm.tokenize(data, add_bos=False, special=False), np.int32)
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
        data: bytes = self._llm.detokenize(tokens.tolist(), special=True)
        return data.decode("utf-8", "replace")

    def _piece_of(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(64)
        n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, True)
        if n < 0:
            buffer = ctypes.create_string_buffer(-n)
            n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, True)
        return bytes(buffer.raw[: max(n, 0)])


@lru_cache(maxsize=1)
def vocabulary(path: str | Path) -> Vocabulary:
    """Return the vocabulary of a file, loaded once."""
    return Vocabulary(path)


def tokenizer(path: str | Path) -> Any:
    """Return what `lzsampler.audit` takes as a tokenizer."""
    return vocabulary(path).tokenize
