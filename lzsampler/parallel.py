"""`generate_many`: many texts in one llama.cpp context, a sampler each, decoded in one batch a step.

Every sequence has a cache of its own (``kv_unified`` off), so a text is that of `generate` wherever llama.cpp computes
the same logits in batches of any size: with Q8_0 weights it does, bit for bit; with F16 weights it does not, and a text
may turn at a token that was almost a tie. When a text ends the next one takes its place, and a prompt begins with what
some cache already holds of it.
"""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import LzsError, integer
from .generate import Generation, Text
from .llama import llama_cpp
from .llama.chain import ChainSampler
from .model import MAX_THREADS, Messages, Model
from .params import Params

MAX_PARALLEL = 256  # LLAMA_MAX_SEQ
_WORTH_WAITING = 8  # tokens of a prompt that another slot is about to decode
_FLASH_OFF = 0  # as llama-cpp-python's own contexts, or texts would differ from those of `generate`


@dataclass(frozen=True)
class Request:
    """One text to write: the arguments of `generate`; ``id`` is the caller's.

    ``sampler``: makes one in the place of that of ``params``, when the text begins.
    """

    id: Any
    prompt: str | Messages
    params: Params
    n_predict: int = -1
    stop: Sequence[str] = ()
    trim_loop: bool = False
    sampler: Callable[[], ChainSampler] | None = None


def generate_many(
    model: Model, requests: Iterable[Request], *, n_parallel: int = 16, n_threads: int | None = None
) -> Iterator[tuple[Request, Generation]]:
    """Yield each request with its text, as they end; which end first depends on their lengths only.

    ``n_parallel``: texts at a time, 1..256; each has a context of ``model.n_ctx`` tokens, in memory of its own.
    ``n_threads``: None is the model's. Requests are taken one by one, when there is room. Timings of a text are
    its share of the steps that it took part in.

    Raises as `generate`; what ended before was yielded. Closing the iterator frees the context.
    """
    n_parallel = integer("n_parallel", n_parallel, 1, MAX_PARALLEL)
    threads = model.n_threads if n_threads is None else integer("n_threads", n_threads, 1, MAX_THREADS)
    batch = _Batch(model, n_parallel, threads)
    try:
        yield from _run(model, batch, iter(requests), n_parallel)
    finally:
        batch.close()


class _Slot:
    """A place in the batch: what its cache holds, and the text that is written there."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.cached: list[int] = []
        self.waiting: list[int] = []  # tokens to decode
        self.request: Request | None = None
        self.text: Text | None = None


def _run(
    model: Model, batch: "_Batch", requests: Iterator[Request], n_parallel: int
) -> Iterator[tuple[Request, Generation]]:
    slots = [_Slot(i) for i in range(n_parallel)]
    first: tuple[Request, Text] | None = None
    more = True
    while True:
        for slot in slots:
            if slot.text is not None:
                continue
            if first is None and more:
                request = next(requests, None)
                more = request is not None
                first = None if request is None else (request, _text(model, request))
            if first is None or not _begin(batch, slots, slot, *first):
                break  # no more; or its prompt is being decoded in another slot, to be copied a step later
            first = None
        active = [slot for slot in slots if slot.text is not None]
        if not active:
            return
        start = perf_counter()
        ready = batch.decode(active)
        share = (perf_counter() - start) / len(active)
        for slot in active:
            assert slot.text is not None
            if slot.text.tokens:
                slot.text.decode_s += share
            else:
                slot.text.prompt_s += share
        for slot, logits in ready:
            assert slot.text is not None
            assert slot.request is not None
            token = slot.text.take(logits, room=len(slot.cached) < model.n_ctx)
            if token is not None:
                slot.waiting = [token]
                continue
            text, finished = slot.text, slot.request
            slot.text = slot.request = None
            text.total_s = text.prompt_s + text.decode_s + text.sampling_s
            yield finished, text.generation()


def _text(model: Model, request: Request) -> Text:
    return Text(
        model,
        request.prompt,
        request.params,
        n_predict=request.n_predict,
        stop=request.stop,
        trim_loop=request.trim_loop,
        sampler=None if request.sampler is None else request.sampler(),
    )


def _begin(batch: "_Batch", slots: list[_Slot], slot: _Slot, request: Request, text: Text) -> bool:
    """Give a request a slot, with as much of its prompt as some cache holds; its last token is always decoded.

    False, with nothing done, when more of its prompt waits in another slot to be decoded.
    """
    prompt = text.prompt
    source = max(slots, key=lambda other: (_common(other.cached, prompt), other is slot))
    keep = min(_common(source.cached, prompt), len(prompt) - 1)
    coming = max(_common(other.cached + other.waiting, prompt) for other in slots)
    if min(coming, len(prompt) - 1) > keep + _WORTH_WAITING:
        return False
    if not batch.share(source, slot, keep):
        keep = 0
    slot.cached = prompt[:keep]
    slot.waiting = prompt[keep:]
    slot.request, slot.text = request, text
    return True


def _common(a: list[int], b: list[int]) -> int:
    """Return the length of the common beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


