"""`LZLogitsProcessor`: the penalties and ``logit_bias`` inside transformers' ``generate``.

Facts about ``generate`` are from transformers 5.23.0. The `LogitsProcessorList` of transformers calls any callable and
does not check for the class `LogitsProcessor`. So this module imports torch, but not transformers.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._check import INT32_MAX, integer
from ..errors import ArgumentError, ArgumentTypeError, MissingExtra, missing
from ..params import DETECTIONS, PENALTY_FIELDS, Params, PenaltySettings, penalties_from, reach
from ..sampler import Sampler
from ..util.signature import settings, with_keywords
from .history import Edits, edits_of
from .logit_rows import apply_edits
from .request_settings import refuse_what_the_host_does, with_separators
from .tokenizer import fitted, lz_separators

if TYPE_CHECKING:
    from typing_extensions import Unpack

try:
    import torch
except ImportError as error:
    if error.name != "torch":  # torch is installed but broken, so its own message is shown.
        raise MissingExtra(f"torch does not load: {error}") from error
    raise missing("torch and transformers are needed for this", "torch", "transformers") from None

__all__ = ["LZLogitsProcessor", "lz_separators"]

_Tokens = npt.NDArray[np.int64]


class _Settings(PenaltySettings, total=False):
    exempt: Iterable[int]
    dry_breakers: Iterable[int]


class LZLogitsProcessor:
    """The penalties as a logits processor: ``generate(..., logits_processor=[LZLogitsProcessor()])``.

    ``params``: a `Params` that sets only penalties (LZ, DRY, repetition, frequency, presence) and ``logit_bias``.
    ``penalties``: fields of `Params` as keywords. They replace fields of ``params``. Without ``params`` they replace
    fields of ``PRESETS["default"]`` of `lzsampler.params`, as in `lzsampler.attach`. The other arguments:

    - ``tokenizer``: the model's tokenizer. It gives LZ its separators (`lz_separators`), unless you set other
      separators. Without separators, LZ penalizes tables, JSON and code more.
    - ``prompt_length``: for ``history="generated"``, number of tokens of every row before the generated tokens,
      including left padding. None means the length of the first input of each ``generate``, see `reset`.
    - ``pad_token_id``: with ``history="all"``, tokens with this id at the beginning of a row do not count.
    - ``inplace``: edit the scores that `__call__` receives, which saves a copy. ``generate(output_logits=True)`` then
      returns the edited rows, because it returns the same tensor.

    Use a processor for one ``generate`` at a time. Bad arguments, and settings that belong to ``generate``
    (temperature, truncation, seed), raise a ValueError that shows the value. An unknown keyword raises TypeError.
    """

    supports_continuous_batching = False  # Continuous batching packs all requests into one row.

    def __init__(
        self,
        params: Params | None = None,
        *,
        tokenizer: Any = None,
        prompt_length: int | None = None,
        pad_token_id: int | None = None,
        inplace: bool = False,
        **penalties: "Unpack[_Settings]",
    ) -> None:
        own = ("params", "tokenizer", "prompt_length", "pad_token_id", "inplace")
        params = penalties_from("LZLogitsProcessor", params, penalties, own)
        if tokenizer is not None:
            params = with_separators(params, penalties, lambda: lz_separators(tokenizer))
        refuse_what_the_host_does("LZLogitsProcessor", params, "generate()")
        if prompt_length is not None and params.history == "all":
            raise ArgumentError(f'prompt_length={prompt_length!r} has no meaning with history="all"')
        self.params = params
        self.prompt_length = None if prompt_length is None else integer("prompt_length", prompt_length, 0, INT32_MAX)
        self.pad_token_id = None if pad_token_id is None else integer("pad_token_id", pad_token_id, -1, INT32_MAX)
        self.inplace = inplace
        self._reach = reach(params)
        self._sampler: Sampler | None = None
        self.reset()

    def reset(self) -> None:
        """Treat the next call as the first call of a ``generate``, whose whole input is prompt.

        You seldom need this method. A call counts as the next step of the same ``generate`` if two conditions hold.
        First, its input is longer than the prompt. Second, its input without the last token is the input of the last
        call, or the beginning of that input. (Rows may change places, as in a beam search. An input may shrink when
        ``generate`` refuses drafts.)

        So a new ``generate`` goes unnoticed only if its prompt meets both conditions: if the prompt is the last text
        plus one token, or the last prompt plus one token. Everything after the first prompt then counts as generated,
        although one token of it belongs to the new prompt.
        """
        self._last: _Tokens | None = None
        self._prompt = 0

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        """Return ``scores`` after penalties and ``logit_bias``: the same tensor if ``inplace`` is set, else a copy.

        ``input_ids``: int[batch, length], each row a text that begins with its (padded) prompt. ``scores``: [batch,
        n_vocab] of any floating dtype on any device. float32 rows get the same bits as from `Sampler.process`. Rows of
        narrower types are edited in float32 and rounded. Only the scores of tokens in the history and in ``logit_bias``
        are read and written. NaN and infinities stay, except that a bias of -inf forbids its token even if its score is
        NaN or +inf. If there is nothing to apply, the call returns ``scores`` unchanged. Raises ValueError for other
        shapes, and for ids in the history that are outside the vocabulary.
        """
        if input_ids.ndim != 2 or scores.ndim != 2 or len(input_ids) != len(scores):
            raise ArgumentError(
                "input_ids must be [batch, length] and scores [batch, n_vocab], got shapes "
                f"{list(input_ids.shape)} and {list(scores.shape)}"
            )
        if not scores.is_floating_point():
            raise ArgumentTypeError(f"scores must be floating-point numbers, got {scores.dtype}")
        if self._reach == 0 and not self.params.logit_bias:
            return scores
        sampler = self._sampler_for(scores.shape[1])
        edits = [self._edits(sampler, history) for history in self._histories(input_ids.cpu().numpy())]
        out = scores if self.inplace else scores.clone()
        apply_edits(out, range(len(edits)), edits, [self.params.sign_aware] * len(edits))
        return out

    def _sampler_for(self, n_vocab: int) -> Sampler:
        """Return the sampler that makes the edits. All rows share it, because `_edits` gives it each row's history."""
        if self._sampler is None or self._sampler.n_vocab != n_vocab:
            self._sampler = Sampler(n_vocab, replace(fitted(self.params, n_vocab), history="all"))
        return self._sampler

    def _histories(self, ids: _Tokens) -> list[_Tokens]:
        """Return the tokens of each row that the penalties look at."""
        n = ids.shape[1]
        near = n - min(n, self._reach)
        if self.params.history == "generated":
            start = self._follow(ids) if self.prompt_length is None else self.prompt_length
            return [row[max(start, near) :] for row in ids]
        if self.pad_token_id is None:
            return [row[near:] for row in ids]
        text = ids != self.pad_token_id
        return [row[max(int(real.argmax()) if real.any() else n, near) :] for row, real in zip(ids, text, strict=True)]

    def _follow(self, ids: _Tokens) -> int:
        """Return the length of the prompt. If ``ids`` do not continue the ids of the last call, all ids are prompt."""
        n = ids.shape[1]
        if self._last is None or not self._prompt < n <= self._last.shape[1] + 1 or not _rows_in(ids, self._last):
            self._prompt = n
        self._last = ids.copy()  # A beam search writes into the tensor that it passes.
        return self._prompt

    @staticmethod
    def _edits(sampler: Sampler, history: _Tokens) -> Edits:
        """Return the edits of one row."""
        sampler.reset()
        sampler.prime(history)
        return edits_of(sampler)


_FIELDS = [name for name in PENALTY_FIELDS if name not in DETECTIONS]
_init: Any = LZLogitsProcessor.__init__
_init.__signature__ = with_keywords(_init, settings(_FIELDS, given=True))


def _rows_in(ids: _Tokens, last: _Tokens) -> bool:
    """Return whether each row of ``ids``, without its last token, is the beginning of a row of ``last``."""
    if len(ids) != len(last):
        return False
    before, begun = ids[:, :-1], last[:, : ids.shape[1] - 1]
    return np.array_equal(before, begun) or {row.tobytes() for row in before} <= {row.tobytes() for row in begun}
