"""`Delivery`: hands out a text in pieces as it grows, and holds the whole text."""

from collections.abc import Callable, Iterable, Sequence

from .text_stream import TextStream


class Delivery:
    """The pieces of a text up to a stop string. Each piece goes to ``on_text`` at once. After a cut, no text is sent
    twice.

    ``wants_end``: whether ``on_text`` asked to end the text.
    """

    def __init__(self, stop: Sequence[str], on_text: Callable[[str], object] | None) -> None:
        self.stream = TextStream(stop)
        self.wants_end = False
        self._on_text = on_text
        self._pieces: list[str] = []
        self._handed = 0  # how many of the next characters were already handed out, before a cut

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def add(self, fragment: str | bytes) -> None:
        """Take the text that a token adds."""
        stream = self.stream
        text = fragment if stream.passes and type(fragment) is str else stream.feed(fragment)
        if text:
            self._hand_out(text)

    def cut(self, fragments: Iterable[str | bytes]) -> None:
        """Hand out the text that was held back, and go back to the text of ``fragments``."""
        self.end()
        self.stream = TextStream(self.stream.stop)
        self._pieces = [text for fragment in fragments if (text := self.stream.feed(fragment))]
        self._handed = self.stream.held

    def end(self) -> None:
        """Hand out the text that was held back. No more text follows."""
        text = self.stream.end()
        if text:
            self._hand_out(text)

    def _hand_out(self, text: str) -> None:
        self._pieces.append(text)
        if self._on_text is not None:
            new = text[self._handed :]
            self._handed -= len(text) - len(new)
            self.wants_end = bool(new) and self._on_text(new) is True
