"""The tokens of a vocabulary for grammars.

`TokenBytes` has the byte string of every token. `Spelling` describes how a tokenizer turns a text into tokens.
`PartMasks` is a cache of masks for parts that many grammars have, such as the strings of JSON.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from .._check import INT32_MAX, Tokens, boolean, check, integer, token_array
from .._ffi import ffi, lib
from .._values import counted
from ..errors import ArgumentError, ArgumentTypeError

Words = Literal["none", "gpt2", "gpt2-digits", "llama3", "qwen2"]
_WORDS: dict[str, int] = {
    "none": lib.LZS_WORDS_NONE,
    "gpt2": lib.LZS_WORDS_GPT2,
    "gpt2-digits": lib.LZS_WORDS_GPT2_DIGITS,
    "llama3": lib.LZS_WORDS_LLAMA3,
    "qwen2": lib.LZS_WORDS_QWEN2,
}
_NO_TOKEN = 2 * lib.LZS_MAX_VOCAB  # The only larger result of `lzs_spelling_check` is SIZE_MAX (no index).


class TokenBytes:
    """The byte string of every token of a vocabulary, for grammars.

    ``pieces``, bytes[n_vocab]: the bytes that each token adds to a text. ``end``: the ids of the tokens that end a
    text, at least one. ``special``: the ids of other tokens that a grammar never allows, such as control tokens. A
    token without bytes is never allowed either. ``speller``: a function that makes the `Spelling` of these tokens on
    first use. `lzsampler.llama.token_bytes` reads the bytes from a model. Any number of threads may use this object.

    TypeError for anything but bytes and ids. ValueError if there is no end token, for an id outside the vocabulary, and
    for a token of more than 65,535 bytes.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        *,
        end: Iterable[int],
        special: Iterable[int] = (),
        speller: "Callable[[TokenBytes], Spelling] | None" = None,
    ) -> None:
        self.pieces = tuple(pieces)
        self._speller = speller
        wrong = next((i for i, piece in enumerate(self.pieces) if not isinstance(piece, bytes)), None)
        if wrong is not None:
            raise ArgumentTypeError(f"pieces must be bytes, but pieces[{wrong}] is {self.pieces[wrong]!r:.50}")
        if not self.pieces:
            raise ArgumentError("pieces must be the bytes of at least one token")
        self.end = tuple(token_array("end", sorted(set(end)), self.n_vocab).tolist())
        self.special = tuple(token_array("special", sorted(set(special)), self.n_vocab).tolist())
        if not self.end:
            raise ArgumentError("end must name at least one token: a text that matches could not end")
        kinds = np.full(self.n_vocab, lib.LZS_TOKEN_TEXT, np.uint8)
        kinds[list(self.special)] = lib.LZS_TOKEN_SPECIAL
        kinds[list(self.end)] = lib.LZS_TOKEN_END
        lengths = np.fromiter(map(len, self.pieces), np.int64, self.n_vocab)
        too_long = (lengths > 65535) & (kinds == lib.LZS_TOKEN_TEXT)
        if too_long.any():
            raise ArgumentError(f"pieces must have at most 65535 bytes, got {lengths[too_long.argmax()]}")
        ends = np.cumsum(lengths).astype(np.uint64)
        out = ffi.new("lzs_vocabulary **")
        check(
            lib.lzs_vocabulary_new(
                self.n_vocab,
                ffi.from_buffer("uint8_t[]", b"".join(self.pieces)),
                ffi.from_buffer("uint64_t[]", ends),
                ffi.from_buffer("uint8_t[]", kinds),
                out,
            )
        )
        self.handle: Any = ffi.gc(out[0], lib.lzs_vocabulary_free, lib.lzs_vocabulary_memory(out[0]))

    @property
    def n_vocab(self) -> int:
        """Number of tokens."""
        return len(self.pieces)

    @property
    def token_bytes(self) -> "TokenBytes":
        """This object itself, so that callers can pass it instead of a model."""
        return self

    @cached_property
    def spelling(self) -> "Spelling":
        """How the tokenizer turns texts into tokens. The first use takes a second for a large vocabulary.

        ValueError if there is no ``speller``; LzsError if the tokenizer is unknown.
        """
        if self._speller is None:
            raise ArgumentError("lzsampler does not know how these tokens spell texts: give a Spelling of them instead")
        return self._speller(self)

    @cached_property
    def part_masks(self) -> "PartMasks":
        """The cache of masks for strings, numbers and other parts, which all grammars of these tokens share.

        The states of each part have a limit of 8 MiB, and do not count for ``max_bytes`` of a grammar.
        """
        return PartMasks(self)

    def __repr__(self) -> str:
        return f"TokenBytes({self.n_vocab} tokens, end={self.end})"


