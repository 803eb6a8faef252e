"""Grids: which settings an evaluation compares, built in (`quick`, `paper`) or from a TOML file."""

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ._check import INT32_MAX, LzsError, integer
from .params import Params

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAPER_TEMPERATURES = (0.0, 0.3, 0.6, 1.0)
DRY: dict[str, float] = {"dry_multiplier": 0.8, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1}
_DRY_FIELDS = tuple(DRY)
_PARAMS = tuple(f.name for f in fields(Params) if f.name != "seed")


@dataclass(frozen=True)
class Setting:
    """One way to sample: ``params``, or llama.cpp's own DRY sampler before the temperature and truncation of these.

    ``dry``: its four numbers, empty without it. ``kind``: what results are grouped by; ``strength``: the number on its
    axis.
    """

    name: str
    kind: str
    params: Params
    strength: float = 0.0
    dry: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Grid:
    """Settings, the seeds of those that draw, and the most new tokens (-1: until the context is full)."""

    name: str
    settings: tuple[Setting, ...]
    seeds: tuple[int, ...] = (1,)
    n_predict: int = 512

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of settings, in their order."""
        return tuple(dict.fromkeys(setting.kind for setting in self.settings))

    def of_kind(self, kind: str) -> list[Setting]:
        """Return the settings of a kind, or of a family of kinds: "lz" is "lz-rate" and all that begin with "lz-".

        ValueError when there is none.
        """
        found = [setting for setting in self.settings if setting.kind == kind]
        found = found or [setting for setting in self.settings if setting.kind.startswith(f"{kind}-")]
        if not found:
            raise ValueError(f"the grid has no {kind}, only {', '.join(self.kinds)}")
        return found


def quick() -> Grid:
    """Return the grid of a first look: nothing, LZ at two strengths and a repetition penalty, greedy and at 0.6."""
    greedy = {"temperature": 0.0}
    return Grid(
        "quick",
        (
            _setting("none", 0.0, greedy),
            _setting("lz-rate", 0.15, {**greedy, "lz_penalty": 0.15}),
            _setting("lz-rate", 0.3, {**greedy, "lz_penalty": 0.3}),
            _setting("repetition", 1.2, {**greedy, "repetition_penalty": 1.2, "penalty_window": 64}),
            _setting("none", 0.0, {"temperature": 0.6}),
            _setting("lz-rate", 0.15, {"temperature": 0.6, "lz_penalty": 0.15}),
        ),
        n_predict=256,
    )


def paper() -> Grid:
    """Return the grid of arXiv 2504.20131, section 5, with each of the three formulas, presence and DRY beside it.

    top-p 0.95 and top-k 40 wherever a token is drawn, as there.
    """
    kinds: list[tuple[str, str, Sequence[float], dict[str, Any]]] = [
        ("none", "lz_penalty", (0.0,), {}),
        *(
            (f"lz-{formula}", "lz_penalty", (0.1, 0.15, 0.2, 0.3), {"lz_formula": formula})
            for formula in ("rate", "distance", "codelength")
        ),
        ("repetition", "repetition_penalty", (1.1, 1.2, 1.25, 1.3, 1.5), {}),
        ("frequency", "frequency_penalty", (0.1, 0.2, 0.3, 0.5, 0.7, 1.0), {}),
        ("presence", "presence_penalty", (0.5, 1.0, 1.5), {}),
    ]
    settings = []
    for temperature in PAPER_TEMPERATURES:
        shared: dict[str, Any] = {"temperature": temperature}
        if temperature:
            shared |= {"top_k": 40, "top_p": 0.95}
        for kind, name, strengths, more in kinds:
            settings += [_setting(kind, strength, {**shared, **more, name: strength}) for strength in strengths]
        settings.append(_setting("dry", DRY["dry_multiplier"], shared, DRY))
    return Grid("paper", tuple(settings))


BUILT_IN = {"quick": quick, "paper": paper}


def read_grid(source: str | Path) -> Grid:
    """Return a built-in grid by its name, or that of a TOML file.

    A file has ``n_predict``, ``seeds`` and tables ``[[setting]]``: ``kind`` (its name in results), fields of `Params`,
    and the four of DRY; a list of values stands for each of them, and several lists for all combinations. LzsError when
    it cannot be read, ValueError, with the place, when it says what cannot be.
    """
    if str(source) in BUILT_IN:
        return BUILT_IN[str(source)]()
    path = Path(source)
    try:
        data = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        built_in = ", ".join(BUILT_IN)
        raise LzsError(f"cannot read the grid {path}: {error.strerror} (built in: {built_in})") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    unknown = set(data) - {"n_predict", "seeds", "setting"}
    if unknown:
        raise ValueError(f"{path}: unknown key {min(unknown)!r}; there are n_predict, seeds and [[setting]]")
    rows = data.get("setting")
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"{path} has no [[setting]]")
    settings: dict[str, Setting] = {}
    for i, row in enumerate(rows, 1):
        for setting in _expanded(row, f"{path}: [[setting]] {i}"):
            settings[setting.name] = setting
    seeds = data.get("seeds", [1])
    if not isinstance(seeds, list) or not seeds:
        raise ValueError(f"{path}: seeds must be a list of numbers, got {seeds!r}")
    return Grid(
        path.stem,
        tuple(settings.values()),
        tuple(integer("seeds", seed, 0, 2**64 - 1) for seed in seeds),
        integer("n_predict", data.get("n_predict", 512), -1, INT32_MAX),
    )


def _expanded(row: Any, place: str) -> list[Setting]:
    """Return the settings that a table stands for."""
    unknown = set(row) - {*_PARAMS, *_DRY_FIELDS, "kind"}
    if unknown:
        raise ValueError(f"{place}: unknown key {min(unknown)!r}")
    kind = row.get("kind", "")
    if not isinstance(kind, str):
        raise ValueError(f"{place}: kind must be a text, got {kind!r}")
    axes = {name: value if isinstance(value, list) else [value] for name, value in row.items() if name != "kind"}
    exempt = axes.pop("exempt", None)  # the one field that is a list itself
    settings = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        dry = {name: chosen.pop(name) for name in _DRY_FIELDS if name in chosen}
        if exempt is not None:
            chosen["exempt"] = tuple(exempt)
        try:
            settings.append(_setting(kind, _strength(chosen, dry), chosen, {**DRY, **dry} if dry else {}))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{place}: {error}") from error
    return settings


def _strength(chosen: Mapping[str, Any], dry: Mapping[str, float]) -> float:
    names = ("lz_penalty", "repetition_penalty", "frequency_penalty", "presence_penalty")
    given = [chosen[name] for name in names if name in chosen] + [dry[n] for n in ("dry_multiplier",) if n in dry]
    return float(given[0]) if given and isinstance(given[0], int | float) else 0.0


def _setting(kind: str, strength: float, chosen: Mapping[str, Any], dry: Mapping[str, float] | None = None) -> Setting:
    """Return a setting named after all that it sets, so that two of one name are the same."""
    params = Params(**{"temperature": 0.0, **chosen})
    default = Params(temperature=params.temperature)
    parts = [f"{n}={getattr(params, n)}" for n in _PARAMS if getattr(params, n) != getattr(default, n)]
    parts += [f"{n}={v:g}" for n, v in (dry or {}).items()]
    if not kind:
        kind = "dry" if dry else parts[0].partition("=")[0] if parts else "none"
    return Setting(" ".join([f"T={params.temperature:g}", *parts]), kind, params, strength, dry or {})
