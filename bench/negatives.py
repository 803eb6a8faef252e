"""Texts that repeat themselves rightly: what a detector of loops has to let pass, by kind and the same every time.

    python bench/negatives.py        # how many pieces there are of each kind

Prose are the books of the embedded model's corpus, code is Python's standard library and the packages installed beside
this one, Markdown their READMEs: read where they are, so that another version of Python gives other pieces. The rest is
generated: what people and programs write that comes close to a loop.
"""

import random
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "bench" / "train_embedded" / "corpus"
PIECE = 6000  # characters
EACH = 300  # pieces of a kind

NAMES = [
    "Amber",
    "Basil",
    "Cedar",
    "Delta",
    "Ember",
    "Fjord",
    "Grove",
    "Heron",
    "Iris",
    "Juniper",
    "Krill",
    "Lotus",
    "Maple",
    "Nimbus",
    "Onyx",
    "Pebble",
    "Quill",
    "Raven",
    "Sable",
    "Thistle",
    "Umber",
    "Violet",
    "Willow",
    "Xenon",
    "Yarrow",
    "Zephyr",
]
THINGS = [
    "anchor",
    "basket",
    "candle",
    "door",
    "engine",
    "feather",
    "gate",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "mirror",
    "needle",
    "oar",
    "pillow",
    "quilt",
    "rope",
    "saddle",
    "table",
    "urn",
    "valve",
    "wagon",
    "yoke",
    "button",
    "cabinet",
    "drawer",
    "envelope",
    "fountain",
    "garden",
    "harbour",
    "inkwell",
    "journal",
    "kitchen",
    "lantern",
    "market",
    "notebook",
    "orchard",
    "parcel",
    "quarry",
    "river",
    "station",
    "tower",
    "vessel",
    "window",
    "yard",
]
VERBS = [
    "moved",
    "opened",
    "closed",
    "carried",
    "counted",
    "cleaned",
    "painted",
    "found",
    "sold",
    "lost",
    "mended",
    "measured",
    "hid",
    "drew",
    "lifted",
]
ADJECTIVES = [
    "old",
    "small",
    "green",
    "heavy",
    "quiet",
    "bright",
    "narrow",
    "broken",
    "wooden",
    "round",
    "empty",
    "northern",
    "patient",
    "early",
]


class Piece(NamedTuple):
    """A text, and of which kind it is."""

    kind: str
    text: str


