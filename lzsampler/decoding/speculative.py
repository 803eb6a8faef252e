"""`Draft`: what proposes tokens and how; `Speculator`, which writes a `Text` with it; `Speculated`, its figures.

Two contexts of llama.cpp stay at the tokens that stand: what falls is purged from both, and none is decoded twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol
from weakref import WeakKeyDictionary

from .._check import integer
from .._values import shown
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..llama.binding import llama_cpp
from ..llama.gguf import Header
from ..llama.model import Model
from ..llama.rounding import warn_of_rounding
from .lookup import MAX_MATCH, Lookup
from .pacing import AUTO_MOST, Pace
from .verification import MAX_DRAFT, SPEC_MODES, SpecMode, Speculation, Verified

if TYPE_CHECKING:
    from .generate import Text

Length = int | Literal["auto"]
N_MAX = 3  # llama.cpp's --spec-draft-n-max
BY_MODEL = 0  # the kind of a block that the model drafted; what a match gave has the kinds above
USUAL = 2  # tokens that a draft model has to decode before it drafts: after a block that stood, its last and one more
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

    What "auto" found out in one text serves the next one of the same draft and target.

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
    _paces: WeakKeyDictionary[Model, Pace] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.model is not None and not isinstance(self.model, Model):
            raise ArgumentTypeError(f"a draft is a Model, got {self.model!r:.100}")
        integer("lookup", self.lookup, 0, MAX_MATCH)
        if self.model is None and not self.lookup:
            raise ArgumentError("a draft needs something that proposes tokens: Draft(Model(path)) or Draft(lookup=3)")
        if self.mode not in SPEC_MODES:
            raise ArgumentError(f"mode must be one of {', '.join(SPEC_MODES)}, got {shown(self.mode)}")
        if isinstance(self.n_max, str) and self.n_max != "auto":
            raise ArgumentError(f"n_max must be auto or from 0 to {MAX_DRAFT}, got {shown(self.n_max)}")
        if not isinstance(self.n_max, str):
            integer("n_max", self.n_max, 0, MAX_DRAFT)
        integer("n_min", self.n_min, 0, self.most, high_is=f", which is {self._most_is}")
        if self.mode == "mrs" and self.n_min:
            raise ArgumentError(f"n_min must be 0 in mode mrs, which has to judge what was drawn, got {self.n_min}")
        if not isinstance(self.p_min, int | float) or not 0 <= self.p_min <= 1:
            raise ArgumentError(f"p_min must be from 0 to 1, got {self.p_min!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_paces"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _paces=WeakKeyDictionary())  # a copy finds out for itself what the models cost

    def pace(self, target: Model) -> Pace:
        """Return the pace of another text of a target, which begins with what the last one found out."""
        last = self._paces.get(target)
        pace = self._paces[target] = Pace(self.most, self.fixed) if last is None else last.renewed()
        return pace

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

    def judged(self, drafted: int, accepted: int, tokens: int) -> None:
        """Count a block, of which some tokens stood, and the tokens that it added to the text."""
        self.blocks += 1
        self.drafted += drafted
        self.accepted += accepted
        self.tokens += tokens

    def add(self, other: "Speculated | None") -> None:
        """Add the figures of another text, if it has some; how fast it was is what the last one says."""
        if other is not None:
            for name in ("drafted", "accepted", "blocks", "tokens", "plain", "draft_s"):
                setattr(self, name, getattr(self, name) + getattr(other, name))
            self.speed, self.off = other.speed, other.off

    def rated(self, pace: Pace) -> None:
        """Set ``speed`` and ``off`` by what was measured."""
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


class Taker(Protocol):
    """What takes drafted tokens one after the other: a `Speculation`, or what stands for one."""

    def draft_at(self, logits: Any, p_min: float = 0.0) -> int | None:
        """Draft the next token by a draft model's logits; None where it is not sure enough."""

    def draft_token(self, token: int) -> None:
        """Draft a token that was found elsewhere; LzsError where nothing can come after those before it."""

    def discard(self) -> None:
        """Take the drafted tokens back."""


class Figured(Protocol):
    """What has figures of a draft."""

    @property
    def figures(self) -> Speculated:
        """The figures of a text so far."""


class Begun:
    """A text so far: its ``prompt`` and its ``tokens``."""

    prompt: list[int]
    tokens: list[int]

    @property
    def n_actions(self) -> int:
        """How often something was done to the text that may have cut it."""
        return 0

    def known(self, past: Sequence[int]) -> int:
        """Return how many tokens of a context the prompt and the text begin with; never all, for the last's logits."""
        tokens = [*self.prompt, *self.tokens[:-1]]
        n = min(len(past), len(tokens))
        return n if past[:n] == tokens[:n] else common_length(past, tokens)  # the usual case, at the speed of C

    def after(self, n: int) -> list[int]:
        """Return the tokens of prompt and text after the first ``n``."""
        return self.tokens[n - len(self.prompt) :] if n >= len(self.prompt) else [*self.prompt[n:], *self.tokens]


