"""Grids: the settings that an evaluation compares, built in (`quick`, `presets`, `paper`, ...) or from a TOML file."""

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from .._check import INT32_MAX, boolean, integer
from ..decoding.policy import DEFAULT_POLICY, LOOP_KEYS, LoopPolicy
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..params import (
    LZ_WINDOW,
    PENALTIES,
    PRESETS,
    SAMPLING_FIELDS,
    SEPARATORS,
    Params,
    from_json,
    to_json,
    usual_buffer,
)
from ..util.typed import checked, of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAPER_TEMPERATURES = (0.0, 0.3, 0.6, 1.0)
PAPER_SEEDS = (1, 2, 3, 4, 5)
_PARAMS = tuple(f.name for f in fields(Params) if f.name not in ("seed", "dry_breakers", *SEPARATORS))
_LOOPS = tuple(LOOP_KEYS)
# The value of each of these keys is a list. For other keys, a list stands for several settings.
_LISTS = ("exempt", "logit_bias", "loop_scope", "penalty_scope")
_MOST_SETTINGS = 10_000  # maximum number of settings from one table
_LARGEST = 1 << 20  # maximum size of a file, in bytes


@dataclass(frozen=True)
class Setting:
    """Sampling parameters with a name.

    ``kind``: the group of the setting in results, such as "repetition". ``strength``: the strength of the penalty,
    which distinguishes the settings of a kind. ``dry_breakers``: DRY's breakers as strings instead of the token ids in
    ``params``, because a grid has no vocabulary; None means the default breakers. ``loops``: what the decoder does
    about loops, and in which parts of a text penalties apply.
    """

    name: str
    kind: str
    params: Params
    strength: float = 0.0
    dry_breakers: tuple[str, ...] | None = None
    loops: LoopPolicy = DEFAULT_POLICY

    @property
    def draws(self) -> bool:
        """Whether the setting's texts depend on the seed. Some actions on loops are random even at temperature 0."""
        return self.params.temperature > 0 or self.loops.kind.random


