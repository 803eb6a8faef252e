"""Files that appear whole or not at all, and locks of folders, also where the file system has none."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lzsampler import LzsError
from lzsampler.util import cores, files
from lzsampler.util.cores import physical_cores, usable_cores
from lzsampler.util.files import (
    LOCKS,
    TemporaryFolder,
    locked,
    remove_leftovers,
    replacing,
    unfinished,
    whole,
    whole_of,
)

HOLD = """
import sys
from pathlib import Path
from lzsampler.util.files import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_as_a_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    path.chmod(0o640)

    def fail() -> None:
        with replacing(path, durable=durable) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["f"])
    with replacing(path, durable=durable) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert (path.read_text(), path.stat().st_mode & 0o777, os.listdir(tmp_path)) == ("new", 0o640, ["f"])
    with pytest.raises(LzsError, match=r"cannot write .*: it is a folder"), replacing(tmp_path):
        pass


WRITE = """
import sys
from pathlib import Path
from lzsampler.util.files import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no locks that the system gives up")
def test_what_a_killed_process_left_is_removed_and_nothing_of_a_running_one(tmp_path: Path) -> None:
    (tmp_path / ".lzs-notes.tmp").write_text("of a user")

    def writers(path: Path) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", WRITE, str(path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        return process

    def left() -> int:
        return len([path for path in tmp_path.glob(".lzs-*.tmp") if path.name != ".lzs-notes.tmp"])

    with writers(tmp_path / "a") as killed, writers(tmp_path / "b") as running:
        assert left() == 2
        killed.kill()
        killed.wait()
        assert left() == 2
        with replacing(tmp_path / "c") as file:  # any file of the folder
            assert left() == 2  # that of the running one, and this one
            file.write(b"new")
        assert left() == 1
        running.communicate(timeout=60)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        ".lzs-notes.tmp": b"of a user", "b": b"half", "c": b"new"
    }  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="no locks that the system gives up")
def test_many_at_once_never_take_a_file_from_each_other(tmp_path: Path) -> None:
    """Between the making of a file and its lock, another one may take it for a leftover."""
    code = """
import sys
from pathlib import Path
from lzsampler.util.files import replacing
for n in range(200):
    with replacing(Path(sys.argv[1]), durable=False) as file:
        file.write(str(n).encode())
"""
    commands = [[sys.executable, "-c", code, str(tmp_path / str(i))] for i in range(4)]
    for process in [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]:
        assert process.communicate(timeout=120)[1] == ""
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {str(i): "199" for i in range(4)}


def test_links_and_folders_of_such_names_stay(tmp_path: Path) -> None:
    with unfinished(tmp_path / "x") as part:
        name = part.name
    (tmp_path / "kept").touch()
    (tmp_path / name).symlink_to(tmp_path / "kept")
    (tmp_path / name.replace("-", "-0", 2)).mkdir()
    remove_leftovers(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_that_may_not_be_written_to_is_replaced_and_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch(0o444)
    with replacing(path) as file:
        file.write(b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o444)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of Unix")
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o666, 0o755, 0o2775, 0o4755, 0o444])
def test_a_replaced_file_keeps_its_permissions_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "f"
    path.touch()
    path.chmod(mode)
    before = os.umask(0o077)
    try:
        with replacing(path) as file:
            file.write(b"new")
            (part,) = tmp_path.glob("*.tmp")
            assert part.stat().st_mode & 0o077 & ~mode == 0  # nobody can read it meanwhile who could not before
    finally:
        os.umask(before)
    assert (path.read_bytes(), path.stat().st_mode & 0o7777) == (b"new", mode)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="needs root")
def test_a_replaced_file_keeps_its_owner_or_loses_the_bits_that_mean_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.touch()
    os.chown(path, 12345, 54321)
    path.chmod(0o6755)
    with replacing(path) as file:
        file.write(b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (12345, 54321, 0o6755)

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refused)  # as for a user who may write to the folder
    with replacing(path) as file:
        file.write(b"newer")
    status = path.stat()
    assert (status.st_uid, status.st_mode & 0o7777) == (0, 0o755)


def test_an_error_of_the_block_is_none_of_writing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none"), replacing(tmp_path / "f"):
        (tmp_path / "none").open()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_error_of_writing_is_one_line_wherever_it_shows() -> None:
    message = r"^cannot write /dev/full: No space left on device$"
    with pytest.raises(LzsError, match=message), replacing("/dev/full") as file:
        file.write(b"x")  # it shows at the end
    with pytest.raises(LzsError, match=message), replacing("/dev/full") as file:
        file.write(b"x" * 100_000)


@pytest.mark.skipif(sys.platform == "win32", reason="no locks that the system gives up")
def test_a_temporary_folder_outlives_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "of-a-user").mkdir()
    code = """
