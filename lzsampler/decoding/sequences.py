"""`Sequences`: a llama.cpp context with several sequences, each with a cache of its own."""

import ctypes
from typing import Any

import numpy as np

from .._ffi import ffi
from ..errors import LzsError
from ..llama import llama_cpp
from ..llama.attention import TYPES
from ..llama.decoder import Decoder
from ..llama.model import MAX_UBATCH, Model
from ..util.signals import uninterrupted


class Sequences:
    """A llama.cpp context over a model's weights with ``n_sequences`` caches; for one thread at a time.

    ``n_ctx``: size of each cache in tokens; None is the size of the model's own context. ``capacity``: the most tokens
    of one decode.
    """

    def __init__(self, model: Model, n_sequences: int, n_threads: int, n_ctx: int | None = None) -> None:
        if not hasattr(llama_cpp.llama_context_params, "kv_unified"):
            raise LzsError(
                f"llama-cpp-python {llama_cpp.__version__} has no cache per sequence: install a newer version"
            )
        self._model = model
        self.capacity = max(model.n_batch, n_sequences)
        params = llama_cpp.llama_context_default_params()
        n_ctx = model.n_ctx if n_ctx is None else n_ctx
        params.n_ctx = n_sequences * -(-n_ctx // 256) * 256  # llama.cpp rounds up, too, but logs a message
        params.n_seq_max = n_sequences
        params.n_batch = self.capacity
        params.n_ubatch = max(min(model.n_batch, MAX_UBATCH), n_sequences)
        params.n_threads = params.n_threads_batch = n_threads
        params.kv_unified = False
        params.flash_attn_type = TYPES[model.flash_attn]  # otherwise texts would differ from those of `generate`
        model.in_use.share()  # the weights must stay in memory until `close`
        try:
            self._open(params, n_ctx)
        except BaseException:  # also Ctrl-C while llama.cpp allocates the memory
            model.in_use.leave()
            raise

    def _open(self, params: Any, n_ctx: int) -> None:
        with uninterrupted():
            self._context = llama_cpp.llama_init_from_model(self._model.llm.model, params)
        if not self._context:
            raise LzsError(
                f"llama.cpp has no memory for {params.n_seq_max} caches of {n_ctx} tokens: "
                "decode fewer texts at a time, or use a smaller context"
            )
        self._decoder = Decoder(self._context)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(self.capacity, 0, 1)
        self._tokens = np.ctypeslib.as_array(self._batch.token, (self.capacity,))
        self._places = np.ctypeslib.as_array(self._batch.pos, (self.capacity,))
        self._wanted = np.ctypeslib.as_array(self._batch.logits, (self.capacity,))
        np.ctypeslib.as_array(self._batch.n_seq_id, (self.capacity,))[:] = 1
        self._sequences = [self._batch.seq_id[i] for i in range(self.capacity)]

    def close(self) -> None:
        """Free the context."""
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)
        self._model.in_use.leave()

    def clear(self) -> None:
        """Empty all caches."""
        llama_cpp.llama_memory_clear(self._memory, True)

    def stop(self) -> None:
        """End the decode that another thread is running; that thread gets a KeyboardInterrupt.

        Close the context afterwards.
        """
        self._decoder.stop()

    def _keep(self, number: int, n: int) -> bool:
        """Forget all tokens of a sequence after the first ``n``; return False if the model cannot do so."""
        return bool(llama_cpp.llama_memory_seq_rm(self._memory, number, n, -1))

    def _copy_sequence(self, source: int, target: int) -> None:
        """Copy the contents of one sequence to another."""
        llama_cpp.llama_memory_seq_rm(self._memory, target, -1, -1)
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def _decode(self, batch: list[tuple[int, int, int]], *, wanted: int) -> list[Any]:
        """Decode a batch of (token, position, number of the sequence). Return the logits of its last ``wanted`` tokens.

        Each row is a ``float *`` to n_vocab numbers. The rows are contiguous in memory, and valid until the next
        decode.
        """
        n = len(batch)
        self._tokens[:n], self._places[:n], numbers = zip(*batch, strict=True)
        for i, number in enumerate(numbers):
            self._sequences[i][0] = number
        self._wanted[: n - wanted] = 0
        self._wanted[n - wanted : n] = 1
        self._batch.n_tokens = n
        status = self._decoder.decode(self._batch)
        self._decoder.check()
        if status != 0:
            raise LzsError(
                f"llama_decode returned {status} for {n} tokens: decode fewer at a time, or use a smaller context"
            )
        address = ctypes.cast(llama_cpp.llama_get_logits(self._context), ctypes.c_void_p).value
        first, n_vocab = ffi.cast("float *", address), self._model.n_vocab
        return [first + i * n_vocab for i in range(wanted)]
