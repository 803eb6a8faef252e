"""`Drafter`: drafts tokens for the texts of a `llama_cpp.Llama`, whose sampler chain judges the tokens.

`Llama.generate` has a ``draft_model``, whose tokens it checks exactly, but with disadvantages (llama-cpp-python
0.3.36). `Llama` computes and copies the logits of every token of the prompt. It keeps the logits of a whole context
(`Llama.scores`, 4 bytes times context times vocabulary). A text that is longer than ``n_batch`` fails. Logits
processors see tokens that may be rejected. The draft does not use the sampler. So here llama-cpp-python makes only the
first token, and this module loops over the other tokens.

The chain picks from the target's rows in sequence and accepts each pick, as without a draft. A drafted token is
accepted if it equals the picked token. The chain sees no rejected token. So rejected tokens have to be removed only
from llama.cpp's cache. A copy of the chain picks the draft model's tokens. Chain and copy have the same penalties and
draw the same random numbers, so they often pick the same token.
"""

import ctypes
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import row_of
from ..decoding.draft import Draft, Opened, Speculated, refuse_draft, too_large, warn_of_change
from ..decoding.pacing import Pace
from ..decoding.proposing import Begun, Proposal, Proposer
from ..errors import ArgumentError
from ..llama import gguf
from ..llama.attention import flash_attention_of
from ..llama.binding import llama_cpp
from ..llama.model import Model
from .sampled import SampledText

_AMONG = 10  # only this many best tokens count in the probability compared with p_min, as in llama.cpp
_Tokens = Generator[int, Sequence[int] | None, None]


def open_draft(llm: Any, path: str | Path) -> Draft:
    """Open a file as a draft model, with the target's settings, and return the draft. The caller closes the model."""
    model = Model(
        path,
        n_ctx=llm.n_ctx(),
        n_batch=llm.n_batch,
        n_gpu_layers=llm.model_params.n_gpu_layers,
        flash_attn=flash_attention_of(llm),
    )
    return Draft(model)


class Drafter:
    """Drafts for the texts of a model. `Pace` chooses the lengths of blocks from the measurements of all texts.

    Raises like `refuse_draft`, and ValueError for a model with a ``draft_model``. Warns if a text may differ from the
    text without a draft, and if the draft is at least as large as the model.
    """

    def __init__(self, llm: Any, draft: Draft) -> None:
        if llm.draft_model is not None:
            raise ArgumentError("this Llama has a draft_model already: leave out draft_model or draft")
        header = gguf.read(Path(llm.model_path))
        opened = Opened(header, llm, llm.n_ctx(), llm.n_batch)
        refuse_draft(opened, draft)
        warn_of_change(opened, draft, opened.n_ctx, stacklevel=2)
        self.draft = draft
        self._pace = Pace(draft.most, draft.fixed)
        self._figures = Speculated()
        large = None if draft.model is None else too_large(header, draft.model.header)
        if large is not None:
            warnings.warn(large, stacklevel=2)

    @property
    def figures(self) -> Speculated:
        """The statistics of the draft over all texts so far."""
        self._figures.rated(self._pace)
        return self._figures

    @property
    def _closed(self) -> bool:
        """Whether the draft model was closed, such as by `detach` during a stream, which goes on without a draft."""
        return self.draft.model is not None and self.draft.model.closed

    def tokens(
        self, llm: Any, plain: _Tokens, text: SampledText, criteria: Callable[..., bool] | None, most: int | None
    ) -> _Tokens:
        """Yield the tokens of a text. ``plain``: `Llama.generate`, which makes only the first token.

        ``text``: contains each token by the time the next token is requested. ``most``: the most tokens of the text, if
        known.
        """
        n_vocab = llm.n_vocab() if self.draft.model is None else min(llm.n_vocab(), self.draft.model.n_vocab)
        copy = _ChainCopy(text, n_vocab)
        proposer = Proposer(
            _Begun(text),
            self.draft,
            copy,
            self._pace,
            self._figures,
            lambda token: bool(llama_cpp.llama_vocab_is_eog(llm._model.vocab, token)),
        )
        with closing(plain):
            token = next(plain, None)
            while token is not None:
                _refuse_sent((yield token))
                room = min(len(llm.input_ids) - llm.n_tokens, llm.n_batch) - 1
                if most is not None:
                    room = min(room, most - len(text.tokens) - 1)
                rests = proposer.rests()
                try:
                    made = None if rests or self._closed else proposer.propose(room, llm.n_tokens)
                finally:
                    copy.discard()
                if made is None:
                    token = self._step(llm, token, criteria, timed=not rests)
                else:
                    token = yield from self._block(llm, text, token, made, criteria)

    def _step(self, llm: Any, token: int, criteria: Callable[..., bool] | None, *, timed: bool) -> int | None:
        """Decode a token, and return the next token; None if a stopping criterion ends the text."""
        clock = self.draft.clock
        before = clock()
        llm.eval([token])
        picked = int(llm._sampler.sample(llm._ctx, -1))
        if timed:
            self._pace.stepped(clock() - before)
        else:
            self._pace.passed()
        self._figures.plain += 1
        return None if _ended(llm, criteria) else picked

    def _block(
        self, llm: Any, text: SampledText, token: int, made: Proposal, criteria: Callable[..., bool] | None
    ) -> Generator[int, Sequence[int] | None, int | None]:
        """Decode a token and the block after it, yield the accepted tokens, and return the token after them.

        None if a stopping criterion ends the text. When a token is yielded, the model's ``n_tokens`` counts exactly the
        tokens before it, as in `Llama.generate`.
        """
        clock, n_past = self.draft.clock, llm.n_tokens
        before = clock()
        with text.block(llm, made.tokens) as drafted:
            _decode(llm, [token, *drafted])
        seconds = clock() - before
        stood, done = 0, False
        try:
            while not done:
                before = clock()
                llm.n_tokens = n_past + stood + 1
                picked = int(llm._sampler.sample(llm._ctx, stood))
                seconds += clock() - before
                done = stood == len(drafted) or picked != drafted[stood]
                if done:
                    self._pace.judged(made.kind, len(drafted), stood, stood + 1, made.seconds, seconds)
                if _ended(llm, criteria):
                    return None
                if not done:
                    stood += 1
                    _refuse_sent((yield picked))
            return picked
        finally:
            self._figures.judged(len(drafted), stood, stood + done)
            if llm.n_tokens < n_past + 1 + len(drafted):
                llm._ctx.kv_cache_seq_rm(-1, llm.n_tokens, -1)
                llm._requires_eval = True  # the last logits are those after a rejected token


