"""Reads the rows of CSV, YAML and XML files as plain objects."""

import csv
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ...errors import missing
from .cells import value_of
from .decode import ZIP_ERRORS

_LONGEST = 1 << 30  # maximum length of a cell in characters
_LIMIT = threading.Lock()  # protects the csv module's limit on cells, which the whole process shares
_ALIASED = 10_000  # With aliases, a YAML file may have up to this many more values than bytes.
_DIGITS = 4300  # maximum number of digits of a number; Python's conversion takes quadratic time
_ENDED = "unexpected end of data"  # the csv module's message for a quote that is never closed
_ODD_QUOTES = re.compile(r'(?<!")(?:"")*"(?!")')

_T = TypeVar("_T")


class TableError(ValueError):
    """A table or a row cannot be read. The message says why. ``row``: the cells of a bad row that fit the header."""

    def __init__(self, message: str, row: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.row = row


def csv_rows(stream: Any, name: str) -> Iterator[tuple[int, Any]]:
    """Yield (number of the line, row) for each row after the header of a CSV file. `value_of` reads the cells.

    If a quote is not closed, or is closed only by a quote of another cell, the rows after the quote are uncertain. A
    `TableError` follows these rows. It has the line of the quote, and says how the rows were read.
    """
    text = (line.decode("utf-8", "replace") for line in stream)
    first = next(text, "").removeprefix("\ufeff")
    delimiter = "\t" if name.endswith(".tsv") else max(",;\t", key=first.count)
    kept: list[str] = []  # lines of the current row

    damage: list[Exception] = []

    def lines() -> Iterator[str]:
        try:
            for line in itertools.chain([first], text):
                kept.append(line)
                yield line
        except ZIP_ERRORS as error:  # The compressed file is damaged, so the current row ends here.
            damage.append(error)

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    header: list[str] = []
    line = 1
    while True:
        kept.clear()
        try:
            cells = _read(lambda: next(reader, None))
        except csv.Error as error:
            if line == 1 and len(kept) > 1:
                raise TableError("a quote in its header is not closed in its line") from None
            cells = _lenient(kept, delimiter, line)[0][1]
            if line > 1 and (len(kept) > 1 or str(error) == _ENDED):
                yield from _in_doubt(kept, cells, line, header, delimiter, ended=str(error) == _ENDED)
                cells = []
        if cells is None:
            break
        if line == 1:
            header = cells
        elif cells:
            yield line, _row(header, cells, delimiter)
        line = reader.line_num + 1
    if damage:
        raise damage[0]
    if not header:
        raise TableError("it has no header")


def _in_doubt(
    kept: list[str], cells: list[str], line: int, header: list[str], delimiter: str, *, ended: bool
) -> Iterator[tuple[int, Any]]:
    """Yield the rows of lines that begin with a cell whose quote is not properly closed.

    If at least half of the lines after the quote have as many cells as the header, the quote is taken as closed in its
    line. Otherwise the lines are one row.

    ``kept``: the lines. ``line``: the number of the first line. ``cells``: the cells if the lines are one row.
    ``ended``: whether the cell extends to the end of the file.
    """
    # In the cell, each quote of the text is written as a pair. The last line with an unpaired quote opens the cell.
    before_end = kept if ended else kept[:-1]
    opens = next((i for i in reversed(range(len(before_end))) if _ODD_QUOTES.search(kept[i])), 0)
    rest = kept[opens + 1 :]
    n_bytes = sum(len(each.encode("utf-8", "replace")) for each in rest)
    others = [(at, row) for at, row in _lenient(rest, delimiter, line + opens + 1) if row]
    if len(header) > 1 and others and 2 * sum(len(row) == len(header) for _, row in others) >= len(others):
        yield line, _row(header, _lenient(kept[: opens + 1], delimiter, line)[0][1], delimiter)
        yield from ((at, _row(header, row, delimiter)) for at, row in others)
        after = f"what follows (rows: {len(others):,}, bytes: {n_bytes:,})"
        done = f"{after} was read as if the quote were closed in its line"
    else:
        yield line, _row(header, cells, delimiter)
        end = "the end of the file" if ended else "the next quote"
        done = f"its cell was read up to {end} (further lines: {len(rest):,}, bytes: {n_bytes:,})"
    yield line + opens, TableError(f"the quote that opens here is not closed: {done}")


def _read(read: Callable[[], _T]) -> _T:
    """Call ``read`` while the csv module allows long cells, and return the result."""
    with _LIMIT:
        before = csv.field_size_limit(_LONGEST)
        try:
            return read()
        finally:
            csv.field_size_limit(before)


def _lenient(lines: list[str], delimiter: str, line: int) -> list[tuple[int, list[str]]]:
    """Return (number of the last line, cells) for each row of some lines. Any character may follow a quote.

    ``line``: the number of the first line.
    """
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        return _read(lambda: [(line - 1 + reader.line_num, row) for row in reader])
    except csv.Error as error:
        raise TableError(f"damaged after line {line + reader.line_num - 1}: {error}") from None


def _row(header: list[str], cells: list[str], delimiter: str) -> dict[str, Any] | TableError:
    """Return a row as an object. If the row has fewer cells than the header, the last keys are missing.

    If the row has more cells with text than the header has columns, some text must contain the delimiter. A
    `TableError` is then returned, since it is unknown where this text ends.
    """
    row = {key: value_of(key, cell) for key, cell in zip(header, cells, strict=False)}
    if not any(cell.strip() for cell in cells[len(header) :]):
        return row
    mark = {",": "comma", ";": "semicolon", "\t": "tab"}[delimiter]
    return TableError(f"the row has more cells than the header: put quotes around texts that have a {mark}", row)


def yaml_rows(data: bytes) -> list[Any]:
    """Return the objects of a YAML file: its documents or, if the file is one list, the elements of the list.

    MissingExtra if PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise missing("YAML files need PyYAML", "pyyaml") from error
    rows: list[Any] = []
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(data)
    most = len(data) + _ALIASED
    try:
        while loader.check_node():
            document = loader.get_node()
            most -= _size(document, most, {})
            rows.append(loader.construct_document(document))
    except TableError:
        raise
    # LookupError and AttributeError come from values that do not fit their tag, such as !!bool. OverflowError comes
    # from numbers too large for a float.
    except (yaml.YAMLError, ValueError, RecursionError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise TableError(f"not YAML: {' '.join(str(error).split())[:200]}") from None
    rows = _named(rows[0] if len(rows) == 1 and isinstance(rows[0], list) else rows)
    rows = [row for row in rows if isinstance(row, dict)]
    if not rows:
        raise TableError("it has no objects")
    return rows


def _size(node: Any, most: int, known: dict[int, int]) -> int:
    """Return how many values a YAML node has. The values of an alias count each time that the alias is used.

    A text counts as one value, plus one for every 100 characters. `TableError` for more than ``most`` values. The error
    is raised before any value is made, since a few lines of aliases can stand for more values than fit into memory. A
    file without aliases has fewer values than bytes.
    """
    if isinstance(node.value, str):
        if len(node.value) > _DIGITS and node.tag.endswith((":int", ":float")):
            raise TableError("it has a number of thousands of digits")
        size = 1 + len(node.value) // 100
    elif id(node) in known:
        size = known[id(node)]
        if size == 0:
            raise TableError("a value of its YAML contains itself")
    else:
        known[id(node)] = 0
        size = 1
        for inside in node.value:
            for each in inside if isinstance(inside, tuple) else (inside,):
                size += _size(each, most - size, known)
        known[id(node)] = size
    if size > most:
        raise TableError("the aliases of its YAML stand for too much: it would have more values than bytes")
    return size


def _named(value: Any) -> Any:
    """Return a value in which all keys are strings, as in JSON. In YAML, keys such as `on` and 5 are not strings."""
    if isinstance(value, list):
        return [_named(inside) for inside in value]
    if isinstance(value, dict):
        return {str(key): _named(inside) for key, inside in value.items()}
    return value


def xml_rows(data: bytes) -> list[Any]:
    """Return the root of an XML file as an object. Elements that occur several times become lists.

    Document types are refused, since their entities can expand without limit or name files. MissingExtra if defusedxml
    is not installed.
    """
    try:
        from defusedxml import DefusedXmlException, ElementTree
    except ImportError as error:
        raise missing("XML files need defusedxml", "defusedxml") from error
    try:
        root = _element(ElementTree.fromstring(data, forbid_dtd=True))
    except DefusedXmlException:
        raise TableError("it is XML with a document type, which is not read") from None
    # An unknown encoding raises LookupError.
    except (ElementTree.ParseError, RecursionError, ValueError, LookupError) as error:
        raise TableError(f"not XML: {error}") from None
    if not isinstance(root, dict):
        raise TableError("it has no objects")
    return [root]


def _element(element: Any) -> Any:
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
