"""The audit of 1,000 generated records comes out as it did with the code of version 0.1.0 (commit 7492e11)."""

import json
from pathlib import Path

import unchanged


def test_an_audit_comes_out_as_before() -> None:
    before = json.loads((Path(__file__).parent / "vectors" / "audit_1000.json").read_text("utf-8"))
    assert unchanged.audit() == before
    assert before["records"] == unchanged.RECORDS
