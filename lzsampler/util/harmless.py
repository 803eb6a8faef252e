"""Text of strangers without what steers a terminal, a spreadsheet or the direction of a line."""

import json
import unicodedata

_JOINERS = frozenset("\u200c\u200d")  # Persian and Sinhala words and many emoji are spelt with them; they steer nothing
_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))  # controls, invisible ones, half surrogates, ends of lines
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # what OWASP names, under "CSV Injection"


def steers(character: str) -> bool:
    """Return whether a character is a control, a mark of direction, another line end, or half of a surrogate pair."""
    return unicodedata.category(character) in _CATEGORIES and character not in _JOINERS


def harmless(text: str, keep: str = "") -> str:
    r"""Return a text in which each character that `steers` is an escape, as JSON has them (\u001b), but those to keep.

    JSON text keeps its meaning.
    """
    if text.isprintable():
        return text
    return "".join(_escape(c) if c not in keep and steers(c) else c for c in text)


def cell(text: str) -> str:
    """Return a text for a cell of CSV: it is no formula in a spreadsheet, and steers no terminal.

    In front of what may begin a formula comes an apostrophe. Line feeds and tabs stay, other controls become escapes.
    """
    return ("'" if text.startswith(_FORMULA) else "") + harmless(text, "\n\t")


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}" if character <= "\uffff" else json.dumps(character)[1:-1]
