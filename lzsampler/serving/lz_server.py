"""llama_cpp.server with `LZLlama` in place of `Llama`: a process of its own, which `lzs serve` starts."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..errors import missing

_NEEDED = ("llama_cpp", "fastapi", "uvicorn", "sse_starlette", "starlette_context", "pydantic_settings")


def require_server() -> None:
    """Raise MissingExtra, with the command of pip, if llama_cpp.server lacks a package."""
    lacks = [name for name in _NEEDED if find_spec(name) is None]
    if lacks:
        what = f"llama-server was not found, and llama_cpp.server, which lzs then starts, needs {', '.join(lacks)}"
        raise missing(what, "'llama-cpp-python[server]'")


def command(keywords: dict[str, Any]) -> list[str]:
    """Return the command that starts the server with keywords of `LZLlama`; the server's own arguments follow."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main({keywords!r})"
    return [sys.executable, "-c", code]


def main(keywords: dict[str, Any]) -> None:
    """Run the server with the arguments of the process; every model that it loads gets the keywords."""
    llama_cpp = import_module("llama_cpp")
    from ..dropin.lzllama import LZLlama

    class Llama(LZLlama):
        def __init__(self, model_path: str, **given: Any) -> None:
            super().__init__(model_path, **keywords, **given)

    llama_cpp.Llama = Llama  # type: ignore[attr-defined]
    import_module("llama_cpp.server.__main__").main()
