"""Tasks: what rows are read, which answers are right, and that every other row is named."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lzsampler import LzsError, evaluate
from lzsampler.errors import ArgumentError
from lzsampler.evaluation.scoring import check_answer, comparison, last_boxed
from lzsampler.evaluation.tasks import BadRow, Task, read_tasks, spread, task_of
from lzsampler.models import default_model, default_prompts, default_tasks, everyday_tasks


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
        ("number", "\\boxed{\\frac{1}{2}}", "2", False),
        ("number", "\\boxed{\\frac{1}{2}}", "1/2", True),
        ("number", "\\boxed{\\frac{1}{4}}", "\\frac{3}{4}", False),
        ("number", "\\boxed{\\dfrac{ 3 }{ 4 }}", "$\\frac34$", True),
        ("number", "\\boxed{-\\frac{14}{3}}", "-14/3", True),
        ("number", "\\frac{-14}{3}", "-14/3", True),
        ("number", "It is 1/4.", "3/4", False),
        ("number", "It is 3/4.", "0.75", True),
        ("number", "10 / 4 = 2.5", "5/2", True),
        ("number", "1/0", "0", False),
        ("number", "\\boxed{1{,}200}", "1200", True),
        ("number", "See pages 3-5", "5", True),
        ("number", "so x = -5", "-5", True),
        ("number", "7", "\\(7\\).", True),
        ("number", "I guess 3", "\\frac{14}{3}", False),
        ("number", "\\boxed{2}", "\\left( 3, \\frac{\\pi}{2} \\right)", False),
        ("number", "\\boxed{x = \\text{about } 5}", "5", True),
        ("number", "\\boxed{5", "5", True),
        ("number", "50 \\%", "50%", True),
        ("number", "1e999999999", "7", False),
        ("number", "9" * 5000, "9", False),
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
        ("choice", "\\boxed{\\text{B}}", "(b)", True),
        ("choice", "The answer is B, since option A is wrong.", "B", True),
        ("choice", "The answer is B, since option A is wrong.", "A", False),
        ("choice", "Answer: C. The best option is a mix", "C", True),
        ("choice", "Answer: C. The best option is a mix", "A", False),
        ("choice", "**Answer:** (C) it is", "C", True),
        ("choice", "the correct answer is option D", "D", True),
        ("choice", "I first thought the answer is A. But the answer is B.", "B", True),
        ("choice", "Option A is wrong, so I take option C", "C", True),
        ("choice", "the answer is not A but B", "B", True),
        ("choice", "Because of A, I choose\n(B)", "B", True),
        ("choice", "I don't know", "I", True),
        ("choice", "no idea", "A", False),
        ("stated", "The answer is 42. " * 9 + "The answer is 4", "42", True),
        ("stated", "The answer is 42. " * 9 + "The answer is 5", "42", False),
        ("stated", "The answer is 42. The answer is 4.", "42", False),
        ("stated", "The answer is 4", "4", True),
        ("stated", "So the **total is: 1,200**. Let me check: 3 + 4 = 7, 7 + 5 = 12", "1200", True),
        ("stated", "The answer is not clear, but 3 + 4 = 7", "7", True),
        ("stated", "The sum is 12. \\boxed{13}", "13", True),
        ("stated", "The sum is 12. #### 13", "13", True),
        ("stated", "no number", "13", False),
        ("sequence", "Here they are: 5, 10, 15, 5, 10, 15, 5,", "5, 10, 15", True),
        ("sequence", "1. 5\n2. 10\n3. 15\n4. 20", "5, 10, 15", True),
        ("sequence", "5, 10, 155", "5, 10, 15", False),
        ("sequence", "5, 10, 12, 15", "5, 10, 15", False),
        ("sequence", "Red - green_BLUE.", "red, green, blue", True),
        ("several", "Lions, a tiger and lions", "2: lion|tiger|bear", True),
        ("several", "Lions, lions, a lion", "2: lion|tiger|bear", False),
        ("several", "New York, york", "2: York|New York", True),
        ("several", "antelope", "1: ant|elk", False),
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
        with pytest.raises(ArgumentError, match="cannot be imported"):
            comparison(name)
    with pytest.raises(
        ValueError,
        match="compare must be one of exact, number, regex, choice, contains, stated, sequence, several or module",
    ):
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
        (
            {"prompt": "x", "answer": "[", "compare": "regex"},
            r"the answer '\[' is not a regular expression: unterminated",
        ),
        ({"prompt": "x", "answer": "", "compare": "contains"}, "the answer is empty, so every text"),
        ({"prompt": "x", "answer": "", "compare": "regex"}, "the answer is empty, so every text"),
        ({"prompt": "x", "answer": "BC", "compare": "choice"}, "the answer 'BC' is not a letter from A to Z"),
        ({"prompt": "x", "answer": "p - q", "compare": "number"}, "the answer 'p - q' is not a number"),
        ({"problem": "x", "answer": "\\frac{\\pi}{2}"}, "is not a number: give a .compare. such as .exact."),
        ({"problem": "x", "answer": "\\left( 3, \\frac{\\pi}{2} \\right)"}, "is not a number"),
        ({"question": "x", "answer": "1 or 2"}, "the answer '1 or 2' is not a number"),
        ({"prompt": "x", "answer": "1 or 2", "compare": "stated"}, "the answer '1 or 2' is not a number"),
        ({"prompt": "x", "answer": " , ", "compare": "sequence"}, "the answer ' , ' has no parts"),
        (
            {"prompt": "x", "answer": "red|green", "compare": "several"},
            "must be a number, a colon and at least as many",
        ),
        ({"prompt": "x", "answer": "3: red|Red|blue", "compare": "several"}, "at least as many words"),
        ({"prompt": "x", "answer": "0: red", "compare": "several"}, "at least as many words"),
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
    assert bad[1].reason == "another row has the id 'a', too"
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


def test_a_row_of_math_is_a_number_or_says_how_it_is_compared() -> None:
    fraction = task_of({"problem": "Find x.", "answer": "\\frac{14}{3}", "level": 5}, "1")
    assert (fraction.answer, fraction.compare) == ("\\frac{14}{3}", "number")
    assert fraction.right("so x = \\boxed{\\dfrac{14}{3}}.")
    assert not fraction.right("I guess 3")
    text = task_of({"problem": "Find x.", "answer": "p - q", "compare": "contains"}, "1")
    assert text.right("\\boxed{p - q}")


def test_ids_of_lines_have_the_role_of_their_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"question": "1+1?", "answer": "#### 2"}, {"id": "x", "prompt": "Once"}]
    choices = {"Question": "Which?", "Correct Answer": "a", **{f"Incorrect Answer {i}": str(i) for i in (1, 2, 3)}}
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, choices]))
    assert [task.id for task in read_tasks(path)[0]] == ["1", "x", "3"]
    tasks, _ = read_tasks(path, "tasks")
    assert [task.id for task in tasks] == ["tasks:1", "x", "tasks:3"]
    assert tasks[2].prompt == read_tasks(path)[0][2].prompt  # the order of the choices does not depend on the role


def test_boxes() -> None:
    assert last_boxed("\\boxed{1} then \\boxed {\\frac{a}{b} \\{c\\}}.") == "\\frac{a}{b} \\{c\\}"
    assert last_boxed("\\boxed{1} then \\boxed{2") == "1"
    assert last_boxed("}{ no box } here {") is None
    assert last_boxed("\\boxed{" * 200_000) is None  # at once: looping texts look like this


ALPHABET = "\\boxedfrac{}0123456789/.,-$%eE \n#ABCanswer is:"


@given(st.text(alphabet=ALPHABET, max_size=80), st.sampled_from(["3/4", "7", "1e3"]))
def test_any_text_has_a_number_or_a_letter_or_not(content: str, answer: str) -> None:
    assert Task("t", "q", answer, "number").right(content) in (True, False)
    assert Task("t", "q", "B", "choice").right(content) in (True, False)
    assert Task("t", "q", answer, "number").right(f"{content} \\boxed{{{answer}}}")


def test_long_white_space_costs_no_more_than_it_is_long() -> None:
    """Regular expressions that share a stretch took seconds for what a looping model writes, and minutes for more."""
    long = 200_000
    assert not comparison("choice")("The answer is" + "\n" * long, "B")
    assert not comparison("choice")("answer" + " " * long + "x", "B")
    with pytest.raises(ValueError, match="is not a number"):
        check_answer("number", "5" + " " * long + "x")


def test_half_of_a_surrogate_pair_is_a_bad_row(tmp_path: Path) -> None:
    """It went through the model, and the run then ended when the text was written."""
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"id": "a\\ud800", "prompt": "hello"}\n{"prompt": "hello", "answer": "x\\ud800"}\n{"prompt": "b"}\n'
    )
    tasks, bad = read_tasks(path)
    assert [task.prompt for task in tasks] == ["b"]
    assert bad == [BadRow(line, "not valid Unicode: it has half of a surrogate pair") for line in (1, 2)]


def test_a_tasks_file_runs_no_code_unless_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "doer.py").write_text("def same(content, answer): return content == answer\n")
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "tasks.jsonl"
    rows = [{"prompt": "q", "answer": "4"}, {"problem": "q", "answer": "4", "compare": "doer:same"}]
    file.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(LzsError, match=r"tasks.jsonl, line 2: compare='doer:same' would run code.*--allow-code"):
        read_tasks(file)
    with pytest.raises(LzsError, match=r"line 2: .*allow_code=True"):
        evaluate(default_model(), tmp_path / "out", tasks=file)
    assert not (tmp_path / "out").exists()
    assert "doer" not in sys.modules
    tasks, bad = read_tasks(file, allow_code=True)
    assert tasks[1].right("4")
    assert not bad
    (tmp_path / "doer.py").write_text("1 / 0")
    del sys.modules["doer"]
    tasks, bad = read_tasks(file, allow_code=True)
    assert (len(tasks), bad) == (1, [BadRow(2, "compare='doer:same' cannot be imported: division by zero")])


def test_a_limit_takes_rows_from_all_over_the_file() -> None:
    rows = [kind * 10 + n for kind in range(5) for n in range(10)]
    assert spread(rows, 5) == [0, 10, 20, 30, 40]
    assert spread(rows, 1) == [0]
    assert spread(rows, None) == spread(rows, 50) == spread(rows, 51) == rows
    for n in range(1, 50):
        some = spread(rows, n)
        assert len(set(some)) == n
        assert some == sorted(some)


@pytest.mark.parametrize("file", [default_tasks(), everyday_tasks()])
def test_a_short_run_sees_most_kinds_of_tasks(file: Path) -> None:
    tasks, _ = read_tasks(file)
    kinds = {task.kind for task in tasks}
    assert len({task.kind for task in spread(tasks, 2 * len(kinds))}) >= 0.8 * len(kinds)
    assert len({task.kind for task in tasks[: 2 * len(kinds)]}) < 0.5 * len(kinds)  # the first rows would not
