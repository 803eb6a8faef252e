"""The suite of clean texts: over 10,000 pieces that repeat themselves rightly, if at all, by kind.

    python bench/clean.py        # how many pieces there are of each kind, and from where

They are those of negatives.py; pieces of real files, packed with their sources and licences in data/clean.jsonl.xz by
pack_clean.py; and more that are made here: what comes closest to a loop, such as equal cells, arguments and bytes, rows
under rising numbers, and songs whose lines come again.
"""

import base64
import json
import lzma
import random
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from negatives import ADJECTIVES, NAMES, PIECE, THINGS, VERBS, Piece, pieces, sentence, show

PACKED = Path(__file__).with_name("data") / "clean.jsonl.xz"
EACH = 150  # pieces of a kind that is made here
SAMPLE = 5  # one of so many pieces is in the sample


def suite() -> Iterator[Piece]:
    """Yield all pieces, kind by kind."""
    yield from pieces()
    yield from packed()
    yield from made()


def sample() -> Iterator[Piece]:
    """Yield one of five pieces of those that are the same on every machine: not those that installed packages have."""
    for i, piece in enumerate(chain(pieces(installed=False), packed(), made())):
        if i % SAMPLE == 0:
            yield piece


def packed() -> Iterator[Piece]:
    """Yield the pieces of real files."""
    with lzma.open(PACKED, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            yield Piece(row["kind"], row["text"])


def made() -> Iterator[Piece]:
    """Yield the pieces that are made here, each with something else around its repetitions, as in real texts."""
    for kind, make in MADE.items():
        rng = random.Random(kind)
        for _ in range(EACH):
            text = ""
            while len(text) < PIECE // 2:
                text += make(rng)
            yield Piece(kind, text[: rng.randrange(PIECE // 4, PIECE)])


# ---- what is made: each function returns one text of its kind, short or long ----


def _equal_cells(rng: random.Random) -> str:
    """A table of Markdown in which many cells are equal: check marks, dashes, zeros."""
    n = rng.randrange(4, 14)
    rule = rng.choice(("---", ":---:", "----:", "-" * rng.randrange(4, 40)))
    cells = rng.choice((("✓", "✗"), ("yes", "no"), ("x", " "), (":white_check_mark:", ":x:"), ("0", "0"), ("n/a", "-")))
    rows = ["| " + " | ".join(["", *rng.sample(THINGS, n)]) + " |", "|" + f" {rule} |" * (n + 1)]
    for name in rng.sample(NAMES, rng.randrange(5, 20)):
        rows.append("| " + " | ".join([name, *(cells[rng.random() < 0.15] for _ in range(n))]) + " |")
    return f"{sentence(rng)}\n\n" + "\n".join(rows) + f"\n\n{sentence(rng)}\n\n"


def _arrays(rng: random.Random) -> str:
    """Tables of bytes, numbers and names in C, in which the same value comes many times."""
    name, form = rng.choice(THINGS), rng.choice(("0", "0x00", "0xff", "-1", "NULL", "{ 0, 0 }", "'\\0'", "0.0f"))
    values = [form if rng.random() < 0.93 else f"{rng.randrange(256):#04x}" for _ in range(rng.randrange(16, 64))]
    lines = [", ".join(values[i : i + 8]) for i in range(0, len(values), 8)]
    return (
        f"/* {sentence(rng)} */\nstatic const table_t {name}_{rng.randrange(99)}[] = {{\n    "
        + ",\n    ".join(lines)
        + f",\n}};\n\nint {name}_{rng.choice(VERBS)}(int {rng.choice(THINGS)}) {{\n"
        f"    return {name}_{rng.choice(ADJECTIVES)}[{rng.randrange(99)}];\n}}\n\n"
    )


def _hex_dump(rng: random.Random) -> str:
    """Bytes as `xxd` shows them, with stretches of zeros."""
    rows, zeros = [], 0
    for at in range(0, 16 * rng.randrange(12, 60), 16):
        zeros = zeros - 1 if zeros else rng.randrange(2, 7) * (rng.random() < 0.2)
        data = bytes(16) if zeros else rng.randbytes(16)
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
        rows.append(f"{at:08x}: {data.hex(' ', 2)}  {shown}")
    return f"$ xxd {rng.choice(THINGS)}.bin\n" + "\n".join(rows) + "\n"


def _base64(rng: random.Random) -> str:
    """Certificates and small pictures, with some padding inside."""
    data = rng.randbytes(rng.randrange(200, 900)) + bytes(rng.randrange(12)) + rng.randbytes(rng.randrange(200, 900))
    text = base64.encodebytes(data).decode("ascii")
    return f"-----BEGIN {rng.choice(THINGS).upper()}-----\n{text}-----END-----\n{sentence(rng)}\n"


def _drawings(rng: random.Random) -> str:
    """Boxes, trees, bars and rulers of characters."""
    form, n = rng.randrange(4), rng.randrange(3, 9)
    if form == 0:
        width = rng.randrange(6, 14)
        ruler = "+" + ("-" * width + "+") * n
        rows = [
            "|" + "|".join(rng.choice((*THINGS, "", ""))[:width].center(width) for _ in range(n)) + "|"
            for _ in range(6)
        ]
        return "\n".join(line for row in rows for line in (ruler, row)) + f"\n{ruler}\n\n"
    if form == 1:
        names = rng.sample(THINGS, rng.randrange(8, 20))
        return (
            "\n".join(
                "│   " * rng.randrange(n // 2 + 1) + f"├── {name}.{rng.choice(('py', 'c', 'md'))}" for name in names
            )
            + "\n\n"
        )
    if form == 2:
        return (
            "".join(f"{name:9} {'█' * rng.randrange(2, 40)} {rng.randrange(400)}\n" for name in NAMES[: 3 * n]) + "\n"
        )
    line = rng.choice(("~^", "/\\", "-=", "<>", "*-", "._")) * rng.randrange(5, 36)
    return f"{line}\n{rng.choice(THINGS).upper()}\n{line}\n{sentence(rng)}\n\n"


def _arguments(rng: random.Random) -> str:
    """Declarations whose arguments have the same type several times."""
    form = rng.choice(
        ("const at::Tensor &", "const unsigned char *", "double", "unsigned int", "std::string const &", "int64_t")
    )
    made = []
    for _ in range(rng.randrange(4, 10)):
        arguments = f",\n{' ' * rng.choice((4, 12, 30))}".join([form] * rng.randrange(2, 9))
        result = rng.choice(("void", "int", "Tensor"))
        made.append(
            f"{result} {rng.choice(VERBS)}_{rng.choice(THINGS)}_{rng.randrange(99)}({arguments});  // {sentence(rng)}\n"
        )
    return "".join(made)


def _svg(rng: random.Random) -> str:
    """Pictures of SVG: equal steps of a path, and elements that differ by their numbers only."""
    step = rng.choice(("h 1 v 1 h -1 z m 3 0", "v 3 c 0 .55 .45 1 1 1 h 1 z", "l 5 -5 l 5 5"))
    dots = "".join(
        f'  <circle cx="{10 + 20 * i}" cy="{rng.randrange(200)}" r="4" fill="#333"/>\n'
        for i in range(rng.randrange(4, 30))
    )
    path = " ".join([f"M {rng.randrange(90)} {rng.randrange(90)}", *[step] * rng.randrange(2, 6), "z"])
    return f'<svg viewBox="0 0 400 200">\n  <title>{sentence(rng)}</title>\n  <path d="{path}"/>\n{dots}</svg>\n'


def _html(rng: random.Random) -> str:
    """Tables and lists of HTML with equal or empty cells, and links under rising numbers."""
    n, name = rng.randrange(3, 10), rng.choice(THINGS)
    cell = rng.choice(("<td></td>", "<td>&nbsp;</td>", '<td class="no">-</td>', "<td>0</td>"))
    rows = "".join(
        f"<tr><th>{rng.choice(NAMES)}</th>{cell * rng.randrange(1, n)}<td>{rng.randrange(900)}</td></tr>\n"
        for _ in range(n)
    )
    links = "".join(f'<li><a href="#{name}{i}">{i}</a></li>\n' for i in range(1, rng.randrange(6, 40)))
    icons = '<span class="icon-bar"></span>\n' * rng.randrange(1, 4)
    return f"<h2>{name}</h2>\n<p>{sentence(rng)}</p>\n{icons}<table>\n{rows}</table>\n<ul>\n{links}</ul>\n"


def _numbered_names(rng: random.Random) -> str:
    """Names with numbers in them: code pages, versions, advisories, machines, lines of a report."""
    form, first, name = rng.randrange(7), rng.randrange(1, 300), rng.choice(THINGS)
    between = rng.choice((", ", "\n", '",\n    "'))
    numbers = range(first, first + rng.randrange(8, 60))
    names = [
        (
            f"windows-{1250 + i % 40}",
            f"[{i // 50}.{i // 7 % 7}.{i % 7}](#{i // 50}{i // 7 % 7}{i % 7})",
            f"CVE-2024-{10_000 + 37 * i}",
            f"{name}-{i:03}.example.org",
            f"<a name='L{i}'></a>",
            f"m{i % 9}a.{2 * i}xlarge",
            f"{name.upper()}_QUEUE_{i % 8}_{i}",
        )[form]
        for i in numbers
    ]
    return f"{sentence(rng)}\n\n{between.join(names)}\n\n{sentence(rng)}\n\n"


def _releases(rng: random.Random) -> str:
    """A change log of a package whose releases only take in other packages."""
    made, patch = f"# {rng.choice(THINGS)}\n\n", rng.randrange(5, 40)
    for number in range(patch, patch - 5, -1):
        line = f"- Updated dependencies [{rng.randbytes(4).hex()[:7]}]\n"
        made += f"## 1.{number % 4}.{number}\n\n### Patch Changes\n\n{line * rng.choice((1, 1, 2, 3))}"
        made += "".join(f"  - @{name.lower()}/{rng.choice(THINGS)}@1.0.{number}\n" for name in rng.sample(NAMES, 3))
        made += f"- {sentence(rng)}\n\n"
    return made


def _numbers(rng: random.Random) -> str:
    """Matrices and series of numbers, in which many are equal."""
    n, form = rng.randrange(4, 12), rng.choice(("{:.1f}", "{:d}", "{:.6e}", "{:4d}"))
    pool = [0, 0, 0, 0, 0, 1, rng.randrange(9)]
    rows = [[rng.choice(pool) for _ in range(n)] for _ in range(rng.randrange(5, 25))]
    shown = ["[" + ", ".join(form.format(value) for value in row) + "]" for row in rows]
    return f"{rng.choice(THINGS)} = np.array([\n    " + ",\n    ".join(shown) + f",\n])\n# {sentence(rng)}\n\n"


def _statements(rng: random.Random) -> str:
    """Statements of SQL, settings and lists of YAML that have one form."""
    name, form = rng.choice(THINGS), rng.randrange(3)
    rows = [
        (
            f"INSERT INTO {name} VALUES ({i}, '{rng.choice(NAMES)}', {rng.randrange(9000)}, NULL, NULL, NULL);",
            f"  - name: {rng.choice(NAMES).lower()}-{i}\n    enabled: true\n    retries: 3\n    timeout: 30",
            f"{name}.{rng.choice(VERBS)}.{i} = {rng.choice(('true', 'false', '30', 'auto'))}",
        )[form]
        for i in range(rng.randrange(8, 40))
    ]
    return f"# {sentence(rng)}\n" + "\n".join(rows) + "\n\n"


def _traces(rng: random.Random) -> str:
    """Traces of an algorithm, step by step, as an answer works them out."""
    form, values = rng.randrange(3), [rng.randrange(100) for _ in range(rng.randrange(5, 9))]
    made = [f"Let us sort {values}." if form == 0 else f"We begin with {values[0]} and {values[1]}."]
    if form == 0:
        for end in range(len(values) - 1, 0, -1):
            for i in range(end):
                swap = values[i] > values[i + 1]
                made.append(f"Compare {values[i]} and {values[i + 1]}: {'swap' if swap else 'no swap'}.")
                if swap:
                    values[i : i + 2] = values[i + 1], values[i]
            made.append(f"Now the list is {values}.")
    elif form == 1:
        a, b = 900 + rng.randrange(900), 90 + rng.randrange(90)
        while b:
            made.append(f"{a} = {a // b} * {b} + {a % b}")
            a, b = b, a % b
        made.append(f"So the greatest common divisor is {a}.")
    else:
        x = rng.random()
        for step in range(1, rng.randrange(8, 30)):
            x = 3.9 * x * (1 - x)
            made.append(f"Iteration {step}: x = {x:.6f}, change = {x / step:.6f}")
    return "\n".join(made) + "\n\n"


def _rounds(rng: random.Random) -> str:
    """A song in which a line is sung twice or three times, and verses that begin alike."""
    thing, name = rng.choice(THINGS), rng.choice(NAMES)
    line = f"Bring me the {rng.choice(ADJECTIVES)} {thing}, {name}"
    verses = [f"{line},\n" * 2 + f"{sentence(rng)}\n{line}!\n" for _ in range(2)]
    cries = f"{rng.choice(('Hey', 'Oh', 'La'))}, {rng.choice(('ho', 'hey', 'la'))}! " * rng.randrange(2, 5)
    alike = [f"And the {rng.choice(ADJECTIVES)} {rng.choice(THINGS)} {rng.choice(VERBS)} no more," for _ in range(6)]
    return "\n".join([verses[0], cries + "\n", *alike, "", verses[1], sentence(rng), ""]) + "\n"


def _other_scripts(rng: random.Random) -> str:
    """Chapters, months and prices that count up in Chinese, Japanese and Russian."""
    forms = (
        ("第{}章　概要\n", "本章介绍系统的第{}个部分，共{}页。\n"),
        ("{}月の売上は{}件でした。\n", "・項目{}：数量{}\n"),
        ("Глава {}\n", "Раздел {}, страница {}\n"),
        ("{}. Вопрос: сколько будет {} плюс три?\n", "Ответ: {}\n"),
    )
    opening, line = rng.choice(forms)
    made = ""
    for number in range(1, rng.randrange(5, 13)):
        made += opening.format(number, rng.randrange(900))
        made += "".join(line.format(at, rng.randrange(900)) for at in range(1, rng.randrange(2, 6)))
    return made + "\n"


MADE: dict[str, Callable[[random.Random], str]] = {
    "equal cells": _equal_cells,
    "arrays": _arrays,
    "hex dumps": _hex_dump,
    "base64": _base64,
    "drawings": _drawings,
    "arguments": _arguments,
    "SVG": _svg,
    "HTML tables": _html,
    "numbered names": _numbered_names,
    "releases": _releases,
    "matrices": _numbers,
    "statements": _statements,
    "traces": _traces,
    "rounds": _rounds,
    "chapters": _other_scripts,
}


if __name__ == "__main__":
    show(suite())
