"""Parquet files: their row groups, and rows as plain objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import MissingExtra

_BATCH = 4 << 20  # bytes, unpacked, that are turned into rows at once
_MAX_ROWS = 4096


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra('Parquet files need pyarrow: pip install "lzsampler[audit]"') from error
    try:
        with pyarrow.parquet.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
            yield file
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise OSError(f"{str(error).splitlines()[0] if str(error) else type(error).__name__}") from None


def opening(path: str) -> tuple[list[tuple[int, int]], Any]:
    """Return (rows, bytes unpacked) of every row group, and the first row. OSError for a damaged or empty file."""
    with _opened(path) as file:
        about = file.metadata
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        if not about.num_rows:
            raise OSError("it has no rows")
        batch = next(file.iter_batches(batch_size=1, use_threads=False))
        row = {name: _value(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        return [(group.num_rows, group.total_byte_size) for group in groups], row


def _value(column: Any) -> Any:
    try:
        return column[0].as_py()
    except (ValueError, OverflowError):  # text that is no UTF-8, a time that Python does not have
        return None


def rows(path: str, start: int, end: int, columns: list[str] | None) -> Iterator[Any]:
    """Yield the rows of row groups start..end-1 as objects, with some of the columns; an exception for a bad row.

    OSError for a damaged file. Memory: a page of every column, and some megabytes of rows.
    """
    with _opened(path) as file:
        about = [file.metadata.row_group(i) for i in range(start, end)]
        n = max(1, sum(group.num_rows for group in about))
        a_row = max(1, sum(group.total_byte_size for group in about) // n)
        size = max(1, min(_MAX_ROWS, _BATCH // a_row))
        for batch in file.iter_batches(size, list(range(start, end)), columns, use_threads=False):
            try:
                yield from batch.to_pylist()
            except (ValueError, OverflowError):
                for i in range(batch.num_rows):
                    try:
                        yield from batch.slice(i, 1).to_pylist()
                    except (ValueError, OverflowError) as error:
                        yield error
