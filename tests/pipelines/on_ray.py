"""Ray Data: `make pipelines` runs it."""

import os

import pyarrow as pa
import ray
from example_rows import check, table

from lzsampler.auditing.batches import BatchAudit

audit = BatchAudit("text")


def audited(batch: pa.Table) -> pa.Table:
    return audit(batch).append_column("pid", pa.array([os.getpid()] * batch.num_rows))


ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
data = ray.data.from_arrow(table()).repartition(8)
check(data.map_batches(audited, batch_format="pyarrow", concurrency=2).take_all(), "Ray Data")
