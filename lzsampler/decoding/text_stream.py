"""`TextStream`: turns the bytes of tokens into text as soon as the text is certain, up to a stop string."""

import codecs
from collections.abc import Sequence


class TextStream:
    """Takes the text of tokens, and returns whole characters that cannot be part of a stop string."""

    def __init__(self, stop: Sequence[str]) -> None:
        self.stop = tuple(stop)
        self.found: str | None = None
        self._begins = {string[0] for string in stop}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._inside = False  # whether the last byte lies inside a character
        self.passes = not self.stop  # whether whole characters pass unchanged
        self._held = ""

    def feed(self, fragment: str | bytes) -> str:
        """Return the text that is certain now. When a stop string is complete, `found` is this string.

        ``fragment``: a str of whole characters, or bytes, which may be part of a character.
        """
        if self._inside or isinstance(fragment, bytes):
            fragment = self._decode(fragment.encode("utf-8") if isinstance(fragment, str) else fragment)
        if not self.stop or (not self._held and self._begins.isdisjoint(fragment)):
            return fragment
        self._held += fragment
        return self._release(final=False)

    @property
    def held(self) -> int:
        """Number of characters that were held back."""
        return len(self._held)

    def _decode(self, data: bytes, *, final: bool = False) -> str:
        text = self._decoder.decode(data, final)
        self._inside = bool(self._decoder.getstate()[0])
        self.passes = not self.stop and not self._inside
        return text

    def end(self) -> str:
        """End the text, and return the characters that were held back. An incomplete character becomes U+FFFD."""
        self._held += self._decode(b"", final=True)
        return self._release(final=True)

    def _release(self, *, final: bool) -> str:
        if self.found is not None:
            return ""
        places = [(at, string) for string in self.stop if (at := self._held.find(string)) >= 0]
        if places:
            at, self.found = min(places)
            return self._held[:at]
        held = 0 if final else max((_overlap(self._held, string) for string in self.stop), default=0)
        out, self._held = self._held[: len(self._held) - held], self._held[len(self._held) - held :]
        return out


def _overlap(text: str, string: str) -> int:
    """Return the length of the longest proper prefix of ``string`` that ``text`` ends with."""
    return next((n for n in range(min(len(text), len(string) - 1), 0, -1) if text.endswith(string[:n])), 0)
