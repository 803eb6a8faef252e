"""Everyday tasks with short answers: copies, extraction, facts, sums, counting, and repetition that is right."""

import json
import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

NAMES = [
    "Alice",
    "Ben",
    "Clara",
    "David",
    "Emma",
    "Frank",
    "Grace",
    "Henry",
    "Ivy",
    "Jack",
    "Karen",
    "Leo",
    "Mia",
    "Noah",
    "Olivia",
    "Paul",
    "Quinn",
    "Rosa",
    "Sam",
    "Tina",
]
CITIES = [
    "Paris",
    "Berlin",
    "Madrid",
    "Rome",
    "Oslo",
    "Vienna",
    "Dublin",
    "Lisbon",
    "Athens",
    "Warsaw",
    "Prague",
    "Cairo",
    "Tokyo",
    "Lima",
    "Delhi",
]
JOBS = ["teacher", "nurse", "baker", "pilot", "farmer", "lawyer", "painter", "doctor", "driver", "chef"]
CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Spain": "Madrid", "Italy": "Rome", "Norway": "Oslo", "Austria": "Vienna",
    "Ireland": "Dublin", "Portugal": "Lisbon", "Greece": "Athens", "Poland": "Warsaw", "Egypt": "Cairo",
    "Japan": "Tokyo", "Peru": "Lima", "Russia": "Moscow", "China": "Beijing", "Canada": "Ottawa", "Cuba": "Havana",
    "Kenya": "Nairobi", "Hungary": "Budapest", "Sweden": "Stockholm",
}  # fmt: skip
FACTS = [
    ("How many days are in a week?", "seven|7"),
    ("What color is the sky on a clear day?", "blue"),
    ("What is the opposite of hot?", "cold"),
    ("What planet do we live on?", "Earth"),
    ("How many legs does a spider have?", "eight|8"),
    ("What is frozen water called?", "ice"),
    ("What is the largest ocean on Earth?", "Pacific"),
    ("Who wrote Romeo and Juliet?", "Shakespeare"),
    ("What gas do plants absorb from the air?", "carbon dioxide|CO2"),
    ("What is the chemical symbol of gold?", "Au"),
    ("What do bees make?", "honey"),
    ("How many months are in a year?", "12|twelve"),
    ("What star is at the center of our solar system?", "Sun"),
    ("What is the first letter of the English alphabet?", "A\\b"),
    ("In which direction does the sun rise?", "[Ee]ast"),
]
WORDS = ["apple", "bird", "cloud", "door", "eagle", "flower"]
VERBS = ["list", "search", "create", "update", "delete", "export"]
THINGS = ["orders", "users", "reports", "images", "invoices", "tickets"]
SENTENCES = [
    "I will not be late again.",
    "The red fox runs home.",
    "Practice makes perfect.",
    "We all live on one planet.",
    "Good things take time.",
]


class Row(NamedTuple):
    """A task: its kind, the question, the answer, and how the answer is compared (`lzsampler.evaluation.scoring`)."""

    kind: str
    question: str
    answer: str
    compare: str = "contains"


def numbered(rows: Iterator[Row]) -> Iterator[dict[str, Any]]:
    """Yield tasks as they are kept, with ids that count within their kind."""
    seen: dict[str, int] = {}
    for row in rows:
        n = seen.setdefault(row.kind, 0)
        seen[row.kind] += 1
        messages = [{"role": "user", "content": row.question}]
        yield {"id": f"{row.kind}-{n:03d}", "task": row.kind, "messages": messages,
               "answer": row.answer, "compare": row.compare}  # fmt: skip


def first(seed: int) -> Iterator[Row]:
    """Yield the 160 tasks that the first measurements were made with. The order of the draws must stay as it is."""
    draw = random.Random(seed)
    for _ in range(30):
        people = [
            {"name": draw.choice(NAMES), "city": draw.choice(CITIES), "age": draw.randrange(20, 80)}
            for _ in range(draw.choice([2, 3, 4]))
        ]
        yield copy("copy-json", "JSON", json.dumps(people))
    for _ in range(20):
        word = draw.choice(["add", "sum", "plus", "inc"])
        numbers = draw.sample(range(1, 30), 3)
        yield copy("copy-code", "code", "\n".join(f"def {word}_{k}(x):\n    return x + {k}" for k in numbers))
    for _ in range(25):
        name, city, job = draw.choice(NAMES), draw.choice(CITIES), draw.choice(JOBS)
        other = draw.choice([x for x in NAMES if x != name])
        there = draw.choice([x for x in CITIES if x != city])
        work = draw.choice([x for x in JOBS if x != job])
        about = f"{name} is a {job} who lives in {city}. {other} is a {work} who lives in {there}."
        yield Row("extract", f"{about} In which city does {name} live? Answer with one word.", city)
    for country, city in CAPITALS.items():
        yield Row("fact", f"What is the capital of {country}?", city)
    for question, answer in FACTS:
        yield Row("fact", question, f"(?i){answer}", "regex")
    for _ in range(30):
        a, b = draw.randrange(2, 20), draw.randrange(2, 20)
        yield Row("add", f"What is {a} + {b}?", rf"\b{a + b}\b", "regex")
    for _ in range(10):
        n = draw.randrange(12, 30)
        numbers_to_n = ", ".join(map(str, range(1, n + 1)))
        yield Row("count", f"Count from 1 to {n}, with commas between the numbers.", numbers_to_n)
    for _ in range(10):
        word = draw.choice(WORDS)
        n = draw.randrange(4, 9)
        question = f"Write the word {word} {n} times, separated by spaces, and nothing else."
        yield Row("say", question, rf"(?i)^\W*{word}(\s+{word}){{{n - 1}}}\W*$", "regex")


