"""`Draft`: the source of proposed tokens. `Speculated`: statistics of a draft. `refuse_draft`: checks a draft."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal
from weakref import WeakKeyDictionary

from .._check import integer
from .._values import shown
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..llama.binding import llama_cpp
from ..llama.gguf import Header
from ..llama.model import Model
from ..llama.rounding import warn_of_rounding
from .lookup import MAX_MATCH
from .pacing import AUTO_MOST, Pace
from .verification import MAX_DRAFT, SPEC_MODES, SpecMode

Length = int | Literal["auto"]
N_MAX = 3  # default of llama.cpp's --spec-draft-n-max
DraftKind = Literal["model", "lookup", "model+lookup"]


@dataclass(frozen=True)
class Draft:
    """Says what proposes tokens, and how the proposed tokens are used. The names of the fields are llama.cpp's.

    ``model``: a draft model, opened as a `Model` of its own. ``lookup``: the length of the shortest match, in tokens,
    1..65535; 0 turns lookup off. If the end of the text matches an earlier place in prompt or text, the tokens that
    followed there are proposed. With a model and a lookup, the model drafts. A match is used if the model proposes too
    few tokens, or if ``n_max`` is "auto" and the match promises more tokens a second.

    ``n_max``: the most tokens of a block, 0..32; 0 drafts nothing. "auto" uses `Pace` to choose the fastest length,
    which may be 0. ``n_min``: the fewest tokens of a block, 0 to ``n_max``; a shorter block is not used. ``p_min``
    (0..1): the draft model stops before a token with a probability below ``p_min``. For this probability only the ten
    best tokens count, at temperature 1. ``mode``: see `Speculation`. In mode "mrs" the text of a seed depends on the
    length of blocks, so "auto" means 3. In this mode ``n_min`` must be 0, because every drawn token has to be judged.

    The measurements of "auto" in one text are used for the next text of the same draft and target.

    ``on_proposed`` is called before text is handed out, whenever the source of the tokens changes: with True before
    accepted draft tokens, with False before tokens of the target. ``clock``: a function that returns the time in
    seconds, for the measurements of "auto". No text depends on the clock.

    Open the draft model with the context size of the target (``n_ctx``). When the draft model's context is full, it
    drafts nothing. Raises ValueError for values out of range.
    """

    model: Model | None = None
    n_max: Length = "auto"
    n_min: int = 0
    p_min: float = 0.0
    mode: SpecMode = "gumbel"
    lookup: int = 0
    on_proposed: Callable[[bool], object] | None = field(default=None, repr=False)
    clock: Callable[[], float] = field(default=perf_counter, repr=False)
    _paces: WeakKeyDictionary[Model, Pace] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.model is not None and not isinstance(self.model, Model):
            raise ArgumentTypeError(f"a draft is a Model, got {self.model!r:.100}")
        integer("lookup", self.lookup, 0, MAX_MATCH)
        if self.model is None and not self.lookup:
            raise ArgumentError("a draft needs a source of tokens: give Draft(Model(path)) or Draft(lookup=3)")
        if self.mode not in SPEC_MODES:
            raise ArgumentError(f"mode must be one of {', '.join(SPEC_MODES)}, got {shown(self.mode)}")
        if isinstance(self.n_max, str) and self.n_max != "auto":
            raise ArgumentError(f"n_max must be auto or from 0 to {MAX_DRAFT}, got {shown(self.n_max)}")
        if not isinstance(self.n_max, str):
            integer("n_max", self.n_max, 0, MAX_DRAFT)
        integer("n_min", self.n_min, 0, self.most, high_is=f", which is {self._most_is}")
        if self.mode == "mrs" and self.n_min:
            raise ArgumentError(f"n_min must be 0 in mode mrs, which judges every drawn token, got {self.n_min}")
        if not isinstance(self.p_min, int | float) or not 0 <= self.p_min <= 1:
            raise ArgumentError(f"p_min must be from 0 to 1, got {self.p_min!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_paces"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _paces=WeakKeyDictionary())  # a copy makes its own measurements

    def pace(self, target: Model) -> Pace:
        """Return the pace for a new text of a target. The pace begins with the measurements of the last text."""
        last = self._paces.get(target)
        pace = self._paces[target] = Pace(self.most, self.fixed) if last is None else last.renewed()
        return pace

    @property
    def fixed(self) -> int | None:
        """The length of blocks; None if `Pace` chooses it."""
        if not isinstance(self.n_max, str):
            return int(self.n_max)
        return N_MAX if self.mode == "mrs" else None

    @property
    def most(self) -> int:
        """The longest block."""
        return AUTO_MOST if self.fixed is None else self.fixed

    @property
    def _most_is(self) -> str:
        return "the longest block of n_max auto" if isinstance(self.n_max, str) else "n_max"

    @property
    def kind(self) -> DraftKind:
        """Which sources propose tokens: the model, lookup, or both."""
        if self.model is None:
            return "lookup"
        return "model+lookup" if self.lookup else "model"

    def to_json(self) -> dict[str, Any]:
        """Return the settings of the draft, for a transcript."""
        model = None if self.model is None else self.model.header
        return {
            "kind": self.kind,
            "model": None if model is None else {"name": model.name, "file": model.path.name, "size": model.file_bytes},
            "mode": self.mode,
            "n_max": self.n_max if isinstance(self.n_max, str) else int(self.n_max),
            "n_min": int(self.n_min),
            "p_min": float(self.p_min),
            "lookup": int(self.lookup),
        }


@dataclass
class Speculated:
    """Statistics of a draft over one text or several texts.

    ``drafted`` and ``accepted``: numbers of tokens. ``blocks``: calls of the target that judged drafted tokens.
    ``tokens``: tokens that these calls added to the text. ``plain``: calls without a drafted token. ``draft_s``:
    seconds of drafting.

    ``speed``: the speed as a multiple of the speed without a draft, computed from the times of this run; None if there
    are too few times. ``off``: whether drafting was slower and was stopped. ``speed`` is then the speed that the best
    length of blocks would have.
    """

    drafted: int = 0
    accepted: int = 0
    blocks: int = 0
    tokens: int = 0
    plain: int = 0
    draft_s: float = 0.0
    speed: float | None = None
    off: bool = False

    @property
    def acceptance(self) -> float:
        """The share of drafted tokens that were accepted; 0 if no token was drafted."""
        return self.accepted / max(self.drafted, 1)

    @property
    def tokens_per_call(self) -> float:
        """Tokens that a call of the target adds to the text, on average; 0 if there was no call."""
        return (self.tokens + self.plain) / max(self.blocks + self.plain, 1)

    def judged(self, drafted: int, accepted: int, tokens: int) -> None:
        """Count a block: its drafted tokens, its accepted tokens, and the tokens that it added to the text."""
        self.blocks += 1
        self.drafted += drafted
        self.accepted += accepted
        self.tokens += tokens

    def add(self, other: "Speculated | None") -> None:
        """Add the figures of another text, if there are any. ``speed`` becomes the speed of that text."""
        if other is not None:
            for name in ("drafted", "accepted", "blocks", "tokens", "plain", "draft_s"):
                setattr(self, name, getattr(self, name) + getattr(other, name))
            self.speed, self.off = other.speed, other.off

    def rated(self, pace: Pace) -> None:
        """Set ``speed`` and ``off`` from the measurements."""
        self.speed, promised, self.off = pace.speed, pace.promised, False
        if pace.fixed is None and self.speed is not None and promised is not None:
            self.off = promised <= 1 and self.speed <= 1
            self.speed = promised if self.off else self.speed

    def __str__(self) -> str:
        if not self.blocks:
            return "nothing was drafted"
        speed = "" if self.speed is None else f"{self.speed:.2f}x"
        if self.off:
            return f"off, would be {speed}"
        made = f"accepted {100 * self.acceptance:.0f} %, {self.tokens_per_call:.1f} tokens a call"
        return f"{made}, {speed}" if speed else made

    def to_json(self) -> dict[str, Any]:
        """Return the figures, for a transcript."""
        return {
            "calls": self.blocks,
            "proposed": self.drafted,
            "accepted": self.accepted,
            "calls_without": self.plain,
            "tokens_per_call": round(self.tokens_per_call, 3),
            "draft_seconds": round(self.draft_s, 6),
            "speed": None if self.speed is None else round(self.speed, 3),
            "off": self.off,
        }


def common_length(a: Sequence[object], b: Sequence[object]) -> int:
    """Return the length of the longest common prefix of two sequences of tokens."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@dataclass(frozen=True)
