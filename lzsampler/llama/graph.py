"""`GraphSampler`: a `Sampler` whose penalties and mask run in llama.cpp's graph, where the logits are.

The operations are in c/llama/graph.c. llama.cpp calls this backend sampling and marks it as experimental. lzsampler
sets a chain with its sampler in a context. Until lzsampler takes the chain out, every decode of this context returns
logits after penalties and masks, or only the best token.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from typing import Any, Literal, get_args

from .._check import check
from .._ffi import ffi, lib
from ..errors import ArgumentError, LzsError
from ..sampler import Sampler
from ..util.in_use import one_thread
from .binding import llama_cpp
from .chain import address
from .log import captured_log, reason

Place = Literal["auto", "cpu", "graph"]
"""Where penalties and masks are applied. "graph": in llama.cpp's graph, on the device that has the logits. "auto":
in the graph if the model is on a GPU and nothing prevents it, else on the CPU."""

_SEQUENCE = 0  # the sequence that `Model` and `llama_cpp.Llama` decode
_SINCE = "0.3.35"
UNSUPPORTED = "llama.cpp cannot run this sampler in the graph of this model's device: use sampler='cpu'"
SEVERAL_OUTPUTS = (
    "llama.cpp cannot run its own penalties in the graph of a context with several outputs, which a draft needs: "
    "give the penalties to attach, make a new Llama, or use sampler='cpu'"
)
_FUNCTIONS = [name for name in dir(ffi.new("lzs_graph_functions *")) if name != "size"]
_NEEDED = ("llama_set_sampler", "llama_sampler_copy", *_FUNCTIONS)


def check_place(place: object) -> None:
    """Raise ValueError if ``place`` is not a `Place`."""
    if place not in get_args(Place):
        raise ArgumentError(f"sampler must be one of {', '.join(get_args(Place))}, got {place!r}")


def missing() -> str | None:
    """Return in one line what the installed llama.cpp lacks for a graph sampler; None if nothing is lacking."""
    if all(_address(name) for name in _NEEDED) and hasattr(llama_cpp.llama_context_params, "n_outputs_max_per_seq"):
        return None
    version = llama_cpp.__version__
    return f"the graph sampler needs llama-cpp-python {_SINCE} or newer, not {version}: update it, or use sampler='cpu'"


def refuse_old_llama() -> None:
    """Raise LzsError if the installed llama.cpp has no graph samplers."""
    problem = missing()
    if problem is not None:
        raise LzsError(problem)


def on_device(llm: Any, n_layers: int | None) -> bool:
    """Return whether a GPU computes the logits of a `llama_cpp.Llama` with ``n_layers`` layers (None: unknown).

    llama.cpp counts the layer that computes the logits after all others.
    """
    asked = int(llm.model_params.n_gpu_layers)  # llama-cpp-python turns -1 into a very large number
    offloads = asked < 0 or (n_layers is not None and asked > n_layers)
    return offloads and bool(llama_cpp.llama_supports_gpu_offload())


class GraphSampler:
    """Runs a sampler in the graph of a model's context, from now on until `close`, or within a ``with`` block.

    Meanwhile one thread at a time may use model and sampler; other threads get an LzsError. Each decode uses the
    sampler's current state. ``best``: the graph also picks the best token, for temperature 0. ``masked``: masks go into
    the graph as a row of biases. Without ``masked``, masks are applied on the CPU; then ``best`` is only possible
    without masks. LzsError if llama.cpp or the device cannot run the sampler.
    """

    def __init__(self, model: Any, sampler: Sampler, *, best: bool, masked: bool) -> None:
        self._model, self._sampler, self.in_use = model, sampler, model.in_use  # C borrows the sampler
        self._chain = None
        self._set(best=best, masked=masked)

    @one_thread
    def _set(self, *, best: bool, masked: bool) -> None:
        model, sampler = self._model, self._sampler
        kind = lib.LZS_GRAPH_BEST if best else lib.LZS_GRAPH_ROWS
        ours = graph_sampler(sampler, kind, model.n_ctx, masked)
        self.handle = address(ours)
        self._chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        llama_cpp.llama_sampler_chain_add(self._chain, ours)
        if not set_chain(model.llm.ctx, self._chain, ours):
            self.close()
            raise LzsError(UNSUPPORTED)
        self._context = ffi.cast("void *", model.llm.ctx)
        self._token, self._looping = ffi.new("int32_t *"), ffi.new("int32_t *")
        self.in_use.also = sampler.in_use

    @one_thread
    def close(self) -> None:
        """Take the sampler out of the context. The next decode returns logits again."""
        if self._chain is None:
            return
        if not self._model.closed:
            unset_chain(self._model.llm.ctx)
            self._model.forget_logits()
        llama_cpp.llama_sampler_free(self._chain)
        self._chain = self.handle = self.in_use.also = None

    def __enter__(self) -> "GraphSampler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @one_thread
    def step_at(self, _: Any) -> tuple[int, bool]:
        """Pick from the last output of the last decode, like `Sampler.step_at`. The argument is ignored."""
        status = lib.lzs_graph_step(self.handle, self._context, -1, self._token, self._looping)
        if status:
            self.refuse(status)
        return self._token[0], self._looping[0] != 0

    @one_thread
    def decode_block(self, tokens: Sequence[int], speculation: Any) -> None:
        """Decode a token and the drafted tokens after it, each with the penalties and mask for its position.

        ``speculation``: an ``lzs_speculation *`` that drafted these tokens for the same sampler.
        """
        lib.lzs_graph_set_block(self.handle, speculation)
        try:
            self._model.decode_outputs(list(tokens))
        finally:
            lib.lzs_graph_set_block(self.handle, ffi.NULL)

    @one_thread
    def verify(self, speculation: Any, n_rows: int, verified: Any) -> int:
        """Call `lzs_graph_verify` on the outputs of `decode_block`, and return its status."""
        return int(lib.lzs_graph_verify(self.handle, speculation, self._context, n_rows, verified))

    def refuse(self, status: int) -> None:
        """Raise the exception for a status of C, as `Sampler.refuse` does."""
        if status == lib.LZS_ENAN:
            raise ArgumentError("the logits are nan")
        self._sampler.refuse(status, ())


def graph_sampler(source: Sampler, kind: int, max_history: int, masked: bool) -> Any:
    """Return a `llama_sampler *` (a ctypes pointer) for the beginning of a chain that `set_chain` sets.

    ``kind``: an `lzs_graph_kind`; ``max_history``: the longest history, in tokens. Ownership is as for
    `penalties_sampler`. LzsError if llama.cpp is too old.
    """
    refuse_old_llama()
    out = ffi.new("void **")
    check(lib.lzs_graph_sampler_new(source.handle, _functions(), kind, max_history, masked, out))
    return ctypes.cast(int(ffi.cast("uintptr_t", out[0])), ctypes.POINTER(llama_cpp.llama_sampler))


def for_chain(source: Sampler, max_history: int) -> Any:
    """Return a `graph_sampler` with a clone of ``source``, to run before llama.cpp's own samplers."""
    return graph_sampler(source, lib.LZS_GRAPH_CHAIN, max_history, source.grammar is not None)