def copy(kind: str, what: str, text: str) -> Row:
    """Return a task to repeat a text."""
    return Row(kind, f"Repeat this {what} exactly, with no other text:\n{text}", text)


def more(seed: int) -> Iterator[Row]:
    """Yield the other copies, and sentences to be written several times."""
    draw = random.Random(seed)
    makers: list[tuple[int, str, str, Callable[[random.Random], str]]] = [
        (15, "copy-url", "URL", _url),
        (15, "copy-id", "list of ids", _ids),
        (12, "copy-call", "tool call", _call),
        (12, "copy-table", "table", _table),
        (12, "copy-edit", "edit", _edit),
    ]
    for n, kind, what, make in makers:
        for _ in range(n):
            yield copy(kind, what, make(draw))
    for _ in range(10):
        sentence, n = draw.choice(SENTENCES), draw.randrange(3, 8)
        line = sentence.replace(".", r"\.")
        pattern = rf"(?i)^\W*(?:\d+[.)]\s*)?{line}(?:\s+(?:\d+[.)]\s*)?{line}){{{n - 1}}}\W*$"
        question = f'Write the sentence "{sentence}" {n} times, each on a line of its own, and nothing else.'
        yield Row("say-line", question, pattern, "regex")
    for _ in range(10):
        person, city, year = draw.choice(NAMES), draw.choice(CITIES), draw.randrange(1950, 2010)
        mail = f"{person.lower()}.{draw.choice(JOBS)}@{draw.choice(['mail', 'post', 'web'])}.example.org"
        text = f"{person} was born in {city} in {year}. You can write to {mail} at any time."
        yield Row("extract-mail", f"{text} What is the e-mail address of {person}?", mail)


def _hex(draw: random.Random, n: int) -> str:
    return f"{draw.getrandbits(4 * n):0{n}x}"


def _url(draw: random.Random) -> str:
    path = "/".join(draw.choice(THINGS) + (f"/{draw.randrange(1000, 99999)}" if draw.random() < 0.6 else "")
                    for _ in range(draw.choice([1, 2])))  # fmt: skip
    query = "&".join(f"{key}={draw.randrange(10, 999)}" for key in draw.sample(["page", "limit", "user", "ref"], 2))
    return f"https://{draw.choice(['shop', 'api', 'www'])}.example.org/{path}/{_hex(draw, 8)}?{query}"


def _ids(draw: random.Random) -> str:
    kinds: list[Callable[[], str]] = [
        lambda: str(uuid.UUID(int=draw.getrandbits(128))),
        lambda: _hex(draw, 40),
        lambda: f"ord-{draw.randrange(10**7, 10**8)}-{_hex(draw, 4)}",
    ]
    make = draw.choice(kinds)
    return "\n".join(make() for _ in range(draw.choice([1, 2, 3])))


def _call(draw: random.Random) -> str:
    calls = []
    for _ in range(draw.choice([1, 2])):
        arguments = {"city": draw.choice(CITIES), "id": _hex(draw, 8), "limit": draw.randrange(5, 100)}
        call = {"name": f"{draw.choice(VERBS)}_{draw.choice(THINGS)}", "arguments": arguments}
        calls.append(f"<tool_call>\n{json.dumps(call)}\n</tool_call>")
    return "\n".join(calls)


def _table(draw: random.Random) -> str:
    rows = [["name", "city", "age"], ["---", "---", "---"]]
    rows += [[name, draw.choice(CITIES), str(draw.randrange(20, 80))]
             for name in draw.sample(NAMES, draw.choice([3, 4, 5]))]  # fmt: skip
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _edit(draw: random.Random) -> str:
    name, key = f"{draw.choice(VERBS)}_{draw.choice(THINGS)}", draw.choice(["limit", "retries", "timeout", "size"])
    old, new = draw.sample(range(1, 100), 2)
    before, after = (f"def {name}({key}={n}):\n    return run({key})" for n in (old, new))
    return f"<<<<<<< SEARCH\n{before}\n=======\n{after}\n>>>>>>> REPLACE"
