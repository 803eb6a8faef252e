"""`lzs audit` and `lzs diff`, run as a user runs them: what they print, write and refuse, and how they end."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpora import PROSE, corpus, looping, transcript

LZS = str(Path(sys.executable).with_name("lzs"))
VOCABULARY = Path(__file__).with_name("vectors") / "ggml-vocab-llama-spm.gguf"


def audit(*arguments: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    return lzs("audit", *arguments, **settings)


def diff(*arguments: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    return lzs("diff", *arguments, **settings)


def lzs(*arguments: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    settings.setdefault("stdin" if "input" not in settings else "input", settings.get("input", subprocess.DEVNULL))
    command = [LZS, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, **settings)


def summary(*arguments: str | Path, **settings: Any) -> dict[str, Any]:
    done = audit("--json", *arguments, **settings)
    assert done.stderr == ""
    made = json.loads(done.stdout)
    assert isinstance(made, dict)
    return made


def test_names_and_errors_steer_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J\x07.jsonl"
    path.write_text('{"id": "x\\u001b[1m\\u009b", "response": "' + "so it is " * 99 + '"}\n{"resp\x9b[1m": \x1b}\n')
    for done in (audit(path), audit("--json", path), audit("-v", f"{path}x"), audit(path, "-o", tmp_path / "x\x1b.no")):
        said = done.stdout + done.stderr
        assert said
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", said), said
    assert "\\u001b[2J\\u0007.jsonl" in audit(f"{path}x").stderr
    assert json.loads(audit("--json", path).stdout)["bad"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus(tmp_path_factory.mktemp("in"), files=2)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("clean") / "clean.jsonl"
    file.write_text("".join(transcript(i, PROSE[1000 * i : 1000 * i + 900]) for i in range(30)))
    return file


# -- what it prints and writes --


def test_it_prints_a_table(folder: Path) -> None:
    done = audit(folder, "--by", "model")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{2 * looping(40)} of 80 records loop" in done.stdout
    for part in ("loop rate", "m0", "m2", "Worst loops", "2 bad records"):
        assert part in done.stdout
    assert "\x1b" not in done.stdout


def test_what_goes_to_no_terminal_is_not_cut(tmp_path: Path) -> None:
    """And what looks like markup of rich is text."""
    unit = "[red]again[/red] " + " ".join(f"word{i}" for i in range(20)) + " "
    (tmp_path / "a.txt").write_text(unit * 30)
    plain = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    assert f'"{unit.strip()}" ×30 ' in audit(tmp_path / "a.txt", env=plain).stdout
    lines = audit(tmp_path / "a.txt", env={**plain, "COLUMNS": "80"}).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("…" in line for line in lines)


def test_json_is_the_summary(folder: Path, tmp_path: Path) -> None:
    made = summary(folder, "--by", "model,file", "-o", tmp_path / "summary.json")
    assert made == json.loads((tmp_path / "summary.json").read_text("utf-8"))
    assert {"version", "records", "looping", "loop_rate", "interval", "rules", "groups", "bad_records"} <= made.keys()
    assert (made["version"], made["records"], made["looping"], made["bad_records"]) == (1, 80, 2 * looping(40), 2)
    assert len(made["groups"]) == 6
    assert made["groups"][0]["group"] == {"model": "m0", "file": str(folder / "0.jsonl")}


def test_all_outputs_at_once(folder: Path, tmp_path: Path) -> None:
    names = ["r.html", "l.csv", "l.jsonl", "s.json", "l.sarif"]
    done = audit(folder, "-q", *(part for name in names for part in ("-o", tmp_path / name)))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    rows = [json.loads(line) for line in (tmp_path / "l.jsonl").read_text("utf-8").splitlines()]
    assert {row["rule"] for row in rows} >= {"LZR001"}
    assert len({(row["file"], row["id"]) for row in rows if row["rule"] == "LZR001"}) == 2 * looping(40)


def test_stdin_a_pattern_and_compressed(folder: Path, tmp_path: Path) -> None:
    text = (folder / "0.jsonl").read_text()
    assert summary("-", input=text)["looping"] == looping(40)
    assert summary(str(folder / "*.jsonl"))["records"] == 80
    (tmp_path / "x.jsonl").write_text(text)
    subprocess.run(["gzip", tmp_path / "x.jsonl"], check=True)
    assert summary(tmp_path / "x.jsonl.gz")["looping"] == looping(40)


def test_rules_reach_the_audit(clean: Path) -> None:
    flags = {
        ("--copies", "7"): ("copies", 7),
        ("--length", "250"): ("length", 250),
        ("--length-copies", "4"): ("length_copies", 4),
        ("--no-near",): ("near", False),
        ("--level", "char,line"): ("levels", ["char", "line"]),
        ("--select", "LZR001", "--select", "LZR004,LZR020"): ("select", ["LZR001", "LZR004", "LZR020"]),
        ("--ignore", "LZR010"): ("ignore", ["LZR010"]),
    }
    for arguments, (name, value) in flags.items():
        assert summary(clean, *arguments)["rules"][name] == value
    rules = summary(clean, *(part for arguments in flags for part in arguments))["rules"]
    assert {name: rules[name] for name, _ in flags.values()} == dict(flags.values())


def test_no_text_of_a_field(tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_text(json.dumps({"a": [{"b": "over and over " * 30}]}) + "\n")
    assert summary(file, "--field", "a[*].b")["looping"] == 1


def test_tokens_of_a_vocabulary(folder: Path) -> None:
    pytest.importorskip("llama_cpp")
    counted, guessed = (
        summary(folder / "0.jsonl", *more, "--workers", "1")
        for more in (("--tokenizer", VOCABULARY, "--level", "char,token"), ("--level", "char"))
    )
    assert counted["looping"] == guessed["looping"] == looping(40)
    assert 0 < counted["wasted_tokens"] != guessed["wasted_tokens"]


def test_help_states_the_definitions_and_the_rules() -> None:
    text = " ".join(audit("--help").stdout.split())
    for part in (
        'A single character, such as "!" or a line break, must repeat 100 times.',
        "20 times in a row, or 3 times over 100 characters or more",
        "arXiv 2504.20131, footnote 7",
        "LZR001 tail loop",
        "LZR020 literal loop",
        "a rate exceeds its limit",
        "lzs diff A B",
        "Exit status: 0 success; 1 a limit",
    ):
        assert part in text
    assert "McNemar" in diff("--help").stdout


def test_a_clean_result_says_how_much_it_says(clean: Path) -> None:
    assert (
        "No loop in 30 records, but the true rate may still be up to 11 %; 381 records without a loop would show "
        in (audit(clean).stdout)
    )


def test_a_key_that_no_record_has(clean: Path) -> None:
    done = audit(clean, "--by", "modle,model", "-q")
    assert (done.returncode, done.stderr) == (0, "lzs: --by modle: no record has 'modle'\n")


# -- how it ends --


def test_fail_over(folder: Path) -> None:
    rate = 2 * looping(40) / 80
    for limit, status in (
        (f"loop_rate={rate}", 0), ("loop_rate=0.01", 1), ("loop_rate=1%", 1), ("bad_rate=0.02", 1),
        ("loop_rate > 0.01", 1), (f"loop_rate>{rate}", 0), (f"loop_rate >= {rate}", 1), ("loop_rate < 1 %", 0),
    ):  # fmt: skip
        done = audit(folder, "-q", "--fail-over", limit)
        assert (done.returncode, done.stdout) == (status, ""), limit
    done = audit(
        folder, "-q", "--fail-over", "loop_rate=0.01", "--fail-over", "bad_rate=0", "--fail-over", "bad_rate=1"
    )
    assert done.stderr == f"lzs: loop_rate {rate:.4g} is over 0.01\nlzs: bad_rate {2 / 82:.4g} is over 0\n"
    assert audit(folder, "-q", "--fail-over", "loop_rate=0.01", "--exit-zero").returncode == 0


def test_an_audit_fails_where_more_than_a_tenth_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "half.jsonl"
    rows = [transcript(i, PROSE[900 * i : 900 * i + 700]) for i in range(9)]
    file.write_text("".join(rows) + "not JSON\n")
    assert audit(file, "-q").returncode == 0  # a tenth
    file.write_text("".join(rows) + "not JSON\n" * 2)
    done = audit(file, "-q")
    said = "lzs: 2 of 11 records could not be read (18.2 %): --fail-over bad_rate=1 accepts that\n"
    assert (done.returncode, done.stderr) == (1, said)
    for accepted in (("--fail-over", "bad_rate=1"), ("--fail-over", "bad_rate=20%"), ("--exit-zero",)):
        assert audit(file, "-q", *accepted).returncode == 0
    assert audit(file, "-q", "--fail-over", "loop_rate=1%").returncode == 1
    said = f"lzs: {file}: 2 of 11 records could not be read (18.2 %): --exit-zero accepts that\n"
    assert audit(file, "-q", "--resume", tmp_path / "work").returncode == 1
    whole = tmp_path / "whole.jsonl"
    whole.write_text("".join(rows) + "not JSON\n")
    for sides, times in (((file, file), 2), ((tmp_path / "work", whole), 1), ((whole, whole), 0)):
        done = diff(*sides, "-q")
        assert done.stderr == said.replace(str(file), str(sides[0])) * times
        assert (done.returncode, done.stdout) == (int(times > 0), "")
    assert diff(file, file, "--exit-zero").returncode == 0
    done = diff("--copies", "5", tmp_path / "work", tmp_path / "work")
    assert done.stderr.startswith("lzs: --copies has no effect on two finished audits: give it to lzs audit")


def test_results_in_an_audited_folder_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"response": "so it is " * 40}) + "\n" for _ in range(9)))
    outputs = [part for name in ("loops.jsonl", "summary.json") for part in ("-o", tmp_path / name)]
    assert audit(tmp_path, "-q", *outputs).returncode == 0
    for left in (2, 3):
        made = summary(tmp_path)
        assert (made["records"], made["bad_records"]) == (9, 0)
        assert sum(passed["count"] for passed in made["passed_over"]) == left
        assert audit(tmp_path / "a.jsonl", "-q", "--resume", tmp_path / "work").returncode == 0
    assert [passed["reason"] for passed in made["passed_over"]] == [
        "results of lzs audit",
        "folders of lzs audit --resume",
    ]
    done = audit(tmp_path / "summary.json", "-q")
    assert (done.returncode, done.stderr) == (
        2, f"lzs: no record was audited: {tmp_path}/summary.json: results of lzs audit\n"
    )  # fmt: skip


def test_a_comparison_of_less_than_half_fails(tmp_path: Path) -> None:
    rows = [transcript(i, PROSE[900 * i : 900 * i + 700]) for i in range(21)]
    for name, n in (("all", 21), ("some", 10)):
        (tmp_path / f"{name}.jsonl").write_text("".join(rows[:n]))
    done = diff(tmp_path / "all.jsonl", tmp_path / "some.jsonl", "-q")
    said = "only 10 of 21 records of A and 10 of B were compared, fewer than half of a side: --exit-zero accepts that"
    assert (done.returncode, done.stderr) == (1, f"lzs: {said}\n")
    assert diff(tmp_path / "all.jsonl", tmp_path / "some.jsonl", "--exit-zero").returncode == 0


def test_a_limit_in_percent_is_the_same_number() -> None:
    """0.7 / 100 is a bit less than 7 / 1000."""
    from lzsampler.cli.limits import _limit as limit_of  # type: ignore[import-not-found, import-untyped, unused-ignore]

    for tenths in range(1, 1000):
        assert limit_of(f"loop_rate={tenths / 10}%", ["loop_rate"], "--fail-over").number == tenths / 1000


def test_a_limit_of_a_group(folder: Path) -> None:
    """NAME.rate is the rate of a group of --by."""
    limits = ("--fail-over", "m0.loop_rate > 1%", "--fail-over", "m1.literal_rate=100%")
    done = audit(folder, "-q", "--by", "model", *limits)
    assert done.returncode == 1
    assert done.stderr.startswith("lzs: m0.loop_rate 0.")
    assert done.stderr.endswith(" is over 0.01\n")
    for arguments, said in (
        (("--fail-over", "m0.loop_rate=1%"), "there are no groups; add --by to make them"),
        (("--by", "model", "--fail-over", "m9.loop_rate=1%"), "there is no group 'm9'; there are m0, m1, m2"),
        (("--by", "model", "--fail-over", "m0.bad_rate=1%"), "bad records belong to no group"),
    ):
        done = audit(folder, "-q", *arguments)
        assert done.returncode == 2
        assert said in done.stderr


def test_a_limit_holds_for_every_group_of_its_name(tmp_path: Path) -> None:
    """Records without a value and those with the value "-" are two groups; only the one that came last was checked."""
    loop, plain = ("hi there " * 40, "A text that ends.")
    for first, second in ((loop, plain), (plain, loop)):
        path = tmp_path / "t.jsonl"
        records = [{"model": "-", "text": first}, {"text": second}]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        done = audit(path, "-q", "--by", "model", "--fail-over", "-.loop_rate > 0")
        assert (done.returncode, done.stderr) == (1, "lzs: -.loop_rate 1 is over 0\n")


def test_a_limit_within_the_interval_says_what_would_tell(folder: Path) -> None:
    done = audit(folder, "--fail-over", "loop_rate=0.1")
    assert done.returncode == 1
    over, hint = done.stderr.splitlines()
    assert over == "lzs: loop_rate 0.15 is over 0.1"
    assert hint.startswith("lzs: the 95 % interval of loop_rate, 0.0")
    assert hint.endswith(", includes the limit 0.1; 139 records would be enough to decide")


def test_of_few_conversations_no_number_is_said_that_is_there_already(tmp_path: Path) -> None:
    rows = [
        {"prompt": f"p{i % 2}", "id": f"p{i % 2}", "text": "hi there " * 40 if i % 2 else "It ends."} for i in range(4)
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    hint = audit(path, "--fail-over", "loop_rate=1%").stderr.splitlines()[-1]
    assert hint.endswith("includes the limit 0.01; more independent records would be enough to decide"), hint


@pytest.mark.parametrize(
    "limit",
    [
        "loop_rate",
        "loop_rate=x",
        "loop_rate=2",
        "loop_rate=-1",
        "speed=1",
        "=0.1",
        "accuracy < 50%",
        "loop_rate = nan",
        "loop_rate=200%",
        "loop_rate == 0.1",
        "loop_rate=1_0%",
        "loop_rate=\u0661%",
        "loop_rate=inf",
    ],
)
def test_limits_that_are_none(clean: Path, limit: str) -> None:
    done = audit(clean, "--fail-over", limit)
    assert (done.returncode, done.stdout) == (2, "")
    line, hint = done.stderr.splitlines()
    assert line.startswith("lzs: --fail-over takes a limit from 0 to 1 or in percent, such as loop_rate=1%")
    assert line.endswith(
        f"(the rates are loop_rate, stuck_rate, literal_rate, bad_rate, turn_loop_rate), got {limit!r}"
    )
    assert hint == "Try 'lzs audit --help' for help."


def test_bad_input_is_one_line(folder: Path, clean: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.jsonl").touch()
    for arguments, said in (
        ((), "nothing to audit: give files or folders, or - for stdin"),
        (("nosuch.jsonl",), "there is no file or folder nosuch.jsonl"),
        ((clean, "--format", "nosuch"), "format 'nosuch'"),
        ((clean, "--field", "a["), "field 'a[' is no"),
        ((clean, "--copies", "1"), "--copies must be from 2 to 2147483647, got 1"),
        ((clean, "--level", "chars"), "char, word, line, token; got 'chars'"),
        ((clean, "--select", "LZR999"), "LZR001,"),
        ((clean, "--level", "token"), "--level token needs the tokens: give the model that wrote the texts with --tok"),
        ((clean, "--select", "LZR001,LZR006"), "--select LZR006 needs the tokens"),
        (("diff", clean, clean, "--level", "char,token"), "--level token needs the tokens"),
        ((clean, "--select", "LZR001", "--ignore", "LZR001", "--fail-over", "loop_rate=0"), "no rule is left"),
        (("diff", clean, clean, "--select", "LZR004", "--no-near"), "no rule is left"),
        (
            (clean, "--select", "LZR011", "--fail-over", "loop_rate=0"),
            "--fail-over loop_rate=0 counts LZR001 to LZR006",
        ),
        (
            (clean, "--level", "line", "--fail-over", "stuck_rate=0"),
            "stuck_rate=0 counts LZR011, but --select",
        ),
        (("diff", clean, clean, "--select", "LZR011"), "the verdict counts LZR001 to LZR006, but --select"),
        ((clean, "-o", tmp_path / "x.txt"), f"{tmp_path}/x.txt"),
        ((clean, "-o", tmp_path / "no" / "x.csv"), f"{tmp_path}/no/x.csv"),
        ((clean, "-o", clean), f"-o {clean} would overwrite what is audited"),
        ((folder, "-o", folder / "0.jsonl"), f"-o {folder}/0.jsonl would overwrite what is audited"),
        ((folder / "*.jsonl", "-o", folder / "1.jsonl"), f"-o {folder}/1.jsonl would overwrite what is audited"),
        ((clean, "--workers", "0"), "--workers must be at least 1, got 0"),
        ((clean, "--workers", "x"), "--workers must be a whole number, got 'x'"),
        ((clean, "--tokenizer", "nosuch.gguf"), "nosuch.gguf does not exist"),
        (("-", "--resume", tmp_path / "w"), "stdin"),
        ((clean, "--resume", clean), f"cannot write to {clean}: File exists"),
        ((clean, "--resume", folder), f"{folder} is "),
        ((tmp_path / "empty",), f"no record was audited: {tmp_path}/empty: "),
        ((tmp_path / "empty.jsonl",), f"no record was audited: {tmp_path}/empty.jsonl: it is empty"),
        (("diff", clean), "Missing argument 'B'"),
        (("diff", clean, "nosuch"), "there is no file or folder nosuch"),
        (("diff", clean, clean, "--alpha", "2"), "--alpha must be from 0 to 1, got 2"),
        (("diff", clean, tmp_path / "empty.jsonl"), "no record was audited"),
    ):
        command = "diff" if arguments[:1] == ("diff",) else "audit"
        done = lzs(command, *arguments[command == "diff" :], "-q")
        line, *hint = done.stderr.splitlines()
        assert line.startswith("lzs: "), arguments
        assert said in line, arguments
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert hint in ([], [f"Try 'lzs {command} --help' for help."]), arguments
    assert not (folder / "lock").exists()  # of the --resume that was refused


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(clean: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    done = audit(clean, "--resume", tmp_path / "work")
    assert (done.returncode, done.stderr) == (2, f"lzs: cannot write to {tmp_path}/work: Permission denied\n")
    done = audit(clean, "-o", tmp_path / "x.csv")
    assert (done.returncode, done.stderr) == (2, f"lzs: {tmp_path}/x.csv cannot be written: permission denied\n")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder that even root cannot write")
def test_a_folder_that_nobody_writes(clean: Path) -> None:
    done = audit(clean, "--resume", "/proc/work", "-q")
    assert (done.returncode, done.stderr) == (2, "lzs: cannot write to /proc/work: No such file or directory\n")


def limited(size: int) -> Callable[[], None]:
    """Return what keeps a process from files above a size, as a full disk does, but for its signal."""
    import resource

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.skipif(sys.platform == "win32", reason="no limits")
def test_a_full_disk_is_one_line(folder: Path, tmp_path: Path) -> None:
    done = audit(folder, preexec_fn=limited(2000))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("lzs: cannot write ")  # and not that it is stdout
    assert tempfile.gettempdir() in done.stderr
    assert ": File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    done = audit(folder, "-o", tmp_path / "r.html", preexec_fn=limited(20_000), env={**os.environ, "TMPDIR": "/tmp"})
    assert (done.returncode, os.listdir(tmp_path)) == (2, [])
    assert done.stderr == f"lzs: cannot write {tmp_path}/r.html: File too large\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_stdout(clean: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [LZS, "audit", str(clean)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "lzs: stdout: No space left on device\n")


def large(folder: Path) -> Path:
    """A file of some seconds of work: 80 MB, some twenty parts."""
    file = folder / "large.jsonl"
    lines = "".join(transcript(i, PROSE[500 * i : 500 * i + 20_000]) for i in range(200))
    file.write_text(lines * (80_000_000 // len(lines)))
    return file


def test_ctrl_c_without_resume_says_that_nothing_is_saved(clean: Path) -> None:
    code = """
