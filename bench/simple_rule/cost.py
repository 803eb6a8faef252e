"""What each rule costs on texts that are right, in nats a token, and how many right values it changes.

    python bench/everyday/right_texts.py texts; python bench/everyday/right_lists.py texts/lists
    python bench/simple_rule/cost.py texts OUT.jsonl

The model reads each text of texts/KIND/*.txt (texts/lists/KIND/*.txt), at most 500 (1,000) tokens of it. From
token 64 on a token costs its extra negative log-likelihood. `lost`: the model's first choice was right, and the rule
makes it another one.

Then come arrays of equal values, which answer a question. `wrong`: values for which the rule prefers the other value,
although the text so far was right; `first`: the number of the first one.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rules import RULES, Classes, Costs, Ids, State

from lzsampler import Sampler
from lzsampler.evaluation.cost_scores import Given, edited
from lzsampler.llama.model import Model
from lzsampler.models import find_model
from lzsampler.params import Params

SKIP = 64
VALUES = [  # the question, the value, the other value, and what stands around all values and between them
    (
        "List the results of {} light switches. All of them are off. Answer false for each.",
        "false",
        "true",
        "[",
        ", ",
        "]",
    ),
    (
        "List the results of {} light switches. All of them are on. Answer true for each.",
        "true",
        "false",
        "[",
        ", ",
        "]",
    ),
    (
        "Give the number of errors of {} runs as a JSON array. There was no error: write 0 for each.",
        "0",
        "1",
        "[",
        ", ",
        "]",
    ),
    (
        'Give the status of {} machines as a JSON array of "ok" or "error". All are ok.',
        "ok",
        "error",
        '["',
        '", "',
        '"]',
    ),
]
COUNTS = (30, 36, 40, 100, 200)


class Today:
    """What the tokens cost by default: `Sampler` with the settings that `Model.params` gives."""

    def __init__(self, model: Model) -> None:
        self._sampler = Sampler(model.n_vocab, Params.recommended(model, temperature=0.0))

    def accept(self, token: int) -> None:
        """Take a token into the text."""
        self._sampler.accept(token)

    def costs(self) -> tuple[Ids, Costs]:
        """Return the tokens that cost something, and what, in nats."""
        tokens, _, bias = self._sampler.edits()
        return tokens.astype(np.int64), -bias.astype(float)


def main() -> None:
    """Write a row for each text and rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "texts", type=Path, metavar="TEXTS", help="folder of right_texts.py, with right_lists.py in lists"
    )
    parser.add_argument("out", type=Path, metavar="OUT.jsonl")
    parser.add_argument("-m", "--model", default="smollm2", help="name or file (default: smollm2)")
    parser.add_argument("--each", type=int, default=5, help="texts of each kind but lists (default: 5)")
    parser.add_argument("--rules", nargs="+", default=["today", *RULES], metavar="NAME", help="(default: all)")
    arguments = parser.parse_args()
    with Model(find_model(arguments.model), n_ctx=2048, n_batch=256, n_threads=1) as model:
        classes = Classes.of(model.piece(token) for token in range(model.n_vocab))

        def states() -> dict[str, Any]:
            made: dict[str, Any] = {
                name: State(rule, classes) for name, rule in RULES.items() if name in arguments.rules
            }
            return {**made, "today": Today(model)} if "today" in arguments.rules else made

        with arguments.out.open("w", encoding="utf-8") as file:
            for row in chain(_texts(model, arguments.texts, arguments.each, states), _values(model, states)):
                file.write(json.dumps(row) + "\n")


def _texts(model: Model, folder: Path, each: int, states: Any) -> Iterator[dict[str, Any]]:
    for kind in sorted(path for path in folder.iterdir() if path.name != "lists"):
        files = sorted(kind.glob("*.txt"))
        for path in files[:: max(1, len(files) // each)]:
            yield from _text(model, "right", path, 500, states())
    for path in sorted((folder / "lists").glob("*/*.txt")):
        yield from _text(model, "lists", path, 1000, states())


def _text(model: Model, group: str, path: Path, most: int, states: dict[str, Any]) -> Iterator[dict[str, Any]]:
    ids = model.tokenize(path.read_text(encoding="utf-8"))[:most]
    rows, gold = _rows(model, ids)[:-1], np.array(ids[1:])
    given = Given.of(rows, gold)
    for name, state in states.items():
        edits = []
        for token in ids[:-1]:
            state.accept(token)
            tokens, costs = state.costs()
            edits.append((tokens.astype(np.int32), np.ones(tokens.size, np.float32), -costs.astype(np.float32)))
        nats, first = edited(given, edits)
        extra, lost = (nats - given.nats)[SKIP - 1 :], (given.first & ~first)[SKIP - 1 :]
        yield {"group": group, "kind": path.parent.name, "file": path.name, "rule": name, "extra": float(extra.sum()),
               "tokens": extra.size, "lost": int(lost.sum())}  # fmt: skip


def _values(model: Model, states: Any) -> Iterator[dict[str, Any]]:
    for question, value, other, start, between, end in VALUES:
        for count in COUNTS:
            prompt, _ = model.asked([{"role": "user", "content": question.format(count)}])
            ids, at = _places(model, value, start, between, end, count)
            instead, places = _places(model, other, start, between, end, count)
            others = {n: instead[place] for n, place in zip(at, places, strict=True)}
            rows = _rows(model, [*prompt, *ids])[len(prompt) - 1 :]
            for name, state in states().items():
                wrong = []
                for n, token in enumerate(ids):
                    if n in others:
                        cost = dict(zip(*(values.tolist() for values in state.costs()), strict=True))
                        against = others[n]
                        if rows[n][against] - cost.get(against, 0.0) > rows[n][token] - cost.get(token, 0.0):
                            wrong.append(at.index(n) + 1)
                    state.accept(token)
                yield {"group": "values", "kind": value, "count": count, "rule": name, "wrong": len(wrong),
                       "first": min(wrong, default=None)}  # fmt: skip


def _places(model: Model, value: str, start: str, between: str, end: str, n: int) -> tuple[list[int], list[int]]:
    """Return the tokens of an array of n equal values, and the places of the values' first tokens."""
    text = start + between.join([value] * n) + end
    ids = model.tokenize(text)
    places, seen = [], ""
    ends = [len(start + between.join([value] * i)) + (len(between) if i else 0) for i in range(n)]
    for n_before, token in enumerate(ids):
        piece = model.piece(token).decode()
        if ends and len(seen) <= ends[0] < len(seen) + len(piece) and piece.strip(' ,"[]'):
            places.append(n_before)
            ends.pop(0)
        seen += piece
    return ids, places


def _rows(model: Model, ids: Sequence[int]) -> npt.NDArray[np.float32]:
    """Return the logits after each of the tokens (n, n_vocab)."""
    model.keep(0)
    return np.concatenate([np.array(model.decode_rows(ids[at : at + 256])) for at in range(0, len(ids), 256)])


if __name__ == "__main__":
    main()
