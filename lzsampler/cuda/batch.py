"""`Batch`: the settings of many sequences on a CUDA device, and sampling for several of them in one step."""

import ctypes
import weakref
from typing import Any

from .._check import INT32_MAX, integer
from .._ffi import ffi, lib
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..params import Params
from ..sampler import MAX_VOCAB, Sampler, c_params, refuse_tokens_outside
from .arrays import DeviceArray, device_array
from .library import PROBLEM_SIZE, Shape, Step, load

_DTYPES = ("float32", "bfloat16", "float16")  # in the order of lzs_dtype


class Batch:
    """The tokens of `Sampler.sample` for many rows at once, on a CUDA device.

    ``n_vocab``: logits in a row. ``rows``: the most rows in a step. ``slots``: the number of sequences that can have
    settings at the same time; None means ``rows``. ``device``: the number of the CUDA device. ``max_edits``: the most
    tokens of a row that the penalties may change; None means n_vocab, or 4096 if that is less. A row with more such
    tokens gets the status for too little room. ``max_listed``: the most tokens in exempt, logit_bias and the lists of
    LZ and DRY of one slot together.

    A slot holds the settings and the seed of one sequence, and each row of a step names its slot. So a sequence draws
    the same tokens in any row. The constructor allocates all memory. LzsError if the library, the driver or the device
    is missing; MemoryError; ValueError and TypeError for bad arguments.
    """

    def __init__(
        self,
        n_vocab: int,
        *,
        rows: int,
        slots: int | None = None,
        device: int = 0,
        max_edits: int | None = None,
        max_listed: int = 65_536,
    ) -> None:
        self.n_vocab = integer("n_vocab", n_vocab, 1, MAX_VOCAB)
        self.rows = integer("rows", rows, 1, INT32_MAX)
        self.slots = self.rows if slots is None else integer("slots", slots, 1, INT32_MAX)
        self.device = integer("device", device, 0, INT32_MAX)
        edits = min(n_vocab, 4096) if max_edits is None else integer("max_edits", max_edits, 0, n_vocab)
        listed = integer("max_listed", max_listed, 0, INT32_MAX)
        size = ctypes.sizeof(Shape)
        shape = Shape(size, self.device, self.n_vocab, self.slots, self.rows, edits, listed)
        self._library = load()
        self._handle = ctypes.c_void_p()
        problem = ctypes.create_string_buffer(PROBLEM_SIZE)
        _refuse(self._library.lzs_batch_new(shape, ctypes.byref(self._handle), problem), problem.value)
        self._free = weakref.finalize(self, self._library.lzs_batch_free, self._handle)

    @property
    def memory(self) -> int:
        """Bytes that the batch holds on the device."""
        return int(self._library.lzs_batch_memory(self._open()))

    def close(self) -> None:
        """Wait for the device and free its memory; later calls raise ValueError. A second `close` does nothing."""
        self._free()

    def set_params(self, slot: int, params: Params, *, stream: object = None) -> None:
        """Begin a sequence in a slot. Its penalties look at the history that each step passes.

        ``stream``: the stream of the steps, see `sample`. The batch ignores ``history`` and the detectors of
        ``params``, since each step says where the penalties begin. It also ignores ``structure``: use `set_plan` for a
        sequence with a grammar. ValueError for settings that do not fit.
        """
        if not isinstance(params, Params):
            raise ArgumentTypeError(f"params must be a Params, got {params!r}")
        refuse_tokens_outside(params, self.n_vocab)
        p, arrays = c_params(params)
        address = int(ffi.cast("uintptr_t", p))
        self._check(self._library.lzs_batch_set_params(self._open(), self._slot(slot), address, _stream(stream)))
        del arrays

    def set_plan(self, slot: int, sampler: Sampler, *, stream: object = None) -> None:
        """Give a slot the next step of a sampler on the host: settings, edits, seed and position, without the mask."""
        if not isinstance(sampler, Sampler):
            raise ArgumentTypeError(f"sampler must be a Sampler, got {sampler!r}")
        plan = ffi.new("lzs_plan *")
        status = lib.lzs_sampler_plan(sampler.handle, plan)
        if status:
            sampler.refuse(status, ())
        address = int(ffi.cast("uintptr_t", plan))
        self._check(self._library.lzs_batch_set_plan(self._open(), self._slot(slot), address, _stream(stream)))

    def sample(
        self,
        logits: object,
        tokens: object,
        statuses: object,
        *,
        slots: object = None,
        histories: object = None,
        lengths: object = None,
        starts: object = None,
        positions: object = None,
        masks: object = None,
        stream: object = None,
    ) -> None:
        """Pick a token for each row. The call returns at once, and the kernels run in ``stream``.

        All arrays are on the device, from any library with DLPack or ``__cuda_array_interface__``. The kernels read
        them when they run. With n rows (1 to ``rows``):

        - ``logits``: float32, bfloat16 or float16[n, n_vocab], only read;
        - ``tokens``, ``statuses``: int32[n], written: a token and 0, or -1 and a negative ``lzs_status``;
        - ``slots``: int32[n]; None means 0 to n - 1;
        - ``histories``: int32[n, m], the tokens of each sequence, oldest first; ``lengths``: int32[n], the number of
          tokens in each history; ``starts``: int32[n], the first token that the penalties look at (None means 0). For
          ``history="generated"`` pass the length of the prompt as the start. Required if a slot has penalties but no
          plan;
        - ``positions``: int64[n], the number of accepted tokens, which selects the noise of the draw. Required if a
          slot has no plan;
        - ``masks``: uint32 or int32[n, ceil(n_vocab / 32)], as in `Sampler.set_mask`; None allows every token.

        ``stream``: a cudaStream_t as an integer, or an object with ``cuda_stream`` (torch) or ``ptr`` (CuPy); None is
        the default stream. The call does not wait for the device, and a CUDA graph can capture it.
        """
        handle = self._open()
        n_words = (self.n_vocab + 31) // 32
        x = device_array("logits", logits, (None, self.n_vocab), _DTYPES, self.device)
        n = integer("the number of rows", x.shape[0], 1, self.rows)

        def of(name: str, value: object, shape: tuple[int | None, ...], *dtypes: str) -> DeviceArray | None:
            return None if value is None else device_array(name, value, shape, dtypes, self.device)

        arrays = {
            "slots": of("slots", slots, (n,), "int32"),
            "histories": of("histories", histories, (n, None), "int32"),
            "starts": of("starts", starts, (n,), "int32"),
            "lengths": of("lengths", lengths, (n,), "int32"),
            "positions": of("positions", positions, (n,), "int64"),
            "masks": of("masks", masks, (n, n_words), "uint32", "int32"),
            "tokens": device_array("tokens", tokens, (n,), ("int32",), self.device),
            "statuses": device_array("statuses", statuses, (n,), ("int32",), self.device),
        }
        addresses = {name: array.address for name, array in arrays.items() if array is not None}
        step = Step(size=ctypes.sizeof(Step), dtype=_DTYPES.index(x.dtype), logits=x.address, **addresses)
        step.row_stride = max(x.stride, self.n_vocab)
        past, mask = arrays["histories"], arrays["masks"]
        step.history_stride = max(past.stride, past.shape[1]) if past is not None else 0
        step.mask_stride = max(mask.stride, n_words) if mask is not None else 0
        self._check(self._library.lzs_batch_sample(handle, step, n, _stream(stream)))

    def _slot(self, slot: int) -> int:
        return integer("slot", slot, 0, self.slots - 1)

    def _open(self) -> ctypes.c_void_p:
        if not self._free.alive:
            raise ArgumentError("this batch is closed")
        return self._handle

    def _check(self, status: int) -> None:
        _refuse(status, self._library.lzs_batch_problem(self._handle) if status else b"")


def _refuse(status: int, problem: bytes) -> None:
    """Raise the exception for a status of C; return if the status is 0."""
    if status == 0:
        return
    line = problem.decode()
    if status == lib.LZS_ENOMEM:
        raise MemoryError(line)
    if status in (lib.LZS_EINVAL, lib.LZS_ESPACE):
        raise ArgumentError(line)
    raise LzsError(line)


def _stream(stream: Any) -> int:
    if stream is None:
        return 0
    for attribute in ("cuda_stream", "ptr"):
        stream = getattr(stream, attribute, stream)
    return integer("stream", stream, 0, 2**64 - 1)
