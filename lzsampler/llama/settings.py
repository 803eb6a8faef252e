"""`Settings` of a call of an attached model, and `Stats` of what an attachment has counted."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from .._check import boolean
from ..constraint.grammar import Grammar
from ..errors import ArgumentTypeError
from ..params import PENALTY_FIELDS, PRESETS, Params, sampling_fields
from ..sampler import Loop
from ..util.rescue import Action, LoopPolicy, LoopRule, OnLoop
from .binding import llama_cpp
from .vocabulary import dry_breaker_ids, exempt_ids, lz_breaker_ids

if TYPE_CHECKING:
    from .drafted import Draft, Speculated

LoopFinishReason = Literal["stop", "length", "repetition"]

FLAGS = {
    "grammar": Grammar | None,
    "fast_grammar": bool,
    "on_loop": OnLoop | None,
    "loop_rule": LoopRule | None,
    "max_rescues": int,
    "loop_finish_reason": LoopFinishReason,
    "draft": "Draft | None",
}
OURS = (*PENALTY_FIELDS, "params", *FLAGS)
_TOKENS_OF: dict[str, Callable[[Any, list[str]], tuple[int, ...]]] = {  # fields that may hold strings here
    "exempt": exempt_ids,
    "lz_breakers": lz_breaker_ids,
    "dry_breakers": dry_breaker_ids,
}
_THEIRS = inspect.signature(llama_cpp.Llama.create_completion).parameters


@dataclass
class Stats:
    """What an attachment has counted: ``calls`` (texts begun), ``tokens`` accepted, ``loops`` that ended a text.

    ``last_loop``: the last of these loops, in positions of its text's tokens; None if that text was stuck without one.
    ``rescues``: how often rewind, close-think or kick acted; ``actions``: the records of what was done in the last text
    that looped. ``refused``: picks that the grammar refused, with ``fast_grammar``. ``seed``: that of the last text.
    ``speculated``: the figures of the draft over all texts that it drafted for; None without a draft.
    """

    calls: int = 0
    tokens: int = 0
    loops: int = 0
    last_loop: Loop | None = None
    rescues: int = 0
    actions: tuple[Action, ...] = ()
    refused: int = 0
    seed: int | None = None
    speculated: "Speculated | None" = None


@dataclass(frozen=True)
class Settings:
    """The settings of a call."""

    params: Params
    grammar: Grammar | None = None
    fast_grammar: bool = False
    on_loop: OnLoop | None = None
    loop_rule: LoopRule | None = None
    max_rescues: int = 3
    loop_finish_reason: LoopFinishReason = "stop"
    draft: "Draft | None" = None

    def __post_init__(self) -> None:
        if not isinstance(self.params, Params):
            raise ArgumentTypeError(f"params must be a Params, got {self.params!r}")
        for field in sampling_fields(self.params):
            value = getattr(self.params, field)
            how = f"; pass it to the call, as in llm(prompt, {field}={value!r})" if field in _THEIRS else ""
            raise ValueError(f"{field}={value!r} cannot be set here, where llama-cpp-python does the sampling{how}")
        if self.grammar is not None and not isinstance(self.grammar, Grammar):
            how = "a LlamaGrammar goes into the calls of the model"
            raise ArgumentTypeError(f"grammar must be a Grammar of lzsampler, got {self.grammar!r:.80}; {how}")
        if self.grammar is not None and self.on_loop == "close-think":
            raise ValueError("on_loop='close-think' writes a mark that a grammar may refuse: use rewind, kick or stop")
        boolean("fast_grammar", self.fast_grammar)
        LoopPolicy(self.on_loop, self.loop_rule, self.max_rescues)  # which checks them
        if self.loop_finish_reason not in get_args(LoopFinishReason):
            names = ", ".join(get_args(LoopFinishReason))
            raise ValueError(f"loop_finish_reason must be one of {names}, got {self.loop_finish_reason!r}")
        if self.draft is not None:
            from .drafted import check_draft

            check_draft(self.draft)

    def settled(self) -> tuple[LoopPolicy, Params]:
        """Return what is done about loops, and the params with the detectors that it needs."""
        return LoopPolicy(self.on_loop, self.loop_rule, self.max_rescues).settled(self.params)


def with_token_ids(llm: Any, fields: Mapping[str, Any], params: Params | None) -> dict[str, Any]:
    """Return fields of `Params` with token ids in the place of strings, to replace those of ``params``.

    Where ``fields`` switch DRY on, and it has no breakers yet, it gets llama.cpp's. Where they, or the defaults without
    ``params``, ask for an ``lz_min_match`` above 1, and it was 1 before, LZ gets lzsampler's.
    """
    made = dict(fields)
    for name, tokens_of in _TOKENS_OF.items():
        given = made.get(name, ())
        if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
            raise ArgumentTypeError(f"{name} must be a sequence of token ids and strings, got {given!r}")
        if name in made:
            tokens = list(given)
            strings = [token for token in tokens if isinstance(token, str)]
            ids = tokens_of(llm, strings) if strings else ()
            made[name] = (*(token for token in tokens if not isinstance(token, str)), *ids)
    if made.get("dry_multiplier") and "dry_breakers" not in made and not (params and params.dry_breakers):
        made["dry_breakers"] = dry_breaker_ids(llm)
    min_match = made.get("lz_min_match", PRESETS["default"]["lz_min_match"] if params is None else 1)
    if min_match != 1 and "lz_breakers" not in made and (params is None or params.lz_min_match == 1):
        made["lz_breakers"] = lz_breaker_ids(llm)
    return made