class Opened:
    """A target for `refuse_draft` that is not a `Model`: the header of its file, a `llama_cpp.Llama`, and sizes in
    tokens.
    """

    header: Header
    llm: Any
    n_ctx: int
    n_batch: int


def refuse_draft(target: Model | Opened, draft: Draft) -> None:
    """Raise LzsError if a draft model cannot draft for a target, and ValueError if the model is the target itself.

    Both vocabularies must have the same type, special tokens and token texts; one vocabulary may be longer. Recurrent
    and hybrid models cannot take back rejected tokens. Raises ValueError if no block fits in the context or in a batch
    of the target; TypeError for an object that is not a `Draft`.
    """
    if not isinstance(draft, Draft):
        raise ArgumentTypeError(f"draft must be a Draft, got {draft!r:.100}: give Draft(Model(path))")
    if target.n_batch < 2:
        raise ArgumentError(
            f"n_batch must be at least 2 with a draft, which is judged in one batch, got {target.n_batch}"
        )
    if not isinstance(draft.n_max, str) and draft.n_max > target.n_ctx - 2:
        raise ArgumentError(
            f"n_max must be at most {target.n_ctx - 2} in a context of {target.n_ctx}, got {draft.n_max}"
        )
    if draft.model is not None and draft.model.llm is target.llm:
        raise ArgumentError("the draft is the target itself: open the file again for the draft")
    for model in [target] if draft.model is None else [target, draft.model]:
        for kind in ("recurrent", "hybrid"):
            # llama-cpp-python 0.3.17 has only one of these two functions.
            asked: Any = getattr(llama_cpp, f"llama_model_is_{kind}", None)
            if asked is not None and asked(model.llm.model):
                raise LzsError(
                    f"{model.header.path.name} is a {kind} model ({model.header.architecture}), "
                    "which cannot take tokens back: leave out the draft"
                )
    if draft.model is not None:
        _refuse_vocabulary(target.header, draft.model.header)


