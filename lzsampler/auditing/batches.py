"""`BatchAudit`: the audit as a step of a data pipeline. It takes and returns Apache Arrow tables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ArgumentError, ArgumentTypeError, missing
from .findings import audit_record
from .reading.format import Message, NoTextError
from .reading.messages import kind_of, turns
from .records import Finding, Record, fields_of
from .rules import Rules

if TYPE_CHECKING:
    import pyarrow

_Batch = TypeVar("_Batch", "pyarrow.Table", "pyarrow.RecordBatch")
_COLUMNS = ("looping", "stuck", "rules", "findings", "error")


@dataclass(frozen=True)
class BatchAudit:
    """A function that audits one column of a batch of rows, and adds columns with the findings.

    The function keeps no state and can be pickled, so any number of processes can run it. Give it to `map_batches` of
    Ray Data or `map` of Hugging Face datasets, and its method `each` to `mapInArrow` of Spark (docs/pipelines.md).

    ``column``: the name of a column of texts or of conversations (lists of messages). In a conversation, the model's
    messages are audited. ``prefix``: the start of the names of the new columns. ``rules``: what counts as a loop.

    The new columns are ``looping`` and ``stuck`` (bool), ``rules`` (the codes of the findings, list of string),
    ``findings`` (list of structs) and ``error`` (the reason why a row could not be read). A struct has the fields of
    `Finding` and ``message``. In a conversation, ``message`` is the number, from 0, of the message among the model's
    messages that do not only call tools. If a row has no text, all new columns are null.
    """

    column: str = "text"
    prefix: str = "lzs_"
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        """Refuse bad values here. Otherwise they would raise an error at the first row, in another process."""
        for name, value, kind in (
            ("column", self.column, str),
            ("prefix", self.prefix, str),
            ("rules", self.rules, Rules),
        ):
            if not isinstance(value, kind):
                raise ArgumentTypeError(f"{name} must be a {kind.__name__}, got {value!r:.100}")
        self.rules.check_tokenizer(None)

    def __call__(self, batch: _Batch) -> _Batch:
        """Return a ``pyarrow.Table`` or ``RecordBatch`` with the new columns. The new columns replace columns of the
        batch that have the same names.

        A row that cannot be read has an ``error`` instead of findings, and does not stop the pipeline. ValueError if
        the column does not exist; TypeError if ``batch`` is not an Arrow table or record batch.
        """
        arrow = _arrow()
        if not isinstance(batch, arrow.Table | arrow.RecordBatch):
            raise TypeError(f"a batch must be a pyarrow.Table or RecordBatch, got {type(batch).__name__}")
        names = batch.schema.names
        if names.count(self.column) != 1:
            there = f"only {', '.join(names)}" if self.column not in names else "several of that name"
            raise ArgumentError(f"the batch must have one column {self.column!r}; it has {there}")
        rows = [self._row(value) for value in _values(batch.column(self.column))]
        made = {f"{self.prefix}{name}": [row[name] for row in rows] for name in _COLUMNS}
        schema = self.schema(batch.schema)
        kept: list[Any] = [batch.column(i) for i, name in enumerate(names) if name not in made]
        added: list[Any] = [arrow.array(made[each.name], each.type) for each in list(schema)[len(kept) :]]
        kind: Any = arrow.Table if isinstance(batch, arrow.Table) else arrow.RecordBatch
        result: _Batch = kind.from_arrays([*kept, *added], schema=schema)
        return result

    def each(self, batches: "Iterable[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        """Yield the result for each batch, as `mapInArrow` of Spark needs it."""
        yield from map(self, batches)

    def schema(self, schema: "pyarrow.Schema") -> "pyarrow.Schema":
        """Return the schema of the results for batches that have ``schema``."""
        arrow = _arrow()
        numbers: dict[Any, Any] = {int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
        of_finding = [(each.name, numbers.get(each.type, arrow.string())) for each in fields(Finding)]
        finding = arrow.struct([("message", arrow.int32()), *of_finding])
        types = (arrow.bool_(), arrow.bool_(), arrow.list_(arrow.string()), arrow.list_(finding), arrow.string())
        added = [arrow.field(f"{self.prefix}{name}", kind) for name, kind in zip(_COLUMNS, types, strict=True)]
        names = {each.name for each in added}
        return arrow.schema([each for each in schema if each.name not in names] + added, metadata=schema.metadata)

    def _row(self, value: Any) -> dict[str, Any]:
        try:
            if isinstance(value, UnicodeDecodeError):
                raise TypeError("the text is not UTF-8")
            messages = _messages(value)
        except (TypeError, NoTextError) as error:
            return {**dict.fromkeys(_COLUMNS), "error": str(error)}
        if messages is None:
            return dict.fromkeys(_COLUMNS)
        looping = stuck = False
        findings = []
        for number, message in enumerate(message for message in messages if not _only_calls(message)):
            record = Record("", number, str(number), fields_of(message.answer, message.reasoning))
            audited = audit_record(record, self.rules)
            looping |= audited.looping
            stuck |= audited.stuck
            findings += [{"message": number, **_fields(finding)} for finding in audited.findings]
        codes = list(dict.fromkeys(finding["rule"] for finding in findings))
        return {"looping": looping, "stuck": stuck, "rules": codes, "findings": findings, "error": None}


def _values(column: Any) -> Iterator[Any]:
    """Yield the values of a column as Python objects.

    Arrow does not check whether text is UTF-8. For a text that is not UTF-8, yield the UnicodeDecodeError.
    """
    for value in column:
        try:
            yield value.as_py()
        except UnicodeDecodeError as error:
            yield error


def _messages(value: Any) -> list[Message] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return [Message(value)]
    if isinstance(value, list):
        return list(turns(value, {}, None))
    raise TypeError(f"the text is {kind_of(value)}")


def _only_calls(message: Message) -> bool:
    return message.answer is None and message.reasoning is None and message.calls is not None


def _fields(finding: Finding) -> dict[str, Any]:
    return {each.name: getattr(finding, each.name) for each in fields(Finding)}


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise missing("batches need pyarrow", "pyarrow") from error
    return pyarrow
