"""Escapes characters of untrusted text that control a terminal, a spreadsheet or the direction of a line."""

import json
import unicodedata

_JOINERS = frozenset("\u200c\u200d")  # Persian and Sinhala words and many emoji need these joiners.
_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))  # controls, invisible characters, lone surrogates, line ends
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # characters that may begin a formula (OWASP, CSV Injection)


def steers(character: str) -> bool:
    """Return whether a character is a control, a direction mark, an unusual line end, or half of a surrogate pair."""
    return unicodedata.category(character) in _CATEGORIES and character not in _JOINERS


def harmless(text: str, keep: str = "") -> str:
    r"""Return a text in which JSON escapes (\u001b) replace characters that `steers` names, except those in ``keep``.

    If the text is JSON, its meaning does not change.
    """
    if text.isprintable():
        return text
    return "".join(_escape(c) if c not in keep and steers(c) else c for c in text)


def cell(text: str) -> str:
    """Return a text for a CSV cell that no spreadsheet takes for a formula and that does not control a terminal.

    A text that may begin a formula gets an apostrophe before it. Line feeds and tabs stay. Other control characters
    become escapes.
    """
    return ("'" if text.startswith(_FORMULA) else "") + harmless(text, "\n\t")


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if character <= "\uffff" else json.dumps(character)[1:-1]
