"""`Draft`: what proposes tokens and how; `Speculator`, which writes a `Text` with it; `Speculated`, its figures.

Two contexts of llama.cpp stay at the tokens that stand: what falls is purged from both, and none is decoded twice.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from .._check import integer
from ..errors import ArgumentTypeError, LzsError
from ..llama.binding import llama_cpp
from ..llama.gguf import Header
from ..llama.model import Model
from .lookup import MAX_MATCH, Lookup
from .pacing import AUTO_MOST, Pace
from .verification import MAX_DRAFT, SPEC_MODES, SpecMode, Speculation, Verified

if TYPE_CHECKING:
    from .generate import Text

Length = int | Literal["auto"]
N_MAX = 3  # llama.cpp's --spec-draft-n-max
_BY_MODEL = 0  # the kind of a block that the model drafted; what a match gave has the kinds above
_USUAL = 2  # tokens that a draft model has to decode before it drafts: after a block that stood, its last and one more
_LONG = 5  # the kind of matches of 16 tokens and more; of 1 it is 1, of 2 and 3 it is 2, of 4 to 7 it is 3
DraftKind = Literal["model", "lookup", "model+lookup"]


@dataclass(frozen=True)
class Draft:
    """What proposes tokens, and how it is used, with llama.cpp's names.

    ``model``: a draft model, opened as a `Model` of its own. ``lookup``: tokens of the shortest match, 1..65535, with
    which what followed earlier in the prompt and the text is proposed; 0 looks nothing up. With both the model drafts,
    and where it proposes too little, or promises less in ``n_max`` "auto", a match does.

    ``n_max``: most tokens of a block, 0..32; 0 drafts nothing; "auto" chooses by `Pace` what is fastest, none included.
    ``n_min``: blocks with fewer tokens are not used, 0 to ``n_max``. ``p_min``: the model stops where it gives its best
    token a lower probability, 0..1, among its ten best at temperature 1. ``mode``: see `Speculation`. In mode "mrs",
    where the text of a seed depends on the length of blocks, "auto" is 3, and ``n_min`` must be 0, since what was drawn
    has to be judged.

    ``on_proposed`` is called before text is handed out, where it goes over from the tokens of the target to proposed
    ones that stand (True) and back (False). ``clock``: returns seconds, which "auto" compares; no text depends on it.

    A draft model should have the context of the target (``n_ctx``); where it is full, it drafts nothing. ValueError for
    what is out of range.
    """

    model: Model | None = None
    n_max: Length = "auto"
    n_min: int = 0
    p_min: float = 0.0
    mode: SpecMode = "gumbel"
    lookup: int = 0
    on_proposed: Callable[[bool], object] | None = field(default=None, repr=False)
    clock: Callable[[], float] = field(default=perf_counter, repr=False)

    def __post_init__(self) -> None:
        if self.model is not None and not isinstance(self.model, Model):
            raise ArgumentTypeError(f"a draft is a Model, got {self.model!r:.100}")
        integer("lookup", self.lookup, 0, MAX_MATCH)
        if self.model is None and not self.lookup:
            raise ValueError("a draft needs something that proposes tokens: Draft(Model(path)) or Draft(lookup=3)")
        if self.mode not in SPEC_MODES:
            raise ValueError(f"mode must be one of {', '.join(SPEC_MODES)}, got {self.mode!r}")
        if isinstance(self.n_max, str) and self.n_max != "auto":
            raise ValueError(f"n_max must be auto or from 0 to {MAX_DRAFT}, got {self.n_max!r}")
        if not isinstance(self.n_max, str):
            integer("n_max", self.n_max, 0, MAX_DRAFT)
        integer("n_min", self.n_min, 0, self.most, high_is=f", which is {self._most_is}")
        if self.mode == "mrs" and self.n_min:
            raise ValueError(f"n_min must be 0 in mode mrs, which has to judge what was drawn, got {self.n_min}")
        if not isinstance(self.p_min, int | float) or not 0 <= self.p_min <= 1:
            raise ValueError(f"p_min must be from 0 to 1, got {self.p_min!r}")

    @property
    def fixed(self) -> int | None:
        """The length of blocks; None where it is chosen."""
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
        """What proposes tokens."""
        if self.model is None:
            return "lookup"
        return "model+lookup" if self.lookup else "model"

    def to_json(self) -> dict[str, Any]:
        """Return what it is, for a transcript."""
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
    """Figures of a text. ``drafted`` and ``accepted``: tokens. ``blocks``: calls of the target that judged drafted
    tokens, and ``tokens`` what these calls added to the text; ``plain``: calls without a drafted token. ``draft_s``:
    seconds that drafting took.

    ``speed``: how many times as fast the text came as it would have without a draft, from the times of this run; None
    where they do not say. ``off``: whether it was slower and no draft is used any more; then ``speed`` is how fast the
    best block would be.
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
        """The share of drafted tokens that stand; 0 when there are none."""
        return self.accepted / max(self.drafted, 1)

    @property
    def tokens_per_call(self) -> float:
        """Tokens that a call of the target adds to the text, on average; 0 when there was no call."""
        return (self.tokens + self.plain) / max(self.blocks + self.plain, 1)

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


