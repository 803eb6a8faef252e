"""`table` and `drawn`: rich tables and lines as text for a terminal, with the settings that all commands share."""

import re
from collections.abc import Iterable
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_LINE_END = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)  # padding at the end of a line, with colour codes


def table() -> "Table":
    """Return a table without borders, whose columns are two spaces apart."""
    from rich.table import Table

    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_edge=False)


def drawn(parts: "Iterable[RenderableType]", width: int, *, color: bool) -> str:
    """Return rich's text of ``parts``, as lines of at most ``width`` columns without trailing spaces.

    There is no final line end. ``color``: whether to add escape sequences for colours; the text has no others. The
    environment has no effect, and strings are shown as they are.
    """
    from rich.console import Console, Group

    file = StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    console.print(Group(*parts))
    return _LINE_END.sub(lambda end: end[0].replace(" ", ""), file.getvalue().rstrip("\n"))
