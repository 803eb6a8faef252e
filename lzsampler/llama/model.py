"""`Model`: a GGUF model with one llama.cpp context, which decodes one sequence of tokens."""

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._check import INT32_MAX, Tokens, boolean, integer, row_of, token_array
from .._ffi import ffi, lib
from ..constraint.tokens import TokenBytes
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..params import Params
from ..sampler import Sampler
from ..util.cores import physical_cores
from ..util.in_use import InUse, any_thread, one_thread
from . import gguf
from .attention import AutoAttention, FlashAttention, check_flash_attention
from .binding import llama_cpp
from .chain import address
from .decoder import Decoder
from .gbnf import GbnfMatcher, matchers
from .graph import GraphSampler, on_device, reserve_outputs
from .log import captured_log, quiet, reason
from .marks import CONTROL_MARKS, TOOL_MARKS
from .vocabulary import Vocabulary, token_bytes, token_classes

DEFAULT_CONTEXT = 4096  # in tokens; the cache for a whole trained context may not fit in memory
MAX_UBATCH = 512  # the most tokens computed together, as in llama.cpp; more tokens only take more memory
MAX_THREADS = 512  # GGML_MAX_N_THREADS
# The fewest bytes of weights for each thread. Threads wait for each other at every operation. With fewer bytes for each
# thread, one more thread saves no time, and costs much time on a busy machine. Measured with the embedded model (8 MB)
# on 2 cores with other work: 0.8 ms a token with one thread, 9 to 50 ms with two.
_BYTES_A_THREAD = 32 << 20
_PIECE_BYTES = 64  # almost every piece is shorter; for a longer piece `_piece` calls llama.cpp twice
_OF_LLAMA = (
    "llm",
    "_vocab",
    "_c_vocab",
    "_context",
    "_logits_context",
    "_decoder",
)  # attributes that a closed model lacks
# Names of control tokens that a reader wants to see. The text of any other control token is left out.
_SHOWN = CONTROL_MARKS | {*TOOL_MARKS, *TOOL_MARKS.values(), "<tool_response>", "</tool_response>"}

Messages = Sequence[Mapping[str, str]]
Prompt = str | Messages | Sequence[int] | npt.NDArray[np.integer[Any]]
"""Text, messages ({"role", "content"} each) for the model's chat template, or tokens, which are used unchanged."""


class _Llama(AutoAttention, llama_cpp.Llama):
    pass


