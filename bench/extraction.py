"""Facts taken out of sentences as JSON of a schema, on SmolLM2: valid, keys intact and right, under the penalties.

    python bench/extraction.py [--model smollm2] [--tasks 20] [--json]

Each task is a sentence about a person with four facts, asked for as JSON. `valid`: texts that are JSON and meet the
schema, by the package jsonschema; `keys`: those with the keys of the schema in its order; `facts`: facts that are
right, of four a task; `tokens`: new tokens a text (their sum with
--json). Arms: the schema as a grammar without a penalty, with the default
penalty and with the LZ penalty alone at 0.15; and the default penalty without a grammar.
"""

import argparse
import json
from importlib import import_module
from typing import Any

from lzsampler import Grammar, Model, Params, generate
from lzsampler.models import find_model

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
CITIES = ["Oslo", "Lisbon", "Vienna", "Dublin"]
JOBS = SCHEMA["properties"]["job"]["enum"]  # type: ignore[index]
N_PREDICT = 120


def task(i: int) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """Return the messages and the facts of task number i."""
    facts = {"name": NAMES[i % 5], "age": 21 + 7 * i % 60, "city": CITIES[i % 4], "job": JOBS[i * 3 % 5]}
    text = f"{facts['name']} is {facts['age']} years old, lives in {facts['city']} and works as a {facts['job']}."
    question = f'{text}\nWrite these facts as JSON with the keys "name", "age", "city" and "job".'
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
    options = parser.parse_args()
    validator = import_module("jsonschema").Draft202012Validator(SCHEMA)
    rows = []
    if not options.json:
        print(f"{'':28}{'valid':>7}{'keys':>7}{'facts':>9}{'tokens':>8}   of {options.tasks} texts")
    with Model(find_model(options.model), n_threads=1) as model:
        grammar = Grammar.json_schema(SCHEMA, model)
        arms: dict[str, tuple[Params, Grammar | None]] = {
            "schema, no penalty": (Params(temperature=0.0), grammar),
            "schema, default penalty": (model.params(temperature=0.0), grammar),
            "schema, LZ 0.15": (Params(temperature=0.0, lz_penalty=0.15), grammar),
            "no schema, default penalty": (model.params(temperature=0.0), None),
        }
        for name, (params, constraint) in arms.items():
            counts = dict.fromkeys(("valid", "keys", "facts", "tokens"), 0)
            for i in range(options.tasks):
                messages, facts = task(i)
                made = generate(model, messages, params, n_predict=N_PREDICT, grammar=constraint)
                value = read(made.text)
                found = value if isinstance(value, dict) else {}
                counts["valid"] += validator.is_valid(value)
                counts["keys"] += list(found) == list(facts)
                counts["facts"] += sum(found.get(key) == fact for key, fact in facts.items())
                counts["tokens"] += made.completion_tokens
            rows.append({"arm": name, **counts})
            if not options.json:
                of = f"{counts['facts']}/{4 * options.tasks}"
                print(
                    f"{name:28}{counts['valid']:7}{counts['keys']:7}{of:>9}{counts['tokens'] / options.tasks:8.1f}",
                    flush=True,
                )
    if options.json:
        print(json.dumps({"tasks": options.tasks, "rows": rows}))


if __name__ == "__main__":
    main()
