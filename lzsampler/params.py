"""`Params`: the settings of a sampler, which are checked when they are constructed."""

import base64
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Protocol, TypedDict, get_args

from ._ffi import lib
from ._values import (
    FLOAT_MAX,
    FLOAT_MIN,
    INT32_MAX,
    bias_pairs,
    boolean,
    counted,
    integer,
    number,
    shown,
    token_ids,
    unknown_keyword,
)
from .detection import MAX_WINDOW, RepetitionDetection, StuckDetection
from .errors import ArgumentError, ArgumentTypeError

Rule = Literal["default", "paper"]
Formula = Literal["rate", "distance", "codelength"]
Method = Literal["subtractive", "multiplicative"]
History = Literal["generated", "all"]
Ties = Literal["cut", "keep"]
Structure = Literal["off", "scale", "free"]

MAX_BUFFER: int = lib.LZS_MAX_BUFFER

# Named settings of the LZ penalty, as keywords for `attach`, `LZLlama` and others. These functions and the command line
# start from "default" and add the model's separators (`lzsampler.separators`). docs/defaults.md gives the reasons.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {"lz_penalty": 0.3, "lz_run_penalty": 0.5},
    "guard": {"lz_penalty": 0.0, "lz_run_penalty": 0.5, "lz_run_allowance": 64},
    "paper": {"lz_rule": "paper", "lz_penalty": 0.15, "lz_formula": "rate", "lz_window": 512, "lz_buffer": 32},
}
SEPARATORS = ("lz_separators", "lz_commas")
# For each ``lz_rule``, the fields that only this rule has. `Params` refuses them with the other rule.
OF_RULE: Mapping[str, tuple[str, ...]] = {
    "default": ("lz_min_match", "lz_run_penalty", "lz_run_allowance", *SEPARATORS),
    "paper": ("lz_formula", "lz_buffer"),
}
LZ_WINDOW = {"default": 2048, "paper": 512}
LZ_BUFFER = 32  # value of the paper's authors; a window of at most 32 tokens needs a smaller buffer
_MAX_MATCH = 65535  # largest length of a match in tokens; a longer match counts as this long
MIN_TEMPERATURE = 1e-6
MAX_TEMPERATURE = 1e6


class HasTokenClasses(Protocol):
    """An object with a vocabulary, such as a `lzsampler.Model`, that knows its separators and sequence breakers."""

    def token_classes(self, params: "Params") -> Mapping[str, Any]:
        """Return the fields of `Params` that hold separators and sequence breakers, if ``params`` use these."""