def _decode(llm: Any, tokens: list[int]) -> None:
    """Decode tokens as `Llama.eval` does, with the logits after each of them; ``n_tokens`` is unchanged."""
    n = llm.n_tokens
    llm._ctx.kv_cache_seq_rm(-1, n, -1)
    llm._batch.set_batch(batch=tokens, n_past=n, logits_all=True)
    llm._ctx.decode(llm._batch)
    llm.input_ids[n : n + len(tokens)] = tokens
    if llm._logits_all:  # `Llama` needs all rows for logprobs
        rows = np.ctypeslib.as_array(llm._ctx.get_logits(), shape=(len(tokens) * llm.n_vocab(),))
        llm.scores[n : n + len(tokens), :].reshape(-1)[:] = rows
    llm._requires_eval = False


def _ended(llm: Any, criteria: Callable[..., bool] | None) -> bool:
    """Return whether the stopping criteria end the text. The criteria do not see the last token, as in
    `Llama.generate`.
    """
    return criteria is not None and bool(criteria(llm._input_ids, llm._scores[0, :]))


def _refuse_sent(sent: Sequence[int] | None) -> None:
    if sent:
        raise ArgumentError(
            "tokens sent to generate() are drafts, but this model has a draft already: leave out one of the two drafts"
        )


class _Begun(Begun):
    """Prompt and tokens of a `SampledText`."""

    def __init__(self, text: SampledText) -> None:
        self.prompt, self.tokens = list(text.prompt), text.tokens


class _ChainCopy:
    """Drafts with a copy of a text's chain, over ``n`` candidates."""

    def __init__(self, text: SampledText, n: int) -> None:
        self._text, self._n = text, n
        self._copy: Any = None
        self._candidates = np.zeros(0, [("id", np.int32), ("logit", np.float32), ("p", np.float32)])

    def draft_at(self, logits: Any, p_min: float = 0.0) -> int | None:
        """Draw the next token from a draft model's logits; None if its probability is below ``p_min``."""
        row = row_of(logits, self._n)
        if p_min > 0 and _surest(row) < p_min:
            return None
        if self._copy is None:
            self._copy = self._text.copied()
        if not self._candidates.size:
            self._candidates = np.zeros(self._n, self._candidates.dtype)
        candidates = self._candidates
        candidates["id"], candidates["logit"], candidates["p"] = np.arange(self._n), row, 0
        data = candidates.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        array = llama_cpp.llama_token_data_array(data, self._n, -1, False)
        llama_cpp.llama_sampler_apply(self._copy, ctypes.byref(array))
        if not 0 <= array.selected < array.size:
            return None
        token = int(array.data[array.selected].id)
        llama_cpp.llama_sampler_accept(self._copy, token)
        return token

    def draft_token(self, token: int) -> None:
        """Do nothing: no token is drawn after a token from a match."""

    def discard(self) -> None:
        """Forget the drafted tokens. The next draft begins with a new copy of the chain."""
        if self._copy is not None:
            llama_cpp.llama_sampler_free(self._copy)
            self._copy = None


def _surest(row: npt.NDArray[np.float32]) -> float:
    """Return the probability of the best token among the ten best, at temperature 1."""
    best = np.partition(row, -min(_AMONG, row.size))[-_AMONG:].astype(np.float64)
    return float(1 / np.exp(best - best.max()).sum())
