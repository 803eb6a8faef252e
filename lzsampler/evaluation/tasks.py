"""Tasks: questions with answers that a program can check, and prompts without, from JSON Lines.

Rows are our own (`messages` or `prompt`, `answer`, `compare`), or look like those of GSM8K (`question`, and `answer`
that ends in ``#### 42``), AIME (`problem`, `answer`) or GPQA (`Question`, `Correct Answer`, `Incorrect Answer 1` to 3).
"""

import importlib
import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LzsError

if TYPE_CHECKING:
    from ..llama.model import Messages

Compare = Callable[[str, str], bool]

_NUMBER = re.compile(r"[-+−]?\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+−]?\.\d+")
_BOXED = re.compile(r"\\boxed\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_CHOICE = re.compile(r"(?:answer|choice|option)\s*(?:is|:)?\s*[*(\[]*([A-Z])\b", re.IGNORECASE)
_LETTER = re.compile(r"(?<![A-Za-z'])([A-Z])(?![A-Za-z'])")


@dataclass(frozen=True)
class Task:
    """One question.

    ``kind``: what results are grouped by; ``answer``: None for a prompt that has none; ``compare``: the name that the
    row gave, of `COMPARISONS` or ``module:function``.
    """

    id: str
    prompt: "str | Messages"
    answer: str | None = None
    compare: str = "exact"
    kind: str = ""

    def right(self, content: str) -> bool:
        """Return whether a text without its reasoning has the answer. LzsError when a function of the user fails."""
        if self.answer is None:
            raise ValueError(f"{self.id} has no answer to compare with")
        return comparison(self.compare)(content, self.answer)


@dataclass(frozen=True)
class BadRow:
    """A line that is no task: ``line`` counts from 1."""

    line: int
    reason: str


# ---- comparisons ----


def exact(content: str, answer: str) -> bool:
    """The same text, white space around it aside."""
    return content.strip() == answer.strip()


def contains(content: str, answer: str) -> bool:
    """The answer is in the text, whatever its case."""
    return answer.strip().casefold() in content.casefold()


def regex(content: str, answer: str) -> bool:
    """The answer is a pattern of Python's `re` that is found in the text."""
    return re.search(answer, content) is not None


def number(content: str, answer: str) -> bool:
    r"""The same number: that in the last ``\boxed{}`` of the text, else the last one after ``####`` or in all of it.

    Commas between thousands, a dollar sign before and zeros after do not matter: 1,200 is 1200.0.
    """
    found, wanted = _last_number(content), _last_number(answer)
    return found is not None and found == wanted


def choice(content: str, answer: str) -> bool:
    r"""The same letter: that in the last ``\boxed{}``, else the last after "answer", else the last capital alone."""
    boxed = _BOXED.findall(content)
    letters = _LETTER.findall(boxed[-1].upper()) if boxed else _CHOICE.findall(content) or _LETTER.findall(content)
    return bool(letters) and letters[-1].upper() == answer.strip().strip("()").upper()


def _last_number(text: str) -> Decimal | None:
    boxed = _BOXED.findall(text)
    if boxed:
        text = boxed[-1]
    elif "####" in text:
        text = text.rsplit("####", 1)[1]
    numbers = _NUMBER.findall(text)
    if not numbers:
        return None
    try:
        return Decimal(numbers[-1].replace(",", "").replace("$", "").replace("−", "-"))
    except InvalidOperation:
        return None


COMPARISONS: dict[str, Compare] = {
    "exact": exact,
    "number": number,
    "regex": regex,
    "choice": choice,
    "contains": contains,
}


def comparison(name: str) -> Compare:
    """Return a comparison by its name or as ``module:function``, a function of (content, answer) to bool.

    ValueError for an unknown name, LzsError for a function that cannot be imported; one that fails raises LzsError too.
    """
    if name in COMPARISONS:
        return COMPARISONS[name]
    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(f"compare must be one of {', '.join(COMPARISONS)} or module:function, got {name!r}")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise LzsError(f"compare={name!r} cannot be imported: {error}") from error

    def checked(content: str, answer: str) -> bool:
        try:
            return bool(found(content, answer))
        except Exception as error:  # the user's code: anything may come out of it
            raise LzsError(f"{name} failed: {type(error).__name__}: {error}") from error

    return checked


# ---- rows ----


def read_tasks(path: str | Path) -> tuple[list[Task], list[BadRow]]:
    """Return the tasks of a JSON Lines file, and the lines that are none; an empty line is neither.

    A row without an id has its line number for one; a second one with the same id is a bad row. LzsError when the file
    cannot be read.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise LzsError(f"cannot read {path}: {error.strerror}") from error
    tasks: dict[str, Task] = {}
    bad: list[BadRow] = []
    for line, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            task = task_of(_object(raw), str(line))
            if task.id in tasks:
                raise ValueError(f"the id {task.id!r} is there twice")
            tasks[task.id] = task
        except ValueError as error:
            bad.append(BadRow(line, " ".join(str(error).split())))
    return list(tasks.values()), bad


def _object(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error


def task_of(row: Any, number_of_row: str) -> Task:
    """Return the task of a row; ValueError, in one line, when it is none."""
    if not isinstance(row, Mapping):
        raise ValueError(f"a row must be an object, got {type(row).__name__}")
    name = str(row.get("id", number_of_row))
    kind = str(row.get("task", row.get("kind", "")))
    if "Correct Answer" in row:
        return _multiple_choice(row, name)
    if "messages" in row or "prompt" in row:
        prompt = _messages(row["messages"]) if "messages" in row else row["prompt"]
        answer = row.get("answer")
        compare = str(row.get("compare", "exact"))
        if answer is not None:
            comparison(compare)
        return Task(name, _text("prompt", prompt), None if answer is None else _answer(answer), compare, kind)
    for question in ("question", "problem", "Problem"):
        if question in row:
            answer = _answer(row.get("answer", row.get("Answer")))
            gsm8k = "####" in answer
            prompt = [{"role": "user", "content": _text(question, row[question])}]
            return Task(name, prompt, answer.rsplit("####", 1)[1].strip() if gsm8k else answer, "number", kind)
    raise ValueError("no prompt: a row has messages, prompt, question, problem or Question")


def _text(name: str, value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise ValueError(f"{name} is empty")
    if not isinstance(value, str | list):
        raise ValueError(f"{name} must be a text, got {value!r}")
    return value


def _answer(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"answer must be a text or a number, got {value!r}")
    return str(value)


def _messages(value: Any) -> list[dict[str, str]]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"messages must be a list that is not empty, got {value!r}")
    for message in value:
        if not isinstance(message, Mapping) or not all(
            isinstance(message.get(key), str) for key in ("role", "content")
        ):
            raise ValueError(f"a message has a role and a content, both texts, got {message!r}")
    return [{"role": message["role"], "content": message["content"]} for message in value]


def _multiple_choice(row: Mapping[str, Any], name: str) -> Task:
    """A row like GPQA's, its choices in an order that depends on its id alone."""
    question = _text("Question", row.get("Question"))
    keys = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
    missing = [key for key in keys if key not in row]
    if missing:
        raise ValueError(f"no {missing[0]}: a row with a Correct Answer has three that are not")
    choices = [row[key] for key in keys]
    order = list(range(len(choices)))
    random.Random(name).shuffle(order)
    lines = [f"({letter}) {_answer(choices[i]).strip()}" for letter, i in zip("ABCD", order, strict=True)]
    prompt = "\n".join([question.strip(), "", *lines, "", "Answer with the letter of the right choice."])
    letter = "ABCD"[order.index(0)]
    return Task(name, [{"role": "user", "content": prompt}], letter, "choice", str(row.get("Subdomain", "")))
