"""Rows with a prompt and its answer under `completion`, `response`, `output` or a similar key, or with `text` alone.

Many data sets have such rows, and most private scripts write such rows. So do deepeval (`actual_output`), LLaMA-Factory
(`predict`), EvalPlus (`raw_solution`), LiveCodeBench (`output_list`), MT-Bench (`turns`) and transformers pipelines.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..reading.format import Format, Message, NoTextError, Source
from ..reading.messages import groups, is_message, items, kind_of, name, turn, unfolded, written

# Keys of an answer. The first of these keys that a row has is read. If a row has none of them, keys with similar names
# are tried (`_kind`), and then the ambiguous keys of _WEAK.
STRONG = (
    "completion",
    "response",
    "output",
    "generated_text",
    "generation",
    "completions",
    "responses",
    "outputs",
    "generations",
    "model_output",
    "prediction",
    "predictions",
)
_WEAK = ("answer", "answers", "solution", "solutions", "text")
_REASONING = ("reasoning_content", "reasoning", "thinking", "thought", "thoughts", "chain_of_thought", "cot")
_ANSWER = re.compile(
    r"(?:\w+[_ ])?(?:completion|response|output|generation|generated|prediction|predict|predicted|pred|sampled|answer|"
    r"reply|solution)s?(?:[_ ](?:text|list|str|string))?"
)
_THOUGHT = re.compile(r"(?:\w+[_ ])(?:reasoning|thinking|thoughts?|reasoning[_ ]content)")
# Beginnings of keys whose text was not written by a model.
_GIVEN = re.compile(
    r"(?:expected|reference|ref|gold|golden|correct|target|ground|true|truth|ideal|human|user|input|label|standard|"
    r"best|incorrect|possible|tool|test|code|non|prompt|question|system|canonical|official|oracle)[_ ]"
)
_PLURAL = re.compile(r"(?:s|s[_ ]?(?:text|list|str|string)|list)\Z")
_CAMEL = re.compile("(?<=[a-z])(?=[A-Z])")
_LONG = 80  # minimum length of each answer in an object {model: answer}
_INSIDE = ("text", "generated_text", "turns", "choices")  # keys of the text in an answer that is an object


@lru_cache(maxsize=4096)
def _kind(key: str) -> str:
    """Return "answer" or "reasoning" if the name of a key is usual for an answer or for reasoning, else ""."""
    plain = _CAMEL.sub("_", key).lower()
    if _GIVEN.match(plain):
        return ""
    return "answer" if _ANSWER.fullmatch(plain) else "reasoning" if _THOUGHT.fullmatch(plain) else ""


def holds_one(key: str) -> bool:
    """Return whether the name of a key promises a single answer or reasoning, and not a list."""
    return (key in _WEAK or key in _REASONING or bool(_kind(key))) and not _PLURAL.search(key.lower())


def strong(row: Mapping[str, Any]) -> str | None:
    """Return the key under which a row almost certainly has an answer; None without such a key."""
    for key in STRONG:
        if row.get(key) is not None:
            return key
    return next((key for key in row if row[key] and key not in _WEAK and _kind(key) == "answer"), None)


def _key(row: Mapping[str, Any]) -> str | None:
    return strong(row) or next((key for key in _WEAK if row.get(key) is not None), None)


def matches(row: Any) -> bool:
    """Recognise a row by a key of an answer, and a list of rows by its first row."""
    if isinstance(row, list):
        return bool(row) and isinstance(row[0], dict) and isinstance(row[0].get("generated_text"), str | list)
    if not isinstance(row, dict):
        return False
    choices = row.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict) and "turns" in choices[0]:
        return True
    return any(_is_readable(row.get(key)) for key in (*STRONG, *_WEAK, *(key for key in row if _kind(key) == "answer")))


def is_certain(row: Any) -> bool:
    """Return whether a row has an answer of more than two words under the key that `strong` returns."""
    if isinstance(row, list):
        return True
    key = strong(row)
    if key is None or not _is_readable(row[key]):
        return False
    return not isinstance(row[key], str) or len(row[key].split(None, 3)) > 2


def _is_readable(value: Any, depth: int = 4) -> bool:
    """Return whether a value is a text, an object with a text, or a list of texts or such objects."""
    if isinstance(value, str):
        return True
    if isinstance(value, dict) and _by_model(value):
        return True
    if isinstance(value, list):
        return not value or (depth > 0 and _is_readable(value[0], depth - 1))
    if not isinstance(value, dict):
        return False
    if is_message(value) or is_message(value.get("message")):
        return True
    key = _inner(value)
    return key is not None and depth > 0 and _is_readable(value[key], depth - 1)


def _by_model(value: Mapping[str, Any]) -> bool:
    """Return whether an answer is an object of several models' answers, {model: text}."""
    texts = [text for text in value.values() if isinstance(text, str) and len(text) >= _LONG]
    return bool(texts) and len(texts) == len(value) and not _inner(value)


