"""Grammars of llguidance for samplers: all of JSON Schema that it knows, and Lark.

llguidance is at one place of its grammar at a time, and can go back. Samplers have many, with clones and drafts: so
states are numbers of a tree of tokens, and the matcher goes to the state that is asked for: back to where the ways
part, and on from there.
"""

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from .._check import check
from .._ffi import ffi, lib
from ..errors import ArgumentTypeError, LzsError, MissingExtra, missing
from .grammar import Grammar, Match
from .json_values import parsed
from .part_masks import PartMasks
from .token_bytes import HasTokenBytes, TokenBytes, token_bytes_of

try:
    import llguidance
except ImportError as error:
    if error.name != "llguidance":  # it is installed and broken: its own message says how
        raise MissingExtra(f"llguidance does not load: {error}") from error
    raise missing("llguidance is needed for this", "llguidance") from None

_DEAD: int = lib.LZS_GRAMMAR_DEAD
_ENDED: int = lib.LZS_GRAMMAR_ENDED
_START: int = lib.LZS_GRAMMAR_START
_MOST_STATES = 100_000  # then those that are not on the way to the one in use are forgotten
_BLANK = {"whitespace_pattern": " ?"}  # at most one, so that a loop of white space cannot happen
_SHOWN = 200  # characters of an error


def json_schema_source(schema: Any) -> str:
    """Return llguidance's grammar of a JSON Schema: a dict, true, false, or JSON text."""
    if isinstance(schema, bytes | str):
        schema = parsed(schema)
    if not isinstance(schema, dict | bool):
        raise ArgumentTypeError(f"schema must be a dict, true, false or JSON text, got {schema!r:.50}")
    if schema is False:
        raise ValueError("schema must be one that something can meet, got false")
    schema = {} if schema is True else schema  # llguidance takes options with an object only
    try:
        return str(llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=_BLANK))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"schema must be JSON: {error}") from error


def lark_source(text: str) -> str:
    """Return llguidance's grammar of a text in its dialect of Lark."""
    if not isinstance(text, str):
        raise ArgumentTypeError(f"text must be a str, got {text!r:.50}")
    return str(llguidance.LLMatcher.grammar_from_lark(text))


class LlguidanceGrammar(Grammar):
    """A `Grammar` whose masks llguidance makes; `Grammar.llguidance_json_schema` and `llguidance_lark` return one."""

    has_automaton = False

    def __init__(self, source: Mapping[str, Any], text: str, vocabulary: HasTokenBytes) -> None:
        tokens = token_bytes_of(vocabulary)
        tokenizer = _tokenizer(tokens)
        wrong, messages = llguidance.LLMatcher.validate_grammar_with_warnings(text, tokenizer)
        message = " ".join(" ".join(messages).split())[:_SHOWN]
        if wrong:
            name = "schema" if "llguidance_json_schema" in source else "text"
            raise ValueError(f"{name} must be one that llguidance can use: {message}")
        if message:
            warnings.warn(f"llguidance says of the grammar: {message}", stacklevel=3)
        self._engine = _Engine(tokens, lambda: llguidance.LLMatcher(tokenizer, text, log_level=0))
        out = ffi.new("lzs_grammar **")
        check(lib.lzs_grammar_new_engine(tokens.handle, self._engine.functions, out))
        super().__init__(source, tokens, out[0], lambda: LlguidanceGrammar(source, text, tokens))

    def match(self, text: str | bytes) -> Match:
        """Return "yes" where the text matches, "beginning" where only a longer one that begins so can, else "no"."""
        if not isinstance(text, str | bytes):
            raise ArgumentTypeError(f"text must be a str or bytes, got {text!r:.50}")
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        state, spelled = _START, 0
        for token in _Greedy(self.vocabulary)(data):
            state = self._engine.next(state, token)
            spelled += len(self.vocabulary.pieces[token])
            if state == _DEAD:
                return "no"
        if spelled < len(data):
            return "no"  # there is no token for what is left
        return "yes" if self._engine.accepts(state) else "beginning"

    def use_part_masks(self, masks: PartMasks) -> None:
        """Raise ValueError: llguidance keeps what it needs itself."""
        raise ValueError(f"a grammar of llguidance cannot share masks, got {masks!r}")

    @property
    def problem(self) -> str | None:
        """What llguidance said when it failed, in one line, or None."""
        return self._engine.problem

    @property
    def states(self) -> int:
        """Number of states that it has at the moment."""
        return len(self._engine.nodes)


