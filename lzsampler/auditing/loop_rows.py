"""Writes a row for each finding of an audit, as Parquet, CSV or JSON Lines, or returns Arrow or pandas tables.

Files are written in bounded memory.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import ArgumentError, missing
from ..util.files import replacing
from ..util.harmless import cell, harmless
from ..util.json_text import json_line, scalar
from .records import Audited

if TYPE_CHECKING:
    import pandas
    import pyarrow

FORMATS = ("parquet", "csv", "jsonl")
KEYS = (
    "file", "record", "id", "field", "level", "rule", "start", "end", "period", "copies", "unit",
    "share", "tail", "wasted_tokens", "groups",
)  # fmt: skip
_ROWS = 65_536  # number of rows in a row group of Parquet


def write_loops(path: str | Path, audited: Iterable[Audited]) -> None:
    """Write a row for each finding, in the order of records and findings. The suffix of ``path`` chooses the format.

    The columns are `KEYS` (docs/report.md). ``record`` is the record's number in its file, from 0, and offsets are in
    characters of the field's text. ValueError if the suffix is none of `FORMATS`. LzsError if the file cannot be
    written; an existing file then stays unchanged.
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ArgumentError(f"cannot write {path}: the name of a table must end in one of .{', .'.join(FORMATS)}")
    write = {"parquet": _write_parquet, "csv": _write_csv, "jsonl": _write_jsonl}[ending]
    with replacing(path) as file:
        write(file, _rows(audited))


def _rows(audited: Iterable[Audited]) -> Iterator[tuple[Any, ...]]:
    for record in audited:
        groups = dict(record.groups)
        for f in record.findings:
            yield (
                record.file, record.number, record.id, f.field, f.level, f.rule, f.start, f.end, f.period, f.copies,
                f.unit, f.share, f.tail, f.wasted_tokens, groups,
            )  # fmt: skip


def _write_jsonl(file: BinaryIO, rows: Iterator[tuple[Any, ...]]) -> None:
    for row in rows:
        file.write(json_line(dict(zip(KEYS, row, strict=True))) + b"\n")


def _write_csv(file: BinaryIO, rows: Iterator[tuple[Any, ...]]) -> None:
    """Write CSV (RFC 4180). ``groups`` becomes a JSON object. `cell` makes texts safe for spreadsheets."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=True)
    try:
        table = csv.writer(text)
        table.writerow(KEYS)
        for *cells, tail, wasted, groups in rows:
            strings = [cell(scalar(each)) if isinstance(each, str) else each for each in cells]
            told = harmless(json.dumps(_scalars(groups), ensure_ascii=False))
            table.writerow([*strings, "true" if tail else "false", wasted, told])
    finally:
        text.detach()


def _write_parquet(file: BinaryIO, rows: Iterator[tuple[Any, ...]]) -> None:
    arrow = _pyarrow()
    with arrow.parquet.ParquetWriter(file, _schema(arrow), compression="zstd") as table:
        for batch in _batches(arrow, rows):
            table.write_batch(batch)


def arrow_table(audited: Iterable[Audited]) -> "pyarrow.Table":
    """Return the rows of `write_loops` as an Arrow table. MissingExtra if pyarrow is not installed."""
    arrow = _pyarrow()
    return arrow.Table.from_batches(_batches(arrow, _rows(audited)), _schema(arrow))


def data_frame(audited: Iterable[Audited]) -> "pandas.DataFrame":
    """Return the rows of `write_loops` as a data frame. MissingExtra if pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise missing("a data frame needs pandas", "pandas") from error
    return pandas.DataFrame.from_records(list(_rows(audited)), columns=list(KEYS))


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing("Parquet and Arrow need pyarrow", "pyarrow") from error
    return pyarrow


def _schema(pa: Any) -> Any:
    names = pa.dictionary(pa.int32(), pa.string())  # Pandas cannot compare categories by <=, so rules are strings.
    types = (
        names, pa.int64(), pa.string(), names, names, pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.float64(),
        pa.string(), pa.float64(), pa.bool_(), pa.int64(), pa.map_(pa.string(), pa.string()),
    )  # fmt: skip
    return pa.schema(list(zip(KEYS, types, strict=True)))


def _batches(pa: Any, rows: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
    schema = _schema(pa)
    while batch := list(islice(rows, _ROWS)):
        columns = zip(zip(*batch, strict=True), schema.types, strict=True)
        yield pa.record_batch([pa.array(_column(values), kind) for values, kind in columns], schema=schema)


def _column(values: tuple[Any, ...]) -> list[Any]:
    if isinstance(values[0], str):
        return [scalar(value) for value in values]
    if isinstance(values[0], dict):
        return [list(_scalars(groups).items()) for groups in values]
    return list(values)


def _scalars(groups: dict[str, str]) -> dict[str, str]:
    return {scalar(key): scalar(value) for key, value in groups.items()}
