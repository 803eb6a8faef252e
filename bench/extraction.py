"""Facts taken out of sentences as JSON of a schema, on SmolLM2: valid, keys intact and right, and tokens a second.

    python bench/extraction.py [--model smollm2] [--tasks 20] [--records 1] [--penalty lz_penalty=0.15] [--json]

Each task is a sentence about a person with four facts, asked for as JSON; with --records N, N sentences in one text,
asked for as a list of N records. Columns, over all texts of an arm:

- `valid`: texts that are JSON, as a whole, and meet the schema, by the package jsonschema
- `keys`: records with the keys of the schema in its order; `facts`: facts that are right, of four a record; `alike`:
  those that are but for capital letters and the quotes of a number, since a free text is not told the schema. These
  three are read from the first JSON value in the text, so that a free text may say something around it.
- `better`, `worse`: texts with more and with fewer facts that are alike than that of the first arm
- `blanks`: the longest stretch of white space; `cut`: texts that had not ended after 120 tokens a record
- `tokens`: new tokens a text; `forced`: how many of them were not sampled, percent; `tok/s`: new tokens in a second of
  computing, and `ratio` beside the same arm without fast-forward, where it was taken

Arms: free text without a penalty, the schema as a grammar without one, with each `tokenization`, with and without
fast-forward, with the model's default penalty (also free), and with one penalty alone, LZ 0.15 unless --penalty says
otherwise. With --records above 1 all have the grammar, and the one penalty is there with `structure` "off", "scale" and
"free". The arms take turns: the prompt is decoded once for each task, and the first arm is another one each time. Times
are CPU time of the process, without the prompt.
"""

import argparse
import json
import re
from collections import Counter
from dataclasses import replace
from importlib import import_module
from time import process_time
from typing import Any, NamedTuple, get_args

from lzsampler import Grammar, Model, Params, generate
from lzsampler.constraint.grammar import Tokenization
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generation import Generation
from lzsampler.models import find_model
from lzsampler.params import Structure, changed

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"type": "string", "minLength": 1, "maxLength": 30},
        "job": {"enum": ["baker", "teacher", "sailor", "painter", "doctor"]},
    },
    "required": ["name", "age", "city", "job"],
}
NAMES = ["Anna Berg", "Tom Hall", "Lucia Moreno", "Ivan Petrov", "Mary Stone"]
CITIES = ["Oslo", "Lisbon", "Vienna", "Dublin", "Prague"]
JOBS = SCHEMA["properties"]["job"]["enum"]  # type: ignore[index]
N_PREDICT = 120
SLOW = ", every token sampled"  # the end of the name of an arm without fast-forward
COLUMNS = ("valid", "keys", "facts", "alike", "better", "worse", "blanks", "cut", "tokens", "forced", "tok/s", "ratio")


class Arm(NamedTuple):
    params: Params
    grammar: Grammar | None
    fast_forward: bool = True


def schema_of(n: int) -> dict[str, Any]:
    """Return the schema of a text of n records."""
    return SCHEMA if n == 1 else {"type": "array", "items": SCHEMA, "minItems": n, "maxItems": n}


