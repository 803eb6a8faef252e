"""Writes JSON in UTF-8 for a line of a file or a script element of HTML, where further characters need escapes."""

import json
import re
from pathlib import Path
from typing import Any

from .files import replacing

_SURROGATE = re.compile("[\ud800-\udfff]")
# `_JSON_HTML` has the special characters of HTML. Both tables have characters that JSON allows but line readers take
# for line ends.
_JSON_HTML = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\x7f\x85\u2028\u2029"}
_JSON_LINE = {ord(c): f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029"}


def scalar(text: str) -> str:
    """Return a text with U+FFFD in place of lone surrogates, so that UTF-8 can encode it."""
    return _SURROGATE.sub("\ufffd", text)


def json_html(value: Any) -> bytes:
    """Return JSON in UTF-8 that is safe inside a script element of an HTML page, whatever text it contains."""
    return _json(value, _JSON_HTML)


def json_line(value: Any) -> bytes:
    """Return JSON in UTF-8 without line ends of any kind. Lone surrogates stay as escapes."""
    return _json(value, _JSON_LINE)


def _json(value: Any, escapes: dict[int, str]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(escapes).encode("utf-8", "backslashreplace")  # Lone surrogates become JSON escapes.


def write_json(path: str | Path, value: Any) -> None:
    """Write a value as JSON with one key per line. Raises LzsError if the file cannot be written."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")  # Lone surrogates become JSON escapes.
