"""The audit of 1,000 generated records comes out as it did with the code of version 0.1.0 (commit 7492e11).

Of the 296 records that looped then, 18 no longer do. 16 near loops are names of one to three words under rising
numbers, as lists have them ("po. 1", "po. 2", ...); one unit of three words comes only six times; and 19 copies of
another have fewer than 100 characters when a blank line counts as one character. 16 others loop now: rulers of 102 to
114 dashes that end a text or are half of it, which are too long for a ruler.
"""

import json
from pathlib import Path

import unchanged


def test_an_audit_comes_out_as_before() -> None:
    before = json.loads((Path(__file__).parent / "vectors" / "audit_1000.json").read_text("utf-8"))
    assert unchanged.audit() == before
    assert before["records"] == unchanged.RECORDS
