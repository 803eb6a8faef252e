"""The 200 prompts, 40 tasks and 16 lists that judge a default penalty, once: no rule was chosen on them.

    python bench/everyday/judged.py FOLDER

It writes `prompts.jsonl`, `tasks.jsonl` and `lists/KIND/NUMBER.txt` into the folder, from a fixed seed, and prints the
SHA-256 of all that. The words are ours. No topic of `prompts.py`, no words of `right_lists.py` and no task of
`short.py` is among them.
"""

import argparse
import hashlib
import json
import random
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from prompts import topics
from sets import members
from short import Row, copy, numbered

_SEED = 35
# Ten ways to ask for a long answer, and twenty topics of each.
_PROMPTS = {
    "Write a detailed report on {}.": """
        noise in hospitals|the state of a town's playgrounds|the wages of nurses|a week of cycling to work
        a flood in a river valley|the closing of a coal mine|parking in the city center|a new tram line
        the use of tablets in primary schools|the sale of a football club|a year of a community kitchen
        the trees along a main road|water use in a hotel|a power cut in winter|the opening hours of museums
        volunteers in fire brigades|rents near a university|a trial of four-day weeks|a food market at night
        the repair of a cathedral roof""",
    "Tell the story of {}, from beginning to end.": """
        a glassblower and her apprentice|a lorry driver who collects stamps|the last day of a circus
        an umbrella with a mind of its own|a nurse on the night train|two rivals who share a workshop
        a parrot that gives advice|a stonemason who hears voices|the girl who painted the harbor blue
        a beekeeper and a thunderstorm|the man who mended radios|a wedding in a snowbound hut
        an interpreter who tells lies|a kite that flew to sea|a hotel porter with a secret
        a bell that rings by itself|a mountain rescue that goes wrong|the cook of a submarine
        a child who befriends a crow|a tailor in a besieged town""",
    "Give me a complete guide to {}.": """
        keeping chickens|buying a used car|hiking with children|restoring a wooden chair
        moving to another country|photographing birds|writing a will|making sourdough|learning to type
        setting up an aquarium|running a half marathon|choosing a telescope|growing tomatoes on a balcony
        planning a reunion|fixing a leaking tap|making candles|starting a choir|caring for leather boots
        preparing for a job interview|packing a lunch box""",
    "Write a conversation between {}.": """
        a gardener and a snail|a judge and her son|two old sailors|a tourist and a taxi driver
        a doctor and a worried patient|a pianist and his tuner|a shopkeeper and a thief
        a teacher and a new pupil|two neighbors about a fence|a waiter and a critic|an engineer and a poet
        a mother and her grown daughter|a farmer and a banker|a ghost and an estate agent
        two astronomers about a comet|a boxer and his trainer|a librarian and a noisy reader
        a king and his barber|a customer and a mechanic|a chess master and a beginner""",
    "What should everybody know about {}? Answer in detail.": """
        first aid|inflation|the immune system|copyright|earthquakes|the stock market|vitamins|allergies
        hurricanes|the Renaissance|passwords|the Great Wall of China|asthma|plastics|the Silk Road|mushrooms
        insurance|the electoral college|eyesight|jazz""",
    "Write a letter of at least 500 words to {}.": """
        a landlord about the heating|the mayor about a dangerous crossing|a friend who moved to Chile
        the editor of a newspaper|your younger self|an airline about lost luggage|a museum that wants volunteers
        a neighbor with a loud dog|the parents of a school class|a former teacher|a publisher about a cookbook
        an aunt who is ill|a bank about a wrong fee|the owner of a lost dog|a football club|your future children
        a pen friend in Norway|a company about a broken washing machine|the members of a choir
        a politician about clean air""",
    "Describe {} so that a blind person can imagine it.": """
        a harbor at dawn|a carnival|a desert after rain|an old railway station|a glass palace
        a street of craftsmen|a frozen lake|a night at the opera|a field of sunflowers|a busy kitchen
        the inside of a clock|a storm at sea|a spice bazaar|an abandoned factory|a child's bedroom|a waterfall
        a chess tournament|a vineyard in autumn|a city from a balloon|a workshop of violins""",
    "Compare {}. Name as many differences as you can.": """
        cats and dogs|trains and planes|tea and coffee|novels and films|summer and winter
        living alone and living together|rivers and lakes|paper books and electronic books|butter and margarine
        bees and wasps|tennis and table tennis|oil paint and watercolor|gas and electric stoves
        comets and asteroids|democracy and monarchy|frogs and lizards|cities and villages|wool and cotton
        moths and butterflies|radio and television""",
    "Write a plan with many small steps for {}.": """
        a school play|a family budget|an escape room|a charity run|a kitchen renovation|a week without a car
        a science fair|a local newspaper|a summer camp|a rooftop garden|a bakery|a language course
        a photo exhibition|a winter expedition|a neighborhood watch|a debate club|a quiz night
        a recording studio|a tree house|a bicycle tour along a river""",
    "Invent 40 questions and answers about {}.": """
        electricity|the Vikings|spices|the lungs|opera|glaciers|backgammon|the Amazon|fog|ants|the Middle Ages
        rubber|bears|ice cream|satellites|Mozart|windmills|owls|the Olympics of antiquity|paper money""",
}
_PEOPLE = members(
    "Anton, Beata, Cyril, Doris, Edgar, Fiona, Gregor, Hanna, Igor, Julia, Kurt, Linda, Marek, Nadia, Oskar, Petra"
)
_TOWNS = members("Ghent, Bergen, Turin, Split, Basel, Malmo, Cork, Porto, Graz, Leeds, Lyon, Bremen")
_GOODS = members("lamp, chair, desk, shelf, clock, mirror, carpet, kettle")
_FACTS = [
    ("What do we call a baby dog?", "puppy|pup"),
    ("How many hours are in a day?", "24|twenty-four"),
    ("Which animal is known as the king of the jungle?", "lion"),
    ("What is the freezing point of water in degrees Celsius?", r"\b0|zero"),
    ("Which season comes after winter?", "spring"),
    ("What is the capital of Belgium?", "Brussels"),
    ("How many sides does a triangle have?", "three|3"),
    ("What do caterpillars turn into?", "butterfl|moth"),
]


