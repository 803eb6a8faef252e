"""`Settings` of a call of an attached model, and `Stats` of what an attachment has counted."""

import inspect
from dataclasses import dataclass
from typing import Literal, get_args

from .._check import boolean
from ..constraint.grammar import Grammar
from ..decoding.draft import Draft, Speculated
from ..decoding.recovery import Action, LoopPolicy, LoopRule, OnLoop
from ..detection import Loop
from ..errors import ArgumentError, ArgumentTypeError
from ..llama.binding import llama_cpp
from ..llama.graph import Place, check_place
from ..params import PENALTY_FIELDS, Params, sampling_fields

LoopFinishReason = Literal["stop", "length", "repetition"]

FLAGS = {
    "grammar": Grammar | None,
    "fast_grammar": bool,
    "on_loop": OnLoop | None,
    "loop_rule": LoopRule | None,
    "max_rescues": int,
    "loop_finish_reason": LoopFinishReason,
    "draft": Draft | None,
    "sampler": Place,
}
OURS = (*PENALTY_FIELDS, "params", *FLAGS)
_THEIRS = inspect.signature(llama_cpp.Llama.create_completion).parameters


@dataclass
class Stats:
    """What an attachment has counted: ``calls`` (texts begun), ``tokens`` accepted, ``loops`` that ended a text.

    ``last_loop``: the last of these loops, in positions of its text's tokens; None if that text was stuck without one.
    ``rescues``: how often rewind, close-think or kick acted; ``actions``: the records of what was done in the last text
    that looped. ``refused``: picks that the grammar refused, with ``fast_grammar``. ``seed``: that of the last text.
    ``speculated``: the figures of the draft over all texts that it drafted for; None without a draft. ``sampler``:
    where the penalties of the last text were applied.
    """

    calls: int = 0
    tokens: int = 0
    loops: int = 0
    last_loop: Loop | None = None
    rescues: int = 0
    actions: tuple[Action, ...] = ()
    refused: int = 0
    seed: int | None = None
    speculated: Speculated | None = None
    sampler: Literal["cpu", "graph"] = "cpu"


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
    draft: Draft | None = None
    sampler: Place = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.params, Params):
            raise ArgumentTypeError(f"params must be a Params, got {self.params!r}")
        for field in sampling_fields(self.params):
            value = getattr(self.params, field)
            how = f"; pass it to the call, as in llm(prompt, {field}={value!r})" if field in _THEIRS else ""
            raise ArgumentError(f"{field}={value!r} cannot be set here, where llama-cpp-python does the sampling{how}")
        if self.grammar is not None and not isinstance(self.grammar, Grammar):
            how = "a LlamaGrammar goes into the calls of the model"
            raise ArgumentTypeError(f"grammar must be a Grammar of lzsampler, got {self.grammar!r:.80}; {how}")
        if self.grammar is not None and self.on_loop == "close-think":
            raise ArgumentError(
                "on_loop='close-think' writes a mark that a grammar may refuse: use rewind, kick or stop"
            )
        boolean("fast_grammar", self.fast_grammar)
        LoopPolicy(self.on_loop, self.loop_rule, self.max_rescues)  # which checks them
        if self.loop_finish_reason not in get_args(LoopFinishReason):
            names = ", ".join(get_args(LoopFinishReason))
            raise ArgumentError(f"loop_finish_reason must be one of {names}, got {self.loop_finish_reason!r}")
        check_place(self.sampler)
        if self.draft is not None:
            _check_draft(self.draft)

    def settled(self) -> tuple[LoopPolicy, Params]:
        """Return what is done about loops, and the params with the detectors that it needs."""
        return LoopPolicy(self.on_loop, self.loop_rule, self.max_rescues).settled(self.params)


def _check_draft(draft: object) -> None:
    """Raise TypeError for what is not a `Draft`, ValueError for one that is not for a `llama_cpp.Llama`."""
    if not isinstance(draft, Draft):
        raise ArgumentTypeError(f"draft must be a Draft, got {draft!r:.100}: Draft(Model(path)) or Draft(lookup=3)")
    if draft.mode != "gumbel":
        raise ArgumentError(
            f"mode must be gumbel with a llama_cpp.Llama, whose chain draws for draft and target, got {draft.mode!r}"
        )
    if draft.on_proposed is not None:
        raise ArgumentError("on_proposed is for lzsampler.generate: leave it out")
