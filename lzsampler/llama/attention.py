"""Flash attention of a `llama_cpp.Llama`: on, off, or "auto", llama.cpp's default, which `Llama` does not offer."""

import inspect
from typing import Any, Literal

from .._values import boolean, shown
from ..errors import ArgumentError
from .binding import llama_cpp

FlashAttention = bool | Literal["auto"]
"""Whether llama.cpp computes attention by flash attention; "auto": if the model and the device support it."""

TYPES: dict[FlashAttention, int] = {
    "auto": llama_cpp.LLAMA_FLASH_ATTN_TYPE_AUTO,
    True: llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED,
    False: llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED,
}
"""llama.cpp's constant for each setting."""


def check_flash_attention(given: object) -> FlashAttention:
    """Return the given ``flash_attn``; ValueError if it is not a `FlashAttention`."""
    if not isinstance(given, str):
        return boolean("flash_attn", given)
    if given != "auto":
        raise ArgumentError(f"flash_attn must be auto, True or False, got {shown(given)}")
    return "auto"


def flash_attention_of(llm: Any) -> FlashAttention:
    """Return the setting that a `llama_cpp.Llama` was opened with."""
    return next(given for given, value in TYPES.items() if value == llm.context_params.flash_attn_type)


class AutoAttention:
    """Gives subclasses of `llama_cpp.Llama` the default ``flash_attn="auto"``. List this base before `Llama`."""

    def __init__(self, *arguments: Any, flash_attn: FlashAttention = "auto", **keywords: Any) -> None:
        self._flash_attn_type = TYPES[check_flash_attention(flash_attn)]
        super().__init__(*arguments, **keywords)

    @property
    def context_params(self) -> Any:
        """The settings of the context.

        The property sets flash attention at each access, because `Llama` sets it on or off, never to "auto".
        """
        params = self.__dict__["context_params"]
        params.flash_attn_type = self._flash_attn_type
        return params

    @context_params.setter
    def context_params(self, params: Any) -> None:
        self.__dict__["context_params"] = params


_theirs = inspect.signature(llama_cpp.Llama.__init__)
_init: Any = AutoAttention.__init__
_init.__signature__ = _theirs.replace(
    parameters=[
        parameter.replace(default="auto", annotation=FlashAttention) if name == "flash_attn" else parameter
        for name, parameter in _theirs.parameters.items()
    ]
)
