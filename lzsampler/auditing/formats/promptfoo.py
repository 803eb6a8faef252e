"""Tables that promptfoo writes by `eval -o results.csv`, with a column `[provider] prompt` for each prompt and model.

The .json, .jsonl, .yaml and .xml files of promptfoo have an answer under `response.output` of each result. The format
`completion` reads such files.
"""

import re
from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source

COLUMN = re.compile(r"\[(?P<model>[^\]]+)\] ")
_STATE = re.compile(r"\A\[(?:PASS|FAIL|ERROR)\]\s*")  # In older versions, the result of the test precedes an answer.
_OTHERS = {"Status", "Score", "Grader Reason", "Named Scores"}


def matches(row: Any) -> bool:
    """Recognise a row by a column of answers and another known column, or by a test's result before an answer."""
    if not isinstance(row, dict):
        return False
    columns = [value for key, value in row.items() if COLUMN.match(key) and isinstance(value, str)]
    return bool(columns) and (bool(_OTHERS & row.keys()) or any(map(_STATE.match, columns)))


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield the answer of every model to every prompt."""
    if not any(map(COLUMN.match, row)):
        raise KeyError("[provider] prompt")
    for key, value in row.items():
        if column := COLUMN.match(key):
            yield Message(_STATE.sub("", value), None, None, {"model": column["model"]})


FORMAT = Format("promptfoo", "tables (.csv) of promptfoo", matches, messages)
