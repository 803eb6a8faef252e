"""What the tests of the processors for servers compare with: rows of `Sampler.process`, and settings of requests."""

from typing import Any

import numpy as np
import numpy.typing as npt

from lzsampler import Params, Sampler
from lzsampler.params import PRESETS, changed

Row = npt.NDArray[np.float32]

# Settings of requests, as they come with them, beside what the default penalty makes of them.
SETTINGS: list[dict[str, Any]] = [
    {"lzsampler": {}},
    {"lz_penalty": 1.5, "lz_min_match": 2},
    {"lzsampler": "paper", "lz_buffer": 3, "lz_window": 24},
    {"lzsampler": '{"lz_penalty": 0, "dry_multiplier": 0.8, "dry_breakers": [1]}'},
    {"lzsampler": {"repetition_penalty": 1.3, "frequency_penalty": 0.2, "history": "all", "penalty_window": 9}},
    {"lzsampler": {"repetition_penalty": 1.3, "sign_aware": False, "exempt": [2], "lz_min_match": 2}},
    {"lzsampler": "guard", "lz_run_allowance": 3},
]


def params_of(arguments: dict[str, Any]) -> Params:
    """Return what `SETTINGS` mean, by another way than the one that is tested."""
    import json

    value = arguments.get("lzsampler", {})
    if isinstance(value, str):
        value = PRESETS[value] if value in PRESETS else json.loads(value)
    fields = {**value, **{name: value for name, value in arguments.items() if name != "lzsampler"}}
    return changed(Params(**PRESETS["default"]), fields)


def expected(params: Params, prompt: list[int], text: list[int], row: Row) -> Row:
    sampler = Sampler(row.size, params)
    sampler.prime(prompt)
    for token in text:
        sampler.accept(token)
    return sampler.process(row.copy())


def same_bits(a: Any, b: Any) -> bool:
    return np.array_equal(np.asarray(a, np.float32).view(np.uint32), np.asarray(b, np.float32).view(np.uint32))
