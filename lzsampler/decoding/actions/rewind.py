"""`Rewind`: lzsampler cuts the text within the second copy of the loop and continues it with another word."""

from collections.abc import Sequence

from .action import ActionTaken, Decision, LoopAction, LoopingText

_CONTEXT = 8  # the word stays forbidden after the same 8 tokens, because the loop might return in the next copy


class Rewind(LoopAction):
    """Cuts the text before the first word of the first line that begins in the second copy, and forbids that word.

    If no line begins there, the first sentence takes the place of the line. The word stays forbidden wherever the
    same 8 tokens precede it.
    """

    name = "rewind"
    help = "cuts the text where a line begins in the second copy, and continues with another word"
    goes_on = True
    cuts = True
    steers = True

    def __init__(self, temperature: float) -> None:
        super().__init__(temperature)
        self._refused: dict[tuple[int, ...], list[int]] = {}  # the last tokens of a text -> tokens that may not follow

    def decide(self, text: LoopingText) -> Decision | None:
        """Return the cut before the word, and forbid the word from now on."""
        keep = text.cut_at(text.word)
        if keep == len(text.tokens):
            return None
        before = text.tokens[:keep]
        self._refused.setdefault(_context(before), []).append(text.tokens[keep])
        self.forbids = True
        return Decision(keep, forbidden=self.forbidden(before))

    def forbidden(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens that may not come next in a text with these ``tokens``."""
        return tuple(self._refused.get(_context(tokens), ())) if self._refused else ()

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return one line that says where the text was continued."""
        return f"a loop at token {taken.at}, {taken.loop}: went back to token {taken.keep} and continued differently"


def _context(tokens: Sequence[int]) -> tuple[int, ...]:
    return tuple(tokens[-_CONTEXT:])
