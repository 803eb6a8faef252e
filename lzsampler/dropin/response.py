"""The `response_format` of a chat completion as a `Grammar`, if it has a JSON schema."""

import json
from collections.abc import Mapping
from typing import Any

from ..constraint.grammar import Grammar
from ..constraint.tokens import HasTokenBytes
from ..errors import ArgumentError, ArgumentTypeError

_KEPT = 16  # number of kept grammars, each with its masks
_SHAPE = '{"type": "json_schema", "json_schema": {"schema": {...}}}'
_THEIRS = "grammar=LlamaGrammar.from_json_schema(...) makes llama.cpp's grammar, which ignores unsupported keywords"


class Schemas:
    """The grammars of schemas that calls asked for; only the latest are kept."""

    def __init__(self) -> None:
        self._known: dict[str, Grammar] = {}

    def taken(self, vocabulary: HasTokenBytes, keywords: dict[str, Any]) -> dict[str, Grammar]:
        """Remove a schema from the keywords of a chat completion, and return it as lzsampler's keyword ``grammar``.

        Other formats stay in the keywords: "text" needs no grammar, and "json_object" without a schema is llama.cpp's
        own grammar for any JSON. ValueError for a schema that is not supported or missing; TypeError for a format that
        is no object.
        """
        schema = _schema_of(keywords.get("response_format"))
        if schema is None:
            return {}
        if isinstance(keywords.get("grammar"), Grammar):
            raise ArgumentError("grammar and response_format exclude each other: give one of them")
        keywords.pop("response_format")
        keywords.pop("grammar", None)  # llama-cpp-python also ignores ``grammar`` beside a schema
        return {"grammar": self._grammar(vocabulary, schema)}

    def _grammar(self, vocabulary: HasTokenBytes, schema: Any) -> Grammar:
        try:
            key = json.dumps(schema)
        except (TypeError, ValueError, RecursionError):
            key = ""  # not JSON: `Grammar.json_schema` refuses the schema below
        grammar = self._known.pop(key, None)
        if grammar is None:
            try:
                grammar = Grammar.json_schema(schema, vocabulary)
            except ValueError as error:
                raise ArgumentError(f"response_format: {error}; {_THEIRS}") from error
        self._known[key] = grammar
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return grammar


def _schema_of(response_format: Any) -> Any:
    """Return the schema of a ``response_format``; None if it needs no schema."""
    if response_format is None:
        return None
    if not isinstance(response_format, Mapping):
        raise ArgumentTypeError(f"response_format must be an object such as {_SHAPE}, got {response_format!r:.60}")
    kind = response_format.get("type")
    if kind == "json_schema":
        inner = response_format.get("json_schema")
        if not isinstance(inner, Mapping) or inner.get("schema") is None:
            raise ArgumentError(f"response_format must be {_SHAPE}, got {dict(response_format)!r:.80}")
        return inner["schema"]
    if kind not in ("text", "json_object"):
        raise ArgumentError(f"response_format must have the type text, json_object or json_schema, got {kind!r:.40}")
    return response_format.get("schema") if kind == "json_object" else None


def refuse_other_vocabulary(llm: Any, grammar: Grammar | None) -> None:
    """Raise ValueError if the vocabularies of a grammar and of a `llama_cpp.Llama` differ in size."""
    if isinstance(grammar, Grammar) and grammar.vocabulary.n_vocab != llm.n_vocab():
        raise ArgumentError(
            f"grammar must be for the {llm.n_vocab()} tokens of this model, got a grammar for "
            f"{grammar.vocabulary.n_vocab}: make it with token_bytes(llm)"
        )
