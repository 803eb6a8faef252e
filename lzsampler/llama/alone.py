"""`OneThread`: lets one thread at a time use the context of a `llama_cpp.Llama`."""

from functools import wraps
from typing import Any, Protocol

from ..errors import LzsError
from ..util.in_use import InUse, any_thread, one_thread
from .binding import llama_cpp


class HasUser(Protocol):
    """An object with an `InUse`, such as an `Attachment`."""

    in_use: InUse


class OneThread:
    """Overrides of `llama_cpp.Llama` that raise LzsError while another thread uses the model."""

    lz: HasUser

    @property
    def in_use(self) -> InUse:
        """The `InUse` of the attachment, or a new `InUse` while the constructor runs."""
        return self.lz.in_use if "lz" in vars(self) else InUse("this Llama", "")

    def close(self) -> None:
        """Close the model; LzsError while anything uses it, even in this thread."""
        if "lz" in vars(self):
            self.in_use.close(super().close)  # type: ignore[misc]
        else:  # the constructor failed before it set `lz`
            super().close()  # type: ignore[misc]


def refuse_closed(llm: Any) -> None:
    """Raise LzsError for a closed `Llama`, because llama.cpp would end the process."""
    if llm._model.model is None:
        raise LzsError(f"this {type(llm).__name__} is closed: open it again")


def _open(name: str) -> Any:
    """Return a method of `Llama` that raises LzsError once the model is closed."""

    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        refuse_closed(self)
        return getattr(super(OneThread, self), name)(*arguments, **keywords)

    return wraps(getattr(llama_cpp.Llama, name))(method)


for _name in ("eval", "reset", "embed", "save_state", "load_state"):
    setattr(OneThread, _name, one_thread(_open(_name)))
for _name in ("tokenize", "detokenize", "n_ctx", "n_embd", "n_vocab", "pooling_type"):
    setattr(OneThread, _name, any_thread(_open(_name)))
