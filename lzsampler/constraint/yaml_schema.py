"""Translates a JSON Schema into parts of a grammar of YAML: block mappings and sequences, indented by two blanks.

The text is YAML 1.2. Parsers of YAML 1.1, such as PyYAML, read the same values from the text. Strings have double
quotes. Names of properties have quotes only if they are ambiguous without quotes. Floats have a decimal point. Values
that the schema lists (`enum`, `const`), and empty objects and arrays, are written as in JSON. Everything else is as in
json_schema.py.
"""

import re
from typing import Any

from ..errors import ArgumentError
from .json_schema import Translator, quoted
from .json_values import refusal, written
from .ranges import FRACTION_DIGITS, INTEGER_DIGITS
from .schema import Conjunction, Document, Facts

# Characters that a double-quoted YAML string cannot hold unescaped, or that YAML 1.1 takes for the end of a line.
_HIDDEN = r"\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
_RAW = rf"\"\\\x00-\x1f{_HIDDEN}"
# The pattern leaves out escaped surrogate pairs, because YAML reads two characters, and \\/, which old PyYAML refuses.
_UNIT = rf'[^{_RAW}]|\\(["\\bfnrt]|u([0-9a-ce-fA-CE-F][0-9a-fA-F]{{3}}|[dD][0-7][0-9a-fA-F]{{2}}))'
_NUMBER = (  # without 1e5, which YAML 1.1 reads as text
    rf"-?(0|[1-9]\d{{0,{INTEGER_DIGITS - 1}}})(\.\d{{1,{FRACTION_DIGITS}}}([eE][+-]\d{{1,2}})?)?"
)
_PLAIN_NAME = re.compile("[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))  # without quotes, these are not texts
_LONGEST_NAME = 128  # YAML allows at most 1,024 characters in a name, escapes included
_LONGEST_GIVEN = 1_000


class YamlTranslator(Translator):
    """Makes the parts of a YAML grammar from a `Document`."""

    unit = _UNIT
    raw = _RAW
    longest_name = _LONGEST_NAME
    indent = 2

    def __init__(self, document: Document, closed: bool) -> None:
        super().__init__(document, closed)
        self.comma, self.colon = self.parts.text(", "), self.parts.text(": ")
        self._forms: dict[
            int, tuple[list[int], list[int]]
        ] = {}  # part of a value -> (its parts that fit on the line of the name, its parts that begin on a new line)

    @classmethod
    def quoted(cls, text: str) -> str:
        """Return a text as a double-quoted YAML string."""
        return re.sub(f"[{_HIDDEN}]", lambda found: f"\\u{ord(found[0]):04x}", quoted(text))

    @classmethod
    def written_name(cls, name: str) -> str:
        """Return a name as it is written: in quotes only if the name is ambiguous without quotes."""
        plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in _WORDS
        text = name if plain else cls.quoted(name)
        if len(text) > _LONGEST_GIVEN:
            raise ArgumentError(
                f"schema must have names of at most {_LONGEST_GIVEN:,} characters for YAML: {name!r:.40}..."
            )
        return text

    def constant(self, value: Any) -> str:
        """Return the text of a number, true, false or null; a number with an exponent has a point and a sign."""
        text = written(value)
        found = re.fullmatch(r"(-?\d+)(\.\d+)?[eE]([+-]?)(\d+)", text)
        return text if found is None else f"{found[1]}{found[2] or '.0'}e{found[3] or '+'}{found[4]}"

    def number(self) -> str:
        """Return the pattern for a number without bounds."""
        return _NUMBER

    def pattern(self, pattern: str, low: int, high: int | None, where: str) -> int:
        """Return the part for the inside of a string that contains a match of a pattern."""
        return self.parts.pattern(pattern, low, high, where, yaml=True)

    def one_of(self, found: list[int]) -> int:
        """Return the part that matches any one of the given values."""
        line, block = list[int](), list[int]()
        for part in found:
            one, other = self._forms.get(part, ([part], []))
            line += one
            block += other
        made = self.parts.choice([*line, *block])
        self._forms[made] = (line, block)
        return made

    def pair(self, name: int, value: int) -> int:
        """Return the part for a property: its name and its value."""
        parts = self.parts
        line, block = self._forms[value]
        behind = [parts.behind(parts.text(" "), parts.choice(line))] if line else []
        behind += [parts.sequence(parts.text("\n" + " " * self.column), parts.choice(block))] if block else []
        return parts.sequence(name, parts.text(":"), parts.choice(behind))

    def separator(self) -> int:
        """Return the part for the separator between two properties of the current object."""
        return self.parts.text("\n" + " " * (self.column - self.indent))

    def array(self, first: list[int], rest: int | None, low: int, high: int | None) -> int:
        """Return the part for an array."""
        parts = self.parts
        comma = parts.text("\n" + " " * (self.column - self.indent) + "- ")
        inside = self.listed(first, rest, max(1, low), high, comma)
        block = [parts.sequence(parts.text("- "), *inside)] if inside else []
        return self._container([] if low else [parts.text("[]")], block)

    def object(self, items: list[int], at_least: int, may_be_empty: bool) -> int:
        """Return the part for an object."""
        block = [self.parts.list(self.separator(), items, 1 if may_be_empty else at_least)] if items else []
        return self._container([self.parts.text("{}")] if may_be_empty or not items else [], block)

    def _container(self, line: list[int], block: list[int]) -> int:
        made = self.parts.choice([*line, *block])
        self._forms[made] = (line, block)
        return made

    def _key(self, way: Facts, named: dict[str, Conjunction], left: int) -> int | None:
        if way.names is not None:
            raise refusal(way.at["propertyNames"], "propertyNames is not supported for YAML")
        return super()._key(way, named, left)
