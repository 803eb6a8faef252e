"""Facts taken out of sentences as JSON of a schema, on SmolLM2: valid, keys intact and right, under the penalties.

    python bench/extraction.py [--model smollm2] [--tasks 20] [--records 1] [--penalty lz_penalty=0.15] [--json]

Each task is a sentence about a person with four facts, asked for as JSON; with --records N, N sentences in one text,
asked for as a list of N records, each of which counts as a task. `valid`: texts that are JSON and meet the schema, by
the package jsonschema; `keys`: records with the keys of the schema in its order; `facts`: facts that are right, of four
a record; `tokens`: new tokens a text (their sum with --json). Arms: the schema as a grammar without a penalty, with the
default penalty and with one penalty alone, LZ 0.15 unless --penalty says otherwise; and the default penalty without a
grammar. With --records above 1 the one penalty is there with `structure` "off", "scale" and "free", and every text has
the grammar.
"""

import argparse
import json
from dataclasses import replace
from importlib import import_module
from typing import Any, get_args

from lzsampler import Grammar, Model, Params, generate
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
    try:
        return json.loads(text)
    except ValueError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("--penalty", default="lz_penalty=0.15", metavar="FIELD=NUMBER")
    options = parser.parse_args()
    n = options.records
    validator = import_module("jsonschema").Draft202012Validator(schema_of(n))
    rows = []
    if not options.json:
        print(f"{'':30}{'valid':>7}{'keys':>7}{'facts':>9}{'tokens':>8}   of {options.tasks} texts")
    with Model(find_model(options.model), n_threads=1) as model:
        grammar = Grammar.json_schema(schema_of(n), model)
        default, (field, strength) = model.params(temperature=0.0), options.penalty.split("=")
        single = changed(Params(temperature=0.0), {field: float(strength)})
        arms: dict[str, tuple[Params, Grammar | None]] = {
            "schema, no penalty": (Params(temperature=0.0), grammar),
            "schema, default penalty": (default, grammar),
        }
        if n == 1:
            arms |= {f"schema, {options.penalty}": (single, grammar), "no schema, default penalty": (default, None)}
        else:
            for name in get_args(Structure):
                arms[f"{options.penalty}, {name}"] = replace(single, structure=name), grammar
        for name, (params, constraint) in arms.items():
            counts = dict.fromkeys(("valid", "keys", "facts", "tokens"), 0)
            for i in range(options.tasks):
                messages, facts = task(i, n)
                made = generate(model, messages, params, n_predict=N_PREDICT * n, grammar=constraint)
                value = read(made.text)
                found = [value] if n == 1 else value if isinstance(value, list) else []
                counts["valid"] += validator.is_valid(value)
                counts["tokens"] += made.completion_tokens
                for record, right in zip(found, facts, strict=False):
                    of_record = record if isinstance(record, dict) else {}
                    counts["keys"] += list(of_record) == list(right)
                    counts["facts"] += sum(of_record.get(key) == fact for key, fact in right.items())
            rows.append({"arm": name, **counts})
            if not options.json:
                of = f"{counts['facts']}/{4 * n * options.tasks}"
                print(
                    f"{name:30}{counts['valid']:7}{counts['keys']:7}{of:>9}{counts['tokens'] / options.tasks:8.1f}",
                    flush=True,
                )
    if options.json:
        print(json.dumps({"tasks": options.tasks, "records": n, "rows": rows}))


if __name__ == "__main__":
    main()
