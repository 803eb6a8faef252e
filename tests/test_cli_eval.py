"""`lzs eval`, as a user runs it."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import runs
from lzsampler.models import default_model

pytest.importorskip("llama_cpp")

GRID = """
max_tokens = 30
[[setting]]
[[setting]]
kind = "lz"
lz_penalty = 0.15
"""


def lzs(*arguments: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    code = "from lzsampler.cli.main import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "grid.toml").write_text(GRID)
    (tmp_path / "tasks.jsonl").write_text(
        '{"id": "a", "messages": [{"role": "user", "content": "What is 70 + 479?"}], "answer": "549"}\n'
        '{"id": "b", "prompt": "Between Barton and Delaford, there was that"}\n'
    )
    return tmp_path


def test_tasks_import_functions_only_with_the_flag(folder: Path) -> None:
    (folder / "judge.py").write_text("print('imported')\ndef right(content, answer): return True\n")
    (folder / "tasks.jsonl").write_text('{"prompt": "What?", "answer": "x", "compare": "judge:right"}\n')
    command = ("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256)
    done = lzs(*command, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "lzs: tasks.jsonl, line 1: compare='judge:right' would run code; if you trust it, allow it with "
        "lzs eval --allow-code, or in Python allow_code=True\n"
    )
    done = lzs(*command, "--allow-code", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("imported\n")


def test_a_table_and_what_is_kept(folder: Path) -> None:
    with (folder / "tasks.jsonl").open("a") as tasks:
        tasks.write('{"oops": 1}\n')
    done = lzs("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256, cwd=folder)
    assert done.returncode == 1, done.stderr
    head, rule, none, lz = done.stdout.splitlines()
    assert head.split()[:4] == ["|", "kind", "|", "strength"]
    assert set(rule) == {"|", "-", ":"}
    assert [cell.strip() for cell in none.split("|")[1:6]] == ["none", "0", "0", "2", "0 (0 to 65.8)"]
    assert lz.split()[1::2][:4] == ["lz", "0.15", "0", "2"]
    assert done.stderr.splitlines() == [
        "lzs: tasks.jsonl, line 3: no prompt: a row has messages, prompt, question, problem or Question",
        f"lzs: report: {Path('lzs-eval', 'report.html')}",
    ]
    assert len((folder / "lzs-eval" / "transcripts.jsonl").read_text().splitlines()) == 4
    again = lzs("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256, "--resume", "--json", cwd=folder)
    assert json.loads(again.stdout) == json.loads((folder / "lzs-eval" / "results.json").read_text())
    (folder / "lzs-eval" / "report.html").unlink()
    now = lzs("eval", "--so-far", cwd=folder)
    assert now.stdout == done.stdout
    assert (now.returncode, now.stderr) == (1, done.stderr.replace("tasks.jsonl", "tasks"))
    (folder / "lzs-eval" / "results.json").unlink()  # a run that is not finished has none
    again = lzs("eval", "--so-far", "--tasks", "tasks.jsonl", cwd=folder)
    assert (again.returncode, again.stderr) == (1, done.stderr)
    assert (folder / "lzs-eval" / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_text_that_fails_is_one_line_and_status_1(folder: Path) -> None:
    tasks = (folder / "tasks.jsonl").read_text()
    with (folder / "tasks.jsonl").open("a") as file:
        file.write(json.dumps({"id": "long", "prompt": "word " * 400}) + "\n")
    arguments = ("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256, "--resume")
    said = (
        "lzs: 2 texts failed; the first is 'long' with 'T=0': the prompt has 402 tokens, but the context holds "
        "256: shorten the prompt or enlarge the context; --resume tries again"
    )
    for more in ((), ("--so-far",)):
        done = lzs(*arguments, *more, cwd=folder)
        assert (done.returncode, done.stderr.splitlines()[-1]) == (1, said)
        assert done.stdout.count("\n") == 4
    (folder / "tasks.jsonl").write_text(tasks)
    done = lzs(*arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, f"lzs: report: {Path('lzs-eval', 'report.html')}\n")


def test_shorter_texts_than_the_grid_s(folder: Path) -> None:
    arguments = ("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256)
    done = lzs(*arguments, "-n", 5, cwd=folder)
    assert done.returncode == 0, done.stderr
    timings = (folder / "lzs-eval" / "timings.jsonl").read_text().splitlines()
    assert {json.loads(line)["tokens"] for line in timings} == {5}
    more = lzs(*arguments, "--resume", cwd=folder)
    assert (more.returncode, more.stderr.count("\n")) == (2, 1)
    assert more.stderr == (
        "lzs: lzs-eval was started with another grid (grid with -n 5, now grid with -n 30): the options that it was "
        "started with continue it, or give another folder as -o\n"
    )


def test_the_terms_of_other_work_with_v(folder: Path) -> None:
    (folder / "arms.toml").write_text(
        "max_tokens = 60\nignore_eos = true\nseeds = [1, 2]\n[[setting]]\n[[setting]]\n"
        'kind = "lz"\nlz_penalty = 0.5\ntemperature = 0.8\n'
    )
    arguments = ("eval", "--grid", "arms.toml", "--tasks", "tasks.jsonl", "-c", 256)
    done = lzs(*arguments, "-v", cwd=folder)
    assert done.returncode == 0, done.stderr
    rates, terms = done.stdout.split("\n\n")
    heads = [[cell.strip() for cell in table.splitlines()[0].strip("|").split("|")] for table in (rates, terms)]
    assert heads[0] == ["kind", "strength", "T", "texts", "loop rate, %", "sd", "accuracy of 1 to 2, %", "sd"]
    terms_there = [head for head in heads[1] if head != "first"]  # where a text loops
    assert terms_there == ["setting", "T", "30×20", "tail", "SER@4", "cap", "loop", "end", "waste"]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in terms.splitlines()[2:]]
    assert [row[0] for row in rows] == ["none 0", "lz 0.5"]
    assert [row[heads[1].index("cap")] for row in rows] == ["1.000"] * 2  # no text could end
    assert [row[heads[1].index("end")] for row in rows] == ["0.000"] * 2
    again = lzs(*arguments, "--resume", "--json", "-v", cwd=folder)
    assert json.loads(again.stdout) == json.loads((folder / "lzs-eval" / "results.json").read_text())


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("lz.loop_rate > 0.01", 0),
        ("lz.loop_rate >= 0", 1),
        ("none.accuracy <= 100%", 1),
        ("lz.accuracy<0", 0),
        ("loop_rate=1%", 0),
        ("loop_rate >= 0", 1),
    ],
)
def test_fail_if(folder: Path, condition: str, status: int) -> None:
    arguments = ("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256, "-q", "--fail-over", condition)
    done = lzs(*arguments, cwd=folder)
    assert done.returncode == status, done.stderr
    name = re.split("[ <>=]", condition)[0]
    said = re.search(rf"^lzs: {re.escape(name)} (\S+) is (not )?(over|below) ", done.stderr, re.MULTILINE)
    assert (said is not None) == bool(status)
    assert said is None or 0 <= float(said[1]) <= 1
    assert done.stdout.count("\n") == 4


def test_a_check_of_an_unfinished_run_does_not_pass(folder: Path) -> None:
    """It passed on the texts that were there, or with -q on none, without a word."""
    arguments = ("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256, "-q")
    assert lzs(*arguments, cwd=folder).returncode == 0
    run, transcripts = (folder / "lzs-eval" / name for name in ("run.json", "transcripts.jsonl"))
    run.write_text(json.dumps({**json.loads(run.read_text()), "texts": 9}))
    check = ("eval", "--so-far", "-q", "--fail-over")
    unfinished = "lzs: --fail-over cannot pass: the evaluation is not finished (4 of 9 texts); --resume continues it\n"
    done = lzs(*check, "none.loop_rate > 0.5", cwd=folder)
    assert (done.returncode, done.stderr) == (1, unfinished)
    done = lzs(*check, "none.loop_rate >= 0", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "lzs: none.loop_rate 0 is not below 0\n")
    assert lzs("eval", "--so-far", "-q", cwd=folder).returncode == 0
    transcripts.write_text("")
    for condition in ("accuracy < 50%", "lz.cost > 0.1"):  # there is nothing yet to tell them from
        done = lzs(*check, condition, cwd=folder)
        assert (done.returncode, done.stderr) == (1, unfinished.replace("4 of 9", "0 of 9"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tasks", "missing.jsonl"), "cannot read missing.jsonl: No such file or directory"),
        (("--grid", "missing.toml"), "cannot read the grid missing.toml"),
        (("--grid", "tasks.jsonl"), "is not TOML"),
        (("-m", "grid.toml"), "is not a GGUF file"),
        (("-m", "missing.gguf"), "missing.gguf"),
        (("--limit", "0"), "--limit"),
        (("--limit", "nan"), "--limit"),
        (("-np", "300"), "--parallel must be"),
        (
            ("--fail-over", "lz > 1"),
            "--fail-over takes a limit from 0 to 1 or in percent (cost: in nats a token), such as",
        ),
        (
            ("--fail-over", "lz.loop_rate > x"),
            "--fail-over takes a limit from 0 to 1 or in percent (cost: in nats a token), such as",
        ),
        (("-o", "grid.toml"), "grid.toml"),
        (("-o", "/proc/lzs"), "cannot write to /proc/lzs"),
        (("-o", "report.html"), "report.html would be a folder, but its name ends like the name of a file"),
        (("--so-far",), "run.json: No such file or directory"),
        (("extra",), "extra"),
    ],
)
def test_wrong_input_is_one_line(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    given = {"--grid": "grid.toml", "--tasks": "tasks.jsonl", "-c": "256"}
    given.update(zip(arguments[::2], arguments[1::2], strict=False))
    rest = arguments if len(arguments) % 2 else ()
    done = lzs("eval", *(part for pair in given.items() for part in pair), *rest, cwd=folder)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("lzs: tasks, line 3")]
    assert lines[1:] in ([], ["Try 'lzs eval --help' for help."])
    assert message in lines[0]


def test_a_folder_in_use_is_told_with_the_flags(folder: Path) -> None:
    """The library's own error names its arguments."""
    arguments = ("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256, "-q")
    (folder / "lzs-eval").mkdir()
    (folder / "lzs-eval" / "letter.txt").write_text("dear")
    done = lzs(*arguments, cwd=folder)
    expected = "lzs: lzs-eval exists and is not an evaluation folder: give another folder as -o\n"
    assert (done.returncode, done.stderr) == (2, expected)
    (folder / "lzs-eval" / "run.json").write_text("{}")
    done = lzs(*arguments, cwd=folder)
    expected = "lzs: lzs-eval already exists: give --resume to continue it, or another folder as -o\n"
    assert (done.returncode, done.stderr) == (2, expected)


def test_an_unknown_kind_is_told_with_those_there_are(folder: Path) -> None:
    arguments = ("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256, "-q")
    done = lzs(*arguments, "--fail-over", "dry.loop_rate > 0.1", cwd=folder)
    assert done.returncode == 2
    assert ", only none, lz" in done.stderr
    done = lzs("eval", "--prompts", "tasks.jsonl", "--fail-over", "none.accuracy < 1", cwd=folder)
    assert done.returncode == 2
    assert "accuracy needs answers; give --tasks" in done.stderr
    assert not (folder / "lzs-eval").exists()  # nothing was begun


def test_ctrl_c_keeps_what_is_done(folder: Path) -> None:
    """The signal comes at the third text, however busy the machine is."""
    code = """
import os, signal
import lzsampler.evaluation.evaluate as run
from lzsampler.cli.main import main
evaluate = run.evaluate
def interrupted(*arguments, on_text=None, **named):
    def count(done, total):
        if on_text:
            on_text(done, total)
        if done == 3:
            os.kill(os.getpid(), signal.SIGINT)
    return evaluate(*arguments, on_text=count, **named)
run.evaluate = interrupted
main()
"""
    command = [sys.executable, "-c", code, "eval", "-np", "2"]
    process = subprocess.run(command, cwd=folder, capture_output=True, timeout=300)
    file = folder / "lzs-eval" / "transcripts.jsonl"
    out, errors = process.stdout, process.stderr
    assert file.read_bytes().count(b"\n") >= 3
    assert (process.returncode, out) == (130, b"")
    said = re.fullmatch(
        rb"lzs: interrupted: (\d+) of 2[\d,]+ texts are saved in lzs-eval; the same command with --resume continues\n",
        errors,
    )
    assert said is not None, errors
    assert int(said[1]) == file.read_bytes().count(b"\n")
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_tasks_that_skip_the_chat_template_are_said(folder: Path) -> None:
    (folder / "tasks.jsonl").write_text('{"prompt": "What is 70 + 479?", "answer": "549"}\n{"prompt": "Once"}\n')
    done = lzs("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256, cwd=folder)
    what, how = '1 task has a "prompt", which the model continues', 'give "messages" to ask it a question'
    assert done.stderr.splitlines()[0] == f"lzs: {what}; it is made for chat: {how}"


def test_a_model_gets_the_rows_that_suit_it(tmp_path: Path) -> None:
    """The embedded model knows stories and sums of its own form; any other model gets the everyday rows."""
    (tmp_path / "grid.toml").write_text("max_tokens = 1\n[[setting]]\n")
    name, other = b"lzsampler tale 7M", b"lzsampler talk 7M"
    (tmp_path / "other.gguf").write_bytes(default_model().read_bytes().replace(name, other))
    (tmp_path / "renamed.gguf").write_bytes(default_model().read_bytes())
    first = {"other.gguf": ["copy-json-000", "long-001"], "renamed.gguf": ["add-001", "story-001"]}
    for model, ids in first.items():
        done = lzs(
            "eval", "-m", model, "--grid", "grid.toml", "--limit", 1, "-c", 512, "-o", f"{model}-run", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / f"{model}-run" / "transcripts.jsonl").read_text().splitlines()
        assert [json.loads(line)["eval"]["prompt"] for line in lines] == ids


def test_a_draft_changes_no_transcript(folder: Path) -> None:
    asked = ("eval", "--grid", "grid.toml", "--tasks", "tasks.jsonl", "-c", 256, "-fa", "on")
    alone = lzs(*asked, "-o", "alone", cwd=folder)
    for name, flags in {"model": ("-md", "tale-1m", "--spec-draft-n-max", 3), "lookup": ("--draft", "lookup")}.items():
        drafted = lzs(*asked, "-o", name, *flags, cwd=folder)
        assert drafted.returncode == 0, drafted.stderr
        assert drafted.stdout == alone.stdout
        (line,) = re.findall(r"^lzs: speculation: (.*)$", drafted.stderr, re.MULTILINE)
        assert re.match(r"accepted \d+ %, \d+\.\d tokens a call|off, would be \d|nothing was drafted$", line)
        assert "speculation" not in lzs("eval", "--so-far", "-o", name, cwd=folder).stderr + alone.stderr
        texts = [(folder / out / "transcripts.jsonl").read_bytes() for out in ("alone", name)]
        assert texts[0] == texts[1]
        times = [json.loads(line) for line in (folder / name / "timings.jsonl").read_text().splitlines()]
        assert all(row["draft"]["calls_without"] + row["draft"]["calls"] > 0 for row in times)
    assert json.loads((folder / "alone" / "run.json").read_text())["flash_attn"] is True
    other = lzs(*asked[:-2], "-o", "alone", "--resume", cwd=folder)
    assert other.returncode == 2
    assert "alone was started with another attention (-fa on, now -fa auto): the options" in other.stderr
    for flags, message in (
        (("--spec-draft-n-min", 2), "--spec-draft-n-min has no effect without a draft"),
        (("-md", "none.gguf"), "none.gguf"),
        (("--draft", "lookup", "--spec-draft-n-max", 33), "--spec-draft-n-max must be from 0 to 32, got 33"),
    ):
        refused = lzs(*asked, "-o", "other", *flags, cwd=folder)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert message in refused.stderr
        assert "Traceback" not in refused.stderr
        assert not (folder / "other").exists()


def test_diff_says_where_two_evaluations_have_texts_of_different_lengths(tmp_path: Path) -> None:
    """They were compared as if they had been written in the same way."""
    for name, max_tokens in (("a", 64), ("b", 200), ("c", 200)):
        grid = replace(runs.grid(("lz",), (0.0,)), max_tokens=max_tokens)
        runs.write_run(tmp_path / name, grid, [runs.transcript(each, "p", 1, "It ends.") for each in grid.settings])
    done = lzs("diff", "a", "b", cwd=tmp_path)
    assert done.stderr == "lzs: max_tokens differs: 64 in A and 200 in B; longer texts have more room to loop\n"
    assert lzs("diff", "b", "c", cwd=tmp_path).stderr == ""
    assert lzs("diff", "a", "b/transcripts.jsonl", cwd=tmp_path).returncode == 0
    for other in ("[]", "{", '{"grid": 1}'):
        (tmp_path / "c" / "run.json").write_text(other)
        assert lzs("diff", "a", "c", cwd=tmp_path).stderr == ""
