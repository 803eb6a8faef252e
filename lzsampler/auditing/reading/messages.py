"""Code that the formats share. It finds the texts in a message, the messages in a conversation, and a row's groups."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from .format import Message, NoTextError
from .path import Path, parse, values

# Names of the model in `role`, `from`, `sender` and similar keys, in lower case.
MODEL = {"assistant", "gpt", "model", "chatgpt", "bot", "ai", "gemini", "llm", "aimessage", "aimessagechunk"}
_OTHERS = {"user", "human", "system", "tool", "function", "developer", "humanmessage", "systemmessage", "toolmessage"}
# Keys that contain the role if a message has neither `role` nor `from`.
_ROLES = ("sender", "speaker", "author", "author_role", "type")
# Keys under which another object may contain a message.
_INSIDE = ("message", "data", "kwargs", "info")
# Keys that contain the text if a message has no `content`.
CONTENT = ("value", "parts", "text", "body", "utterance")
# Keys of a message that contain reasoning, the most reliable first.
REASONING = (
    "reasoning_content",
    "reasoning",
    "reasoningContent",
    "thinking",
    "reasoning_text",
    "reasoning_details",  # OpenRouter
    "thoughts",  # Gemini CLI
)
_CALLS = ("tool_calls", "toolCalls", "function_call")
# Types of parts and items that are tool calls.
_CALL_TYPES = {
    *("tool_use", "tool_call", "tool-call", "toolCall", "function_call", "tool", "server_tool_use", "mcp_tool_call"),
    *("local_shell_call", "custom_tool_call", "web_search_call", "tool_search_call", "command_execution"),
}
# Keys that contain the arguments of a tool call.
_ARGUMENTS = ("arguments", "args", "input", "parameters", "action", "command", "query")
# Keys that contain the id of a row. The first of these keys that a row has is used.
NAME_KEYS = (
    "custom_id",
    "id",
    "conversation_id",
    "conversationId",
    "uuid",
    "question_id",
    "prompt_id",
    "doc_id",
    "task_id",
    "recordId",
    "key",
    "sessionId",
)
# Keys of a row that contain a conversation, the most common first.
CONVERSATIONS = (
    "messages",
    "conversations",
    "conversation",
    "history",
    "chat",
    "chat_messages",
    "chat_history",
    "dialogue",
    "dialog",
    "turns",
    "transcript",
    "contents",
)
_ID = (str, int)
# Types of parts that are reasoning.
_THOUGHTS = {
    "reasoning",
    "thinking",
    "think",
    "thought",
    "reasoning_text",
    "summary_text",
    "reasoning.text",
    "reasoning.summary",
}
_TEXT_TYPES = {"text", "output_text", "input_text", "multimodal_text"}
# Keys of parts that have neither a type nor text, in lower case without underscores: Gemini's, then Bedrock's.
_UNTYPED = {
    *("inlinedata", "filedata", "functioncall", "functionresponse", "executablecode", "codeexecutionresult"),
    *("toolcall", "toolresponse", "thoughtsignature"),
    *("image", "document", "video", "audio", "tooluse", "toolresult", "guardcontent", "cachepoint", "searchresult"),
}
PART_TYPES = {*_TEXT_TYPES, *_THOUGHTS, *_CALL_TYPES, "refusal"}
_SETTINGS_OF_REASONING = ("auto", "concise", "detailed")  # values of the setting `reasoning.summary` in a request
# Types without text, if the content is a single object. In a list of parts, all types but `_TEXT_TYPES` have no text.
_NO_TEXT = {
    *("image", "image_url", "input_image", "audio", "input_audio", "video", "video_url", "file", "input_file"),
    *("document", "redacted_thinking", "tool_result", "model_editable_context", "reasoning_recap"),
}
_THOUGHT_TEXTS = ("reasoning", "thinking", "think", "text", "content")
_GROUPS = {
    "model": (
        "model",
        "model_id",
        "model_name",
        "model_slug",
        "modelId",
        "modelID",
        "modelVersion",
        "model_version",
        "generator",
    ),
    "temperature": ("temperature",),
    "task": ("task", "task_name"),
    "finish_reason": ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason", "finish"),
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
    "modelParameters",
    "response_metadata",
    "generation_info",
    "meta_info",
)
_GROUP_OF = {key: group for group, keys in _GROUPS.items() for key in keys} | dict.fromkeys(SETTINGS_KEYS, "")
GROUP_KEYS = tuple(_GROUP_OF)  # all keys of a row that `groups` reads
# Finish reasons of various programs, and the name of each in OpenAI's interface.
_FINISHED = {
    "limit": "length",  # llama-server
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "maxPredictedTokensReached": "length",  # LM Studio
    "contextLengthReached": "length",
    "MAX_TOKENS": "length",
    "STOP": "stop",
    "COMPLETE": "stop",
    "eos": "stop",
    "word": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eosFound": "stop",
    "stopStringFound": "stop",
    "finished_successfully": "stop",
}


def text_of(value: Any) -> str | None:
    """Return the text of a content: a string, or a list of strings or parts. None if there is no text.

    TypeError for other types.
    """
    return content(value)[1]


def content(value: Any) -> tuple[str | None, str | None]:
    """Return (reasoning, answer) of a message's content: a text, or the parts that the various APIs use.

    Images, tool calls and other parts without text are left out. Unknown parts are left out if any part has text.
    TypeError for other types, and for a content of only unknown parts, whose text may be anywhere.
    """
    if value is None or isinstance(value, str):
        return None, value
    alone = isinstance(value, Mapping)
    if alone:
        value = [value]
    if not isinstance(value, list | tuple):
        raise TypeError(f"the content is {kind_of(value)}")
    reasoning: list[str] = []
    answer: list[str] = []
    unknown: Mapping[str, Any] | None = None
    for part in value:
        if isinstance(part, str):
            answer.append(part)
            continue
        if not isinstance(part, Mapping):
            raise TypeError(f"a part of the content is {kind_of(part)}")
        kind = part.get("type") or part.get("content_type")
        text = part.get("text")
        untyped = kind is None and text is None and isinstance(part.get("thinking"), str)  # a part of Cohere's streams
        if kind in _THOUGHTS or part.get("thought") is True or untyped:
            told = next((part[key] for key in _THOUGHT_TEXTS if part.get(key)), None)
            told = text_of(part.get("summary")) if told is None else text_of(told)
            reasoning.extend([told] if told else [])
        elif kind == "refusal":
            answer.append(part["refusal"])
        elif isinstance(text, str):
            answer.append(text)
        elif isinstance(text, Mapping) and isinstance(text.get("value"), str):  # OpenAI's Assistants, Jan
            answer.append(text["value"])
        elif kind == "text" and isinstance(part.get("content"), str):  # OpenTelemetry
            answer.append(part["content"])
        elif isinstance(told := part.get("reasoningContent"), Mapping):  # Bedrock
            reasoning.append(text_of(told.get("reasoningText")) or "")
        elif isinstance(told := part.get("citationsContent"), Mapping):  # Bedrock
            answer.append(text_of(told.get("content")) or "")
        elif isinstance(told := part.get("description"), str) and "subject" in part:  # thoughts of Gemini CLI
            answer.append(told)
        elif isinstance(told := part.get("parts"), list):  # ChatGPT
            answer.append(text_of(told) or "")
        elif kind == "thoughts":  # ChatGPT
            reasoning.append("\n".join(thought.get("content") or "" for thought in part["thoughts"]))
        elif not _is_without_text(part, kind if not alone or kind in _NO_TEXT else None):
            unknown = part
    if unknown is not None and not answer and not reasoning:
        keys = ", ".join(map(str, list(unknown)[:8]))
        raise TypeError(f"the content has a part of no known kind (its keys: {keys})")
    return "".join(reasoning) or None, "".join(answer) if answer else None


def _is_without_text(part: Mapping[str, Any], kind: Any) -> bool:
    """Return whether a part is empty, or whether its keys or its type ``kind`` show that it has no text."""
    if _is_call(part) or (isinstance(kind, str) and kind not in _TEXT_TYPES):
        return True
    if "text" in part:  # The text is not a string, since `content` has handled strings.
        return True
    there = [str(key).replace("_", "").lower() for key in part if part[key] and key not in ("type", "content_type")]
    return not there or any(key in _UNTYPED for key in there)


def items(output: Any) -> tuple[list[str], list[str]]:
    """Return (reasonings, answers) of the ``output`` items of an answer of OpenAI's Responses API."""
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
    """Return a text without its blocks, and the contents of the blocks by kind.

    A block begins with a match of ``begin``, whose first group is the block's kind. It ends with a match of
    ``ends[kind]``, or else at the end of the text.
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


def role_of(message: Mapping[str, Any]) -> str | None:
    """Return the role of a message's author, such as "assistant" or "gpt". None if the message names no role."""
    role: Any = message.get("role") or message.get("from")
    if isinstance(role, str):
        return role
    for key, told in (("isCreatedByUser", "user"), ("is_user", "user"), ("is_bot", "bot")):
        if isinstance(message.get(key), bool):
            other = "assistant" if told == "user" else "user"
            return told if message[key] else other
    for key in _ROLES:
        role = message.get(key)
        if isinstance(role, Mapping):
            role = role.get("role")
        if isinstance(role, str) and is_known_role(role):
            return role
    return None