class Model:
    """A GGUF model and one llama.cpp context, which begins empty.

    ``path``: a GGUF file, or as a str the name of a model, such as "smollm2" (`lzsampler.models`). ``n_ctx``: context
    in tokens. 0 means the context that the model was trained with. None means the trained context, but at most 4096.
    ``n_batch``: number of prompt tokens decoded at once. ``n_threads``: None means one for each physical core, or fewer
    for a small file. ``n_gpu_layers``: -1 means all layers, if llama-cpp-python was built for a GPU. ``flash_attn``:
    compute attention by llama.cpp's flash attention. Flash attention takes less memory. Flash attention rounds
    differently, so a text may change. "auto" uses flash attention if the model and the device support it.
    ``use_mlock``: keep the weights in RAM if the system allows it.

    Raises ValueError for an argument out of range or a path that is not a file. Raises LzsError, in one line, for a
    file that is not GGUF, is truncated or has no weights, and for a file that llama.cpp refuses. Use a model in a
    ``with`` statement, or `close` it. Otherwise its memory stays in use until the garbage collector runs, because
    llama-cpp-python's objects refer to each other.

    One thread at a time may use the context. Meanwhile other threads get an LzsError. Any number of threads may use the
    methods for text and tokens.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        n_ctx: int | None = None,
        n_batch: int = 512,
        n_threads: int | None = None,
        n_gpu_layers: int = -1,
        flash_attn: FlashAttention = "auto",
        use_mlock: bool = False,
    ) -> None:
        self.header = gguf.read(path)
        self.path = self.header.path
        trained = context_length(self.header)
        if n_ctx is None:
            n_ctx = min(trained, DEFAULT_CONTEXT)
        self.n_ctx = integer("n_ctx", n_ctx, 0, INT32_MAX) or trained
        self.n_batch = min(integer("n_batch", n_batch, 1, INT32_MAX), self.n_ctx)
        enough = min(physical_cores(), 1 + self.header.file_bytes // _BYTES_A_THREAD)
        self.n_threads = enough if n_threads is None else integer("n_threads", n_threads, 1, MAX_THREADS)
        self.n_gpu_layers = integer("n_gpu_layers", n_gpu_layers, -1, INT32_MAX)
        self.flash_attn, self.use_mlock = check_flash_attention(flash_attn), boolean("use_mlock", use_mlock)
        refuse_without_weights(self.header)
        _refuse_beyond_memory(self.header, self.n_ctx, trained)
        self.in_use = InUse(f"this Model ({self.path.name})", "give each thread a Model of its own")
        self.llm = self._open()
        self._vocab = llama_cpp.llama_model_get_vocab(self.llm.model)
        self.n_vocab = int(llama_cpp.llama_vocab_n_tokens(self._vocab))
        self.n_ctx = min(self.n_ctx, int(self.llm.n_ctx()))  # llama.cpp rounds up; keep the user's number
        self.past: list[int] = []  # the tokens in the context
        # Called after each batch of a `decode` with (tokens decoded so far, all tokens of the call).
        self.on_progress: Callable[[int, int], object] | None = None
        self.fragments = _Fragments(self.fragment)
        self._row: npt.NDArray[np.float32] = np.empty(0, np.float32)
        # Functions that run for each new token are called through cffi. Such a call takes a fraction of the time of a
        # call through ctypes.
        self._c_vocab = ffi.cast("void *", self._vocab)
        self._to_piece = ffi.cast(
            "int32_t (*)(void *, int32_t, char *, int32_t, int32_t, _Bool)", address(llama_cpp.llama_token_to_piece)
        )
        self._is_eog = ffi.cast("_Bool (*)(void *, int32_t)", address(llama_cpp.llama_vocab_is_eog))
        self._logits_of = ffi.cast("float *(*)(void *, int32_t)", address(llama_cpp.llama_get_logits_ith))
        self._use_context()

    def _open(self) -> Any:
        with quiet, captured_log() as errors:
            try:
                llm = _Llama(
                    model_path=str(self.path),
                    n_ctx=self.n_ctx,
                    n_batch=self.n_batch,
                    n_ubatch=min(self.n_batch, MAX_UBATCH),
                    n_threads=self.n_threads,
                    n_threads_batch=self.n_threads,
                    n_gpu_layers=self.n_gpu_layers,
                    flash_attn=self.flash_attn,
                    use_mlock=self.use_mlock,
                    verbose=False,
                )
            except (ValueError, RuntimeError, OSError, AssertionError) as error:
                raise LzsError(f"llama.cpp cannot load {self.path}: {reason(errors) or error}") from error
        if not llama_cpp.llama_model_has_decoder(llm.model) or llama_cpp.llama_model_has_encoder(llm.model):
            llm.close()
            raise LzsError(f"{self.path} is an encoder ({self.header.architecture}): it does not continue a text")
        return llm

    def _use_context(self) -> None:
        """Use the llama.cpp context that ``llm`` has now, which is empty."""
        self.past.clear()
        self._row_at = 0
        self._kept_logits = False  # whether llama.cpp lacks the logits after the last token
        self._context = self.llm.ctx
        self._logits_context = ffi.cast("void *", self._context)
        self._decoder = self.llm.decoder = Decoder(self._context)  # kept alive: llama.cpp's context calls it

    @one_thread
    def reserve_outputs(self, n: int) -> None:
        """Make room for ``n`` outputs per decode while a graph sampler is set, in a new context if needed.

        A new context is empty. If llama.cpp cannot make the new context, the model is closed, and LzsError is raised.
        LzsError too if this llama.cpp has no graph samplers.
        """
        try:
            is_new = reserve_outputs(self.llm, n)
        except LzsError:
            if self.llm._ctx.ctx is None:
                self.close()
            raise
        if is_new:
            self._use_context()

    @cached_property
    @any_thread
    def on_device(self) -> bool:
        """Whether a GPU computes the model's logits."""
        layers = self.header.of_architecture("block_count")
        return on_device(self.llm, layers)

    def close(self) -> None:
        """Free the context and the weights.

        LzsError while context or weights are in use. A closed model raises LzsError when used.
        """
        self.in_use.close(self._free)

    def _free(self) -> None:
        if self.closed:
            return
        self._row, self._row_at = np.empty(0, np.float32), 0
        self.past.clear()  # so that `logits` raises an error and does not call llama.cpp
        self.llm.close()
        for name in _OF_LLAMA:
            del vars(self)[name]

    @property
    def closed(self) -> bool:
        """Whether the model is closed."""
        return "llm" not in vars(self)

    if not TYPE_CHECKING:  # with `__getattr__`, mypy would accept any attribute name

        def __getattr__(self, name: str) -> Any:
            if name in _OF_LLAMA and "header" in vars(self):
                raise LzsError(f"the model {self.path.name} is closed: open it again")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Tell copy and pickle to open the file again. The new `Model` has a context of its own."""
        names = ("n_ctx", "n_batch", "n_threads", "n_gpu_layers", "flash_attn", "use_mlock")
        return partial(type(self), **{name: getattr(self, name) for name in names}), (self.path,)

    # -- text and tokens --

    @any_thread
    def token_classes(self, params: Params) -> dict[str, Any]:
        """Return the separators of LZ and the usual sequence breakers of DRY, if ``params`` use them.

        The keys are names of fields of `Params`. `Params.recommended` calls this method.
        """
        return token_classes(self.llm, params)

    @any_thread
    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a prompt, with special tokens recognised. A BOS token is added if the model wants one.

        No EOS token is added, since the text continues. ValueError if ``text`` is not valid Unicode.
        """
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ArgumentError(f"the prompt is not valid UTF-8 (at character {error.start})") from error
        tokens: list[int] = self.llm.tokenize(data, add_bos=False, special=True)
        bos = int(llama_cpp.llama_vocab_bos(self._vocab))
        if llama_cpp.llama_vocab_get_add_bos(self._vocab) and bos >= 0 and tokens[:1] != [bos]:
            tokens.insert(0, bos)
        return tokens

    def piece(self, token: int) -> bytes:
        """Return the bytes that a token adds to a text: possibly part of a character.

        A control token adds nothing, b"". The exceptions are control tokens that a reader wants to see: the marks of
        reasoning, such as `<think>`, and of tool calls. A token that ends a text (`is_eog`) adds nothing.
        """
        fragment = self.fragments[token]
        return b"" if fragment is None else fragment.encode("utf-8") if isinstance(fragment, str) else fragment

    @any_thread
    def fragment(self, token: int) -> str | bytes | None:
        """Return the token's `piece`: as a str if it consists of whole characters, else as bytes; None for a token that
        ends a text.
        """
        if self.is_eog(token):
            return None
        piece = self._piece(token, special=False)
        if not piece and llama_cpp.llama_vocab_is_control(self._vocab, token):
            name = self._piece(token, special=True)
            piece = name if name.decode("utf-8", "replace") in _SHOWN else b""
        try:
            return piece.decode("utf-8")
        except UnicodeDecodeError:
            return piece

    def _piece(self, token: int, *, special: bool) -> bytes:
        buffer = ffi.new("char[]", _PIECE_BYTES)  # each call has a buffer, because `generate_many` runs several threads
        n = self._to_piece(self._c_vocab, token, buffer, len(buffer), 0, special)
        if n < 0:
            buffer = ffi.new("char[]", -n)
            n = self._to_piece(self._c_vocab, token, buffer, len(buffer), 0, special)
        return bytes(ffi.buffer(buffer, max(n, 0)))

    @any_thread
    def is_eog(self, token: int) -> bool:
        """Return whether a token ends a generation, such as EOS or the end of a turn."""
        return bool(self._is_eog(self._c_vocab, token))

    @cached_property
    @any_thread
    def eog_tokens(self) -> tuple[int, ...]:
        """The ids of all tokens that end a generation (`is_eog`), ascending."""
        return tuple(token for token in range(self.n_vocab) if self._is_eog(self._c_vocab, token))

    @cached_property
    @any_thread
    def token_bytes(self) -> TokenBytes:
        """The bytes of the model's tokens, for a `Grammar`; read once."""
        return token_bytes(self.llm)

    def gbnf(self, text: str) -> Callable[[], GbnfMatcher]:
        """Return a factory of matchers, each in the start state of a GBNF grammar, for `Grammar.gbnf`."""
        return matchers(text, Vocabulary(self.path), self.token_bytes.end[0])

    def asked(self, prompt: Prompt) -> tuple[list[int], str]:
        """Return the tokens and the text of a prompt; the text is "" if the prompt was given as tokens.

        ValueError for an empty prompt and for tokens that the model does not have; LzsError as `chat_prompt`.
        """
        given: Any = prompt
        text, tokens = "", []
        several = isinstance(given, Sequence) and not isinstance(given, str)
        if isinstance(given, np.ndarray) or (several and any(isinstance(each, Integral) for each in given)):
            tokens = token_array("prompt", given, self.n_vocab).tolist()
        else:
            text = given if isinstance(given, str) else self.chat_prompt(given)
            if not text:
                raise ArgumentError("the prompt is empty: give the beginning of a text")
            tokens = self.tokenize(text)
        if not tokens:
            raise ArgumentError("the prompt is empty: it has no tokens")
        return tokens, text

    def chat_prompt(self, messages: Messages) -> str:
        """Return the text of a conversation in the model's own chat template, up to the start of the assistant's turn.

        ``messages``: {"role": "system" | "user" | "assistant", "content": text} each. LzsError if the model has no
        template or its template refuses the messages (some have no system role).
        """
        template = self.header.chat_template
        if template is None:
            raise LzsError(
                f"{self.path.name} has no chat template: give the prompt as plain text (lzs: without --chat)"
            )
        special = self.header.special_tokens
        try:
            formatter = llama_cpp.llama_chat_format.Jinja2ChatFormatter(
                template=template,
                bos_token=special.get("bos", (-1, ""))[1],
                eos_token=special.get("eos", (-1, ""))[1],
            )
            conversation: Any = [dict(message) for message in messages]
            return str(formatter(messages=conversation).prompt)
        except Exception as error:  # a template is a program and may raise anything
            reason = " ".join(str(error).split()) or type(error).__name__
            raise LzsError(f"the chat template of {self.path.name} refuses this conversation: {reason}") from error

    # -- decoding --

    @property
    def n_past(self) -> int:
        """Number of tokens in the context."""
        return len(self.past)

    @one_thread
    def decode(self, tokens: Tokens) -> None:
        """Append tokens, int[n], to the context, ``n_batch`` at a time. `logits` then returns the logits after the last
        token.

        On a CPU, if SIGINT has Python's own handler, Ctrl-C interrupts even a batch that is being decoded. The context
        then keeps the finished batches. ValueError if tokens are outside the vocabulary or do not fit in the context;
        LzsError if llama.cpp fails.
        """
        array = token_array("tokens", tokens, self.n_vocab)
        for start in range(0, array.size, self.n_batch):
            self._decode(array[start : start + self.n_batch].tolist())
            if self.on_progress is not None:
                self.on_progress(min(start + self.n_batch, array.size), array.size)

    @one_thread
    def decode_rows(self, tokens: Tokens) -> npt.NDArray[np.float32]:
        """Append tokens, int[n], to the context, and return the logits after each of them: float32[n, n_vocab].

        n is 1..`n_batch`. The result is a copy of 4 * n * n_vocab bytes, and llama.cpp needs as many bytes again.
        Raises like `decode`, and ValueError for n outside of this range.
        """
        array = token_array("tokens", tokens, self.n_vocab)
        pointer = self.decode_for_rows(array.tolist())
        return row_of(pointer, array.size * self.n_vocab).reshape(array.size, self.n_vocab).copy()

    @one_thread
    def decode_for_rows(self, tokens: list[int]) -> Any:
        """Append tokens like `decode_rows`, and return a ``float *`` of `lzsampler._ffi` to the rows, without a copy.

        The rows are contiguous. The pointer is valid until the next `decode`. The tokens must be in the vocabulary.
        """
        self.decode_outputs(tokens)
        first = llama_cpp.llama_get_logits(self._context)
        if not first:
            raise LzsError("llama.cpp gave no logits for these tokens")
        return ffi.cast("float *", ctypes.cast(first, ctypes.c_void_p).value)

    @one_thread
    def decode_outputs(self, tokens: list[int]) -> None:
        """Append tokens, all in the vocabulary, to the context in one batch, with an output after each token."""
        if not 1 <= len(tokens) <= self.n_batch:
            raise ArgumentError(f"tokens must be 1 to {self.n_batch} for one batch, got {len(tokens)}")
        self._decode(tokens, (ctypes.c_int8 * len(tokens))(*[1] * len(tokens)))

    def _decode(self, tokens: list[int], wanted: Any = None) -> None:
        """Decode one batch.

        ``wanted``: an int8 for each token, 1 to get its logits. None gets only the logits of the last token.
        """
        if self.n_past + len(tokens) > self.n_ctx:
            raise ArgumentError(f"{self.n_past + len(tokens)} tokens do not fit in a context of {self.n_ctx}")
        ids = (llama_cpp.llama_token * len(tokens))(*tokens)
        batch = llama_cpp.llama_batch_get_one(ids, len(tokens))
        if wanted is not None:
            batch.logits = wanted
        before = self.n_past
        self._decoder.forget()
        try:
            status = self._decoder.decode(batch)
            if status == 0:
                self.past += tokens
        finally:  # also if Ctrl-C came after the decode but before ``past`` was extended
            self._kept_logits = self.n_past == before
            if self._kept_logits:  # remove the computed part of the batch
                with suppress(LzsError):
                    self.keep(before)
        self._decoder.check()
        if status != 0:
            raise _decode_failed(status, self.n_past)

    @one_thread
    def logits(self) -> npt.NDArray[np.float32]:
        """Return the logits after the last decoded token: float32[n_vocab].

        The array is llama.cpp's own memory, and valid until the next `decode`. LzsError before the first `decode`.
        """
        pointer = self.logits_pointer()
        at = int(ffi.cast("uintptr_t", pointer))
        if at != self._row_at:  # making a view takes longer than sampling, and llama.cpp seldom moves the row
            self._row, self._row_at = row_of(pointer, self.n_vocab), at
        return self._row

    @one_thread
    def logits_pointer(self) -> Any:
        """Return the logits after the last decoded token as a ``float *`` of `lzsampler._ffi`, for `Sampler.step_at`.

        The pointer is valid until the next `decode`. LzsError before the first `decode`.
        """
        if not self.past:
            raise LzsError("there are no logits before the first decode()")
        if self._kept_logits:
            raise LzsError(
                "there are no logits after a graph sampler's text or an interrupted decode: call decode() again"
            )
        pointer = self._logits_of(self._logits_context, -1)
        if not pointer:
            raise LzsError("llama.cpp gave no logits for the last token")
        return pointer

    def stepper(self, sampler: Sampler, graph: GraphSampler | None = None) -> "Stepper":
        """Return a `Stepper`, which decodes a token and picks the next one by ``sampler`` in one call.

        ``graph``: the `GraphSampler` that runs the sampler in the graph, if one is set.
        """
        return Stepper(self, sampler, graph)

    def forget_logits(self) -> None:
        """Make `logits` unavailable until the next decode, because a graph sampler's output took the place of the
        logits.
        """
        self._kept_logits = True

    @one_thread
    def keep(self, n: int = 0) -> None:
        """Forget all but the first ``n`` tokens of the context; `decode` continues from there.

        A recurrent model cannot remove only its last tokens. If 0 < n < `n_past`, such a model empties the context and
        raises LzsError.
        """
        n = integer("n", n, 0, self.n_past)
        memory = llama_cpp.llama_get_memory(self._context)
        if n and llama_cpp.llama_memory_seq_rm(memory, 0, n, -1):
            del self.past[n:]
            return
        llama_cpp.llama_memory_clear(memory, True)
        self.past.clear()
        if n:
            raise LzsError(f"a {self.header.architecture} model cannot go back to token {n}: decode all tokens again")


