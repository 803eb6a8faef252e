"""Text to tokens with a vocabulary alone, for the audit: where each token starts, and back to text."""

import gc
import struct
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llama_cpp")

from lzsampler import LzsError
from lzsampler.llama import DRY_BREAKERS, dry_breaker_ids, llama_cpp
from lzsampler.llama.vocabulary import tokenizer
from lzsampler.llama.vocabulary import vocabulary as opened
from lzsampler.models import default_model

SPM = Path(__file__).with_name("vectors") / "ggml-vocab-llama-spm.gguf"
TEXTS = [
    "",
    "Once upon a time there was a cat.",
    "  two spaces, a tab\tand a line\n\nend ",
    "Größe, naïve, 東京, عربى, 🙂🙃👩‍👩‍👧",
    "<s> is no BOS here, nor is </s> an end",
    "NUL \0 and \x07",
    "half a pair: \ud83d, and more",
    "\u0300 a mark first",
]


@pytest.mark.parametrize("path", [SPM, default_model()], ids=["spm", "embedded"])
@pytest.mark.parametrize("text", TEXTS)
def test_tokens_start_where_their_text_does(path: Path, text: str) -> None:
    vocabulary = opened(path)
    tokens, starts = vocabulary.tokenize(text)
    assert tokens.dtype == np.int32
    assert starts.dtype == np.int64
    assert tokens.size == starts.size
    if not text:
        return
    assert starts[0] == 0
    assert (np.diff(starts) >= 0).all()
    assert starts[-1] < len(text)
    shown = text.encode("utf-8", "replace").decode()
    for i, token in enumerate(tokens.tolist()):  # a piece that is whole characters stands in the text where it starts
        piece = vocabulary._piece(token).decode("utf-8", "replace")
        if "\ufffd" not in piece:
            assert shown[starts[i] :].startswith((piece, piece.removeprefix(" ")))


def test_special_tokens_are_text() -> None:
    tokens, _ = opened(SPM).tokenize("<s></s>")
    assert tokens.size > 2
    assert not {1, 2} & set(tokens.tolist())


def test_there_and_back() -> None:
    vocabulary = opened(SPM)
    text = "Größe, 東京 and 🙂"
    assert vocabulary.detokenize(vocabulary.tokenize(text)[0]).strip() == text
    with pytest.raises(ValueError, match=f"token 32000 is not one of the 32000 tokens of {SPM}"):
        vocabulary.detokenize(np.array([1, 32000], np.int32))


def test_it_is_loaded_once() -> None:
    assert tokenizer(SPM) == tokenizer(SPM)


def test_what_is_no_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.gguf does not exist"):
        tokenizer(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(LzsError, match="is not a GGUF file"):
        tokenizer(tmp_path / "text.gguf")
    (tmp_path / "empty.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    with pytest.raises(LzsError, match=r"llama\.cpp cannot load the vocabulary of"):
        tokenizer(tmp_path / "empty.gguf")


@pytest.mark.parametrize("path", [SPM, default_model()], ids=["spm", "embedded"])
@pytest.mark.parametrize("string", [*DRY_BREAKERS, "e", "the", "aa", " ", "é", "ing"])
def test_a_breaker_is_every_token_with_the_string_in_it(path: Path, string: str) -> None:
    vocabulary = opened(path)
    expected = [t for t in range(vocabulary.n_vocab) if string.encode() in vocabulary._piece(t)]
    if expected:
        assert dry_breaker_ids(vocabulary, [string]) == tuple(expected)
    else:
        with pytest.raises(ValueError, match=f"no token of this vocabulary contains {string!r}"):
            dry_breaker_ids(vocabulary, [string])


def test_several_breakers_are_taken_together() -> None:
    vocabulary = opened(SPM)
    every = {token for string in DRY_BREAKERS for token in dry_breaker_ids(vocabulary, [string])}
    assert set(dry_breaker_ids(vocabulary)) == set(dry_breaker_ids(vocabulary, DRY_BREAKERS)) == every
    assert len(every) > 100
    assert dry_breaker_ids(vocabulary, []) == ()


def test_breakers_of_a_whole_model() -> None:
    llm = llama_cpp.Llama(str(default_model()), n_ctx=256, verbose=False)
    assert dry_breaker_ids(llm) == dry_breaker_ids(opened(default_model()))
    llm.close()


@pytest.mark.parametrize(
    ("strings", "message"),
    [
        (["a", ""], "non-empty strings, got ''"),
        ([5], "non-empty strings, got 5"),
        ("ab", "must be a list of strings, got 'ab'"),
        (["a", "\U0001f9a0\U0001f9a0"], "no token of this vocabulary contains"),
    ],
)
def test_strings_that_are_no_breakers(strings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dry_breaker_ids(opened(SPM), strings)


@pytest.mark.parametrize("source", [None, "model.gguf"])
def test_sources_that_have_no_vocabulary(source: Any) -> None:
    with pytest.raises(ValueError, match=f"source must be a llama_cpp.Llama or a Vocabulary, got {source!r}"):
        dry_breaker_ids(source)


def test_a_vocabulary_that_nobody_uses_is_freed(tmp_path: Path) -> None:
    """Also one that another file has taken the place of; one that is in use stays."""
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(default_model().read_bytes())
    first = opened(default_model())
    used, gone = first.tokenize, weakref.ref(first)
    del first
    opened(copy)
    assert used("Once")[0].size
    del used
    gc.collect()
    assert gone() is None
    opened(default_model())
