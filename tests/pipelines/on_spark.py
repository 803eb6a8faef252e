"""Spark: `make pipelines` runs it."""

import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from example_rows import check, table
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lzsampler.auditing.batches import BatchAudit

audit = BatchAudit("text")


def audited(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in audit.each(batches):
        pids = pa.array([os.getpid()] * batch.num_rows)
        yield pa.RecordBatch.from_arrays([*batch.columns, pids], [*batch.schema.names, "pid"])


os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the workers run whatever python3 is
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = table()
data = spark.createDataFrame(rows.to_pylist(), from_arrow_schema(rows.schema)).repartition(8)
schema = from_arrow_schema(audit.schema(rows.schema).append(pa.field("pid", pa.int64())))
check([row.asDict() for row in data.mapInArrow(audited, schema).collect()], "Spark")
