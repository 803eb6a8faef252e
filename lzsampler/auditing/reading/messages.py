"""What the formats share: texts of a content, messages of a conversation, groups and names of a row."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from .format import Message, NoTextError
from .path import Path, parse, values

# Who the model is, in `role` or `from`.
MODEL = {"assistant", "gpt", "model", "chatgpt", "bot", "ai"}
# Where reasoning stands beside the content, in the order of trust.
_REASONING = ("reasoning_content", "reasoning", "reasoningContent", "thinking", "reasoning_text")
_CALLS = ("tool_calls", "toolCalls", "function_call")
NAME_KEYS = ("custom_id", "id", "conversation_id", "conversationId", "uuid", "question_id", "prompt_id", "doc_id")
_ID = (str, int)
_GROUPS = {
    "model": ("model", "model_id", "model_name", "model_slug"),
    "temperature": ("temperature",),
    "task": ("task", "task_name"),
    "finish_reason": ("finish_reason", "stop_reason", "done_reason"),
    "seed": ("seed",),
}
SETTINGS_KEYS = (
    "settings",
    "sampling_params",
    "generation_settings",
    "generation_config",
    "params",
    "metadata",
    "options",
)
_GROUP_OF = {key: group for group, keys in _GROUPS.items() for key in keys} | dict.fromkeys(SETTINGS_KEYS, "")
GROUP_KEYS = tuple(_GROUP_OF)  # what is read of a row besides its messages, with NAME_KEYS
# A finish reason in the words of its program: in those of OpenAI's interface.
_FINISHED = {
    "limit": "length",  # llama-server
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "maxPredictedTokensReached": "length",  # LM Studio
    "contextLengthReached": "length",
    "MAX_TOKENS": "length",
    "eos": "stop",
    "word": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eosFound": "stop",
    "stopStringFound": "stop",
    "finished_successfully": "stop",
}


def text_of(value: Any) -> str | None:
    """Return a text, which may be given as a list of texts or of parts; None if there is none. TypeError for others."""
    return content(value)[1]


def content(value: Any) -> tuple[str | None, str | None]:
    """Return (reasoning, answer) of a message's content: a text, or parts of several kinds, as all the APIs have them.

    Images, tool calls and other parts without text are left out. TypeError for any other type.
    """
    if value is None or isinstance(value, str):
        return None, value
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list | tuple):
        raise TypeError(f"the content is {kind_of(value)}")
    reasoning: list[str] = []
    answer: list[str] = []
    for part in value:
        if isinstance(part, str):
            answer.append(part)
            continue
        kind = part.get("type")
        if kind in ("reasoning", "thinking", "reasoning_text", "summary_text"):
            told = next((part[key] for key in ("reasoning", "thinking", "text", "content") if part.get(key)), None)
            told = text_of(part.get("summary")) if told is None else text_of(told)
            reasoning.extend([told] if told else [])
        elif kind == "refusal":
            answer.append(part["refusal"])
        elif isinstance(part.get("text"), str):
            answer.append(part["text"])
    return "".join(reasoning) or None, "".join(answer) if answer else None


def items(output: Any) -> tuple[list[str], list[str]]:
    """Return (reasonings, answers) of the items in the output of a Response; calls of tools are left out."""
    reasoning: list[str] = []
    answer: list[str] = []
    for item in output:
        if item.get("type") == "reasoning":
            told, plain = content([{"type": "reasoning", **part} for part in item.get("content") or ()])
            summary = content(item.get("summary"))[0]
            reasoning.append(told or plain or summary or "")
        elif item.get("type") == "message":
            answer.append(content(item.get("content"))[1] or "")
    return reasoning, answer


def cut_out(text: str, begin: re.Pattern[str], ends: Mapping[str, re.Pattern[str]]) -> tuple[str, dict[str, list[str]]]:
    """Return a text without its blocks, and the blocks by kind: from a match of ``begin`` to one of ``ends[kind]``.

    The kind is the first group of the match. A block without an end reaches to the end of the text.
    """
    left: list[str] = []
    blocks: dict[str, list[str]] = {kind: [] for kind in ends}
    at = 0
    while block := begin.search(text, at):
        left.append(text[at : block.start()])
        end = ends[block[1]].search(text, block.end())
        blocks[block[1]].append(text[block.end() : end.start() if end else None])
        at = end.end() if end else len(text)
    left.append(text[at:])
    return "".join(left), blocks


def is_model(message: Any) -> bool:
    """Return whether a message of a conversation, {"role", "content"} or {"from", "value"}, is the model's.

    TypeError if it is not an object.
    """
    if not isinstance(message, Mapping):
        raise TypeError(f"a message is {kind_of(message)}, not an object")
    role = message.get("role") or message.get("from")
    return role == "assistant" or (role != "user" and str(role).lower() in MODEL)


def turn(message: Any, groups: Mapping[str, str], id: str | None = None) -> Message | None:
    """Return what the model wrote in a message; None if somebody else wrote it, or if it only calls tools."""
    return written(message, groups, id) if is_model(message) else None


def written(message: Any, groups: Mapping[str, str], id: str | None = None) -> Message | None:
    """Return the text of a message, whatever its role; None if it only calls tools."""
    value = message["content"] if "content" in message else message.get("value")
    inside, answer = (None, value) if isinstance(value, str) else content(value)
    reasoning = None
    for key in _REASONING:
        if message.get(key):
            told, plain = content(message[key])
            reasoning = told or plain
            break
    reasoning = reasoning or inside
    if not answer and not reasoning and any(message.get(key) for key in _CALLS):
        return None
    if answer is None and reasoning is None:
        if isinstance(value, list) and value:  # calls of tools as parts, an image
            return None
        answer = ""
    return Message(answer, reasoning, id, groups)


def turns(conversation: Any, groups: Mapping[str, str], id: str | None) -> Iterator[Message]:
    """Yield the messages of the model in a conversation. TypeError if it is not a list, NoTextError without any."""
    if not isinstance(conversation, list):
        raise TypeError(f"the conversation is {kind_of(conversation)}")
    silent = True
    for message in conversation:
        if is_model(message):
            silent = False
            made = written(message, groups, id)
            if made is not None:
                yield made
    if silent:
        raise NoTextError("the conversation has no message of the model")


def name(row: Mapping[str, Any]) -> str | None:
    """Return the id of a row, None if it has none."""
    for key in NAME_KEYS:
        value = row.get(key)
        if value is not None and isinstance(value, _ID) and value != "":
            return str(value)
    return None


def groups(row: Mapping[str, Any], by: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the groups of a row, from its own keys or else from its settings.

    A key that is the name of the group has precedence over other spellings. ``by``: further keys that are wanted, or
    paths to nested ones, such as "eval.kind".
    """
    found: dict[str, str] = {}
    deeper: list[dict[str, Any]] = []
    for key, value in row.items():
        group = _GROUP_OF.get(key)
        if group is None:
            continue
        if group == "":
            if isinstance(value, dict):
                deeper.append(value)
        elif (key == group or group not in found) and (told := scalar(value)) is not None:
            found[group] = told
    if "finish_reason" in found:
        found["finish_reason"] = finished(found["finish_reason"])
    for settings in deeper:
        inside = groups(settings)
        found.update((group, inside[group]) for group in inside.keys() - found.keys())
    for key in by:
        for place in (row, *deeper):
            if key not in found and (told := scalar(place.get(key))) is not None:
                found[key] = told
        if key not in found and (path := _nested(key)) is not None:
            for value in values(row, path):
                if (told := scalar(value)) is not None:
                    found[key] = told
                    break
    return found


@lru_cache(maxsize=64)
def _nested(key: str) -> Path | None:
    """Return the path to a nested key, None for a plain one and for what is not a path."""
    try:
        path = parse(key)
    except ValueError:
        return None
    return path if len(path) > 1 else None


def finished(reason: str) -> str:
    """Return a finish reason under the name that OpenAI's interface has for it, if any."""
    return _FINISHED.get(reason, reason)


def scalar(value: Any) -> str | None:
    """Return a value as the name of a group; None if it is not a scalar."""
    if type(value) is str:  # before all else: this is called for every key of every row
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}"
    return None


def kind_of(value: Any) -> str:
    """Return what a JSON value is, with its article, for errors."""
    names = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
