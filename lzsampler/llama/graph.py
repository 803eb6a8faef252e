"""`GraphSampler`: a `Sampler` whose penalties and mask work in llama.cpp's graph, where the logits are.

The operations are in c/llama/graph.c. llama.cpp calls this backend sampling, and it is experimental there. A chain with
our sampler in it is set in a context, and from then on until it is taken out again every decode of that context gives
edited logits, or the best token alone, instead of the model's logits.
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
there if the model is on a GPU and nothing speaks against it, else on the CPU."""

_SEQUENCE = 0  # the one that `Model` and `llama_cpp.Llama` decode
_SINCE = "0.3.35"
UNSUPPORTED = "llama.cpp cannot run this sampler in the graph of this model's device: use sampler='cpu'"
SEVERAL_OUTPUTS = (
    "llama.cpp cannot run its own penalties in the graph of a context with several outputs, as a draft has made it: "
    "give them to attach, make a new Llama, or use sampler='cpu'"
)
_FUNCTIONS = [name for name in dir(ffi.new("lzs_graph_functions *")) if name != "size"]
_NEEDED = ("llama_set_sampler", "llama_sampler_copy", *_FUNCTIONS)


def check_place(place: object) -> None:
    """Raise ValueError for what is not a `Place`."""
    if place not in get_args(Place):
        raise ArgumentError(f"sampler must be one of {', '.join(get_args(Place))}, got {place!r}")


def missing() -> str | None:
    """Return in one line what the installed llama.cpp lacks for a graph sampler; None where it has everything."""
    if all(_address(name) for name in _NEEDED) and hasattr(llama_cpp.llama_context_params, "n_outputs_max_per_seq"):
        return None
    version = llama_cpp.__version__
    return f"the graph sampler needs llama-cpp-python {_SINCE} or newer, not {version}: update it, or use sampler='cpu'"


def refuse_old_llama() -> None:
    """Raise LzsError where the installed llama.cpp has no graph samplers."""
    problem = missing()
    if problem is not None:
        raise LzsError(problem)


def on_device(llm: Any, n_layers: int | None) -> bool:
    """Return whether the logits of a `llama_cpp.Llama` with so many layers are computed on a GPU.

    llama.cpp counts the layer that computes them after all others.
    """
    asked = int(llm.model_params.n_gpu_layers)  # llama-cpp-python makes a very large number of -1
    offloads = asked < 0 or (n_layers is not None and asked > n_layers)
    return offloads and bool(llama_cpp.llama_supports_gpu_offload())


class GraphSampler:
    """Has a sampler work in the graph of a model's context, from now on until `close`, or within a ``with`` block.

    One thread at a time uses both then; another one gets an LzsError meanwhile. The sampler's state at each decode
    counts. ``best``: the graph picks as well, the best token, for temperature 0. ``masked``: masks go into the graph,
    as a row of biases; else they are applied on the CPU, and with ``best`` there must not be any. LzsError where
    llama.cpp or the device cannot do it.
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
        """Take the sampler out of the context, whose next decode gives logits again."""
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
        """`Sampler.step_at` with the last output of the last decode, whatever it is given."""
        status = lib.lzs_graph_step(self.handle, self._context, -1, self._token, self._looping)
        if status:
            self.refuse(status)
        return self._token[0], self._looping[0] != 0

    @one_thread
    def decode_block(self, tokens: Sequence[int], speculation: Any) -> None:
        """Decode a token and the drafted ones behind it, each with the edits of its position.

        ``speculation``: an ``lzs_speculation *`` that drafted them for the same sampler.
        """
        lib.lzs_graph_set_block(self.handle, speculation)
        try:
            self._model.decode_outputs(list(tokens))
        finally:
            lib.lzs_graph_set_block(self.handle, ffi.NULL)

    @one_thread
    def verify(self, speculation: Any, n_rows: int, verified: Any) -> int:
        """Call `lzs_graph_verify` on what `decode_block` gave, and return its status."""
        return int(lib.lzs_graph_verify(self.handle, speculation, self._context, n_rows, verified))

    def refuse(self, status: int) -> None:
        """Raise what a status of C stands for, as `Sampler.refuse` does."""
        if status == lib.LZS_ENAN:
            raise ArgumentError("the logits are nan")
        self._sampler.refuse(status, ())


def graph_sampler(source: Sampler, kind: int, max_history: int, masked: bool) -> Any:
    """Return a `llama_sampler *` (a ctypes pointer) for the beginning of a chain that `set_chain` sets.

    ``kind``: an `lzs_graph_kind`; ``max_history``: tokens. It is owned as that of `penalties_sampler`. LzsError where
    llama.cpp is too old.
    """
    refuse_old_llama()
    out = ffi.new("void **")
    check(lib.lzs_graph_sampler_new(source.handle, _functions(), kind, max_history, masked, out))
    return ctypes.cast(int(ffi.cast("uintptr_t", out[0])), ctypes.POINTER(llama_cpp.llama_sampler))


def for_chain(source: Sampler, max_history: int) -> Any:
    """Return a `graph_sampler` with a clone of ``source``, in front of llama.cpp's own samplers."""
    return graph_sampler(source, lib.LZS_GRAPH_CHAIN, max_history, source.grammar is not None)


def reserve_outputs(llm: Any, n: int) -> bool:
    """Have room for ``n`` outputs of a decode in the context of a `llama_cpp.Llama`; return whether it is a new one.

    llama.cpp fixes that number when it makes a context. LzsError where it makes none, which leaves the model without,
    and for a llama.cpp that has no graph samplers.
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
    """Have a context run a chain in its graph, as far as it can; return whether our sampler runs there.

    Where it does not the chain is not set, and works on the CPU. A chain can be set once.
    """
    if llama_cpp.llama_set_sampler(context, _SEQUENCE, chain) and lib.lzs_graph_supported(address(ours)):
        return True
    unset_chain(context)
    return False


def unset_chain(context: Any) -> None:
    """Have a context give logits again, from its next decode on."""
    llama_cpp.llama_set_sampler(context, _SEQUENCE, None)


class Block:
    """Drafted tokens of a chain that `set_chain` set: the next decode has the edits of each of their positions.

    ``ours``: the `for_chain` of the chain. It takes the tokens later, as the chain accepts them.
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
        """Have decodes within a ``with`` block be of tokens behind another; yield those of them that may follow it.

        After a token that a grammar does not allow there are none.
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
    """Return the `lzs_graph_functions` of the llama.cpp that is loaded."""
    made = ffi.new("lzs_graph_functions *", {"size": ffi.sizeof("lzs_graph_functions")})
    for name in _FUNCTIONS:
        setattr(made, name, ffi.cast("void *", _address(name)))
    return made


def _address(name: str) -> int:
    """Return where a function of libllama or libggml is, 0 where it is in neither."""
    for library in _libraries():
        function = getattr(library, name, None)
        if function is not None:
            return int(ffi.cast("uintptr_t", address(function)))
    return 0


@cache
def _libraries() -> tuple[Any, ...]:
    """Return libllama, with which most systems also find what it links to, and for the others libggml-base."""
    binding: Any = llama_cpp.llama_cpp
    try:
        return binding._lib, binding.load_shared_library("ggml-base", binding._base_path)
    except (AttributeError, FileNotFoundError, RuntimeError):
        return (binding._lib,)