import lzsampler.auditing.audit_files as run
from lzsampler.cli.main import main
def interrupted(*_, **__): raise KeyboardInterrupt
run.audit_files = interrupted
main()
"""
    for command, more in (("audit", "; --resume FOLDER keeps finished work"), ("diff", "")):
        arguments = [sys.executable, "-c", code, command, *[str(clean)] * (1 + (command == "diff"))]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (130, f"lzs: interrupted: nothing is saved{more}\n")


def test_ctrl_c_and_resume_give_the_same_bytes(tmp_path: Path) -> None:
    """Ctrl-C reaches all processes of a terminal: no worker says a word, and the same command goes on."""
    file, work = large(tmp_path), tmp_path / "work"
    command = [LZS, "audit", str(file), "--resume", str(work), "-o", str(tmp_path / "a.json"), "-q", "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        while not list(work.glob("??????.json")):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=60)
    expected = f"lzs: interrupted: finished work is saved in {work}; the same command continues it\n"
    assert (process.returncode, said) == (130, (b"", expected.encode()))
    done = set(work.glob("??????.json"))
    assert 0 < len(done) < 19
    before = {path: path.stat().st_mtime_ns for path in done}
    subprocess.run(command, check=True)
    assert {path: path.stat().st_mtime_ns for path in done} == before
    assert audit(file, "-q", "-o", tmp_path / "b.json", "--workers", "1").returncode == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_progress_is_for_a_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    file = large(tmp_path)
    ours, theirs = pty.openpty()
    command = [LZS, "audit", str(file)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while piece := read_some(ours):
            shown += piece
    os.close(ours)
    assert process.returncode == 0
    assert shown.count(b" MB/s, ") >= 2
    assert b"looking at the files" in shown
    assert b"100%" in shown
    assert b"of 78 MB, " in shown
    assert b"0:00:0" in shown  # the time that is left
    assert b" left" in shown
    assert shown.endswith(b"\x1b[2K")  # the bar is wiped out


def read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # how Linux tells the end of a terminal
        return b""


# -- diff --


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Answers to 40 prompts: 2 loop on both sides, 2 in A only, 12 in B only."""
    folder = tmp_path_factory.mktemp("sides")
    for name, looping_ones in (("a", {0, 1, 2, 3}), ("b", {0, 1, *range(10, 22)})):
        texts = [PROSE[900 * i : 900 * i + 700] + " and so on" * 40 * (i in looping_ones) for i in range(40)]
        (folder / f"{name}.jsonl").write_text("".join(transcript(i, text) for i, text in enumerate(texts)))
    return folder / "a.jsonl", folder / "b.jsonl"


