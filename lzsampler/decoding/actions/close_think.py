"""`CloseThink`: lzsampler ends the thinking, and the model answers."""

from .action import ActionTaken, Decision, LoopAction, LoopingText


class CloseThink(LoopAction):
    """Cuts the text where a line or sentence begins in the second copy, and writes the mark that ends the thinking.

    Acts only once in a text. If the mark's tokens have no text, the text still looks like thinking after the mark, and
    the action would act again.
    """

    name = "close-think"
    help = "cuts the text where a line begins in the second copy, and ends the thinking, so that the model answers"
    goes_on = True
    cuts = True
    writes = True
    needs_template = True

    def __init__(self, temperature: float) -> None:
        super().__init__(temperature)
        self._closed = False

    def decide(self, text: LoopingText) -> Decision | None:
        """Return the cut and the closing mark; None outside of the thinking, or if the mark does not fit."""
        keep = text.cut_at(text.line)
        written = () if self._closed else tuple(text.closing(keep))
        if not written or keep + len(written) >= text.room:
            return None
        self._closed = True
        return Decision(keep, written)

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return one line that says where the thinking was ended."""
        return f"a loop at token {taken.at}, {taken.loop}: went back to token {taken.keep} and ended the thinking"
