"""Reports: each module writes one kind; `lzsampler.reports.writers` says which file ending stands for which of them."""

from .audit_terminal import terminal_table

__all__ = ["terminal_table"]
