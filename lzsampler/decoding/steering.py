"""`Steering`: changes the settings of a text's sampler from token to token."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..constraint.grammar import Grammar
from ..params import Params
from ..sampler import Sampler
from .actions import Draw
from .parts import PARTS, Part, PartTracker
from .policy import unpriced
from .recovery import Recovery


class Steering:
    """The sampler of a text. `steer` changes its settings as the part of the text, the grammar and the actions on loops
    require.

    ``waits``: whether the grammar begins after the thinking. ``parts``: tells in which part of the text the next token
    falls; None if no setting depends on the part. ``penalty_scope``: the parts in which penalties apply.
    ``grammar_from``: number of tokens before the grammar began; None as long as it has not begun.
    """

    def __init__(
        self,
        n_vocab: int,
        params: Params,
        grammar: Grammar | None,
        *,
        waits: bool,
        parts: PartTracker | None,
        penalty_scope: Sequence[Part] | None,
    ) -> None:
        self.sampler = Sampler(n_vocab, params)
        self.sampler.set_grammar(None if waits else grammar)
        self.grammar_from: int | None = None if waits else 0
        self.parts = parts
        self._params, self._grammar = params, grammar
        self._priced = frozenset(penalty_scope or PARTS)
        self._masked = False
        self._in_force: tuple[Draw | None, bool] = None, True

    @property
    def part(self) -> Part:
        """The part of the text in which the next token falls."""
        return "answer" if self.parts is None else self.parts.part

    @property
    def steady(self) -> bool:
        """Whether the sampler stays unchanged from token to token, unless an action on a loop changes it."""
        return self.parts is None and not self._masked

    def add(self, fragment: str | bytes) -> bool:
        """Take the text that a token adds; return whether to call `steer`. Needs ``parts``."""
        assert self.parts is not None
        self.parts.add(fragment)
        return self.grammar_from is None or (self.parts.part in self._priced) != self._in_force[1]

    def cut(self, n: int, keep: int) -> None:
        """Shorten the text from ``n`` tokens to the first ``keep`` tokens."""
        self.sampler.rewind(n - keep)
        if self.grammar_from is not None and keep < self.grammar_from:
            self.grammar_from = None  # rewinding the sampler has removed the grammar
        if self.parts is not None:
            self.parts.cut(keep)
        self._masked = True  # rewinding the sampler may have restored an old mask

    def steer(self, n: int, recovery: Recovery | None) -> None:
        """Set up the sampler for the token after the first ``n`` tokens."""
        if self.grammar_from is None and self.parts is not None and self.parts.part != "thinking":
            self.sampler.set_grammar(self._grammar)
            self.grammar_from = n
        forbidden = () if recovery is None else recovery.forbidden
        if forbidden or self._masked:
            self.sampler.set_mask(_without(forbidden, self.sampler.n_vocab) if forbidden else None)
            self._masked = bool(forbidden)
        draws = None if recovery is None else recovery.draws
        wanted = draws, self.parts is None or self.parts.part in self._priced
        if wanted != self._in_force:
            params = self._params if draws is None else draws.params(self._params)
            self.sampler.set_params(params if wanted[1] else unpriced(params))
            self._in_force = wanted


def _without(tokens: Sequence[int], n_vocab: int) -> npt.NDArray[np.uint32]:
    """Return the mask that allows all tokens except ``tokens``."""
    words = np.full((n_vocab + 31) // 32, 0xFFFFFFFF, np.uint32)
    for token in tokens:
        words[token // 32] &= np.uint32(~(1 << token % 32) & 0xFFFFFFFF)
    return words
