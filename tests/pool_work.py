"""What the tests of the pool let it do: a task is (number, pieces); a piece is a number, or a way to die or to fail."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lzsampler import LzsError


class UnpicklableError(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__("cannot come back")


def work(shared: Path, task: tuple[int, list[Any]], skipped: Mapping[int, str], start: Callable[[int], None]) -> Any:
    number, pieces = task
    done = []
    for i, piece in enumerate(pieces):
        if i in skipped:
            done.append(skipped[i])
            continue
        start(i)
        if piece == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif piece == "kill once" and not (shared / "killed").exists():
            (shared / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        elif piece == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif piece == "exit":
            os._exit(3)
        elif piece == "sleep":
            (shared / f"pid-{os.getpid()}").touch()
            time.sleep(60)
            (shared / "slept").touch()
        elif piece == "full":
            raise OSError(28, "No space left on device", "part")
        elif piece == "lzs":
            raise LzsError("what to install")
        elif piece == "unpicklable":
            raise UnpicklableError(1, 2)
        elif piece == "abort":
            os.write(2, b"Loading.\n" * 1000 + b"Fatal Python error: Aborted\n\n  File 'x.py', line 3 in f\n")
            os._exit(134)
        elif piece == "talk":
            os.write(1, b"a library that prints\n")
            print("and another")
        done.append(piece)
    return number, done, os.getpid()
