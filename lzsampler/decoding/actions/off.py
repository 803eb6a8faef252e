"""`Off`: nothing is done about a loop."""

from .action import LoopAction


class Off(LoopAction):
    """Does nothing."""

    name = "off"
    help = "does nothing"
