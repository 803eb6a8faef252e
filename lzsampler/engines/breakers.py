"""Token ids of the breakers of LZ, from a tokenizer of transformers; and what is logged once."""

import logging
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from ..params import LZ_BREAKERS

LOG = logging.getLogger("lzsampler")


@cache
def warn_once(message: str) -> None:
    """Log a warning, the first time that it is given."""
    LOG.warning(message)


def lz_breaker_ids(tokenizer: Any, strings: Iterable[str] = LZ_BREAKERS) -> tuple[int, ...]:
    """Return the ids of all tokens whose text contains one of the strings, for `Params.lz_breakers`.

    ``tokenizer``: one of transformers; each of its tokens is decoded once (a second for 150,000).
    """
    texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
    return tuple(token for token, text in enumerate(texts) if any(string in text for string in strings))


@lru_cache(maxsize=2)
def usual_breakers(tokenizer: Any) -> tuple[int, ...]:
    """Return the usual breakers of a server's tokenizer; none, with a warning, where it has none or it is another kind.

    A server must not end for this: LZ then costs tables, JSON and code more.
    """
    if tokenizer is None:
        warn_once("lzsampler has no tokenizer here, and LZ no breakers: give lz_breakers, or tables and code cost more")
        return ()
    try:
        return lz_breaker_ids(tokenizer)
    except Exception as error:  # whatever a tokenizer of another kind raises
        warn_once(f"lzsampler cannot decode the tokens of {type(tokenizer).__name__} ({error}): LZ has no breakers")
        return ()
