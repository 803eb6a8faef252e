"""What SIGINT, SIGTERM, SIGHUP and SIGKILL leave of a command: whole files, an exit status, and no temporary copies."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")

LZS = str(Path(sys.executable).with_name("lzs"))
ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
TEXT = "Whatever is said here is said once more, and then it is said again, in other words. "


@contextmanager
def running(*arguments: object, temporary: Path, **settings: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A command in a session of its own, with a folder for its temporary files; it is killed at the end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [LZS, *map(str, arguments)]
    with subprocess.Popen(command, start_new_session=True, env=environment, **pipes) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def records(path: Path, n: int = 30_000) -> Path:
    row = json.dumps({"messages": [{"role": "assistant", "content": TEXT * 5}]}) + "\n"
    path.write_text(row * n)
    return path


def size(folder: Path) -> int:
    """Return how many bytes the files of a folder have, which others may remove meanwhile."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.path.getsize(os.path.join(where, name))
    return total


def gone(session: int) -> bool:
    """Return whether no process of a session is left."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return True
    return False


# -- temporary copies --


@pytest.mark.parametrize(("number", "status"), ENDS)
@pytest.mark.parametrize("late", [False, True])
def test_an_audit_of_stdin_leaves_no_copy(tmp_path: Path, number: int, status: int, late: bool) -> None:
    """Neither while it is made, nor once workers read it."""
    data = records(tmp_path / "t.jsonl")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with running("audit", "-", "--workers", 2, temporary=temporary) as process:
        assert process.stdin is not None
        process.stdin.write(data.read_bytes())
        process.stdin.flush()
        if late:
            process.stdin.close()
            process.stdin = None
            wait_for(lambda: len(list(temporary.glob("*/*"))) > 2)  # the copy, and what the audit writes
        else:
            wait_for(lambda: size(temporary) > 1_000_000)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, list(temporary.iterdir())) == (status, []), errors
        assert b"Traceback" not in errors
        wait_for(lambda: gone(process.pid))


def test_what_a_killed_audit_left_goes_with_the_next_but_nothing_of_a_running_one(tmp_path: Path) -> None:
    data = records(tmp_path / "t.jsonl", 5000).read_bytes()
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    @contextmanager
    def begun() -> Iterator["subprocess.Popen[bytes]"]:
        there = set(temporary.iterdir())
        with running("audit", "-", "--json", "--workers", 1, temporary=temporary) as process:
            assert process.stdin is not None
            process.stdin.write(data)
            process.stdin.flush()
            wait_for(lambda: size(temporary) > 0 and set(temporary.iterdir()) - there)
            yield process

    for _ in range(3):
        with begun() as killed:
            killed.kill()
            killed.wait()
        assert len(list(temporary.iterdir())) == 1  # the one before is gone
    with begun() as one, begun() as another:
        assert len(list(temporary.iterdir())) == 2  # that of the killed one is gone
        for process in (one, another):
            out, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            assert json.loads(out)["records"] == 5000
    assert list(temporary.iterdir()) == []


# -- stdout that nobody reads --


@pytest.fixture
def full_pipe() -> Iterator[tuple[int, int]]:
    """A pipe that takes no more, and stays open: (its end to read from, its end to write to)."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    yield reader, writer
    os.close(reader)
    os.close(writer)


def is_full(writer: int) -> bool:
    return not select.select([], [writer], [], 0)[1]


@pytest.mark.parametrize(("number", "status"), ENDS)
def test_a_text_that_nobody_reads_ends_at_the_first_signal(
    tmp_path: Path, full_pipe: tuple[int, int], number: int, status: int
) -> None:
    pytest.importorskip("llama_cpp")
    reader, writer = full_pipe
    os.read(reader, 8192)  # room for the beginning of the text
    saved = tmp_path / "t.jsonl"
    flags = ("-n", "-1", "-c", "4096", "--temp", "1.5", "--seed", "1", "--ignore-eos", "--save", saved)
    with running("generate", "Once", *flags, temporary=tmp_path, stdout=writer) as process:
        wait_for(lambda: is_full(writer))
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == status, errors
    (row,) = saved.read_text().splitlines()
    text = json.loads(row)["messages"][-1]["content"]
    os.set_blocking(reader, False)
    printed = b""
    while True:
        try:
            printed += os.read(reader, 1 << 16)
        except BlockingIOError:
            break
    printed = printed.lstrip(b"x ")
    assert len(printed) > 1000
    assert text.encode().startswith(printed)


