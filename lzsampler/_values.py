"""Checks of single values and small tables, and functions that write values and counts in messages.

Functions import numpy only when a value needs it, because numpy would double the time of a command line's help.
"""

import math
from collections.abc import Iterable, Mapping

from .errors import ArgumentError, ArgumentTypeError

INT32_MAX = 2**31 - 1
FLOAT_MAX = float.fromhex("0x1.fffffep127")  # the largest float32
FLOAT_MIN = float.fromhex("0x1p-126")  # the smallest normal float32
_SHOWN = 60  # number of characters of a value that a message shows


def shown(value: object) -> str:
    """Return the beginning of a value's repr for a message, because a value from a request may have any size."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # repr fails for an integer of thousands of digits, for deeply nested lists and for bad classes.
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def noun(n: float, one: str, several: str = "") -> str:
    """Return the word ``one`` for a count of 1, else its plural ``several``, by default ``one`` + s.

    The word may include a verb, as in "record loops", "records loop".
    """
    return one if n == 1 else several or f"{one}s"


def counted(n: int, one: str, several: str = "") -> str:
    """Return a count and its noun in the singular or plural: 1 token, 2,048 tokens."""
    return f"{n:,} {noun(n, one, several)}"


def boolean(name: str, value: object) -> bool:
    """Return ``value`` if it is a bool of Python or numpy; else raise an error that is a TypeError and a ValueError."""
    if isinstance(value, bool):
        return value
    import numpy as np

    if not isinstance(value, np.bool_):
        raise ArgumentTypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def integer(name: str, value: object, low: int, high: int, high_is: str = "") -> int:
    """Return ``value`` if it is an integer in low..high (also numpy's); else raise TypeError or ValueError.

    ``high_is``: words that explain the upper bound in the message, starting with a comma.
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
    """Return ``value`` as a float if it is a number in low..high (also numpy's); else raise TypeError or ValueError."""
    if type(value) is float and low <= value <= high:
        return value
    import numpy as np

    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"{name} must be a number, got {shown(value)}")
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        raise ArgumentError(f"{name} must be finite, got {shown(value)}")
    given = value if isinstance(value, int) else float(value)  # An int may be too large for a float.
    if not low <= given <= high:
        only_low = given < low and high == FLOAT_MAX and low > -high
        bounds = f"at least {low:g}" if only_low else f"from {low:.2g} to {high:.3g}"
        raise ArgumentError(f"{name} must be {bounds}, got {shown(value)}")
    return float(given)


def token_ids(name: str, tokens: object, hint: str) -> tuple[int, ...]:
    """Return the distinct token ids, sorted.

    ``hint``: the function of lzsampler.llama that the error for a string recommends."""
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
    """Return the pairs of token id and bias as a sorted tuple, which can be hashed."""
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


# Keywords that only other functions or the command line have -> hint for a caller who passes one to another function.
_ELSEWHERE = {
    "penalty_scope": "only lzsampler.generate and Chat tell the parts of a text apart",
    "loop_scope": "only lzsampler.generate and Chat tell the parts of a text apart",
    "grammar_scope": "only lzsampler.generate and Chat tell the parts of a text apart",
    "preset": "give the fields of a preset, as in **PRESETS['paper'] (lzsampler.params)",
}


def unknown_keyword(function: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the TypeError for an unknown keyword of a function, with the name that the caller may have meant."""
    from difflib import get_close_matches  # Only a failing call needs it.

    close = get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    if name in _ELSEWHERE:
        hint = f"; {_ELSEWHERE[name]}"
    return TypeError(f"{function}() got an unexpected keyword argument {shown(name)}{hint}")


def brief(value: object) -> str:
    """Return the repr of a setting, or the number of tokens of a bit set or a long tuple."""
    if isinstance(value, bytes) and value:
        return f"({int.from_bytes(value, 'little').bit_count():,} tokens)"
    return f"({len(value):,} tokens)" if isinstance(value, tuple) and len(value) > 8 else repr(value)
