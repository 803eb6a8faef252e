"""Tasks: what rows are read, which answers are right, and that every other row is named."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lzsampler import LzsError
from lzsampler.evaluation.tasks import BadRow, Task, comparison, read_tasks, task_of
from lzsampler.models import default_prompts, default_tasks


@pytest.mark.parametrize(
    ("compare", "content", "answer", "right"),
    [
        ("exact", " 549\n", "549", True),
        ("exact", "549.", "549", False),
        ("contains", "It is PARIS, of course", "paris", True),
        ("contains", "It is Rome", "paris", False),
        ("regex", "So x = 12.", r"x\s*=\s*12\b", True),
        ("regex", "So x = 123.", r"x\s*=\s*12\b", False),
        ("number", "3 + 4 = 7, so the answer is 7.", "7", True),
        ("number", "7 at first, then 8", "7", False),
        ("number", "It costs $1,200.00", "1200", True),
        ("number", "\\boxed{42} is what 6 times 7 makes, not 43", "42", True),
        ("number", "\\boxed{\\frac{1}{2}}", "2", True),
        ("number", "work 1 2 3 #### 18", "18", True),
        ("number", "-5", "5", False),
        ("number", "\u22125", "-5", True),
        ("number", "1e3", "1000", True),
        ("number", "0.50", ".5", True),
        ("number", "none", "5", False),
        ("number", "5", "none", False),
        ("choice", "The answer is (C).", "C", True),
        ("choice", "A is wrong, B too. Answer: **D**", "D", True),
        ("choice", "\\boxed{b}", "B", True),
        ("choice", "Because of A, I choose\n(B)", "B", True),
        ("choice", "I don't know", "I", True),
        ("choice", "no idea", "A", False),
    ],
)
def test_comparisons(compare: str, content: str, answer: str, right: bool) -> None:
    assert Task("t", "q", answer, compare).right(content) is right


def test_a_function_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "judge.py").write_text("def longer(content, answer): return len(content) > int(answer)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert Task("t", "q", "3", "judge:longer").right("four")
    with pytest.raises(LzsError, match=r"judge:longer failed: ValueError"):
        Task("t", "q", "three", "judge:longer").right("four")
    for name in ("judge:missing", "no_such_module:f"):
        with pytest.raises(LzsError, match="cannot be imported"):
            comparison(name)
    with pytest.raises(ValueError, match="compare must be one of exact, number, regex, choice, contains or module"):
        comparison("fuzzy")
    del sys.modules["judge"]


def test_rows() -> None:
    own = task_of({"id": 7, "task": "add", "messages": [{"role": "user", "content": "2+2?"}], "answer": 4}, "1")
    assert own == Task("7", [{"role": "user", "content": "2+2?"}], "4", "exact", "add")
    assert task_of({"prompt": "Once"}, "3") == Task("3", "Once")
    gsm8k = task_of({"question": "How many?", "answer": "2 + 2 = <<2+2=4>>4\n#### 4"}, "1")
    assert (gsm8k.answer, gsm8k.compare) == ("4", "number")
    aime = task_of({"ID": "2024-I-1", "Problem": "Find m+n.", "Answer": 204}, "9")
    assert (aime.id, aime.answer, aime.compare) == ("9", "204", "number")
    row = {"Question": "Which?", "Correct Answer": "this", **{f"Incorrect Answer {i}": f"not {i}" for i in (1, 2, 3)}}
    letters = set()
    for i in range(40):
        gpqa = task_of({**row, "id": i}, "1")
        assert gpqa == task_of({**row, "id": i}, "2")  # its order is that of its id
        text = gpqa.prompt[0]["content"]  # type: ignore[index]
        assert f"({gpqa.answer}) this" in text
        letters.add(gpqa.answer)
    assert letters == set("ABCD")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([], "must be an object, got list"),
        ({}, "no prompt"),
        ({"prompt": ""}, "prompt is empty"),
        ({"prompt": 5}, "prompt must be a text, got 5"),
        ({"messages": []}, "messages must be a list that is not empty"),
        ({"messages": [{"role": "user"}]}, "a role and a content"),
        ({"prompt": "x", "answer": None, "compare": "exact"}, None),
        ({"prompt": "x", "answer": [1]}, "answer must be a text or a number"),
        ({"prompt": "x", "answer": "1", "compare": "fuzzy"}, "compare must be one of"),
        ({"question": "x"}, "answer must be a text or a number, got None"),
        ({"Question": "x", "Correct Answer": "y"}, "Incorrect Answer 1"),
    ],
)
def test_rows_that_are_none(row: Any, reason: str | None) -> None:
    if reason is None:
        assert task_of(row, "1").answer is None
        return
    with pytest.raises(ValueError, match=reason):
        task_of(row, "1")


def test_a_file_names_its_bad_rows(tmp_path: Path) -> None:
    good = json.dumps({"id": "a", "prompt": "Once", "answer": "x"}).encode()
    lines = [
        good,
        b"{",
        b"",
        good,
        b"\xff",
        b"[" * 100_000,
        b'{"Question": "x", "Correct Answer": "y"}',
        b'{"prompt": "y"}',
    ]
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b"\n".join(lines))
    tasks, bad = read_tasks(path)
    assert [task.id for task in tasks] == ["a", "8"]
    assert [row.line for row in bad] == [2, 4, 5, 6, 7]
    assert "there twice" in bad[1].reason
    assert all(row == BadRow(row.line, row.reason.strip()) and "\n" not in row.reason for row in bad)
    with pytest.raises(LzsError, match=r"cannot read .*: No such file"):
        read_tasks(tmp_path / "missing.jsonl")


def test_the_projects_own_tasks_are_all_read() -> None:
    tasks, bad = read_tasks(default_tasks())
    assert (len(tasks), bad) == (300, [])
    assert {task.kind for task in tasks} == {"add", "sum", "times", "sort", "reverse", "count"}
    assert all(task.right(str(task.answer)) for task in tasks)
    prompts, bad = read_tasks(default_prompts())
    assert (len(prompts), bad) == (40, [])
