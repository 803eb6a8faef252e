"""`lzs cost` and `lzs eval --texts`, as a user runs them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llama_cpp")

PROSE = (
    "Between Barton and Delaford, there was that constant communication which strong family affection would naturally "
    "dictate; and among the merits and the happiness of Elinor and Marianne, let it not be ranked as the least "
    "considerable, that though sisters, and living almost within sight of each other, they could live without "
    "disagreement between themselves, or producing coolness between their husbands. "
)
WIDE = {**os.environ, "COLUMNS": "160"}  # room for all columns of a table
GRID = """
max_tokens = 30
[[setting]]
[[setting]]
kind = "lz-rate"
lz_penalty = [0.1, 0.3]
lz_rule = "paper"
lz_buffer = 8
temperature = [0, 0.7]
"""
EMBEDDED = "this is the cost for the embedded model, which knows only stories; use -m FILE for your model"


def lzs(*arguments: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    code = "from lzsampler.cli.main import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, env=WIDE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "grid.toml").write_text(GRID)
    (tmp_path / "texts" / "logs").mkdir(parents=True)
    (tmp_path / "texts" / "a.txt").write_text(PROSE)
    (tmp_path / "texts" / "logs" / "b.log").write_text("2026-01-01 12:00 start\n2026-01-01 12:01 stop\n" * 9)
    return tmp_path


def test_a_table_json_and_reports(folder: Path) -> None:
    arguments = ("cost", "texts", "--grid", "grid.toml", "-c", 256, "-t", 1)
    done = lzs(*arguments, "-o", "cost.html", "-o", "cost.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    embedded, strange = done.stderr.splitlines()
    assert embedded == f"lzs: {EMBEDDED}"
    assert re.fullmatch(
        r"lzs: without a penalty a token costs 5\.\d nats: the model does not know such texts, .*", strange
    )
    head, blank, names, *rows = done.stdout.splitlines()
    assert head.startswith("2 texts, ")
    assert blank == ""
    assert " ".join(names.split()) == "kind setting extra nats 95 % interval perplexity lost txt logs"
    assert [row.split()[:2] for row in rows[1:]] == [["lz-rate", "lz_penalty=0.1"], ["lz-rate", "lz_penalty=0.3"]]
    assert rows[0].startswith("none     none ")
    assert rows[0].split()[-9:] == ["0", "0", "to", "0", "×1.000", "0", "%", "0", "0"]
    figures = json.loads((folder / "cost.json").read_text())
    assert figures["texts"] == 2
    assert [setting["settings"] for setting in figures["settings"]][1] == [
        "T=0 lz_penalty=0.1 lz_rule=paper lz_buffer=8",
        "T=0.7 lz_penalty=0.1 lz_rule=paper lz_buffer=8",
    ]
    assert list(figures["kinds"]) == ["txt", "logs"]
    assert (folder / "cost.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    again = lzs(*arguments, "--json", cwd=folder)
    assert json.loads(again.stdout) == figures


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("cost > 0.001", 1),
        ("none.cost > 0", 0),
        ("lz.cost > 0.001", 1),
        ("lz.lost>=0", 1),
        ("logs.cost > 0.001", 1),
        ("lost=99%", 0),
        ("lz.cost < 1%", 0),
    ],
)
def test_fail_if(folder: Path, condition: str, status: int) -> None:
    done = lzs("cost", "texts", "--grid", "grid.toml", "-t", 1, "-q", "--fail-over", condition, cwd=folder)
    assert done.returncode == status, done.stderr
    name = re.split("[ <>=]", condition)[0]
    said = rf"lzs: {re.escape(name)} of lz_\S+ lz_\S+ lz_\S+: (\S+) is (?:over 0\.001|not below 0|over 0)"
    lines = [re.fullmatch(said, line) for line in done.stderr.splitlines()]
    rates = [float(line[1]) for line in lines if line is not None]
    assert len(rates) == len(lines) == 2 * status  # both strengths are over, and the worse one is first
    assert rates == sorted(rates, reverse=True)


def test_bad_files_are_named_the_others_are_measured_and_the_status_is_1(folder: Path) -> None:
    for i in range(7):
        (folder / "texts" / f"c{i}.bin").write_bytes(b"\0")
    done = lzs("cost", "texts", "--grid", "grid.toml", "-t", 1, "-q", "--fail-over", "cost > 0.001", cwd=folder)
    assert done.returncode == 1
    assert done.stdout.startswith("2 texts")
    lines = done.stderr.splitlines()
    assert lines[0] == f"lzs: {Path('texts', 'c0.bin')}: it is not a text: byte 0 is zero"
    assert lines[5] == "lzs: ... and 2 more (--json and -o cost.json list all)"
    for line, strength in zip(lines[6:8], (0.3, 0.1), strict=True):
        assert re.fullmatch(
            rf"lzs: cost of lz_penalty={strength} lz_rule=paper lz_buffer=8: \d+\.?\d* is over 0\.001", line
        )
    assert lines[8] == "lzs: 7 of 9 texts could not be read or scored"


def test_a_table_that_is_read_as_one_text_is_said(folder: Path) -> None:
    for name in ("a.csv", "b.TSV"):
        (folder / name).write_text(f'id,text\n1,"{PROSE}"\n')
    said = "CSV is read as one text, not row by row (docs/cost.md, How texts are read)"
    for names, which in ((("a.csv",), "a.csv"), (("a.csv", "b.TSV", "texts"), "a.csv and 1 more file")):
        done = lzs("cost", *names, "--grid", "grid.toml", "-t", 1, cwd=folder)
        assert done.stderr.splitlines()[1] == f"lzs: {which}: {said}"
    rows = lzs("cost", "a.csv", "--format", "completion", "--grid", "grid.toml", "-t", 1, cwd=folder)
    assert (rows.returncode, said in rows.stderr) == (0, False)


def test_forbidden_tokens_are_words(folder: Path) -> None:
    bias = ", ".join(f"[{token}, -inf]" for token in range(300))
    (folder / "grid.toml").write_text(f"[[setting]]\nlogit_bias = [{bias}]\n")
    done = lzs("cost", "texts/a.txt", "--grid", "grid.toml", "-t", 1, "--fail-over", "cost > 0.5", cwd=folder)
    assert done.returncode == 1, done.stderr
    assert re.search(r"lzs: cost of logit_bias=\S.*: infinite is over 0\.5\n$", done.stderr)
    assert "forbidden)" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (),
            "nothing to measure: give files or folders of reference texts, or a set of the package: lzs cost",
        ),
        (("--set", "list"), "Invalid value for '--set': 'list' is not one of 'prose', 'code', 'json',"),
        (
            ("texts", "--set", "lists", "--fail-over", "flags.cost > 1"),
            "no kind flags, only none, lz-rate, texts, lists",
        ),
        (("missing",), "there is no file or folder missing"),
        (("texts", "--grid", "missing.toml"), "cannot read the grid missing.toml"),
        (("texts", "--skip", "-1"), "--skip must be at least 0, got -1"),
        (("texts", "--skip", "5000"), "no text is longer than the 5,000 tokens that are left out"),
        (("texts", "--max-tokens", "1"), "--max-tokens must be at least 2, got 1"),
        (("texts", "--format", "x"), "unknown format 'x'"),
        (("texts", "-m", "grid.toml"), "is not a GGUF file"),
        (("texts", "-o", "x.csv"), "its name must end in one of .html, .json"),
        (("texts/a.txt", "-o", "no/x.html"), "there is no folder no"),
        (
            ("texts", "--fail-over", "loop_rate > 1"),
            "--fail-over takes a limit from 0 to 1 or in percent (cost: in nats a token), such as lost=1%",
        ),
        (("texts", "--fail-over", "dry.cost > 0.1"), "there is no kind dry, only none, lz-rate, txt, logs"),
        (("texts", "-m", "grid.toml", "--fail-over", "dry.cost > 0.1"), "there is no kind dry"),  # before all the work
        (("grid.toml", "texts/a.txt", "-o", "texts/a.json"), ""),
    ],
)
def test_wrong_input_is_one_line(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    grid = () if "--grid" in arguments else ("--grid", "grid.toml")
    done = lzs("cost", *arguments, *grid, "-t", 1, cwd=folder)
    if not message:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()
    assert lines[1:] in ([], ["Try 'lzs cost --help' for help."])
    assert message in lines[0]


def test_a_text_is_not_overwritten(folder: Path) -> None:
    (folder / "a.json").write_text(PROSE)
    for texts in ("a.json", "."):
        done = lzs("cost", texts, "--grid", "grid.toml", "-o", "a.json", cwd=folder)
        assert done.returncode == 2
        assert "-o a.json would be among the texts: name a file elsewhere" in done.stderr
        assert (folder / "a.json").read_text() == PROSE


def test_ctrl_c_prints_what_is_done(folder: Path) -> None:
    (folder / "texts" / "c.txt").write_text(PROSE * 20)
    code = """