def reserve_outputs(llm: Any, n: int) -> bool:
    """Make room for ``n`` outputs per decode of a `llama_cpp.Llama`. Return whether this needed a new context.

    llama.cpp fixes the number of outputs when it makes a context. If llama.cpp cannot make the new context, LzsError is
    raised, and the model has no context. LzsError too if llama.cpp has no graph samplers.
    """
    refuse_old_llama()
    params, context = llm.context_params, llm._ctx
    if params.n_outputs_max_per_seq == 0 or params.n_outputs_max_per_seq >= n:
        return False
    params.n_outputs_max_per_seq = n
    context.close()
    with captured_log() as errors:
        try:
            made = type(context)(model=llm._model, params=params, verbose=False)
        except ValueError as error:
            raise LzsError(f"llama.cpp makes no context for {n} outputs: {reason(errors) or error}") from error
    llm._ctx = llm._stack.enter_context(closing(made))
    return True


def set_chain(context: Any, chain: Any, ours: Any) -> bool:
    """Make a context run as much of a chain as possible in its graph; return whether lzsampler's sampler runs there.

    If lzsampler's sampler cannot run in the graph, the chain is not set in the context and works on the CPU. A chain
    can be set only once.
    """
    if llama_cpp.llama_set_sampler(context, _SEQUENCE, chain) and lib.lzs_graph_supported(address(ours)):
        return True
    unset_chain(context)
    return False


def unset_chain(context: Any) -> None:
    """Make a context return logits again, from its next decode on."""
    llama_cpp.llama_set_sampler(context, _SEQUENCE, None)


class Block:
    """Drafted tokens for a chain that `set_chain` set. The next decode applies the penalties and mask for the position
    of each token.

    ``ours``: the `for_chain` sampler of the chain. This sampler accepts the tokens later, when the chain accepts them.
    """

    def __init__(self, ours: Any, n_vocab: int) -> None:
        self._ours = address(ours)
        out = ffi.new("lzs_speculation **")
        inner = lib.lzs_chain_sampler_inner(self._ours)
        mode, most = lib.LZS_SPEC_GUMBEL, lib.LZS_MAX_DRAFT
        check(lib.lzs_speculation_new(inner, mode, most, n_vocab, ffi.NULL, 0, out))
        self._speculation = ffi.gc(out[0], lib.lzs_speculation_free, lib.lzs_speculation_memory(out[0]))

    @contextmanager
    def of(self, tokens: Sequence[int]) -> Iterator[list[int]]:
        """Within a ``with`` block, draft ``tokens`` to decode after one other token. Yield the drafted tokens.

        If the grammar forbids a token, it is the last drafted token.
        """
        n = 0
        while n < len(tokens) and lib.lzs_draft_token(self._speculation, tokens[n]) == 0:
            n += 1
        lib.lzs_graph_set_block(self._ours, self._speculation)
        try:
            yield list(tokens[:n])
        finally:
            lib.lzs_graph_set_block(self._ours, ffi.NULL)
            lib.lzs_undraft(self._speculation)


@cache
def _functions() -> Any:
    """Return the `lzs_graph_functions` of the loaded llama.cpp."""
    made = ffi.new("lzs_graph_functions *", {"size": ffi.sizeof("lzs_graph_functions")})
    for name in _FUNCTIONS:
        setattr(made, name, ffi.cast("void *", _address(name)))
    return made


def _address(name: str) -> int:
    """Return the address of a function of libllama or libggml; 0 if neither has it."""
    for library in _libraries():
        function = getattr(library, name, None)
        if function is not None:
            return int(ffi.cast("uintptr_t", address(function)))
    return 0


@cache
def _libraries() -> tuple[Any, ...]:
    """Return libllama and libggml-base. On most systems libllama alone also finds the functions of its dependencies."""
    binding: Any = llama_cpp.llama_cpp
    try:
        return binding._lib, binding.load_shared_library("ggml-base", binding._base_path)
    except (AttributeError, FileNotFoundError, RuntimeError):
        return (binding._lib,)
