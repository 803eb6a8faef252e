"""A progress bar on stderr for commands that take long, and for long prompts."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from .console import console

if TYPE_CHECKING:
    from rich.progress import Progress

    from lzsampler.llama.model import Model

_PAUSE = 0.05  # seconds between two drawings; a drawing takes about a millisecond
_LONG = 2.0  # seconds; a prompt whose decoding takes longer gets a bar


class Bar:
    """A bar with the share done and the time left. If ``progress`` is None, it draws nothing."""

    def __init__(self, progress: "Progress | None", unit: str) -> None:
        self._progress = progress
        self._unit = unit
        self._task = None if progress is None else progress.add_task("", total=None, detail="", left="")
        self._drawn = 0.0  # time of the last drawing, on the clock of `monotonic`

    def update(self, done: float, total: float, detail: str | None = None) -> None:
        """Show that ``done`` of ``total`` is done; ``detail``: text beside the bar that replaces the two numbers."""
        if self._progress is None or self._task is None or (monotonic() < self._drawn + _PAUSE and done < total):
            return
        self._drawn = monotonic()
        shown = f"{done:,.0f}/{total:,.0f} {self._unit}" if detail is None else detail
        self._progress.update(self._task, completed=done, total=max(total, 1), detail=shown, left="left")
        self._progress.refresh()

    def say(self, what: str) -> None:
        """Show the current work when it has no measurable share, such as loading a model."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=None, detail=what, left="")
            self._progress.refresh()


@contextmanager
def progress(unit: str) -> Iterator[Bar]:
    """Yield a bar that counts things called ``unit``; it is cleared at the end.

    It is drawn only on a terminal, and not with -q. No thread refreshes it, because the CPU cores are busy.
    """
    if not console.shows_progress:
        yield Bar(None, unit)
        return
    import sys

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    with Progress(
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(file=sys.stderr, no_color=not console.colored(sys.stderr)),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as drawn:
        yield Bar(drawn, unit)


@contextmanager
def prompt_progress(model: "Model") -> Iterator[None]:
    """Show a bar while a model decodes a prompt, if that takes longer than two seconds."""
    start = monotonic()
    with ExitStack() as drawn:
        bar: Bar | None = None

        def show(done: int, total: int) -> None:
            nonlocal bar
            if done == total:  # The bar is cleared, because the text is printed next.
                drawn.close()
                bar = None
            elif bar is None and (monotonic() - start) * total / done > _LONG:
                bar = drawn.enter_context(progress("tokens of the prompt"))
            if bar is not None:
                bar.update(done, total)

        model.on_progress = show if console.shows_progress else None
        try:
            yield
        finally:
            model.on_progress = None
