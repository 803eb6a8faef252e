"""The environment that puts lzsampler's penalties into a program of llama.cpp: LD_PRELOAD and LZSAMPLER."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from .. import _ffi
from .._values import integer, number
from ..detection import MAX_WINDOW
from ..errors import ArgumentError, LzsError
from ..params import PRESETS, History

_MAX_PENALTY = 100.0  # c/preload/settings.c has the same bounds
_LIBRARY = "liblzsampler_preload.so"
_KEYS = {"lz_penalty": "penalty", "lz_run_allowance": "run_allowance"}  # fields that have other names in LZSAMPLER


@dataclass(frozen=True, kw_only=True)
class PreloadSettings:
    """What the preloaded library does. None keeps the value of the preset.

    ``lz_penalty``: 0 to 100 logits per bit; 0 turns all penalties off. ``lz_run_allowance``: 0 to 131072 tokens.
    ``markers``: whether a request may change the settings. ``strict``: whether a program ends if it cannot have
    penalties. Raises ArgumentError for a value out of range.
    """

    preset: str = "default"
    lz_penalty: float | None = None
    lz_run_allowance: int | None = None
    history: History = "generated"
    markers: bool = True
    strict: bool = False

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise ArgumentError(f"preset must be one of {', '.join(PRESETS)}, got {self.preset!r}")
        if self.lz_penalty is not None:
            number("lz_penalty", self.lz_penalty, 0.0, _MAX_PENALTY)
        if self.lz_run_allowance is not None:
            integer("lz_run_allowance", self.lz_run_allowance, 0, MAX_WINDOW)

    def to_json(self) -> str:
        """Return the value of LZSAMPLER: only what differs from the defaults."""
        changed = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return json.dumps({"version": 1, **{_KEYS.get(name, name): value for name, value in changed.items()}})

    def keywords(self) -> dict[str, Any]:
        """Return the same settings as keywords of `LZLlama`, which has neither markers nor strict."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        own = {name: given[name] for name in (*_KEYS, "history") if name in given}
        off = {"lz_run_penalty": 0.0} if self.lz_penalty == 0 else {}
        return {**PRESETS[self.preset], **own, **off}


def preload_library() -> Path:
    """Return the library to preload. LzsError if this lzsampler has none, or if LD_PRELOAD cannot name it."""
    if sys.platform != "linux":
        raise LzsError(
            "lzsampler can be preloaded into a program on Linux only: here use `lzs serve --server llama_cpp.server`"
        )
    path = Path(_ffi.__file__).with_name(_LIBRARY)
    if not path.is_file():
        raise LzsError(f"{path} is missing, which needs Linux with glibc: install lzsampler again")
    if re.search(r"[\s:$]", str(path)):
        raise LzsError(f"LD_PRELOAD cannot name {path}: install lzsampler in a folder without spaces, : and $")
    return path


def preloaded(settings: PreloadSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with the library before all others that it preloads, and with the settings."""
    library = str(preload_library())
    given = re.split(r"[\s:]+", environment.get("LD_PRELOAD", ""))
    others = [path for path in given if path and Path(path).name != _LIBRARY]  # two copies would call each other
    return {**environment, "LD_PRELOAD": ":".join([library, *others]), "LZSAMPLER": settings.to_json()}
