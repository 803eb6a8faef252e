"""`Draft`: a draft model and how it is used; `Speculator`, which writes a `Text` with it; `Speculated`, its figures.

Two contexts of llama.cpp stay at the tokens that stand: what falls is purged from both, and none is decoded twice.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .._check import integer
from ..errors import ArgumentTypeError, LzsError
from ..llama.binding import llama_cpp
from ..llama.model import Model
from .verification import MAX_DRAFT, SPEC_MODES, SpecMode, Speculation, Verified

if TYPE_CHECKING:
    from .generate import Text

N_MAX = 3  # llama.cpp's --spec-draft-n-max


@dataclass(frozen=True)
class Draft:
    """A draft model, opened as a `Model` of its own, and how it is used, with llama.cpp's names.

    ``n_max``: most tokens of a block, 0..32; 0 drafts nothing. ``n_min``: blocks with fewer tokens are not used, 0 to
    ``n_max``; only 0 in mode "mrs", which has to judge what was drawn. ``p_min``: drafting stops where the draft gives
    its best token a lower probability, 0..1, among its ten best at temperature 1. ``mode``: see `Speculation`.

    A draft should have the context of the target (``n_ctx``); where it is full, nothing is drafted. ValueError for what
    is out of range.
    """

    model: Model
    n_max: int = N_MAX
    n_min: int = 0
    p_min: float = 0.0
    mode: SpecMode = "gumbel"

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise ArgumentTypeError(f"a draft is a Model, got {self.model!r:.100}")
        if self.mode not in SPEC_MODES:
            raise ValueError(f"mode must be one of {', '.join(SPEC_MODES)}, got {self.mode!r}")
        integer("n_max", self.n_max, 0, MAX_DRAFT)
        integer("n_min", self.n_min, 0, self.n_max, high_is=", which is n_max")
        if self.mode == "mrs" and self.n_min:
            raise ValueError(f"n_min must be 0 in mode mrs, which has to judge what was drawn, got {self.n_min}")
        if not isinstance(self.p_min, int | float) or not 0 <= self.p_min <= 1:
            raise ValueError(f"p_min must be from 0 to 1, got {self.p_min!r}")


@dataclass
class Speculated:
    """Figures of a text. ``drafted`` and ``accepted``: tokens. ``blocks``: calls of the target that judged drafted
    tokens, and ``tokens`` what these calls added to the text; ``plain``: calls without a drafted token. ``draft_s``:
    seconds that the draft model took.
    """

    drafted: int = 0
    accepted: int = 0
    blocks: int = 0
    tokens: int = 0
    plain: int = 0
    draft_s: float = 0.0

    @property
    def acceptance(self) -> float:
        """The share of drafted tokens that stand; 0 when there are none."""
        return self.accepted / max(self.drafted, 1)

    @property
    def tokens_per_call(self) -> float:
        """Tokens that a call of the target adds to the text, on average; 0 when there was no call."""
        return (self.tokens + self.plain) / max(self.blocks + self.plain, 1)

    def __str__(self) -> str:
        if not self.blocks:
            return "nothing was drafted"
        return f"accepted {100 * self.acceptance:.0f} %, {self.tokens_per_call:.1f} tokens a call"


class Speculator:
    """Writes a text whose tokens a draft model proposes. The prompt is in the target's context.

    Tokens are decoded one by one where something steers the sampler from token to token: while a loop is acted on,
    where penalties or actions apply in parts of a text only, and for explanations.
    """

    def __init__(self, text: "Text", draft: Draft) -> None:
        if text.own is None:
            raise ValueError("a draft needs the sampler of the text's own settings")
        self.figures = Speculated()
        self._text, self._draft, self._target = text, draft, text.model
        self._speculation = Speculation(
            text.own,
            mode=draft.mode,
            max_draft=draft.n_max,
            n_draft_vocab=draft.model.n_vocab,
            ends=self._target.eog_tokens,
        )

    def follow(self, token: int) -> int | None:
        """Decode a token that was taken, and take those after it, as `Text.follow` does with one."""
        made = self._block(token) if self._text.steady else None
        if made is not None:
            return self._text.take_all(made.tokens, made.looping)
        self.figures.plain += 1
        return self._text.follow(token)

    def _block(self, token: int) -> Verified | None:
        """Decode a token and a block of drafted ones; None where nothing was drafted, or too little."""
        text, least = self._text, max(self._draft.n_min, 1)
        room = self._room()
        if room < least:
            return None
        before = perf_counter()
        try:
            drafted = self._drafted(room)
            self.figures.draft_s += perf_counter() - before
            text.decode_s += perf_counter() - before
            if len(drafted) >= least:
                return self._verified(token, drafted)
        except ValueError as error:
            raise text.failure(error) from error
        finally:
            self._speculation.discard()  # what an error or an interrupt left, or too short a block
        return None

    def _room(self) -> int:
        """The most tokens that can be drafted now: both contexts, the batch and the text have an end."""
        target, draft, text = self._target, self._draft.model, self._text
        length = target.n_past + 1  # of the prompt and the text
        ends = (target.n_ctx - length, draft.n_ctx - length + 1, target.n_batch - 1)
        return min(self._draft.n_max, text.n_predict - len(text.tokens) - 1, *ends)

    def _drafted(self, room: int) -> list[int]:
        """Draft a block, none to ``room`` tokens."""
        model, text, speculation = self._draft.model, self._text, self._speculation
        self._purge(model, text.known(model.past))
        model.decode(text.after(model.n_past))
        drafted: list[int] = []
        while len(drafted) < room:
            token = speculation.draft_at(model.logits_pointer(), self._draft.p_min)
            if token is None:
                break
            drafted.append(token)
            if self._target.is_eog(token) or len(drafted) == room:
                break
            model.decode(drafted[-1:])
        return drafted

    def _verified(self, token: int, drafted: list[int]) -> Verified:
        text, target, figures = self._text, self._target, self.figures
        before = perf_counter()
        rows = target.decode_for_rows([token, *drafted])
        decoded = perf_counter()
        made = self._speculation.verify_at(rows)
        text.sampling_s += perf_counter() - decoded
        text.decode_s += decoded - before
        # The last token is to be decoded next, also where it was drafted: where a loop ended the block.
        stand = target.n_past - len(drafted) - 1 + len(made.tokens)
        for model in (target, self._draft.model):
            self._purge(model, stand)
        figures.blocks += 1
        figures.drafted += len(drafted)
        figures.accepted += made.n_accepted
        figures.tokens += len(made.tokens)
        return made

    def _purge(self, model: Model, n: int) -> None:
        if n < model.n_past:
            model.keep(n)


def refuse_draft(target: Model, draft: Model) -> None:
    """Raise LzsError for a draft that cannot draft for a target, ValueError for one that is the target itself.

    Their vocabularies must have the same kind, special tokens and texts; one may be longer. Recurrent and hybrid
    models cannot take back tokens that fall.
    """
    if draft is target:
        raise ValueError("the draft is the target itself: open the file again for a context of its own")
    for model in (target, draft):
        for kind in ("recurrent", "hybrid"):
            asked: Any = getattr(llama_cpp, f"llama_model_is_{kind}", None)  # llama-cpp-python 0.3.17 has one of them
            if asked is not None and asked(model.llm.model):
                raise LzsError(
                    f"{model.path.name} is a {kind} model ({model.header.architecture}), "
                    "which cannot take tokens back: leave out the draft"
                )
    a, b = target.header, draft.header
    names = f"{b.path.name} cannot draft for {a.path.name}"
    for key in ("model", "add_bos_token", "add_eos_token"):
        x, y = (header.metadata.get(f"tokenizer.ggml.{key}") for header in (a, b))
        if x != y:
            raise LzsError(f"{names}: their tokenizers differ in {key} ({y!r} against {x!r})")
    for i, (x, y) in enumerate(zip(a.vocabulary, b.vocabulary, strict=False)):
        if x != y:
            raise LzsError(f"{names}: token {i} is {y!r:.60} in one vocabulary and {x!r:.60} in the other")
    for role in ("bos", "eos", "eot"):
        x, y = (header.special_tokens.get(role, (None, ""))[0] for header in (a, b))
        if x != y:
            raise LzsError(f"{names}: the {role} token is {y} in one vocabulary and {x} in the other")
