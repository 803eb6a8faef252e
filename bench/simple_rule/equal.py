"""How many equal values stay right under the product's own grammar, with no penalty and with each preset.

    python bench/simple_rule/equal.py [-m MODEL]

A question asks for an array of equal values, and a JSON schema fixes their number. A cell has the number of right
values, and that of the first wrong one.
"""

import argparse
import json

from lzsampler import Grammar, Model, generate
from lzsampler.decoding.config import GenerationConfig
from lzsampler.models import find_model
from lzsampler.params import PRESETS, Params

OK = {"enum": ["ok", "error"]}
ARRAYS = [  # the question, the schema of a value, the value, and the least number of them
    (
        "List the results of {} light switches. All of them are off. Answer false for each.",
        {"type": "boolean"},
        False,
        40,
    ),
    ("List the results of {} light switches. All of them are on. Answer true for each.", {"type": "boolean"}, True, 36),
    ('Give the status of {} machines as a JSON array of "ok" or "error". All are ok.', OK, "ok", 30),
    (
        "Give the number of errors of {} runs as a JSON array. There was no error: write 0 for each.",
        {"type": "integer", "minimum": 0, "maximum": 9},
        0,
        40,
    ),
]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="smollm2", help="name or file (default: smollm2)")
    with Model(find_model(parser.parse_args().model), n_ctx=2048, n_threads=1) as model:
        settings = {"none": Params.recommended(model, temperature=0.0, lz_penalty=0.0)}
        settings |= {name: Params.recommended(model, temperature=0.0, **PRESETS[name]) for name in PRESETS}
        print(f"| values | {' | '.join(settings)} |\n|{'---|' * (len(settings) + 1)}")
        for question, item, value, least in ARRAYS:
            for n in (least, 100, 200, 400):
                schema = {"type": "array", "items": item, "minItems": n, "maxItems": n}
                grammar = Grammar.json_schema(schema, model.token_bytes)
                asked = [{"role": "user", "content": question.format(n)}]
                cells = []
                for params in settings.values():
                    text = generate(model, asked, GenerationConfig(params, max_tokens=1900, grammar=grammar)).text
                    right = [each == value and type(each) is type(value) for each in json.loads(text)]
                    cells.append(f"{sum(right)} ({right.index(False) + 1 if False in right else '–'})")
                print(f"| {n} {json.dumps(value)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
