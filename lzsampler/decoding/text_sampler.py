"""`TextSampler`: the methods that a text needs of a sampler other than `Sampler`."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._check import Tokens, row_of


class TextSampler(Protocol):
    """The methods that a text needs of a sampler other than `Sampler`."""

    def prime(self, tokens: Tokens) -> None:
        """Take the prompt."""

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Pick a token; ValueError when logits are nan."""

    def accept(self, token: int) -> None:
        """Take a token into the text."""


def step_of(sampler: TextSampler, n_vocab: int) -> Callable[[Any], tuple[int, bool]]:
    """Return a function like `Sampler.step_at` for another kind of sampler."""

    def step_at(logits: Any) -> tuple[int, bool]:
        token = sampler.sample(row_of(logits, n_vocab))
        sampler.accept(token)
        return token, False

    return step_at