import os, signal, sys, tempfile
from lzsampler.util.files import TemporaryFolder
tempfile.tempdir = sys.argv[1]
folder = TemporaryFolder()
(folder.path / "f").write_text("x")
if not os.fork():  # its end is not that of its parent
    folder.close()
    sys.exit()
os.wait()
assert (folder.path / "f").exists()
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""
    for how, left in (("killed", 1), ("killed", 1), ("ended", 0)):
        subprocess.run([sys.executable, "-c", code, str(tmp_path), how], check=how == "ended")
        assert len(list(tmp_path.glob(".lzs-*"))) == left
    with TemporaryFolder() as one, TemporaryFolder() as another:
        assert one.is_open
        assert one.path.stat().st_mode & 0o777 == 0o700
        assert one.path != another.path
        remove_leftovers(tmp_path)
        assert one.path.exists()
    assert not one.is_open
    assert os.listdir(tmp_path) == ["of-a-user"]


def test_another_process_that_holds_the_folder_is_named_as_the_reason(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        message = f"another process is using {tmp_path}: wait until it ends, or stop it"
        with pytest.raises(LzsError) as error, locked(tmp_path):
            pass
        assert str(error.value) == message
        holder.kill()
    with locked(tmp_path):
        pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """As Lustre and some NFS mounts: the folder can be used, by one process at a time, and nothing stays locked."""
    fcntl = pytest.importorskip("fcntl")
    with locked(tmp_path):  # from a time when it had locks
        pass

    def no_locks(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    for _ in range(2):
        with locked(tmp_path):
            assert {"lock-soft"} <= set(os.listdir(tmp_path)) <= LOCKS
            with pytest.raises(LzsError, match="another process is using"), locked(tmp_path):
                pass


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LzsError, match=r"cannot write to .*: (Not a directory|File exists)"), locked(tmp_path / "file"):
        pass


def test_a_file_without_an_end_is_not_read_until_memory_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MOST", 1000)
    exact = tmp_path / "exact"
    exact.write_bytes(b"x" * 1000)
    assert whole(exact) == b"x" * 1000
    with pytest.raises(LzsError, match=r"^/dev/zero is larger than 1 GiB: split it, or give another file$"):
        whole("/dev/zero")
    with pytest.raises(LzsError, match=r"^stdin is larger than 1 GiB"), open("/dev/zero", "rb") as stream:
        whole_of(stream, "stdin")


def test_cores() -> None:
    assert 1 <= physical_cores() <= usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cgroups are of Linux")
@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "250000 100000"}, 2),
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/", {"cpu.max": "max 100000"}, 8),
        ("0::/", {"cpu.max": "9900000 100000"}, 8),
        ("0::/a/b", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "300000 100000", "cpu.max": "max 100000"}, 3),
        ("0::/outside/the/container", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "nonsense"}, 8),
        ("0::/", {}, 8),
        ("4:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ("4:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ("4:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "300000"}, 8),
        ("4:cpu:/a\n0::/", {"cpu/a/cpu.cfs_quota_us": "500000", "cpu/a/cpu.cfs_period_us": "250000"}, 2),
        ("5:cpuset:/\n", {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ("damaged", {"cpu.max": "200000 100000"}, 8),
        (None, {"cpu.max": "200000 100000"}, 8),
    ],
)
def test_cores_are_not_more_than_the_quota_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, membership: str | None, files: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(1000, 1008)))  # cores without siblings
    monkeypatch.setattr(cores, "ROOT", tmp_path, raising=False)
    for name, text in {f"sys/fs/cgroup/{name}": text for name, text in files.items()}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    if membership is not None:
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(membership + "\n")
    assert usable_cores() == physical_cores() == expected
