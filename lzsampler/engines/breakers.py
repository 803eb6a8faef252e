"""Token ids of the breakers, numbers and marks of LZ, from a tokenizer of transformers; and what is logged once."""

import logging
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from ..params import LZ_BREAKERS, LZ_MARKS, LZ_NUMBERS, is_letterless

LOG = logging.getLogger("lzsampler")


@cache
def warn_once(message: str) -> None:
    """Log a warning, the first time that it is given."""
    LOG.warning(message)


def lz_breaker_ids(tokenizer: Any, strings: Iterable[str] = LZ_BREAKERS) -> tuple[int, ...]:
    """Return the ids of all tokens whose text contains one of the strings, for `Params.lz_breakers`.

    ``tokenizer``: one of transformers; each of its tokens is decoded once (a second for 150,000).
    """
    return _with_parts(_texts(tokenizer), strings)


def lz_number_ids(tokenizer: Any, strings: Iterable[str] = LZ_NUMBERS) -> tuple[int, ...]:
    """Return the ids of all tokens whose text contains one of the strings, for `Params.lz_numbers`.

    ``tokenizer``: as for `lz_breaker_ids`.
    """
    return _with_parts(_texts(tokenizer), strings)


def lz_mark_ids(tokenizer: Any, strings: Iterable[str] = LZ_MARKS) -> tuple[int, ...]:
    """Return the ids of all tokens whose text contains one of the strings, for `Params.lz_marks`.

    ``tokenizer``: as for `lz_breaker_ids`. ``strings``: "letterless" means the tokens without a letter.
    """
    return _marks(_texts(tokenizer), strings)


def usual_ids(tokenizer: Any) -> dict[str, tuple[int, ...]]:
    """Return the usual token ids of ``lz_breakers``, ``lz_numbers`` and ``lz_marks``."""
    texts = _texts(tokenizer)
    return {
        "lz_breakers": _with_parts(texts, LZ_BREAKERS),
        "lz_numbers": _with_parts(texts, LZ_NUMBERS),
        "lz_marks": _marks(texts, LZ_MARKS),
    }


def _marks(texts: list[str], strings: Iterable[str]) -> tuple[int, ...]:
    given = set(strings)
    letterless = [token for token, text in enumerate(texts) if is_letterless(text)] if given & set(LZ_MARKS) else []
    return tuple(sorted({*letterless, *_with_parts(texts, given - set(LZ_MARKS))}))


def _texts(tokenizer: Any) -> list[str]:
    texts: list[str] = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
    return texts


def _with_parts(texts: list[str], parts: Iterable[str]) -> tuple[int, ...]:
    wanted = tuple(parts)
    return tuple(token for token, text in enumerate(texts) if any(part in text for part in wanted))


@lru_cache(maxsize=2)
def usual_ids_of_server(tokenizer: Any) -> Mapping[str, tuple[int, ...]]:
    """Return `usual_ids` of a server's tokenizer; none, with a warning, where it has none or it is another kind.

    A server must not end for this: LZ then costs tables, JSON and code more.
    """
    if tokenizer is None:
        warn_once("lzsampler has no tokenizer here, and LZ no breakers: give lz_breakers, or tables and code cost more")
        return {}
    try:
        return usual_ids(tokenizer)
    except Exception as error:  # whatever a tokenizer of another kind raises
        warn_once(f"lzsampler cannot decode the tokens of {type(tokenizer).__name__} ({error}): LZ has no breakers")
        return {}