@dataclass(frozen=True)
class Params:
    """Settings of a sampler. The defaults switch everything off except the draw at temperature 1.

    The order is fixed: penalties, mask, temperature, truncation (top-k, top-p, min-p), pick.

    By default ``lz_penalty`` is 0, so there is no LZ penalty. `generate`, `attach`, `LZLlama`, `LZLogitsProcessor` and
    the command line instead start from ``PRESETS["default"]``, which `Params.recommended` returns for a model.

    ``seed`` is always 0 by default, so that texts can be reproduced. Samplers with equal seeds draw with equal noise.
    For independent texts, give each text its own seed, from `sequence_seed` or ``secrets.randbits(64)``.

    - ``lz_penalty`` (k): strength of the LZ penalty in logits per bit, >= 0; 0 is off, 0.3 is the value of
      ``PRESETS["default"]``. If a token would complete a match of L >= m tokens, itself included, with text D tokens
      earlier, its logit falls by k (log2 V - (log2(D + 1) + log2 L) / L). m is ``lz_min_match`` (1..``lz_window``, at
      most 65535), and V is the size of the vocabulary. L counts only tokens after the last separator. ``lz_window``:
      how many tokens the penalty looks back, 2..131072; None is 2048, or the paper's 512.
    - ``lz_run_penalty`` (r): penalty in logits, >= 0, for text that repeats with a period of D tokens, without a gap; 0
      is off. n is the number of repeating tokens after the first two periods, the new token included. If n >
      ``lz_run_allowance`` (a; 0..131072), the token's logit falls by r (n - a). Only the higher one of the LZ penalty
      and the run penalty counts. A grammar of lzsampler makes ``lz_run_allowance`` 16 times as large, unless
      ``structure`` is "off".
    - ``lz_separators``, ``lz_commas``: bit sets of tokens, as bytes or arrays of ceil(V / 32) uint32 words, least
      significant bit first. The default is an empty set, without tokens. A separator restarts the count of L. A comma
      restarts the count only if fewer than m tokens, the comma included, have come since the last separator.
      `lzsampler.separators_of` returns the usual sets.
    - ``lz_rule``: "default" is the rule above; "paper" is the rule of arXiv 2504.20131. For the paper's rule,
      ``lz_formula`` is "rate" or "distance" (the authors' code of March and July 2025) or "codelength" (Eq. 14 with its
      algebra corrected), and ``lz_buffer`` is the longest suffix compared, in tokens: 1..4096, below the window (None:
      32, or one less than a window of at most 32). The paper's rule penalizes every token of the window. It has no
      penalty during the first ``lz_buffer`` tokens of a history, so with ``history="generated"`` it begins at the 33rd
      new token. Fields of the other rule raise ValueError. See docs/penalties.md.
    - ``repetition_penalty``, ``frequency_penalty`` and ``presence_penalty`` look at the last ``penalty_window`` tokens
      (0: the whole history). Each penalty p has a ``*_method``. "multiplicative" divides the logit by p, p**count and
      p, for the three penalties in this order. "subtractive" subtracts p, p * count and p. None is off. For frequency
      and presence 0 is off too. For repetition, 1 is off if the method is multiplicative, and 0 if it is subtractive.
      Negative logits are multiplied instead of divided, unless ``sign_aware`` is False.
    - ``history``: the tokens that all penalties look at: "generated" (the accepted tokens) or "all" (the primed prompt
      as well). llama.cpp's own penalties always look at prompt and text. With "generated" the text may repeat what the
      prompt contains: names, quoted text, code to be changed. ``exempt``: token ids that no penalty changes.
    - ``structure``: how penalties treat text that a grammar forces. "scale": the penalty of a token is multiplied by
      the share of its bytes that the grammar leaves free; a wholly forced token has no penalty. "free": in
      addition, all penalties skip wholly forced tokens in the history. "off": a grammar changes no penalty. Without a
      grammar the three values do the same. See docs/penalties.md.
    - ``dry_multiplier``: strength of DRY, logits, >= 0; 0 is off, 0.8 is usual. If a token would extend a repetition of
      m >= ``dry_allowed_length`` tokens (0..65535), its logit falls by dry_multiplier * dry_base**(m -
      dry_allowed_length), with ``dry_base`` >= 1. DRY looks at the last ``dry_penalty_last_n`` tokens (0 is off, -1 the
      maximum, 131072). ``dry_breakers``: ids of sequence breakers, tokens that end a repetition;
      `lzsampler.llama.dry_breaker_ids` returns them for strings. Names and rules are llama.cpp's, without llama.cpp's
      limit of 64 tokens. See docs/penalties.md.
    - ``logit_bias``: numbers to add to the logits of single tokens, as a dict or pairs of token id and number; -inf
      forbids the token. It is not a penalty, so ``exempt`` does not affect it.
    - ``temperature``: 0 (argmax, the lowest id on ties) or 1e-6..1e6. If ``temperature_last`` is True, truncation comes
      before the temperature, as in llama.cpp's default chain.
    - ``top_k`` (0 is off), ``top_p`` (0..1, 1 is off), ``min_p`` (0..1, 0 is off). ``ties``: "cut" keeps exactly k
      tokens, "keep" also keeps all tokens whose logit equals that of the last kept token.
    - ``repetition_detection``: a `RepetitionDetection`, such as the cautious `STOP_ON_LOOP`, or a dict of its fields;
      None is off. When the accepted tokens end in a loop, the detection sets `Sampler.loop`. It changes no token.
    - ``stuck_detection``: a `StuckDetection`, such as the cautious `STOP_ON_STUCK`, or a dict of its fields; None is
      off. When the accepted tokens no longer contain anything new, the detection sets `Sampler.stuck`. It changes no
      token.
    - ``seed``: 0..2**64 - 1.

    If you pass None for a number, the constructor stores the number that None stands for. `dataclasses.replace` then
    keeps the stored number. So if you change ``lz_rule``, ``lz_window`` or a ``*_method`` with `replace`, pass None
    again for ``lz_window``, ``lz_buffer`` or the penalty.

    A number that is not finite or is out of range, or an unknown word, raises a ValueError that shows the value. A
    value of the wrong type raises an `lzsampler.errors.ArgumentTypeError`, which is a TypeError and a ValueError.
    """

    lz_penalty: float = 0.0
    lz_window: int | None = None
    lz_min_match: int = 5
    lz_run_penalty: float = 0.0
    lz_run_allowance: int = 32
    lz_separators: bytes = b""
    lz_commas: bytes = b""
    lz_rule: Rule = "default"
    lz_formula: Formula = "rate"
    lz_buffer: int | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    penalty_window: int = 0
    history: History = "generated"
    exempt: tuple[int, ...] = ()
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_breakers: tuple[int, ...] = ()
    logit_bias: Mapping[int, float] | Iterable[tuple[int, float]] = ()
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    repetition_method: Method = "multiplicative"
    frequency_method: Method = "subtractive"
    presence_method: Method = "subtractive"
    sign_aware: bool = True
    temperature_last: bool = False
    ties: Ties = "cut"
    repetition_detection: RepetitionDetection | Mapping[str, int] | None = None
    stuck_detection: StuckDetection | Mapping[str, int] | None = None
    structure: Structure = "scale"

    @classmethod
    def recommended(cls, model: "HasTokenClasses", **settings: Any) -> "Params":
        """Return settings with the default LZ penalty for a model (`lzsampler.Model`). ``settings``: other fields.

        The settings start from ``PRESETS["default"]``. If LZ is on, it gets the model's separators, unless you give
        others. If DRY is on, it gets the usual sequence breakers, unless you give others. Raises the errors of
        `Params`, and TypeError for an unknown name.
        """
        if not hasattr(model, "token_classes"):
            raise ArgumentTypeError(f"model must be a Model, got {shown(model)}: open one with Model(path)")
        made = penalties_from("Params.recommended", None, settings, ())
        own = {
            *settings,
            *(SEPARATORS if settings.keys() & {*SEPARATORS} else ()),
        }  # If the caller gives separators or commas, the model's sets are not used.
        return replace(made, **{name: ids for name, ids in model.token_classes(made).items() if name not in own})

    def __post_init__(self) -> None:
        def normal(field: str, value: object) -> None:
            object.__setattr__(self, field, value)  # A frozen dataclass allows no other way.

        for field, names in CHOICES.items():
            if getattr(self, field) not in names:
                raise ArgumentError(f"{field} must be one of {', '.join(names)}, got {shown(getattr(self, field))}")
        normal("lz_penalty", number("lz_penalty", self.lz_penalty, 0.0, FLOAT_MAX))
        window = integer("lz_window", _or(self.lz_window, LZ_WINDOW[self.lz_rule]), 2, MAX_WINDOW)
        normal("lz_window", window)
        longest = min(window, _MAX_MATCH) if self.lz_rule == "default" else _MAX_MATCH
        normal(
            "lz_min_match",
            integer("lz_min_match", self.lz_min_match, 1, longest, ", the lz_window" * (longest == window)),
        )
        normal("lz_run_penalty", number("lz_run_penalty", self.lz_run_penalty, 0.0, FLOAT_MAX))
        normal("lz_run_allowance", integer("lz_run_allowance", self.lz_run_allowance, 0, MAX_WINDOW))
        for field in SEPARATORS:
            normal(field, _bit_set(field, getattr(self, field)))
        buffer = integer("lz_buffer", _or(self.lz_buffer, usual_buffer(window)), 1, MAX_BUFFER)
        normal("lz_buffer", buffer)
        if self.lz_rule == "paper" and buffer >= window:
            raise ArgumentError(f"lz_buffer must be below lz_window ({window}), got {self.lz_buffer}")
        for rule, fields_of_rule in OF_RULE.items():
            for field in fields_of_rule if rule != self.lz_rule else ():
                if getattr(self, field) != (usual_buffer(window) if field == "lz_buffer" else getattr(Params, field)):
                    raise ArgumentError(
                        f"{field} belongs to lz_rule={rule!r}, and the rule is {self.lz_rule!r}: leave it out"
                    )
        for penalty in PENALTIES:
            if penalty.method is None:
                continue
            name, given = penalty.strength, getattr(self, penalty.strength)
            off = penalty.off(self)
            value = off if given is None else number(name, given, -FLOAT_MAX, FLOAT_MAX)
            if getattr(self, penalty.method) == "multiplicative" and value < FLOAT_MIN and value != off:
                raise ArgumentError(
                    f"{name} must be above 0 (at least {FLOAT_MIN:.3g}) when multiplicative, got {shown(value)}"
                )
            normal(name, value)
        normal("penalty_window", integer("penalty_window", self.penalty_window, 0, INT32_MAX))
        normal("exempt", token_ids("exempt", self.exempt, hint="exempt_ids"))
        normal("dry_multiplier", number("dry_multiplier", self.dry_multiplier, 0.0, FLOAT_MAX))
        normal("dry_base", number("dry_base", self.dry_base, 1.0, FLOAT_MAX))
        normal("dry_allowed_length", integer("dry_allowed_length", self.dry_allowed_length, 0, _MAX_MATCH))
        normal("dry_penalty_last_n", integer("dry_penalty_last_n", self.dry_penalty_last_n, -1, MAX_WINDOW))
        normal("dry_breakers", token_ids("dry_breakers", self.dry_breakers, hint="dry_breaker_ids"))
        normal("logit_bias", bias_pairs(self.logit_bias))
        temperature = number("temperature", self.temperature, 0.0, MAX_TEMPERATURE)
        if 0 < temperature < MIN_TEMPERATURE:
            raise ArgumentError(
                f"temperature must be 0 (argmax) or at least {MIN_TEMPERATURE}, got {shown(temperature)}"
            )
        normal("temperature", temperature)
        normal("top_k", integer("top_k", self.top_k, 0, INT32_MAX))
        normal("top_p", number("top_p", self.top_p, 0.0, 1.0))
        normal("min_p", number("min_p", self.min_p, 0.0, 1.0))
        normal("seed", integer("seed", self.seed, 0, 2**64 - 1))
        for field in ("sign_aware", "temperature_last"):
            boolean(field, getattr(self, field))
        normal("repetition_detection", _detection("repetition_detection", RepetitionDetection, self))
        normal("stuck_detection", _detection("stuck_detection", StuckDetection, self))