class Stepper:
    """Decodes a token and picks the next one with a sampler, in one call into C: `Model.decode` and `Sampler.step`.

    A decode evicts everything else from the CPU caches. So the code between two decodes is faster if it touches less
    memory. For that reason a `Stepper` does not check which thread uses the model. Use a `Stepper` only in a thread
    that already holds `Model.in_use`, as `generate` does.
    """

    def __init__(self, model: Model, sampler: Sampler, graph: GraphSampler | None) -> None:
        self._model, self._sampler, self._past, self._graph = model, sampler, model.past, graph
        self.loop = ffi.new("lzs_llama_loop *")  # a struct of C, which also counts the seconds of each part
        self.loop.size = ffi.sizeof("lzs_llama_loop")
        self.loop.context = ffi.cast("void *", model.llm.ctx)
        self.loop.decode = address(llama_cpp.llama_decode)
        self.loop.get_logits_ith = address(llama_cpp.llama_get_logits_ith)
        self.loop.sampler = sampler.handle
        if graph is not None:
            self.loop.graph_sampler = graph.handle

    def step(self, token: int) -> tuple[int, bool]:
        """Decode a token of the vocabulary. Return (the next token, whether the text now ends in a loop).

        The context must have room. LzsError if llama.cpp fails; otherwise raises as `Sampler.step`.
        """
        loop = self.loop
        loop.token = token
        status = lib.lzs_llama_step(loop)
        if status:
            self._refuse(status, token)
        self._past.append(token)
        return loop.token, loop.looping != 0

    def _refuse(self, status: int, token: int) -> None:
        if self.loop.decoded:
            raise _decode_failed(self.loop.decoded, len(self._past))
        self._past.append(token)
        if self._graph is not None:
            self._graph.refuse(status)
        self._sampler.refuse(status, self._model.logits())


