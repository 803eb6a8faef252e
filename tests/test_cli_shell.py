"""What a shell and a terminal see of `lzs`: help, completion, colours, widths, exit status, the man page."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lzsampler
from lzsampler import __version__

ROOT = Path(__file__).parents[1]
LZS = str(Path(sys.executable).with_name("lzs"))
COMMANDS = (
    "generate",
    "audit",
    "diff",
    "eval",
    "run",
    "serve",
    "probe",
    "cost",
    "spec-check",
    "quantize",
    "grammar",
    "info",
    "bench",
    "demo",
    "completion",
    "help",
)


def lzs(*arguments: object, **settings: Any) -> "subprocess.CompletedProcess[str]":
    changed = settings.pop("env", {})
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    settings.setdefault("stdin", subprocess.DEVNULL)
    command = [LZS, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**plain, **changed}, **settings)


# -- help --


def test_without_arguments_the_help_comes_as_it_is() -> None:
    """It once came in one line, as an error."""
    done = lzs()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == lzs("--help").stdout
    assert done.stderr.count("\n") > 20


def test_help_by_name_is_that_of_the_option() -> None:
    for command in COMMANDS:
        done = lzs("help", command)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == lzs(command, "--help").stdout
        assert f"\n  {command} " in lzs("--help").stdout
    assert lzs("help").stdout == lzs("--help").stdout
    assert lzs("help", "nosuch").returncode == 2


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns_and_keeps_a_default_in_one_line(command: str) -> None:
    text = lzs(*([command] if command else []), "--help", env={"COLUMNS": "80"}).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "\xa0" not in text
    assert not re.search(r"\(default:$", text, re.MULTILINE)
    for jargon in ("x>=", "INTEGER", "RANGE", "FLOAT", "[default"):
        assert jargon not in text


def test_an_unknown_command_is_told_with_those_there_are() -> None:
    done = lzs("audti")
    assert done.stderr == "lzs: No such command 'audti'. Did you mean 'audit'?\nTry 'lzs --help' for help.\n"
    assert "The commands are generate, audit, " in lzs("xyzzy").stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("audit", "--wrong"), "No such option '--wrong'."),
        (("audit", "--jsn"), "No such option '--jsn'. Did you mean '--json'?"),
        (("generate", "--samplers", "top_k"), "lzs applies samplers in a fixed order (docs/command-line.md): leave"),
    ],
)
def test_only_options_that_are_alike_are_suggested(arguments: tuple[str, ...], said: str) -> None:
    done = lzs(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"lzs: {said}")
    assert "Did you mean" in said or "Did you mean" not in done.stderr


def test_python_m() -> None:
    done = subprocess.run([sys.executable, "-m", "lzsampler", "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"lzs, version {__version__}\n")


def test_help_loads_nothing_of_the_commands() -> None:
    code = (
        "import sys; sys.argv = ['lzs', '--help']\n"
        "from lzsampler.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*[name for name in sys.modules if name.startswith(('lzsampler.', 'rich', 'llama_cpp', 'secrets'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "lzsampler.cli.main" in loaded
    assert not [name for name in loaded if name.startswith(("rich", "llama_cpp", "secrets", "lzsampler.auditing"))]
    assert "lzsampler.cli.audit" not in loaded


# -- completion --


def completed(shell: str, words: str, at: int | str) -> list[str]:
    done = lzs(env={"_LZS_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str) -> None:
    done = lzs("completion", shell)
    assert done.returncode == 0
    assert f"_LZS_COMPLETE={shell}_complete" in done.stdout
    assert done.stdout.strip() == lzs(env={"_LZS_COMPLETE": f"{shell}_source"}).stdout.strip()
    assert f"lzs completion {shell}" in lzs("completion", "--help").stdout


def test_bash_completes_commands_options_files_and_choices() -> None:
    assert completed("bash", "lzs au", 1) == ["plain,audit"]
    assert {f"plain,{command}" for command in COMMANDS} <= set(completed("bash", "lzs ", 1))
    assert completed("bash", "lzs generate --lz-p", 2) == ["plain,--lz-penalty"]
    assert completed("bash", "lzs generate --save ", 3) == ["file,"]
    assert completed("bash", "lzs audit runs", 2) == ["file,runs"]
    assert completed("bash", "lzs diff a --al", 3) == ["plain,--alpha"]
    assert set(completed("bash", "lzs demo --color ", 3)) == {"plain,auto", "plain,always", "plain,never"}
    assert "plain,-hf" not in completed("bash", "lzs generate -", 2)  # refused with a hint, not offered
    assert completed("bash", "lzs help inf", 2) == ["plain,info"]


def test_zsh_and_fish_complete_too() -> None:
    assert completed("zsh", "lzs inf", 1)[:2] == ["plain", "info"]
    lines = completed("fish", "lzs audit --fail", "--fail")
    assert "\n".join(lines).count("--fail-over") == 1


def test_completion_without_a_command_line_is_an_error_in_one_line() -> None:
    for instruction in ("nosuch", "", "bash", "bash_nosuch"):
        done = lzs(env={"_LZS_COMPLETE": instruction})
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("lzs: _LZS_COMPLETE must be bash, zsh or fish with _source or _complete")
        assert done.stderr.count("\n") == 1
    for words in ({}, {"COMP_WORDS": "lzs"}, {"COMP_WORDS": "lzs", "COMP_CWORD": "x"}):
        done = lzs(env={"_LZS_COMPLETE": "bash_complete", **words})
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("lzs: there is no command line to complete: COMP_WORDS and COMP_CWORD")
        assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="needs bash")
def test_bash_itself_takes_the_script(tmp_path: Path) -> None:
    script = (
        f'export PATH="{Path(LZS).parent}:$PATH"; eval "$(lzs completion bash)"; '
        "COMP_WORDS=(lzs audit --exit); COMP_CWORD=2; _lzs_completion lzs; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "--exit-zero\n", done.stderr


# -- colours --


def looping_file(folder: Path) -> Path:
    file = folder / "t.jsonl"
    file.write_text('{"prompt": "a", "response": "%s"}\n' % ("over and over and " * 40))
    return file


@pytest.mark.parametrize(
    ("flags", "env", "colored"),
    [
        ((), {}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ((), {"FORCE_COLOR": ""}, False),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colours_where_they_are_asked_for(
    tmp_path: Path, flags: tuple[str, ...], env: dict[str, str], colored: bool
) -> None:
    done = lzs("audit", looping_file(tmp_path), "--workers", "1", *flags, env=env)
    assert done.returncode == 0, done.stderr
    assert ("\x1b[" in done.stdout) == colored


def test_the_demo_obeys_no_color() -> None:
    pytest.importorskip("llama_cpp")
    for env, bold in (({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False), ({}, False)):
        assert ("\x1b[1m" in lzs("demo", "-q", "-n", "2", env=env).stdout) == bold, env


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(
    ("env", "colored"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False)],
)
def test_colours_on_a_terminal(tmp_path: Path, env: dict[str, str], colored: bool) -> None:
    import pty

    file = looping_file(tmp_path)
    ours, theirs = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    command = [LZS, "audit", str(file), "--workers", "1"]
    with subprocess.Popen(
        command, stdout=theirs, stderr=subprocess.DEVNULL, env={**plain, "COLUMNS": "120", **env}
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    assert process.returncode == 0
    assert b"1 of 1 record loops" in shown
    assert (b"31m" in shown) == colored


def test_the_verdict_of_a_comparison_is_coloured(tmp_path: Path) -> None:
    file = looping_file(tmp_path)
    plain, colored = (lzs("diff", file, file, "--workers", "1", "--color", when).stdout for when in ("never", "always"))
    assert "no significant difference" in plain
    assert "\x1b[" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain != colored


# -- -q, -v and the exit status --


def test_every_command_has_q_v_and_color() -> None:
    for command in ("generate", "audit", "diff", "eval", "probe", "quantize", "info", "bench", "demo"):
        text = lzs(command, "--help").stdout
        for flag in ("-q, --quiet", "-v, --verbose", "--color WHEN"):
            assert flag in text, command


def test_quiet_and_verbose(tmp_path: Path) -> None:
    assert lzs("info", "-q").stdout == ""
    assert lzs("info", "-v").stderr.startswith("lzs: read the header of ")
    done = lzs("info", "-q", "-v")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "lzs: -q and -v contradict each other; give one of them",
    )
    (tmp_path / "x.gguf").write_bytes(b"no model")
    short, long = (lzs("info", *flags, tmp_path / "x.gguf") for flags in ((), ("-v",)))
    assert (short.returncode, long.returncode) == (2, 2)
    assert "Traceback" not in short.stderr
    assert "Traceback" in long.stderr
    assert long.stderr.endswith(short.stderr)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_blamed_on_whom_it_concerns(tmp_path: Path) -> None:
    """A temporary folder that was full was once reported as stdout."""
    code = (
        "import errno, tempfile\n"
        "from lzsampler.cli.main import status_of\n"
        "def full(): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "raise SystemExit(status_of(full))"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    line = f"lzs: cannot write a temporary file in {tmp_path}: No space left on device; "
    assert (done.returncode, done.stderr) == (2, line + "set TMPDIR to a folder with more room\n")
    for arguments in (["info"], ["--help"], ["completion", "zsh"]):
        with open("/dev/full", "w") as full:
            failed = subprocess.run([LZS, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert (failed.returncode, failed.stderr) == (2, "lzs: stdout: No space left on device\n"), arguments


# -- streams that cannot be written --


def shell(command: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run a command of bash, in which "$@" is lzs with its arguments."""
    words = ["/bin/bash", "-o", "pipefail", "-c", command, "bash", LZS, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="needs bash")