def is_known_role(role: str | None) -> bool:
    """Return whether a role is a known name of the model, the user, the system or a tool."""
    return role is not None and (role.lower() in MODEL or role.lower() in _OTHERS)


def unfolded(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message inside an object (`_INSIDE`). Return the object itself if it is the message."""
    if "role" in message or "from" in message:
        return message
    for key in _INSIDE:
        inside = message.get(key)
        if not isinstance(inside, Mapping):
            continue
        if key == "info":
            if "parts" in message:  # OpenCode
                return {**inside, "parts": message["parts"]}
        elif role_of(inside) is not None:
            return inside
        elif key == "kwargs" and isinstance(message.get("id"), list) and message["id"]:  # LangChain before 0.1
            return {"type": message["id"][-1], **inside}
        elif key == "data" and role_of(message) is not None:
            return {"type": message["type"], **inside} if "type" in message else inside
    return message


def is_message(value: Any) -> bool:
    """Return whether a value is an object with the role of an author and a content."""
    if not isinstance(value, Mapping):
        return False
    message = unfolded(value)
    return role_of(message) is not None and ("content" in message or any(key in message for key in CONTENT))


def is_conversation(value: Any) -> bool:
    """Return whether a value is a list whose first two elements are messages."""
    return isinstance(value, list) and bool(value) and all(is_message(message) for message in value[:2])


def conversation_key(row: Mapping[str, Any]) -> str | None:
    """Return the key of a row that contains a conversation; None if there is no such key."""
    return next((key for key in CONVERSATIONS if is_conversation(row.get(key))), None)


def is_model(message: Any) -> bool:
    """Return whether the model wrote a message of a conversation. TypeError if the message is not an object."""
    if type(message) is not dict and not isinstance(message, Mapping):  # The first test is fast.
        raise TypeError(f"a message is {kind_of(message)}, not an object")
    role = message.get("role") or message.get("from") or role_of(message)
    return role == "assistant" or (role != "user" and str(role).lower() in MODEL)


def turn(message: Any, groups: Mapping[str, str], id: str | None = None) -> Message | None:
    """Return a message of a conversation as a turn of the model; None if somebody else wrote the message."""
    return written(message, groups, id, is_turn=True) if is_model(message) else None


def reasoning_beside(message: Any) -> str | None:
    """Return the reasoning under a key of ``message`` other than its content; None without reasoning."""
    for key in REASONING:
        if value := message.get(key):
            if isinstance(value, Mapping):  # The object may contain a text, or settings of a request.
                value = next((value[inside] for inside in (*_THOUGHT_TEXTS, "summary") if value.get(inside)), None)
                if value in _SETTINGS_OF_REASONING:
                    continue
            try:
                told, plain = content(value)
            except TypeError:  # Reasoning that is encrypted or of unknown form is left out.
                continue
            return told or plain
    return None


def written(message: Any, groups: Mapping[str, str], id: str | None = None, *, is_turn: bool = False) -> Message | None:
    """Return a message with any role as a `Message`.

    A message that only calls tools becomes a `Message` without text if ``is_turn`` is true, and None otherwise.
    """
    value = message.get("content")
    if not value:
        value = next((message[key] for key in CONTENT if message.get(key) and not _is_part(message, key)), value)
    inside, answer = (None, value) if isinstance(value, str) else content(value)
    reasoning = reasoning_beside(message) or inside
    has_calls = bool(message.get("tool_calls") or message.get("toolCalls") or message.get("function_call"))
    if not answer and not reasoning and (has_calls or (answer is None and isinstance(value, list | dict) and value)):
        return Message(None, None, id, groups, is_turn=True, calls=message) if is_turn else None
    told = "" if answer is None and reasoning is None else answer
    calls = message if has_calls or isinstance(value, list) else None
    return Message(told, reasoning, id, groups, is_turn=is_turn, calls=calls)


def calls_of(message: Any) -> str:
    """Return the tool calls of a message, without their ids, as lines of the form name(arguments)."""
    if not isinstance(message, Mapping):
        return ""
    calls: list[Any] = []
    for key in _CALLS:
        value = message.get(key)
        calls += value if isinstance(value, list) else [value] if value else []
    for key in ("content", "parts"):
        value = message.get(key)
        calls += [part for part in value if _is_call(part)] if isinstance(value, list) else []
    if not calls and _is_call(message):
        calls.append(message)
    return "\n".join(_call(call) for call in calls)


def _is_call(part: Any) -> bool:
    return isinstance(part, Mapping) and (part.get("type") in _CALL_TYPES or "functionCall" in part)


def _call(call: Any) -> str:
    for key in ("function", "functionCall", "state"):
        if isinstance(call, Mapping) and isinstance(inside := call.get(key), Mapping):
            call = {**call, **inside}
    if not isinstance(call, Mapping):
        return str(call)
    name = next((call[key] for key in ("name", "tool", "type") if isinstance(call.get(key), str)), "")
    told = next((call[key] for key in _ARGUMENTS if call.get(key) is not None), "")
    return f"{name}({told if isinstance(told, str) else json.dumps(told, sort_keys=True, ensure_ascii=False)})"


def _is_part(message: Mapping[str, Any], key: str) -> bool:
    """Return whether the value under a key of `CONTENT` is not content, for example the body of a request."""
    return key == "body" and not isinstance(message[key], str)


def turns(conversation: Any, groups: Mapping[str, str], id: str | None) -> Iterator[Message]:
    """Yield the model's messages in a conversation.

    A message may have its own ``model``, and its ``children`` are messages that answer it. TypeError if the
    conversation is not a list, NoTextError if no message is the model's.
    """
    if not isinstance(conversation, list):
        raise TypeError(f"the conversation is {kind_of(conversation)}")
    silent = True
    for message in _flat(conversation):
        if is_model(message):
            silent = False
            made = written(message, groups, id, is_turn=True)
            if made is not None:
                model = message.get("model")
                if type(model) is str and model and "model" not in groups:
                    made = made._replace(groups={**groups, "model": model})
                yield made
    if silent:
        raise NoTextError("the conversation has no message of the model")


def _flat(conversation: list[Any]) -> Iterator[Any]:
    """Yield the messages of a conversation, each unfolded (`unfolded`) and followed by its children."""
    waiting = conversation[::-1]
    while waiting:
        message = waiting.pop()
        if type(message) is not dict and not isinstance(message, Mapping):  # The first test is fast.
            yield message
            continue
        yield unfolded(message)
        children = message.get("children")
        if children and isinstance(children, list) and isinstance(children[0], Mapping):
            waiting.extend(reversed(children))


def name(row: Mapping[str, Any]) -> str | None:
    """Return the id of a row; None if it has no id."""
    for key in NAME_KEYS:
        value = row.get(key)
        if value is not None and isinstance(value, _ID) and value != "":
            return str(value)
    return None


def groups(row: Mapping[str, Any], by: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the groups of a row, such as model and temperature, from its own keys or else from its settings.

    If a row has several keys for a group, the key with the group's name takes precedence. ``by``: further keys to
    return, or paths to nested keys, such as "eval.kind".
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
    """Return the path to a nested key; None for a plain key and for a text that is not a path."""
    try:
        path = parse(key)
    except ValueError:
        return None
    return path if len(path) > 1 else None


def finished(reason: str) -> str:
    """Return the name of a finish reason in OpenAI's interface. An unknown reason is returned unchanged."""
    return _FINISHED.get(reason, reason)


def scalar(value: Any) -> str | None:
    """Return a scalar as a string, for `--by`; None for "" and for values that are not scalars."""
    if type(value) is str:  # This is the most frequent case, so it is tested first.
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}"
    return None


def kind_of(value: Any) -> str:
    """Return the type of a JSON value with its article, for error messages."""
    names = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
