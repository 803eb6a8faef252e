"""Rows of CSV, YAML and XML, as plain objects."""

import ast
import csv
import itertools
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from ...errors import MissingExtra
from .decode import JsonError, loads

_CELL = re.compile(r"\s*[\[{]")  # the beginning of JSON, or of what Python prints of a list
_BETWEEN = re.compile(r"\}\n\s*\{")  # what numpy prints between two objects; inside of texts line ends are escaped
_LONGEST = 1 << 30  # characters of a cell
_LITERAL = 8 << 20  # characters of a cell that Python's own parser is given


class TableError(ValueError):
    """A table cannot be read; the message says why."""


def csv_rows(stream: Any, name: str) -> Iterator[tuple[int, Any]]:
    """Yield (line, row) of a CSV file with a header, from the second line on; cells of JSON or Python become values."""
    csv.field_size_limit(_LONGEST)
    text = (line.decode("utf-8", "replace") for line in stream)
    first = next(text, "").removeprefix("\ufeff")
    delimiter = "\t" if name.endswith(".tsv") else max(",;\t", key=first.count)
    reader = csv.reader(itertools.chain([first], text), delimiter=delimiter)
    try:
        header = next(reader, None)
        if not header:
            raise TableError("it has no header")
        line = reader.line_num + 1
        for cells in reader:
            if cells:
                yield line, {key: _value(cell) for key, cell in zip(header, cells, strict=False)}
            line = reader.line_num + 1
    except csv.Error as error:
        raise TableError(f"damaged after line {reader.line_num}: {error}") from None


def _value(cell: str) -> Any:
    if not _CELL.match(cell):
        return cell
    try:
        return loads(cell.encode("utf-8", "surrogatepass"))
    except JsonError:
        pass
    if len(cell) > _LITERAL:
        return cell
    try:
        return ast.literal_eval(_BETWEEN.sub("},{", cell).strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return cell


def yaml_rows(data: bytes) -> list[Any]:
    """Return the objects of a YAML file: its documents, or the elements of its list. MissingExtra without PyYAML."""
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra('YAML files need PyYAML: pip install "lzsampler[audit]"') from error
    try:
        rows = list(yaml.load_all(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        raise TableError(f"not YAML: {' '.join(str(error).split())[:200]}") from None
    rows = _named(rows[0] if len(rows) == 1 and isinstance(rows[0], list) else rows, {})
    rows = [row for row in rows if isinstance(row, dict)]
    if not rows:
        raise TableError("it has no objects")
    return rows


def _named(value: Any, made: dict[int, Any]) -> Any:
    """Return a value whose keys are texts, as those of JSON: in YAML `on` and 5 are others. One object stays one."""
    if not isinstance(value, dict | list):
        return value
    if id(value) not in made:
        if isinstance(value, list):
            elements: list[Any] = []
            made[id(value)] = elements  # before its elements, one of which may be itself
            elements.extend(_named(inside, made) for inside in value)
        else:
            table: dict[str, Any] = {}
            made[id(value)] = table
            table.update((str(key), _named(inside, made)) for key, inside in value.items())
    return made[id(value)]


def xml_rows(data: bytes) -> list[Any]:
    """Return the root of an XML file as an object: of elements that occur several times, lists."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise TableError("it is XML with a document type, which is not read")
    try:
        root = _element(ElementTree.fromstring(data))
    except (ElementTree.ParseError, RecursionError, ValueError) as error:
        raise TableError(f"not XML: {error}") from None
    if not isinstance(root, dict):
        raise TableError("it has no objects")
    return [root]


def _element(element: "ElementTree.Element") -> Any:
    found: dict[str, Any] = dict(element.attrib)
    many: set[str] = set()
    for child in element:
        value = _element(child)
        if child.tag in many:
            found[child.tag].append(value)
        elif child.tag in found:
            found[child.tag] = [found[child.tag], value]
            many.add(child.tag)
        else:
            found[child.tag] = value
    return found or (element.text or "")
