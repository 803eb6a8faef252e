"""`CloseThink`: the thinking ends, and the model answers."""

from .action import ActionTaken, Decision, LoopAction, LoopingText


class CloseThink(LoopAction):
    """Cuts the text after the line or sentence before, writes the mark that ends the thinking, and goes on.

    Once in a text: if the model shows nothing for its mark, the text still looks as if it was thinking.
    """

    name = "close-think"
    help = "cuts the text there too, and ends the thinking, so that the model answers"
    goes_on = True
    cuts = True
    needs_template = True

    def __init__(self, temperature: float) -> None:
        super().__init__(temperature)
        self._closed = False

    def decide(self, text: LoopingText) -> Decision | None:
        """Return that the thinking ends; None for a text that is not thinking, and if the mark has no room."""
        keep = text.cut_at(text.line)
        written = () if self._closed else tuple(text.closing(keep))
        if not written or keep + len(written) >= text.room:
            return None
        self._closed = True
        return Decision(keep, written)

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return in a line what was done, and where."""
        return f"a loop at token {taken.at}, {taken.loop}: went back to token {taken.keep} and ended the thinking"
