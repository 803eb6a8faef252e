"""`cost`: measures how much penalties cost on reference texts, which are correct texts, teacher-forced.

The model gives logits for each token of a text. These logits determine the probability of the token, without penalties
and with the penalties of each setting. So one decode of a text serves all settings. While llama.cpp decodes a batch of
tokens, lzsampler scores the previous batch.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import INT32_MAX, integer
from .._values import counted
from ..decoding.draft import common_length
from ..decoding.parts import PARTS, PartTracker
from ..decoding.reasoning import opened
from ..errors import ArgumentError, LzsError
from ..llama.model import Model
from ..params import Params
from ..sampler import Sampler
from ..util.pool import started_pool
from .cost_scores import Given, edited
from .cost_texts import BadFile, Part, RightText, read_texts
from .costs import SKIP, Charge, Cost, Costs, TextCosts, charges_of
from .fitting import params_for
from .grid import Grid, read_grid

_BATCH_BYTES = 32 << 20  # bytes of a batch's logits at most; llama.cpp has 1 batch, this module up to 3
_LEAST, _MOST = 64, 256  # least and greatest number of tokens of a batch
_TEMPLATE_MARKS = ("<think>\n", "\n</think>\n\n")  # tags around reasoning that a transcript stores separately


def cost(
    model: str | Path,
    texts: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    *,
    sets: str | Sequence[str] = (),
    grid: Grid | str | Path = "presets",
    skip: int = SKIP,
    max_tokens: int | None = None,
    format: str | None = None,
    n_ctx: int | None = None,
    n_threads: int | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Costs:
    """Measure how much the penalties of a grid cost on reference texts. One decode of a text serves all penalties.

    ``model``: a GGUF file. ``texts``: files and folders. ``sets``: names of sets of the package, such as "lists", or
    "all". ``format``: as in `read_texts`, which explains how texts are read and what their kinds are. ``skip``: how
    many tokens at the beginning of each text are not scored, because most penalties have little effect on them.
    ``max_tokens``: how many tokens of a text are read at most; None reads all. A text that does not fit in the context
    (``n_ctx``, as in `Model`) is cut into pieces. Each piece is scored like a new text, with its own ``skip``.
    ``on_progress`` is called with (characters done, all characters).

    The cost covers the whole distribution at temperature 1. Truncation, temperature and seeds have no effect, so
    settings that differ only in these three count once. Intervals are over texts. A KeyboardInterrupt ends the
    measurement; the texts scored until then are returned, if there are any.

    ValueError for bad arguments, for a grid that does not fit the model, and if there is no text to score. LzsError if
    a file or the model fails.
    """
    chosen = grid if isinstance(grid, Grid) else read_grid(grid)
    skip = integer("skip", skip, 0, INT32_MAX)
    most = INT32_MAX if max_tokens is None else integer("max_tokens", max_tokens, 2, INT32_MAX)
    found, bad = read_texts(texts, sets=sets, format=format)
    if not found:
        raise ArgumentError(_nothing(0, skip, bad))
    charges = charges_of(chosen)
    scored: list[TextCosts] = []
    short = 0
    interrupted = False
    # Flash attention has other kernels for long batches. Scores would therefore depend on how a text is cut.
    with Model(model, n_ctx=n_ctx, n_threads=n_threads, flash_attn=False) as opened_model:
        meter = Meter(opened_model, charges, skip=skip, max_tokens=most, on_progress=on_progress)
        try:
            for _, made in meter.measure(found):
                if isinstance(made, BadFile):
                    bad.append(made)
                elif made.tokens:
                    scored.append(made)
                else:
                    short += 1
        except KeyboardInterrupt:
            interrupted = True
            if meter.unfinished is not None and meter.unfinished.tokens:
                scored.append(meter.unfinished)
            if not scored:
                raise
        name = opened_model.path.name
    if not scored:
        raise ArgumentError(_nothing(short, skip, bad))
    return Costs(charges, tuple(scored), skip, name, chosen.name, short, tuple(bad), interrupted)


def _nothing(short: int, skip: int, bad: Sequence[BadFile]) -> str:
    if short:
        left_out = counted(skip, "token that is", "tokens that are")
        return f"no text is longer than the {left_out} left out: give longer texts, or a smaller skip"
    if not bad:
        return "there is no text to score"
    more = f" (and {counted(len(bad) - 1, 'other')} that cannot be read or scored)" if len(bad) > 1 else ""
    return f"there is no text to score: {bad[0]}{more}"


class _Piece(NamedTuple):
    """A prompt, which is not scored, and tokens to score. Prompt and tokens together fit the context.

    ``parts``: for each token, its part of the text, such as the reasoning; empty if no penalty depends on parts.
    """

    prompt: list[int]
    tokens: list[int]
    parts: list[str]


class Meter:
    """Measures the cost of penalties on texts, with a model.

    ``skip``, ``max_tokens`` and ``on_progress`` as in `cost`. ``unfinished``: the costs so far of the text that is
    being scored. ValueError if the penalties do not fit the model.
    """

    def __init__(
        self,
        model: Model,
        charges: Sequence[Charge],
        *,
        skip: int,
        max_tokens: int = INT32_MAX,
        on_progress: Callable[[int, int], object] | None = None,
    ) -> None:
        self.charges = charges
        self._model, self._skip, self._most = model, skip, max_tokens
        self._params: dict[str, Params] = {
            charge.name: params_for(model, charge.name, charge.params, charge.dry_breakers)
            for charge in charges
            if not charge.is_free
        }
        self._outside = {  # outside a penalty's scope only the bias applies, as in generation
            charge.name: Sampler(model.n_vocab, Params(logit_bias=charge.params.logit_bias))
            for charge in charges
            if charge.scope != PARTS
        }
        self._batch = min(max(_BATCH_BYTES // (4 * model.n_vocab), _LEAST), _MOST, model.n_batch)
        self._on_progress = on_progress
        self.unfinished: TextCosts | None = None

    def measure(self, texts: Sequence[RightText]) -> Iterator[tuple[RightText, TextCosts | BadFile]]:
        """Yield each text with its costs, or with the reason why it cannot be scored.

        If no token of a text remains after the skipped tokens, the text's costs count 0 tokens.
        """
        sizes = [sum(len(part.text) for part in text.parts) for text in texts]
        done, whole = 0, sum(sizes)
        with started_pool(1) as ahead:
            for text, size in zip(texts, sizes, strict=True):
                self._report(done, whole)
                try:
                    pieces = self._pieces(text)
                except (LzsError, ValueError) as error:  # LzsError: the chat template refuses the messages
                    yield text, BadFile(text.name, 0, str(error))
                    continue
                finally:
                    done += size
                n_tokens = sum(len(piece.tokens) for piece in pieces)
                seen = 0
                self.unfinished = TextCosts(text.name, text.kind, 0, 0.0, 0, {c.name: Cost() for c in self.charges})
                self._model.keep(0)  # with an empty context, the costs do not depend on the previous text
                try:
                    for piece in pieces:
                        for n in self._score(piece, ahead):
                            self._report(done - size + size * (seen + n) / max(n_tokens, 1), whole)
                        seen += len(piece.tokens)
                except (LzsError, ValueError) as error:  # llama.cpp failed, or its logits are not numbers
                    self.unfinished = None
                    yield text, BadFile(text.name, 0, str(error))
                    continue
                made, self.unfinished = self.unfinished, None
                yield text, made
        self._report(whole, whole)

    def _report(self, done: float, whole: int) -> None:
        if self._on_progress is not None:
            self._on_progress(int(done), whole)

    # -- tokens --

    def _pieces(self, text: RightText) -> list[_Piece]:
        """Return the pieces of a text to decode. ValueError or LzsError, with a reason, if it cannot be scored."""
        left, pieces = self._most, []
        for part in text.parts:
            prompt, before, mark = self._prompt(part)
            tokens = self._plain(before + part.text)[:left]
            left -= len(tokens)
            room = self._model.n_ctx - len(prompt)
            needed = min(len(tokens), self._skip + 2)
            if room < needed and len(tokens) > self._skip:  # a larger context would not help a shorter text
                asked = f", {len(prompt)} of them for what it answers" if prompt else ""
                raise ArgumentError(
                    f"it needs a context of at least {len(prompt) + needed} tokens{asked}, and this one has "
                    f"{self._model.n_ctx}: enlarge the context"
                )
            parts = self._parts(tokens, mark) if self._outside else []
            for start in range(0, len(tokens), room):
                some = slice(start, start + room)
                pieces.append(_Piece(prompt, tokens[some], parts[some]))
        return pieces

    def _parts(self, tokens: Sequence[int], mark: str) -> list[str]:
        """Return each token's part of the text. ``mark``: the tag with which the prompt opens reasoning, or ""."""
        tracker = PartTracker(mark)
        parts: list[str] = []
        for token in tokens:
            parts.append(tracker.part)
            tracker.add(self._model.fragment(token) or b"")
        return parts

    def _prompt(self, part: Part) -> tuple[list[int], str, str]:
        """Return (token ids of the prompt, reasoning, tag) for a text.

        The reasoning, with tags around it, is scored before the text. The tag opens reasoning at the end of the prompt.
        Reasoning and tag may be "".
        """
        asked = part.asked
        if asked is not None and not isinstance(asked, str):
            asked = None if self._model.header.chat_template is None else self._model.chat_prompt(asked)
        mark = "" if asked is None else opened(asked)
        reasoning = ""
        if part.reasoning:
            begin, end = _TEMPLATE_MARKS
            reasoning = ("" if mark else begin) + part.reasoning + end
        return self._model.tokenize(asked or ""), reasoning, mark

    def _plain(self, text: str) -> list[int]:
        """Return the token ids of a text. Names of control tokens in the text are ordinary text."""
        data = text.encode("utf-8", "replace")
        tokens: list[int] = self._model.llm.tokenize(data, add_bos=False, special=False)
        return tokens

    # -- scores --

    def _score(self, piece: _Piece, ahead: ThreadPoolExecutor) -> Iterator[int]:
        """Add the costs of a piece to `unfinished`; yield after each batch how many of its tokens are done."""
        prompt, tokens, parts = piece
        model = self._model
        begin = max(self._skip, 0 if prompt else 1)  # without a prompt, nothing predicts the first token
        if len(tokens) <= begin:
            return
        sequence = prompt + tokens
        first = len(prompt) + begin - 1  # the index of the token whose logits predict the first scored token
        kept = common_length(model.past, sequence[:first])
        try:
            model.keep(kept)
        except LzsError:  # a recurrent model cannot drop only its last tokens; its context is now empty
            kept = 0
        samplers = {name: Sampler(model.n_vocab, params) for name, params in self._params.items()}
        for sampler in samplers.values():
            sampler.prime(prompt)
            for token in tokens[:begin]:
                sampler.accept(token)
        model.decode(sequence[kept:first])
        inputs = sequence[first:-1]
        steps = [inputs[start : start + self._batch] for start in range(0, len(inputs), self._batch)]
        waiting = ahead.submit(model.decode_rows, steps[0])
        at = begin
        try:
            for i, step in enumerate(steps):
                rows = waiting.result()
                if i + 1 < len(steps):
                    waiting = ahead.submit(model.decode_rows, steps[i + 1])
                some = slice(at, at + len(step))
                self._add(rows, tokens[some], parts[some], samplers)
                at += len(step)
                yield at
        finally:
            wait([waiting])  # the next text also uses the model, which one thread at a time may use

    def _add(
        self, rows: npt.NDArray[np.float32], tokens: list[int], parts: list[str], samplers: Mapping[str, Sampler]
    ) -> None:
        before = self.unfinished
        assert before is not None
        given = Given.of(rows, np.array(tokens, np.int64))
        known = np.isfinite(given.nats)  # leaves out tokens to which the model itself gives no probability
        free = Cost(0.0, int(given.first[known].sum()))
        costs = {}
        for charge in self.charges:
            cost = free
            if not charge.is_free:
                sampler, edits = samplers[charge.name], []
                outside = self._outside.get(charge.name)
                for i, token in enumerate(tokens):
                    now = sampler if outside is None or parts[i] in charge.scope else outside
                    edits.append(now.edits())
                    sampler.accept(token)
                nats, first = edited(given, edits, sign_aware=charge.params.sign_aware)
                possible = known & (np.exp(-nats) > 0)
                cost = Cost(
                    float((nats - given.nats)[possible].sum()),
                    int(first[known].sum()),
                    int((given.first & ~first)[known].sum()),
                    int((known & ~possible).sum()),
                )
            costs[charge.name] = before.costs[charge.name].plus(cost)
        # This is a single assignment: after Ctrl-C, a batch counts completely or not at all.
        self.unfinished = TextCosts(
            before.name,
            before.kind,
            before.tokens + int(known.sum()),
            before.nats + float(given.nats[known].sum()),
            before.first + free.first,
            costs,
        )
