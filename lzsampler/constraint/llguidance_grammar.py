"""Grammars that llguidance runs: from a JSON Schema, with all keywords that llguidance supports, or from Lark."""

import json
import warnings
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ArgumentTypeError, LzsError, MissingExtra, missing
from .json_values import parsed
from .matcher import LongestTokens
from .tokens import TokenBytes

try:
    import llguidance
except ImportError as error:
    if error.name != "llguidance":  # llguidance is installed but broken: show its own message
        raise MissingExtra(f"llguidance does not load: {error}") from error
    raise missing("llguidance is needed for this", "llguidance") from None

_BLANK = {"whitespace_pattern": " ?"}  # at most one blank, so that white space cannot loop
_SHOWN = 200  # maximum number of characters of llguidance's message in an error


def json_schema_source(schema: Any) -> str:
    """Return llguidance's grammar for a JSON Schema: a dict, true, false, or JSON text."""
    if isinstance(schema, bytes | str):
        schema = parsed(schema)
    if not isinstance(schema, dict | bool):
        raise ArgumentTypeError(f"schema must be a dict, true, false or JSON text, got {schema!r:.50}")
    if schema is False:
        raise ArgumentError("schema must allow at least one value, got false")
    schema = {} if schema is True else schema  # llguidance takes options only if the schema is an object
    try:
        return str(llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=_BLANK))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"schema must be JSON: {error}") from error


def lark_source(text: str) -> str:
    """Return llguidance's grammar for a text in its dialect of Lark."""
    if not isinstance(text, str):
        raise ArgumentTypeError(f"text must be a str, got {text!r:.50}")
    return str(llguidance.LLMatcher.grammar_from_lark(text))


def matchers(name: str, text: str, tokens: TokenBytes) -> Callable[[], "LlguidanceMatcher"]:
    """Return a factory of matchers, each in the grammar's start state.

    ``text``: the result of `json_schema_source` or `lark_source`. ``name``: the argument's name for errors.
    """
    tokenizer = _tokenizer(tokens)
    wrong, messages = llguidance.LLMatcher.validate_grammar_with_warnings(text, tokenizer)
    message = " ".join(" ".join(messages).split())[:_SHOWN]
    if wrong:
        raise ArgumentError(f"{name} must be one that llguidance can use: {message}")
    if message:
        warnings.warn(f"llguidance warns about the grammar: {message}", stacklevel=3)
    return lambda: LlguidanceMatcher(tokenizer, text, tokens.n_vocab)


class LlguidanceMatcher:
    """The `Matcher` of a grammar that llguidance runs."""

    def __init__(self, tokenizer: Any, text: str, n_vocab: int) -> None:
        self._matcher = llguidance.LLMatcher(tokenizer, text, log_level=0)
        self._none = np.zeros((n_vocab + 31) // 32, np.uint32)

    @property
    def failed(self) -> bool:
        """Whether the matcher raised an error and cannot be used any more."""
        return bool(self._matcher.is_error())

    def allows(self, token: int) -> bool:
        """Return whether a token may come next. The token must have text and must not be an end token."""
        allowed = not self._matcher.is_stopped() and self._matcher.validate_tokens([token]) == 1
        self._check()
        return allowed

    def take(self, token: int) -> None:
        """Advance by an allowed token."""
        if not self._matcher.consume_token(token):
            self._check()

    def accepts(self) -> bool:
        """Return whether the text may end here."""
        return bool(self._matcher.is_accepting())

    def mask(self) -> npt.NDArray[np.uint32]:
        """Return the bit mask of the tokens that may come next, uint32[ceil(n_vocab / 32)]."""
        if self._matcher.is_stopped():
            return self._none
        made = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)
        self._check()
        return made

    def _check(self) -> None:
        """Raise LzsError with the matcher's message if the matcher has failed."""
        if self.failed:
            message = " ".join(self._matcher.get_error().partition("\n")[0].split())[:_SHOWN]
            raise LzsError(f"llguidance failed: {message}")


class _Tokenizer(LongestTokens):
    """The tokenizer that llguidance uses for forced text. Other text may consist of any tokens."""

    bos_token_id = None

    def __init__(self, vocabulary: TokenBytes) -> None:
        super().__init__(vocabulary)
        self.tokens = [piece or b"\xff" for piece in vocabulary.pieces]  # llguidance marks special tokens with 0xff
        self.eos_token_id = vocabulary.end[0]
        empty = [token for token, piece in enumerate(vocabulary.pieces) if not piece]
        self.special_token_ids = sorted({*vocabulary.end, *vocabulary.special, *empty})


_TOKENIZERS: "WeakKeyDictionary[TokenBytes, Any]" = WeakKeyDictionary()


def _tokenizer(tokens: TokenBytes) -> Any:
    """Return llguidance's token tree of a vocabulary from a cache. Making the tree takes 0.3 s for 128,000 tokens."""
    known = _TOKENIZERS.get(tokens)
    if known is None:
        wrapper = llguidance.TokenizerWrapper(_Tokenizer(tokens))
        known = llguidance.LLTokenizer(wrapper, n_vocab=tokens.n_vocab, eos_token=list(tokens.end))
        _TOKENIZERS[tokens] = known
    return known
