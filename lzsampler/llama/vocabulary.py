"""The vocabulary of a GGUF file, without its weights: tokens of a text, text of tokens, and token sets for Params."""

import ctypes
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, finalize

import numpy as np
import numpy.typing as npt

from ..constraint.tokens import Spelling, TokenBytes
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..params import Params, uses_separators
from ..separators import separators_of
from ..util.in_use import InUse, any_thread
from . import gguf
from .alone import refuse_closed
from .binding import llama_cpp
from .gbnf import GbnfMatcher, matchers
from .log import captured_log, reason
from .spelling import spelling_of

DRY_BREAKERS = ("\n", ":", '"', "*")  # llama.cpp's default


class Vocabulary:
    """The vocabulary of a GGUF file. ValueError for a path that is not a file, LzsError for a file without a
    vocabulary.

    Any number of threads may use a `Vocabulary`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = gguf.read(path).path
        settings = llama_cpp.llama_model_default_params()
        settings.vocab_only = True
        with captured_log() as errors:
            self._model = llama_cpp.llama_model_load_from_file(os.fsencode(self.path), settings)
        if not self._model:
            raise LzsError(
                f"llama.cpp cannot load the vocabulary of {self.path}: {reason(errors) or 'no reason given'}"
            )
        # Runs when nothing refers to this object any more, or when Python ends, before llama_cpp itself is unloaded.
        self._freed = finalize(self, llama_cpp.llama_model_free, self._model)
        self.in_use = InUse(f"this Vocabulary ({self.path.name})", "open the file again")
        self.n_vocab = int(llama_cpp.llama_vocab_n_tokens(self.pointer))
        self._pieces: dict[int, bytes] = {}

    @property
    def pointer(self) -> Any:
        """The ``llama_vocab *``; LzsError once the vocabulary is closed."""
        if not self._model:
            raise LzsError(f"the vocabulary of {self.path.name} is closed: open it again")
        return llama_cpp.llama_model_get_vocab(self._model)

    @cached_property
    @any_thread
    def token_bytes(self) -> TokenBytes:
        """The bytes of the vocabulary's tokens, for a `Grammar`."""
        return _token_bytes(self.pointer, self.path)

    def gbnf(self, text: str) -> Callable[[], GbnfMatcher]:
        """Return a factory of matchers, each in the start state of a GBNF grammar, for `Grammar.gbnf`."""
        return matchers(text, Vocabulary(self.path), self.token_bytes.end[0])

    @any_thread
    def ids_with(self, attribute: int) -> list[int]:
        """Return the tokens that have an attribute of llama.cpp (LLAMA_TOKEN_ATTR_...)."""
        vocab = self.pointer
        return [i for i in range(self.n_vocab) if llama_cpp.llama_vocab_get_attr(vocab, i) & attribute]

    def close(self) -> None:
        """Free the vocabulary. LzsError while it is in use. A closed vocabulary raises LzsError when used."""
        self.in_use.close(self._free)

    def _free(self) -> None:
        self._model = None
        self._freed()

    @any_thread
    def tokenize(self, text: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return a text's tokens, int32[n], and the character at which each token starts, int64[n], ascending.

        There is no BOS token, and the names of special tokens are ordinary text. A token that is part of a character
        starts at that character. If a vocabulary changes the text (white space, case), a token starts at the end of the
        bytes of the token before it.
        """
        data = text.encode("utf-8", "replace")  # a lone surrogate becomes "?": one character, one byte
        tokens = self._tokens(data)
        starts = np.empty(tokens.size, np.int64)
        at = 0
        for i, token in enumerate(tokens.tolist()):
            starts[i] = at
            piece = self._piece(token)
            if data.startswith(piece, at):
                at += len(piece)
            elif data.startswith(piece[1:], at) and piece.startswith(b" "):  # the tokenizer put a space before the text
                at += len(piece) - 1
            else:
                at = min(len(data), at + len(piece))
        begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
        before = np.concatenate(([0], np.cumsum(begins)))  # characters that begin before each byte
        inside = np.concatenate((~begins, [False]))
        return tokens, before[starts] - inside[starts]

    @any_thread
    def detokenize(self, tokens: npt.NDArray[np.int32]) -> str:
        """Return the text of tokens, with special tokens by their names; bytes that are not UTF-8 become U+FFFD.

        ValueError for a token that the vocabulary does not have.
        """
        outside = (tokens < 0) | (tokens >= self.n_vocab)
        if outside.any():
            raise ArgumentError(
                f"token {tokens[outside.argmax()]} is not one of the {self.n_vocab} tokens of {self.path}"
            )
        return b"".join(map(self._piece, tokens.tolist())).decode("utf-8", "replace")

    @any_thread
    def token_texts(self) -> "_TokenTexts":
        """Return the texts of the vocabulary's tokens."""
        return _TokenTexts(self.pointer)

    def _tokens(self, data: bytes) -> npt.NDArray[np.int32]:
        room = len(data) // 2 + 16
        while True:
            tokens = np.empty(room, np.int32)
            pointer = tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
            n = llama_cpp.llama_tokenize(self.pointer, data, len(data), pointer, room, False, False)
            if n >= 0:
                return tokens[:n]
            if n == -(2**31):
                raise LzsError(f"llama.cpp cannot tokenize a text of {len(data):,} bytes: it is too long")
            room = -n

    def _piece(self, token: int) -> bytes:
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = _piece(self.pointer, token, ctypes.create_string_buffer(64))
        return piece


@lru_cache(maxsize=1)
def vocabulary(path: str | Path) -> Vocabulary:
    """Return the vocabulary of a file. Only the last file's vocabulary stays loaded."""
    return Vocabulary(path)


def tokenizer(path: str | Path) -> Callable[[str], tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]:
    """Return the tokenizer of a GGUF file, for `lzsampler.audit`."""
    return vocabulary(path).tokenize


def token_bytes(source: Any) -> TokenBytes:
    """Return the byte string of every token, for a `Grammar`. All tokenizers of llama.cpp are supported.

    ``source``: a `llama_cpp.Llama`, a `Vocabulary`, or the path of a GGUF file, of which only the vocabulary is read.
    End tokens are llama.cpp's EOG tokens. Control, unknown and unused tokens are special. Raises TypeError for
    another ``source``; ValueError for a path that is not a file and for a vocabulary without an end token; LzsError as
    `Vocabulary`.
    """
    if isinstance(source, str | Path):
        loaded = Vocabulary(source)
        try:
            return loaded.token_bytes
        finally:
            loaded.close()
    if isinstance(source, Vocabulary):
        return source.token_bytes
    if not isinstance(source, llama_cpp.Llama):
        raise ArgumentTypeError(f"source must be a llama_cpp.Llama, a Vocabulary or a path, got {source!r:.50}")
    refuse_closed(source)
    return _token_bytes(llama_cpp.llama_model_get_vocab(source.model), source.model_path)


def _token_bytes(vocab: Any, path: str | Path) -> TokenBytes:
    n_vocab = int(llama_cpp.llama_vocab_n_tokens(vocab))
    buffer = ctypes.create_string_buffer(256)
    pieces = [_piece(vocab, token, buffer, special=False) for token in range(n_vocab)]
    other = llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN | llama_cpp.LLAMA_TOKEN_ATTR_UNUSED | llama_cpp.LLAMA_TOKEN_ATTR_CONTROL
    end = [token for token in range(n_vocab) if llama_cpp.llama_vocab_is_eog(vocab, token)]
    if not end:
        raise ArgumentError("this vocabulary has no end token, so no text under a grammar could end")
    special = {token for token in range(n_vocab) if llama_cpp.llama_vocab_get_attr(vocab, token) & other}
    return TokenBytes(pieces, end=end, special=special - set(end), speller=partial(_spelling, path))


def _spelling(path: str | Path, tokens: TokenBytes) -> Spelling:
    loaded = Vocabulary(path)
    try:
        return spelling_of(loaded, gguf.read(path), tokens)
    finally:
        loaded.close()


def exempt_ids(llm: Any, strings: Iterable[str]) -> tuple[int, ...]:
    """Return the token ids of strings in the vocabulary of a `llama_cpp.Llama`, for `Params.exempt`.

    Raises TypeError for another ``llm`` and for anything but a list of strings, ValueError for an empty string.
    """
    if not isinstance(llm, llama_cpp.Llama):
        raise ArgumentTypeError(f"llm must be a llama_cpp.Llama, got {llm!r}")
    _check_strings(strings)
    ids: set[int] = set()
    for string in strings:
        _check_string(string)
        ids.update(llm.tokenize(string.encode(), add_bos=False, special=True))
    return tuple(sorted(ids))


def dry_breaker_ids(source: Any, strings: Iterable[str] | None = None) -> tuple[int, ...]:
    """Return the ids of all tokens whose text contains one of the strings, for `Params.dry_breakers`.

    ``source``: a `llama_cpp.Llama` or a `Vocabulary`. The first call reads the texts of all its tokens (half a second
    for 262,144). ``strings``: None means llama.cpp's own strings (a line break, a colon, a double quote and an
    asterisk). A string of llama.cpp that no token contains is skipped. The text of a special token is its name.

    For a string of one character, the result is the tokens at which llama.cpp's DRY ends a repetition. For a longer
    string, llama.cpp also ends a repetition where several tokens together spell the string. A set of token ids cannot
    represent such a spelling.

    Raises TypeError for another ``source`` and for anything but a list of strings, ValueError for an empty string and
    for a string that no token contains.
    """
    if strings is not None:
        _check_strings(strings)
    wanted = DRY_BREAKERS if strings is None else tuple(strings)
    texts = _texts_of(source)
    ids: set[int] = set()
    for string in wanted:
        _check_string(string)
        found = texts.with_part(string.encode("utf-8", "replace"))
        if not found and strings is not None:
            raise ArgumentError(f"no token of this vocabulary contains {string!r:.60}: leave it out of dry_breakers")
        ids.update(found)
    return tuple(sorted(ids))


def lz_separators(source: Any) -> dict[str, Any]:
    """Return the separators of the LZ penalty, as fields of `Params`; `lzsampler.separators` defines them.

    ``source``: as for `dry_breaker_ids`. The first call takes a second for 262,144 tokens.
    """
    return _texts_of(source).separators


def token_classes(source: Any, params: Params, breakers: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the separators and the ``dry_breakers`` of a vocabulary, if ``params`` use them.

    The keys are names of fields of `Params`. ``breakers``: strings for `dry_breaker_ids`. Raises like
    `dry_breaker_ids`.
    """
    made: dict[str, Any] = {**lz_separators(source)} if uses_separators(params) else {}
    if params.dry_multiplier > 0:
        made["dry_breakers"] = dry_breaker_ids(source, breakers)
    return made


def with_token_classes(source: Any, params: Params, breakers: Sequence[str] | None = None) -> Params:
    """Return settings with the `token_classes` of a vocabulary."""
    return replace(params, **token_classes(source, params, breakers))


def _texts_of(source: Any) -> "_TokenTexts":
    if not isinstance(source, llama_cpp.Llama | Vocabulary):
        raise ArgumentTypeError(f"source must be a llama_cpp.Llama or a Vocabulary, got {source!r}")
    texts = _token_texts.get(source)
    if texts is None:
        if isinstance(source, Vocabulary):
            texts = source.token_texts()
        else:
            texts = _TokenTexts(llama_cpp.llama_model_get_vocab(source.model))
        _token_texts[source] = texts
    return texts


def _check_strings(strings: object) -> None:
    if isinstance(strings, str | bytes) or not isinstance(strings, Iterable):
        raise ArgumentTypeError(f"strings must be a list of strings, got {strings!r}")


def _check_string(string: object) -> None:
    if not isinstance(string, str):
        raise ArgumentTypeError(f"strings must be non-empty strings, got {string!r}")
    if not string:
        raise ArgumentError("strings must be non-empty strings, got ''")


class _TokenTexts:
    """The texts of all tokens of a llama_vocab, joined in one bytes object that regular expressions search quickly."""

    def __init__(self, vocab: Any) -> None:
        n_vocab = int(llama_cpp.llama_vocab_n_tokens(vocab))
        buffer = ctypes.create_string_buffer(256)
        pieces = [_piece(vocab, token, buffer) for token in range(n_vocab)]
        self._joined = b"".join(pieces)
        self._ends = np.cumsum([len(piece) for piece in pieces])
        self.with_part = lru_cache(maxsize=256)(self._with_part)

    @cached_property
    def separators(self) -> dict[str, Any]:
        """The separators of the LZ penalty, as fields of `Params`."""
        return separators_of(self._joined[begin:end] for begin, end in pairwise([0, *self._ends]))

    def _with_part(self, part: bytes) -> list[int]:
        """Return the tokens whose text contains the given bytes."""
        matches = re.finditer(b"(?=" + re.escape(part) + b")", self._joined)  # the lookahead also finds overlaps
        starts = np.fromiter((match.start() for match in matches), np.int64)
        tokens = np.searchsorted(self._ends, starts, side="right")
        inside = starts + len(part) <= self._ends[tokens]  # drop matches across two tokens
        return [int(token) for token in np.unique(tokens[inside])]


_token_texts: WeakKeyDictionary[Any, _TokenTexts] = WeakKeyDictionary()


def _piece(vocab: Any, token: int, buffer: Any, *, special: bool = True) -> bytes:
    """Return a token's text. The text of a special token is its name, or b"" if ``special`` is False.

    ``buffer``: a ctypes buffer, which the function uses if it is large enough.
    """
    n = llama_cpp.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, special)
    if n < 0:
        buffer = ctypes.create_string_buffer(-n)
        n = llama_cpp.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, special)
    return ctypes.string_at(buffer, max(n, 0))
