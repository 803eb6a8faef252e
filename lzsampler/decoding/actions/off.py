"""`Off`: lzsampler does nothing about a loop."""

from .action import LoopAction


class Off(LoopAction):
    """Does nothing about loops."""

    name = "off"
    help = "does nothing"
