"""Reports: of an audit a page for the browser, a row a loop, SARIF, a table for the terminal; of an evaluation a page
and a table."""

from .html import write_html
from .sarif import write_sarif
from .tables import write_loops
from .terminal import terminal_table

__all__ = ["terminal_table", "write_html", "write_loops", "write_sarif"]
