"""Tables of promptfoo, `eval -o results.csv`: a column `[provider] prompt` for each prompt and model.

Its .json, .jsonl, .yaml and .xml files have an answer under `response.output` of each result; `completion` reads those.
"""

import re
from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source

COLUMN = re.compile(r"\[(?P<model>[^\]]+)\] ")
_STATE = re.compile(r"\A\[(?:PASS|FAIL|ERROR)\]\s*")  # before the answers, in older versions
_OTHERS = {"Status", "Score", "Grader Reason", "Named Scores"}


def matches(row: Any) -> bool:
    """Recognise a row by a column of answers and another known column, or by a test's mark before an answer."""
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
