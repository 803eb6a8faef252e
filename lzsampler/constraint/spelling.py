"""`Spelling`: how a tokenizer writes texts as tokens, for `Grammar(..., tokenization=)`."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .._check import Tokens, boolean, check, token_array
from .._ffi import ffi, lib
from ..errors import ArgumentError, ArgumentTypeError
from .token_bytes import TokenBytes

Words = Literal["none", "gpt2", "gpt2-digits", "llama3", "qwen2"]
_WORDS: dict[str, int] = {
    "none": lib.LZS_WORDS_NONE,
    "gpt2": lib.LZS_WORDS_GPT2,
    "gpt2-digits": lib.LZS_WORDS_GPT2_DIGITS,
    "llama3": lib.LZS_WORDS_LLAMA3,
    "qwen2": lib.LZS_WORDS_QWEN2,
}
_NO_TOKEN = 2 * lib.LZS_MAX_VOCAB  # more than any length of a sequence


class Spelling:
    """How the tokenizer of a vocabulary writes texts as tokens: by byte pair encoding, or as SentencePiece does.

    ``tokens``: the vocabulary. ``merges``, int[n, 2]: the left and right parts of the merges of a byte pair encoding,
    by rank. ``scores``, float[n_vocab]: those of SentencePiece. One of the two is given. ``words``: the pre-tokenizer
    that cuts a text into words before merges are applied in each (docs/tokenization.md). ``whole_words``: a word that
    is a token is written as this token whatever the merges say, as by Llama 3. ``whole``: ids of tokens that are found
    in a text before everything else, as user-defined tokens are. ``byte_tokens``: ids of tokens of SentencePiece that
    stand for a byte of a character that the vocabulary does not have.

    `TokenBytes.spelling` is that of a model, compared with its tokenizer. Any number of threads may use it. ValueError
    for what is out of range.
    """

    def __init__(
        self,
        tokens: TokenBytes,
        *,
        merges: npt.ArrayLike | None = None,
        scores: npt.ArrayLike | None = None,
        words: Words = "none",
        whole_words: bool = False,
        whole: Iterable[int] = (),
        byte_tokens: Iterable[int] = (),
    ) -> None:
        if not isinstance(tokens, TokenBytes):
            raise ArgumentTypeError(f"tokens must be a TokenBytes, got {tokens!r:.50}")
        if (merges is None) == (scores is None):
            raise ArgumentError("give either merges or scores: a tokenizer has one of them")
        if words not in get_args(Words):
            raise ArgumentError(f"words must be one of {', '.join(get_args(Words))}, got {words!r}")
        boolean("whole_words", whole_words)
        if scores is not None and (words != "none" or whole_words):
            raise ArgumentError("words and whole_words belong to merges: a text is one word where tokens have scores")
        if whole_words and words == "none":
            raise ArgumentError("whole_words is about the words of a pre-tokenizer: give words, too")
        whole, byte_tokens = tuple(whole), tuple(byte_tokens)
        self.token_bytes = tokens
        self.words = words
        self.set_apart = frozenset((*whole, *byte_tokens))  # tokens that merges and scores are not about
        roles = np.zeros(tokens.n_vocab, np.uint8)
        roles[token_array("byte_tokens", sorted(set(byte_tokens)), tokens.n_vocab)] = lib.LZS_TOKEN_BYTE
        roles[token_array("whole", sorted(set(whole)), tokens.n_vocab)] = lib.LZS_TOKEN_WHOLE
        for token in np.flatnonzero(roles == lib.LZS_TOKEN_BYTE).tolist():
            if len(tokens.pieces[token]) != 1:
                raise ArgumentError(
                    f"byte_tokens must be tokens of one byte, but {token} is {tokens.pieces[token]!r:.50}"
                )
        out = ffi.new("lzs_spelling **")
        kinds = ffi.from_buffer("uint8_t[]", roles)
        if merges is not None:
            pairs = _pairs(merges, tokens.n_vocab)
            array = ffi.from_buffer("int32_t[]", pairs)
            status = lib.lzs_spelling_new_pairs(
                tokens.handle, kinds, array, len(pairs), _WORDS[words], whole_words, out
            )
        else:
            row = np.ascontiguousarray(scores, np.float32)
            if row.shape != (tokens.n_vocab,) or not np.isfinite(row).all():
                given = f"shape {row.shape}" if row.shape != (tokens.n_vocab,) else "NaN or infinities among them"
                raise ArgumentError(f"scores must be {tokens.n_vocab} finite numbers, one a token, got {given}")
            status = lib.lzs_spelling_new_scores(tokens.handle, kinds, ffi.from_buffer("float[]", row), out)
        check(status)
        self.handle: Any = ffi.gc(out[0], lib.lzs_spelling_free, lib.lzs_spelling_memory(out[0]))

    @property
    def spelling(self) -> "Spelling":
        """Itself, so that it can be given where a vocabulary can."""
        return self

    def wrong(self, tokens: Tokens) -> int | None:
        """Return where ``tokens``, int[n], first differ from what the tokenizer writes for their text; None if nowhere.

        n means that another token would have to follow. ValueError for an id outside the vocabulary.
        """
        array = token_array("tokens", tokens, self.token_bytes.n_vocab)
        out = ffi.new("size_t *")
        check(lib.lzs_spelling_check(self.handle, ffi.from_buffer("int32_t[]", array), array.size, out))
        found = int(out[0])
        return found if found < _NO_TOKEN else None

    @property
    def memory(self) -> int:
        """Bytes that it holds."""
        return int(lib.lzs_spelling_memory(self.handle))

    def __repr__(self) -> str:
        return f"<Spelling of {self.token_bytes.n_vocab} tokens, words={self.words!r}>"


def _pairs(merges: npt.ArrayLike | Sequence[tuple[int, int]], n_vocab: int) -> npt.NDArray[np.int32]:
    """Return merges as int32[n, 2]."""
    pairs = np.asarray(merges)
    if pairs.size == 0:
        return np.empty((0, 2), np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ArgumentError(f"merges must be pairs of ids, int[n, 2], got {pairs.dtype}{list(pairs.shape)}")
    if pairs.min() < 0 or pairs.max() >= n_vocab:
        raise ArgumentError(f"merges must be pairs of ids below {n_vocab}, the size of the vocabulary")
    return np.ascontiguousarray(pairs, np.int32)
