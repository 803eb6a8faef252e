"""`Trim`: lzsampler ends the text and keeps only the first copy of the loop."""

from ...detection import Loop
from .action import ActionTaken, Decision, LoopAction, LoopingText


class Trim(LoopAction):
    """Ends the text and cuts it before the second copy of the loop."""

    name = "trim"
    help = "ends the text and cuts it after the first copy"
    cuts = True

    def decide(self, text: LoopingText) -> Decision:
        """Return the decision to end the text before the second copy."""
        return Decision(text.cut_at(text.copy), end=True)

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return one line that says in which loop the text ended, and what was kept."""
        kept = "only the first copy is kept" if isinstance(taken.found, Loop) else "the text before it is kept"
        return f"stopped in a loop: {taken.loop}{'; ' + kept if taken.cut else ''}"