def common_length(a: Sequence[object], b: Sequence[object]) -> int:
    """Return how many tokens two sequences have in common at their beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@dataclass(frozen=True)
class Proposal:
    """A block that was drafted, and with what. ``seconds``: what drafting took that the next block takes as well."""

    tokens: list[int]
    kind: int
    seconds: float


@dataclass(frozen=True)
class Glance:
    """Tokens that were drafted only to see whether the text gets them after its first ``begin`` tokens.

    ``n_actions``: that of the text by then.
    """

    tokens: list[int]
    kind: int
    begin: int
    n_actions: int

    def stood(self, text: Begun) -> int | None:
        """Return how many of the tokens the text got; None where that is not known yet."""
        n = 0
        for token in self.tokens:
            if self.begin + n == len(text.tokens):
                return None
            if text.tokens[self.begin + n] != token:
                break
            n += 1
        return n


class Proposer:
    """Drafts blocks for a text, by the draft model, by matches, or by the one that promises more."""

    def __init__(
        self, text: Begun, draft: Draft, taker: Taker, pace: Pace, figures: Speculated, is_eog: Callable[[int], bool]
    ) -> None:
        self._text, self._draft, self._taker, self._pace, self._figures = text, draft, taker, pace, figures
        self._is_eog = is_eog
        self._found = Found(text, draft.lookup) if draft.lookup else None
        self._aside_s = 0.0  # seconds of the last proposal that say nothing of the next
        self._glance: Glance | None = None
        self._rest = 0  # tokens for which nothing is drafted or looked at

    def rests(self) -> bool:
        """Return whether nothing is to be proposed behind this token, and its call not to be timed.

        To be asked once for each token, before `propose`.
        """
        if not self._rest:
            return False
        self._rest -= 1
        return True

    def propose(self, room: int, n_past: int) -> Proposal | None:
        """Draft up to ``room`` tokens behind ``n_past`` of the target's; None where there are none, or too few."""
        clock, least = self._draft.clock, max(self._draft.n_min, 1)
        for kind, propose in self._sources(room, n_past, self._pace.length):
            before, self._aside_s = clock(), 0.0
            drafted = propose()
            seconds = clock() - before
            self._figures.draft_s += seconds
            if len(drafted) >= least:
                return Proposal(drafted, kind, seconds - self._aside_s)
            self._taker.discard()
            self._pace.wasted(kind, seconds - self._aside_s)
        self._watch(room, n_past)
        if self._found is None:  # the kind of a match is known when it is found
            self._rest = self._pace.rest(BY_MODEL)
        return None

    def _watch(self, room: int, n_past: int) -> None:
        """Draft tokens now and then where no block is judged, only to see how many of them the text gets."""
        text, pace, clock = self._text, self._pace, self._draft.clock
        if self._glance is not None:
            stood = self._glance.stood(text)
            if self._glance.n_actions == text.n_actions:
                if stood is None:
                    return
                pace.glanced(self._glance.kind, len(self._glance.tokens), stood)
            self._glance = None
        for kind, propose in self._sources(room, n_past, pace.glance)[:1]:
            before = clock()
            tokens = propose()
            seconds = clock() - before
            self._taker.discard()
            self._figures.draft_s += seconds
            pace.glancing(kind, seconds)
            if tokens:
                self._glance = Glance(tokens, kind, len(text.tokens), text.n_actions)

    def stands(self, n: int) -> None:
        """Have the draft model forget all but the first ``n`` tokens."""
        if self._draft.model is not None:
            purge(self._draft.model, n)

    def _sources(
        self, room: int, n_past: int, length: Callable[[int, int], int]
    ) -> list[tuple[int, Callable[[], list[int]]]]:
        """Return the kinds of draft that are worth a try for up to ``room`` tokens, and what drafts them, in order.

        ``length`` says how many tokens of a kind to draft, none to a number of them.
        """
        draft, pace, least = self._draft, self._pace, max(self._draft.n_min, 1)
        sources: list[tuple[int, Callable[[], list[int]]]] = []
        if draft.model is not None:
            own = min(room, draft.model.n_ctx - n_past)  # it does not decode the last token of a block
            if (n := length(BY_MODEL, own)) >= least:
                sources.append((BY_MODEL, partial(self._by_model, draft.model, n)))
        if self._found is not None and room > 0:
            kind, tokens = self._found.find(min(room, draft.most)) if draft.most else (0, [])
            if kind and (n := length(kind, room)) >= least:
                sources.append((kind, partial(self._by_match, tokens[:n])))
        if len(sources) > 1 and pace.fixed is None:
            sources.sort(key=lambda source: -pace.rate(source[0], room))
        return sources

    def _by_match(self, tokens: list[int]) -> list[int]:
        return taken(self._taker, tokens, self._is_eog)

    def _by_model(self, model: Model, n: int) -> list[int]:
        """Draft a block with the draft model, none to ``n`` tokens."""
        text = self._text
        purge(model, text.known(model.past))
        missing = text.after(model.n_past)
        if len(missing) > USUAL:  # the prompt, or what came while nothing was drafted: no block after it takes so long
            before = self._draft.clock()
            model.decode(missing[:-1])
            self._aside_s = self._draft.clock() - before
            missing = missing[-1:]
        model.decode(missing)
        drafted: list[int] = []
        while len(drafted) < n:
            token = self._taker.draft_at(model.logits_pointer(), self._draft.p_min)
            if token is None:
                break
            drafted.append(token)
            if self._is_eog(token) or len(drafted) == n:
                break
            model.decode(drafted[-1:])
        return drafted


