"""Reads the rows of Parquet and Arrow files as plain objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import missing
from .sniff import ROWS

_BATCH = 4 << 20  # number of unpacked bytes that become rows in one step
_MAX_ROWS = 4096


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing("Parquet files need pyarrow", "pyarrow") from error
    try:
        with pyarrow.parquet.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
            yield file
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise OSError(f"{str(error).splitlines()[0] if str(error) else type(error).__name__}") from None


def opening(path: str) -> tuple[list[tuple[int, int]], list[Any]]:
    """Return (number of rows, unpacked bytes) of every row group, and the first rows of the file.

    OSError for a damaged or empty file.
    """
    with _opened(path) as file:
        about = file.metadata
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        if not about.num_rows:
            raise OSError("it has no rows")
        batch = next(file.iter_batches(batch_size=ROWS, use_threads=False))
        columns = list(zip(batch.schema.names, batch.columns, strict=True))
        rows = [{name: _value(column, i) for name, column in columns} for i in range(batch.num_rows)]
        return [(group.num_rows, group.total_byte_size) for group in groups], rows


def _value(column: Any, i: int) -> Any:
    try:
        return column[i].as_py()
    except (ValueError, OverflowError):  # The text is not UTF-8, or the time is out of Python's range.
        return None


def rows(path: str, start: int, end: int, wanted: tuple[str, ...] = (), about: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield the rows of row groups start..end-1 as objects, or an exception for a bad row.

    If the file has one of the ``wanted`` columns, only the ``wanted`` and the ``about`` columns are read. Otherwise all
    columns are read. Memory: a page of every column and some megabytes of rows. OSError for a damaged file.
    """
    with _opened(path) as file:
        names = set(file.schema_arrow.names)
        chosen = any(column.partition(".")[0] in names for column in wanted)
        columns = [*wanted, *about] if chosen else None
        groups = [file.metadata.row_group(i) for i in range(start, end)]
        n = max(1, sum(group.num_rows for group in groups))
        a_row = max(1, sum(group.total_byte_size for group in groups) // n)
        size = max(1, min(_MAX_ROWS, _BATCH // a_row))
        for batch in file.iter_batches(size, list(range(start, end)), columns, use_threads=False):
            yield from _objects(batch)


def _objects(batch: Any) -> Iterator[Any]:
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        for i in range(batch.num_rows):
            try:
                yield from batch.slice(i, 1).to_pylist()
            except (ValueError, OverflowError) as error:
                yield error


def arrow_rows(path: str) -> Iterator[Any]:
    """Yield the rows of an Arrow file, such as `save_to_disk` of Hugging Face datasets writes.

    OSError for a damaged file.
    """
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise missing("Arrow files need pyarrow", "pyarrow") from error
    try:
        with pyarrow.memory_map(path) as file:
            if file.read(6) == b"ARROW1":
                reader = pyarrow.ipc.open_file(file)
                batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                file.seek(0)
                batches = iter(pyarrow.ipc.open_stream(file))
            for batch in batches:
                for start in range(0, batch.num_rows, _MAX_ROWS):
                    yield from _objects(batch.slice(start, _MAX_ROWS))
    except (pyarrow.ArrowException, OSError) as error:
        raise OSError(f"{str(error).splitlines()[0] if str(error) else type(error).__name__}") from None
