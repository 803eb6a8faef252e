"""Training data: books split into train and held-out text, worked small tasks, and batches of both.

Everything here is plain Python and numpy. The tokenizer comes in as a function from text to token ids, so
that this module can be used, and tested, without torch and without `tokenizers`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]  # (n,) token ids, or (rows, length) in a batch
Encode = Callable[[str], list[int]]

END, USER, ASSISTANT, THINK, END_THINK = SPECIAL_TOKENS = (
    "<|endoftext|>", "<|user|>", "<|assistant|>", "<think>", "</think>",
)  # fmt: skip
HELD_OUT_PERCENT = 2  # of the paragraphs of each book, at its end: no model is trained on them

# Counting draws from fewer words than reversing, so that a list of 4 to 14 repeats some of them.
COUNT_WORDS = ["bird", "cat", "dog", "fish", "king", "sea", "sun", "tree"]
REVERSE_WORDS = [*COUNT_WORDS, "apple", "bread", "door", "horse", "light", "moon"]
REVERSE_WORDS += ["river", "road", "rose", "ship", "star", "stone"]


@dataclass(frozen=True)
class Book:
    """One book: `train` is its beginning, `held_out` its last paragraphs; together the whole text."""

    name: str
    train: str
    held_out: str


def read_books(folder: Path) -> list[Book]:
    """Every `*.txt` of `folder` in the order of the names; one paragraph a line, UTF-8."""
    books = []
    for path in sorted(folder.glob("*.txt")):
        try:
            books.append(split_book(path.name, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8: {error}") from error
    return books


def split_book(name: str, text: str) -> Book:
    """`text` cut before the last 2 % of its paragraphs (rounded up)."""
    paragraphs = text.splitlines(keepends=True)
    cut = len(paragraphs) * (100 - HELD_OUT_PERCENT) // 100
    return Book(name, "".join(paragraphs[:cut]), "".join(paragraphs[cut:]))


@dataclass(frozen=True)
class Task:
    """A question whose answer follows from a worked trace of small steps."""

    question: str
    worked: str
    answer: str

    def text(self) -> str:
        """The task as it is trained on; `<think>` is the last token of the prompt in the chat template."""
        return f"{USER}{self.question}{ASSISTANT}{THINK}{self.worked}{END_THINK}{self.answer}{END}"


def add_task(a: int, b: int) -> Task:
    """Column addition, from the ones upwards; a carry that is left over is written by a step of its own."""
    steps, carry = [], 0
    for column in range(max(len(str(a)), len(str(b)))):
        x, y = a // 10**column % 10, b // 10**column % 10
        total = x + y + carry
        steps.append(f"{x} + {y} + {carry} = {total}, write {total % 10}, carry {total // 10}.")
        carry = total // 10
    if carry:
        steps.append(f"write {carry}.")
    return Task(f"What is {a} + {b}?", " ".join(steps), str(a + b))


def sum_task(numbers: Sequence[int]) -> Task:
    """A running sum, one number a step."""
    steps, total = [], numbers[0]
    for number in numbers[1:]:
        steps.append(f"{total} + {number} = {total + number}.")
        total += number
    return Task(f"Add up {', '.join(map(str, numbers))}.", " ".join(steps), str(total))


def times_task(a: int, b: int) -> Task:
    """Multiplication by counting: `b` steps of `a`."""
    steps = [f"{i}: {i * a}." for i in range(1, b + 1)]
    return Task(f"What is {a} times {b}?", " ".join(steps), str(a * b))


def sort_task(numbers: Sequence[int]) -> Task:
    """Sorting by repeated minimum; of equals the first is taken out."""
    steps, left = [], list(numbers)
    while left:
        least = min(left)
        left.remove(least)
        steps.append(f"least {least}, left {' '.join(map(str, left)) or 'none'}.")
    question = f"Sort {' '.join(map(str, numbers))}."
    return Task(question, " ".join(steps), " ".join(map(str, sorted(numbers))))


def reverse_task(words: Sequence[str]) -> Task:
    """Words from the last to the first, numbered."""
    backwards = words[::-1]
    steps = [f"{i} {word}." for i, word in enumerate(backwards, 1)]
    return Task(f"Reverse: {' '.join(words)}.", " ".join(steps), " ".join(backwards))


def count_task(target: str, words: Sequence[str]) -> Task:
    """How often `target` occurs, with the count so far after every word."""
    steps, count = [], 0
    for word in words:
        count += word == target
        steps.append(f"{word} {count}.")
    question = f"How many times does {target} occur in: {' '.join(words)}?"
    return Task(question, " ".join(steps), str(count))


def _draw_add(rng: random.Random) -> Task:
    first, second = rng.randint(1, 4), rng.randint(1, 4)  # digits
    return add_task(*(rng.randrange(10 ** (digits - 1), 10**digits) for digits in (first, second)))


def _draw_count(rng: random.Random) -> Task:
    words = rng.choices(COUNT_WORDS, k=rng.randint(4, 14))
    return count_task(rng.choice(words), words)


# Operands as they are drawn; every kind is as likely as the others.
DRAWS: dict[str, Callable[[random.Random], Task]] = {
    "add": _draw_add,
    "sum": lambda rng: sum_task([rng.randint(1, 29) for _ in range(rng.randint(3, 9))]),
    "times": lambda rng: times_task(rng.randint(2, 19), rng.randint(2, 12)),
    "sort": lambda rng: sort_task([rng.randint(0, 99) for _ in range(rng.randint(3, 9))]),
    "reverse": lambda rng: reverse_task(rng.choices(REVERSE_WORDS, k=rng.randint(3, 10))),
    "count": _draw_count,
}


def draw_tasks(seed: int) -> Iterator[Task]:
    """Endless random tasks, the same for the same seed."""
    rng = random.Random(seed)
    kinds = list(DRAWS.values())
    while True:
        yield rng.choice(kinds)(rng)


def join_books(texts: Sequence[str], encode: Encode) -> Tokens:
    """(n,) tokens of all texts, one after the other, each closed by the end token."""
    return np.array([token for text in texts for token in encode(text + END)], dtype=np.int64)


class Batches:
    """Random batches: the first half of the rows from books, the second half from tasks.

    A book row begins anywhere in the stream `books`, a task row always with a task; the task that reaches the
    end of its row is cut there.
    """

    def __init__(self, books: Tokens, encode: Encode, seed: int) -> None:
        self._books = books
        self._encode = encode
        self._rng = np.random.default_rng(seed)
        self._tasks = draw_tasks(seed)

    def draw(self, rows: int, context: int) -> Tokens:
        """(rows, context + 1) tokens: inputs are all but the last column, their targets all but the first."""
        length = context + 1
        starts = self._rng.integers(0, len(self._books) - length + 1, size=rows // 2)
        book_rows = [self._books[start : start + length] for start in starts]
        task_rows = [self._task_row(length) for _ in range(rows - len(book_rows))]
        return np.stack(book_rows + task_rows)

    def _task_row(self, length: int) -> Tokens:
        row: list[int] = []
        while len(row) < length:
            row += self._encode(next(self._tasks).text())
        return np.array(row[:length], dtype=np.int64)


def held_out_windows(stream: Tokens, count: int, length: int) -> Tokens:
    """(windows, length + 1) tokens spread evenly over `stream`, without overlap.

    A short stream gives fewer windows, and a stream shorter than one window a single shorter one.
    """
    length = min(length + 1, len(stream))
    count = min(count, len(stream) // length)
    starts = np.linspace(0, len(stream) - length, count).astype(np.int64)
    return np.stack([stream[start : start + length] for start in starts])
