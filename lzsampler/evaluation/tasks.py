"""Tasks: questions with answers that a program can check, and prompts without answers, from JSON Lines.

A row has one of four forms. lzsampler's own form has `messages` or `prompt`, `answer` and `compare`. GSM8K has
`question`, and `answer` that ends in ``#### 42``. AIME and MATH have `problem` and `answer`. GPQA has `Question`,
`Correct Answer` and `Incorrect Answer 1` to 3. `scoring` has the comparisons.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ArgumentError, LzsError
from ..util.files import whole
from .score import score
from .scoring import check_answer

if TYPE_CHECKING:
    from ..llama.model import Messages

Row = TypeVar("Row")


@dataclass(frozen=True)
class Task:
    """A prompt for the model, with the correct answer if there is one.

    ``kind``: the group of the task in results. ``answer``: the correct answer; None for a prompt without an answer.
    ``compare``: how a text is compared with the answer: one of `COMPARISONS`, or ``module:function``, a function that
    `right` imports and calls.
    """

    id: str
    prompt: "str | Messages"
    answer: str | None = None
    compare: str = "exact"
    kind: str = ""

    def right(self, content: str) -> bool:
        """Return whether a text, without its reasoning, has the answer. LzsError if the comparison fails (`score`)."""
        if self.answer is None:
            raise ArgumentError(f"{self.id} has no answer to compare with")
        return score(self.compare, content, self.answer)


@dataclass(frozen=True)
class BadRow:
    """A line that could not be read as a task. ``line``: number of the line, from 1."""

    line: int
    reason: str


def read_tasks(path: str | Path, role: str = "", *, allow_code: bool = False) -> tuple[list[Task], list[BadRow]]:
    """Return the tasks of a JSON Lines file, and the lines that could not be read as tasks; empty lines are skipped.

    If a row has no id, the number of its line, from 1, is its id. If a ``role`` is given, the role and a colon come
    first, as in "tasks:1". A row is bad if an earlier row has the same id, or if its ``compare`` cannot compare its
    answer. ``allow_code``: whether to import the functions that rows name as ``module:function``.

    LzsError if the file cannot be read, and for a row that names a function without ``allow_code``.
    """
    try:
        data = whole(path)
    except OSError as error:
        raise LzsError(f"cannot read {path}: {error.strerror}") from error
    tasks: dict[str, Task] = {}
    bad: list[BadRow] = []
    for line, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            task = task_of(_object(raw), str(line), role, allow_code=allow_code)
            if task.id in tasks:
                raise ArgumentError(f"another row has the id {task.id!r}, too")
            tasks[task.id] = task
        except ValueError as error:
            bad.append(BadRow(line, " ".join(str(error).split())))
        except LzsError as error:
            raise LzsError(f"{path}, line {line}: {error}") from error
    return list(tasks.values()), bad


def spread(rows: Sequence[Row], n: int | None) -> list[Row]:
    """Return ``n`` rows, evenly spread over ``rows`` from the first row on, in their order. None returns all rows.

    Files are often sorted by kind, so their first rows would cover only one or two kinds.
    """
    if n is None or n >= len(rows):
        return list(rows)
    return [rows[i * len(rows) // n] for i in range(n)]


def _object(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ArgumentError(f"not UTF-8 (byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"not JSON: {error}") from error


def task_of(row: Any, number_of_row: str, role: str = "", *, allow_code: bool = False) -> Task:
    """Return the task of a row; ``role``, ``allow_code`` and LzsError as in `read_tasks`. ValueError for a bad row."""
    if not isinstance(row, Mapping):
        raise ArgumentError(f"a row must be an object, got {type(row).__name__}")
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ArgumentError("not valid Unicode: it has half of a surrogate pair") from error
    name = str(row["id"]) if "id" in row else f"{role}:{number_of_row}" if role else number_of_row
    kind = str(row.get("task", row.get("kind", "")))
    if "Correct Answer" in row:
        return _multiple_choice(row, name, str(row.get("id", row.get("Question"))))
    if "messages" in row or "prompt" in row:
        prompt = _messages(row["messages"]) if "messages" in row else row["prompt"]
        answer = None if row.get("answer") is None else _answer(row["answer"])
        task = Task(name, _text("prompt", prompt), answer, str(row.get("compare", "exact")), kind)
        return _checked(task, allow_code)
    for question in ("question", "problem", "Problem"):
        if question in row:
            answer = _answer(row.get("answer", row.get("Answer")))
            answer = answer.rsplit("####", 1)[1].strip() if "####" in answer else answer  # GSM8K
            prompt = [{"role": "user", "content": _text(question, row[question])}]
            return _checked(Task(name, prompt, answer, str(row.get("compare", "number")), kind), allow_code)
    raise ArgumentError("no prompt: a row has messages, prompt, question, problem or Question")


def _checked(task: Task, allow_code: bool) -> Task:
    """Return the task. ValueError or LzsError if no text can be compared with its answer."""
    if task.answer is not None:
        check_answer(task.compare, task.answer, allow_code=allow_code)
    return task


def _text(name: str, value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise ArgumentError(f"{name} is empty")
    if not isinstance(value, str | list):
        raise ArgumentError(f"{name} must be a text, got {value!r:.100}")
    return value


def _answer(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ArgumentError(f"answer must be a text or a number, got {value!r:.100}")
    return str(value)


def _messages(value: Any) -> list[dict[str, str]]:
    if not isinstance(value, list) or not value:
        raise ArgumentError(f"messages must be a list that is not empty, got {value!r:.100}")
    for message in value:
        if not isinstance(message, Mapping) or not all(
            isinstance(message.get(key), str) for key in ("role", "content")
        ):
            raise ArgumentError(f"a message must have a role and a content, both texts, got {message!r:.100}")
    return [{"role": message["role"], "content": message["content"]} for message in value]


def _multiple_choice(row: Mapping[str, Any], name: str, seed: str) -> Task:
    """Return the task of a row in GPQA's form; the order of its choices depends only on ``seed``."""
    question = _text("Question", row.get("Question"))
    keys = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
    missing = [key for key in keys if key not in row]
    if missing:
        raise ArgumentError(f"no {missing[0]}: a row with a Correct Answer needs three incorrect ones")
    choices = [row[key] for key in keys]
    order = list(range(len(choices)))
    random.Random(seed).shuffle(order)
    lines = [f"({letter}) {_answer(choices[i]).strip()}" for letter, i in zip("ABCD", order, strict=True)]
    prompt = "\n".join([question.strip(), "", *lines, "", "Answer with the letter of the right choice."])
    letter = "ABCD"[order.index(0)]
    return Task(name, [{"role": "user", "content": prompt}], letter, "choice", str(row.get("Subdomain", "")))