def taken(taker: Taker, tokens: list[int], is_eog: Callable[[int], bool]) -> list[int]:
    """Draft tokens that followed a match, as far as the grammar goes along, and return them."""
    for n, token in enumerate(tokens):
        try:
            taker.draft_token(token)
        except LzsError:  # after a token that is not allowed, nothing is
            return tokens[:n]
        if is_eog(token):
            return tokens[: n + 1]
    return tokens


def purge(model: Model, n: int) -> None:
    """Have a model keep the first ``n`` tokens of its context, if it has more."""
    if n < model.n_past:
        model.keep(n)


class Speculator:
    """Writes a text whose tokens a draft proposes. The prompt is in the target's context.

    Tokens are decoded one by one where something steers the sampler from token to token: while a loop is acted on,
    where penalties or actions apply in parts of a text only, and for explanations.
    """

    def __init__(self, text: "Text", draft: Draft) -> None:
        self._text, self._draft, self._target, self._clock = text, draft, text.model, draft.clock
        target = text.model
        warn_of_change(target, draft, min(target.n_ctx, len(text.prompt) + text.n_predict), stacklevel=3)
        self._pace = draft.pace(text.model)
        self._figures = Speculated()
        self._proposed = False
        self._speculation = speculation_of(text, draft)
        self._proposer = Proposer(text, draft, self._speculation, self._pace, self._figures, self._target.is_eog)

    @property
    def figures(self) -> Speculated:
        """The figures of the text so far."""
        self._figures.rated(self._pace)
        return self._figures

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
        if steady and self._proposer.rests():
            self._pace.passed()
            self._figures.plain += 1
            return text.add(*text.step(token))
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
        text, figures = self._text, self._figures
        before = figures.draft_s
        try:
            made = self._proposer.propose(text.draft_room(self._target.n_past), self._target.n_past)
            return None if made is None else self._verified(token, made)
        except ValueError as error:
            raise text.failure(error) from error
        finally:
            text.decode_s += figures.draft_s - before
            self._speculation.discard()  # what an error or an interrupt left

    def _verified(self, token: int, drafted: Proposal) -> Verified:
        text, target, clock = self._text, self._target, self._clock
        before = clock()
        tokens, speculation, graph = [token, *drafted.tokens], self._speculation, text.graph
        if graph is None:
            rows = target.decode_for_rows(tokens)
            decoded = clock()
            made = speculation.verify_at(rows)
        else:
            graph.decode_block(tokens, speculation.handle)
            decoded = clock()
            made = speculation.verify_by(graph.verify)
        judged = clock()
        text.sampling_s += judged - decoded
        text.decode_s += decoded - before
        # The last token is to be decoded next, also where it was drafted: where a loop ended the block.
        n = len(drafted.tokens)
        stand = target.n_past - n - 1 + len(made.tokens)
        purge(target, stand)
        self._proposer.stands(stand)
        self._pace.judged(drafted.kind, n, made.n_accepted, len(made.tokens), drafted.seconds, clock() - before)
        self._figures.judged(n, made.n_accepted, len(made.tokens))
        return made


def speculation_of(text: "Text", draft: Draft) -> Speculation:
    """Return what drafts and judges tokens of a text; ValueError for one without a sampler of its own."""
    if text.own is None:
        raise ArgumentError("a draft needs the sampler of the text's own settings")
    return Speculation(
        text.own,
        mode=draft.mode,
        max_draft=draft.most,
        n_draft_vocab=None if draft.model is None else draft.model.n_vocab,
        ends=text.model.eog_tokens,
    )


