"""Checks of single values and small tables, and functions that write values and counts in messages.

numpy is imported only for a value that needs it: `params` uses this module for the help of the command line, and
importing numpy would double the time that the help takes.
"""

import math
from collections.abc import Iterable, Mapping

from .errors import ArgumentError, ArgumentTypeError

INT32_MAX = 2**31 - 1
FLOAT_MAX = float.fromhex("0x1.fffffep127")  # of a float32
FLOAT_MIN = float.fromhex("0x1p-126")  # the smallest normal float32
_SHOWN = 60  # characters of a value that a message shows


def shown(value: object) -> str:
    """Return the beginning of a value's repr for a message, because a value from a request may have any size."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an integer of thousands of digits, deeply nested lists, or a class whose repr fails
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def noun(n: float, one: str, several: str = "") -> str:
    """Return the singular for a count of 1, else the plural: token, tokens. ``several``: the plural if it is not
    ``one`` + s.

    The word may have a verb with it, as in "record loops", "records loop".
    """
    return one if n == 1 else several or f"{one}s"


def counted(n: int, one: str, several: str = "") -> str:
    """Return a count followed by its word in the form that `noun` chooses: 1 token, 2,048 tokens."""
    return f"{n:,} {noun(n, one, several)}"


def boolean(name: str, value: object) -> bool:
    """Return ``value`` as a bool (numpy's too); otherwise raise an error that is both a TypeError and a ValueError."""
    if isinstance(value, bool):
        return value
    import numpy as np

    if not isinstance(value, np.bool_):
        raise ArgumentTypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def integer(name: str, value: object, low: int, high: int, high_is: str = "") -> int:
    """Return ``value`` as an int of low..high (numpy integers too); otherwise TypeError or ValueError.

    ``high_is``: words for the message that explain the upper bound, starting with a comma.
    """
    if type(value) is int and low <= value <= high:
        return value
    import numpy as np

    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ArgumentTypeError(f"{name} must be an integer, got {shown(value)}")
    if not low <= int(value) <= high:
        raise ArgumentError(f"{name} must be from {low} to {high}{high_is}, got {shown(value)}")
    return int(value)


def number(name: str, value: object, low: float, high: float) -> float:
    """Return ``value`` as a float of low..high (numpy's numbers too); otherwise TypeError or ValueError."""
    if type(value) is float and low <= value <= high:
        return value
    import numpy as np

    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"{name} must be a number, got {shown(value)}")
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        raise ArgumentError(f"{name} must be finite, got {shown(value)}")
    given = value if isinstance(value, int) else float(value)  # an int may be too large for a float
    if not low <= given <= high:
        only_low = given < low and high == FLOAT_MAX and low > -high
        bounds = f"at least {low:g}" if only_low else f"from {low:.2g} to {high:.3g}"
        raise ArgumentError(f"{name} must be {bounds}, got {shown(value)}")
    return float(given)


def token_ids(name: str, tokens: object, hint: str) -> tuple[int, ...]:
    """Return the distinct token ids, sorted. ``hint``: the function of lzsampler.llama that a message recommends."""
    if isinstance(tokens, str | bytes) or not hasattr(tokens, "__iter__"):
        raise ArgumentTypeError(f"{name} must be a sequence of token ids, got {shown(tokens)}")
    ids = list(tokens)
    for token in ids:
        if isinstance(token, str):
            raise ArgumentTypeError(
                f"{name} takes token ids; lzsampler.llama.{hint}(llm, [{shown(token)}]) returns the ids of a string"
            )
    return tuple(sorted({integer(name, token, 0, INT32_MAX) for token in ids}))


def bias_pairs(table: object) -> tuple[tuple[int, float], ...]:
    """Return the pairs of token id and bias, sorted, so that equal tables compare equal and can be hashed."""
    import numpy as np

    if isinstance(table, str | bytes) or not hasattr(table, "__iter__"):
        raise ArgumentTypeError(f"logit_bias must be a dict of token ids and numbers, got {shown(table)}")
    pairs: dict[int, float] = {}
    for pair in table.items() if isinstance(table, Mapping) else table:
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ArgumentTypeError(f"logit_bias must be pairs of a token id and a number, got {shown(pair)}")
        token, value = pair
        if isinstance(token, str):
            raise ArgumentTypeError(
                f"logit_bias takes token ids, got {shown(token)}: llm.tokenize() returns the ids of a string"
            )
        token = integer("logit_bias", token, 0, INT32_MAX)
        if token in pairs:
            raise ArgumentError(f"logit_bias must have one number for each token, got two for {token}")
        if isinstance(value, float | np.floating) and not math.isfinite(value):
            if value != -math.inf:
                raise ArgumentError(f"logit_bias must be finite, or -inf to forbid the token, got {shown(value)}")
            pairs[token] = -math.inf
        else:
            pairs[token] = number("logit_bias", value, -FLOAT_MAX, FLOAT_MAX)
    return tuple(sorted(pairs.items()))


# Keywords that only other functions of lzsampler or the command line have, and what to do instead.
_ELSEWHERE = {
    "penalty_scope": "only lzsampler.generate and Chat tell the parts of a text apart",
    "loop_scope": "only lzsampler.generate and Chat tell the parts of a text apart",
    "grammar_scope": "only lzsampler.generate and Chat tell the parts of a text apart",
    "preset": "give the fields of a preset, as in **PRESETS['paper'] (lzsampler.params)",
}


def unknown_keyword(function: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the TypeError for an unknown keyword of a function, with the name that the caller may have meant."""
    from difflib import get_close_matches  # imported here since only a failing call needs it

    close = get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    if name in _ELSEWHERE:
        hint = f"; {_ELSEWHERE[name]}"
    return TypeError(f"{function}() got an unexpected keyword argument {shown(name)}{hint}")


def brief(value: object) -> str:
    """Return a setting in short form for one line.

    For a bit set or a long tuple of tokens, show the number of tokens.
    """
    if isinstance(value, bytes) and value:  # a bit set
        return f"({int.from_bytes(value, 'little').bit_count():,} tokens)"
    return f"({len(value):,} tokens)" if isinstance(value, tuple) and len(value) > 8 else repr(value)