def test_a_closed_stdout_is_one_line(tmp_path: Path) -> None:
    file, report = looping_file(tmp_path), tmp_path / "report.csv"
    for arguments in (["audit", file], ["-h"], ["completion", "bash"]):
        done = shell('"$@" >&-', *arguments)
        line = "lzs: stdout is closed: send the output to a file, or to /dev/null\n"
        assert (done.returncode, done.stderr) == (2, line), arguments
    assert shell('"$@" <&- >&- 2>&-', "audit", file).returncode == 2
    assert shell('"$@"', "audit", "-q", file, "-o", report).returncode == 0
    expected = report.read_bytes()
    for command in ('"$@" >&-', '"$@" <&- >&- 2>&-'):  # nothing is printed, so nothing is lost
        report.unlink()
        assert shell(command, "audit", "-q", file, "-o", report).returncode == 0
        assert report.read_bytes() == expected


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_stderr_does_not_change_the_exit_status(tmp_path: Path) -> None:
    file = looping_file(tmp_path)
    for status, arguments in (
        (0, ("audit", file, "-v")),
        (1, ("audit", file, "--fail-over", "loop_rate > 0")),
        (2, ("audit", "nosuch.jsonl")),
        (2, ("info", file)),
        (2, ()),
    ):
        assert shell('"$@" 2>/dev/full', *arguments).returncode == status, arguments


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="needs bash")
def test_an_error_that_nobody_reads_is_still_an_error() -> None:
    assert shell('"$@" 2> >(:)', "diff", "a", "b", "--alpha", "nan").returncode == 2
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([LZS, "diff", "a", "b", "--alpha", "nan"], stdout=write, stderr=write, timeout=60)
    os.close(write)
    assert done.returncode == 2


