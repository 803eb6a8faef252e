"""`Speculator`: writes a text with tokens that a draft proposes.

The contexts of draft and target keep only accepted tokens: rejected tokens are purged from both contexts. No token is
decoded twice.
"""

from ..errors import ArgumentError
from .draft import Draft, Speculated, warn_of_change
from .proposing import Proposal, Proposer, purge
from .verification import Speculation, Verified
from .writing import Text


class Speculator:
    """Writes a text with tokens that a draft proposes. The prompt is already in the target's context.

    Tokens are decoded one by one in three cases: while an action on a loop goes on, while penalties or actions apply
    only in some parts of a text, and while tokens are explained.
    """

    def __init__(self, text: Text, draft: Draft) -> None:
        self._text, self._draft, self._target, self._clock = text, draft, text.model, draft.clock
        target = text.model
        warn_of_change(target, draft, min(target.n_ctx, len(text.prompt) + text.max_tokens), stacklevel=3)
        self._pace = draft.pace(text.model)
        self._figures = Speculated()
        self._proposed = False
        self._speculation = speculation_of(text, draft)
        self._proposer = Proposer(text, draft, self._speculation, self._pace, self._figures, self._target.is_eog)

    @property
    def figures(self) -> Speculated:
        """The statistics of the draft for the text so far."""
        self._figures.rated(self._pace)
        return self._figures

    def follow(self, token: int) -> int | None:
        """Decode a token, and add one or more tokens after it."""
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
        """Decode a token and a drafted block; None if too few tokens were drafted."""
        text, figures = self._text, self._figures
        before = figures.draft_s
        try:
            made = self._proposer.propose(text.draft_room(self._target.n_past), self._target.n_past)
            return None if made is None else self._verified(token, made)
        except ValueError as error:
            raise text.failure(error) from error
        finally:
            text.decode_s += figures.draft_s - before
            self._speculation.discard()  # removes drafted tokens after an error or an interrupt

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
        # The contexts keep all added tokens except the last, which is decoded next. If a loop ended the block, the last
        # added token is a drafted token.
        n = len(drafted.tokens)
        stand = target.n_past - n - 1 + len(made.tokens)
        purge(target, stand)
        self._proposer.stands(stand)
        self._pace.judged(drafted.kind, n, made.n_accepted, len(made.tokens), drafted.seconds, clock() - before)
        self._figures.judged(n, made.n_accepted, len(made.tokens))
        return made


def speculation_of(text: Text, draft: Draft) -> Speculation:
    """Return the `Speculation` for the tokens of a text; ValueError for a text without a sampler of its own."""
    if text.own is None:
        raise ArgumentError("a draft needs the sampler of the text's own settings")
    return Speculation(
        text.own,
        mode=draft.mode,
        max_draft=draft.most,
        n_draft_vocab=None if draft.model is None else draft.model.n_vocab,
        ends=text.model.eog_tokens,
    )