class _Engine:
    """The functions that C calls, and where the matcher is."""

    def __init__(self, tokens: TokenBytes, make: Callable[[], Any]) -> None:
        self.tokens = tokens
        self.problem: str | None = None
        self.nodes: dict[int, tuple[int, int, int]] = {_START: (0, -1, 0)}  # state before, token, tokens to it
        self._following: dict[tuple[int, int], int] = {}
        self._last: int = _START
        self._make = make
        self._matcher = make()
        self._way = [_START]  # to where the matcher is
        self._ends = frozenset(tokens.end)
        text = np.array([bool(piece) for piece in tokens.pieces])
        text[[*tokens.end, *tokens.special]] = False
        self._texts, self._end_words = _words(text), _words(np.isin(np.arange(len(text)), tokens.end))
        self._is_text = text
        self._callbacks = (
            ffi.callback("int32_t(void *, int32_t, int32_t, int32_t *)", self._c_accept, lib.LZS_ELIMIT, self._failed),
            ffi.callback("int32_t(void *, int32_t, uint32_t *, size_t)", self._c_mask, lib.LZS_ELIMIT, self._failed),
            ffi.callback("int32_t(void *, int32_t, int32_t *)", self._c_trim, lib.LZS_ELIMIT, self._failed),
        )
        self.functions = ffi.new("lzs_grammar_engine *", (ffi.NULL, *self._callbacks))

    # ---- what C calls ----

    def _c_accept(self, _: Any, state: int, token: int, following: Any) -> int:
        following[0] = self.next(state, token)
        return int(lib.LZS_OK)

    def _c_mask(self, _: Any, state: int, words: Any, n_words: int) -> int:
        target = np.frombuffer(ffi.buffer(words, 4 * n_words), np.uint32)
        if state == _DEAD:
            return int(lib.LZS_OK)
        if state != _ENDED:
            self._go(state)
            if not self._matcher.is_stopped():
                made = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)
                self._check()
                target[:] = made[:n_words] & self._texts
        if state == _ENDED or self._matcher.is_accepting():
            target |= self._end_words
        return int(lib.LZS_OK)

    def _c_trim(self, _: Any, state: int, forgot: Any) -> int:
        if len(self.nodes) > _MOST_STATES:
            self._forget(state)
            forgot[0] = 1
        return int(lib.LZS_OK)

    def _failed(self, kind: Any, value: BaseException, traceback: Any) -> None:
        self.problem = " ".join(str(value).split())[:_SHOWN] or kind.__name__

    # ---- states ----

    def next(self, state: int, token: int) -> int:
        """Return the state behind a token."""
        if state in (_DEAD, _ENDED) or token in self._ends:
            ends = state != _DEAD and token in self._ends and (state == _ENDED or self.accepts(state))
            return _ENDED if ends else _DEAD
        known = self._following.get((state, token))
        if known is not None:
            return known
        if not self._is_text[token]:
            return _DEAD
        self._go(state)
        if self._matcher.is_stopped() or self._matcher.validate_tokens([token]) != 1:
            self._check()
            return _DEAD
        self._last += 1
        self.nodes[self._last] = (state, token, self.nodes[state][2] + 1)
        self._following[state, token] = self._last
        return self._last

    def accepts(self, state: int) -> bool:
        """Return whether the text may end in a state."""
        self._go(state)
        return bool(self._matcher.is_accepting())

    def _go(self, state: int) -> None:
        """Take the matcher to a state: on from where it is, or from the beginning with a new one.

        Its own `rollback` is not used: in llguidance 1.9.1, after it the masks of recursive grammars can be others.
        """
        self.problem = None
        on: list[tuple[int, int]] = []
        at = state
        while (depth := self.nodes[at][2]) >= len(self._way) or self._way[depth] != at:
            before, token, _ = self.nodes[at]
            on.append((at, token))
            at = before
        if depth < len(self._way) - 1:
            while at != _START:
                before, token, _ = self.nodes[at]
                on.append((at, token))
                at = before
            self._matcher, self._way = self._make(), [_START]
        for number, token in reversed(on):
            if not self._matcher.consume_token(token):
                self._check()
            self._way.append(number)

    def _check(self) -> None:
        """Raise what the matcher says, and begin with a new one where it has failed."""
        if not self._matcher.is_error():
            return
        message = " ".join(self._matcher.get_error().partition("\n")[0].split())[:_SHOWN]
        self._matcher, self._way = self._make(), [_START]
        raise LzsError(f"llguidance failed: {message}")

    def _forget(self, state: int) -> None:
        kept = {_START: self.nodes[_START]}
        self._following = {}
        while state > _START:
            before, token, _ = kept[state] = self.nodes[state]
            self._following[before, token] = state
            state = before
        self.nodes = kept
        self._matcher, self._way = self._make(), [_START]


class _Greedy:
    """Writes bytes with the longest tokens that fit, as far as there are some.

    A text may be spelled with any tokens, but llguidance asks for some where the text is forced.
    """

    bos_token_id = None

    def __init__(self, vocabulary: TokenBytes) -> None:
        self.tokens = [piece or b"\xff" for piece in vocabulary.pieces]  # the empty ones are special
        self.eos_token_id = vocabulary.end[0]
        empty = [token for token, piece in enumerate(vocabulary.pieces) if not piece]
        self.special_token_ids = sorted({*vocabulary.end, *vocabulary.special, *empty})
        hidden = set(self.special_token_ids)
        self._by_bytes = {piece: i for i, piece in enumerate(self.tokens) if i not in hidden}
        self._longest = max(map(len, self._by_bytes), default=1)

    def __call__(self, text: str | bytes) -> list[int]:
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


_TOKENIZERS: "WeakKeyDictionary[TokenBytes, Any]" = WeakKeyDictionary()


def _tokenizer(tokens: TokenBytes) -> Any:
    """Return llguidance's tree of the tokens, made once for a vocabulary: 0.3 s for 128,000."""
    known = _TOKENIZERS.get(tokens)
    if known is None:
        wrapper = llguidance.TokenizerWrapper(_Greedy(tokens))
        known = llguidance.LLTokenizer(wrapper, n_vocab=tokens.n_vocab, eos_token=list(tokens.end))
        _TOKENIZERS[tokens] = known
    return known


def _words(marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Return marks of tokens as a mask."""
    padded = np.zeros((len(marks) + 31) // 32 * 32, np.bool_)
    padded[: len(marks)] = marks
    return np.packbits(padded, bitorder="little").view(np.uint32)
