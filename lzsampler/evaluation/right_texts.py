"""Named sets of reference texts: some come with the package, the others are generated from a fixed seed.

Generated texts repeat themselves legitimately. Except in the set "equal", their words and numbers are random, so no
text is predictable and none is a loop. The shipped texts are passages of public-domain books, pieces of npm packages
under CC0 1.0, and lzsampler's own code; bench/everyday/right_sets.py wrote them to right_texts.jsonl. The texts of a
set never change, so figures of different models and versions can be compared.
"""

import json
import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

SHIPPED = Path(__file__).with_suffix(".jsonl")
_SEED = 20131
_EACH = 2  # number of generated texts of each kind
_LIBRARIES = (
    "zlib curl openssl pcre sqlite ssh lua jpeg png tiff xml yaml json mbedtls gnutls ncurses readline bzip2 lzma zstd "
    "brotli nghttp2 cares idn psl krb5 ldap rtmp gsasl boost eigen gtest fmt spdlog absl protobuf grpc thrift avro "
    "flatbuffers capnp msgpack cbor snappy lz4"
)
_TOWNS = "Ashford Barnsley Colchester Dover Epsom Farnham Guildford Hastings Ipswich Kendal Lewes Malvern"
_SURNAMES = "Abbott Baker Carter Dixon Ellis Foster Grant Hughes Irving Jarvis Knight Lawson Mercer Norris Osborn Perry"
_FIRST_NAMES = "Anna Ben Clara David Emma Frank Grace Henry Ida James Kate Leo Mary Noah Olive Peter"
_GOODS = "bread butter cheese eggs flour honey jam milk oats onions pears pepper rice salt soap sugar tea tomatoes"
_COLOURS = "black blue brown green grey red white yellow"
_EQUAL = (  # (value, number of copies, text before the values, text between values, text after them, question)
    ("false", 40, "[", ", ", "]", "List the results of {} light switches. All of them are off. Answer false for each."),
    ("true", 36, "[", ", ", "]", "List the results of {} light switches. All of them are on. Answer true for each."),
    ("ok", 30, '["', '", "', '"]', 'Give the status of {} machines as a JSON array of "ok" or "error". All are ok.'),
    ("0", 40, "[", ", ", "]",
     "Give the number of errors of {} runs as a JSON array. There was no error: write 0 for each."),
)  # fmt: skip
_MANY = (100, 200, 400)  # numbers of copies in the longer arrays


class SetText(NamedTuple):
    """A text of a set. ``asked``: the question that the text answers; "" if the text answers none."""

    kind: str
    text: str
    asked: str = ""


def set_texts(name: str) -> list[SetText]:
    """Return the texts of a set, one of `SETS`."""
    return list(SETS[name]())


@cache
def _shipped() -> list[dict[str, str]]:
    return [json.loads(line) for line in SHIPPED.read_text(encoding="utf-8").splitlines()]


def _from_file(name: str) -> Iterator[SetText]:
    for row in _shipped():
        if row["set"] == name:
            yield SetText(row["kind"], row["text"])


# ---- generated ----


def _lists() -> Iterator[SetText]:
    """Yield lists that use only a few words. On such lists a penalty for frequent words costs the most."""
    rng = random.Random(_SEED)
    for _ in range(_EACH):
        names = _LIBRARIES.split()
        rng.shuffle(names)
        yield SetText("flags", "".join(f"{name}: {_drawn(rng, 'true false', 5)}\n" for name in names))
        rows = ",\n".join(f"  [{_drawn(rng, 'true false', 8)}]" for _ in range(30))
        yield SetText("array", f"[\n{rows}\n]\n")
        head = "| name | Linux | macOS | Windows | BSD | WASM |\n|---|---|---|---|---|---|\n"
        yield SetText("table", head + "".join(f"| {name} | {_drawn(rng, 'yes no', 5, ' | ')} |\n" for name in names))
        yield SetText("questions", " ".join(f"Does {name} build here? {_drawn(rng, 'Yes No', 1)}." for name in names))
        yield SetText("answers", "".join(f"{n}. {_drawn(rng, 'True False', 1)}\n" for n in range(1, 61)))
        yield SetText("moves", _drawn(rng, "left right up down", 200) + "\n")
        yield SetText("bases", _drawn(rng, "A C G T", 200, " ") + "\n")
        yield SetText("words", _drawn(rng, "yes no", 200, " ") + "\n")


