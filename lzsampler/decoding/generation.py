"""`Generation`: a text that was written, how it was written, and its `Timings`."""

from dataclasses import dataclass
from typing import Literal

from ..detection import Loop, Stuck
from .actions import ActionTaken
from .draft import Speculated

FinishReason = Literal["stop", "repetition", "length", "context", "interrupted"]


@dataclass(frozen=True)
class Timings:
    """Times in seconds: ``prompt`` for decoding the prompt, ``decode`` for decoding the new tokens, ``sampling`` for
    picking the new tokens, and ``total`` for everything.

    A decode ends when its logits can be read, so it includes the work that llama.cpp does in the background.
    """

    prompt: float
    decode: float
    sampling: float
    total: float


@dataclass(frozen=True)
class Generation:
    """The result of `generate`.

    ``text``: the whole text. ``reasoning`` and ``content``: the two parts of ``text``, if the model marks its reasoning
    by `<think>` and `</think>` or by marks of its own. ``reasoning`` is None if there is no reasoning block, or if it
    is empty. A reasoning block that was never closed extends to the end of the text. If the grammar makes the text a
    value or a choice from its first token on (`Grammar.is_value`), all of the text is content.

    ``tokens``: the token ids of the text, including the tokens of a stop string, but not the end token (EOG).
    ``finish_reason``: "stop" (EOG, or ``stop_string``), "repetition" (``loop`` or ``stuck``), "length"
    (``max_tokens``), "context" (the context is full), or "interrupted" (Ctrl-C, or ``on_text`` asked to end). ``loop``:
    the loop that ended the text, in tokens, or None. ``stuck``: the stretch with almost no new text that ended the
    text, in tokens, or None. ``actions``: the actions on loops, in order. Tokens that an action cut are in the ``cut``
    of its `ActionTaken`, and no longer in ``tokens`` and ``text``.

    ``speculated``: statistics of the draft, or None. ``forced``: number of new tokens that were not sampled because the
    grammar allowed no other token. ``constrained``: the part of ``text`` that the grammar constrained; "" if the text
    ended before the grammar began; None without a grammar. ``sampler``: where penalties were applied, on the "cpu" or
    in llama.cpp's "graph".

    ``template_unused``: whether the text is empty although the prompt was plain text and the model has a chat template.
    Chat models often answer plain text with nothing, so the caller may suggest the template.
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
        """Number of new tokens, including the tokens that actions cut."""
        return len(self.tokens) + sum(len(action.cut) for action in self.actions)

    @property
    def tokens_per_second(self) -> float:
        """New tokens a second, without the time of the prompt; 0 if there are no new tokens."""
        return self.completion_tokens / max(self.timings.total - self.timings.prompt, 1e-9)

    @property
    def sampling_microseconds(self) -> float:
        """Microseconds that the sampler takes to pick one token and to add it to its history, on average."""
        return 1e6 * self.timings.sampling / max(self.completion_tokens, 1)
