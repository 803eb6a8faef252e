"""The audit of texts in memory: the same figures as of a file that holds them."""

import inspect
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any, get_type_hints

import numpy as np
import pytest

from lzsampler import Rules, audit, audit_files
from lzsampler.auditing.audit_texts import audit_texts
from lzsampler.auditing.batches import BatchAudit
from lzsampler.auditing.rules import RuleOptions, names
from lzsampler.decoding.reasoning import split
from lzsampler.errors import ArgumentError, ArgumentTypeError
from lzsampler.llama.marks import MARKS
from lzsampler.util.stats import wilson

LOOP = "Wait, let me think. " * 30
TEXTS = ["Fine.", LOOP, "<think>hm</think>so", f"<think>{LOOP}", "", "- " * 40]


def test_figures_are_those_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    rows = [{"completion": text, "model": f"m{i % 2}", "temperature": i / 2} for i, text in enumerate(TEXTS)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = [(str(row["completion"]), row) for row in rows]
    for by in (("model", "temperature"), ("model",), ()):
        with audit_files(file, by=by, copies=10) as expected:
            made = audit_texts(pairs, by=by, copies=10)
            figures, of_files = made.to_json(), expected.summary.to_json()
            for name in ("formats", "files"):  # what was read as which format
                assert not figures.pop(name)
                assert of_files.pop(name)
            assert figures == of_files
    assert made.total.looping == 2
    assert made.loop_rate == 2 / 6
    assert made.to_json()["interval"] == list(wilson(2, 6))
    assert [record.id for record in made.worst] == ["1", "3"]


def test_every_way_gives_the_same_verdict_and_findings(tmp_path: Path) -> None:
    """`audit` of the whole text, whose offsets count from its beginning, `audit_texts`, `audit_files`, `BatchAudit`."""
    pyarrow = pytest.importorskip("pyarrow")
    random = Random(3)
    said = ["A short word first. ", LOOP, f"One third is 0.{'3' * 150}", "- " * 40, "Ω" * 120, "", "And so it ends.\n"]
    marks = [*MARKS.items(), ("", ""), ("", "</think>"), ("\n <think>\n", ""), ("analysis", "assistantfinal")]
    marks.append(("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"))

    def some() -> str:
        return "".join(random.choice(said) for _ in range(random.randrange(4)))

    texts = ["".join((opening, some(), closing, some())) for _ in range(12) for opening, closing in marks]
    rows = pyarrow.table({"text": texts})
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps({"completion": text}) + "\n" for text in texts))
    with audit_files(file) as of_files:
        found = {record.number: record.findings for record in of_files}
        rates = [of_files.summary.loop_rate, audit_texts(texts).loop_rate]
    batch = BatchAudit()(rows)
    reports = [audit(text) for text in texts]
    assert batch["lzs_looping"].to_pylist() == [report.looping for report in reports]
    assert rates == [sum(report.looping for report in reports) / len(texts)] * 2
    moved = 0
    for i, (text, report) in enumerate(zip(texts, reports, strict=True)):
        parts = dict(zip(("reasoning", "answer"), split(text), strict=True))
        expected = found.get(i, ())
        assert [replace(finding, start=0, end=0) for finding in report.findings] == [
            replace(finding, start=0, end=0) for finding in expected
        ]
        for mine, other in zip(report.findings, expected, strict=True):
            assert text[mine.start : mine.end] == (parts[other.field] or "")[other.start : other.end]
            moved += mine.start != other.start
    assert moved > 20
    assert 0.2 < rates[0] < 0.8


def test_texts_are_taken_one_by_one_and_pairs_may_say_anything() -> None:
    taken: list[int] = []

    def texts() -> Iterator[Any]:
        for i in range(4):
            taken.append(i)
            yield (LOOP, {"seed": i, "model": "m", "nothing": None, "list": [1]}) if i % 2 else "Fine."

    made = audit_texts(texts(), by="seed")
    assert taken == [0, 1, 2, 3]
    assert {key: (group.records, group.looping) for key, group in made.groups.items()} == {
        ("",): (2, 0), ("1",): (1, 1), ("3",): (1, 1)
    }  # fmt: skip
    assert audit_texts([]).to_json()["records"] == 0


