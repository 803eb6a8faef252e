"""Decides whether a cell of a table (CSV, SQLite) is a text, or JSON that a program wrote around the text."""

from collections.abc import Mapping
from typing import Any

from ..formats.completion import holds_one
from ..formats.preference import PAIRS
from ..formats.promptfoo import COLUMN
from .decode import unpacked
from .messages import CONTENT, PART_TYPES, is_conversation, is_known_role, is_message, role_of, unfolded

_TEXTS = {"content", *CONTENT, *(side for pair in PAIRS for side in pair)}
# Keys of a choice or candidate in an API's answer. If a model writes a quiz as JSON, its choices lack these keys.
_OF_CHOICES = {"message", "finish_reason", "finishReason", "content"}
# Keys of an API's answer whose choices have only a text. JSON that a model wrote has other keys beside its choices.
_OF_COMPLETIONS = {"id", "object", "created", "model", "choices", "usage", "system_fingerprint"}
_PART_KEYS = {
    "text",
    "thought",
    "thoughtSignature",
    "reasoningContent",
    "generated_text",
}  # keys of parts of a content, if the parts have no type
_OF_APIS = ({"model", "response", "done"}, {"text", "finish_reason"})  # keys of answers of Ollama and of Cohere


def value_of(column: str, cell: Any) -> Any:
    """Return the parsed value of a cell that contains JSON or a printed Python list. Otherwise return the cell.

    In a column of answers or contents, JSON usually is the model's text and is returned unparsed. Only the forms that
    programs write are parsed: messages, parts of a content, or an answer of an API.
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
