"""`details_<task>_<date>.parquet` of lighteval. `model_response` has the texts and the reasonings."""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from ..reading.format import Format, Message, NoTextError, Source
from ..reading.messages import groups

_NAME = re.compile(r"details_(?P<task>.+?)_\d{4}-\d\d-\d\dT[\d.:-]+\.parquet")


def matches(row: Any) -> bool:
    """Recognise a row by `model_response`."""
    return isinstance(row, dict) and isinstance(row.get("model_response"), dict) and "text" in row["model_response"]


def head(file: str, row: Any) -> dict[str, str]:
    """Return the task from the file's name, and the model from the folder `details/<model>/<date>/`."""
    path = PurePath(file)
    told = _NAME.match(path.name)
    found = {"task": told["task"]} if told else {}
    if "details" in path.parts[:-2]:
        found["model"] = "/".join(path.parts[path.parts.index("details") + 1 : -2])
    return {key: value for key, value in found.items() if value}


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every sample of a row."""
    response, doc = row["model_response"], row.get("doc") or {}
    found = {**source.head, **groups({**doc, **row}, source.by)}
    id = doc.get("id")
    texts = response["text"] if isinstance(response["text"], list) else [response["text"]]
    reasonings = response.get("reasonings") or []
    if not any(isinstance(text, str) for text in texts):
        raise NoTextError("there is no text, only log-likelihoods of given answers")
    for i, text in enumerate(texts):
        reasoning = reasonings[i] if i < len(reasonings) else None
        yield Message(text, reasoning, None if id is None else str(id), found)


FORMAT = Format(
    "lighteval",
    "details of lighteval",
    matches,
    messages,
    head,
    columns=(
        "model_response.text",
        "model_response.reasonings",
        "doc.id",
        "doc.task_name",
    ),
)