@pytest.mark.parametrize(("number", "status"), ENDS)
def test_a_table_that_nobody_reads(tmp_path: Path, full_pipe: tuple[int, int], number: int, status: int) -> None:
    data = records(tmp_path / "t.jsonl", 10)
    with running("audit", data, temporary=tmp_path, stdout=full_pipe[1]) as process:
        time.sleep(2)
        assert process.poll() is None
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode == status


def test_an_error_that_nobody_reads(tmp_path: Path, full_pipe: tuple[int, int]) -> None:
    with running("audit", tmp_path / "none", temporary=tmp_path, stderr=full_pipe[1]) as process:
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130


# -- other commands --


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
@pytest.mark.parametrize(("number", "status"), ENDS)
@pytest.mark.parametrize(
    "command",
    [
        ("demo", "-n", 4000),
        ("eval", "--grid", "quick", "-o", "work"),
        ("cost", "texts"),
        ("spec-check", "-md", "tale-1m"),
        ("bench", "-n", 900, "--rounds", 1000),
        ("generate", "--prompts", "prompts", "--json"),
    ],
    ids=lambda command: command[0],
)
def test_a_command_ends(tmp_path: Path, command: tuple[object, ...], number: int, status: int) -> None:
    pytest.importorskip("llama_cpp")
    (tmp_path / "texts").mkdir()
    for i in range(200):
        (tmp_path / "texts" / f"{i}.txt").write_text(TEXT * 50 + str(i))
    (tmp_path / "prompts").write_text("".join(f'{{"prompt": "Once {i}"}}\n' for i in range(200)))
    (tmp_path / "tmp").mkdir()
    with running(*command, temporary=tmp_path / "tmp", cwd=tmp_path) as process:
        wait_for(lambda: b"libllama" in Path(f"/proc/{process.pid}/maps").read_bytes())
        time.sleep(1.5)
        assert process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        wait_for(lambda: gone(process.pid))
    assert process.returncode == status, errors
    assert b"Traceback" not in errors
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(("number", "status"), ENDS[1:])
def test_a_conversation_ends_with_its_answer_saved(tmp_path: Path, number: int, status: int) -> None:
    """Ctrl-C ends the answer only."""
    pytest.importorskip("llama_cpp")
    saved = tmp_path / "t.jsonl"
    flags = ("-n", -1, "--ignore-eos", "--temp", 1, "--save", saved)
    with running("generate", "-cnv", *flags, "Once", temporary=tmp_path) as process:
        assert process.stdout is not None
        begun = os.read(process.stdout.fileno(), 1)  # communicate() leaves out what a buffer would have read
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == status, errors
    (row,) = saved.read_text().splitlines()
    answer = json.loads(row)["messages"][-1]
    parts = [*filter(None, [answer.get("reasoning_content")]), answer["content"]]
    assert "".join(parts) == (begun + rest).decode().replace("</think>", "", len(parts) - 1).strip()


def test_what_a_signal_cut_off_is_printed_as_far_as_somebody_reads() -> None:
    """Ctrl-C in the flush of the last piece of a text lost that piece."""
    code = (
        "import sys\n"
        "from lzsampler.cli import main\n"
        "def run(_):\n"
        "    sys.stdout.write('the end')\n"
        "    raise KeyboardInterrupt\n"
        "main._run = run\n"
        "main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"the end", b"")


def test_ctrl_c_at_an_empty_prompt_ends_its_line(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with running("generate", "-cnv", temporary=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while not shown.endswith(b"> "):
            shown += os.read(ours, 1000)
        for _ in range(12):  # CPython's input() loses a signal that comes between its prompt and its wait for a key
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
                break
        shown += os.read(ours, 1000)
        os.close(ours)
    assert process.returncode == 130
    assert shown.endswith(b"> \r\n")