def usual_buffer(window: int) -> int:
    """Return the ``lz_buffer`` that `Params` uses if the caller passes None."""
    return min(LZ_BUFFER, window - 1)


def _or(value: int | None, usual: int) -> int:
    return usual if value is None else value


def _bit_set(name: str, given: object) -> bytes:
    """Return a bit set over the vocabulary as bytes; TypeError or ValueError for a value that is not a bit set."""
    if isinstance(given, bytes):
        if len(given) % 4:
            raise ArgumentError(f"{name} must be whole words of 4 bytes, got {counted(len(given), 'byte')}")
        return given
    import numpy as np

    if not isinstance(given, np.ndarray) or given.ndim != 1 or given.dtype not in (np.uint32, np.int32):
        raise ArgumentTypeError(f"{name} must be bytes or an array of uint32 words, got {shown(given)}")
    return bytes(given.tobytes())


CHOICES: dict[str, tuple[str, ...]] = {
    "lz_rule": get_args(Rule),
    "lz_formula": get_args(Formula),
    "repetition_method": get_args(Method),
    "frequency_method": get_args(Method),
    "presence_method": get_args(Method),
    "history": get_args(History),
    "ties": get_args(Ties),
    "structure": get_args(Structure),
}


DETECTIONS = ("repetition_detection", "stuck_detection")
SAMPLING_FIELDS = ("temperature", "temperature_last", "top_k", "top_p", "min_p", "ties", "seed")
PENALTY_FIELDS = tuple(field.name for field in fields(Params) if field.name not in SAMPLING_FIELDS)


