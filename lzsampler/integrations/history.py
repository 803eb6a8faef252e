"""`Request`: the tokens of one text on a server, and the edits for the text's next step."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._ffi import ffi, lib
from ..params import Params
from ..sampler import Sampler
from .tokenizer import fitted

EDIT = np.dtype([("token", np.int32), ("repeat", np.float32), ("bias", np.float32)])  # lzs_edit of lzsampler_plan.h
Edits = npt.NDArray[Any]  # array of EDIT


def edits_of(sampler: Sampler) -> Edits:
    """Return the edits of a sampler's next step, at most one per token, in any order. Some edits may change nothing."""
    n = ffi.new("size_t *")
    with sampler.in_use:  # The array of C is valid until the next accept.
        edits = lib.lzs_edits(sampler.handle, n)
        return np.frombuffer(ffi.buffer(edits, n[0] * EDIT.itemsize), EDIT).copy()


class Request:
    """A text whose tokens come from a server. Only new tokens are added to the sampler, so a step costs little.

    ``prompt``: the tokens of the prompt, which penalties see with ``history="all"``. Ids outside the vocabulary (image
    placeholders) are left out. Raises ValueError for ``params`` that do not fit the vocabulary.
    """

    def __init__(self, n_vocab: int, params: Params, prompt: Iterable[int] = ()) -> None:
        self.params = params
        self._sampler = Sampler(n_vocab, fitted(params, n_vocab))
        self._tokens: list[int] = []  # tokens that the sampler has accepted
        if params.history == "all":
            array = np.fromiter(prompt, np.int64)
            self._sampler.prime(array[(array >= 0) & (array < n_vocab)])

    def __len__(self) -> int:
        return len(self._tokens)

    def follow(self, tokens: Sequence[int]) -> bool:
        """Make ``tokens`` the generated text. Return False if a token outside the vocabulary stopped this, else True.

        Of the accepted tokens, the method compares only the last one. This is enough, because a server either adds
        tokens at the end of a text or removes tokens there.
        """
        n = len(self._tokens)
        if n and (len(tokens) < n or tokens[n - 1] != self._tokens[-1]):
            same = zip(tokens, self._tokens, strict=False)
            n = next((i for i, (new, old) in enumerate(same) if new != old), min(len(tokens), n))
            self.rewind(len(self._tokens) - n)
        return all(self.accept(tokens[i]) for i in range(n, len(tokens)))

    def accept(self, token: int) -> bool:
        """Add a token and return True. If it is not in the vocabulary, change nothing and return False."""
        if not 0 <= token < self._sampler.n_vocab:
            return False
        self._sampler.accept(int(token))
        self._tokens.append(int(token))
        return True

    def rewind(self, n: int) -> None:
        """Take back the last ``n`` tokens."""
        if n:
            self._sampler.rewind(n)
            del self._tokens[-n:]

    def edits(self) -> Edits:
        """Return the edits of the next step, EDIT[k], at most one per token."""
        return edits_of(self._sampler)
