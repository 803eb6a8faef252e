"""Tasks on which a model is shown to think in a list before it answers in JSON: a loop in the list costs the answer.

Two worked questions come before each task, so that a model that was not trained to think does it as well: a list of
short thoughts between `<think>` and `</think>`, and the answer after it. README.md says how the tasks were made.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from short import CAPITALS, FACTS, first

SHOWN = [
    (
        "What is the capital of Italy?",
        """The question is about Italy.
- Italy is a country in the south of Europe.
- It looks like a boot on the map.
- People there speak Italian and like to eat pasta.
- It has many old cities, such as Venice, Florence and Rome.
- The government and the parliament are in Rome.
- So Rome must be the capital.""",
        "Rome",
    ),
    (
        "How many days are in a week?",
        """The question is about the days of the week.
- The week begins with Monday.
- Then come Tuesday, Wednesday, Thursday and Friday, on which people work.
- Saturday and Sunday are the weekend.
- That makes five days and two more days.
- So there must be seven days.""",
        "7",
    ),
]
MORE_FACTS = [
    ("How many hours are in a day?", "24|twenty-four"),
    ("How many minutes are in an hour?", "60|sixty"),
    ("How many wheels does a bicycle have?", "2|two"),
    ("How many continents are there?", "7|seven"),
    ("Which animal gives us wool?", "sheep"),
    ("Which animal barks?", "dogs?"),
    ("What color is grass?", "green"),
    ("What color is a ripe banana?", "yellow"),
    ("What color is snow?", "white"),
    ("What is the opposite of big?", "small|little"),
    ("What is the opposite of day?", "night"),
    ("What is the first month of the year?", "January"),
    ("What is the last month of the year?", "December"),
    ("Which day comes after Monday?", "Tuesday"),
    ("Which planet is the largest in our solar system?", "Jupiter"),
    ("Which planet is called the red planet?", "Mars"),
    ("What is a baby dog called?", "puppy|pup"),
    ("What is a baby cat called?", "kitten"),
    ("What is the tallest mountain on Earth?", "Everest"),
    ("What language do people speak in Brazil?", "Portuguese"),
    ("What language do people speak in Germany?", "German"),
    ("On which continent is Egypt?", "Africa"),
    ("On which continent is China?", "Asia"),
    ("What is the currency of the United States?", "dollars?"),
    ("What is the currency of Japan?", "yen"),
    ("Who painted the Mona Lisa?", "Leonardo|da Vinci"),
    ("Who was the first president of the United States?", "Washington"),
    ("What gas do people need to breathe?", "oxygen"),
    ("At how many degrees Celsius does water boil?", "100"),
    ("At how many degrees Celsius does water freeze?", "0|zero"),
]


class Asked(NamedTuple):
    """A question and its answer, alternatives of a pattern."""

    kind: str
    question: str
    answer: str


def tasks(seed: int) -> Iterator[dict[str, Any]]:
    """Yield the 100 tasks: 63 facts, 22 sentences with the answer in them, 15 sums."""
    shown: list[dict[str, str]] = []
    for question, thoughts, answer in SHOWN:
        made = f"<think>\n{thoughts}\n</think>\n{json.dumps({'answer': answer})}"
        shown += [{"role": "user", "content": question}, {"role": "assistant", "content": made}]
    seen: dict[str, int] = {}
    for kind, question, answer in asked(random.Random(seed)):
        n = seen.setdefault(kind, 0)
        seen[kind] += 1
        pattern = rf'(?i)\A\s*\{{"answer":\s*"?(?:[^"\n]*\W)?(?:{answer})\b'
        messages = [*shown, {"role": "user", "content": question}]
        yield {"id": f"{kind}-{n:03d}", "task": kind, "messages": messages, "answer": pattern, "compare": "regex"}


def asked(draw: random.Random) -> Iterator[Asked]:
    """Yield the questions."""
    known = {question for question, _, _ in SHOWN}
    capitals = [(f"What is the capital of {country}?", city) for country, city in CAPITALS.items()]
    for question, answer in (*capitals, *FACTS, *MORE_FACTS):
        if question not in known:
            yield Asked("think-fact", question, answer.removesuffix(r"\b").replace("[Ee]", "e"))
    extracts = [row for row in first(draw.randrange(1 << 30)) if row.kind == "extract"]
    for row in extracts[:22]:
        yield Asked("think-extract", row.question.removesuffix(" Answer with one word."), row.answer)
    for _ in range(15):
        a, b = draw.randrange(2, 20), draw.randrange(2, 20)
        yield Asked("think-add", f"What is {a} + {b}?", str(a + b))
