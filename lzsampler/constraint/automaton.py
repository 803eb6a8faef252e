"""`Automaton`: the states of a grammar, for people who want to see what it is."""

from dataclasses import dataclass

import numpy as np

from .._check import INT32_MAX, check, integer
from .._ffi import ffi, lib
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..sampler import Sampler
from .grammar import Grammar
from .part_masks import PartMasks

MAX_STATES = 2_000


@dataclass(frozen=True)
class State:
    """A state of an automaton over bytes.

    ``matches``: whether a text that ends here matches. ``edges``: by the number of the state that they lead to, the
    bytes that do. ``allowed``: number of tokens that the mask allows, those that end the text included.
    """

    matches: bool
    edges: dict[int, tuple[int, ...]]
    allowed: int


@dataclass(frozen=True)
class Automaton:
    """The deterministic automaton of a grammar; the first state is where texts begin.

    ``complete``: False where there are more states. Those that were left out have no edges to them.
    """

    states: tuple[State, ...]
    complete: bool

    @property
    def forced(self) -> int:
        """Number of states that allow one token only."""
        return sum(state.allowed == 1 for state in self.states)


def automaton_of(grammar: Grammar, limit: int = MAX_STATES, *, part_masks: PartMasks | None = None) -> Automaton:
    """Return the states of a grammar, the nearest to the beginning first, at most ``limit`` (1..2**31 - 1) of them.

    ``part_masks``: where masks are kept in the place of those of the grammar's vocabulary.

    TypeError for anything but a `Grammar`; LzsError when a state reaches a limit of the grammar.
    """
    if not isinstance(grammar, Grammar):
        raise ArgumentTypeError(f"grammar must be a Grammar, got {grammar!r:.50}")
    if not grammar.has_automaton:
        raise ArgumentError("grammar must be one of lzsampler's own: GBNF and llguidance have no automaton to look at")
    limit = integer("limit", limit, 1, INT32_MAX)
    own = grammar.copy()  # numbers of states hold until someone else uses the grammar
    if part_masks is not None:
        own.use_part_masks(part_masks)
    n_vocab = own.vocabulary.n_vocab
    words = np.empty((n_vocab + 31) // 32, np.uint32)
    pointer = ffi.from_buffer("uint32_t[]", words, require_writable=True)
    matches, following = ffi.new("int32_t *"), ffi.new("int32_t *")
    numbers = {int(lib.LZS_GRAMMAR_START): 0}  # by the grammar's own
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


def forced_of(grammar: Grammar, text: str) -> tuple[int, int] | None:
    """Return (tokens that the grammar forces, tokens) of a text that it allows, in the longest tokens that fit.

    None where it does not allow the text, or where the text cannot be written so. The end is not counted.
    """
    data = text.encode()
    by_bytes = {piece: token for token, piece in reversed(list(enumerate(grammar.vocabulary.pieces))) if piece}
    longest = max(map(len, by_bytes), default=0)
    sampler = Sampler(grammar.vocabulary.n_vocab)
    sampler.set_grammar(grammar)
    forced = tokens = at = 0
    while at < len(data):
        only, words = sampler.forced(), sampler.allowed()
        assert words is not None
        for end in range(min(len(data), at + longest), at, -1):
            token = by_bytes.get(data[at:end])
            if token is not None and words[token // 32] >> (token % 32) & 1:
                break
        else:
            return None
        sampler.accept(token)
        forced += only is not None
        tokens += 1
        at = end
    return (forced, tokens) if grammar.match(text) == "yes" else None


def _check(grammar: Grammar, status: int) -> None:
    if status == lib.LZS_ELIMIT:
        raise LzsError(grammar.problem or "the grammar reached a limit")
    check(status)
