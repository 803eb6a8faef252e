"""`Automaton`: the states of a grammar, for people who inspect it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._check import INT32_MAX, check, integer
from .._ffi import ffi, lib
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from .grammar import Grammar
from .tokens import PartMasks

MAX_STATES = 2_000
_FORMATS = ("date", "time", "date-time", "uuid")
_VALUES: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    *({"type": "string", "format": name} for name in _FORMATS),
)
COMMON: tuple[dict[str, Any], ...] = (
    *_VALUES,
    *({"type": "object", "properties": {"name": value}, "required": ["name"]} for value in _VALUES),
)
_MOST_STATES = 500  # maximum number of states that `prepare_part_masks` visits for a schema


@dataclass(frozen=True)
class State:
    """A state of an automaton over bytes.

    ``matches``: whether a text that ends here matches. ``edges``: index of the next state -> the bytes that lead to
    this state. ``allowed``: the number of tokens that the mask allows, end tokens included.
    """

    matches: bool
    edges: dict[int, tuple[int, ...]]
    allowed: int


@dataclass(frozen=True)
class Automaton:
    """The deterministic automaton of a grammar. The first state is the start state.

    ``complete``: False if the grammar has more states. Edges to the missing states are left out.
    """

    states: tuple[State, ...]
    complete: bool

    @property
    def forced(self) -> int:
        """Number of states that allow only one token."""
        return sum(state.allowed == 1 for state in self.states)


def automaton_of(grammar: Grammar, limit: int = MAX_STATES, *, part_masks: PartMasks | None = None) -> Automaton:
    """Return at most ``limit`` (1..2**31 - 1) states of a grammar, ordered by their distance from the start state.

    ``part_masks``: the cache for masks, instead of the vocabulary's own cache.

    TypeError for anything but a `Grammar`; LzsError if a state reaches a limit of the grammar.
    """
    if not isinstance(grammar, Grammar):
        raise ArgumentTypeError(f"grammar must be a Grammar, got {grammar!r:.50}")
    if not grammar.has_automaton:
        raise ArgumentError("grammar must be one of lzsampler's own: GBNF and llguidance have no automaton")
    limit = integer("limit", limit, 1, INT32_MAX)
    own = grammar.copy()  # state numbers are valid only until other code uses the grammar
    if part_masks is not None:
        own.use_part_masks(part_masks)
    n_vocab = own.vocabulary.n_vocab
    words = np.empty((n_vocab + 31) // 32, np.uint32)
    pointer = ffi.from_buffer("uint32_t[]", words, require_writable=True)
    matches, following = ffi.new("int32_t *"), ffi.new("int32_t *")
    numbers = {int(lib.LZS_GRAMMAR_START): 0}  # state number in the grammar -> index in `states`
    order = list(numbers)
    states: list[State] = []
    complete = True
    while len(states) < len(order):
        at = order[len(states)]
        _check(own, lib.lzs_grammar_state(own.handle, at, matches, pointer, len(words)))
        edges: dict[int, list[int]] = {}
        for byte in range(256):
            _check(own, lib.lzs_grammar_step(own.handle, at, byte, following))
            to = following[0]
            if to < 0:
                continue
            if to not in numbers and len(order) < limit:
                numbers[to] = len(order)
                order.append(to)
            if to in numbers:
                edges.setdefault(numbers[to], []).append(byte)
            else:
                complete = False
        allowed = int(np.unpackbits(words.view(np.uint8)).sum())
        states.append(State(matches[0] != 0, {to: tuple(some) for to, some in edges.items()}, allowed))
    return Automaton(tuple(states), complete)


def prepare_part_masks(masks: PartMasks, schemas: Iterable[dict[str, Any] | bool | str] = COMMON) -> None:
    """Fill a cache with the masks for the parts of JSON Schemas, by default strings, numbers, dates and UUIDs.

    The function visits the states of each schema, up to 500, ordered by their distance from the start state. Raises the
    errors of `Grammar.json_schema`.
    """
    if isinstance(schemas, dict | str) or not isinstance(schemas, Iterable):
        raise ArgumentTypeError(f"schemas must be a list of schemas, got {schemas!r:.50}")
    for schema in schemas:
        grammar = Grammar.json_schema(schema, masks.vocabulary, share=False)
        automaton_of(grammar, _MOST_STATES, part_masks=masks)


def _check(grammar: Grammar, status: int) -> None:
    if status == lib.LZS_ELIMIT:
        raise LzsError(grammar.problem or "the grammar reached a limit")
    check(status)
