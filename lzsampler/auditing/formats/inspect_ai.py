"""Logs of inspect-ai. A log is a .json file with all samples, or an .eval file (a zip with a file for each sample)."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source
from ..reading.messages import groups, is_model, scalar, turns


def matches(row: Any) -> bool:
    """Recognise a log by its `eval` and samples, and a sample by its epoch and output."""
    if not isinstance(row, dict):
        return False
    return ({"eval", "samples"} <= row.keys() and isinstance(row["eval"], dict)) or {
        "epoch",
        "output",
        "input",
    } <= row.keys()


def head(file: str, row: Any) -> dict[str, str]:
    """Return the task, the model and the settings of a log. ``row``: the log, or `header.json` of an .eval."""
    about = row.get("eval") or {}
    settings = (row.get("plan") or {}).get("config") or about.get("model_generate_config") or {}
    return groups({**settings, "model": about.get("model"), "task": about.get("task")})


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the generated messages of each sample. If there are none, yield the choices of the sample's output."""
    whole = "samples" in row
    for i, sample in enumerate(row["samples"] or () if whole else [row]):
        yield from _sample(sample, source, i if whole else None)


def _sample(sample: Any, source: Source, number: int | None) -> Iterator[Message]:
    choices = (sample.get("output") or {}).get("choices") or []
    found = {**source.head, **groups(sample, source.by)}
    if choices:
        found.update(groups({"finish_reason": choices[-1].get("stop_reason")}))
    id = scalar(sample.get("id"))
    if id is not None and (sample.get("epoch") or 1) != 1:
        id = f"{id}, epoch {sample['epoch']}"
    said = [message for message in sample.get("messages") or () if message.get("source") != "input"]
    if not any(is_model(message) for message in said):
        said = [choice["message"] for choice in choices]
    for message in turns(said, found, id):
        yield message._replace(number=number, conversation=scalar(sample.get("id")))


FORMAT = Format("inspect", "logs of inspect-ai, .json and .eval", matches, messages, head)
