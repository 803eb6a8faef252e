"""`write_loops`: a row for each stretch that was found, as Parquet, CSV or JSON lines, in bounded memory."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ..auditing.records import Audited
from ..errors import LzsError
from ..util.files import replacing
from .text import json_line, scalar

FORMATS = ("parquet", "csv", "jsonl")
KEYS = (
    "file", "record", "id", "field", "level", "rule", "start", "end", "period", "copies", "unit",
    "share", "tail", "wasted_tokens", "groups",
)  # fmt: skip
_ROWS = 65_536  # of a row group of Parquet


def write_loops(path: str | Path, audited: Iterable[Audited]) -> None:
    """Write a row for each finding of each record, in their order; the ending of ``path`` says how.

    The columns are `KEYS` (docs/report.md): ``record`` counts from 0 in its file; offsets are in characters of the
    field's text. The file is there whole or, after an error, as it was. ValueError for another ending, LzsError when
    it cannot be written.
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ValueError(f"loops are written as {', '.join(FORMATS)}, by the ending of the file, got {str(path)!r}")
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
    """Write RFC 4180; ``tail`` is true or false, ``groups`` a JSON object."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=True)
    try:
        table = csv.writer(text)
        table.writerow(KEYS)
        for *cells, tail, wasted, groups in rows:
            strings = [scalar(cell) if isinstance(cell, str) else cell for cell in cells]
            table.writerow(
                [*strings, "true" if tail else "false", wasted, json.dumps(_scalars(groups), ensure_ascii=False)]
            )
    finally:
        text.detach()


def _write_parquet(file: BinaryIO, rows: Iterator[tuple[Any, ...]]) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise LzsError('Parquet needs pyarrow: pip install "lzsampler[audit]"') from error
    names = pa.dictionary(pa.int32(), pa.string())
    types = (
        names, pa.int64(), pa.string(), names, names, names, pa.int64(), pa.int64(), pa.int64(), pa.float64(),
        pa.string(), pa.float64(), pa.bool_(), pa.int64(), pa.map_(pa.string(), pa.string()),
    )  # fmt: skip
    schema = pa.schema(list(zip(KEYS, types, strict=True)))
    with parquet.ParquetWriter(file, schema, compression="zstd") as table:
        while batch := list(islice(rows, _ROWS)):
            arrays = [
                pa.array(_column(values), kind) for values, kind in zip(zip(*batch, strict=True), types, strict=True)
            ]
            table.write_batch(pa.record_batch(arrays, schema=schema))


def _column(values: tuple[Any, ...]) -> list[Any]:
    if isinstance(values[0], str):
        return [scalar(value) for value in values]
    if isinstance(values[0], dict):
        return [list(_scalars(groups).items()) for groups in values]
    return list(values)


def _scalars(groups: dict[str, str]) -> dict[str, str]:
    return {scalar(key): scalar(value) for key, value in groups.items()}
