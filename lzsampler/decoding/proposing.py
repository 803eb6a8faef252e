"""`Proposer`: drafts blocks of tokens for a text (`Begun`), with a draft model or from matches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ..errors import LzsError
from ..llama.model import Model
from .draft import Draft, Speculated, common_length
from .lookup import Lookup
from .pacing import Pace

BY_MODEL = 0  # the kind of a block that the model drafted; blocks from matches have kinds 1 to 5
USUAL = 2  # number of tokens that a draft model usually has to decode first: the last two of an accepted block
_LONG = 5  # the kind of matches of 16 or more tokens; kinds 1 to 4 are 1, 2-3, 4-7 and 8-15 tokens


class Taker(Protocol):
    """Takes drafted tokens in sequence: a `Speculation`, or an object with the same methods."""

    def draft_at(self, logits: Any, p_min: float = 0.0) -> int | None:
        """Draft the next token from a draft model's logits; None if its probability is below ``p_min``."""

    def draft_token(self, token: int) -> None:
        """Draft a token from another source. LzsError if no token can follow the tokens before it."""

    def discard(self) -> None:
        """Take the drafted tokens back."""


class Figured(Protocol):
    """An object that has the statistics of a draft."""

    @property
    def figures(self) -> Speculated:
        """The statistics of the draft for a text so far."""


class Begun:
    """A text so far: its ``prompt`` and its ``tokens``."""

    prompt: list[int]
    tokens: list[int]

    @property
    def n_actions(self) -> int:
        """Number of actions on the text's loops so far. Each action may have cut the text."""
        return 0

    def known(self, past: Sequence[int]) -> int:
        """Return how many tokens at the beginning of a context equal those of prompt and text.

        The last token of the text does not count, because it must be decoded for its logits.
        """
        tokens = [*self.prompt, *self.tokens[:-1]]
        n = min(len(past), len(tokens))
        return n if past[:n] == tokens[:n] else common_length(past, tokens)  # the fast comparison usually suffices

    def after(self, n: int) -> list[int]:
        """Return the tokens of prompt and text after the first ``n``."""
        return self.tokens[n - len(self.prompt) :] if n >= len(self.prompt) else [*self.prompt[n:], *self.tokens]


@dataclass(frozen=True)
class Proposal:
    """A drafted block and its kind. ``seconds``: the drafting time, without work that is needed only once, such as
    decoding the prompt.
    """

    tokens: list[int]
    kind: int
    seconds: float


@dataclass(frozen=True)
class Glance:
    """Tokens that were drafted only to compare them with the text after its first ``begin`` tokens.

    ``n_actions``: number of actions on the text's loops at that time.
    """

    tokens: list[int]
    kind: int
    begin: int
    n_actions: int

    def stood(self, text: Begun) -> int | None:
        """Return how many of the tokens appeared in the text; None if the text is still too short to tell."""
        n = 0
        for token in self.tokens:
            if self.begin + n == len(text.tokens):
                return None
            if text.tokens[self.begin + n] != token:
                break
            n += 1
        return n


class Proposer:
    """Drafts blocks for a text with the draft model or from matches, whichever promises more."""

    def __init__(
        self, text: Begun, draft: Draft, taker: Taker, pace: Pace, figures: Speculated, is_eog: Callable[[int], bool]
    ) -> None:
        self._text, self._draft, self._taker, self._pace, self._figures = text, draft, taker, pace, figures
        self._is_eog = is_eog
        self._found = Found(text, draft.lookup) if draft.lookup else None
        self._aside_s = 0.0  # seconds of the last proposal that are not typical of the next one
        self._glance: Glance | None = None
        self._rest = 0  # number of next tokens for which nothing is drafted

    def rests(self) -> bool:
        """Return whether the call after this token needs no draft and no timing.

        Call this method once for each token, before `propose`.
        """
        if not self._rest:
            return False
        self._rest -= 1
        return True

    def propose(self, room: int, n_past: int) -> Proposal | None:
        """Draft up to ``room`` tokens. None if too few tokens were drafted.

        ``n_past``: number of tokens in the target's context.
        """
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
        if self._found is None:  # without a lookup, the kind of the next draft is known
            self._rest = self._pace.rest(BY_MODEL)
        return None

    def _watch(self, room: int, n_past: int) -> None:
        """Compare the last `Glance` with the text, and draft the next one if it is due."""
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
        """Have the draft model forget all tokens after the first ``n``."""
        if self._draft.model is not None:
            purge(self._draft.model, n)

    def _sources(
        self, room: int, n_past: int, length: Callable[[int, int], int]
    ) -> list[tuple[int, Callable[[], list[int]]]]:
        """Return the kinds of draft to try for up to ``room`` tokens, best first, each with its drafting function.

        ``length``: takes a kind and a maximum, and returns how many tokens to draft, from 0 to the maximum.
        """
        draft, pace, least = self._draft, self._pace, max(self._draft.n_min, 1)
        sources: list[tuple[int, Callable[[], list[int]]]] = []
        if draft.model is not None:
            own = min(room, draft.model.n_ctx - n_past)  # the draft model does not decode the last token of a block
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
        """Draft a block of up to ``n`` tokens with the draft model."""
        text = self._text
        purge(model, text.known(model.past))
        missing = text.after(model.n_past)
        if len(missing) > USUAL:  # such as the prompt, whose time is not typical of later blocks
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
    """Draft the tokens that followed a match, up to the first token that the grammar refuses. Return the drafted
    tokens.
    """
    for n, token in enumerate(tokens):
        try:
            taker.draft_token(token)
        except LzsError:  # the token before is not allowed, so no token can follow it
            return tokens[:n]
        if is_eog(token):
            return tokens[: n + 1]
    return tokens


def purge(model: Model, n: int) -> None:
    """Have a model keep only the first ``n`` tokens of its context, if it has more."""
    if n < model.n_past:
        model.keep(n)


class Found:
    """Finds earlier places in prompt and text that match the end of the text in ``least`` tokens or more."""

    def __init__(self, text: Begun, least: int) -> None:
        self._text, self._least = text, least
        self._lookup = Lookup()
        self._n_actions = 0

    def find(self, n: int) -> tuple[int, list[int]]:
        """Return (the kind of draft, the ``n`` tokens that followed the longest match); (0, []) without a match.

        The longer a match is, the likelier its continuation is right. So the kind depends on the length of the match.
        """
        text, lookup = self._text, self._lookup
        if text.n_actions != self._n_actions:  # an action may have cut the text
            self._n_actions = text.n_actions
            lookup.rewind(lookup.n)
        lookup.append(text.after(lookup.n))
        length, tokens = lookup.find(self._least, n)
        return min(length.bit_length(), _LONG), tokens
