"""`Grammar`: the texts that are allowed, for `Sampler.set_grammar`."""

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._check import INT32_MAX, boolean, check, integer
from .._ffi import ffi, lib
from .._values import shown
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..util.in_use import InUse, one_thread
from .matcher import DEAD, START, LongestTokens, Matcher, MatcherStates
from .tokens import HasTokenBytes, PartMasks, Spelling, TokenBytes, token_bytes_of

if TYPE_CHECKING:
    from .json_schema import Translator

Tokenization = Literal["any", "forced", "proper"]
_TOKENIZATIONS: dict[str, int] = {
    "any": lib.LZS_TOKENIZATION_ANY,
    "forced": lib.LZS_TOKENIZATION_FORCED,
    "proper": lib.LZS_TOKENIZATION_PROPER,
}
Match = Literal["no", "beginning", "yes"]
_MATCHES: dict[int, Match] = {lib.LZS_NO_MATCH: "no", lib.LZS_BEGINNING: "beginning", lib.LZS_MATCH: "yes"}
_VALUES = frozenset(("choices", "json_schema", "yaml_schema", "llguidance_json_schema"))
_SHOWN = 60  # maximum number of characters of a source in a repr


class Grammar:
    """A constraint on texts, for one vocabulary, made by `regex`, `choices`, `json_schema`, `yaml_schema` or `gbnf`.

    `Sampler.set_grammar` takes a grammar. A grammar makes its states and masks when they are first needed and keeps
    them, so several samplers should share one grammar. Only one thread at a time may use a grammar: other threads get
    an LzsError. Give each thread a `copy`. A grammar cannot be pickled.

    ``source``: {"regex": the pattern}, {"choices": the texts}, {"json_schema": the schema}, {"yaml_schema": the schema}
    or {"gbnf": the text}. If ``tokenization`` is not "any", ``source`` contains it too.

    ``tokenization``: which token sequences are allowed for an allowed text. "any": all sequences that spell the text.
    "proper": only the tokens that the model's tokenizer would write. "forced": as "proper" where the grammar allows
    only one next byte, and as "any" elsewhere. "proper" and "forced" need the tokenizer, from a `Model`, a GGUF file or
    a `Spelling`.
    """

    has_automaton = True  # whether `automaton_of` can read the grammar's states
    picks_first = False  # see `EngineGrammar`

    def __init__(
        self, source: Mapping[str, Any], vocabulary: TokenBytes, handle: Any, again: Callable[[], "Grammar"]
    ) -> None:
        self.source = source
        self.vocabulary = vocabulary
        self._again = again
        self.spelling: Spelling | None = None  # kept alive: C borrows it
        self.part_masks: PartMasks | None = None  # kept alive: C borrows it
        self.handle = ffi.gc(handle, lib.lzs_grammar_free, lib.lzs_grammar_memory(handle))  # `lzs_grammar *`
        self.in_use = InUse("this Grammar", "give each thread a copy() of it")

    @classmethod
    def regex(
        cls, pattern: str | bytes, vocabulary: HasTokenBytes, *, tokenization: Tokenization = "any", max_bytes: int = 0
    ) -> "Grammar":
        """Return the grammar of the texts that a regular expression matches from beginning to end.

        ``pattern``: in the dialect of docs/grammar.md; bytes are UTF-8. ``vocabulary``: a `Model`, a `TokenBytes` or a
        `Spelling`. ``tokenization``: see `Grammar`; ValueError or LzsError if the vocabulary does not know the
        tokenizer. ``max_bytes``: the memory for states and masks; 0 is 128 MiB. If states and masks need more memory,
        they are dropped and made again when needed. Anything outside the dialect raises a ValueError with the offset
        and the reason.
        """
        if not isinstance(pattern, str | bytes):
            raise ArgumentTypeError(f"pattern must be a str or bytes, got {pattern!r:.50}")
        data = pattern if isinstance(pattern, bytes) else _utf8("pattern", pattern)

        def make(tokens: TokenBytes, limit: int, error: Any, out: Any) -> int:
            return int(lib.lzs_grammar_new_regex(data, len(data), tokens.handle, limit, error, out))

        def refusal(offset: int, reason: str) -> str:
            if offset > len(data):
                return f"pattern must be one that can be used: {reason}"
            rest = data[offset : offset + 24].decode("utf-8", "replace")
            place = f"byte {offset}" if isinstance(pattern, bytes) else f"character {_characters(data[:offset])}"
            return f"pattern must be as in docs/grammar.md, but at {place} ({rest!r}) {reason}"

        return cls._made({"regex": data.decode("utf-8", "replace")}, refusal, make, vocabulary, tokenization, max_bytes)

    @classmethod
    def choices(
        cls, texts: Sequence[str], vocabulary: HasTokenBytes, *, tokenization: Tokenization = "any", max_bytes: int = 0
    ) -> "Grammar":
        """Return the grammar that allows exactly the given texts. There must be at least one.

        ``vocabulary``, ``tokenization`` and ``max_bytes`` as in `regex`. ValueError for more than 4 MiB of text.
        """
        given = isinstance(texts, Iterable) and not isinstance(texts, str | bytes)
        choices = list(texts) if given else []
        if not given or not all(isinstance(text, str) for text in choices):
            raise ArgumentTypeError(f"texts must be a list of strings, got {texts!r:.50}")
        if not choices:
            raise ArgumentError("texts must have at least one choice")
        parts = [_utf8("texts", text) for text in choices]
        joined = b"".join(parts)
        ends = np.fromiter(accumulate(map(len, parts)), np.uint64, len(parts))

        def make(tokens: TokenBytes, limit: int, error: Any, out: Any) -> int:
            array = ffi.from_buffer("uint64_t[]", ends)
            text = ffi.from_buffer("uint8_t[]", joined)
            return int(lib.lzs_grammar_new_choices(text, array, len(parts), tokens.handle, limit, error, out))

        def refusal(_: int, reason: str) -> str:
            return f"texts must be choices that can be used: {reason}"

        return cls._made({"choices": choices}, refusal, make, vocabulary, tokenization, max_bytes)

    @classmethod
    def json_schema(
        cls,
        schema: dict[str, Any] | bool | str | bytes,
        vocabulary: HasTokenBytes,
        *,
        depth: int = 5,
        closed: bool = True,
        tokenization: Tokenization = "any",
        max_bytes: int = 0,
        share: bool = True,
    ) -> "Grammar":
        """Return a grammar of JSON texts that meet a JSON Schema (draft 2020-12), in the form of docs/grammar.md.

        ``schema``: a dict, true, false, or JSON text. ``depth``, 1 to 32: to how many levels a recursive schema is
        unrolled, and how many levels a value without a schema may have. Deeper values are not allowed. ``closed``:
        whether to forbid two things if the schema does not mention them: further properties of an object with named
        properties, and items after `prefixItems`. ``vocabulary``, ``tokenization`` and ``max_bytes`` as in `regex`.
        ``share``: whether to keep the masks of strings and numbers in `TokenBytes.part_masks`, for all grammars with
        the same strings and numbers. Sharing does not change the masks. The states of each shared part have a limit of
        8 MiB, and do not count for ``max_bytes``. ValueError for a schema that no value can meet, and for an
        unsupported keyword; the message has the keyword and its JSON pointer. Only annotations are ignored.
        """
        return cls._schema("json_schema", None, schema, vocabulary, depth, closed, tokenization, max_bytes, share)

    @classmethod
    def yaml_schema(
        cls,
        schema: dict[str, Any] | bool | str | bytes,
        vocabulary: HasTokenBytes,
        *,
        depth: int = 5,
        closed: bool = True,
        tokenization: Tokenization = "any",
        max_bytes: int = 0,
        share: bool = True,
    ) -> "Grammar":
        """Return a grammar of YAML texts whose values meet a JSON Schema: block mappings and sequences.

        docs/grammar.md defines the form. Everything else is as in `json_schema`.
        """
        from .yaml_schema import YamlTranslator

        return cls._schema(
            "yaml_schema", YamlTranslator, schema, vocabulary, depth, closed, tokenization, max_bytes, share
        )

    @classmethod
    def llguidance_json_schema(
        cls, schema: dict[str, Any] | bool | str | bytes, vocabulary: HasTokenBytes
    ) -> "EngineGrammar":
        """Return a grammar for a JSON Schema with any keywords that llguidance supports. llguidance makes the masks.

        MissingExtra, an ImportError, if the package ``llguidance`` is missing. Where JSON allows white space, the
        grammar allows at most one blank. llguidance ignores unknown keywords. ValueError if llguidance refuses the
        schema. docs/grammar.md lists the limits of a grammar that llguidance runs.
        """
        from .llguidance_grammar import json_schema_source, matchers

        tokens = token_bytes_of(vocabulary)
        made = matchers("schema", json_schema_source(schema), tokens)
        return EngineGrammar({"llguidance_json_schema": schema}, tokens, made, "llguidance")

    @classmethod
    def llguidance_lark(cls, text: str, vocabulary: HasTokenBytes) -> "EngineGrammar":
        """Return a grammar from its text in llguidance's dialect of Lark, which can express any context-free grammar.

        Errors and limits as in `llguidance_json_schema`.
        """
        from .llguidance_grammar import lark_source, matchers

        tokens = token_bytes_of(vocabulary)
        return EngineGrammar(
            {"llguidance_lark": text}, tokens, matchers("text", lark_source(text), tokens), "llguidance"
        )

    @classmethod
    def gbnf(cls, text: str, vocabulary: HasTokenBytes) -> "EngineGrammar":
        """Return a grammar from its text in GBNF, llama.cpp's language of grammars. llama.cpp makes the masks.

        The rule ``root`` stands for the whole generated text. ``vocabulary``: a `Model`, whose file is opened a second
        time, without the weights. ValueError for more than 64 KiB, and for a grammar that llama.cpp refuses; the
        message has the reason. docs/grammar.md lists the limits of a grammar in GBNF.
        """
        if not isinstance(text, str):
            raise ArgumentTypeError(f"text must be a str, got {text!r:.50}")
        _utf8("text", text)
        tokens = token_bytes_of(vocabulary)
        gbnf = getattr(vocabulary, "gbnf", None)
        if gbnf is None:
            raise ArgumentTypeError(f"vocabulary must be a Model, whose llama.cpp reads GBNF, got {vocabulary!r:.50}")
        return EngineGrammar({"gbnf": text}, tokens, gbnf(text), "llama.cpp", picks_first=True)

    @classmethod
    def _schema(
        cls,
        name: str,
        kind: "type[Translator] | None",
        schema: dict[str, Any] | bool | str | bytes,
        vocabulary: HasTokenBytes,
        depth: int,
        closed: bool,
        tokenization: Tokenization,
        max_bytes: int,
        share: bool,
    ) -> "Grammar":
        from .json_schema import MAX_DEPTH, parts_of

        if not isinstance(schema, dict | bool):
            from .json_values import parsed

            schema = parsed(schema)
        integer("depth", depth, 1, MAX_DEPTH), boolean("closed", closed)
        try:
            parts = parts_of(schema, depth, closed, kind)
        except ValueError as error:
            if name != "json_schema" or "not supported" not in str(error):
                raise
            raise ArgumentError(f"{error}; or try Grammar.llguidance_json_schema, in Python") from None
        numbers, children, text = parts.arrays()

        def make(tokens: TokenBytes, limit: int, error: Any, out: Any) -> int:
            rows = ffi.from_buffer("lzs_part[]", numbers)
            return int(
                lib.lzs_grammar_new_parts(
                    rows,
                    len(rows),
                    ffi.from_buffer("uint32_t[]", children),
                    len(children),
                    ffi.from_buffer("uint8_t[]", text),
                    len(text),
                    tokens.handle,
                    limit,
                    error,
                    out,
                )
            )

        def refusal(offset: int, reason: str) -> str:
            where, at = parts.place(offset) or ("#", None)
            if where.endswith("/format"):  # the pattern of a format is correct, so only the lengths can be wrong
                at, reason = None, "format does not go with these lengths: leave minLength and maxLength out"
            return f"schema must be as in docs/grammar.md, but at {where}: {reason}" + (
                "" if at is None else f" (at character {at} of the pattern)"
            )

        boolean("share", share)
        return cls._made({name: schema}, refusal, make, vocabulary, tokenization, max_bytes, share)

    @classmethod
    def _made(
        cls,
        source: Mapping[str, Any],
        refusal: Callable[[int, str], str],
        make: Callable[..., int],
        vocabulary: HasTokenBytes,
        tokenization: Tokenization,
        max_bytes: int,
        share: bool = False,
    ) -> "Grammar":
        if not isinstance(tokenization, str) or tokenization not in _TOKENIZATIONS:
            raise ArgumentError(f"tokenization must be one of {', '.join(_TOKENIZATIONS)}, got {shown(tokenization)}")
        tokens = token_bytes_of(vocabulary)
        spelling = None if tokenization == "any" else _spelling_of(vocabulary)
        out, error = ffi.new("lzs_grammar **"), ffi.new("lzs_grammar_error *")
        status = make(tokens, integer("max_bytes", max_bytes, 0, INT32_MAX), error, out)
        if status == lib.LZS_EINVAL and error.reason[0] != b"\0":
            raise ArgumentError(refusal(error.offset, ffi.string(error.reason).decode("utf-8", "replace")))
        check(status)
        named = source if spelling is None else {**source, "tokenization": tokenization}
        kept = tokens if spelling is None else spelling
        made = cls(
            named, tokens, out[0], lambda: cls._made(source, refusal, make, kept, tokenization, max_bytes, share)
        )
        if share:
            made.use_part_masks(tokens.part_masks)
        if spelling is not None:
            made.spelling = spelling
            check(lib.lzs_grammar_set_tokenization(made.handle, spelling.handle, _TOKENIZATIONS[tokenization]))
        return made

    @classmethod
    def proper(cls, vocabulary: HasTokenBytes, *, max_bytes: int = 0) -> "Grammar":
        """Return the grammar that allows every text, but only the tokens that the tokenizer would write for it.

        Control tokens and tokens that end a text are always allowed. ``vocabulary`` and ``max_bytes`` as in `regex`.
        """
        return cls._proper(_spelling_of(vocabulary), max_bytes)

    @classmethod
    def _proper(cls, spelling: Spelling, max_bytes: int) -> "Grammar":
        out = ffi.new("lzs_grammar **")
        check(lib.lzs_grammar_new_proper(spelling.handle, integer("max_bytes", max_bytes, 0, INT32_MAX), out))
        made = cls({"tokenization": "proper"}, spelling.token_bytes, out[0], lambda: cls._proper(spelling, max_bytes))
        made.spelling = spelling
        return made

    @one_thread
    def use_part_masks(self, masks: PartMasks) -> None:
        """Store the masks of the grammar's parts in ``masks``, and use masks that are already there.

        ValueError if ``masks`` belong to another `TokenBytes`.
        """
        if getattr(masks, "vocabulary", None) is not self.vocabulary:
            raise ArgumentError(f"masks must be of the grammar's own vocabulary, {self.vocabulary}, got {masks!r}")
        check(lib.lzs_grammar_share(self.handle, masks.handle))
        self.part_masks = masks

    def copy(self) -> "Grammar":
        """Return a grammar that allows the same texts and has its own states and masks, for another thread."""
        return self._again()

    def __reduce__(self) -> tuple[Any, ...]:
        raise pickle.PicklingError("a Grammar cannot be pickled: make it again from its source")

    @one_thread
    def match(self, text: str | bytes) -> Match:
        """Return "yes" if the text matches, "beginning" if it is only the beginning of texts that match, else "no"."""
        if not isinstance(text, str | bytes):
            raise ArgumentTypeError(f"text must be a str or bytes, got {text!r:.50}")
        data = text if isinstance(text, bytes) else _utf8("text", text)
        out = ffi.new("int32_t *")
        status = lib.lzs_grammar_match(self.handle, data, len(data), out)
        if status == lib.LZS_ELIMIT:
            raise LzsError(self.problem or "the grammar reached a limit")
        check(status)
        return _MATCHES[int(out[0])]

    @property
    def is_value(self) -> bool:
        """Whether the grammar's texts are values or choices.

        Texts of a pattern or of `proper` may contain reasoning.
        """
        return not _VALUES.isdisjoint(self.source)

    @property
    @one_thread
    def problem(self) -> str | None:
        """The limit that the last step reached, in one line, or None."""
        found = lib.lzs_grammar_problem(self.handle)
        return ffi.string(found).decode() if found else None

    @property
    @one_thread
    def states(self) -> int:
        """Number of states that the grammar holds now."""
        return int(lib.lzs_grammar_states(self.handle))

    @property
    @one_thread
    def memory(self) -> int:
        """Memory of the grammar in bytes, without the vocabulary."""
        return int(lib.lzs_grammar_memory(self.handle))

    def __repr__(self) -> str:
        text = repr(next(iter(self.source.items())))
        return f"<Grammar: {text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}>"