def warn_of_change(
    target: Model | Opened, draft: Draft, n_ctx: int, n_threads: int | None = None, *, stacklevel: int
) -> None:
    """Warn with a `RoundingWarning` if the draft may change texts of up to ``n_ctx`` tokens."""
    if draft.most and draft.mode != "mrs":
        name = target.header.path.name
        warn_of_rounding(target.llm, name, draft.most + 1, n_ctx, n_threads, stacklevel=stacklevel + 1)


def too_large(target: Header, draft: Header, name: str | None = None) -> str | None:
    """Return a warning for a draft model that is at least as large as its target; None for a smaller draft.

    ``name``: the target's name, None for the name of its file. The warning assumes that a call takes time proportional
    to the size of the weights. A block of one token then gives at most two tokens for one call of each model.
    """
    ratio = draft.file_bytes / target.file_bytes
    if ratio < 1:
        return None
    size = "as large as" if ratio == 1 else "larger than"
    return (
        f"the draft {draft.path.name} is {size} {name or target.path.name}: by their sizes, the speed is at "
        f"most {2 / (1 + ratio):.2f}x, even if every token is accepted"
    )


def _refuse_vocabulary(a: Header, b: Header) -> None:
    names = f"{b.path.name} cannot draft for {a.path.name}"
    for key in ("model", "add_bos_token", "add_eos_token"):
        x, y = (header.metadata.get(f"tokenizer.ggml.{key}") for header in (a, b))
        if None not in (x, y) and x != y:  # a missing value is not compared, because llama.cpp has a default
            raise LzsError(f"{names}: their tokenizers differ in {key} ({y!r} against {x!r})")
    n = min(len(a.vocabulary), len(b.vocabulary))
    if a.vocabulary[:n] != b.vocabulary[:n]:  # fast even for a whole vocabulary: the comparison runs in C
        i = common_length(a.vocabulary, b.vocabulary)
        x, y = a.vocabulary[i], b.vocabulary[i]
        raise LzsError(f"{names}: token {i} is {y!r:.60} in one vocabulary and {x!r:.60} in the other")
    for role in ("bos", "eos", "eot"):
        x, y = (header.special_tokens.get(role, (None, ""))[0] for header in (a, b))
        if x != y:
            raise LzsError(f"{names}: the {role} token is {y} in one vocabulary and {x} in the other")