@dataclass(frozen=True)
class Penalty:
    """Names and properties of one penalty: a row of the table `PENALTIES`.

    ``name``: name of the penalty in results. ``fields``: fields of `Params` that only this penalty has, the strength
    first. ``reach``: how many of the last tokens the penalty looks at. ``method``: field that holds the method, if the
    penalty has several methods. ``neutral``: strength that switches off the multiplicative method; the subtractive
    method is off at 0. ``also``: fields of further strengths, which are off at 0. ``llama_cpp``: the argument of
    llama-cpp-python's calls with the same effect, and the value that switches it off.
    """

    name: str
    fields: tuple[str, ...]
    reach: Callable[[Params], int]
    method: str | None = None
    neutral: float = 0.0
    llama_cpp: tuple[str, float] | None = None
    also: tuple[str, ...] = ()

    @property
    def strength(self) -> str:
        """The name of the field that holds the penalty's strength."""
        return self.fields[0]

    def off(self, params: Params) -> float:
        """Return the strength that switches the penalty off."""
        return self.neutral if self.method and getattr(params, self.method) == "multiplicative" else 0.0

    def is_on(self, params: Params) -> bool:
        """Return whether the settings switch the penalty on, by any of its strengths."""
        return bool(
            getattr(params, self.strength) != self.off(params) or any(getattr(params, each) for each in self.also)
        )