class _Batch:
    """A llama.cpp context of its own over the model's weights, with one cache a slot, and the batch of a step."""

    def __init__(self, model: Model, n_parallel: int, n_threads: int) -> None:
        if not hasattr(llama_cpp.llama_context_params, "kv_unified"):
            raise LzsError(f"llama-cpp-python {llama_cpp.__version__} has no caches by sequence: use a newer one")
        self.n_vocab, self.n_batch = model.n_vocab, max(model.n_batch, n_parallel)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = n_parallel * -(-model.n_ctx // 256) * 256  # llama.cpp pads each to that, and says so otherwise
        params.n_seq_max = n_parallel
        params.n_batch = params.n_ubatch = self.n_batch
        params.n_threads = params.n_threads_batch = n_threads
        params.kv_unified = False
        params.flash_attn_type = _FLASH_OFF
        self._context = llama_cpp.llama_init_from_model(model.llm.model, params)
        if not self._context:
            raise LzsError(
                f"llama.cpp has no memory for {n_parallel} contexts of {model.n_ctx} tokens: "
                "fewer texts at a time, or a smaller context"
            )
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(self.n_batch, 0, 1)
        self._tokens = np.ctypeslib.as_array(self._batch.token, (self.n_batch,))
        self._places = np.ctypeslib.as_array(self._batch.pos, (self.n_batch,))
        self._wanted = np.ctypeslib.as_array(self._batch.logits, (self.n_batch,))
        np.ctypeslib.as_array(self._batch.n_seq_id, (self.n_batch,))[:] = 1
        self._slots = [self._batch.seq_id[i] for i in range(self.n_batch)]

    def close(self) -> None:
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)

    def share(self, source: _Slot, slot: _Slot, keep: int) -> bool:
        """Let a slot's cache be the first ``keep`` tokens of another's; False when that cannot be, and it is empty."""
        if source is not slot:
            llama_cpp.llama_memory_seq_rm(self._memory, slot.number, -1, -1)
            if keep:  # between caches of their own llama.cpp copies whole sequences only
                llama_cpp.llama_memory_seq_cp(self._memory, source.number, slot.number, -1, -1)
        if keep and llama_cpp.llama_memory_seq_rm(self._memory, slot.number, keep, -1):
            return True
        llama_cpp.llama_memory_seq_rm(self._memory, slot.number, -1, -1)
        return False

    def decode(self, slots: list[_Slot]) -> list[tuple[_Slot, npt.NDArray[np.float32]]]:
        """Decode what waits, as much as fits, slots with a single token first; those that are through, with logits."""
        n, ready = 0, []
        for slot in sorted(slots, key=lambda slot: len(slot.waiting) > 1):
            part = slot.waiting[: self.n_batch - n]
            if not part:
                continue
            end = n + len(part)
            self._tokens[n:end] = part
            self._places[n:end] = range(len(slot.cached), len(slot.cached) + len(part))
            self._wanted[n:end] = 0
            for i in range(n, end):
                self._slots[i][0] = slot.number
            slot.cached += part
            slot.waiting = slot.waiting[len(part) :]
            if not slot.waiting:
                self._wanted[end - 1] = 1
                ready.append(slot)
            n = end
        self._batch.n_tokens = n
        status = llama_cpp.llama_decode(self._context, self._batch)
        if status != 0:
            raise LzsError(
                f"llama_decode returned {status} for {len(slots)} texts: fewer at a time, or a smaller context"
            )
        if not ready:
            return []
        pointer = llama_cpp.llama_get_logits(self._context)  # a row for each that is wanted, in their order
        rows = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (len(ready), self.n_vocab))
        return list(zip(ready, rows, strict=True))