class Spelling:
    """How a tokenizer turns a text into tokens: by byte pair encoding, or as SentencePiece does.

    ``tokens``: the vocabulary. ``merges``, int[n, 2]: the left and right tokens of each merge of a byte pair encoding,
    by rank. ``scores``, float[n_vocab]: the scores of SentencePiece. Give either ``merges`` or ``scores``. ``words``:
    the pre-tokenizer, which splits a text into words (docs/tokenization.md). Merges apply only within a word.
    ``whole_words``: whether a word that is in the vocabulary becomes one token without any merge, as in Llama 3.
    ``whole``: ids of tokens that are found in a text before it is split, such as user-defined tokens.
    ``byte_tokens``: ids of SentencePiece's tokens of one byte, which spell the characters outside the vocabulary.

    `TokenBytes.spelling` is the `Spelling` of a model, checked against the model's tokenizer. Any number of threads may
    use a `Spelling`. ValueError for arguments out of range.
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
            raise ArgumentError("words and whole_words need merges: with scores, a whole text is one word")
        if whole_words and words == "none":
            raise ArgumentError("whole_words is about the words of a pre-tokenizer: give words, too")
        whole, byte_tokens = tuple(whole), tuple(byte_tokens)
        self.token_bytes = tokens
        self.words = words
        self.set_apart = frozenset((*whole, *byte_tokens))  # tokens that neither merges nor scores produce
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
        """This object itself, so that callers can pass it instead of a vocabulary."""
        return self

    def wrong(self, tokens: Tokens) -> int | None:
        """Return the index at which ``tokens``, int[n], first differ from the tokenizer's own tokens; None if they are
        equal.

        The index n means that the tokenizer would write one more token. ValueError for an id outside the vocabulary.
        """
        array = token_array("tokens", tokens, self.token_bytes.n_vocab)
        out = ffi.new("size_t *")
        check(lib.lzs_spelling_check(self.handle, ffi.from_buffer("int32_t[]", array), array.size, out))
        found = int(out[0])
        return found if found < _NO_TOKEN else None

    @property
    def memory(self) -> int:
        """Memory of the `Spelling`, in bytes."""
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


@dataclass(frozen=True)
class Figures:
    """Statistics of a `PartMasks`: its parts, masks and bytes, and how many masks it found or had to make so far."""

    parts: int
    masks: int
    memory: int
    found: int
    made: int


class PartMasks:
    """A cache of masks for parts of grammars, shared by all grammars of one vocabulary.

    `TokenBytes.part_masks` is the default cache. The parts are the strings, numbers and names in `Grammar.json_schema`
    and `Grammar.yaml_schema`. If another schema has the same part, the masks of the part are reused. ``max_bytes``: the
    memory for masks; 0 is 32 MiB. If the masks need more memory, some are dropped. Any number of threads may use this
    object.
    """

    def __init__(self, vocabulary: TokenBytes, *, max_bytes: int = 0) -> None:
        if not isinstance(vocabulary, TokenBytes):
            raise ArgumentTypeError(f"vocabulary must be a TokenBytes, got {vocabulary!r:.50}")
        self.vocabulary = vocabulary
        out = ffi.new("lzs_part_masks **")
        check(lib.lzs_part_masks_new(vocabulary.handle, integer("max_bytes", max_bytes, 0, INT32_MAX), out))
        self.handle: Any = ffi.gc(out[0], lib.lzs_part_masks_free)  # `lzs_part_masks *`

    @property
    def figures(self) -> Figures:
        """The current statistics."""
        out = ffi.new("lzs_part_masks_figures *")
        while (status := lib.lzs_part_masks_look(self.handle, out)) == lib.LZS_ELIMIT:
            time.sleep(0.001)  # another thread uses the masks, for a few milliseconds at most
        check(status)
        return Figures(out.n_parts, out.n_masks, out.bytes, out.found, out.made)

    def __repr__(self) -> str:
        found = self.figures
        masks, parts = counted(found.masks, "mask"), counted(found.parts, "part")
        return f"<PartMasks of {self.vocabulary.n_vocab} tokens: {masks} of {parts}>"


class HasTokenBytes(Protocol):
    """A `TokenBytes`, or an object that has one: a `Model` or a `Spelling`."""

    @property
    def token_bytes(self) -> TokenBytes:
        """The bytes of the vocabulary's tokens."""


def token_bytes_of(vocabulary: HasTokenBytes) -> TokenBytes:
    """Return the bytes of a vocabulary's tokens; TypeError if ``vocabulary`` has none."""
    tokens = getattr(vocabulary, "token_bytes", None)
    if not isinstance(tokens, TokenBytes):
        raise ArgumentTypeError(
            f"vocabulary must be a Model, TokenBytes, Spelling or the `lz` of an LZLlama, got {vocabulary!r:.50}"
        )
    return tokens