def _counted(params: Params) -> int:
    return params.penalty_window or INT32_MAX


def _lz_reach(params: Params) -> int:
    """Return how many of the last tokens LZ looks at. A match that begins in the window compares earlier tokens, too.

    With ``lz_commas``, LZ looks at the whole history, because the effect of a comma depends on all earlier tokens.
    """
    if params.lz_commas and uses_separators(params):
        return INT32_MAX
    return (params.lz_window or 0) * (1 if params.lz_rule == "paper" else 2)


PENALTIES = (
    Penalty(
        "lz",
        (
            "lz_penalty",
            "lz_window",
            "lz_min_match",
            "lz_run_penalty",
            "lz_run_allowance",
            "lz_rule",
            "lz_formula",
            "lz_buffer",
        ),
        reach=_lz_reach,
        also=("lz_run_penalty",),
    ),
    Penalty(
        "repetition",
        ("repetition_penalty", "repetition_method"),
        reach=_counted,
        method="repetition_method",
        neutral=1.0,
        llama_cpp=("repeat_penalty", 1.0),
    ),
    Penalty(
        "frequency",
        ("frequency_penalty", "frequency_method"),
        reach=_counted,
        method="frequency_method",
        llama_cpp=("frequency_penalty", 0.0),
    ),
    Penalty(
        "presence",
        ("presence_penalty", "presence_method"),
        reach=_counted,
        method="presence_method",
        llama_cpp=("presence_penalty", 0.0),
    ),
    Penalty(
        "dry",
        ("dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n"),
        reach=lambda params: MAX_WINDOW if params.dry_penalty_last_n == -1 else params.dry_penalty_last_n,
    ),
)


