"""Reports: of an audit a page for the browser, a row a loop, SARIF, a table for the terminal; of an evaluation a page
and a table."""

from .audit_html import write_html
from .audit_rows import write_loops
from .audit_terminal import terminal_table
from .sarif import write_sarif

__all__ = ["terminal_table", "write_html", "write_loops", "write_sarif"]