def test_diff(sides: tuple[Path, Path]) -> None:
    a, b = sides
    worse = diff(a, b)
    assert (worse.returncode, worse.stderr) == (1, "")
    for part in (
        "4 of 40 records loop, 10.0 %",
        "14 of 40",
        "p = 0.0074: worse",
        "B - A: +25 percentage points (95 % interval +",
        "newly looping: 12",
        "cured: 2\n",
    ):
        assert part in worse.stdout
    better = diff(b, a)
    assert better.returncode == 0
    assert "better" in better.stdout
    assert diff(a, b, "--alpha", "0.001", "-q").returncode == 0
    assert diff(a, b, "--exit-zero").returncode == 0
    same = diff(a, a, "--json")
    assert (same.returncode, json.loads(same.stdout)["verdict"]) == (0, "no significant difference")


def test_diff_of_audits_that_are_done(sides: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = sides
    assert audit(a, "--resume", tmp_path / "a", "-q").returncode == 0
    fresh, kept = (json.loads(diff(side, b, "--json").stdout) for side in (a, tmp_path / "a"))
    assert fresh == kept
    assert [pair["id"] for pair in fresh["cured"]] == ["r2", "r3"]
    done = diff(tmp_path / "a", b, "--copies", "9")
    assert (done.returncode, done.stderr) == (
        2,
        "lzs: A and B were audited with different settings: copies is 20 in A and 9 in B; "
        "audit both with the same settings\n",
    )


def test_diff_without_pairs_compares_groups_and_says_so(sides: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("".join(transcript(900 + i, "over and over " * 30) for i in range(20)))
    done = diff(sides[0], file)
    assert (done.returncode, done.stderr) == (1, "")
    assert "No record of A has the id of a record of B, so A and B are compared as two groups" in done.stdout
    assert "20 of 20 records loop" in done.stdout
    assert "permutation test over 60 conversations, p = 5e-05: worse" in done.stdout
    assert "newly looping" not in done.stdout
    assert json.loads(diff(sides[0], file, "--json").stdout)["paired"] is False


def test_a_file_that_is_half_unreadable_says_so(tmp_path: Path) -> None:
    row = json.dumps({"messages": [{"role": "assistant", "content": "A text."}]})
    (tmp_path / "half.jsonl").write_text(f"{row}\nnot JSON\n" * 10)
    done = audit(tmp_path, "--fail-over", "bad_rate=50%")
    assert (done.returncode, done.stderr) == (0, "")
    assert "10 bad records (50.0 % of all), not counted above" in done.stdout.splitlines()[-12:]


def test_equal_ids_are_said(tmp_path: Path) -> None:
    rows = [{"id": "same", "messages": [{"role": "assistant", "content": f"Text {i}."}]} for i in range(100)]
    for name, n in (("a", 100), ("b", 1)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:n]))
    command: list[Any] = [LZS, "diff", tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = (
        "A has 99 records with the id of an earlier record: the test counts records with the same id as one "
        "conversation"
    )
    assert said in done.stdout.splitlines()
    assert "B has" not in done.stdout
    assert "Paired by order, because several records of a file have the same id: 1 of 1 pair. " in done.stdout


def test_the_list_says_that_its_loops_are_the_largest_and_those_of_the_table_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("so it is, " * 40 + PROSE[:900] + "and it was. " * 90)
    table, worst = audit(tmp_path / "a.txt").stdout.split("Worst loops: ")
    assert worst.startswith("the largest loop of each record (the period above: the first)\n")
    assert re.search(r"\ball +1 .* 0 % +10 ", table)
    assert "p=12" in worst


def test_records_with_equal_ids_are_told_apart_by_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"id": "q", "response": f"{i} so it is " * 40}) + "\n" for i in range(2)))
    shown = audit(file).stdout
    assert "  q (record 0)  " in shown
    assert "  q (record 1)  " in shown
    assert "  record 1 in A, 1 in B\n" in diff(file, file).stdout


def test_a_file_named_diff_can_be_audited(sides: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "diff").write_bytes(sides[0].read_bytes())
    assert summary("diff", cwd=tmp_path)["records"] == 40
    assert "Missing argument 'A'" in diff().stderr
