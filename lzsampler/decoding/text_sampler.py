"""`TextSampler`: the interface of a sampler that replaces `Sampler` in a text."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._check import Tokens, row_of


class TextSampler(Protocol):
    """The interface of a sampler that replaces `Sampler` in a text."""

    def prime(self, tokens: Tokens) -> None:
        """Add the prompt to the history."""

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Pick a token; ValueError when logits are nan."""

    def accept(self, token: int) -> None:
        """Add a token of the text to the history."""


def step_of(sampler: TextSampler, n_vocab: int) -> Callable[[Any], tuple[int, bool]]:
    """Return a function that does for this sampler what `Sampler.step_at` does for a `Sampler`."""

    def step_at(logits: Any) -> tuple[int, bool]:
        token = sampler.sample(row_of(logits, n_vocab))
        sampler.accept(token)
        return token, False

    return step_at