def test_a_tokenizer_counts_tokens() -> None:
    def letters(text: str) -> Any:
        return np.frombuffer(text.encode("utf-32-le"), np.int32), np.arange(len(text))

    assert audit_texts([LOOP], tokenizer=letters).total.wasted_tokens == 580
    assert audit_texts([LOOP]).total.wasted_tokens == 145


@pytest.mark.parametrize("item", [5, None, b"bytes", ("text", "model"), ("text",), ["text", {}]])
def test_what_is_not_a_text_is_refused_by_its_number(item: Any) -> None:
    with pytest.raises(TypeError, match=r"texts\[1\] must be a text or a pair of a text and a mapping, got "):
        audit_texts(["Fine.", item])


def test_one_text_is_not_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match="texts must be a list of texts, got one text"):
        audit_texts(LOOP)
    with pytest.raises(ValueError, match="copies must be from 2"):
        audit_texts([LOOP], copies=1)


def test_a_group_that_no_text_has_is_said() -> None:
    with pytest.warns(UserWarning, match="by='modle': no text has 'modle'") as said:
        audit_texts([("Fine.", {"model": "a"}), "So."], by=("modle", "model"))
    assert [warning.filename for warning in said] == [__file__]


def test_settings_that_find_nothing_are_refused() -> None:
    for settings in (
        {"select": "LZR001", "ignore": "LZR001"},
        {"select": "LZR004", "near": False},
        {"select": "LZR005", "levels": "char"},
        {"select": "LZR011", "stuck_score": 0},
    ):
        with pytest.raises(ArgumentError, match="no rule is left"):
            audit("Fine.", **settings)
    asked: dict[str, Any]
    for asked in ({"levels": ("char", "token")}, {"select": "LZR006"}):
        calls: list[tuple[Any, Any]] = [(audit, "x"), (audit_texts, ["x"]), (audit_files, ".")]
        for function, given in calls:
            with pytest.raises(ArgumentError, match="which needs a tokenizer for texts"):
                function(given, **asked)
        with pytest.raises(ArgumentError, match="needs a tokenizer for texts"):
            BatchAudit(rules=Rules(**asked))
        assert audit([1, 2, 3] * 99, **asked).findings[0].rule == "LZR006"


# -- rules as keywords --


@pytest.mark.parametrize("function", [audit, audit_files, audit_texts])
def test_an_argument_that_is_not_there_is_named(function: Any) -> None:
    said = rf"^{function.__name__} has no argument 'copis'; it has .*tokenizer.*, copies, "
    with pytest.raises(ArgumentTypeError, match=said):
        function("x", copis=3)


@pytest.mark.parametrize("function", [audit, audit_files, audit_texts])
def test_the_rules_are_in_the_signature(function: Any) -> None:
    """Editors complete what `inspect.signature` shows."""
    parameters = inspect.signature(function).parameters
    assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values())
    assert {field.name: field.default for field in fields(Rules)} == {
        name: p.default for name, p in parameters.items() if name in {field.name for field in fields(Rules)}
    }


def test_the_typed_options_are_the_rules() -> None:
    assert set(get_type_hints(RuleOptions)) == {field.name for field in fields(Rules)}


def test_one_name_or_several() -> None:
    assert names("model") == ("model",)
    assert names(Path("a")) == ("a",)
    assert names(["a", Path("b")]) == ("a", "b")
    assert names(iter("ab")) == ("a", "b")
    with pytest.raises(TypeError, match="expected a name or a sequence of names, got 5"):
        names(5)


@pytest.mark.parametrize("wrong", [{"format": []}, {"field": True}, {"progress": True}, {"by": b"x"}, {"by": [None]}])
def test_arguments_of_another_type_are_named(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentTypeError, match=r"must be a|expected a name"):
        audit_files(tmp_path, **wrong)
