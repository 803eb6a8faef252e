"""Spans of OpenTelemetry, OpenLLMetry or OpenInference that have a model's messages.

Spans may have the form that the SDK prints (`attributes` is an object) or the form of collectors (`resourceSpans`).
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, scalar, written

_NUMBERED = re.compile(
    r"(?:gen_ai\.completion|llm\.output_messages|llm\.completions)\.(\d+)\.(?:message\.|completion\.)?(.+)"
)
_PART = re.compile(r"contents\.(\d+)\.message_content\.(\w+)")
_WHOLE = ("gen_ai.output.messages", "gen_ai.completion", "ai.response.text")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.model.id")
_REASONS = ("gen_ai.response.finish_reasons", "ai.response.finishReason")
_EVENTS = {"gen_ai.choice", "gen_ai.content.completion", "gen_ai.client.inference.operation.details"}
# Operations and kinds of spans that enclose the model's spans and repeat the model's messages.
_AROUND = {
    "invoke_agent",
    "create_agent",
    "execute_tool",
    "embeddings",
    "AGENT",
    "CHAIN",
    "TOOL",
    "RETRIEVER",
    "EMBEDDING",
}


def matches(row: Any) -> bool:
    """Recognise a span by its attributes and ids, and an export by its `resourceSpans`."""
    if not isinstance(row, dict):
        return False
    if isinstance(row.get("resourceSpans"), list):
        return True
    ids = {"context", "trace_id", "traceId", "span_id", "spanId"} & row.keys()
    return bool(ids) and isinstance(row.get("attributes"), dict | list)


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the model's messages of every span. Spans without such messages yield nothing."""
    if not matches(row):
        raise KeyError("attributes")
    for resource in row.get("resourceSpans") or ():
        for scope in resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans") or ():
            for span in scope.get("spans") or ():
                yield from _span(span, source)
    if "attributes" in row:
        yield from _span(row, source)


def _span(span: Any, source: Source) -> Iterator[Message]:
    about = _attributes(span.get("attributes"))
    if {about.get("gen_ai.operation.name"), about.get("openinference.span.kind")} & _AROUND:
        return
    model = next((about[key] for key in _MODELS if about.get(key)), None)
    reasons = next((about[key] for key in _REASONS if about.get(key)), None)
    reason = reasons[0] if isinstance(reasons, list | tuple) and reasons else reasons
    found = groups(
        {
            **{key: value for key, value in about.items() if key in source.by},
            "model": model,
            "temperature": about.get("gen_ai.request.temperature"),
            "seed": about.get("gen_ai.request.seed"),
            "finish_reason": reason,
        },
        source.by,
    )
    context = span.get("context")
    id = scalar((context if isinstance(context, dict) else span).get("span_id") or span.get("spanId"))
    said = list(_messages(about))
    for event in span.get("events") or ():
        if not said and event.get("name") in _EVENTS:
            said = list(_messages(_attributes(event.get("attributes"))))
    for message in said:
        if (made := written(message, found, id)) is not None:
            yield made


def _attributes(given: Any) -> dict[str, Any]:
    if isinstance(given, list):  # OTLP has [{"key", "value": {"stringValue"}}].
        return {pair["key"]: _plain(pair.get("value")) for pair in given}
    return dict(given or {})


def _plain(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        return value
    kind, inside = next(iter(value.items()))
    if kind == "arrayValue":
        return [_plain(one) for one in inside.get("values") or ()]
    if kind == "kvlistValue":
        return {pair["key"]: _plain(pair.get("value")) for pair in inside.get("values") or ()}
    return inside


def _messages(about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key in _WHOLE:
        value = about.get(key)
        if isinstance(value, str) and value[:1] in ("[", "{"):
            with suppress(ValueError):
                value = json.loads(value)
        if isinstance(value, str):
            yield {"content": value}
        for message in value if isinstance(value, list) else [value] if isinstance(value, dict) else ():
            yield message
        if value:
            return
    message = about.get("message") or about.get("gen_ai.event.content")  # keys of events
    if isinstance(message, str) and message[:1] == "{":
        message = json.loads(message)
    if isinstance(message, dict):
        yield message
        return
    numbered: dict[int, dict[str, Any]] = {}
    for key, value in about.items():
        if found := _NUMBERED.fullmatch(key):
            into = numbered.setdefault(int(found[1]), {})
            if part := _PART.fullmatch(found[2]):
                into.setdefault("parts", {}).setdefault(int(part[1]), {})[part[2]] = value
            elif found[2].startswith("tool_calls"):
                into["tool_calls"] = True
            else:
                into[found[2]] = value
    for _, message in sorted(numbered.items()):
        if "parts" in message:
            message["parts"] = [part for _, part in sorted(message["parts"].items())]
        yield message


FORMAT = Format("otel", "spans of OpenTelemetry with the messages of a model", matches, messages)