class Speculator:
    """Writes a text whose tokens a draft proposes. The prompt is in the target's context.

    Tokens are decoded one by one where something steers the sampler from token to token: while a loop is acted on,
    where penalties or actions apply in parts of a text only, and for explanations.
    """

    def __init__(self, text: "Text", draft: Draft) -> None:
        if text.own is None:
            raise ValueError("a draft needs the sampler of the text's own settings")
        self._text, self._draft, self._target, self._clock = text, draft, text.model, draft.clock
        self._pace = Pace(draft.most, draft.fixed)
        self._figures = Speculated()
        self._found = _Found(text, draft.lookup) if draft.lookup else None
        self._proposed = False
        self._aside_s = 0.0  # seconds of the last proposal that say nothing of the next
        self._speculation = Speculation(
            text.own,
            mode=draft.mode,
            max_draft=draft.most,
            n_draft_vocab=None if draft.model is None else draft.model.n_vocab,
            ends=self._target.eog_tokens,
        )

    @property
    def figures(self) -> Speculated:
        """The figures of the text so far."""
        figures, pace = self._figures, self._pace
        figures.speed, promised = pace.speed, pace.promised
        if pace.fixed is None and figures.speed is not None and promised is not None:
            figures.off = promised <= 1 and figures.speed <= 1
            figures.speed = promised if figures.off else figures.speed
        return figures

    def follow(self, token: int) -> int | None:
        """Decode a token that was taken, and take those after it, as `Text.follow` does with one."""
        text = self._text
        if text.forces:
            self._say(False)
            span = text.forward(token)
            if span is None:
                return None
            if len(span) > 1:
                self._figures.plain += 1
                return text.take_after(span)
            token = span[0]
        steady = text.steady
        made = self._block(token) if steady else None
        if made is not None:
            return self._take(made)
        self._figures.plain += 1
        self._say(False)
        if not steady:
            return text.follow(token)
        before = self._clock()
        token, looping = text.step(token)
        self._pace.stepped(self._clock() - before)
        return text.add(token, looping)

    def _take(self, made: Verified) -> int | None:
        last: int | None = None
        for n, token in enumerate(made.tokens, 1):
            self._say(n <= made.n_accepted)
            last = self._text.add(token, made.looping and n == len(made.tokens))
            if last is None:
                break
        return last

    def _say(self, proposed: bool) -> None:
        if self._draft.on_proposed is not None and proposed != self._proposed:
            self._draft.on_proposed(proposed)
        self._proposed = proposed

    def _block(self, token: int) -> Verified | None:
        """Decode a token and a block of drafted ones; None where nothing was drafted, or too little."""
        text, least = self._text, max(self._draft.n_min, 1)
        try:
            for kind, propose in self._sources(self._room()):
                before, self._aside_s = self._clock(), 0.0
                drafted = propose()
                seconds = self._clock() - before
                self._figures.draft_s += seconds
                text.decode_s += seconds
                if len(drafted) >= least:
                    return self._verified(token, drafted, kind, seconds - self._aside_s)
                self._speculation.discard()
                self._pace.wasted(kind, seconds - self._aside_s)
        except ValueError as error:
            raise text.failure(error) from error
        finally:
            self._speculation.discard()  # what an error or an interrupt left
        return None

    def _sources(self, room: int) -> list[tuple[int, Callable[[], list[int]]]]:
        """Return the kinds of draft that are worth a try for up to ``room`` tokens, and what drafts them, in order."""
        draft, pace, least = self._draft, self._pace, max(self._draft.n_min, 1)
        sources: list[tuple[int, int, Callable[[], list[int]]]] = []
        if draft.model is not None:
            own = min(room, draft.model.n_ctx - self._target.n_past)  # it does not decode the last token of a block
            n = pace.length(_BY_MODEL, own)
            sources.append((_BY_MODEL, n, partial(self._by_model, draft.model, n)))
        if self._found is not None and room > 0:
            length, tokens = self._found.find(min(room, draft.most)) if draft.most else (0, [])
            if length:
                kind = min(length.bit_length(), _LONG)  # the longer the match, the surer what follows
                n = pace.length(kind, room)
                sources.append((kind, n, partial(self._by_match, tokens[:n])))
        if len(sources) > 1 and pace.fixed is None:
            sources.sort(key=lambda source: -pace.rate(source[0], room))
        return [(kind, propose) for kind, n, propose in sources if n >= least]

    def _room(self) -> int:
        """The most tokens that can be drafted now: the target's context, its batch and the text have an end."""
        text, target = self._text, self._target
        return min(text.n_predict - len(text.tokens) - 1, target.n_ctx - target.n_past - 1, target.n_batch - 1)

    def _by_match(self, tokens: list[int]) -> list[int]:
        """Draft tokens that followed a match, as far as the grammar goes along."""
        for n, token in enumerate(tokens):
            try:
                self._speculation.draft_token(token)
            except LzsError:  # after a token that is not allowed, nothing is
                return tokens[:n]
            if self._target.is_eog(token):
                return tokens[: n + 1]
        return tokens

    def _by_model(self, model: Model, n: int) -> list[int]:
        """Draft a block with the draft model, none to ``n`` tokens."""
        text, speculation = self._text, self._speculation
        self._purge(model, text.known(model.past))
        missing = text.after(model.n_past)
        if len(missing) > _USUAL:  # the prompt, or what came while nothing was drafted: no block after it takes so long
            before = self._clock()
            model.decode(missing[:-1])
            self._aside_s = self._clock() - before
            missing = missing[-1:]
        model.decode(missing)
        drafted: list[int] = []
        while len(drafted) < n:
            token = speculation.draft_at(model.logits_pointer(), self._draft.p_min)
            if token is None:
                break
            drafted.append(token)
            if self._target.is_eog(token) or len(drafted) == n:
                break
            model.decode(drafted[-1:])
        return drafted

    def _verified(self, token: int, drafted: list[int], kind: int, draft_s: float) -> Verified:
        text, target, figures, clock = self._text, self._target, self._figures, self._clock
        before = clock()
        rows = target.decode_for_rows([token, *drafted])
        decoded = clock()
        made = self._speculation.verify_at(rows)
        judged = clock()
        text.sampling_s += judged - decoded
        text.decode_s += decoded - before
        # The last token is to be decoded next, also where it was drafted: where a loop ended the block.
        stand = target.n_past - len(drafted) - 1 + len(made.tokens)
        self._purge(target, stand)
        if self._draft.model is not None:
            self._purge(self._draft.model, stand)
        self._pace.judged(kind, len(drafted), made.n_accepted, len(made.tokens), draft_s, clock() - before)
        figures.blocks += 1
        figures.drafted += len(drafted)
        figures.accepted += made.n_accepted
        figures.tokens += len(made.tokens)
        return made

    def _purge(self, model: Model, n: int) -> None:
        if n < model.n_past:
            model.keep(n)


