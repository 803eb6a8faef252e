"""States of a grammar in another engine that makes the masks: llguidance, or llama.cpp for GBNF.

An engine's matcher is in one state of its grammar at a time. Samplers, with their clones and drafts, need many states.
Therefore a state here is a numbered node in a tree of tokens. To reach a node below its current state, the matcher
consumes the tokens on the path. For any other node, a new matcher consumes the tokens from the start state.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._ffi import ffi, lib
from .tokens import TokenBytes

DEAD: int = lib.LZS_GRAMMAR_DEAD
ENDED: int = lib.LZS_GRAMMAR_ENDED
START: int = lib.LZS_GRAMMAR_START
_MOST_STATES = 100_000  # beyond this number, only the states on the path to the current state are kept
_SHOWN = 200  # maximum number of characters of an error message


class Matcher(Protocol):
    """A state of a grammar in another engine, at first the start state. A method that fails raises LzsError."""

    @property
    def failed(self) -> bool:
        """Whether the matcher raised an error and cannot be used any more."""

    def allows(self, token: int) -> bool:
        """Return whether a token may come next. The token must have text and must not be an end token."""

    def take(self, token: int) -> None:
        """Advance by an allowed token."""

    def accepts(self) -> bool:
        """Return whether the text may end here."""

    def mask(self) -> npt.NDArray[np.uint32]:
        """Return the bit mask of the tokens that may come next, uint32[ceil(n_vocab / 32)].

        The caller ignores the bits of tokens without text.
        """


class MatcherStates:
    """The numbered states of a grammar in another engine, and the functions by which C reads them."""

    def __init__(self, tokens: TokenBytes, make: Callable[[], Matcher], picks_first: bool) -> None:
        self.tokens = tokens
        self.problem: str | None = None
        self._interrupted: BaseException | None = None
        self._broken = False  # whether an error may have left the matcher in another state than the last one of `_way`
        self.nodes: dict[int, tuple[int, int, int]] = {START: (0, -1, 0)}  # state -> (parent, token, depth)
        self._following: dict[tuple[int, int], int] = {}
        self._last: int = START
        self._make = make
        self._matcher = make()
        self._way = [START]  # the states from the start state to the matcher's current state
        self._ends = frozenset(tokens.end)
        text = np.array([bool(piece) for piece in tokens.pieces])
        text[[*tokens.end, *tokens.special]] = False
        self._texts, self._end_words = words_of(text), words_of(np.isin(np.arange(len(text)), tokens.end))
        self._is_text = text
        self._masked: int = DEAD  # the state of the mask in `_mask`
        self._mask = self._texts
        self._callbacks = (
            ffi.callback("int32_t(void *, int32_t, int32_t, int32_t *)", self._c_accept, lib.LZS_ELIMIT, self._failed),
            ffi.callback("int32_t(void *, int32_t, uint32_t *, size_t)", self._c_mask, lib.LZS_ELIMIT, self._failed),
            ffi.callback("int32_t(void *, int32_t, int32_t *)", self._c_trim, lib.LZS_ELIMIT, self._failed),
        )
        self.functions = ffi.new("lzs_grammar_engine *", (ffi.NULL, *self._callbacks, picks_first))

    # ---- what C calls ----

    def _c_accept(self, _: Any, state: int, token: int, following: Any) -> int:
        following[0] = self.next(state, token)
        return int(lib.LZS_OK)

    def _c_mask(self, _: Any, state: int, words: Any, n_words: int) -> int:
        target = np.frombuffer(ffi.buffer(words, 4 * n_words), np.uint32)
        if state == ENDED:
            target[:] = self._end_words
        elif state != DEAD:
            if state != self._masked:
                self._masked = DEAD
                ends = self.accepts(state)
                self._mask = self._matcher.mask()[:n_words] & self._texts
                if ends:
                    self._mask |= self._end_words
                self._masked = state
            target[:] = self._mask
        return int(lib.LZS_OK)

    def _c_trim(self, _: Any, state: int, forgot: Any) -> int:
        if len(self.nodes) > _MOST_STATES:
            self._forget(state)
            forgot[0] = 1
        return int(lib.LZS_OK)

    def _failed(self, kind: Any, value: BaseException, traceback: Any) -> None:
        self.problem = " ".join(str(value).split())[:_SHOWN] or kind.__name__
        self._broken = True
        if not isinstance(value, Exception):
            self._interrupted = value

    def check_interrupted(self) -> None:
        """Raise the KeyboardInterrupt that ended a callback from C, because C cannot propagate exceptions."""
        interrupted, self._interrupted = self._interrupted, None
        if interrupted is not None:
            raise interrupted

    # ---- states ----

    def next(self, state: int, token: int) -> int:
        """Return the state after a token."""
        if state in (DEAD, ENDED) or token in self._ends:
            ends = state != DEAD and token in self._ends and (state == ENDED or self.accepts(state))
            return ENDED if ends else DEAD
        known = self._following.get((state, token))
        if known is not None:
            return known
        if not self._is_text[token]:
            return DEAD
        self._go(state)
        if not self._matcher.allows(token):
            return DEAD
        self._last += 1
        self.nodes[self._last] = (state, token, self.nodes[state][2] + 1)
        self._following[state, token] = self._last
        return self._last

    def accepts(self, state: int) -> bool:
        """Return whether the text may end in a state."""
        self._go(state)
        return self._matcher.accepts()

    def _go(self, state: int) -> None:
        """Move the matcher to a state: from its current state, or with a new matcher from the start state.

        This does not use llguidance's own `rollback`, because in llguidance 1.9.1 masks of recursive grammars can
        differ after a `rollback`. llama.cpp has no rollback of grammars.
        """
        self.problem = None
        if self._matcher.failed or self._broken:
            self._renew()
        on: list[tuple[int, int]] = []
        at = state
        while (depth := self.nodes[at][2]) >= len(self._way) or self._way[depth] != at:
            before, token, _ = self.nodes[at]
            on.append((at, token))
            at = before
        if depth < len(self._way) - 1:
            while at != START:
                before, token, _ = self.nodes[at]
                on.append((at, token))
                at = before
            self._renew()
        for number, token in reversed(on):
            self._matcher.take(token)
            self._way.append(number)

    def _renew(self) -> None:
        self._matcher, self._way, self._broken = self._make(), [START], False

    def _forget(self, state: int) -> None:
        kept = {START: self.nodes[START]}
        self._following = {}
        while state > START:
            before, token, _ = kept[state] = self.nodes[state]
            self._following[before, token] = state
            state = before
        self.nodes = kept
        self._renew()


class LongestTokens:
    """A function that splits bytes into tokens, each time with the longest token that fits."""

    def __init__(self, vocabulary: TokenBytes) -> None:
        hidden = {*vocabulary.end, *vocabulary.special}
        self._by_bytes = {piece: i for i, piece in enumerate(vocabulary.pieces) if piece and i not in hidden}
        self._longest = max(map(len, self._by_bytes), default=1)

    def __call__(self, text: str | bytes) -> list[int]:
        """Return the tokens of a text, up to the first byte at which no token fits."""
        data = text.encode() if isinstance(text, str) else text
        made, at = list[int](), 0
        while at < len(data):
            ends = range(min(len(data), at + self._longest), at, -1)
            end = next((end for end in ends if data[at:end] in self._by_bytes), None)
            if end is None:
                break
            made.append(self._by_bytes[data[at:end]])
            at = end
        return made


def words_of(marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Return one boolean for each token as a bit mask."""
    padded = np.zeros((len(marks) + 31) // 32 * 32, np.bool_)
    padded[: len(marks)] = marks
    return np.packbits(padded, bitorder="little").view(np.uint32)
