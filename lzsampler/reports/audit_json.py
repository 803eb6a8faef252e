"""`write_summary`: the figures of an audit as JSON (docs/audit_summary.md)."""

import json
from collections.abc import Iterable
from pathlib import Path

from ..auditing.records import Audited
from ..auditing.summary import Summary
from ..util.files import replacing


def write_summary(path: str | Path, summary: Summary, audited: Iterable[Audited]) -> None:
    """Write `Summary.to_json`; ``audited``, which all writers of an audit take, is not read.

    LzsError if the file cannot be written.
    """
    text = json.dumps(summary.to_json(), ensure_ascii=False, allow_nan=False, indent=1)
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")  # a lone surrogate becomes an escape of JSON
