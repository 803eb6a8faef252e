"""Cells of tables (CSV, SQLite): decides whether a cell has a model's text, or JSON that contains it."""

from collections.abc import Mapping
from typing import Any

from ..formats.completion import holds_one
from ..formats.preference import PAIRS
from ..formats.promptfoo import COLUMN
from .decode import unpacked
from .messages import CONTENT, PART_TYPES, is_conversation, is_known_role, is_message, role_of, unfolded

_TEXTS = {"content", *CONTENT, *(side for pair in PAIRS for side in pair)}
# Keys in the choices or candidates of an API. The choices of a question in a model's answer lack all of these keys.
_OF_CHOICES = {"message", "finish_reason", "finishReason", "content"}
# Keys around choices that have only a text; around a list of choices in a model's answer there are other keys, too.
_OF_COMPLETIONS = {"id", "object", "created", "model", "choices", "usage", "system_fingerprint"}
_PART_KEYS = {
    "text",
    "thought",
    "thoughtSignature",
    "reasoningContent",
    "generated_text",
}  # keys of parts without a type
_OF_APIS = ({"model", "response", "done"}, {"text", "finish_reason"})  # Ollama, Cohere


def value_of(column: str, cell: Any) -> Any:
    """Return the value in a cell, written as JSON or as Python prints a list. Otherwise return the cell's text.

    In a column of answers or contents, JSON is taken as the model's own text. The exceptions are the forms that
    programs write there: messages, parts of a content, or an answer of an API.
    """
    found = unpacked(cell)
    if found is cell or not (column in _TEXTS or holds_one(column) or COLUMN.match(column)):
        return found
    return found if _is_of_a_program(found) else cell


def _is_of_a_program(value: Any) -> bool:
    if isinstance(value, list):
        said = is_conversation(value) and any(map(_is_said, value))
        parts = bool(value) and all(isinstance(part, Mapping) for part in value)
        return said or (parts and (any(map(_is_part, value)) or all(part.keys() <= _PART_KEYS for part in value)))
    if not isinstance(value, Mapping):
        return False
    choices = value.get("choices") or value.get("candidates")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, Mapping):
        texts = "text" in first and value.keys() <= _OF_COMPLETIONS
        if texts or not _OF_CHOICES.isdisjoint(first):
            return True
    inside = value.get("output")
    if isinstance(inside, Mapping) and is_message(inside.get("message")):  # Bedrock
        return True
    return value.get("object") == "response" or any(keys <= value.keys() for keys in _OF_APIS) or _is_said(value)


def _is_said(value: Any) -> bool:
    return is_message(value) and is_known_role(role_of(unfolded(value)))


def _is_part(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind in PART_TYPES
