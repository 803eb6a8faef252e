"""llama.cpp through llama-cpp-python. This package imports llama-cpp-python only when it is first used.

- `Model` is a GGUF model and a context (model.py); `gguf` reads a file's header without llama.cpp.
- `penalties_sampler` and `pipeline_sampler` are samplers for a llama.cpp chain that you build yourself (chain.py).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .binding import llama_cpp
    from .chain import check_chain_sampler, penalties_sampler, pipeline_sampler
    from .model import Model
    from .vocabulary import DRY_BREAKERS, dry_breaker_ids, exempt_ids, lz_separators, token_bytes

__all__ = [
    "DRY_BREAKERS",
    "Model",
    "check_chain_sampler",
    "dry_breaker_ids",
    "exempt_ids",
    "llama_cpp",
    "lz_separators",
    "penalties_sampler",
    "pipeline_sampler",
    "token_bytes",
]

_MODULES = {
    "binding": ["llama_cpp"],
    "chain": ["check_chain_sampler", "penalties_sampler", "pipeline_sampler"],
    "model": ["Model"],
    "vocabulary": ["DRY_BREAKERS", "dry_breaker_ids", "exempt_ids", "lz_separators", "token_bytes"],
}
_LATE = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATE[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
