"""`Model`: a GGUF model with one llama.cpp context, ready to decode one sequence of tokens."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import INT32_MAX, Tokens, integer, token_array
from ..errors import LzsError
from ..util.cores import physical_cores
from . import gguf
from .binding import llama_cpp
from .log import captured_log, reason

DEFAULT_CONTEXT = 4096  # tokens; the key-value cache of a model's whole trained context may not fit in memory
MAX_UBATCH = 512  # tokens computed together, llama.cpp's default; more costs memory only
MAX_THREADS = 512  # GGML_MAX_N_THREADS
# Threads wait for each other at every operation: where one has less than this to do, another one saves nothing, and
# costs a lot on a busy machine (embedded model, 8 MB, 2 cores with other work: 0.8 ms a token, but 9 to 50 with 2).
_BYTES_A_THREAD = 32 << 20
_PIECE_BYTES = 64  # longer than almost every piece; a longer one is asked for again

Messages = Sequence[Mapping[str, str]]
Prompt = str | Messages | npt.NDArray[np.int32]
"""Text, messages ({"role", "content"} each) for the model's chat template, or tokens, int32[n], taken as they are."""


class Model:
    """A GGUF model and one llama.cpp context over it, at the start of an empty sequence.

    ``n_ctx``: context, tokens; None is what the model was trained with, but at most 4096; 0 is all of it.
    ``n_batch``: prompt tokens decoded at once. ``n_threads``: None is one a physical core, or
    fewer for a small file. ``n_gpu_layers``: -1 is all layers, where llama-cpp-python was built for a GPU.

    Raises ValueError for an argument out of range or a path that is no file, LzsError, in one line, for a file that is
    not GGUF, is truncated or holds no weights, and for what llama.cpp refuses. Use it with ``with``, or `close` it:
    llama-cpp-python's objects refer to each other, so that memory otherwise stays until the garbage collector runs.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        n_ctx: int | None = None,
        n_batch: int = 512,
        n_threads: int | None = None,
        n_gpu_layers: int = -1,
    ) -> None:
        self.header = gguf.read(path)
        self.path = self.header.path
        trained = self.header.of_architecture("context_length") or DEFAULT_CONTEXT
        if n_ctx is None:
            n_ctx = min(trained, DEFAULT_CONTEXT)
        self.n_ctx = integer("n_ctx", n_ctx, 0, INT32_MAX) or trained
        self.n_batch = min(integer("n_batch", n_batch, 1, INT32_MAX), self.n_ctx)
        enough = min(physical_cores(), 1 + self.header.file_bytes // _BYTES_A_THREAD)
        self.n_threads = enough if n_threads is None else integer("n_threads", n_threads, 1, MAX_THREADS)
        self.n_gpu_layers = integer("n_gpu_layers", n_gpu_layers, -1, INT32_MAX)
        _refuse_without_weights(self.header)
        self.llm = self._open()
        self._vocab = llama_cpp.llama_model_get_vocab(self.llm.model)
        self.n_vocab = int(llama_cpp.llama_vocab_n_tokens(self._vocab))
        self.n_ctx = min(self.n_ctx, int(self.llm.n_ctx()))  # llama.cpp rounds up; the user's number holds
        self.n_past = 0  # tokens in the context
        self._pieces: dict[int, bytes] = {}
        self._one = (llama_cpp.llama_token * 1)()
        self._row: npt.NDArray[np.float32] = np.empty(0, np.float32)
        self._row_at = 0

    def _open(self) -> Any:
        with captured_log() as errors:
            try:
                llm = llama_cpp.Llama(
                    model_path=str(self.path),
                    n_ctx=self.n_ctx,
                    n_batch=self.n_batch,
                    n_ubatch=min(self.n_batch, MAX_UBATCH),
                    n_threads=self.n_threads,
                    n_threads_batch=self.n_threads,
                    n_gpu_layers=self.n_gpu_layers,
                    verbose=False,
                )
            except (ValueError, RuntimeError, OSError, AssertionError) as error:
                raise LzsError(f"llama.cpp cannot load {self.path}: {reason(errors) or error}") from error
        if not llama_cpp.llama_model_has_decoder(llm.model) or llama_cpp.llama_model_has_encoder(llm.model):
            llm.close()
            raise LzsError(f"{self.path} is an encoder ({self.header.architecture}): it does not continue a text")
        return llm

    def close(self) -> None:
        """Free the context and the weights; the model cannot be used after it."""
        self._row, self._row_at = np.empty(0, np.float32), 0
        self.llm.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- text and tokens --

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a prompt, special tokens recognised, with the BOS that the model wants, once.

        No EOS is added, as the text goes on. ValueError when ``text`` is not valid Unicode.
        """
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"the prompt is not valid UTF-8 (at character {error.start})") from error
        tokens: list[int] = self.llm.tokenize(data, add_bos=False, special=True)
        bos = int(llama_cpp.llama_vocab_bos(self._vocab))
        if llama_cpp.llama_vocab_get_add_bos(self._vocab) and bos >= 0 and tokens[:1] != [bos]:
            tokens.insert(0, bos)
        return tokens

    def piece(self, token: int) -> bytes:
        """Return the bytes that a token adds to a text: maybe part of a character, b"" for a control token."""
        known = self._pieces.get(token)
        if known is not None:
            return known
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        if n < 0:
            buffer = ctypes.create_string_buffer(-n)
            n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        return self._pieces.setdefault(token, buffer.raw[: max(n, 0)])

    def is_eog(self, token: int) -> bool:
        """Return whether a token ends a generation: EOS, end of turn and what else the model has of the kind."""
        return bool(llama_cpp.llama_vocab_is_eog(self._vocab, token))

    def chat_prompt(self, messages: Messages) -> str:
        """Return the text of a conversation as the model's own template has it, up to where the assistant begins.

        ``messages``: {"role": "system" | "user" | "assistant", "content": text} each. LzsError when the model has no
        template or its template refuses the messages (some know no system role).
        """
        template = self.header.chat_template
        if template is None:
            raise LzsError(f"{self.path.name} has no chat template: give the prompt as plain text, without --chat")
        special = self.header.special_tokens
        try:
            formatter = llama_cpp.llama_chat_format.Jinja2ChatFormatter(
                template=template,
                bos_token=special.get("bos", (-1, ""))[1],
                eos_token=special.get("eos", (-1, ""))[1],
            )
            conversation: Any = [dict(message) for message in messages]
            return str(formatter(messages=conversation).prompt)
        except Exception as error:  # a template is a program: anything may come out of it
            reason = " ".join(str(error).split()) or type(error).__name__
            raise LzsError(f"the chat template of {self.path.name} refuses this conversation: {reason}") from error

    # -- decoding --

    def decode(self, tokens: Tokens) -> None:
        """Append tokens, int[n], to the context, ``n_batch`` at a time; `logits` are then those after the last.

        ValueError when they are not in the vocabulary or do not fit in the context; LzsError when llama.cpp fails.
        """
        if len(tokens) == 1:
            self._one[0] = integer("token", tokens[0], 0, self.n_vocab - 1)
            self._decode(self._one)
            return
        array = token_array("tokens", tokens, self.n_vocab)
        for start in range(0, array.size, self.n_batch):
            part = array[start : start + self.n_batch]
            self._decode((llama_cpp.llama_token * part.size)(*part.tolist()))

    def _decode(self, batch: Any) -> None:
        if self.n_past + len(batch) > self.n_ctx:
            raise ValueError(f"{self.n_past + len(batch)} tokens do not fit in a context of {self.n_ctx}")
        status = llama_cpp.llama_decode(self.llm.ctx, llama_cpp.llama_batch_get_one(batch, len(batch)))
        if status != 0:
            raise LzsError(f"llama_decode returned {status} at token {self.n_past}: try a smaller context or batch")
        self.n_past += len(batch)

    def logits(self) -> npt.NDArray[np.float32]:
        """Return the logits after the last decoded token: float32[n_vocab], llama.cpp's own memory, no copy.

        Valid until the next `decode`. LzsError before the first.
        """
        if not self.n_past:
            raise LzsError("there are no logits before the first decode()")
        pointer = llama_cpp.llama_get_logits_ith(self.llm.ctx, -1)
        if not pointer:
            raise LzsError("llama.cpp gave no logits for the last token")
        address = ctypes.addressof(pointer.contents)
        if address != self._row_at:  # making a view costs more than a small model's sampling; the row seldom moves
            self._row, self._row_at = np.ctypeslib.as_array(pointer, (self.n_vocab,)), address
        return self._row

    def keep(self, n: int = 0) -> None:
        """Forget all but the first ``n`` tokens of the context; `decode` goes on from there.

        A recurrent model cannot go back part of the way: LzsError, with the context emptied.
        """
        n = integer("n", n, 0, self.n_past)
        memory = llama_cpp.llama_get_memory(self.llm.ctx)
        if n and llama_cpp.llama_memory_seq_rm(memory, 0, n, -1):
            self.n_past = n
            return
        llama_cpp.llama_memory_clear(memory, True)
        self.n_past = 0
        if n:
            raise LzsError(f"a {self.header.architecture} model cannot go back to token {n}: start again")


def _refuse_without_weights(header: gguf.Header) -> None:
    if not header.tensors and header.parts == 1:
        raise LzsError(
            f"{header.path} holds a vocabulary without weights, so it cannot generate (lzs info shows what is in it)"
        )
    missing = header.expected_bytes - header.file_bytes
    if missing > 0:
        raise LzsError(
            f"{header.path} is truncated: {missing:,} of {header.expected_bytes:,} bytes are missing; fetch it again"
        )
