"""The vocabulary: a byte-level BPE that llama.cpp reads as model `gpt2`, pre-tokenizer `gpt-2`.

Digits are never merged, neither with each other nor with a space, so that a column addition sees columns.
llama.cpp's `gpt-2` pre-tokenizer has no rule for single digits: it keeps ` 479` together and lets the merges
decide. So digits are split off only while the merges are learnt; where no merge holds a digit, both libraries
agree on every text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def train_tokenizer(texts: Iterable[str], special_tokens: Sequence[str], size: int = 4096) -> Tokenizer:
    """A tokenizer of at most `size` entries: the special tokens from id 0, the 256 bytes, the merges."""
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def load_tokenizer(path: Path, special_tokens: Sequence[str]) -> Tokenizer:
    """A tokenizer saved before; `ValueError` if it is none or does not begin with the special tokens."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more exact
        raise ValueError(f"{path} is no tokenizer: {error}") from error
    first = [tokenizer.id_to_token(i) for i in range(len(special_tokens))]
    if first != list(special_tokens):
        raise ValueError(f"{path} begins with the tokens {first}, not with {list(special_tokens)}")
    return tokenizer


@dataclass(frozen=True)
class Vocabulary:
    """What a GGUF file holds of a byte-level BPE; bytes are written as the 256 characters of GPT-2."""

    tokens: list[str]  # by id
    merges: list[str]  # "left right", the earliest learnt first


def vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    """The tokens and merges of `tokenizer`."""
    ids = tokenizer.get_vocab()
    # The library has no accessor for merges; its own file format has had them as pairs since 0.20.
    pairs = json.loads(tokenizer.to_str())["model"]["merges"]
    return Vocabulary(sorted(ids, key=ids.__getitem__), [f"{left} {right}" for left, right in pairs])
