"""`BatchAudit`: what an audit finds, as columns of Arrow's tables."""

import pickle
import subprocess
import sys
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from lzsampler import Rules, audit  # noqa: E402 (needs pyarrow)
from lzsampler.auditing.batches import BatchAudit  # noqa: E402
from lzsampler.errors import MissingExtra  # noqa: E402

LOOP = "and so it goes, " * 40
PLAIN = "Nothing here comes twice."


def columns(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("as_batch", [False, True])
def test_texts(kind: Any, as_batch: bool) -> None:
    table = pa.table({"id": [1, 2, 3, 4], "text": pa.array([PLAIN, LOOP, None, ""], pa.string()).cast(kind)})
    given = table.combine_chunks().to_batches()[0] if as_batch else table
    run = BatchAudit()
    made = run(given)
    assert type(made) is type(given)
    assert made.schema == run.schema(given.schema)
    assert made.schema.names == [
        "id",
        "text",
        *(f"lzs_{name}" for name in ("looping", "stuck", "rules", "findings", "error")),
    ]
    rows = made.to_pylist()
    assert columns(rows, "id") == [1, 2, 3, 4]
    assert columns(rows, "text") == [PLAIN, LOOP, None, ""]
    assert columns(rows, "lzs_looping") == [False, True, None, False]
    assert columns(rows, "lzs_stuck") == [False, False, None, False]
    assert columns(rows, "lzs_rules") == [[], ["LZR001"], None, []]
    (expected,) = audit(LOOP).findings
    (found,) = rows[1]["lzs_findings"]
    assert found.pop("message") == 0
    assert found == {name: getattr(expected, name) for name in found}
    assert len(found) == 11


def test_a_batch_of_no_rows() -> None:
    made = BatchAudit()(pa.table({"text": pa.array([], pa.string())}))
    assert (made.num_rows, made.num_columns) == (0, 6)


def test_conversations_and_reasoning() -> None:
    said = [
        {"role": "user", "content": LOOP},
        {"role": "assistant", "content": PLAIN},
        {"role": "assistant", "content": f"<think>{LOOP}</think>Done."},
    ]
    table = pa.table({"messages": [said, said[:1], None, [said[1]]]})
    rows = BatchAudit("messages")(table).to_pylist()
    assert columns(rows, "lzs_looping") == [True, None, None, False]
    assert columns(rows, "lzs_error") == [None, "the conversation has no message of the model", None, None]
    (found,) = rows[0]["lzs_findings"]
    assert (found["message"], found["field"]) == (1, "reasoning")


def test_a_text_of_another_type_is_an_error_of_its_row() -> None:
    rows = BatchAudit("n")(pa.table({"n": [1, None]})).to_pylist()
    assert columns(rows, "lzs_error") == ["the text is a number", None]


def test_rules_and_names() -> None:
    table = pa.table({"text": ["ab " * 12]})
    strict = BatchAudit(prefix="audit.", rules=Rules(copies=10))
    assert strict(table)["audit.looping"].to_pylist() == [True]
    assert BatchAudit()(table)["lzs_looping"].to_pylist() == [False]
    again = strict(strict(table))
    assert again.schema.names == strict(table).schema.names
    assert pickle.loads(pickle.dumps(strict)) == strict
    assert [each.num_rows for each in BatchAudit().each(table.to_batches())] == [1]


def test_all_else_stays() -> None:
    """Metadata, such as pandas keeps its index in; columns of one name; and rows after one that is not UTF-8."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": [PLAIN, LOOP]}, index=["k1", "k2"])
    assert list(BatchAudit()(pa.Table.from_pandas(frame)).to_pandas().index) == ["k1", "k2"]
    twice = pa.table([["a"], ["b"], [LOOP]], names=["d", "d", "text"])
    made = BatchAudit()(twice)
    assert made.schema.names[:3] == ["d", "d", "text"]
    assert [made.column(i).to_pylist() for i in range(2)] == [["a"], ["b"]]
    bad = pa.array([b"\xff\xfe", LOOP.encode(), None]).view(pa.string())
    rows = BatchAudit()(pa.table({"text": bad})).select(["lzs_looping", "lzs_error"]).to_pylist()
    assert columns(rows, "lzs_looping") == [None, True, None]
    assert columns(rows, "lzs_error") == ["the text is not UTF-8", None, None]


def test_what_cannot_be_a_batch() -> None:
    for settings in ({"rules": "x"}, {"column": None}, {"prefix": 5}):
        with pytest.raises(TypeError, match=r"(rules|column|prefix) must be a (Rules|str), got"):
            BatchAudit(**settings)
    with pytest.raises(ValueError, match="the batch must have one column 'text'; it has several of that name"):
        BatchAudit()(pa.table([["a"], ["b"]], names=["text", "text"]))
    run = BatchAudit()
    for bad in ({"text": [PLAIN]}, [PLAIN], None):
        with pytest.raises(
            TypeError, match=r"a batch must be a pyarrow.Table or RecordBatch, got (dict|list|NoneType)"
        ):
            run(bad)
    with pytest.raises(ValueError, match=r"the batch must have one column 'text'; it has only id, answer"):
        run(pa.table({"id": [1], "answer": [PLAIN]}))


def test_without_pyarrow() -> None:
    code = """
import sys
sys.modules["pyarrow"] = None
from lzsampler.auditing.batches import BatchAudit  # noqa: E402
from lzsampler.errors import MissingExtra  # noqa: E402
try:
    BatchAudit()(None)
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "batches need pyarrow: pip install pyarrow\n"
    assert issubclass(MissingExtra, ImportError)