def _decode_failed(status: int, n_past: int) -> LzsError:
    return LzsError(
        f"llama.cpp failed at token {n_past} (llama_decode returned {status}): try a smaller context or batch"
    )


class _Fragments(dict[int, str | bytes | None]):
    """A cache of `Model.fragment`: token -> result. A missing result is computed on access."""

    def __init__(self, fragment: Callable[[int], str | bytes | None]) -> None:
        self._fragment = fragment

    def __missing__(self, token: int) -> str | bytes | None:
        return self.setdefault(token, self._fragment(token))


def refuse_other_model(taker: str, model: object) -> None:
    """Raise TypeError if ``model`` is not a `Model`; ``taker`` is the name of the called function."""
    if not isinstance(model, Model):
        raise ArgumentTypeError(f"{taker} takes a Model, got {model!r:.100}: open one with Model(path)")


def context_length(header: gguf.Header) -> int:
    """Return the context that the model was trained with, in tokens.

    LzsError if the number in the file is impossible.
    """
    length = header.of_architecture("context_length")
    if length is None or length == 0:
        return DEFAULT_CONTEXT
    if not 0 < length <= INT32_MAX:
        raise LzsError(f"{header.path} is damaged: {header.architecture}.context_length is {length}; fetch it again")
    return length


def _refuse_beyond_memory(header: gguf.Header, n_ctx: int, trained: int) -> None:
    """Raise ValueError if ``n_ctx`` exceeds the trained context and its cache needs more than the machine's memory.

    llama.cpp would try to allocate the cache, and a machine that overcommits memory would come to a halt.
    """
    layers, width = header.of_architecture("block_count"), header.of_architecture("embedding_length")
    heads = header.of_architecture("attention.head_count")
    kept = header.of_architecture("attention.head_count_kv") or heads
    if n_ctx <= trained or not layers or not width or not heads or not kept or not hasattr(os, "sysconf"):
        return
    needed = n_ctx * layers * kept * (width // heads) * 4  # a key and a value of 16 bits each
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        raise ArgumentError(
            f"a context of {n_ctx:,} tokens needs {needed / 1e9:,.0f} GB of memory, and this machine has "
            f"{memory / 1e9:,.0f} GB: give a smaller context (the model was trained with {trained:,})"
        )


def refuse_without_weights(header: gguf.Header) -> None:
    """Raise LzsError for a file that has no weights or lacks a part of them."""
    if not header.tensors and header.parts == 1:
        raise LzsError(
            f"{header.path} holds a vocabulary without weights, so it cannot generate (lzs info shows what is in it)"
        )
    missing = header.expected_bytes - header.file_bytes
    if missing > 0:
        raise LzsError(
            f"{header.path} is truncated: {missing:,} of {header.expected_bytes:,} bytes are missing; fetch it again"
        )
