"""The twin of speculation: one position after the other, each with a sampler that has read the text anew.

Nothing here is rewound or kept from one position to the next, so there is no state that could be wrong. The picks are
those of `determinism`, the twin in single precision, and hold bit for bit. The subclasses at the end are five ways to
get speculation wrong, each of which some engine has shipped; the tests must tell them from the right one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

import determinism
import reference
from determinism import Singles
from lzsampler import Params, Sampler

Text = tuple[int, ...]
Distribution = dict[int, float]
Mode = Literal["gumbel", "mrs", "match"]


@dataclass(frozen=True)
class Pair:
    """A target and a draft model, whose logits are functions of the text so far, and the mask of each position."""

    n_vocab: int
    target: Callable[[Text], Singles]
    draft: Callable[[Text], Singles]
    mask: Callable[[Text], tuple[int, ...] | None] = lambda text: None


class Kept(NamedTuple):
    """What stays of a row: ids, the best first, and how many bits each is below the best."""

    ids: Any
    y: Singles


@lru_cache(maxsize=100_000)
def log2_noise(n: int, seed: int, position: int) -> Singles:
    return determinism.log2(determinism.token_noise(np.arange(n), seed, position))


def race(kept: Kept, seed: int, position: int, greedy: bool) -> int:
    if greedy or len(kept.ids) == 1:
        return int(kept.ids[0])
    scores = kept.y + log2_noise(int(kept.ids.max()) // 64 * 64 + 64, seed, position)[kept.ids]
    return int(kept.ids[np.lexsort((kept.ids, scores))[0]])


class Twin:
    """Speculation over a pair of models. ``params``: the penalties see the text, and nothing before it."""

    def __init__(self, pair: Pair, params: Params, mode: Mode, ends: Sequence[int] = ()) -> None:
        self.pair, self.params, self.mode, self.ends = pair, params, mode, frozenset(ends)
        self._kept: dict[tuple[Text, Text, bool], Kept] = {}

    def plan(self, text: Text) -> determinism.Plan:
        p = self.params
        sampler = Sampler(self.pair.n_vocab, p)
        for token in text:
            sampler.accept(token)
        edits = zip(*(values.tolist() for values in sampler.edits()), strict=True)
        return determinism.Plan(
            edits=tuple(determinism.Edit(*edit) for edit in edits),
            mask=self.pair.mask(text),
            sign_aware=p.sign_aware,
            temperature=p.temperature,
            temperature_last=p.temperature_last,
            top_k=p.top_k,
            top_p=p.top_p,
            min_p=p.min_p,
            ties=p.ties,
        )

    def penalised_as(self, text: Text, block: Text) -> Text:
        """Return the text whose penalties and mask hold after ``text``; ``block``: where the block began."""
        return text

    def kept(self, text: Text, block: Text, of_draft: bool) -> Kept:
        """What stays of a model's row after ``text``."""
        key = (text, block, of_draft)
        if key not in self._kept:
            row = self.pair.draft(text) if of_draft else self.pair.target(text)
            plan = self.plan(self.penalised_as(text, block))
            shared = min(len(row), self.pair.n_vocab)
            plan = replace(plan, edits=tuple(edit for edit in plan.edits if edit.token < shared))
            if of_draft and self.mode == "match":
                plan = replace(plan, temperature=0.0)
            self._kept[key] = Kept(*determinism.kept(row[:shared], plan))
        return self._kept[key]

    def drafted(self, kept: Kept, seed: int, position: int) -> int:
        """The token that the draft proposes, out of what stays of its row."""
        return race(kept, seed, position, self.mode == "match" or self.params.temperature == 0)

    def judged(self, p: Kept, q: Kept, drafted: int, seed: int, position: int) -> int:
        """The token at a position: the drafted one, if it stands."""
        if self.mode != "mrs":
            return race(p, seed, position, self.params.temperature == 0)
        return self.verified(determinism.distribution(*p), determinism.distribution(*q), drafted, seed, position)

    def verified(self, p: Distribution, q: Distribution, drafted: int, seed: int, position: int) -> int:
        return determinism.verified(p, q, drafted, seed, position)

    def block(self, text: Text, k: int, seed: int) -> Text:
        """Return the tokens, at least one, that a block of ``k`` drafted tokens adds to a text."""
        drafts: list[int] = []
        for _ in range(k):
            now = (*text, *drafts)
            drafts.append(self.drafted(self.kept(now, text, True), seed, len(now)))
        out: list[int] = []
        for drafted in drafts:
            now = (*text, *out)
            token = self.judged(self.kept(now, text, False), self.kept(now, text, True), drafted, seed, len(now))
            out.append(token)
            if token != drafted or token in self.ends:
                return tuple(out)
        now = (*text, *out)
        return (*out, race(self.kept(now, text, False), seed, len(now), self.params.temperature == 0))

    def text(self, length: int, k: int, seed: int) -> Text:
        text: Text = ()
        while len(text) < length and not (text and text[-1] in self.ends):
            text += self.block(text, min(k, length - len(text) - 1), seed)
        return text


# ---- wrong in five ways ----


class BestOfDraft(Twin):
    """Drafts its best token, and yet judges it as if it had been drawn from the draft's distribution."""

    def drafted(self, kept: Kept, seed: int, position: int) -> int:
        return int(kept.ids[0])


class ByIndex(Twin):
    """Takes the residual of two sorted lists by their indices, as if both held the same tokens."""

    def verified(self, p: Distribution, q: Distribution, drafted: int, seed: int, position: int) -> int:
        misplaced = dict(zip(p, [*q.values(), *[0.0] * len(p)], strict=False))
        if determinism.accepted(p, q, drafted, seed, position):
            return drafted
        u = determinism.uniform(seed, position, reference.RESIDUAL_DOMAIN)
        token = determinism.draw_excess(p, misplaced, u)
        return next(iter(p)) if token is None else token


class Frozen(Twin):
    """Keeps the penalties and the mask of the block's beginning for all of it."""

    def penalised_as(self, text: Text, block: Text) -> Text:
        return block


class FromTarget(Twin):
    """Replaces a token that falls by one of the target's distribution, and not of the residual."""

    def verified(self, p: Distribution, q: Distribution, drafted: int, seed: int, position: int) -> int:
        if determinism.accepted(p, q, drafted, seed, position):
            return drafted
        token = determinism.draw_excess(p, {}, determinism.uniform(seed, position, reference.RESIDUAL_DOMAIN))
        assert token is not None
        return token


class Threshold(Twin):
    """Accepts what the target gives a quarter at least ("typical acceptance")."""

    def verified(self, p: Distribution, q: Distribution, drafted: int, seed: int, position: int) -> int:
        if p.get(drafted, 0.0) >= 0.25:
            return drafted
        token = determinism.draw_excess(p, q, determinism.uniform(seed, position, reference.RESIDUAL_DOMAIN))
        return next(iter(p)) if token is None else token


WRONG = (BestOfDraft, ByIndex, Frozen, FromTarget, Threshold)