def _tables() -> Iterator[SetText]:
    """Yield tables with names, numbers and states, as Markdown, CSV, HTML and columns of spaces."""
    rng = random.Random(_SEED)
    for _ in range(_EACH):
        head = "| ticket | owner | state | hours |\n|---|---|---|---|\n"
        tickets = (f"| {1000 + n} | {_name(rng)} | {_state(rng)} | {rng.randint(1, 40)} |\n" for n in range(40))
        yield SetText("markdown", head + "".join(tickets))
        days = (
            f"2026-03-{day:02},{town},{rng.randint(-4, 5)},{rng.randint(6, 17)},{rng.randint(0, 90) / 10}\n"
            for day in range(1, 11)
            for town in _TOWNS.split()[:8]
        )
        yield SetText("csv", "date,station,min,max,rain\n" + "".join(days))
        rows = (
            f"  <tr><td>{good}</td><td>{_price(rng)}</td><td>{_drawn(rng, 'yes no', 1)}</td></tr>\n"
            for good in _GOODS.split()
        )
        yield SetText("html", f"<table>\n{''.join(rows)}</table>\n")
        places = _TOWNS.split()
        rng.shuffle(places)
        league = (f"{town:<12}{''.join(f'{rng.randint(0, 30):>5}' for _ in range(6))}\n" for town in places)
        yield SetText("columns", f"{'team':<12}    P    W    D    L    F    A\n" + "".join(league))


def _rows() -> Iterator[SetText]:
    """Yield texts of many rows, such as OCR reads from receipts, statements, timetables and indexes."""
    rng = random.Random(_SEED)
    for _ in range(_EACH):
        goods = (f"{rng.randint(1, 6)} x {_drawn(rng, _GOODS, 1):<22}{_price(rng):>8} B\n" for _ in range(40))
        yield SetText("receipt", "".join(goods))
        paid = (
            f"{1 + n // 3:02}/05  {_drawn(rng, 'CARD CASH DEBIT', 1)} PAYMENT  "
            f"{_drawn(rng, _SURNAMES, 1).upper()} & SONS  -{_price(rng)}  {_price(rng)}\n"
            for n in range(40)
        )
        yield SetText("statement", "".join(paid))
        stops = (
            f"{town:<12}" + " ".join(f"{hour:02}:{rng.randint(0, 59):02}" for hour in range(6, 16)) + "\n"
            for town in _TOWNS.split()
        )
        yield SetText("timetable", "".join(stops))
        entries = (
            f"{surname}, {first[0]}. {'.' * rng.randint(20, 40)} {rng.randint(1, 400)}\n"
            for surname in _SURNAMES.split()
            for first in rng.sample(_FIRST_NAMES.split(), 3)
        )
        yield SetText("index", "".join(entries))


def _forms() -> Iterator[SetText]:
    """Yield forms and records, which repeat the same fields with different values."""
    rng = random.Random(_SEED)
    for _ in range(_EACH):
        boxes = (
            f"Name: {_name(rng)}\nDate of birth: {_day(rng)}\nSmoker: {_ticked(rng)}\nAllergies: {_ticked(rng)}\n"
            f"Signature: ____________________\n\n"
            for _ in range(16)
        )
        yield SetText("boxes", "".join(boxes))
        records = (
            f"- name: {good}\n  colour: {_drawn(rng, _COLOURS, 1)}\n  price: {_price(rng)}\n"
            f"  in_stock: {_drawn(rng, 'true false', 1)}\n"
            for good in _GOODS.split()
        )
        yield SetText("yaml", "".join(records))
        people = (
            json.dumps({"id": 100 + n, "name": _name(rng), "born": _day(rng), "active": rng.random() < 0.5}) + "\n"
            for n in range(30)
        )
        yield SetText("json", "".join(people))
        orders = (
            f"INSERT INTO orders (id, town, goods, price) VALUES ({500 + n}, '{_drawn(rng, _TOWNS, 1)}', "
            f"'{_drawn(rng, _GOODS, 1)}', {_price(rng)});\n"
            for n in range(30)
        )
        yield SetText("sql", "".join(orders))


def _equal() -> Iterator[SetText]:
    """Yield arrays of equal values. The question of each array asks for exactly this number of values."""
    for value, few, start, between, end, question in _EQUAL:
        for count in (few, *_MANY):
            yield SetText(value, start + between.join([value] * count) + end, question.format(count))


def _drawn(rng: random.Random, words: str, n: int, between: str = ", ") -> str:
    return between.join(rng.choices(words.split(), k=n))


def _name(rng: random.Random) -> str:
    return f"{_drawn(rng, _FIRST_NAMES, 1)} {_drawn(rng, _SURNAMES, 1)}"


def _state(rng: random.Random) -> str:
    return rng.choice(["open", "closed", "in progress"])


def _price(rng: random.Random) -> str:
    return f"{rng.randint(0, 60)}.{rng.randint(0, 99):02}"


def _day(rng: random.Random) -> str:
    return f"{rng.randint(1940, 2005)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _ticked(rng: random.Random) -> str:
    return rng.choice(["[x] yes [ ] no", "[ ] yes [x] no"])


ALL = "all"  # the name that means every set
SETS: dict[str, Callable[[], Iterator[SetText]]] = {
    **{name: partial(_from_file, name) for name in ("prose", "code", "json", "markdown")},
    "lists": _lists,
    "tables": _tables,
    "rows": _rows,
    "forms": _forms,
    "equal": _equal,
}
