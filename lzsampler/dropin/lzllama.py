"""`LZLlama`: a `llama_cpp.Llama` that has the penalties from the start. lzllama.pyi has its signatures for editors."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._check import unknown_keyword
from ..errors import ArgumentError, LzsError
from ..llama import gguf
from ..llama.attention import AutoAttention, flash_attention_of
from ..llama.binding import llama_cpp
from ..llama.log import quiet
from ..llama.model import refuse_without_weights
from ..models import find_model
from ..params import PENALTY_FIELDS, SAMPLING_FIELDS, Params, changed, penalties_from
from ..sampler import refuse_tokens_outside
from ..util.signals import uninterrupted
from ..util.signature import keyword, settings, with_keywords
from .attachment import Attachment, Hooks
from .keywords import TOKENS_OF, taken, with_token_ids
from .response import refuse_other_vocabulary
from .settings import FLAGS, OURS, Settings

_THEIRS = [p.name for p in inspect.signature(llama_cpp.Llama).parameters.values() if p.kind != p.VAR_KEYWORD]

# `Llama` ignores these arguments. `LZLlama` accepts them, because the server of `Llama` and LangChain pass them.
_IGNORED = ("f16_kv", "mul_mat_q", "n_parts", "rpc_servers")


class LZLlama(Hooks, AutoAttention, llama_cpp.Llama):
    """`llama_cpp.Llama` with the LZ penalty.

    ``model_path`` may be the name of a model, such as "smollm2" (`lzsampler.models`); ./smollm2 is a file of that name.
    `LZLlama` takes all arguments of `Llama` and the keywords of `attach`: the penalty fields of `Params`, and
    ``params``, ``grammar``, ``fast_grammar``, ``on_loop``, ``loop_finish_reason``, ``draft`` and ``sampler``. LZ has
    the default settings unless you give other settings; ``exempt`` and ``dry_breakers`` may hold strings as well as
    token ids.

    `__call__`, `create_completion`, `create_chat_completion` and `generate` take these keywords for one call, except
    names that these methods already have. In a call, ``frequency_penalty``, ``presence_penalty`` and ``logit_bias`` are
    llama-cpp-python's own, and apply in addition to lzsampler's. ``flash_attn`` defaults to "auto", as in llama.cpp;
    with False the logits are rounded as in a plain `Llama`. `lz` is the `Attachment`.

    Raises like `Llama` and `attach`. An unknown keyword raises TypeError, although `Llama` ignores it. One thread at a
    time may use the model; other threads get an LzsError meanwhile. A stream uses the model while it makes a chunk, but
    not between two chunks.
    """

    def __init__(self, model_path: str, **keywords: Any) -> None:
        ours = taken(keywords, (*OURS, *(name for name in SAMPLING_FIELDS if name not in _THEIRS)))
        for name in keywords:
            if name not in (*_THEIRS, *_IGNORED):
                raise unknown_keyword("LZLlama", name, (*OURS, *_THEIRS))
        # Strings become ids once there is a vocabulary; everything else is checked before the weights are loaded.
        late = taken(ours, TOKENS_OF)
        draft = ours.pop("draft", None)  # the draft's file is opened later, with this model's settings
        flags, params = taken(ours, FLAGS), ours.pop("params", None)
        now = None if isinstance(draft, str | Path) else draft
        before = Settings(penalties_from("LZLlama", params, ours, ()), **flags, draft=now)
        path = find_model(model_path)
        try:
            with uninterrupted(), quiet:
                super().__init__(str(path), **keywords)
        except ValueError:
            if path.is_file():  # the reason is only in llama.cpp's log, but the file's header often shows it, too
                try:
                    refuse_without_weights(gguf.read(path))
                except LzsError as error:
                    raise ArgumentError(str(error)) from error
            raise
        fields = with_token_ids(self, {**ours, **late}, params)
        made = replace(before, params=changed(before.params, fields))
        refuse_tokens_outside(made.params, self.n_vocab())
        refuse_other_vocabulary(self, made.grammar)
        self.lz = Attachment(self, made, restore=None)
        self.lz.use_draft(self, draft)

    def close(self) -> None:
        """Free the model, even if the constructor failed."""
        if "_stack" in self.__dict__:
            super().close()
        if "lz" in self.__dict__:
            self.lz.close_draft()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        chosen = vars(self.lz._settings)
        # Explicit strengths prevent the warning about ``params`` that switch no penalty on.
        strengths = {name: getattr(self.lz.params, name) for name in ("lz_penalty", "lz_run_penalty")}
        return {**state, **chosen, **strengths, "flash_attn": flash_attention_of(self)}


_init: Any = LZLlama.__init__
_init.__signature__ = with_keywords(
    AutoAttention.__init__,
    [
        *settings(PENALTY_FIELDS, given=True),
        keyword("params", Params | None, None),
        *(keyword(name, kind, getattr(Settings, name)) for name, kind in FLAGS.items()),
    ],
)
