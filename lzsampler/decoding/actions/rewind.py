"""`Rewind`: the text goes back into the second copy, and on with another word."""

from collections.abc import Sequence

from .action import ActionTaken, Decision, LoopAction, LoopingText

_CONTEXT = 8  # tokens after which what led into a loop is forbidden: or it would come back a copy later


class Rewind(LoopAction):
    """Cuts the text before the first word of the first line, or else sentence, that begins in the second copy.

    That word is forbidden, there and wherever the 8 tokens before are the same, and the text goes on.
    """

    name = "rewind"
    help = "cuts the text where a line begins in the second copy, and goes on with another word"
    goes_on = True
    cuts = True
    steers = True

    def __init__(self, temperature: float) -> None:
        super().__init__(temperature)
        self._refused: dict[tuple[int, ...], list[int]] = {}  # last tokens of a text: those that may not come next

    def decide(self, text: LoopingText) -> Decision | None:
        """Return that the text goes on from before the word, which is forbidden from now on."""
        keep = text.cut_at(text.word)
        if keep == len(text.tokens):
            return None
        before = text.tokens[:keep]
        self._refused.setdefault(_context(before), []).append(text.tokens[keep])
        self.forbids = True
        return Decision(keep, forbidden=self.forbidden(before))

    def forbidden(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens that may not come after those of a text."""
        return tuple(self._refused.get(_context(tokens), ())) if self._refused else ()

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return in a line what was done, and where."""
        return f"a loop at token {taken.at}, {taken.loop}: went back to token {taken.keep} and continued differently"


def _context(tokens: Sequence[int]) -> tuple[int, ...]:
    return tuple(tokens[-_CONTEXT:])
