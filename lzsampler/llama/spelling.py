"""How the tokenizer of a GGUF file splits texts into tokens: by merges or scores, checked against the tokenizer."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..constraint.tokens import Spelling, TokenBytes, Words
from ..errors import LzsError
from . import gguf
from .binding import llama_cpp

# The pre-tokenizers of llama.cpp whose regular expressions match one of the kinds of `Words`.
WORDS_OF: dict[str, Words] = {
    **dict.fromkeys(
        ("gpt-2", "phi-2", "mpt", "olmo", "jais", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de"), "gpt2"
    ),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), "gpt2-digits"),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "smaug-bpe", "dbrx"), "llama3"),
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen"), "qwen2"),
}
WHOLE_WORDS = frozenset({"llama3", "llama-v3", "llama-bpe", "falcon3"})
"""Pre-tokenizers for which llama.cpp writes a word as one token if the vocabulary has it, whatever the merges say."""

N_PAIRS = 1500  # number of pairs of each kind that are compared with the tokenizer

TEXTS = (
    "It's 9:30 o'clock, and we're late - they'd said \"you'll wait\", hadn't they? 1,234.50 (or 12345678) left...",
    '{"name": "Anna", "age": 34, "tags": ["new", "old"], "nested": {"a": [], "b": null, "c": -1.5e-10}}',
    '{\n    "id": 10000000,\n\t"text": "a\\nb\\u00e9",\n    "items": [\n        1,\n        333\n    ]\n}\n',
    "def f(x, y=None):\n    # comment\n    if x >= 10:\n        return [i**2 for i in range(x)]\n\n\n    return 'x'\n",
    "for (int i = 0; i < n; i++) {\n\t\tsum += a[i] * 0xFF; // ok\r\n\t}\r\n  }  \n   \n\n x\n\t\n   y  ",
    "Ünïcödé: Größe, naïve, Ελληνικά, русский язык, 中文字符, 日本語テキスト, 한국어, العربية, עברית, हिन्दी, ไทย.",
    "Emoji 🙂👍🏽 — “quotes” … № ½ ² Ⅷ ١٢٣ ٤٥٦٧ ①②③ a\u00a0b\u3000c\u2028d\u200be\ufeff",
    "   leading and trailing   ",
    "''' 'S 'RE 'LL 'd'D 're've'll 'r 'l 'v 'q ''s '\n's\n'\t''ll!'m it's's they'rex they'lly",
    "http://www.example.com/a?b=c&d=%20#e_f-g~h user@example.org C:\\dir\\f.txt <a href='#'>&amp;</a> $$x^2$$ ```py\n",
    "!!!\n\n???\r\n\r\n...\n   ...\n\n\n   \n word\n\n\nword\t\tword \t word  \n  12 345  6789\n1\n 2\n  3",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa          ==========--------########\n\n\n\n\n\n\n\n" + " " * 70 + "x",
)


class Tokenizer(Protocol):
    """The methods of `Vocabulary` that this module calls."""

    def tokenize(self, text: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the tokens of a text, and the start of each token."""

    def ids_with(self, attribute: int) -> list[int]:
        """Return the tokens that have an attribute of llama.cpp."""


def spelling_of(loaded: Tokenizer, header: gguf.Header, tokens: TokenBytes) -> Spelling:
    """Return how the tokenizer of a GGUF file splits texts into tokens. ``tokens``: the bytes of its tokens.

    The result is checked against the tokenizer, on texts of all kinds and on pairs of tokens. LzsError, with the
    reason, if the tokenizer is unknown or disagrees with the result.
    """
    made = _read(header, loaded, tokens)
    _compare(made, loaded, header.path)
    return made


def _read(header: gguf.Header, loaded: Tokenizer, tokens: TokenBytes) -> Spelling:
    kind = header.metadata.get("tokenizer.ggml.model")
    whole, byte_tokens = loaded.ids_with(llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED), []
    if kind == "llama":
        byte_tokens = loaded.ids_with(llama_cpp.LLAMA_TOKEN_ATTR_BYTE)
        scores = header.metadata.get("tokenizer.ggml.scores")
        if not isinstance(scores, list) or len(scores) != tokens.n_vocab:
            raise _refusal(header.path, "the file has no scores of its tokens")
        return Spelling(tokens, scores=scores, whole=whole, byte_tokens=byte_tokens)
    if kind != "gpt2":
        raise _refusal(
            header.path, f"tokenizers of the kind {kind!r} are not known, only 'gpt2' (BPE) and 'llama' (SPM)"
        )
    pre = header.metadata.get("tokenizer.ggml.pre")
    if pre not in WORDS_OF:
        raise _refusal(header.path, f"its pre-tokenizer {pre!r} is not one of {', '.join(sorted(WORDS_OF))}")
    ids = {text: token for token, text in reversed(list(enumerate(header.vocabulary)))}
    merges = [(ids[left], ids[right]) for left, right in _merges(header) if left in ids and right in ids]
    return Spelling(tokens, merges=merges, words=WORDS_OF[pre], whole_words=pre in WHOLE_WORDS, whole=whole)


def _merges(header: gguf.Header) -> Iterator[tuple[str, str]]:
    merges = header.metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, list):
        raise _refusal(header.path, "the file has no merges")
    for merge in merges:
        at = merge.find(" ", 1)
        yield merge[:at], merge[at + 1 :]


def _refusal(path: Path, reason: str) -> LzsError:
    return LzsError(
        f"lzsampler does not know how the tokenizer of {path.name} splits texts: {reason}; use tokenization any"
    )


def _compare(made: Spelling, loaded: Tokenizer, path: Path) -> None:
    """Raise LzsError if the spelling forbids what the tokenizer writes, or allows what the tokenizer does not write."""
    for text in TEXTS:
        ids = loaded.tokenize(text)[0]
        at = made.wrong(ids)
        if at is not None:
            piece = made.token_bytes.pieces[int(ids[min(at, ids.size - 1)])]
            raise _refusal(path, f"in a sample it writes {piece!r} where its merges and pre-tokenizer do not")
    # SentencePiece may put a space before a text. The line feed separates this space from the compared tokens.
    before = "\n" if made.words == "none" else ""
    prefix = loaded.tokenize(before)[0].tolist()
    for pair in _pairs(made):
        joined = b"".join(made.token_bytes.pieces[token] for token in pair)
        expected = [*prefix, *pair]
        written = loaded.tokenize(before + joined.decode())[0].tolist()
        if (made.wrong(expected) is None) != (written == expected):
            raise _refusal(path, f"it {'writes' if written == expected else 'does not write'} {joined!r} as {pair}")


def _pairs(made: Spelling) -> Iterator[list[int]]:
    """Yield pairs of tokens that are valid text together: random tokens, or the two parts of one token, which mostly
    merge.
    """
    rng, tokens = random.Random(1), made.token_bytes
    others = {*tokens.end, *tokens.special, *made.set_apart}
    usual = [token for token, piece in enumerate(tokens.pieces) if piece and token not in others]
    ids = {tokens.pieces[token]: token for token in reversed(usual)}
    for attempt in range(2 * N_PAIRS):
        first, second = rng.choice(usual), rng.choice(usual)
        if attempt % 2:
            piece = tokens.pieces[first]
            at = rng.randrange(len(piece))
            first, second = ids.get(piece[:at], first), ids.get(piece[at:], second)
        try:
            (tokens.pieces[first] + tokens.pieces[second]).decode()
        except UnicodeDecodeError:
            continue
        yield [first, second]