import os, signal
import lzsampler
from lzsampler.cli.main import main
from lzsampler.evaluation.cost import Meter
report = Meter._report
def interrupted(self, done, whole):
    report(self, done, whole)
    if done > 2500:
        os.kill(os.getpid(), signal.SIGINT)
Meter._report = interrupted
main()
"""
    arguments = ["cost", "texts", "--grid", "grid.toml", "-t", "1", "-q", "-o", "cost.json"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, timeout=120)
    assert done.returncode == 130
    assert done.stdout.startswith(b"2 texts")
    assert done.stderr == (
        b"lzs: interrupted: these are the figures of 2 texts; lzs cost starts over, while lzs eval --texts keeps its "
        b"scores for --resume\n"
    )
    assert json.loads((folder / "cost.json").read_text())["interrupted"] is True


def test_ctrl_c_before_the_first_text_is_said(folder: Path) -> None:
    code = """
import lzsampler
from lzsampler.cli.main import main
def interrupted(*_, **__): raise KeyboardInterrupt
lzsampler.cost = interrupted
main()
"""
    command = [sys.executable, "-c", code, "cost", "texts"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "lzs: interrupted: no text was scored yet\n")


def test_a_set_of_the_package_with_the_presets(tmp_path: Path) -> None:
    done = lzs("cost", "--set", "lists", "-t", 1, "-o", "c.html", "-o", "c.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures == json.loads((tmp_path / "c.json").read_text())
    assert (figures["grid"], figures["texts"], figures["bad_files"]) == ("presets", 16, [])
    assert list(figures["kinds"]) == ["flags", "array", "table", "questions", "answers", "moves", "bases", "words"]
    assert [each["kind"] for each in figures["settings"]] == ["none", "lz-default", "lz-guard", "lz-paper"]
    none, default, guard, paper = (each["extra_nats"] for each in figures["settings"])
    assert none == 0
    assert guard < default < paper
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    for each in figures["settings"]:
        assert each["name"] in page
        assert f"{each['extra_nats']:+.3f}" in page or each["extra_nats"] == 0


def test_an_evaluation_with_texts(folder: Path) -> None:
    (folder / "prompts.jsonl").write_text('{"prompt": "Between Barton and Delaford, there was that"}\n')
    arguments = ("eval", "--grid", "grid.toml", "--prompts", "prompts.jsonl", "-c", 256, "-t", 1, "-fa", "off")
    done = lzs(*arguments, "--texts", "texts", "--fail-over", "lz.cost > 0.001", cwd=folder)
    assert done.returncode == 1, done.stderr
    assert re.fullmatch(
        r"lzs: lz\.cost of lz_penalty=0\.3 lz_rule=paper lz_buffer=8: \d+\.\d+ is over 0\.001",
        done.stderr.splitlines()[-2],
    )
    assert done.stdout.splitlines()[0].split()[-4:] == ["cost", "|", "lost", "|"]  # no text loops: no front
    alone = lzs("cost", "texts", "--grid", "grid.toml", "-c", 256, "-t", 1, "--json", cwd=folder)
    kept = json.loads((folder / "lzs-eval" / "results.json").read_text())
    assert kept["costs"] == json.loads(alone.stdout)
    now = lzs("eval", "--so-far", "--json", cwd=folder)
    assert json.loads(now.stdout)["costs"] == kept["costs"]
    audited = lzs("audit", "lzs-eval", "--json", cwd=folder)
    assert json.loads(audited.stdout)["bad_records"] == 0
    by_kind = lzs(*arguments, "--resume", "--texts", "texts", "--fail-over", "logs.cost > 0.001", cwd=folder)
    assert re.fullmatch(
        r"lzs: logs\.cost of lz_penalty=0\.3 lz_rule=paper lz_buffer=8: \d+\.\d+ is over 0\.001",
        by_kind.stderr.splitlines()[-2],
    )
    run = folder / "lzs-eval" / "run.json"
    assert "unscored" not in run.read_text()
    run.write_text(json.dumps({**json.loads(run.read_text()), "unscored": 2}))  # as it is while texts are scored
    for scored in (True, False):
        begun = lzs("eval", "--so-far", "-q", "--fail-over", "lz.cost > 1000", cwd=folder)
        assert (begun.returncode, begun.stderr) == (
            1,
            "lzs: --fail-over cannot pass: the evaluation is not finished (the cost of 2 texts); "
            "--resume continues it\n",
        )
        assert lzs("eval", "--so-far", "-q", "--fail-over", "loop_rate > 0.9", cwd=folder).returncode == 0
        if scored:
            (folder / "lzs-eval" / "costs.jsonl").unlink()
    unknown = lzs(*arguments, "--resume", "--texts", "texts", "--fail-over", "dry.cost > 0.5", cwd=folder)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "there is no kind dry, only none, lz-rate, txt, logs" in unknown.stderr
    refused = lzs(*arguments, "--resume", "--fail-over", "lz.cost > 0.5", cwd=folder)
    assert refused.returncode == 2
    assert "the cost needs texts; give --texts" in refused.stderr
