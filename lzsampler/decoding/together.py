"""`Together`: drafts for the texts that `generate_many` decodes in one call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..llama.model import Model
from .draft import Draft, Speculated
from .pacing import SharedPace
from .proposing import BY_MODEL, USUAL, Found, taken
from .sequences import Sequences
from .speculative import speculation_of
from .verification import Verified
from .writing import Text


class Shared:
    """Drafts and judges the tokens of one text among several."""

    def __init__(self, text: Text, draft: Draft, pace: SharedPace) -> None:
        self.text, self.speculation = text, speculation_of(text, draft)
        self.found = Found(text, draft.lookup) if draft.lookup else None
        self.counted = Speculated()
        self._pace = pace

    @property
    def figures(self) -> Speculated:
        """The statistics of the draft for the text so far; the speed is that of all texts decoded together."""
        self.counted.rated(self._pace)
        return self.counted

    def judge(self, rows: Any) -> tuple[Verified, int | None]:
        """Judge the block by contiguous rows of logits. Return (the judged block, its last token or None if the text
        has ended).
        """
        text, drafted = self.text, len(self.speculation.drafted)
        try:
            made = self.speculation.verify_at(rows)
        except ValueError as error:
            raise text.failure(error) from error
        self.counted.judged(drafted, made.n_accepted, len(made.tokens))
        last: int | None = None
        for n, token in enumerate(made.tokens, 1):
            last = text.add(token, made.looping and n == len(made.tokens))
            if last is None:
                break
        return made, last


@dataclass(frozen=True)
class Place:
    """A text that is decoded: the number of its cache, and how many of its tokens the cache holds.

    ``shared``: the text's `Shared`, which drafts for it; None if the text cannot have drafted tokens now, for example
    while several texts use one cache.
    """

    number: int
    n_past: int
    shared: Shared | None


@dataclass
class _Source:
    place: Place
    shared: Shared
    kind: int
    room: int
    tokens: list[int]  # tokens from a match; empty for the draft model


class Together:
    """Drafts for the texts of a context. `SharedPace` chooses one length of blocks for all texts.

    ``n_caches``: number of caches of the target's context, and of the draft model's context. ``rows``: the most tokens
    of one call of the target.
    """

    def __init__(self, draft: Draft, n_caches: int, rows: int, n_threads: int) -> None:
        self._draft = draft
        self.pace = SharedPace(draft.most, draft.fixed, rows)
        self._slots = None if draft.model is None else _Slots(draft.model, n_caches, n_threads)
        self.seconds: dict[int, float] = {}  # kind -> seconds of the last drafts

    def close(self) -> None:
        """Free the draft model's context."""
        if self._slots is not None:
            self._slots.close()

    def clear(self) -> None:
        """Empty the caches of the draft."""
        if self._slots is not None:
            self._slots.clear()

    def copied(self, source: int, target: int) -> None:
        """Copy one cache of the draft to another, after the same copy in the target's context."""
        if self._slots is not None:
            self._slots.copy(source, target)

    def propose(self, places: Sequence[Place]) -> list[tuple[int, list[int]]]:
        """Draft tokens for each text. Return (kind, tokens) for each text; a text may have no tokens."""
        self.seconds = {}
        draft, least = self._draft, max(self._draft.n_min, 1)
        sources = [source for place in places if place.shared is not None for source in self._source(place)]
        k = self.pace.shared_length([(source.kind, source.room) for source in sources], len(places))
        made: dict[int, tuple[int, list[int]]] = {}
        if k >= least:
            self._by_model([source for source in sources if not source.tokens], k, made)
            before = draft.clock()
            for source in sources:
                if source.tokens:
                    text = source.shared.text
                    tokens = taken(source.shared.speculation, source.tokens[:k], text.model.is_eog)
                    made[source.place.number] = source.kind, tokens
                    self.seconds[source.kind] = draft.clock() - before
        for source in sources:
            kind, tokens = made.get(source.place.number, (0, []))
            if len(tokens) < least:
                source.shared.speculation.discard()
                made.pop(source.place.number, None)
        for kind in set(self.seconds) - {kind for kind, _ in made.values()}:
            self.pace.wasted(kind, self.seconds[kind])
        return [made.get(place.number, (0, [])) for place in places]

    def _source(self, place: Place) -> list[_Source]:
        """Return a list with the source that can draft for a text: a match, or else the draft model.

        The list is empty if neither can draft.
        """
        shared = place.shared
        assert shared is not None
        draft = self._draft
        room = min(shared.text.draft_room(place.n_past), draft.most)
        if room < 1:
            return []
        if shared.found is not None:
            kind, tokens = shared.found.find(room)
            if kind:
                return [_Source(place, shared, kind, room, tokens)]
        if draft.model is None:
            return []
        room = min(room, draft.model.n_ctx - place.n_past)
        return [_Source(place, shared, BY_MODEL, room, [])] if room > 0 else []

    def _by_model(self, sources: list[_Source], k: int, made: dict[int, tuple[int, list[int]]]) -> None:
        slots, clock = self._slots, self._draft.clock
        if slots is None or not sources:
            return
        slots.bring([(source.place.number, source.shared.text) for source in sources])
        before = clock()
        going = sources
        rows = slots.begin([(source.place.number, source.shared.text) for source in going])
        for source in sources:
            made[source.place.number] = BY_MODEL, []
        while True:
            still, last = [], []
            for source, row in zip(going, rows, strict=True):
                drafted, text = made[source.place.number][1], source.shared.text
                try:
                    token = source.shared.speculation.draft_at(row, self._draft.p_min)
                except ValueError as error:
                    text.error, text.over = text.failure(error), True
                    drafted.clear()
                    continue
                if token is None:
                    continue
                drafted.append(token)
                if len(drafted) < min(k, source.room) and not text.model.is_eog(token):
                    still.append(source)
                    last.append((source.place.number, token))
            if not still:
                break
            going, rows = still, slots.step(last)
        self.seconds[BY_MODEL] = clock() - before


