"""Tasks with long answers that a program can check, on which small models loop: enumerations, coverage, worked sums.

A loop costs the answer here, because what is asked for has many parts: a list that says the same item from the eighth
on has not twenty different ones, and a story that is stuck never comes to the last word. README.md says how the kinds
were chosen.
"""

import random
from collections.abc import Iterable, Iterator

from sets import SETS
from short import CAPITALS, NAMES, Row

WORDS = [
    "elephant",
    "banana",
    "kitchen",
    "window",
    "guitar",
    "holiday",
    "mountain",
    "chocolate",
    "umbrella",
    "birthday",
    "computer",
    "library",
]
THINGS = ["apples", "books", "coins", "marbles", "stamps", "pencils", "cards", "shells"]
WHOLES = {
    "months of the year": "January|February|March|April|May|June|July|August|September|October|November|December",
    "days of the week": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    "planets of the solar system": "Mercury|Venus|Earth|Mars|Jupiter|Saturn|Uranus|Neptune",
    "continents": "Africa|Antarctica|Asia|Australia|Europe|North America|South America",
    "four seasons": "spring|summer|autumn|winter",
    "five senses": "sight|hearing|touch|taste|smell",
}
ABOUT_EACH = ("Write two sentences about each of the {}.", "Describe each of the {} in detail, one after the other.")
STEPS = "Think step by step and give the answer at the end."


def all_of(seed: int) -> Iterator[Row]:
    """Yield the 136 tasks."""
    draw = random.Random(seed)
    yield from lists()
    yield from names()
    yield from whole_sets()
    yield from words(draw, 24)
    yield from capitals(draw, 16)
    yield from chains(draw, 8)
    yield from totals(draw, 8)
    yield from stories(draw, 8)
    yield from multiples(draw, 6)
    yield from tables(draw, 6)
    yield from evens(draw, 6)


def several(kind: str, question: str, wanted: int, of: Iterable[str]) -> Row:
    """Return a task whose answer has some members of a set."""
    return Row(kind, question, f"{wanted}: {'|'.join(of)}", "several")


def sequence(kind: str, question: str, parts: Iterable[object]) -> Row:
    """Return a task whose answer is a sequence of parts."""
    return Row(kind, question, ", ".join(map(str, parts)), "sequence")


def lists() -> Iterator[Row]:
    """Yield long lists; half of what is asked for is enough, since our sets have not all that there is."""
    for what, members in SETS.items():
        for n in (20, 30, 40, 50):
            yield several("list-many", f"List {n} different {what}, one on each line.", n // 2, members)


def names() -> Iterator[Row]:
    """Yield the same in fewer words."""
    for what, members in SETS.items():
        for n in (20, 30):
            yield several("name-many", f"Name {n} {what}.", n // 2, members)


def whole_sets() -> Iterator[Row]:
    """Yield descriptions of small sets, in which every member must come up."""
    for what, joined in WHOLES.items():
        members = joined.split("|")
        for ask in ABOUT_EACH:
            yield several("whole-set", ask.format(what), len(members), members)


def words(draw: random.Random, n: int) -> Iterator[Row]:
    """Yield stories in which all of some words must come up."""
    for _ in range(n):
        some = draw.sample(WORDS, draw.randrange(4, 9))
        yield several(
            "use-words", f"Write a long story that uses all of these words: {', '.join(some)}.", len(some), some
        )


def capitals(draw: random.Random, n: int) -> Iterator[Row]:
    """Yield several countries to write about, each with its capital."""
    for _ in range(n):
        some = draw.sample(sorted(CAPITALS), draw.randrange(3, 9))
        question = f"Write a few sentences about each of these countries, and name its capital: {', '.join(some)}."
        yield several("capitals", question, len(some), [CAPITALS[country] for country in some])


def chains(draw: random.Random, n: int) -> Iterator[Row]:
    """Yield chains of sums."""
    for _ in range(n):
        value = draw.randrange(2, 12)
        steps = [f"Start with {value}."]
        for _ in range(draw.randrange(2, 6)):
            k, doubled = draw.randrange(2, 10), draw.random() < 1 / 3
            value = 2 * value if doubled else value + k
            steps.append("Double it." if doubled else f"Add {k}.")
        yield Row("chain", f"{' '.join(steps)} What number do you have? {STEPS}", str(value), "stated")


def totals(draw: random.Random, n: int) -> Iterator[Row]:
    """Yield sums of three to seven numbers."""
    for _ in range(n):
        numbers = [draw.randrange(2, 20) for _ in range(draw.randrange(3, 8))]
        question = f"Add up these numbers step by step: {', '.join(map(str, numbers))}."
        yield Row(
            "total", f'{question} Write the total at the end, as "The answer is ...".', str(sum(numbers)), "stated"
        )


def stories(draw: random.Random, n: int) -> Iterator[Row]:
    """Yield sums and products in words."""
    for _ in range(n):
        name, things = draw.choice(NAMES), draw.choice(THINGS)
        a, b = draw.randrange(5, 20), draw.randrange(2, 6)
        text, answer = draw.choice([
            (f"{name} has {a} {things} and buys {b} more.", a + b),
            (f"{name} has {a + b} {things} and gives {b} of them to a friend.", a),
            (f"{name} has {b} boxes with {a} {things} in each.", a * b),
        ])  # fmt: skip
        yield Row("story-sum", f"{text} How many {things} does {name} have now? {STEPS}", str(answer), "stated")


def multiples(draw: random.Random, n: int) -> Iterator[Row]:
    """Yield the multiples of a number."""
    for _ in range(n):
        k, last = draw.randrange(2, 13), draw.randrange(12, 25)
        question = f"List all multiples of {k} from {k} to {k * last}, and then stop."
        yield sequence("multiples", question, range(k, k * last + 1, k))


def tables(draw: random.Random, n: int) -> Iterator[Row]:
    """Yield multiplication tables, whose last product is the answer."""
    for _ in range(n):
        k, last = draw.randrange(2, 13), draw.randrange(10, 21)
        question = f"Write the multiplication table of {k}, from {k} x 1 to {k} x {last}, one product on each line."
        yield Row("times-table", question, rf"(?<!\d){k}\s*(?:[x×*]|times)\s*{last}\s*=\s*{k * last}\b", "regex")


def evens(draw: random.Random, n: int) -> Iterator[Row]:
    """Yield the even or the odd numbers of a range."""
    for _ in range(n):
        name, start = draw.choice([("even", 2), ("odd", 1)])
        start += 2 * draw.randrange(0, 30)
        numbers = range(start, start + 2 * draw.randrange(12, 30), 2)
        yield sequence("evens", f"List the {name} numbers from {numbers[0]} to {numbers[-1]}.", numbers)
