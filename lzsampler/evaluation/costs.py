"""`Costs`: how much penalties cost on reference texts, with intervals, and the Pareto front of the settings.

Importing this module does not load llama_cpp, so results can be read without it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from .._check import INT32_MAX
from ..decoding.parts import PARTS
from ..decoding.policy import LOOP_KEYS
from ..errors import ArgumentError
from ..params import DETECTIONS, SAMPLING_FIELDS, Params, penalises
from ..util.stats import Interval, bootstrap_ratios
from .cost_texts import BadFile
from .grid import Grid, Setting

VERSION = 1  # version of the data that `Costs.to_json` returns
SKIP = 64  # by default, the first 64 tokens of a text are not scored
# Fields in a setting's name that do not change the cost
_DRAWS = ("T", *SAMPLING_FIELDS, *DETECTIONS, *LOOP_KEYS)
_NEUTRAL = {name: getattr(Params(), name) for name in (*SAMPLING_FIELDS, *DETECTIONS)}


@dataclass(frozen=True)
class Charge:
    """Penalties whose cost is measured. Several settings of a grid may have the same penalties.

    ``name``: the penalties as in a setting's name; "none" without penalties. ``kind`` and ``strength``: as in the grid.
    ``params``: the penalties, at temperature 1. ``settings``: the names of all settings with these penalties.
    ``dry_breakers``: as in `Setting`. ``scope``: the parts of a text in which the penalties apply.
    """

    name: str
    kind: str
    strength: float
    params: Params
    settings: tuple[str, ...]
    dry_breakers: tuple[str, ...] | None = None
    scope: tuple[str, ...] = PARTS

    @property
    def is_free(self) -> bool:
        """Whether the penalties change no logit."""
        return not self.params.logit_bias and not penalises(self.params)


def charges_of(grid: Grid) -> tuple[Charge, ...]:
    """Return the penalties of a grid, each once: temperature and truncation do not change their cost."""
    found: dict[Any, list[Setting]] = {}
    for setting in grid.settings:
        params = replace(setting.params, **_NEUTRAL)
        breakers = setting.dry_breakers if params.dry_multiplier else None
        scope = tuple(setting.loops.penalty_scope or PARTS) if penalises(params) else PARTS
        found.setdefault((params, breakers, scope), []).append(setting)
    charges: dict[str, Charge] = {}
    for (params, _, scope), settings in found.items():
        first = settings[0]
        dropped = set(_DRAWS) - ({"penalty_scope"} if scope != PARTS else set())
        words = [word for word in first.name.split(" ") if word.partition("=")[0] not in dropped]
        name = " ".join(words) or first.kind
        while name in charges:
            name += "'"
        names = tuple(setting.name for setting in settings)
        charges[name] = Charge(name, first.kind, first.strength, params, names, first.dry_breakers, scope)
    return tuple(charges.values())


class Cost(NamedTuple):
    """Sums over the tokens of a text, with some penalties.

    ``extra``: the nats that the penalties add to the cost of the tokens. ``first``: the number of tokens that are the
    first choice, which is the most probable token. ``lost``: the number of tokens that are the first choice only
    without the penalties. ``forbidden``: the number of tokens whose probability the penalties make 0, or less than
    1e-323, which float64 cannot hold. Forbidden tokens do not count in ``extra``.
    """

    extra: float = 0.0
    first: int = 0
    lost: int = 0
    forbidden: int = 0

    def plus(self, other: "Cost") -> "Cost":
        """Return the sums over the tokens of ``self`` and ``other``."""
        return Cost(
            self.extra + other.extra, self.first + other.first, self.lost + other.lost, self.forbidden + other.forbidden
        )


@dataclass(frozen=True)
class TextCosts:
    """The costs of one text. ``tokens``: the number of scored tokens. ``costs``: name of a `Charge` -> its cost.

    ``nats``: the cost of the scored tokens without penalties. ``first``: how many scored tokens are the first choice
    without penalties.
    """

    name: str
    kind: str
    tokens: int
    nats: float
    first: int
    costs: Mapping[str, Cost]

    def to_json(self) -> dict[str, Any]:
        """Return the row for costs.jsonl."""
        about = {"text": self.name, "kind": self.kind, "tokens": self.tokens, "nats": self.nats, "first": self.first}
        return {**about, "costs": {name: list(cost) for name, cost in self.costs.items()}}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> "TextCosts":
        """Return the text that `to_json` wrote; ValueError, TypeError or LookupError for anything else."""
        tokens, nats = _count(row["tokens"]), _nats(row["nats"], 0.0)
        costs = {
            _word(name): Cost(_nats(extra, -nats), *(_count(each, tokens) for each in (first, lost, forbidden)))
            for name, (extra, first, lost, forbidden) in row["costs"].items()
        }
        return TextCosts(_word(row["text"]), _word(row["kind"]), tokens, nats, _count(row["first"], tokens), costs)


@dataclass(frozen=True)
class Figures:
    """The cost of some penalties on some texts.

    ``forbidden``: how many tokens of the texts the penalties forbid. ``extra_nats``: the nats that the penalties add
    per token; inf if tokens are forbidden. ``possible_nats``: the nats that the penalties add per token that is not
    forbidden. ``perplexity_ratio``: exp(extra_nats). ``first``: the share of the tokens that are the model's first
    choice with the penalties. ``first_without``: this share without the penalties. ``lost``: the share of the tokens
    that are the first choice only without the penalties. Other tokens may be the first choice only with the penalties.
    Intervals are 95 % bootstrap intervals that resample whole texts. They are None for fewer than two texts, and if the
    figure is infinite.
    """

    texts: int
    tokens: int
    extra_nats: float
    extra_interval: Interval | None
    possible_nats: float
    perplexity_ratio: float
    first: float
    first_without: float
    lost: float
    lost_interval: Interval | None
    forbidden: int

    @property
    def ratio_interval(self) -> Interval | None:
        """The interval of ``perplexity_ratio``."""
        return None if self.extra_interval is None else Interval(*(_exp(bound) for bound in self.extra_interval))

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON, with null in place of infinity."""
        return {
            "texts": self.texts,
            "tokens": self.tokens,
            "extra_nats": _finite(self.extra_nats),
            "extra_interval": _listed(self.extra_interval),
            "possible_nats": self.possible_nats,
            "perplexity_ratio": _finite(self.perplexity_ratio),
            "ratio_interval": _listed(self.ratio_interval),
            "first_choice": self.first,
            "first_choice_without": self.first_without,
            "lost": self.lost,
            "lost_interval": _listed(self.lost_interval),
            "forbidden": self.forbidden,
        }