def prompts() -> list[dict[str, Any]]:
    """Return the 200 prompts, the ten ways to ask in turn."""
    by_way = [[way.format(topic.strip()) for topic in topics(block)] for way, block in _PROMPTS.items()]
    return [
        {"id": f"judged-{n:03d}", "messages": [{"role": "user", "content": text}]}
        for n, text in enumerate(chain.from_iterable(zip(*by_way, strict=True)))
    ]


def tasks() -> list[dict[str, Any]]:
    """Return the 40 tasks: eight each of copies of lists and of rows, of two extractions, and of facts."""
    return list(numbered(_tasks(random.Random(_SEED))))


def _tasks(draw: random.Random) -> Iterator[Row]:
    for _ in range(8):
        yield copy("copy-words", "list", ", ".join(draw.choice(_GOODS) for _ in range(draw.randrange(8, 20))))
    for _ in range(8):
        rows = [f"{draw.choice(_PEOPLE)},{draw.choice(_TOWNS)},{draw.choice(['yes', 'no'])}" for _ in range(5)]
        yield copy("copy-rows", "CSV", "\n".join(["name,town,paid", *rows]))
    for _ in range(8):
        (a, b), (here, there), thing = draw.sample(_PEOPLE, 2), draw.sample(_TOWNS, 2), draw.choice(_GOODS)
        text = f"{a} sent a {thing} from {here} to {b} in {there}."
        yield Row("extract-town", f"{text} To which town was the {thing} sent? Answer with one word.", there)
    for _ in range(8):
        a, b = draw.sample(_PEOPLE, 2)
        old, new = draw.sample(range(21, 90), 2)
        text = f"{a} is {old} years old. {b} is {new} years old."
        yield Row("extract-age", f"{text} How old is {b}?", rf"\b{new}\b", "regex")
    for question, answer in _FACTS:
        yield Row("fact", question, f"(?i){answer}", "regex")


def lists() -> Iterator[tuple[str, int, str]]:
    """Yield the 16 lists of a few words: the name of the kind, the number among those of its kind, and the text."""
    draw = random.Random(_SEED + 1)
    kinds: dict[str, Callable[[random.Random], str]] = {
        "signals": lambda d: _drawn(d, "red amber green", 200, "\n"),
        "notes": lambda d: _drawn(d, "do re mi fa so la ti", 200, " "),
        "shifts": _shifts,
        "poll": lambda d: "".join(f"{d.choice(_PEOPLE)}: {_drawn(d, 'agree disagree unsure', 1)}\n" for _ in range(60)),
        "weather": _weather,
        "switches": lambda d: (
            "id,open,locked,paid\n" + "".join(f"{n},{_drawn(d, 'on off', 3, ',')}\n" for n in range(1, 51))
        ),
        "states": _states,
        "seats": lambda d: "".join(f"Row {n}: {_drawn(d, 'free taken', 8)}\n" for n in range(1, 26)),
    }
    for number in range(2):
        for kind, make in kinds.items():
            yield kind, number, make(draw)


def _drawn(draw: random.Random, words: str, n: int, between: str = ", ") -> str:
    return between.join(draw.choices(words.split(), k=n))


def _shifts(draw: random.Random) -> str:
    head = "| name | Mon | Tue | Wed | Thu | Fri |\n|---|---|---|---|---|---|\n"
    return head + "".join(f"| {name} | {_drawn(draw, 'early late night', 5, ' | ')} |\n" for name in _PEOPLE * 2)


def _weather(draw: random.Random) -> str:
    return "".join(
        f"2025-{month:02}-{day:02} {_drawn(draw, 'sun rain snow fog', 1)}\n" for month in (3, 4) for day in range(1, 31)
    )


def _states(draw: random.Random) -> str:
    rows = [json.dumps({"id": n, "state": draw.choice(["ready", "busy", "broken"])}) for n in range(1, 41)]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def main() -> None:
    """Write the files and print their hash."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the files are written")
    folder: Path = parser.parse_args().folder
    files = {f"{name}.jsonl": "".join(json.dumps(row) + "\n" for row in rows)
             for name, rows in (("prompts", prompts()), ("tasks", tasks()))}  # fmt: skip
    files |= {f"lists/{kind}/{number}.txt": text for kind, number, text in lists()}
    whole = hashlib.sha256()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        whole.update(f"{name}\n{text}".encode())
    print(whole.hexdigest())


if __name__ == "__main__":
    main()