class Found:
    """The matches of a text's end in its prompt and in itself, of ``least`` tokens or more."""

    def __init__(self, text: Begun, least: int) -> None:
        self._text, self._least = text, least
        self._lookup = Lookup()
        self._n_actions = 0

    def find(self, n: int) -> tuple[int, list[int]]:
        """Return (the kind of draft, ``n`` tokens that followed the longest match); (0, []) where there is none.

        The longer a match is, the surer is what follows: it is a kind of its own.
        """
        text, lookup = self._text, self._lookup
        if text.n_actions != self._n_actions:  # which may have cut the text
            self._n_actions = text.n_actions
            lookup.rewind(lookup.n)
        lookup.append(text.after(lookup.n))
        length, tokens = lookup.find(self._least, n)
        return min(length.bit_length(), _LONG), tokens


@dataclass(frozen=True)
class Opened:
    """What `refuse_draft` needs of a target that is not a `Model`: its file, a `llama_cpp.Llama` and its numbers."""

    header: Header
    llm: Any
    n_ctx: int
    n_batch: int


def refuse_draft(target: Model | Opened, draft: Draft) -> None:
    """Raise LzsError for a draft model that cannot draft for a target, ValueError for one that is the target itself.

    Their vocabularies must have the same kind, special tokens and texts; one may be longer. Recurrent and hybrid
    models cannot take back tokens that fall. ValueError where no block fits in the context or a batch of the target,
    TypeError for what is not a `Draft`.
    """
    if not isinstance(draft, Draft):
        raise ArgumentTypeError(f"draft must be a Draft, got {draft!r:.100}: Draft(Model(path))")
    if target.n_batch < 2:
        raise ArgumentError(
            f"n_batch must be at least 2 with a draft, which is judged in one batch, got {target.n_batch}"
        )
    if not isinstance(draft.n_max, str) and draft.n_max > target.n_ctx - 2:
        raise ArgumentError(
            f"n_max must be at most {target.n_ctx - 2} in a context of {target.n_ctx}, got {draft.n_max}"
        )
    if draft.model is not None and draft.model.llm is target.llm:
        raise ArgumentError("the draft is the target itself: open the file again for a context of its own")
    for model in [target] if draft.model is None else [target, draft.model]:
        for kind in ("recurrent", "hybrid"):
            asked: Any = getattr(llama_cpp, f"llama_model_is_{kind}", None)  # llama-cpp-python 0.3.17 has one of them
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
    """Warn by a `RoundingWarning` where texts of up to ``n_ctx`` tokens may not be those without the draft."""
    if draft.most and draft.mode != "mrs":
        name = target.header.path.name
        warn_of_rounding(target.llm, name, draft.most + 1, n_ctx, n_threads, stacklevel=stacklevel + 1)


def too_large(target: Header, draft: Header, name: str | None = None) -> str | None:
    """Return what to say of a draft model that is as large as its target, or larger; None of one that is smaller.

    ``name``: of the target, None for that of its file. Two tokens for a call of the target and one of the draft are the
    most that such a draft can bring, and calls take times as weights take bytes.
    """
    ratio = draft.file_bytes / target.file_bytes
    if ratio < 1:
        return None
    size = "as large as" if ratio == 1 else "larger than"
    return (
        f"the draft {draft.path.name} is {size} {name or target.path.name}: by their sizes at most "
        f"{2 / (1 + ratio):.2f}x, were every token accepted"
    )


def _refuse_vocabulary(a: Header, b: Header) -> None:
    names = f"{b.path.name} cannot draft for {a.path.name}"
    for key in ("model", "add_bos_token", "add_eos_token"):
        x, y = (header.metadata.get(f"tokenizer.ggml.{key}") for header in (a, b))
        if None not in (x, y) and x != y:  # what a file leaves out is llama.cpp's default
            raise LzsError(f"{names}: their tokenizers differ in {key} ({y!r} against {x!r})")
    n = min(len(a.vocabulary), len(b.vocabulary))
    if a.vocabulary[:n] != b.vocabulary[:n]:  # for every text, so at the speed of C
        i = common_length(a.vocabulary, b.vocabulary)
        x, y = a.vocabulary[i], b.vocabulary[i]
        raise LzsError(f"{names}: token {i} is {y!r:.60} in one vocabulary and {x!r:.60} in the other")
    for role in ("bos", "eos", "eot"):
        x, y = (header.special_tokens.get(role, (None, ""))[0] for header in (a, b))
        if x != y:
            raise LzsError(f"{names}: the {role} token is {y} in one vocabulary and {x} in the other")