@dataclass(frozen=True)
class Base:
    """The cost of some texts without penalties: ``nats`` per token, and the share of first choices, ``first``."""

    texts: int
    tokens: int
    nats: float
    first: float


@dataclass(frozen=True)
class Costs:
    """How much the penalties of a grid cost on reference texts (docs/cost.md).

    ``charges``: the penalties. ``texts``: the costs of each scored text. ``skip``: how many tokens at the beginning of
    each text are not scored. ``model`` and ``grid``: names. ``short``: how many texts were left out because no
    token remains after ``skip``. ``bad``: files and lines that could not be read or scored. ``interrupted``: whether
    texts are missing because Ctrl-C ended the measurement.
    """

    charges: Sequence[Charge]
    texts: Sequence[TextCosts] = field(repr=False)
    skip: int = SKIP
    model: str = ""
    grid: str = ""
    short: int = 0
    bad: Sequence[BadFile] = ()
    interrupted: bool = False

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of texts, in the order of the texts."""
        return tuple(dict.fromkeys(text.kind for text in self.texts))

    def base(self, kind: str | None = None) -> Base:
        """Return the cost without penalties of the texts of a kind, or of all texts. ValueError without texts."""
        texts = self._of(kind)
        tokens = sum(text.tokens for text in texts)
        return Base(len(texts), tokens, sum(t.nats for t in texts) / tokens, sum(t.first for t in texts) / tokens)

    def figures(self, name: str, kind: str | None = None) -> Figures:
        """Return the cost of a `Charge`. ``name``: the name of the charge, or of one of its settings.

        ``kind``: the kind of texts; None is all texts. All tokens have equal weight. ValueError for an unknown name or
        kind.
        """
        found = next((charge.name for charge in self.charges if name == charge.name or name in charge.settings), None)
        if found is None:
            raise ArgumentError(
                f"there is no setting {name!r}, only {', '.join(charge.name for charge in self.charges)}"
            )
        self._of(kind)
        return self._figures[kind][found]

    def of_kind(self, kind: str) -> list[Charge]:
        """Return the penalties of a kind, or of a family: "lz" stands for all kinds that begin with "lz-"."""
        found = [charge for charge in self.charges if charge.kind == kind]
        return found or [charge for charge in self.charges if charge.kind.startswith(f"{kind}-")]

    def rates(self, rate: str, group: str | None = None) -> dict[str, float]:
        """Return a figure of each penalty, by the penalty's name. ``rate``: "cost" (nats per token) or "lost" (0..1).

        ``group``: a kind of settings (`of_kind`) or a kind of texts. Only penalties or texts of this kind count. None
        is all penalties on all texts. ValueError for any other group.
        """
        chosen = self.of_kind(group) if group is not None else list(self.charges)
        kind = None
        if group is not None and not chosen:
            if group not in self.kinds:
                kinds = dict.fromkeys(charge.kind for charge in self.charges)
                raise ArgumentError(f"there is no kind {group}, only {', '.join([*kinds, *self.kinds])}")
            chosen, kind = list(self.charges), group
        made = {charge.name: self.figures(charge.name, kind) for charge in chosen}
        return {name: each.extra_nats if rate == "cost" else each.lost for name, each in made.items()}

    def to_json(self) -> dict[str, Any]:
        """Return all figures, ready for json.dumps (docs/cost.md)."""
        return {
            "version": VERSION,
            "lzsampler": __version__,
            "model": self.model,
            "grid": self.grid,
            "skip": self.skip,
            "texts": len(self.texts),
            "short": self.short,
            "without": asdict(self.base()) if self.texts else None,
            "kinds": {kind: asdict(self.base(kind)) for kind in self.kinds},
            "settings": [
                {
                    "name": charge.name,
                    "kind": charge.kind,
                    "strength": charge.strength,
                    "settings": list(charge.settings),
                    **(self.figures(charge.name).to_json() if self.texts else {}),
                    "kinds": {kind: self.figures(charge.name, kind).to_json() for kind in self.kinds},
                }
                for charge in self.charges
            ],
            "bad_files": [asdict(each) for each in self.bad],
            "interrupted": self.interrupted,
        }

    def _of(self, kind: str | None) -> list[TextCosts]:
        texts = [text for text in self.texts if kind is None or text.kind == kind]
        if not texts:
            raise ArgumentError(f"there is no text of kind {kind}" if self.texts else "no text was scored")
        return texts

    @cached_property
    def _figures(self) -> dict[str | None, dict[str, Figures]]:
        every: list[str | None] = [None, *self.kinds]
        return {kind: _figures(self._of(kind), [charge.name for charge in self.charges]) for kind in every}


def _figures(texts: Sequence[TextCosts], names: Sequence[str]) -> dict[str, Figures]:
    costs = [[text.costs[name] for text in texts] for name in names]
    sizes = [text.tokens for text in texts]
    tokens = sum(sizes)
    intervals: list[Interval | None] = [None] * (2 * len(names))
    if len(texts) > 1:
        sums = [[cost.extra for cost in row] for row in costs] + [[float(cost.lost) for cost in row] for row in costs]
        intervals = list(bootstrap_ratios(np.array(sums), np.array(sizes, np.float64)))
    without = sum(text.first for text in texts) / tokens
    made = {}
    for i, (name, row) in enumerate(zip(names, costs, strict=True)):
        forbidden = sum(cost.forbidden for cost in row)
        summed = math.fsum(cost.extra for cost in row)
        extra = math.inf if forbidden else summed / tokens
        made[name] = Figures(
            texts=len(texts),
            tokens=tokens,
            extra_nats=extra,
            extra_interval=None if forbidden else intervals[i],
            possible_nats=summed / max(tokens - forbidden, 1),
            perplexity_ratio=_exp(extra),
            first=sum(cost.first for cost in row) / tokens,
            first_without=without,
            lost=sum(cost.lost for cost in row) / tokens,
            lost_interval=intervals[len(names) + i],
            forbidden=forbidden,
        )
    return made


def front(points: Iterable[tuple[float, float]]) -> list[bool]:
    """Return which of some points (cost, gain) are on the Pareto front.

    A point is on the front unless another point gains more for at most the same cost, or at least as much for a lower
    cost.
    """
    given = list(points)
    return [not any((c <= cost and g > gain) or (c < cost and g >= gain) for c, g in given) for cost, gain in given]


def _nats(x: object, least: float) -> float:
    """Return a sum of nats from a file. ValueError unless it is a number >= ``least``, apart from rounding errors."""
    if isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x) or x < least - 1e-6 * (1 - least):
        raise ArgumentError(f"not a sum of nats: {x!r}")
    return float(x)


def _count(x: object, most: int = INT32_MAX) -> int:
    """Return a count of tokens from a file. ValueError for anything else."""
    if isinstance(x, bool) or not isinstance(x, int) or not 0 <= x <= most:
        raise ArgumentError(f"not a count of tokens: {x!r}")
    return x


def _word(x: object) -> str:
    if not isinstance(x, str) or not x:
        raise ArgumentError(f"not a name: {x!r}")
    return x


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _listed(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [_finite(bound) for bound in interval]
