"""What was done about the loops of a text, in the form of ``choice["lzsampler"]`` of a response."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ..decoding.actions import describe
from ..decoding.recovery import Recovery
from ..detection import Loop

_KEY = "lzsampler"
_KEPT = 64  # this many latest outcomes are kept, because chats ask for outcomes later
_CHAT = "chat"  # the prefix that turns the id of a completion into the id of llama-cpp-python's chat completion


def outcome(recovery: Recovery, finish_reason: str, *, ended: bool) -> dict[str, Any]:
    """Return what was done about the loops of a text, ready for JSON, with the keys of a transcript.

    ``finish_reason``: the finish reason of the response. ``ended``: whether a loop ended the text. If so, ``loop`` or
    ``stuck`` holds this loop, and the finish reason in the result is "repetition", whatever ``finish_reason`` is. In
    each action, ``did`` is a line that says what was done.
    """
    found = recovery.actions[-1].found if ended else None
    is_loop = isinstance(found, Loop)
    return {
        "finish_reason": "repetition" if ended else finish_reason,
        "loop": asdict(found) if found is not None and is_loop else None,
        "stuck": asdict(found) if found is not None and not is_loop else None,
        "actions": [{**taken.to_json(), "did": describe(taken)} for taken in recovery.actions],
    }


class Outcomes:
    """The outcomes of the latest completions, by id, because chat handlers build new choices without the outcomes."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Any]] = {}

    def put(self, chunk: dict[str, Any], made: dict[str, Any]) -> None:
        """Add an outcome to the choice of a completion, and keep it."""
        chunk["choices"][0][_KEY] = self._kept[chunk["id"]] = made
        while len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]

    def of_chat(self, made: Any) -> Any:
        """Return a chat completion, or its chunks, with the outcome of the completion that it was made from."""
        if isinstance(made, dict):
            self._mark(made)
            return made
        return self._marked(made)

    def _marked(self, chunks: Iterator[Any]) -> Iterator[Any]:
        try:
            for chunk in chunks:
                self._mark(chunk)
                yield chunk
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()

    def _mark(self, chunk: Any) -> None:
        choices = chunk.get("choices")
        if choices and choices[0].get("finish_reason") is not None:
            made = self._kept.pop(str(chunk["id"]).removeprefix(_CHAT), None)
            if made is not None:
                choices[0][_KEY] = made
