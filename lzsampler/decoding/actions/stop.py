"""`Stop`: the text ends."""

from .action import ActionTaken, Decision, LoopAction, LoopingText


class Stop(LoopAction):
    """Ends the text at the token that completes the loop."""

    name = "stop"
    help = "ends the text"

    def decide(self, text: LoopingText) -> Decision:
        """Return that the text ends, and keeps everything."""
        return Decision(len(text.tokens), end=True)

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return in a line what was done, and where."""
        return f"stopped in a loop: {taken.loop}"