class _Found:
    """The matches of a text's end in its prompt and in itself."""

    def __init__(self, text: "Text", least: int) -> None:
        self._text, self._least = text, least
        self._lookup = Lookup()
        self._n_actions = 0

    def find(self, n: int) -> tuple[int, list[int]]:
        """Return (length of the longest match, ``n`` tokens that followed it); (0, []) where there is none."""
        text, lookup = self._text, self._lookup
        if text.n_actions != self._n_actions:  # which may have cut the text
            self._n_actions = text.n_actions
            lookup.rewind(lookup.n)
        lookup.append(text.after(lookup.n))
        return lookup.find(self._least, n)


def refuse_draft(target: Model, draft: Draft) -> None:
    """Raise LzsError for a draft model that cannot draft for a target, ValueError for one that is the target itself.

    Their vocabularies must have the same kind, special tokens and texts; one may be longer. Recurrent and hybrid
    models cannot take back tokens that fall. ValueError where no block fits in the context or a batch of the target.
    """
    if target.n_batch < 2:
        raise ValueError(f"n_batch must be at least 2 with a draft, which is judged in one batch, got {target.n_batch}")
    if not isinstance(draft.n_max, str) and draft.n_max > target.n_ctx - 2:
        raise ValueError(f"n_max must be at most {target.n_ctx - 2} in a context of {target.n_ctx}, got {draft.n_max}")
    if draft.model is target:
        raise ValueError("the draft is the target itself: open the file again for a context of its own")
    for model in [target] if draft.model is None else [target, draft.model]:
        for kind in ("recurrent", "hybrid"):
            asked: Any = getattr(llama_cpp, f"llama_model_is_{kind}", None)  # llama-cpp-python 0.3.17 has one of them
            if asked is not None and asked(model.llm.model):
                raise LzsError(
                    f"{model.path.name} is a {kind} model ({model.header.architecture}), "
                    "which cannot take tokens back: leave out the draft"
                )
    if draft.model is not None:
        _refuse_vocabulary(target.header, draft.model.header)


def _refuse_vocabulary(a: Header, b: Header) -> None:
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