class _Slots(Sequences):
    """The draft model's context: one cache for each cache of the target, and the list of tokens in each cache."""

    def __init__(self, model: Model, n: int, n_threads: int) -> None:
        super().__init__(model, n, min(n_threads, model.n_threads))
        self._past: list[list[int]] = [[] for _ in range(n)]

    def clear(self) -> None:
        """Empty all caches."""
        super().clear()
        self._past = [[] for _ in self._past]

    def copy(self, source: int, target: int) -> None:
        """Copy the contents of one cache to another."""
        self._copy_sequence(source, target)
        self._past[target] = self._past[source][:]

    def bring(self, texts: Sequence[tuple[int, Text]]) -> None:
        """If a cache lacks more tokens than usual, such as a prompt, decode all missing tokens except the last."""
        for number, text in texts:
            past = self._past[number]
            known = text.known(past)
            if known < len(past):
                self._keep(number, known)
                del past[known:]
            missing = text.after(len(past))
            if len(missing) > USUAL:
                self._add(number, missing[:-1])

    def begin(self, texts: Sequence[tuple[int, Text]]) -> list[Any]:
        """Decode the missing tokens of each text, and return the logits after each text."""
        last = []
        for number, text in texts:
            *missing, token = text.after(len(self._past[number]))
            if missing:
                self._add(number, missing)
            last.append((number, token))
        return self.step(last)

    def step(self, tokens: Sequence[tuple[int, int]]) -> list[Any]:
        """Decode one token in each of the given caches, and return the logits after each token."""
        rows = self._decode([(token, len(self._past[number]), number) for number, token in tokens], wanted=len(tokens))
        for number, token in tokens:
            self._past[number].append(token)
        return rows

    def _add(self, number: int, tokens: list[int]) -> None:
        past = self._past[number]
        for start in range(0, len(tokens), self.capacity):
            part = tokens[start : start + self.capacity]
            self._decode([(token, len(past) + i, number) for i, token in enumerate(part)], wanted=1)
            past += part