def pieces(*, installed: bool = True) -> Iterator[Piece]:
    """Yield all pieces, kind by kind; or, without what is ``installed``, those that are the same on every machine."""
    packages = Path(sysconfig.get_path("purelib"))
    sources = {
        "prose": sorted(CORPUS.glob("*.txt")),
        "code": sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")),
        "code of packages": sorted(path for path in packages.glob("*/*.py") if path.parts[-2] != "lzsampler"),
        "Markdown": sorted([*packages.glob("*.dist-info/METADATA"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]),
    }
    for kind, paths in sources.items():
        if not installed and kind != "prose":
            continue
        cut = list(dict.fromkeys(_cut(paths)))
        random.Random(kind).shuffle(cut)
        yield from (Piece(kind, text) for text in cut[:EACH])
    for kind, make in GENERATED.items():
        rng = random.Random(kind)
        for _ in range(EACH):
            text = ""
            while len(text) < PIECE // 2:
                text += make(rng)
            yield Piece(kind, text[: rng.randrange(PIECE // 4, PIECE)])


def _cut(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.name == "METADATA":
            text = text.partition("\n\n")[2]  # headers come before it
        for at in range(0, len(text) - PIECE // 4, PIECE):
            yield text[at : at + PIECE]


# ---- what is generated: each makes one text of its kind, short or long ----


def sentence(rng: random.Random) -> str:
    return (
        f"The {rng.choice(ADJECTIVES)} {rng.choice(THINGS)} was {rng.choice(VERBS)} "
        f"by {rng.choice(NAMES)} near the {rng.choice(THINGS)}."
    )


def _table(rng: random.Random) -> str:
    columns = rng.sample(THINGS, rng.randrange(3, 9))
    rows = [" | ".join(columns), " | ".join("---" for _ in columns)]
    cell: Callable[[], str] = rng.choice(
        (
            lambda: str(rng.randrange(10_000)),
            lambda: rng.choice(("yes", "no")),
            lambda: f"{rng.random():.3f}",
            lambda: rng.choice(NAMES),
            lambda: f"{rng.choice(ADJECTIVES)} {rng.choice(THINGS)}",
        )
    )
    for number in range(rng.randrange(10, 60)):
        rows.append(" | ".join([str(number), *(cell() for _ in columns[1:])]))
    return "".join(f"| {row} |\n" for row in rows) + "\n"


def _csv(rng: random.Random) -> str:
    day = rng.randrange(1, 28)
    lines = ["id,name,date,status,amount,currency,country"]
    for number in range(rng.randrange(20, 80)):
        lines.append(
            f"{10_000 + number},{rng.choice(NAMES)},2024-03-{day:02},{rng.choice(('paid', 'open', 'void'))},"
            f"{rng.randrange(10**5) / 100},EUR,{rng.choice(('DE', 'FR', 'PL'))}"
        )
    return "\n".join(lines) + "\n"


def _json(rng: random.Random) -> str:
    rows = [
        f'  {{\n    "id": {number},\n    "name": "{rng.choice(NAMES)} {rng.choice(THINGS)}",\n    "enabled": '
        f'{rng.choice(("true", "false"))},\n    "tags": ["{rng.choice(ADJECTIVES)}", "{rng.choice(ADJECTIVES)}"],\n'
        f'    "position": {{"x": {rng.randrange(900)}, "y": {rng.randrange(900)}}}\n  }}'
        for number in range(rng.randrange(8, 30))
    ]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def _log(rng: random.Random) -> str:
    made, second = [], rng.randrange(80_000)
    form = rng.randrange(4)
    for _ in range(rng.randrange(20, 80)):
        second += rng.randrange(1, 9)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        who, what, number = rng.choice(NAMES).lower(), rng.choice(THINGS), rng.randrange(5000)
        if form == 0:
            status = rng.choice((200, 200, 200, 304, 404))
            made.append(
                f'10.0.{rng.randrange(9)}.{rng.randrange(255)} - - [12/Mar/2024:{clock} +0000] "GET /{what}/{number} '
                f'HTTP/1.1" {status} {rng.randrange(9000)}'
            )
        elif form == 1:
            made.append(
                f"2024-03-12 {clock},{rng.randrange(999):03} INFO worker-{rng.randrange(4)}: {what} {number} done"
            )
        elif form == 2:
            level = rng.choice(("INFO", "WARN", "DEBUG"))
            made.append(
                f"[{clock}] {level} {who}.{what}: {rng.choice(VERBS)} {number} items in {rng.randrange(900)} ms"
            )
        else:
            made.append(
                f"tests/test_{what}.py::test_{rng.choice(VERBS)}_{who}[{number}] PASSED [{rng.randrange(99):3}%]"
            )
    return "\n".join(made) + "\n"


def _progress(rng: random.Random) -> str:
    total, what = rng.randrange(20, 90), rng.choice(THINGS)
    lines = [
        f"Epoch {i}/{total} - loss: {3 / (i + 1) + rng.random() / 9:.4f} - accuracy: {rng.random():.4f}"
        if total % 2
        else f"Downloading {what}-{i}.tar.gz ({rng.randrange(999)} kB) ... done in {rng.random():.1f} s"
        for i in range(1, total + 1)
    ]
    return "\n".join(lines) + "\n"


def _sum(rng: random.Random) -> str:
    a, b = rng.randrange(100, 10**6), rng.randrange(100, 10**6)
    lines, carry = [f"Let us add {a} and {b} digit by digit, from the right."], 0
    for place, (x, y) in enumerate(zip(reversed(f"{a:07}"), reversed(f"{b:07}"), strict=True)):
        total = int(x) + int(y) + carry
        lines.append(f"Step {place + 1}: {x} + {y} + carry {carry} = {total}. Write {total % 10}, carry {total // 10}.")
        carry = total // 10
    return "\n".join(lines) + f"\nSo {a} + {b} = {a + b}.\n\n"


def _times(rng: random.Random) -> str:
    n = rng.randrange(2, 999)
    return "".join(f"{n} x {i} = {n * i}\n" for i in range(1, rng.randrange(10, 40))) + "\n"


def _equations(rng: random.Random) -> str:
    a, x, b = rng.randrange(2, 20), rng.randrange(2, 50), rng.randrange(2, 90)
    return (
        f"Solve {a}x + {b} = {a * x + b}.\nSubtract {b} from both sides: {a}x = {a * x}.\n"
        f"Divide both sides by {a}: x = {x}.\nCheck: {a} * {x} + {b} = {a * x + b}. Correct.\n\n"
    )


def _enumeration(rng: random.Random) -> str:
    form, first = rng.randrange(4), rng.randrange(1, 900)
    lines = []
    for number in range(first, first + rng.randrange(20, 70)):
        name, thing = rng.choice(NAMES), rng.choice(THINGS)
        lines.append(
            (
                f"{number}. {name} {thing}",
                f"{number}. **{name}**: a {rng.choice(ADJECTIVES)} {thing}",
                f"The capital of {name}land is {thing.capitalize()}ton.",
                f"Line {number}: item number {number}",
            )[form]
        )
    return "\n".join(lines) + "\n\n"


def _bullets(rng: random.Random) -> str:
    return "".join(f"- {sentence(rng)}\n" for _ in range(rng.randrange(8, 40))) + "\n"


def _calendar(rng: random.Random) -> str:
    lines, days = [], ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    first = rng.randrange(7)
    for day in range(1, 32):
        lines.append(f"{days[(first + day) % 7]}, {day} March: {rng.choice(VERBS)} the {rng.choice(THINGS)}.")
    return "\n".join(lines) + "\n\n"


def _edited_twice(rng: random.Random) -> str:
    """A piece of code and the same with one line changed, as an assistant that was asked for a change writes it."""
    body = [f"    {rng.choice(THINGS)} = {rng.choice(VERBS)}({rng.choice(THINGS)}, {i})" for i in range(25)]
    code = ["def main():", *body, "    return result"]
    changed = list(code)
    changed[rng.randrange(1, 25)] = "    raise ValueError(message)"
    return "```python\n" + "\n".join(code) + "\n```\n\nWith the check:\n\n```python\n" + "\n".join(changed) + "\n```\n"


def _song(rng: random.Random) -> str:
    refrain = "\n".join(sentence(rng) for _ in range(4))
    verses = ["\n".join(sentence(rng) for _ in range(6)) for _ in range(rng.randrange(4, 7))]
    return f"\n\n{refrain}\n\n".join(verses) + "\n\n"


def _calls(rng: random.Random) -> str:
    """Tool calls of one form, as agents make them."""
    return "".join(
        f'{{"name": "read_file", "arguments": {{"path": "src/{rng.choice(THINGS)}/{rng.choice(NAMES).lower()}.py", '
        f'"start": {rng.randrange(900)}, "end": {rng.randrange(900, 2000)}}}}}\n'
        for _ in range(rng.randrange(8, 40))
    )


def _tests(rng: random.Random) -> str:
    return "".join(
        f"def test_{rng.choice(VERBS)}_{rng.choice(THINGS)}() -> None:\n    {rng.choice(THINGS)} = "
        f"make_{rng.choice(THINGS)}({rng.randrange(99)})\n    assert {rng.choice(VERBS)}({rng.choice(THINGS)}) == "
        f"{rng.randrange(999)}\n\n\n"
        for _ in range(rng.randrange(8, 30))
    )


GENERATED: dict[str, Callable[[random.Random], str]] = {
    "tables": _table,
    "CSV": _csv,
    "JSON": _json,
    "logs": _log,
    "progress": _progress,
    "worked sums": _sum,
    "times tables": _times,
    "equations": _equations,
    "enumerations": _enumeration,
    "bullets": _bullets,
    "calendars": _calendar,
    "code given twice": _edited_twice,
    "songs": _song,
    "tool calls": _calls,
    "tests": _tests,
}


def show(suite: Iterable[Piece]) -> None:
    """Print how many pieces there are of each kind."""
    counts = Counter(piece.kind for piece in suite)
    for name, count in counts.items():
        print(f"{count:5}  {name}")
    print(f"{counts.total():5}  in all")


if __name__ == "__main__":
    show(pieces())
