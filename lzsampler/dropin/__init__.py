"""Penalties for applications of llama-cpp-python: `attach` changes a `llama_cpp.Llama`, `LZLlama` replaces it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attachment import Attachment, attach
    from .lzllama import LZLlama
    from .settings import Stats

__all__ = ["Attachment", "LZLlama", "Stats", "attach"]

_LATE = {"Attachment": "attachment", "LZLlama": "lzllama", "Stats": "settings", "attach": "attachment"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATE[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
