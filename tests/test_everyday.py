"""The everyday tasks and prompts of the package: what the generator writes, answers that can be given, two halves."""

import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import runs
from lzsampler import Params
from lzsampler.evaluation.grid import Grid, Setting
from lzsampler.evaluation.tasks import Task, read_tasks
from lzsampler.models import chapter_prompts, everyday_prompts, everyday_tasks, search_prompts, thinking_tasks

ROOT = Path(__file__).parents[1]
PROMPTS = (everyday_prompts(), search_prompts(), chapter_prompts())
FILES = (everyday_tasks(), *PROMPTS, thinking_tasks())


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(*arguments: object) -> str:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_the_files_are_what_the_generator_writes(tmp_path: Path) -> None:
    run("bench/everyday/make.py", "--out", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in FILES)
    for path in FILES:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_the_tasks_of_the_first_measurements_stay_as_they_were() -> None:
    """Figures from before are compared with figures of today on these 50 copies, among the first 160 tasks."""
    first = rows(everyday_tasks())[:160]
    assert [row["id"] for row in first[:50]] == [
        *(f"copy-json-{i:03d}" for i in range(30)), *(f"copy-code-{i:03d}" for i in range(20))
    ]  # fmt: skip
    digest = hashlib.sha256("".join(json.dumps(row) + "\n" for row in first).encode()).hexdigest()
    assert digest == "7807631c9d40a48910171216979213e2e4bc99b61f54ed590a091b216eb26f65"


def test_what_judges_a_default_stays_as_it_was_before_any_rule_saw_it(tmp_path: Path) -> None:
    digest = run("bench/everyday/judged.py", tmp_path).strip()
    assert digest == "1f8830d50aa974f9dd0915a1f8050e85f57fbd72402e396162adb68b1f38c1f3"
    tasks, bad = read_tasks(tmp_path / "tasks.jsonl")
    assert (len(tasks), len(rows(tmp_path / "prompts.jsonl")), bad) == (40, 200, [])
    for task in tasks:
        right = re.sub(r"^\(\?i\)|\\b|\|.*", "", str(task.answer))
        assert task.right(right), task.id
        assert not task.right("I do not know."), task.id


def test_every_row_can_be_read_and_answered() -> None:
    tasks, bad = read_tasks(everyday_tasks())
    assert not bad
    assert len(tasks) == 382
    assert sum(task.kind.startswith("copy-") for task in tasks) >= 100
    for task in tasks:
        assert task.right(answer(task)), task.id
        assert not task.right("I do not know."), task.id


def answer(task: Task) -> str:
    """Return a text that answers a task."""
    assert task.answer is not None
    question = task.prompt[0]["content"]  # type: ignore[index]
    if task.compare == "several":
        wanted, _, names = task.answer.partition(": ")
        return "\n".join(f"{i}. {name}" for i, name in enumerate(names.split("|")[: int(wanted)], 1))
    if task.compare == "stated":
        return f"We add them up. The answer is {task.answer}. Then 1 + 1 = 2."
    if task.compare != "regex":
        return f"Here it is:\n{task.answer}"
    if said := re.match(r"Write the (word|sentence) \"?(.+?)\"? (\d) times", question):
        return "\n".join([said[2]] * int(said[3]))
    if asked := re.match(r"What is (\d+) \+ (\d+)\?", question):
        return f"{asked[0]} It is {int(asked[1]) + int(asked[2])}."
    if asked := re.match(r"Write the multiplication table of (\d+), from .* x (\d+), one", question):
        k, last = int(asked[1]), int(asked[2])
        return "\n".join(f"{k} x {i} = {k * i}" for i in range(1, last + 1))
    return re.sub(r"\(\?i\)|\\b", "", task.answer).split("|")[0].replace("[Ee]", "e")


def test_a_list_that_loops_is_not_a_list_of_many() -> None:
    """What makes these tasks ones on which a loop costs the answer."""
    tasks = {task.id: task for task in read_tasks(everyday_tasks())[0]}
    many = tasks["list-many-000"]
    assert many.answer is not None
    names = many.answer.partition(": ")[2].split("|")
    assert many.right("\n".join(names[:10]))
    assert not many.right("\n".join([*names[:9], *names[8:9] * 40]))


