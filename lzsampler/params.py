"""`Params`: what to do with a row of logits, checked once, when it is made."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypedDict, get_args

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

Formula = Literal["rate", "distance", "codelength"]
Method = Literal["subtractive", "multiplicative"]
History = Literal["generated", "all"]
Ties = Literal["cut", "keep"]
Pick = Literal["race", "llama"]
Structure = Literal["off", "scale", "free"]

MAX_BUFFER: int = lib.LZS_MAX_BUFFER

# Settings of the LZ penalty by name, for `attach`, `LZLlama` and others as keywords. These and the command line start
# from the default, with the tokens of `lzsampler.llama.lz_breaker_ids` and `lz_number_ids`: docs/defaults.md says why.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "default": {"lz_penalty": 0.3, "lz_min_match": 5},
    "paper": {"lz_penalty": 0.15, "lz_formula": "rate", "lz_window": 512, "lz_buffer": 32, "lz_min_match": 1},
}
# What a text is built of and not what it says: docs/defaults.md has the measurements behind the choice.
LZ_BREAKERS = tuple('\n:"*|`#[]{}()<>=;/\\_@0123456789')
LZ_NUMBERS = tuple("0123456789")
LZ_MARKS = ("letterless",)  # a word for all tokens without a letter


def is_letterless(text: str) -> bool:
    """Return whether the text of a token has no letter, as that of one of `LZ_MARKS`."""
    return not any(map(str.isalpha, text))


# Fields that have no meaning with an lz_min_match of 1, and why.
OF_LONG_MATCHES: Mapping[str, str] = {
    "lz_breakers": "a match of one token contains no other that could end it",
    "lz_numbers": "the paper's rule prices every token from its first occurrence on",
    "lz_marks": "the paper's rule prices every token, however often it occurs",
}
LZ_WINDOW, LZ_LONG_WINDOW = 512, 2048  # the authors', and that of longer matches, which are rare enough to look further
LZ_BUFFER = 32  # the authors', where the window is larger
MIN_TEMPERATURE = 1e-6
MAX_TEMPERATURE = 1e6
_MAX_DRY_LENGTH = 65535  # longer matches count as this


@dataclass(frozen=True)
class Params:
    """Settings of a sampler. The defaults switch everything off except the draw at temperature 1.

    The order is fixed: penalties, mask, temperature, truncation (top-k, top-p, min-p), pick.

    The defaults are neutral, so ``lz_penalty`` is 0 here: without it there is no LZ penalty. (`attach`, `LZLlama`,
    `LZLogitsProcessor` and the command line start from ``PRESETS["default"]``, which `Model.params` returns as a
    `Params`.) The default ``seed`` is 0, always the same, so that texts can be reproduced. Samplers with equal seeds
    draw with equal noise: where that is not wanted, give each text a seed of its own, by `sequence_seed` or
    ``secrets.randbits(64)``.

    - ``lz_penalty``: strength of the LZ penalty, logits per bit, >= 0; 0 is off, 0.15 the paper's, 0.3 our default for
      matches of 5 tokens or more. ``lz_window``: lookback, tokens, 2..131072; None is 512, or 2048 with an
      ``lz_min_match`` above 1. ``lz_formula``: "rate" and "distance" (the authors' code of March and July 2025),
      "codelength" (the paper's Eq. 14 with its algebra corrected). ``lz_min_match``: the shortest match that is priced,
      tokens, the new one included, 1..``lz_buffer`` + 1; 1 is the paper's rule, which prices every token of the window.
      Above 1, what came many times is dearer. ``lz_buffer``: the longest suffix compared,
      tokens, 1..4096, below the window; None is 32, or 4096 with an ``lz_min_match`` above 1, or one less than the
      window where that is smaller. ``lz_breakers``: token ids that end a match, unless it covers its own distance, as
      in a loop; `lzsampler.llama.lz_breaker_ids` returns those that lzsampler uses by default, and they need an
      ``lz_min_match`` above 1. ``lz_numbers``: token ids that are priced from their second match on, or in a loop;
      `lzsampler.llama.lz_number_ids` returns the usual ones, and they need an ``lz_min_match`` above 1 too.
      ``lz_marks``: token ids that are no words (`lzsampler.llama.lz_mark_ids`), which need that as well; with them all
      other tokens are priced where they make up a quarter of the last 64, whatever came before them. With the paper's
      rule the first ``lz_buffer`` tokens of a history have no LZ penalty at all: with ``history="generated"``
      it begins at the 33rd new token. arXiv 2504.20131; docs/penalties.md.
    - ``repetition_penalty``, ``frequency_penalty`` and ``presence_penalty`` look at the last ``penalty_window`` tokens
      (0: the whole history), each by its ``*_method``: "multiplicative" divides the logit (by p, p**count, p),
      "subtractive" subtracts (p, p * count, p). None is off by either method; so is 0 for the last two, and for
      ``repetition_penalty`` 1 if multiplicative, 0 if subtractive. ``sign_aware=False`` divides negative logits too.
    - ``history``: the tokens that all penalties look at: "generated" (the accepted tokens) or "all" (the primed prompt
      as well). llama.cpp's own penalties always look at both, so that "generated" leaves alone what the prompt
      contains: names, quoted text, code to be changed. ``exempt``: token ids that no penalty touches.
    - ``structure``: what penalties make of a grammar. "scale": the penalty of a token is multiplied by the share of its
      bytes that the grammar leaves free, so that a token that it forces whole has none. "free": besides, all penalties
      look at the text without such tokens, as if they were not there. "off": neither. Without a grammar all three are
      alike. docs/penalties.md.
    - ``dry_multiplier``: strength of DRY, logits, >= 0; 0 is off, 0.8 is usual. A token that would extend a repetition
      of m >= ``dry_allowed_length`` tokens (0..65535) loses dry_multiplier * dry_base**(m - dry_allowed_length), with
      ``dry_base`` >= 1. DRY looks at the last ``dry_penalty_last_n`` tokens (0 is off, -1 the maximum, 131072).
      ``dry_breakers``: token ids that no repetition crosses; `lzsampler.llama.dry_breaker_ids` returns those for
      strings. Names and rules are llama.cpp's, without its limit of 64 tokens; docs/penalties.md.
    - ``logit_bias``: numbers to add to the logits of single tokens, as a dict or pairs of token id and number; -inf
      forbids the token. It is not a penalty, so that ``exempt`` has no effect on it.
    - ``temperature``: 0 (argmax, the lowest id on ties) or 1e-6..1e6; ``temperature_last=True`` truncates first, as
      llama.cpp's default chain does.
    - ``top_k`` (0 is off), ``top_p`` (0..1, 1 is off), ``min_p`` (0..1, 0 is off). ``ties``: "cut" keeps exactly k
      tokens, "keep" all that equal the last one kept.
    - ``repetition_detection``: a `RepetitionDetection` (`STOP_ON_LOOP` is a safe one) or a dict of its fields, to have
      `Sampler.loop` say when the accepted tokens end in a loop; None is off. It changes no token.
    - ``stuck_detection``: a `StuckDetection` (`STOP_ON_STUCK` is a safe one) or a dict of its fields, to have
      `Sampler.stuck` say when the accepted tokens say nothing new any more; None is off. It changes no token.
    - ``pick``: "race" (exponential race on Philox4x32-10) or "llama" (what llama.cpp's `dist` draws, bit for bit).
      ``seed``: 0..2**64 - 1.

    Where None stands for a number, the field holds that number once the object is made, and `dataclasses.replace` keeps
    it: when you change ``lz_min_match``, ``lz_window`` or a ``*_method`` with it, pass None again for ``lz_window``,
    ``lz_buffer`` or the penalty.

    Raises ValueError, with the value, for a number that is not finite or out of range and for an unknown name, and
    TypeError (an `lzsampler.errors.ArgumentTypeError`, which is a ValueError too) for a value of the wrong type.
    """

    lz_penalty: float = 0.0
    lz_window: int | None = None
    lz_buffer: int | None = None
    lz_formula: Formula = "rate"
    lz_min_match: int = 1
    lz_breakers: tuple[int, ...] = ()
    lz_numbers: tuple[int, ...] = ()
    lz_marks: tuple[int, ...] = ()
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
    pick: Pick = "race"
    repetition_detection: RepetitionDetection | Mapping[str, int] | None = None
    stuck_detection: StuckDetection | Mapping[str, int] | None = None
    structure: Structure = "scale"

    def __post_init__(self) -> None:
        def normal(field: str, value: object) -> None:
            object.__setattr__(self, field, value)  # the dataclass is frozen; this is its construction

        normal("lz_penalty", number("lz_penalty", self.lz_penalty, 0.0, FLOAT_MAX))
        normal("lz_min_match", integer("lz_min_match", self.lz_min_match, 1, MAX_BUFFER))
        given = usual_window(self.lz_min_match) if self.lz_window is None else self.lz_window
        window = integer("lz_window", given, 2, MAX_WINDOW)
        normal("lz_window", window)
        usual = usual_buffer(window, self.lz_min_match)
        buffer = integer("lz_buffer", usual if self.lz_buffer is None else self.lz_buffer, 1, MAX_BUFFER)
        normal("lz_buffer", buffer)
        if buffer >= window:
            raise ArgumentError(f"lz_buffer must be below lz_window ({window}), got {self.lz_buffer}")
        if self.lz_min_match > window:
            raise ArgumentError(f"lz_min_match must be at most lz_window ({window}), got {self.lz_min_match}")
        if buffer < (least := self.lz_min_match - 1):
            raise ArgumentError(f"lz_buffer must be at least {least}, one less than lz_min_match, got {buffer}")
        normal("lz_breakers", token_ids("lz_breakers", self.lz_breakers, hint="lz_breaker_ids"))
        normal("lz_numbers", token_ids("lz_numbers", self.lz_numbers, hint="lz_number_ids"))
        normal("lz_marks", token_ids("lz_marks", self.lz_marks, hint="lz_mark_ids"))
        for field, reason in OF_LONG_MATCHES.items():
            if getattr(self, field) and self.lz_min_match == 1:
                raise ArgumentError(f"{field} need an lz_min_match above 1: {reason}")
        for field, names in CHOICES.items():
            if getattr(self, field) not in names:
                raise ArgumentError(f"{field} must be one of {', '.join(names)}, got {shown(getattr(self, field))}")
        for penalty in PENALTIES:
            if penalty.method is None:
                continue
            name, given = penalty.strength, getattr(self, penalty.strength)
            off = penalty.off(self)
            value = off if given is None else number(name, given, -FLOAT_MAX, FLOAT_MAX)
            if getattr(self, penalty.method) == "multiplicative" and value < FLOAT_MIN and value != off:
                raise ArgumentError(f"{name} must be above 0 ({FLOAT_MIN:.3g}) when multiplicative, got {shown(value)}")
            normal(name, value)
        normal("penalty_window", integer("penalty_window", self.penalty_window, 0, INT32_MAX))
        normal("exempt", token_ids("exempt", self.exempt, hint="exempt_ids"))
        normal("dry_multiplier", number("dry_multiplier", self.dry_multiplier, 0.0, FLOAT_MAX))
        normal("dry_base", number("dry_base", self.dry_base, 1.0, FLOAT_MAX))
        normal("dry_allowed_length", integer("dry_allowed_length", self.dry_allowed_length, 0, _MAX_DRY_LENGTH))
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


def usual_window(min_match: int) -> int:
    """Return the ``lz_window`` that None stands for."""
    return LZ_WINDOW if min_match == 1 else LZ_LONG_WINDOW


def usual_buffer(window: int, min_match: int) -> int:
    """Return the ``lz_buffer`` that None stands for."""
    return min(LZ_BUFFER if min_match == 1 else MAX_BUFFER, window - 1)


def has_usual_buffer(params: "Params") -> bool:
    """Return whether ``lz_buffer`` is the one that None stands for."""
    return params.lz_buffer == usual_buffer(params.lz_window or 0, params.lz_min_match)


CHOICES: dict[str, tuple[str, ...]] = {
    "lz_formula": get_args(Formula),
    "repetition_method": get_args(Method),
    "frequency_method": get_args(Method),
    "presence_method": get_args(Method),
    "history": get_args(History),
    "ties": get_args(Ties),
    "pick": get_args(Pick),
    "structure": get_args(Structure),
}


DETECTIONS = ("repetition_detection", "stuck_detection")
SAMPLING_FIELDS = ("temperature", "temperature_last", "top_k", "top_p", "min_p", "ties", "seed", "pick")
PENALTY_FIELDS = tuple(field.name for field in fields(Params) if field.name not in SAMPLING_FIELDS)


@dataclass(frozen=True)
class Penalty:
    """What the package has to know of a penalty: a row of `PENALTIES`.

    ``name``: what results call it. ``fields``: those of `Params` that are its own, the strength first. ``reach``: how
    many of the last tokens it looks at. ``method``: the field with its method, if it has several. ``neutral``: the
    strength that switches it off when it is multiplicative; 0 does otherwise. ``llama_cpp``: the argument of
    llama-cpp-python's calls that does the same, and its neutral value.
    """

    name: str
    fields: tuple[str, ...]
    reach: Callable[[Params], int]
    method: str | None = None
    neutral: float = 0.0
    llama_cpp: tuple[str, float] | None = None

    @property
    def strength(self) -> str:
        """The field with its strength."""
        return self.fields[0]

    def off(self, params: Params) -> float:
        """Return the strength that switches it off."""
        return self.neutral if self.method and getattr(params, self.method) == "multiplicative" else 0.0

    def is_on(self, params: Params) -> bool:
        """Return whether its strength is another one."""
        return bool(getattr(params, self.strength) != self.off(params))


def _counted(params: Params) -> int:
    return params.penalty_window or INT32_MAX


def _lz_reach(params: Params) -> int:
    """A long match begins in the window, and what is compared may lie before it."""
    return (params.lz_window or 0) + (0 if params.lz_min_match == 1 else params.lz_buffer or 0)


PENALTIES = (
    Penalty(
        "lz",
        ("lz_penalty", "lz_window", "lz_buffer", "lz_formula", "lz_min_match"),
        reach=_lz_reach,
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
class Flag:
    """An option of the command line that sets a field of `Params`: a row of `FLAGS`.

    ``names``: as click takes them; ``group``: the title it is listed under. ``default``: what it starts from, which the
    help shows; None leaves that of `Params` and shows nothing. ``low``: the least that a whole number may be, if the
    option itself is to say so. ``choices``: the names in the order of errors, where `CHOICES` has another one.
    """

    field: str
    group: str
    names: tuple[str, ...]
    metavar: str | None
    default: float | str | None
    help: str
    low: int | None = None
    choices: tuple[str, ...] = ()


_LZ, _OTHERS, _DRY = "LZ penalty", "Other penalties (off by default)", "DRY penalty (off by default)"
_METHODS = ("multiplicative", "subtractive")

# All fields that are no sampling fields, in the order of the help. Some of the spaces must not be broken: \xa0.
FLAGS = (
    Flag("lz_penalty", _LZ, ("--lz-penalty",), "A", None,
         "strength, logits per bit; 0 is off (default: 0.3, or that of --preset)"),
    Flag("lz_min_match", _LZ, ("--lz-min-match",), "N", None,
         "shortest match that is penalised, tokens; 1 is the paper's (default: 5, or that of --preset)"),
    Flag("lz_window", _LZ, ("--lz-window",), "N", None,
         "how far back it looks, 2 to 131072 tokens (default: 2048; 512 with --lz-min-match\xa01)"),
    Flag("lz_buffer", _LZ, ("--lz-buffer",), "N", None,
         "longest match it looks for, 1 to 4096 tokens (default: the window's; 32 with --lz-min-match\xa01)"),
    Flag("lz_formula", _LZ, ("--lz-formula",), "NAME", "rate",
         "what a match costs: rate, distance or codelength (docs/penalties.md)"),
    Flag("lz_breakers", _LZ, ("--lz-breaker",), "TEXT", None,
         "no match crosses a token that contains TEXT, but in a loop; repeatable; none is no breakers (default: line "
         "break, digits, double quote, brackets and other marks of structure)"),
    Flag("lz_numbers", _LZ, ("--lz-number",), "TEXT", None,
         "a token that contains TEXT is priced from its second match on, or in a loop; repeatable; none is no such "
         "tokens (default: the digits)"),
    Flag("lz_marks", _LZ, ("--lz-mark",), "TEXT", None,
         "a token that contains TEXT is no word, and may make up any share of a text; repeatable; none prices no word "
         "for its share (default: letterless, all tokens without a letter)"),
    Flag("history", _LZ, ("--history",), "WHAT", "generated",
         "what all penalties look at: generated tokens, or all, with the prompt"),
    Flag("structure", _LZ, ("--structure",), "WHAT", "scale",
         "what all penalties make of a grammar: scale multiplies the penalty of a token by the share of its bytes that "
         "the grammar leaves free; free does that too, and leaves the tokens that are forced as a whole out of the "
         "history; off does neither"),
    Flag("exempt", _LZ, ("--exempt",), "TEXT", None, "apply no penalty to the tokens of TEXT; repeatable"),
    Flag("repetition_penalty", _OTHERS, ("--repeat-penalty",), "R", None,
         "divide the logits of tokens seen before by R, above 0; 1 is off (default: off)"),
    Flag("frequency_penalty", _OTHERS, ("--frequency-penalty",), "F", 0.0,
         "subtract F from a logit for each occurrence; 0 is off"),
    Flag("presence_penalty", _OTHERS, ("--presence-penalty",), "F", 0.0,
         "subtract F once from the logit of every token seen before; 0 is off"),
    Flag("penalty_window", _OTHERS, ("--repeat-last-n",), "N", -1,
         "tokens these three look back at; 0\xa0turns them off, -1\xa0is all", low=-1),
    Flag("repetition_method", _OTHERS, ("--repeat-method",), "M", "multiplicative",
         "multiplicative or subtractive", choices=_METHODS),
    Flag("frequency_method", _OTHERS, ("--frequency-method",), "M", "subtractive",
         "the same for --frequency-penalty", choices=_METHODS),
    Flag("presence_method", _OTHERS, ("--presence-method",), "M", "subtractive",
         "the same for --presence-penalty", choices=_METHODS),
    Flag("sign_aware", _OTHERS, ("--sign-aware/--no-sign-aware",), None, True,
         "multiply negative logits by R instead of dividing them (default: yes)"),
    Flag("dry_multiplier", _DRY, ("--dry-multiplier",), "A", 0.0,
         "strength, logits; 0 is off, 0.8 is usual; LZ stays on unless --lz-penalty\xa00"),
    Flag("dry_base", _DRY, ("--dry-base",), "B", 1.75, "factor for each further token of a repetition"),
    Flag("dry_allowed_length", _DRY, ("--dry-allowed-length",), "N", 2,
         "shortest repetition whose continuation is penalised, tokens"),
    Flag("dry_penalty_last_n", _DRY, ("--dry-penalty-last-n",), "N", -1,
         "tokens it looks back at, up to 131072; 0 is off, -1\xa0is\xa0131072"),
    Flag("dry_breakers", _DRY, ("--dry-sequence-breaker",), "TEXT", None,
         "no repetition crosses a token that contains TEXT; repeatable; none is no breakers (default: line break, "
         "colon, double quote, asterisk)"),
)  # fmt: skip


@dataclass(frozen=True)
class PenaltyParts:
    """What each penalty does to the logit of one token, and why: the part of a `TokenExplanation` that is theirs.

    Distances and lengths are in tokens, changes in logits. LZ: the match that set the price has ``lz_length`` tokens,
    this one included, and lies ``lz_distance`` tokens back (1 is the last token; 0 is no match). It saves ``lz_bits``,
    for which the token loses ``lz_change``, ``lz_times`` as much (1 to 8) where it came again and again, and nothing
    (``lz_times`` is 0) where it is one of ``lz_numbers`` and has no other match. Repetition, frequency and presence:
    the token came ``count`` times within ``penalty_window`` (0 where all three are off); together they divide its logit
    by ``count_factor`` (or multiply it, as ``sign_aware`` has it) and then add ``count_change``. DRY: the token would
    extend a repetition of ``dry_length`` tokens that lies ``dry_distance`` tokens back, and loses ``dry_change``.
    """

    lz_length: int
    lz_distance: int
    lz_bits: float
    lz_times: float
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
    match = f"match of {counted(parts.lz_length, 'token')}, {parts.lz_distance} back, {parts.lz_bits:.2f} bits"
    match += f", times {parts.lz_times:.3g}" if parts.lz_times > 1 else ""
    match += ", the only one of a number" if parts.lz_length and parts.lz_times == 0 else ""
    return f"LZ {parts.lz_change:+.3f} ({match}){' (exempt)' * exempt}" if parts.lz_length else ""


def _reason_of_dry(parts: PenaltyParts, exempt: bool) -> str:
    match = f"repetition of {counted(parts.dry_length, 'token')}, {parts.dry_distance} back"
    return f"DRY {parts.dry_change:+.3f} ({match}){' (exempt)' * exempt}" if parts.dry_length else ""


# What an explanation says of each penalty, in the order in which a step applies them; "" where there is nothing to say.
REASONS: tuple[Callable[[PenaltyParts, bool], str], ...] = (_reason_of_counts, _reason_of_lz, _reason_of_dry)


class CallSettings(TypedDict, total=False):
    """Keywords of `PenaltySettings` that calls of llama-cpp-python do not have themselves."""

    lz_penalty: float
    lz_window: int | None
    lz_buffer: int | None
    lz_formula: Formula
    lz_min_match: int
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

    Without ``exempt`` and ``dry_breakers``, which may hold strings where there is a vocabulary.
    """

    frequency_penalty: float | None
    presence_penalty: float | None
    logit_bias: Mapping[int, float] | Iterable[tuple[int, float]]


def changed(params: Params, changes: Mapping[str, Any]) -> Params:
    """Return ``params`` with other values in some fields.

    Unlike `dataclasses.replace`, it fits to a new ``lz_min_match`` an ``lz_window``, and to either of them an
    ``lz_buffer``, that are not among the changes and were the usual ones.
    """
    if (
        "lz_buffer" not in changes
        and not {"lz_window", "lz_min_match"}.isdisjoint(changes)
        and has_usual_buffer(params)
    ):
        changes = {**changes, "lz_buffer": None}
    if (
        "lz_window" not in changes
        and "lz_min_match" in changes
        and params.lz_window == usual_window(params.lz_min_match)
    ):
        changes = {**changes, "lz_window": None}
    if changes.get("lz_min_match") == 1:
        changes = {**dict.fromkeys(OF_LONG_MATCHES, ()), **changes}
    for penalty in PENALTIES:
        if penalty.method in changes and penalty.strength not in changes and not penalty.is_on(params):
            changes = {**changes, penalty.strength: None}
    return replace(params, **changes) if changes else params


def sampling_fields(params: Params) -> list[str]:
    """Return the fields of temperature, truncation and pick that are set, which a host that samples itself refuses."""
    default = Params()
    return [name for name in SAMPLING_FIELDS if getattr(params, name) != getattr(default, name)]


def penalties_from(function: str, params: Params | None, settings: Mapping[str, Any], others: Iterable[str]) -> Params:
    """Return the settings of a host that samples itself, from what its user gave: `attach` and its like share this.

    ``settings``: fields of `Params` by name, which replace those of ``params``; without ``params`` they begin from an
    `PRESETS` "default". ``others``: the other keywords of ``function``, to suggest for one that is misspelt.

    Raises TypeError for an unknown name and for ``params`` that are not `Params`; ValueError as `Params`. Warns when
    ``params`` set something for penalties and switch none on, so that nothing would happen.
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
            f"these params set {', '.join(given)} but switch no penalty on, since lz_penalty is 0 in a Params: "
            f"add lz_penalty={PRESETS['default']['lz_penalty']}, or give {function}() the settings as keywords",
            stacklevel=3,
        )
    return made


def warn_without_grammar(params: Params, stacklevel: int) -> None:
    """Warn of a ``structure`` that was chosen for a text without a grammar, which alone it is about."""
    if params.structure != Params.structure:
        warnings.warn(
            f"structure={params.structure!r} has no effect without a grammar: give a grammar, or leave structure out",
            stacklevel=stacklevel,
        )


def _detection(
    field: str, kind: type[RepetitionDetection] | type[StuckDetection], params: Params
) -> RepetitionDetection | StuckDetection | None:
    """Return a detection that was given as such or as a dict of its fields; None where it is off."""
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
    """Return the first difference of two settings that a sampler cannot follow, as "FIELD cannot change", or None.

    Strengths, temperature and truncation can change between steps. What determines the history that a sampler keeps
    cannot, and neither can whether a penalty is on at all.
    """
    for field in _FIXED:
        old, new = getattr(before, field), getattr(after, field)
        if old is not new and old != new:  # a clone has the very lists of its origin, and they are long
            return f"{field} cannot change"
    if (before.structure == "free") != (after.structure == "free"):
        return "structure cannot change from or to free"
    if (before.lz_min_match == 1) != (after.lz_min_match == 1):
        return "lz_min_match cannot change from or to 1"
    for penalty in PENALTIES:
        if penalty.method is None and penalty.is_on(before) != penalty.is_on(after):
            return f"{penalty.strength} cannot be switched on or off"
    if counts(before) != counts(after):
        return "repetition_penalty, frequency_penalty and presence_penalty together cannot be switched on or off"
    return None


_FIXED = (
    "lz_window", "lz_buffer", "penalty_window", "history", "exempt", "repetition_detection", "stuck_detection",
    "pick", "logit_bias",
    "dry_penalty_last_n", "dry_breakers", "lz_breakers", "lz_numbers", "lz_marks",
)  # fmt: skip


def used_breakers(params: Params) -> tuple[str, ...]:
    """Return the fields with breakers that the settings make use of, and ``lz_numbers`` and ``lz_marks`` with them."""
    long = params.lz_penalty > 0 and params.lz_min_match > 1
    return (*(OF_LONG_MATCHES if long else ()), *(["dry_breakers"] if params.dry_multiplier > 0 else []))


def penalises(params: Params) -> bool:
    """Return whether any penalty is on."""
    return any(penalty.is_on(params) for penalty in PENALTIES)


def counts(params: Params) -> bool:
    """Return whether one of the repetition, frequency and presence penalties is on."""
    return any(penalty.is_on(params) for penalty in PENALTIES if penalty.method)


def reach(params: Params) -> int:
    """Return how many of the last tokens the penalties look at, 0 when all are off."""
    return max((penalty.reach(params) for penalty in PENALTIES if penalty.is_on(params)), default=0)


def to_json(params: Params) -> dict[str, Any]:
    """Return the fields for JSON: `logit_bias` as pairs, in which false stands for -inf, as llama-server accepts it."""
    pairs: Any = params.logit_bias
    return {**asdict(params), "logit_bias": [[token, False if bias == -math.inf else bias] for token, bias in pairs]}


def from_json(fields: Mapping[str, Any]) -> Params:
    """Return the `Params` that `to_json` wrote; ValueError, as from `Params`, when a value is out of range."""
    pairs = [(token, -math.inf if bias is False else bias) for token, bias in fields.get("logit_bias", ())]
    return Params(**{**fields, "logit_bias": pairs})
