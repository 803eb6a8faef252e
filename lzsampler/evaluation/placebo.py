"""`Placebo`: a sampler whose penalties hit other tokens than those that they are meant for.

A penalty changes a text in two ways: it makes repetitions less likely, and it disturbs the model. The placebo disturbs
the model as much and as often, but without regard to what would repeat; what a penalty does beyond its placebo is due
to what it aims at. arXiv 2608.22761 compares DRY with such an arm, matched in its interventions. We know that paper by
its abstract, so the way in which tokens are matched here is our own: at every step each token that the penalties would
change passes its change on to a token of the same order of rank, drawn at random.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import Tokens
from ..detection import Loop
from ..params import PENALTIES, Params
from ..sampler import Sampler

_FIRST_BAND = 10  # ranks 1 to 10, 11 to 100, 101 to 1,000 and so on


class Placebo:
    """A sampler like that of ``params``, in which other tokens get the changes that the penalties make.

    At every step the changes are as many and as large as those of the penalties after the same text. They are dealt out
    among the tokens whose logits have ranks from 1 to 10, from 11 to 100, and so on, each within its band, by a
    permutation that the seed of ``params`` decides; so a token may get the change that was meant for it. ``logit_bias``
    and the draw are those of ``params``.
    """

    def __init__(self, n_vocab: int, params: Params) -> None:
        off: dict[str, Any] = {penalty.strength: penalty.off(params) for penalty in PENALTIES}
        self._penalties = Sampler(n_vocab, replace(params, logit_bias=(), repetition_detection=None))
        self._draw = Sampler(n_vocab, replace(params, **off))
        self._random = np.random.default_rng([params.seed, n_vocab])
        ends = [_FIRST_BAND]
        while ends[-1] < n_vocab:
            ends.append(10 * ends[-1])
        self._bands = np.split(np.arange(n_vocab), ends[:-1])

    @property
    def loop(self) -> Loop | None:
        """The loop that the accepted tokens end in."""
        return self._draw.loop

    def prime(self, tokens: Tokens) -> None:
        """Take the prompt."""
        self._penalties.prime(tokens)
        self._draw.prime(tokens)

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Pick a token. ``logits``: float32[n_vocab], only read. Raises as `Sampler.sample`."""
        tokens, repeat, bias = self._penalties.edits()
        if not tokens.size or np.isnan(logits).any():  # the sampler refuses NaN, with its own message
            return self._draw.sample(logits)
        row = np.array(logits, np.float32)
        dealt = self._dealt(row)[tokens]
        old = row[dealt]
        row[dealt] = np.where(old > 0, old / repeat, old * repeat) + bias
        return self._draw.sample(row)

    def accept(self, token: int) -> None:
        """Take a token into the text."""
        self._penalties.accept(token)
        self._draw.accept(token)

    def _dealt(self, row: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """Return for each token the one that gets its change, int64[n_vocab]: a permutation within the bands."""
        order = np.argsort(-row, kind="stable")
        dealt = np.empty_like(order)
        for band in self._bands:
            dealt[order[band]] = order[self._random.permutation(band)]
        return dealt