@dataclass(frozen=True)
class PenaltyParts:
    """What each penalty does to the logit of one token, and why: the penalties' part of a `TokenExplanation`.

    Distances and lengths are in tokens, changes in logits.

    LZ: the match that sets the penalty has ``lz_length`` tokens, this token included, and lies ``lz_distance`` tokens
    back (1 is the last token; 0 is no match). The match saves ``lz_bits`` bits. ``lz_change`` is added to the token's
    logit. If the run penalty is the higher one, ``lz_run`` is the number of tokens beyond ``lz_run_allowance``, and
    ``lz_bits`` is 0.

    Repetition, frequency and presence: the token occurred ``count`` times within ``penalty_window`` (0 if all three
    penalties are off). Together they divide the logit by ``count_factor`` (or multiply it, depending on
    ``sign_aware``) and then add ``count_change``.

    DRY: the token would extend a repetition of ``dry_length`` tokens that lies ``dry_distance`` tokens back.
    ``dry_change`` is added to the token's logit.
    """

    lz_length: int
    lz_distance: int
    lz_run: int
    lz_bits: float
    lz_change: float
    count: int
    count_factor: float
    count_change: float
    dry_length: int
    dry_distance: int
    dry_change: float


def _reason_of_counts(parts: PenaltyParts, exempt: bool) -> str:
    if not parts.count or (parts.count_factor == 1 and parts.count_change == 0 and not exempt):
        return ""
    changes = [f"factor {parts.count_factor:.4g}"] if parts.count_factor != 1 else []
    changes += [f"{parts.count_change:+.3f}"] if parts.count_change else []
    changes += ["exempt"] if exempt else []
    return f"occurred {'once' if parts.count == 1 else f'{parts.count} times'} ({', '.join(changes)})"


def _reason_of_lz(parts: PenaltyParts, exempt: bool) -> str:
    if not parts.lz_length:
        return ""
    said = f"repeats {counted(parts.lz_length, 'token')} from {counted(parts.lz_distance, 'token')} ago"
    if parts.lz_run:
        said = (
            f"copies itself {counted(parts.lz_run, 'token')} too long, from {counted(parts.lz_distance, 'token')} ago"
        )
    return f"{said}: {parts.lz_change:+.3f}{' (exempt)' * exempt}"


def _reason_of_dry(parts: PenaltyParts, exempt: bool) -> str:
    match = f"repetition of {counted(parts.dry_length, 'token')}, {parts.dry_distance} back"
    return f"DRY {parts.dry_change:+.3f} ({match}){' (exempt)' * exempt}" if parts.dry_length else ""


# Each function returns a penalty's phrase in an explanation, or "" if the penalty had no effect. A step applies the
# penalties in this order.
REASONS: tuple[Callable[[PenaltyParts, bool], str], ...] = (_reason_of_counts, _reason_of_lz, _reason_of_dry)


class CallSettings(TypedDict, total=False):
    """The keywords of `PenaltySettings` that llama-cpp-python's calls do not have themselves."""

    lz_penalty: float
    lz_window: int | None
    lz_min_match: int
    lz_run_penalty: float
    lz_run_allowance: int
    lz_separators: bytes
    lz_commas: bytes
    lz_rule: Rule
    lz_formula: Formula
    lz_buffer: int | None
    repetition_penalty: float | None
    penalty_window: int
    history: History
    structure: Structure
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    repetition_method: Method
    frequency_method: Method
    presence_method: Method
    sign_aware: bool
    repetition_detection: RepetitionDetection | Mapping[str, int] | None
    stuck_detection: StuckDetection | Mapping[str, int] | None