def test_a_broken_pipe_that_is_not_stdout_is_an_error() -> None:
    code = (
        "from lzsampler.cli.main import status_of\n"
        "def broken(): raise BrokenPipeError(32, 'Broken pipe')\n"
        "raise SystemExit(status_of(broken))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "lzs: Broken pipe\n")


@pytest.mark.parametrize("error", ["int('x\\x1b')", "{}['a']", "recurse()", "[].pop()", "1 / 0", "None.x"])
def test_a_mistake_of_ours_shows_where_it_is(error: str) -> None:
    """The mistake was a one-line error of the user, or had the exit status of a limit that is exceeded."""
    code = (
        "from lzsampler.cli.main import status_of\n"
        "def recurse(): return recurse()\n"
        f"def mistaken(): {error}\n"
        "raise SystemExit(status_of(mistaken))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" in done.stderr
    assert "in mistaken" in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("lzs: this is a bug in lzs 0.")
    assert last.endswith(": please report it with the lines above")
    assert "\x1b" not in done.stderr


def test_no_value_of_an_argument_is_a_plain_error() -> None:
    """`lzs` takes a plain ValueError for a mistake of its own."""
    for path in Path(lzsampler.__file__).parent.rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert not re.search(r"raise ValueError\(", line), f"{path}:{number}: raise an ArgumentError"


def test_json_that_is_nested_too_deeply_is_one_line(tmp_path: Path) -> None:
    done = shell('"$@"', "audit", looping_file(tmp_path), "--resume", tmp_path / "done")
    assert done.returncode == 0, done.stderr
    path = tmp_path / "done" / "audit.json"
    path.write_text("[" * 200_000)
    done = lzs("diff", tmp_path / "done", tmp_path / "done")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "audit.json is damaged: delete the folder and audit again" in done.stderr


# -- the man page --


def test_the_man_page_is_current() -> None:
    script = ROOT / "docs" / "make_man.py"
    if not script.exists():
        pytest.skip("needs a checkout")
    done = subprocess.run([sys.executable, str(script), "--print"], capture_output=True, text=True, check=True)
    assert done.stdout == (ROOT / "docs" / "lzs.1").read_text(encoding="utf-8"), "run python docs/make_man.py"