def test_a_task_with_thinking_wants_json_with_the_answer() -> None:
    tasks, bad = read_tasks(thinking_tasks())
    assert not bad
    assert len(tasks) == 100
    assert len({task.prompt[-1]["content"] for task in tasks}) == 100  # type: ignore[index]
    shown = tasks[0].prompt[:-1]
    assert [message["role"] for message in shown] == ["user", "assistant"] * 2  # type: ignore[index]
    for task in tasks:
        assert task.prompt[:-1] == shown
        assert task.answer is not None
        word = re.sub(r"\\b|\?", "", task.answer.rpartition("(?:")[2]).partition("|")[0].partition(")")[0]
        for answer in (f'{{"answer": "{word}"}}', f'{{"answer": {word}}}', f'\n{{"answer": "It is {word}."}}'):
            assert task.right(answer), (task.id, answer)
        for answer in (word, f'{{"answer": "x{word}"}}', f'{{"answer": "none"}} {{"answer": "{word}"}}', ""):
            assert not task.right(answer), (task.id, answer)


def test_the_halves_of_the_long_prompts_do_not_meet() -> None:
    held_out, search = rows(everyday_prompts()), rows(search_prompts())
    assert {row["split"] for row in held_out} == {"held-out"}
    assert {row["split"] for row in search} == {"search"}
    assert [row["id"] for row in held_out] == [f"long-{i:03d}" for i in range(1, 200, 2)]
    assert [row["id"] for row in search] == [f"long-{i:03d}" for i in range(0, 200, 2)]
    asked = [row["messages"][0]["content"] for row in held_out + search]
    assert len(set(asked)) == 200
    for half in (asked[:100], asked[100:]):
        assert set(Counter(text.split()[0] for text in half).values()) == {25}
    assert len(rows(chapter_prompts())) == 24
    for path in PROMPTS:
        prompts, bad = read_tasks(path)
        assert not bad
        assert all(prompt.answer is None for prompt in prompts)


def made_up(path: Path) -> Path:
    """Four long answers and four tasks: without a penalty two answers loop and one repeats; with one none does."""
    none, lz = (
        Setting(name, name, Params(temperature=0.0, lz_penalty=s), s) for name, s in (("none", 0.0), ("lz", 0.2))
    )
    repeats = " and then the old man went down to the sea again.".join("abcdefgh")
    texts = {
        ("none", "p0"): runs.LOOP, ("none", "p1"): runs.LOOP, ("none", "p2"): repeats, ("none", "p3"): "It ends.",
        ("lz", "p0"): "It ends.", ("lz", "p1"): "So does this.", ("lz", "p2"): "And this.", ("lz", "p3"): "It ends.",
    }  # fmt: skip
    rights = {"none": (True, False, False, True), "lz": (True, True, False, False)}
    made = []
    for setting in (none, lz):
        made += [runs.transcript(setting, f"p{i}", 1, texts[setting.name, f"p{i}"]) for i in range(4)]
        for i, right in enumerate(rights[setting.name]):
            text = runs.LOOP if setting is none and 1 <= i <= 2 else "42"
            kind = "copy-json" if i < 2 else "sort"
            made.append(runs.transcript(setting, f"t{i}", 1, text, task=kind, right=right))
    return runs.write_run(path, Grid("everyday", (none, lz), (1,), 100), made)


def test_the_table_says_what_the_folder_holds(tmp_path: Path) -> None:
    first, second = run("bench/everyday_table.py", made_up(tmp_path / "run")).split("\n\n")
    head, _, none, lz = ([cell.strip() for cell in line.strip("|").split("|")] for line in first.splitlines())
    shown = {row[0]: dict(zip(head, (cell.partition(" (")[0] for cell in row), strict=True)) for row in (none, lz)}
    assert shown["none"] | {"rep-4": ""} == {
        "setting": "none", "repeats": "3 of 4", "of none": "1.00", "loops": "2 of 4", "rep-4": "", "ended": "0 of 4",
        "copies": "1 of 2", "answers": "2 of 4", "difference": "+0", "stuck, right": "0 of 2",
    }  # fmt: skip
    assert shown["lz 0.2"] | {"rep-4": ""} == {
        "setting": "lz 0.2", "repeats": "0 of 4", "of none": "0.00", "loops": "0 of 4", "rep-4": "", "ended": "0 of 4",
        "copies": "2 of 2", "answers": "2 of 4", "difference": "+0", "stuck, right": "1 of 2",
    }  # fmt: skip
    assert float(shown["none"]["rep-4"]) > 0.6 > float(shown["lz 0.2"]["rep-4"])
    assert "3 of 4 (0.30 to 0.95)" in none
    assert second.splitlines()[2:] == [
        "| copy-json | 1 of 2, 1 loop | 2 of 2 |",
        "| sort | 1 of 2, 1 loop | 0 of 2 |",
    ]


def test_folders_are_added_up(tmp_path: Path) -> None:
    table = run("bench/everyday_table.py", made_up(tmp_path / "a"), made_up(tmp_path / "b"))
    assert "| none | 6 of 8 (" in table
    with pytest.raises(subprocess.CalledProcessError):
        run("bench/everyday_table.py", tmp_path)