class PenaltySettings(CallSettings, total=False):
    """The fields of `Params` that `attach`, `LZLlama` and `LZLogitsProcessor` take as keywords, for type checkers.

    ``exempt`` and ``dry_breakers`` are left out, because they may hold strings if there is a vocabulary.
    """

    frequency_penalty: float | None
    presence_penalty: float | None
    logit_bias: Mapping[int, float] | Iterable[tuple[int, float]]


def changed(params: Params, changes: Mapping[str, Any]) -> Params:
    """Return ``params`` with other values in some fields.

    Unlike `dataclasses.replace`, this function resets the fields that only the former ``lz_rule`` has. It also resets a
    window and a buffer that had their default values. If ``lz_penalty`` becomes 0, the run penalty becomes 0 too, and
    LZ is wholly off.
    """
    rule = changes.get("lz_rule", params.lz_rule)
    if changes.get("lz_penalty") == 0:
        changes = {"lz_run_penalty": 0.0, **changes}
    if rule != params.lz_rule:
        gone: dict[str, Any] = {field: getattr(Params, field) for field in OF_RULE[params.lz_rule]}
        if params.lz_window == LZ_WINDOW[params.lz_rule]:
            gone["lz_window"] = None
        if isinstance(rule, str) and rule in PRESETS and (params.lz_penalty or params.lz_run_penalty):
            strengths = ("lz_penalty", "lz_run_penalty")  # Under the other rule, the old strengths do not fit.
            gone |= {field: PRESETS[rule].get(field, 0.0) for field in strengths}
        changes = {**gone, **changes}
    if "lz_window" in changes and params.lz_buffer == usual_buffer(params.lz_window or 0):
        changes = {"lz_buffer": None, **changes}
    for penalty in PENALTIES:
        if penalty.method in changes and penalty.strength not in changes and not penalty.is_on(params):
            changes = {**changes, penalty.strength: None}
    return replace(params, **changes) if changes else params


def sampling_fields(params: Params) -> list[str]:
    """Return the fields of temperature, truncation and draw that are not at their defaults.

    A host library with its own sampler, such as llama-cpp-python, refuses these fields.
    """
    default = Params()
    return [name for name in SAMPLING_FIELDS if getattr(params, name) != getattr(default, name)]


def penalties_from(function: str, params: Params | None, settings: Mapping[str, Any], others: Iterable[str]) -> Params:
    """Return the settings that a user gave to ``function``, such as `attach`, for a host library that samples itself.

    ``settings``: fields of `Params` by name. They replace fields of ``params``, or else of ``PRESETS["default"]``.
    ``others``: the other keywords of ``function``. The error for a misspelt name may suggest one of them.

    Raises TypeError for an unknown name, and for ``params`` that are not `Params`. Raises ValueError like `Params`.
    Warns if ``params`` set fields of penalties but switch no penalty on: these fields have no effect.
    """
    names = [field.name for field in fields(Params)]
    for name in settings:
        if name not in names:
            raise unknown_keyword(function, name, (*PENALTY_FIELDS, *others))
    if params is None:
        return changed(Params(**PRESETS["default"]), settings)
    if not isinstance(params, Params):
        raise ArgumentTypeError(f"params must be a Params, got {shown(params)}")
    made = changed(params, settings)
    default = Params()
    given = [name for name in PENALTY_FIELDS if getattr(made, name) != getattr(default, name)]
    acts = penalises(made)
    acts = acts or bool(made.logit_bias or made.repetition_detection or made.stuck_detection)
    if given and not acts and "lz_penalty" not in settings:
        warnings.warn(
            f"these params set {', '.join(given)} but switch no penalty on, because lz_penalty is 0 in them: "
            f"add lz_penalty={PRESETS['default']['lz_penalty']}, or give {function}() the settings as keywords",
            stacklevel=3,
        )
    return made