def facts_of(i: int) -> dict[str, Any]:
    """Return the facts of record number i; those of five in a row have nothing in common."""
    city = CITIES[(2 * i + i // 5) % 5]
    return {"name": NAMES[i % 5], "age": 21 + 7 * i % 60, "city": city, "job": JOBS[(3 * i + i // 25) % 5]}


def sentence(facts: dict[str, Any]) -> str:
    return f"{facts['name']} is {facts['age']} years old, lives in {facts['city']} and works as a {facts['job']}."


def task(i: int, n: int) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Return the messages and the facts of the n records of text number i."""
    facts = [facts_of(i * n + k) for k in range(n)]
    text = "\n".join(map(sentence, facts))
    asked = "JSON with the keys" if n == 1 else f"a JSON list of {n} objects with the keys"
    question = f'{text}\nWrite these facts as {asked} "name", "age", "city" and "job".'
    return [{"role": "user", "content": question}], facts


def read(text: str) -> Any:
    """Return the JSON value that a text is, or None."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def first_value(text: str) -> Any:
    """Return the first object or list of JSON in a text, or None."""
    for begin in re.finditer(r"[{\[]", text):
        try:
            return json.JSONDecoder().raw_decode(text, begin.start())[0]
        except ValueError:
            continue
    return None


def plain(value: Any) -> str:
    return str(value).strip().casefold()


def arms_of(model: Model, n: int, penalty: str) -> dict[str, Arm]:
    def schema(tokenization: Tokenization = "any") -> Grammar:
        return Grammar.json_schema(schema_of(n), model, tokenization=tokenization)

    grammar, none, default = schema(), Params(temperature=0.0), Params.recommended(model, temperature=0.0)
    field, strength = penalty.split("=")
    single = changed(none, {field: float(strength)})
    if n > 1:
        arms = {"schema, no penalty": Arm(none, grammar), "schema, default penalty": Arm(default, grammar)}
        for structure in get_args(Structure):
            arms[f"{penalty}, {structure}"] = Arm(replace(single, structure=structure), grammar)
        return arms
    arms = {"free text, no penalty": Arm(none, None), "free text, default penalty": Arm(default, None)}
    for tokenization in get_args(Tokenization):
        own = schema(tokenization)
        arms[f"schema, {tokenization}"] = Arm(none, own)
        arms[f"schema, {tokenization}{SLOW}"] = Arm(none, own, fast_forward=False)
    arms["schema, default penalty"] = Arm(default, grammar)
    arms[f"schema, {penalty}"] = Arm(single, grammar)
    return arms


def judged(made: Generation, facts: list[dict[str, Any]], validator: Any) -> Counter[str]:
    """Return the counts of a text."""
    counts = Counter(valid=int(validator.is_valid(read(made.text))), cut=int(made.finish_reason == "length"))
    found = first_value(made.text)
    for record, right in zip(found if isinstance(found, list) else [found], facts, strict=False):
        of_record = record if isinstance(record, dict) else {}
        counts["keys"] += list(of_record) == list(right)
        counts["facts"] += sum(of_record.get(key) == fact for key, fact in right.items())
        counts["alike"] += sum(plain(of_record.get(key)) == plain(fact) for key, fact in right.items())
    return counts + Counter(tokens=made.completion_tokens, forced=made.forced)


def measured(model: Model, arms: dict[str, Arm], n_tasks: int, n: int) -> list[dict[str, Any]]:
    """Return a row for each arm, its times with it."""
    validator = import_module("jsonschema").Draft202012Validator(schema_of(n))
    names = list(arms)
    sums: dict[str, Counter[str]] = {name: Counter() for name in names}
    seconds, blanks = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    for i in range(n_tasks):
        messages, facts = task(i, n)
        generate(model, messages, GenerationConfig(Params(), max_tokens=0))  # the prompt, which all of them continue
        right = {}
        for name in (names[i % len(names) :] + names)[: len(names)]:
            params, grammar, fast_forward = arms[name]
            start = process_time()
            made = generate(
                model,
                messages,
                GenerationConfig(params, max_tokens=N_PREDICT * n, grammar=grammar, fast_forward=fast_forward),
                reuse_context=True,
            )
            seconds[name] += process_time() - start
            counts = judged(made, facts, validator)
            right[name] = counts["alike"]
            sums[name] += counts
            blanks[name] = max([blanks[name], *map(len, re.findall(r"\s+", made.text))])
        for name in names:
            sums[name]["better"] += right[name] > right[names[0]]
            sums[name]["worse"] += right[name] < right[names[0]]
    speeds = {name: sums[name]["tokens"] / seconds[name] for name in names}
    rows = []
    for name in names:
        row: dict[str, Any] = {
            "arm": name,
            **{column: sums[name][column] for column in COLUMNS},
            "blanks": blanks[name],
        }
        row["forced"] = 100 * row["forced"] / row["tokens"]
        row["tok/s"], slow = speeds[name], speeds.get(name + SLOW)
        row["ratio"] = None if slow is None else speeds[name] / slow
        rows.append(row)
    return rows


def table(rows: list[dict[str, Any]], n_tasks: int, n: int) -> str:
    width = max(len(row["arm"]) for row in rows)
    lines = [" " * width + "".join(f"{column:>9}" for column in COLUMNS) + f"   of {n_tasks} texts"]
    for row in rows:
        shown = row | {"facts": f"{row['facts']}/{4 * n * n_tasks}", "tokens": f"{row['tokens'] / n_tasks:.1f}"}
        shown |= {"forced": f"{row['forced']:.1f}", "tok/s": f"{row['tok/s']:.1f}"}
        shown["ratio"] = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        lines.append(f"{row['arm']:{width}}" + "".join(f"{shown[column]:>9}" for column in COLUMNS))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("--penalty", default="lz_penalty=0.15", metavar="FIELD=NUMBER")
    options = parser.parse_args()
    n_tasks, n = options.tasks, options.records
    with Model(find_model(options.model), n_threads=1) as model:
        rows = measured(model, arms_of(model, n, options.penalty), n_tasks, n)
    print(json.dumps({"tasks": n_tasks, "records": n, "rows": rows}) if options.json else table(rows, n_tasks, n))


if __name__ == "__main__":
    main()
