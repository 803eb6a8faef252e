"""`Generation`: a text that was written, and how; and its `Timings`."""

from dataclasses import dataclass
from typing import Literal

from ..detection import Loop, Stuck
from .actions import ActionTaken
from .draft import Speculated

FinishReason = Literal["stop", "repetition", "length", "context", "interrupted"]


@dataclass(frozen=True)
class Timings:
    """Times in seconds. ``prompt``: decoding the prompt; ``decode``: decoding the new tokens; ``sampling``: picking
    them; ``total``: everything together.

    A decode ends when its logits can be read, so that it includes what llama.cpp does in the background.
    """

    prompt: float
    decode: float
    sampling: float
    total: float


@dataclass(frozen=True)
class Generation:
    """What `generate` made.

    ``text``: everything that was written; ``reasoning`` and ``content``: its two parts, where the model marks its
    reasoning by `<think>` and `</think>` or by marks of its own. Reasoning is None where there is no such block or an
    empty one, a block that was never closed reaches to the end of the text, and a text that is a value or a choice from
    its first token on (`Grammar.is_value`) is content. ``tokens``: the ids, without the token
    that ends a text (EOG) and with those of a stop string. ``finish_reason``: "stop" (EOG, or ``stop_string``),
    "repetition" (``loop`` or ``stuck``), "length" (``max_tokens``), "context" (the context is full), or "interrupted"
    (Ctrl-C, or ``on_text`` asked for it). ``loop`` and ``stuck``: the loop, or the stretch without anything new, that
    ended the text, in tokens; None for what did not. ``actions``: everything that was done about loops, in its order;
    what was cut is in their ``cut`` and no more in ``tokens`` and ``text``. ``speculated``: the figures of a draft.
    ``forced``: new tokens that were not sampled, since the grammar allowed nothing else. ``constrained``: the part of
    ``text`` that the grammar is about, "" where it did not begin; None without a grammar. ``sampler``: where penalties
    were applied, on the "cpu" or in llama.cpp's "graph".

    ``template_unused``: the prompt was plain text, the model has a chat template, and it answered with nothing. Models
    that were trained to chat often do that, so the caller may want to suggest the template.
    """

    text: str
    reasoning: str | None
    content: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason
    stop_string: str | None
    loop: Loop | None
    prompt_tokens: int
    timings: Timings
    template_unused: bool = False
    stuck: Stuck | None = None
    actions: tuple[ActionTaken, ...] = ()
    speculated: Speculated | None = None
    forced: int = 0
    constrained: str | None = None
    sampler: Literal["cpu", "graph"] = "cpu"

    @property
    def completion_tokens(self) -> int:
        """Number of new tokens: those of ``tokens`` and those that were cut."""
        return len(self.tokens) + sum(len(action.cut) for action in self.actions)

    @property
    def tokens_per_second(self) -> float:
        """New tokens a second, over all the time but that of the prompt; 0 when there are none."""
        return self.completion_tokens / max(self.timings.total - self.timings.prompt, 1e-9)

    @property
    def sampling_microseconds(self) -> float:
        """Microseconds a token in the sampler, which picks it and takes it into its history."""
        return 1e6 * self.timings.sampling / max(self.completion_tokens, 1)
