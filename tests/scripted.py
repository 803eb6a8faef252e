"""A model without weights, whose logits are whatever a script makes of the tokens in its context."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from lzsampler import LzsError, Sampler
from lzsampler._ffi import ffi
from lzsampler.llama.model import Model
from lzsampler.util.in_use import InUse

Script = Callable[[Sequence[int]], Sequence[float]]


class Scripted(Model):
    """``pieces``: what each token adds to a text, None for one that ends it. ``script``: tokens -> logits.

    ``recurrent``: it cannot go back part of the way. ``tokens_of``: the tokens of texts that are written into it.
    """

    def __init__(
        self,
        pieces: Sequence[str | bytes | None],
        script: Script,
        *,
        n_ctx: int = 1 << 20,
        tokens_of: dict[str, list[int]] | None = None,
        recurrent: bool = False,
    ) -> None:
        self.n_vocab, self.n_ctx, self.script, self.recurrent = len(pieces), n_ctx, script, recurrent
        self.fragments: Any = dict(enumerate(pieces))
        self.eog_tokens = tuple(i for i, piece in enumerate(pieces) if piece is None)
        self.header: Any = SimpleNamespace(chat_template=None)
        self.past: list[int] = []
        self.in_use = InUse("this Model (scripted)", "give each thread a Model of its own")
        self.picks = 0
        self.on_device = False
        known = tokens_of or {}
        self.llm: Any = SimpleNamespace(tokenize=lambda text, add_bos, special: known[text.decode()])
        self._row = ffi.new("float[]", self.n_vocab)

    def tokenize(self, text: str) -> list[int]:
        return list(self.llm.tokenize(text.encode(), add_bos=False, special=True))

    def decode(self, tokens: Any) -> None:
        self.past += [int(token) for token in tokens]
        assert len(self.past) <= self.n_ctx

    def keep(self, n: int = 0) -> None:
        if self.recurrent and 0 < n < len(self.past):
            self.past.clear()
            raise LzsError("a recurrent model cannot go back")
        del self.past[n:]

    def logits_pointer(self) -> Any:
        self.picks += 1
        self._row[0 : self.n_vocab] = list(self.script(self.past))
        return self._row

    def stepper(self, sampler: Sampler, graph: object = None) -> Any:
        def step(token: int) -> tuple[int, bool]:
            self.decode((token,))
            return sampler.step_at(self.logits_pointer())

        times = SimpleNamespace(decode_seconds=0.0, logits_seconds=0.0, sampling_seconds=0.0)
        return SimpleNamespace(step=step, loop=times)


def cycle(pattern: Sequence[int], n_vocab: int, prompt: int = 1) -> Script:
    """A script that always wants the next token of a pattern most, then the one after it, and so on."""

    def script(past: Sequence[int]) -> list[float]:
        at = len(past) - prompt
        row = [-1.0] * n_vocab
        for rank, token in enumerate(dict.fromkeys(pattern[(at + i) % len(pattern)] for i in range(len(pattern)))):
            row[token] = 9.0 - rank
        return row

    return script
