"""`Settings` of a call of an attached model, and `Stats`, the counts of an attachment."""

import inspect
from dataclasses import dataclass
from typing import Literal, get_args

from .._check import boolean
from ..constraint.grammar import Grammar
from ..decoding.actions import ActionTaken
from ..decoding.draft import Draft, Speculated
from ..decoding.parts import PARTS
from ..decoding.policy import LoopPolicy
from ..detection import Loop
from ..errors import ArgumentError, ArgumentTypeError
from ..llama.binding import llama_cpp
from ..llama.graph import Place, check_place
from ..params import PENALTY_FIELDS, Params, sampling_fields

LoopFinishReason = Literal["stop", "length", "repetition"]

FLAGS = {
    "grammar": Grammar | None,
    "fast_grammar": bool,
    "on_loop": LoopPolicy | str | None,
    "loop_finish_reason": LoopFinishReason,
    "draft": Draft | None,
    "sampler": Place,
}
OURS = (*PENALTY_FIELDS, "params", *FLAGS)
_THEIRS = inspect.signature(llama_cpp.Llama.create_completion).parameters


@dataclass
class Stats:
    """The counts of an attachment.

    ``calls``: number of texts that were begun. ``tokens``: number of accepted tokens. ``loops``: number of texts that
    ended in a loop. ``last_loop``: the loop of the last of these texts, in tokens of that text; None if that text ended
    in a stretch with almost no new text. ``recoveries``: number of actions after which the text continued. ``actions``:
    the actions in the last text that looped. ``refused``: picks that the grammar refused, with ``fast_grammar``.
    ``seed``: the seed of the last text. ``speculated``: the statistics of the draft over all its texts; None without a
    draft. ``sampler``: where the penalties of the last text were applied.
    """

    calls: int = 0
    tokens: int = 0
    loops: int = 0
    last_loop: Loop | None = None
    recoveries: int = 0
    actions: tuple[ActionTaken, ...] = ()
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
    on_loop: LoopPolicy | str | None = None
    loop_finish_reason: LoopFinishReason = "stop"
    draft: Draft | None = None
    sampler: Place = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.params, Params):
            raise ArgumentTypeError(f"params must be a Params, got {self.params!r}")
        for field in sampling_fields(self.params):
            value = getattr(self.params, field)
            how = f"; pass it to the call, as in llm(prompt, {field}={value!r})" if field in _THEIRS else ""
            raise ArgumentError(f"{field}={value!r} cannot be set here, because llama-cpp-python samples{how}")
        if self.grammar is not None and not isinstance(self.grammar, Grammar):
            how = "a LlamaGrammar goes into the calls of the model"
            raise ArgumentTypeError(f"grammar must be a Grammar of lzsampler, got {self.grammar!r:.80}; {how}")
        object.__setattr__(self, "on_loop", LoopPolicy.of(self.on_loop))  # the dataclass is frozen
        if self.grammar is not None:
            self.loops.refuse_beside_grammar()
        if self.loops.loop_scope != PARTS or self.loops.penalty_scope != PARTS:
            raise ArgumentError("loop_scope and penalty_scope are for lzsampler.generate: leave them out here")
        boolean("fast_grammar", self.fast_grammar)
        if self.loop_finish_reason not in get_args(LoopFinishReason):
            names = ", ".join(get_args(LoopFinishReason))
            raise ArgumentError(f"loop_finish_reason must be one of {names}, got {self.loop_finish_reason!r}")
        check_place(self.sampler)
        if self.draft is not None:
            _check_draft(self.draft)

    @property
    def loops(self) -> LoopPolicy:
        """What to do about loops: ``on_loop`` as a `LoopPolicy`."""
        assert isinstance(self.on_loop, LoopPolicy)
        return self.on_loop

    def settled(self) -> tuple[LoopPolicy, Params]:
        """Return the loop policy, and the params with the detectors that it needs."""
        return self.loops.settled(self.params)


def _check_draft(draft: object) -> None:
    """Raise TypeError for an object that is not a `Draft`, ValueError for a draft unusable with a `llama_cpp.Llama`."""
    if not isinstance(draft, Draft):
        raise ArgumentTypeError(
            f"draft must be a Draft, got {draft!r:.100}: give Draft(Model(path)) or Draft(lookup=3)"
        )
    if draft.mode != "gumbel":
        raise ArgumentError(
            f"mode must be gumbel with a llama_cpp.Llama, whose chain draws for draft and target, got {draft.mode!r}"
        )
    if draft.on_proposed is not None:
        raise ArgumentError("on_proposed is for lzsampler.generate: leave it out")