@dataclass(frozen=True)
class Grid:
    """The settings of an evaluation, with seeds and limits.

    ``seeds``: the seeds for each prompt. A setting at temperature 0 uses only the first seed, because the other seeds
    would give the same texts. ``max_tokens``: maximum number of new tokens of a text; -1 means until the context is
    full. ``ignore_eos``: whether to forbid the tokens that end a text, so that every text gets as long as possible.
    ValueError if a seed occurs twice.
    """

    name: str
    settings: tuple[Setting, ...]
    seeds: tuple[int, ...] = (1,)
    max_tokens: int = 512
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        twice = [seed for i, seed in enumerate(self.seeds) if seed in self.seeds[:i]]
        if twice:
            raise ArgumentError(
                f"seeds must differ from each other, got {twice[0]} twice: it would give the same texts"
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of settings, in the order of the settings."""
        return tuple(dict.fromkeys(setting.kind for setting in self.settings))

    def of_kind(self, kind: str) -> list[Setting]:
        """Return the settings of a kind, or of a family: "lz" stands for all kinds that begin with "lz-".

        ValueError if there are none.
        """
        found = [setting for setting in self.settings if setting.kind == kind]
        found = found or [setting for setting in self.settings if setting.kind.startswith(f"{kind}-")]
        if not found:
            raise ArgumentError(f"the grid has no kind {kind}, only {', '.join(self.kinds)}")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the grid as JSON data."""
        rows = [
            {
                "name": setting.name,
                "kind": setting.kind,
                "params": to_json(setting.params),
                "strength": setting.strength,
                "dry_breakers": None if setting.dry_breakers is None else list(setting.dry_breakers),
                # Unused keys are left out, as in folders of older versions.
                **({} if setting.loops == DEFAULT_POLICY else {"loops": setting.loops.to_json()}),
            }
            for setting in self.settings
        ]
        return {
            "name": self.name,
            "settings": rows,
            "seeds": list(self.seeds),
            "max_tokens": self.max_tokens,
            **({"ignore_eos": True} if self.ignore_eos else {}),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "Grid":
        """Return the grid that `to_json` wrote."""
        settings = []
        for row in data["settings"]:
            breakers = None if row.get("dry_breakers") is None else tuple(row["dry_breakers"])
            loops = LoopPolicy.from_json(row.get("loops", {}))
            about = row["strength"], breakers, loops
            settings.append(checked(Setting(row["name"], row["kind"], from_json(row["params"]), *about)))
        if not settings:
            raise ArgumentError("the grid has no settings")
        name, max_tokens = of(data["name"], str), of(data["max_tokens"], int)
        seeds = tuple(integer("seeds", seed, 0, 2**64 - 1) for seed in data["seeds"])
        return Grid(name, tuple(settings), seeds, max_tokens, of(data.get("ignore_eos", False), bool))


def quick() -> Grid:
    """Return a small grid: no penalty, two presets of the LZ penalty, and a repetition penalty, partly greedy."""
    greedy, default, paper = {"temperature": 0.0}, PRESETS["default"], PRESETS["paper"]
    return Grid(
        "quick",
        (
            _setting("none", 0.0, greedy),
            _setting("lz-default", default["lz_penalty"], {**greedy, **default}),
            _setting("lz-paper", paper["lz_penalty"], {**greedy, **paper}),
            _setting("repetition", 1.2, {**greedy, "repetition_penalty": 1.2, "penalty_window": 64}),
            _setting("none", 0.0, {"temperature": 0.6}),
            _setting("lz-default", default["lz_penalty"], {"temperature": 0.6, **default}),
        ),
        max_tokens=256,
    )


def presets() -> Grid:
    """Return a greedy grid: no penalty, and the presets of the LZ penalty."""
    settings = [_setting("none", 0.0, {})]
    for name, preset in PRESETS.items():
        settings.append(_setting(f"lz-{name}", preset["lz_penalty"] or preset["lz_run_penalty"], preset))
    return Grid("presets", tuple(settings))


def paper() -> Grid:
    """Return the grid of arXiv 2504.20131, section 4 and appendix A.1, with further penalties.

    The grid has all three formulas of the LZ penalty, and also the presence penalty and DRY. As in the paper, settings
    at temperatures above 0 have top-p 0.95, top-k 40 and five seeds.
    """
    kinds: list[tuple[str, str, Sequence[float], dict[str, Any]]] = [
        ("none", "lz_penalty", (0.0,), {}),
        *(
            (f"lz-{formula}", "lz_penalty", (0.1, 0.15, 0.2, 0.3), {"lz_rule": "paper", "lz_formula": formula})
            for formula in ("rate", "distance", "codelength")
        ),
        ("repetition", "repetition_penalty", (1.1, 1.2, 1.25, 1.3, 1.5), {}),
        ("frequency", "frequency_penalty", (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 0.9, 1.0), {}),
        ("presence", "presence_penalty", (0.5, 1.0, 1.5), {}),
        ("dry", "dry_multiplier", (0.8,), {}),
    ]
    settings = []
    for temperature in PAPER_TEMPERATURES:
        shared: dict[str, Any] = {"temperature": temperature}
        if temperature:
            shared |= {"top_k": 40, "top_p": 0.95}
        for kind, name, strengths, more in kinds:
            settings += [_setting(kind, strength, {**shared, **more, name: strength}) for strength in strengths]
    return Grid("paper", tuple(settings), PAPER_SEEDS)


def everyday() -> Grid:
    """Return a grid of penalties at their usual strengths and temperature 0, and of min-p at temperature 1."""
    return Grid("everyday", (*_as_used(), _setting("min-p", 0.1, {"temperature": 1.0, "min_p": 0.1})))


def _as_used() -> tuple[Setting, ...]:
    """Return settings: no penalty, the LZ penalty (paper and default), and other penalties at usual strengths."""
    kinds: list[tuple[str, float, Mapping[str, Any]]] = [
        ("none", 0.0, {}),
        ("lz-paper", PRESETS["paper"]["lz_penalty"], PRESETS["paper"]),
        ("lz-default", PRESETS["default"]["lz_penalty"], PRESETS["default"]),
        ("repetition", 1.1, {"repetition_penalty": 1.1}),
        ("frequency", 0.2, {"frequency_penalty": 0.2}),
        ("presence", 1.5, {"presence_penalty": 1.5}),
        ("dry", 0.8, {"dry_multiplier": 0.8}),
    ]
    settings: dict[str, Setting] = {}
    for kind, strength, chosen in kinds:
        setting = _setting(kind, strength, chosen)
        settings.setdefault(setting.name, setting)  # if the default equals the paper's penalty, it runs only once
    return tuple(settings.values())


def long() -> Grid:
    """Return a grid of long texts: 4,096 tokens each, greedy. The tokens that end a text are forbidden."""
    return Grid("long", _as_used(), max_tokens=4096, ignore_eos=True)


BUILT_IN = {"quick": quick, "presets": presets, "paper": paper, "everyday": everyday, "long": long}


def read_grid(source: str | Path) -> Grid:
    """Return a built-in grid by its name, or the grid in a TOML file.

    A file has ``max_tokens``, ``seeds``, ``ignore_eos`` and tables ``[[setting]]``: ``kind`` (the name in results),
    fields of `Params`, and ``on_loop``, ``loop_rule``, ``max_recoveries``, ``loop_scope`` and ``penalty_scope`` of a
    `LoopPolicy`. If a table has a list, there is a setting for each value of the list. If a table has several lists,
    there is a setting for each combination of their values. The values of some fields are lists: ``exempt`` (token
    ids), ``logit_bias`` (pairs of a token id and a number), ``dry_breakers`` (strings), ``loop_scope`` and
    ``penalty_scope`` (names of parts).
    LzsError if the file cannot be read; ValueError, with the place, for values that are not valid.
    """
    if not isinstance(source, str | Path):
        raise ArgumentTypeError(f"a grid must be a Grid, the name of one or a TOML file, got {source!r}")
    if str(source) in BUILT_IN:
        return BUILT_IN[str(source)]()
    path = Path(source)
    try:
        with path.open("rb") as file:
            written = file.read(_LARGEST + 1)
        if len(written) > _LARGEST:
            raise ArgumentError(f"{path} is no grid: it is larger than 1 MiB")
        data = tomllib.loads(written.decode("utf-8-sig"))
    except OSError as error:
        built_in = ", ".join(BUILT_IN)
        raise LzsError(f"cannot read the grid {path}: {error.strerror} (built in: {built_in})") from error
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path} is not TOML: byte {error.start} is not UTF-8: save it as UTF-8") from error
    except RecursionError as error:
        raise ArgumentError(f"{path} is no grid: it is nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"{path} is not TOML: {error}") from error
    unknown = set(data) - {"max_tokens", "seeds", "ignore_eos", "setting"}
    if unknown:
        raise ArgumentError(
            f"{path}: unknown key {min(unknown)!r}; there are max_tokens, seeds, ignore_eos and [[setting]]"
        )
    rows = data.get("setting")
    if not isinstance(rows, list) or not rows:
        raise ArgumentError(f"{path} has no [[setting]]")
    settings: dict[str, Setting] = {}
    for i, row in enumerate(rows, 1):
        for setting in _expanded(row, f"{path}: [[setting]] {i}"):
            before = settings.setdefault(setting.name, setting)
            if before.kind != setting.kind:
                raise ArgumentError(
                    f"{path}: [[setting]] {i} of kind {setting.kind} has the values of an earlier one, of kind "
                    f"{before.kind} ({setting.name}): leave one of them out"
                )
    seeds = data.get("seeds", [1])
    if not isinstance(seeds, list) or not seeds:
        raise ArgumentError(f"{path}: seeds must be a list of numbers, got {seeds!r}")
    try:
        return Grid(
            path.stem,
            _told_apart(tuple(settings.values())),
            tuple(integer("seeds", seed, 0, 2**64 - 1) for seed in seeds),
            integer("max_tokens", data.get("max_tokens", 512), -1, INT32_MAX),
            boolean("ignore_eos", data.get("ignore_eos", False)),
        )
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{path}: {error}") from error


def _expanded(row: Any, place: str) -> list[Setting]:
    """Return the settings of a table: all combinations of its lists."""
    if not isinstance(row, dict):
        raise ArgumentError(f"{place} must be a table of names and values, got {row!r}")
    unknown = set(row) - {*_PARAMS, *_LOOPS, "dry_breakers", "kind"}
    if unknown:
        raise ArgumentError(f"{place}: unknown key {min(unknown)!r}")
    kind = row.get("kind", "")
    if not isinstance(kind, str):
        raise ArgumentError(f"{place}: kind must be a text, got {kind!r}")
    breakers = _breakers(row["dry_breakers"], place) if "dry_breakers" in row else None
    same = {name: row[name] for name in _LISTS if name in row}
    axes = {
        name: value if isinstance(value, list) else [value]
        for name, value in row.items()
        if name not in ("kind", "dry_breakers", *_LISTS)
    }
    empty = [name for name, value in axes.items() if not value]
    if empty:
        raise ArgumentError(f"{place}: {empty[0]} must have a value, got an empty list")
    n_settings = math.prod(map(len, axes.values()))
    if n_settings > _MOST_SETTINGS:
        raise ArgumentError(
            f"{place} stands for {n_settings:,} settings, more than {_MOST_SETTINGS:,}: shorten its lists"
        )
    settings = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        try:
            settings.append(_setting(kind, None, {**chosen, **same}, breakers))
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(f"{place}: {error}") from error
    return settings


def _told_apart(settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """Return the settings with changed kinds, so that settings of equal kind and strength have equal penalties.

    Results add up the figures of settings of the same kind and strength. These settings may differ only in temperature,
    truncation and tie-breaking. Any other difference becomes part of the kind, as in "lz-lz_window=512".
    """
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for setting in settings:
        groups.setdefault((setting.kind, setting.strength), []).append(_treatment(setting))
    differs: dict[str, set[str]] = {}
    for (kind, _), group in groups.items():
        differs.setdefault(kind, set()).update(name for name in group[0] if len({each[name] for each in group}) > 1)
    made = []
    for setting in settings:
        words = [f"{name}={value}" for name, value in _treatment(setting).items() if name in differs[setting.kind]]
        made.append(replace(setting, kind="-".join([setting.kind, *(word for word in words if word in setting.name)])))
    return tuple(made)


def _treatment(setting: Setting) -> dict[str, Any]:
    """Return every field of a setting except temperature, truncation and ties, written as in the setting's name."""
    drawn = {"temperature", *SAMPLING_FIELDS}
    penalties = {name: str(getattr(setting.params, name)) for name in _PARAMS if name not in drawn}
    breakers = "" if setting.dry_breakers is None else str(list(setting.dry_breakers))
    return {
        **penalties,
        "dry_breakers": breakers,
        **{key: _written(getattr(setting.loops, LOOP_KEYS[key])) for key in _LOOPS},
    }


def _written(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _breakers(given: Any, place: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(string, str) and string for string in given):
        raise ArgumentError(f"{place}: dry_breakers must be a list of strings that are not empty, got {given!r}")
    return tuple(given)


def _setting(
    kind: str,
    strength: float | None,
    chosen: Mapping[str, Any],
    breakers: tuple[str, ...] | None = None,
) -> Setting:
    """Return a setting whose name lists all its values that are not the default. Equal names mean equal settings.

    ``strength``: None means the strength of the first penalty that is on, or 0 if no penalty is on.
    """
    if "structure" in chosen:
        raise ArgumentError("structure has no effect, because texts of an evaluation have no grammar: leave it out")
    params = Params(**{"temperature": 0.0, **{name: value for name, value in chosen.items() if name not in _LOOPS}})
    if strength is None:
        strength = next((float(getattr(params, each.strength)) for each in PENALTIES if each.is_on(params)), 0.0)
    loops = LoopPolicy.from_json({key: value for key, value in chosen.items() if key in _LOOPS})
    usual = {name: getattr(Params(temperature=params.temperature), name) for name in _PARAMS}
    usual |= {"lz_window": LZ_WINDOW[params.lz_rule], "lz_buffer": usual_buffer(params.lz_window or 0)}
    parts = [f"{name}={getattr(params, name)}" for name in _PARAMS if getattr(params, name) != usual[name]]
    if not kind:
        kind = "dry" if params.dry_multiplier else parts[0].partition("=")[0] if parts else loops.action or "none"
    parts += [] if breakers is None else [f"dry_breakers={list(breakers)}"]
    for key, field in LOOP_KEYS.items():
        value = getattr(loops, field)
        if value != getattr(DEFAULT_POLICY, field):
            parts.append(f"{key}={_written(value)}")
    short = f"{params.temperature:g}"
    temperature = short if float(short) == params.temperature else repr(params.temperature)
    name = " ".join([f"T={temperature}", *parts])
    return Setting(name, kind, params, strength, breakers, loops)
