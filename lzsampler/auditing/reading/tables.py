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
_END = "\ufdd0the end of the file\ufdd0"  # a line after the last one, which a cell whose quote is open takes in
_ODD_QUOTES = re.compile(r'(?<!")(?:"")*"(?!")')


class TableError(ValueError):
    """A table cannot be read; the message says why."""


def csv_rows(stream: Any, name: str) -> Iterator[tuple[int, Any]]:
    """Yield (line, row) of a CSV file with a header, from the second line on; cells of JSON or Python become values.

    If a quote is never closed, a `TableError` comes at the end, with the line of the quote: it says what was done with
    the rest of the file, which belongs to its cell if the file is taken at its word.
    """
    csv.field_size_limit(_LONGEST)
    text = (line.decode("utf-8", "replace") for line in stream)
    first = next(text, "").removeprefix("\ufeff")
    delimiter = "\t" if name.endswith(".tsv") else max(",;\t", key=first.count)
    kept: list[str] = []  # the lines of the row that is being read

    def lines() -> Iterator[str]:
        for line in itertools.chain([first], text, [_END]):
            kept.append(line)
            yield line

    reader = csv.reader(lines(), delimiter=delimiter)
    header: list[str] = []
    line = 1
    try:
        for cells in reader:
            is_closed = kept[-1] is not _END
            if line == 1:
                header = cells
                if not is_closed and cells != [_END]:
                    raise TableError("a quote in its header is never closed")
                if not header or not is_closed:
                    raise TableError("it has no header")
            elif not is_closed:
                if cells != [_END]:
                    yield from _unclosed(kept[:-1], cells, line, header, delimiter)
            elif cells:
                yield line, _row(header, cells)
            kept.clear()
            line = reader.line_num + 1
    except csv.Error as error:
        raise TableError(f"damaged after line {reader.line_num}: {error}") from None


def _unclosed(
    kept: list[str], cells: list[str], line: int, header: list[str], delimiter: str
) -> Iterator[tuple[int, Any]]:
    """Yield what the last row of a file holds, one of whose quotes is never closed.

    The file may be cut off, or the quote stands for itself. In the second case the lines after it are rows again.

    ``kept``: its lines, of which the first has the number ``line``; ``cells``: the row with all of them in it.
    """
    # After the quote that is left open, quotes come in pairs only: each pair is one quote of the cell.
    opens = next((i for i in reversed(range(len(kept))) if _ODD_QUOTES.search(kept[i])), 0)
    rest = kept[opens + 1 :]
    n_bytes = sum(len(each.encode("utf-8", "replace")) for each in rest)
    reader = csv.reader(rest, delimiter=delimiter)
    others = [(line + opens + reader.line_num, row) for row in reader if row]
    alike = sum(len(row) == len(header) for _, row in others)
    if len(header) > 1 and others and 2 * alike >= len(others):
        yield from ((line, _row(header, row)) for row in csv.reader(kept[: opens + 1], delimiter=delimiter))
        yield from ((at, _row(header, row)) for at, row in others)
        done = f"the {len(others):,} rows after it, {n_bytes:,} bytes, were read as if it were closed in its line"
    else:
        yield line, _row(header, [*cells[:-1], cells[-1].removesuffix(_END)])
        done = f"its cell was read up to the end of the file, {len(rest):,} more lines with {n_bytes:,} bytes"
    yield line + opens, TableError(f"the quote that opens here is never closed: {done}")


def _row(header: list[str], cells: list[str]) -> dict[str, Any]:
    return {key: _value(cell) for key, cell in zip(header, cells, strict=False)}


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
