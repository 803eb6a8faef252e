"""The rows that the examples audit, and what must come of them."""

from typing import Any

import pyarrow as pa

LOOP = "and so it goes, " * 40
N, EVERY = 2_000, 10


def table() -> pa.Table:
    """Return 2,000 texts, of which every tenth loops."""
    texts = [f"{LOOP} {i}" if i % EVERY == 0 else f"Text number {i} says this once." for i in range(N)]
    return pa.table({"id": list(range(N)), "text": texts})


def check(rows: list[dict[str, Any]], name: str) -> None:
    """Raise unless each row was audited, in at least two processes: `lzs_looping`, and the ``pid`` that did it."""
    assert sorted(row["id"] for row in rows) == list(range(N))
    wrong = [row["id"] for row in rows if row["lzs_looping"] != (row["id"] % EVERY == 0)]
    assert not wrong, wrong[:5]
    processes = {row["pid"] for row in rows}
    assert len(processes) >= 2, f"only {len(processes)} process"
    looping = sum(row["lzs_looping"] for row in rows)
    print(f"{name}: {looping} of {len(rows)} texts loop, audited by {len(processes)} processes")
