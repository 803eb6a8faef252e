"""`samples_<task>_<date>.jsonl` of lm-eval --log_samples.

If a task has several filters (gsm8k has two), the file contains every answer once for each filter. Only the rows of the
first filter are read. If `think_end_token` is set, lm-eval saves only reasoning that was never closed.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from ..reading.format import Format, Message, NoTextError, Source
from ..reading.messages import groups

_NAME = re.compile(r"samples_(?P<task>.+?)(?:_\d{4}-\d\d-\d\dT[\d.:-]+)?\.jsonl")
_NO_ANSWER = "nothing was generated: the file contains log-likelihoods of given answers"


def matches(row: Any) -> bool:
    """Recognise a sample by `resps` and by `doc` or `doc_id`."""
    return isinstance(row, dict) and "resps" in row and ("doc" in row or "doc_id" in row)


def head(file: str, row: Any) -> dict[str, str]:
    """Return the task from the file's name, the model from its folder, and the first filter."""
    if not list(_texts(row["resps"])):
        raise NoTextError(_NO_ANSWER)
    path = PurePath(file)
    found = {"filter": str(row.get("filter", ""))}
    told = _NAME.match(path.name.removesuffix(".gz").removesuffix(".zst"))
    if told:
        found["task"] = told["task"]
        if path.parent.name:
            found["model"] = path.parent.name.replace("__", "/")
    return found


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield every response to a document. Rows of other filters repeat the first filter's rows and yield nothing."""
    responses = list(_texts(row["resps"]))
    head = dict(source.head)
    if head.pop("filter", None) and str(row["filter"]) != source.head["filter"]:
        return
    found = {**head, **groups(row, source.by), **groups(_settings(row.get("arguments")))}
    id = str(row["doc_id"]) if "doc_id" in row else None
    if not responses:
        raise NoTextError(_NO_ANSWER)
    for response in responses:
        yield Message(response, None, id, found)


def _settings(arguments: Any) -> dict[str, Any]:
    """Return the generation settings. They are `gen_args_0.arg_1`, or in older files `[[prompt, settings]]`."""
    if isinstance(arguments, dict):
        arguments = next(iter(arguments.values()), None)
        settings = arguments.get("arg_1") if isinstance(arguments, dict) else None
    else:
        first = arguments[0] if isinstance(arguments, list) and arguments else None
        settings = first[1] if isinstance(first, list) and len(first) > 1 else None
    return settings if isinstance(settings, dict) else {}


def _texts(responses: Any) -> Iterator[str]:
    """Yield the texts of [[text, ...], ...]. Log-likelihoods, which have a pair in place of each text, are left out."""
    if not isinstance(responses, list):
        raise TypeError("resps is not a list")
    for response in responses:
        for text in response if isinstance(response, list) else [response]:
            if isinstance(text, str):
                yield text


FORMAT = Format("lm-eval", "samples_*.jsonl of lm-eval --log_samples", matches, messages, head)
