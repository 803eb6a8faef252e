"""Hugging Face datasets: `make pipelines` runs it."""

import os

import datasets
import pyarrow as pa
from example_rows import check, table

from lzsampler.auditing.batches import BatchAudit

audit = BatchAudit("text")


def audited(batch: pa.Table) -> pa.Table:
    return audit(batch).append_column("pid", pa.array([os.getpid()] * batch.num_rows))


if __name__ == "__main__":
    data = datasets.Dataset(table()).with_format("arrow")
    made = data.map(audited, batched=True, batch_size=100, num_proc=2)
    check(made.with_format(None).to_list(), "datasets")
