"""costs.jsonl: the costs of each text of `--texts`, one text per line, in the folder of an evaluation.

Importing this module does not load llama_cpp, so results can be read without it.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..util.files import replacing
from .cost_texts import BadFile, RightText
from .costs import SKIP, Costs, TextCosts, charges_of
from .grid import Grid
from .run_folder import COSTS, RunFolder

if TYPE_CHECKING:
    from .cost import Meter


class _Line(NamedTuple):
    """A line of costs.jsonl. ``digest``: a hash of the text. ``skip``: number of skipped tokens at its beginning."""

    text: TextCosts
    digest: str
    skip: int
    data: bytes


def cost_folder(meter: "Meter", folder: RunFolder, texts: Sequence[RightText], skip: int = SKIP) -> list[BadFile]:
    """Score the texts that costs.jsonl of a folder lacks. Append a line for each text as soon as it is scored.

    At the end costs.jsonl has only the lines of ``texts``, in the order of ``texts``. Returns the texts that cannot be
    scored. ``skip``: the ``skip`` of ``meter``. LzsError if a file or the model fails.
    """
    from ..decoding.transcript import TranscriptFile

    names = {charge.name for charge in meter.charges}
    there = {
        (line.text.name, line.digest) for line in _lines(folder) if line.skip == skip and names <= set(line.text.costs)
    }
    missing = [text for text in texts if (text.name, text.digest) not in there]
    bad = []
    with TranscriptFile(folder.path / COSTS) as file:
        for text, made in meter.measure(missing):
            if isinstance(made, BadFile):
                bad.append(made)
            else:
                file.append({**made.to_json(), "digest": text.digest, "skip": skip})
    lines = {(line.text.name, line.digest, line.skip): line.data for line in _lines(folder)}
    with replacing(folder.path / COSTS) as out:
        for text in texts:
            out.write(lines.get((text.name, text.digest, skip), b""))
    return bad


def read_costs(folder: RunFolder, grid: Grid, model: str) -> Costs | None:
    """Return the costs that a folder has so far; None without costs. ``model``: the name of the model's file."""
    charges = charges_of(grid)
    names = {charge.name for charge in charges}
    lines = {line.text.name: line for line in _lines(folder) if names <= set(line.text.costs)}
    texts = tuple(line.text for line in lines.values() if line.text.tokens)
    if not texts:
        return None
    skip = next(iter(lines.values())).skip
    return Costs(charges, texts, skip, model, grid.name, short=len(lines) - len(texts))


def _lines(folder: RunFolder) -> list[_Line]:
    """Return the lines of costs.jsonl, except damaged lines."""
    found = []
    for line in folder.lines(COSTS):
        try:
            row: Any = json.loads(line.data.decode("utf-8"))
            found.append(_Line(TextCosts.from_json(row), str(row["digest"]), int(row["skip"]), line.data))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
            continue
    return found
