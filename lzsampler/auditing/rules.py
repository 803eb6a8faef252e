"""`Rules`: what counts as a loop (docs/audit.md)."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, TypeVar, cast

import numpy as np

from .._check import INT32_MAX, boolean, integer
from .._values import shown
from ..errors import ArgumentError, ArgumentTypeError
from .records import LEVELS, RULES, Level, Rule


@dataclass(frozen=True)
class Rules:
    """What counts as a loop.

    A literal loop is any unit that occurs ``literal_copies`` times in a row. A significant loop is a unit that occurs
    ``copies`` times in a row, or ``length_copies`` times if the copies have at least ``length`` characters together. If
    a unit has fewer than two different characters apart from white space, the copies always need ``length`` characters.
    Text that people rightly repeat is not a loop. Rows and code therefore need more copies than sentences, unless they
    are at the end of the text (docs/audit.md).

    ``levels``: the units that are compared: "char", "word", "line", and "token" if there are tokens. ``near``: whether
    near copies count. Near copies differ only in digits, case or white space. They need ``near_copies`` instead of
    ``length_copies``, and must be sentences, and not data whose content is numbers. Exact copies of short phrases also
    need ``near_copies``. ``rep4``: the smallest rep-4 at which a field without loops is reported as LZR010.

    A stretch is stuck (LZR011) if nearly all of its words are old. In a field with only tokens, tokens replace words.
    If an n-gram of ``stuck_ngram`` words has occurred ``stuck_count`` times within ``stuck_window`` words, the words of
    the last occurrence are old. An old word adds 1 to a score, and a new word subtracts ``stuck_weight``. A stretch
    needs the score ``stuck_score`` (0 turns the rule off). If loops cover less than half of a stuck stretch, the
    stretch is reported. A stuck stretch alone does not make its record count as looping. Data in the middle of a text,
    such as equal cells, is not reported (docs/audit.md).

    ``turns``: whether `audit_files` also looks for loops over the turns of a conversation (LZR012). Turns are the
    model's messages and tool calls. A loop over turns has ``turn_copies`` cycles in a row with at least 4 * ``length``
    characters together.

    ``lz_vocab``: the size of the vocabulary, which turns on the metric lz_bits_per_token for fields that have tokens.
    The metric is the code length of the tokens under the LZ compressor, in bits per token. 0 turns the metric off.

    ``select``: the codes of the rules that are reported. ``ignore``: codes to leave out of ``select``. LZR012 can be
    selected only with ``turns``, and at least one rule must remain.

    ValueError unless all numbers of copies are at least 2, ``length`` is at least 1, and ``rep4`` is in (0, 1]. A
    single level or code may be given without a sequence around it.
    """

    literal_copies: int = 20
    copies: int = 20
    length: int = 100
    length_copies: int = 3
    near_copies: int = 8
    levels: tuple[Level, ...] = LEVELS
    near: bool = True
    rep4: float = 0.5
    stuck_score: int = 96
    stuck_ngram: int = 12
    stuck_count: int = 3
    stuck_weight: int = 4
    stuck_window: int = 4096
    turns: bool = False
    turn_copies: int = 5
    lz_vocab: int = 0
    select: tuple[Rule, ...] = tuple(RULES)
    ignore: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        for name, low in (
            ("literal_copies", 2),
            ("copies", 2),
            ("length", 1),
            ("length_copies", 2),
            ("near_copies", 2),
            ("stuck_score", 0),
            ("stuck_ngram", 1),
            ("stuck_count", 2),
            ("stuck_weight", 0),
            ("stuck_window", 1),
            ("turn_copies", 2),
            ("lz_vocab", 0),
        ):
            object.__setattr__(self, name, integer(name, getattr(self, name), low, INT32_MAX))
        for name, choices in (("levels", LEVELS), ("select", tuple(RULES)), ("ignore", tuple(RULES))):
            object.__setattr__(self, name, _choices(name, getattr(self, name), choices))
        boolean("near", self.near)
        boolean("turns", self.turns)
        if "LZR012" in self.select and len(self.select) < len(RULES) and not self.turns:
            raise ArgumentError("select names LZR012, which needs turns=True")
        if not self.reported:
            raise ArgumentError("no rule is left: select, ignore, levels and the other settings turn all of them off")
        is_number = isinstance(self.rep4, int | float | np.number) and not isinstance(self.rep4, bool)
        if not (is_number and 0 < self.rep4 <= 1):
            raise ArgumentError(f"rep4 must be above 0 and at most 1, got {self.rep4!r}")

    @functools.cached_property
    def reported(self) -> frozenset[Rule]:
        """The codes of the rules that are selected, not ignored, and not turned off by the other settings."""
        looked_for = {
            "LZR001": "char" in self.levels,
            "LZR002": "char" in self.levels,
            "LZR003": "line" in self.levels,
            "LZR004": self.near,
            "LZR005": "word" in self.levels,
            "LZR006": "token" in self.levels,
            "LZR011": self.stuck_score > 0 and not {"word", "token"}.isdisjoint(self.levels),
            "LZR012": self.turns,
        }
        return frozenset(rule for rule in self.select if rule not in self.ignore and looked_for.get(rule, True))

    def check_tokenizer(self, tokenizer: object) -> None:
        """Raise ArgumentError if the level "token" or the rule LZR006 is requested without a tokenizer."""
        if tokenizer is not None:
            return
        for what, chosen, name, default in (
            ("levels", self.levels, "token", LEVELS),
            ("select", self.select, "LZR006", tuple(RULES)),
        ):
            if name in chosen and chosen != default:
                raise ArgumentError(f"{what} names {name}, which needs a tokenizer for texts")


class RuleOptions(TypedDict, total=False):
    """The fields of `Rules` as keyword arguments. A single value may be given without a sequence around it."""

    literal_copies: int
    copies: int
    length: int
    length_copies: int
    near_copies: int
    levels: Level | Sequence[Level]
    near: bool
    rep4: float
    stuck_score: int
    stuck_ngram: int
    stuck_count: int
    stuck_weight: int
    stuck_window: int
    turns: bool
    turn_copies: int
    lz_vocab: int
    select: Rule | Sequence[Rule]
    ignore: Rule | Sequence[Rule]


_Function = TypeVar("_Function", bound=Callable[..., Any])


def takes_rules(function: _Function) -> _Function:
    """Show the fields of `Rules` in the signature of a function with ``**rules``, for editors and help.

    Calls with any other keyword argument raise `ArgumentTypeError`.
    """
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    parameters += [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in fields(Rules)
    ]
    there = {parameter.name for parameter in parameters}

    @functools.wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        for name in named:
            if name not in there:
                listed = ", ".join(parameter.name for parameter in parameters)
                raise ArgumentTypeError(f"{function.__name__} has no argument {name!r}; it has {listed}")
        return function(*arguments, **named)

    checked.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return cast(_Function, checked)


def names(given: object) -> tuple[str, ...]:
    """Return one or more names or paths as strings. A string is one name, not a sequence of characters."""
    if isinstance(given, str | os.PathLike):
        return (os.fspath(given),)
    listed = list(given) if isinstance(given, Iterable) else [given]
    found = [os.fspath(name) for name in listed if isinstance(name, str | os.PathLike)]
    if len(found) != len(listed):
        raise ArgumentTypeError(f"expected a name or a sequence of names, got {shown(given)}")
    return tuple(found)


def _choices(name: str, given: object, choices: tuple[str, ...]) -> tuple[str, ...]:
    listed = list(given) if isinstance(given, Sequence | set | frozenset) and not isinstance(given, str) else [given]
    for value in listed:
        if value not in choices:
            raise ArgumentError(f"{name} must be one or more of {', '.join(choices)}; got {value!r}")
    return tuple(choice for choice in choices if choice in listed)