def _inner(value: Mapping[str, Any]) -> str | None:
    return next((key for key in (*_INSIDE, "content") if value.get(key) is not None), None) or strong(value)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the answers of a row. If the row has a `history`, yield the answers in it first."""
    if isinstance(row, list):
        yield from answers(row, {}, None)
        return
    key = "choices" if isinstance(row.get("choices"), list) else _key(row)  # MT-Bench
    if key is None:
        raise NoTextError(f"the row has no answer: it needs one of {', '.join((*STRONG, *_WEAK))}, or a similar key")
    found, id = groups(row, source.by), name(row)
    reasoning = next((row[key] for key in _REASONING if isinstance(row.get(key), str)), None)
    if reasoning is None:
        reasoning = next((v for k, v in row.items() if _kind(k) == "reasoning" and isinstance(v, str)), None)
    history = row.get("history")
    if isinstance(history, list) and history and all(isinstance(pair, list) and len(pair) == 2 for pair in history):
        for _, told in history:  # Alpaca's history is [[user, model], ...].
            yield Message(told, None, id, found)
    yield from answers(row[key], found, id, reasoning)


def answers(value: Any, found: Mapping[str, str], id: str | None, reasoning: str | None = None) -> Iterator[Message]:
    """Yield the texts of an answer. It may be a text, a message, an object with a text or message, or a list."""
    if isinstance(value, str):
        yield Message(value, reasoning, id, found)
    elif isinstance(value, list):
        if any(isinstance(item, dict) and item.get("type") in ("reasoning", "function_call") for item in value):
            thoughts, told = items(value)  # The list is the output of OpenAI's Responses API.
            yield Message("".join(told), "".join(thoughts) or reasoning, id, found)
            return
        for one in value:
            yield from answers(one, found, id, reasoning)
    elif not isinstance(value, dict):
        raise TypeError(f"the answer is {kind_of(value)}")
    elif isinstance(value.get("message"), dict):
        message = unfolded(value["message"])
        if (made := written(message, {**found, **groups(value), **groups(message)}, id)) is not None:
            yield made
    elif is_message(value):
        message = unfolded(value)
        if (made := turn(message, {**found, **groups(message)}, id)) is not None:
            yield made
    elif _by_model(value):
        for model, text in value.items():
            yield Message(text, None, id, {**found, "model": model})
    elif (key := _inner(value)) is None:
        raise NoTextError("the answer has no text")
    elif key == "content" and not isinstance(value["content"], str):
        if (made := written(value, {**found, **groups(value)}, id)) is not None:
            yield made
    else:
        thought = next((value[k] for k in _REASONING if isinstance(value.get(k), str)), reasoning)
        yield from answers(value[key], {**found, **groups(value)}, id, thought)


FORMAT = Format(
    "completion",
    "rows with a prompt and its completion, response, output or answer, or with a text",
    matches,
    messages,
    columns=(*STRONG, *_WEAK, *_REASONING, "history"),
    is_certain=is_certain,
)