class EngineGrammar(Grammar):
    """A `Grammar` whose masks another engine makes.

    ``make``: a function that returns a `Matcher` in the grammar's start state. ``engine``: the engine's name.
    ``picks_first``: whether a greedy sampler first picks among all tokens. The sampler then needs a mask only if the
    grammar does not allow the picked token. True suits an engine that takes long for a mask.
    """

    has_automaton = False

    def __init__(
        self,
        source: Mapping[str, Any],
        tokens: TokenBytes,
        make: Callable[[], Matcher],
        engine: str,
        *,
        picks_first: bool = False,
    ) -> None:
        self.engine, self.picks_first = engine, picks_first
        self._states = MatcherStates(tokens, make, picks_first)
        out = ffi.new("lzs_grammar **")
        check(lib.lzs_grammar_new_engine(tokens.handle, self._states.functions, out))

        def again() -> EngineGrammar:
            return EngineGrammar(source, tokens, make, engine, picks_first=picks_first)

        super().__init__(source, tokens, out[0], again)

    @cached_property
    def longest(self) -> LongestTokens:
        """The function that splits a text into tokens, for `match`."""
        return LongestTokens(self.vocabulary)

    @one_thread
    def match(self, text: str | bytes) -> Match:
        """Return "yes" if the text matches, "beginning" if it is only the beginning of texts that match, else "no"."""
        if not isinstance(text, str | bytes):
            raise ArgumentTypeError(f"text must be a str or bytes, got {text!r:.50}")
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        state, spelled = START, 0
        for token in self.longest(data):
            state = self._states.next(state, token)
            spelled += len(self.vocabulary.pieces[token])
            if state == DEAD:
                return "no"
        if spelled < len(data):
            return "no"  # no token fits the rest of the text
        return "yes" if self._states.accepts(state) else "beginning"

    def use_part_masks(self, masks: PartMasks) -> None:
        """Raise ValueError, because the engine keeps its own masks."""
        raise ArgumentError(f"a grammar of {self.engine} cannot share masks, got {masks!r}")

    @property
    @one_thread
    def problem(self) -> str | None:
        """The engine's error message in one line, or None. Raises KeyboardInterrupt if Ctrl-C came while C called the
        engine.
        """
        self._states.check_interrupted()
        return self._states.problem

    @property
    @one_thread
    def states(self) -> int:
        """Number of states that the grammar holds now."""
        return len(self._states.nodes)


def _spelling_of(vocabulary: HasTokenBytes) -> Spelling:
    if isinstance(vocabulary, Spelling):
        return vocabulary
    return token_bytes_of(vocabulary).spelling


def _characters(data: bytes) -> int:
    """Return how many characters have their first byte in ``data``, a part of a UTF-8 text."""
    return sum(byte & 0xC0 != 0x80 for byte in data)


def _utf8(name: str, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{name} must be valid Unicode: there is a lone surrogate at {error.start}") from error
