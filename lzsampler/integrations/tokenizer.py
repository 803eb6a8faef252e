"""Finds the separators of the LZ penalty with a transformers tokenizer, and logs warnings once."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from ..params import SEPARATORS, Params
from ..separators import separators_of

LOG = logging.getLogger("lzsampler")


@cache
def warn_once(message: str) -> None:
    """Log a warning, but only once for each message."""
    LOG.warning(message)


def lz_separators(tokenizer: Any) -> dict[str, Any]:
    """Return the separators of the LZ penalty, as fields of `Params`.

    ``tokenizer``: a transformers tokenizer. Each of its tokens is decoded once (a second for 150,000 tokens).
    """
    return separators_of(tokenizer.batch_decode([[token] for token in range(len(tokenizer))]))


@lru_cache(maxsize=2)
def separators_of_server(tokenizer: Any) -> Mapping[str, bytes]:
    """Return `lz_separators` of a server's tokenizer. If that is impossible, log a warning and return an empty dict.

    A server must not end because it has no tokenizer, or a tokenizer of another library. Without separators, LZ
    penalizes tables, JSON and code more.
    """
    if tokenizer is None:
        warn_once("lzsampler has no tokenizer here, so LZ has no separators and penalizes tables, JSON and code more")
        return {}
    try:
        return lz_separators(tokenizer)
    except Exception as error:  # A tokenizer of another library may raise anything.
        warn_once(f"lzsampler cannot decode the tokens of {type(tokenizer).__name__} ({error}): LZ has no separators")
        return {}


def fitted(params: Params, n_vocab: int) -> Params:
    """Return ``params`` with bit sets for n_vocab logits, because a tokenizer may know another number of tokens."""
    size = (n_vocab + 31) // 32 * 4
    sets = {field: bits for field in SEPARATORS if (bits := getattr(params, field))}
    others = {field: bits[:size].ljust(size, b"\0") for field, bits in sets.items() if len(bits) != size}
    return replace(params, **others) if others else params
