"""`write_results`: the figures of an evaluation as JSON (results.json of docs/evaluate.md)."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..util.files import replacing

if TYPE_CHECKING:
    from ..evaluation.results import Results


def write_results(path: str | Path, results: "Results") -> None:
    """Write `Results.to_json`. LzsError if the file cannot be written."""
    with replacing(path) as file:
        file.write((json.dumps(results.to_json(), indent=1) + "\n").encode("utf-8"))