def warn_without_grammar(params: Params, stacklevel: int) -> None:
    """Warn that ``structure`` was set for a text without a grammar, where it has no effect."""
    if params.structure != Params.structure:
        warnings.warn(
            f"structure={params.structure!r} has no effect without a grammar: give a grammar, or leave structure out",
            stacklevel=stacklevel,
        )


def _detection(
    field: str, kind: type[RepetitionDetection] | type[StuckDetection], params: Params
) -> RepetitionDetection | StuckDetection | None:
    """Return the detection in a field of ``params``, or None if it is off. A dict becomes an instance of ``kind``."""
    value = getattr(params, field)
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in kind.__dataclass_fields__]
        if unknown:
            raise ArgumentError(f"{field} takes {', '.join(kind.__dataclass_fields__)}, got {shown(unknown[0])}")
        value = kind(**value)
    if value is not None and not isinstance(value, kind):
        raise ArgumentTypeError(f"{field} must be a {kind.__name__}, a dict or None, got {shown(value)}")
    off = value is None or not (value.threshold if isinstance(value, StuckDetection) else value.max_pattern_size)
    return None if off else value


def fixed_difference(before: Params, after: Params) -> str | None:
    """Return "FIELD cannot change" for the first field that differs and that a sampler cannot change, or None.

    Strengths, temperature and truncation can change between steps. Fields that determine a sampler's history cannot
    change. A penalty can neither be switched on nor off.
    """
    for field in _FIXED:
        old, new = getattr(before, field), getattr(after, field)
        if old is not new and old != new:  # ``is not`` is fast if a clone shares long lists with its origin.
            return f"{field} cannot change"
    if (before.structure == "free") != (after.structure == "free"):
        return "structure cannot change from or to free"
    for penalty in PENALTIES:
        if penalty.method is None and penalty.is_on(before) != penalty.is_on(after):
            return f"{penalty.strength} cannot be switched on or off"
    if counts(before) != counts(after):
        return "repetition_penalty, frequency_penalty and presence_penalty together cannot be switched on or off"
    return None


_FIXED = (
    "lz_rule", "lz_window", "lz_buffer", "lz_min_match", "penalty_window", "history", "exempt", "repetition_detection",
    "stuck_detection", "logit_bias", "dry_penalty_last_n", "dry_breakers", *SEPARATORS,
)  # fmt: skip


def uses_separators(params: Params) -> bool:
    """Return whether separators have an effect with these settings."""
    return params.lz_rule == "default" and params.lz_penalty > 0


def penalises(params: Params) -> bool:
    """Return whether any penalty is on."""
    return any(penalty.is_on(params) for penalty in PENALTIES)


def counts(params: Params) -> bool:
    """Return whether one of the repetition, frequency and presence penalties is on."""
    return any(penalty.is_on(params) for penalty in PENALTIES if penalty.method)


def reach(params: Params) -> int:
    """Return how many of the last tokens the penalties look at; 0 if all are off."""
    return max((penalty.reach(params) for penalty in PENALTIES if penalty.is_on(params)), default=0)


def to_json(params: Params) -> dict[str, Any]:
    """Return the fields as JSON values.

    `logit_bias` becomes pairs with false for -inf, as llama-server accepts them. Bit sets become base64.
    """
    pairs: Any = params.logit_bias
    sets = {field: base64.b64encode(getattr(params, field)).decode() for field in SEPARATORS}
    biases = [[token, False if bias == -math.inf else bias] for token, bias in pairs]
    return {**asdict(params), "logit_bias": biases, **sets}


def from_json(fields: Mapping[str, Any]) -> Params:
    """Return the `Params` whose fields `to_json` wrote. Raises ValueError, like `Params`, for a value out of range."""
    pairs = [(token, -math.inf if bias is False else bias) for token, bias in fields.get("logit_bias", ())]
    sets = {field: base64.b64decode(fields.get(field, ""), validate=True) for field in SEPARATORS}
    return Params(**{**fields, "logit_bias": pairs, **sets})
