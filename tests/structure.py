"""The twin of what penalties make of a grammar: the share of a token's bytes that it leaves free, by derivatives."""

from collections.abc import Sequence

from derivatives import State, Twin
from lzsampler import TokenBytes


class Structure:
    """A regular expression as penalties know it, by the derivatives of `derivatives.Twin`: docs/penalties.md.

    A byte is forced where it alone can follow and the text may not end; a token of several bytes is free in part. A
    token that ends the text is forced where no byte can follow. What is not allowed counts as free.
    """

    def __init__(self, pattern: str, tokens: TokenBytes) -> None:
        self._twin, self._tokens = Twin(pattern), tokens
        self._bytes: dict[State, int] = {}

    def _n_next(self, state: State) -> int:
        """Return how many bytes can follow."""
        if state not in self._bytes:
            self._bytes[state] = sum(self._twin.read(bytes([byte]), state) is not None for byte in range(256))
        return self._bytes[state]

    def share(self, text: Sequence[int], token: int) -> float:
        """Return the share of a token's bytes that are free behind the tokens of a text, which the pattern allows."""
        state = self._twin.read(b"".join(self._tokens.pieces[past] for past in text))
        assert state is not None
        if token in self._tokens.end:
            return 0.0 if self._twin.accepts(state) and not self._n_next(state) else 1.0
        piece, n_free = self._tokens.pieces[token], 0
        if not piece or token in self._tokens.special:
            return 1.0
        for byte in piece:
            n_free += self._twin.accepts(state) or self._n_next(state) != 1
            after = self._twin.read(bytes([byte]), state)
            if after is None:
                return 1.0
            state = after
        return n_free / len(piece)

    def free(self, text: Sequence[int]) -> list[int]:
        """Return the tokens of a text of which the pattern left a byte free."""
        return [token for i, token in enumerate(text) if self.share(text[:i], token) > 0]
