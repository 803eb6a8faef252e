"""`Stop`: the text ends."""

from .action import ActionTaken, Decision, LoopAction, LoopingText


class Stop(LoopAction):
    """Ends the text at the token that completes the loop."""

    name = "stop"
    help = "ends the text"

    def decide(self, text: LoopingText) -> Decision:
        """Return the decision to end the text and to keep all tokens."""
        return Decision(len(text.tokens), end=True)

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return one line that says in which loop the text ended."""
        return f"stopped in a loop: {taken.loop}"
