"""`lzs run`: what it executes, what it refuses, and what --dry-run says of a program."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lzsampler import _ffi
from lzsampler.errors import ArgumentError, LzsError
from native import compiler

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD of glibc")

LZS = str(Path(sys.executable).with_name("lzs"))
LIBRARY = Path(str(_ffi.__file__)).with_name("liblzsampler_preload.so")
LIBLLAMA = """
#define PUBLIC __attribute__((visibility(VISIBILITY)))
PUBLIC void *llama_sampler_init_dry(void) { return 0; }
const char *llama_version(void) { return "9.1"; }
"""
CALLS = "void *llama_sampler_init_dry(void); int main(void) { return llama_sampler_init_dry() != 0; }"
VARIABLES = "import os; print(os.environ['LD_PRELOAD'], os.environ['LZSAMPLER'])"


def lzs(*arguments: object, **changed: str) -> "subprocess.CompletedProcess[str]":
    left_out = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LD_PRELOAD", "LZSAMPLER")
    env = {**{name: value for name, value in os.environ.items() if name not in left_out}, **changed}
    command = [LZS, "run", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=env, stdin=subprocess.DEVNULL)


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Compile a program from C."""

    def built(name: str, source: str, *words: str | Path) -> Path:
        code = tmp_path / f"{name}.c"
        code.write_text(source)
        subprocess.run([compiler(), code, "-o", tmp_path / name, *words], check=True, capture_output=True, timeout=60)
        return tmp_path / name

    return built


@pytest.fixture
def libllama(build: Callable[..., Path]) -> Callable[..., Path]:
    """A libllama with nothing but two functions, and a program that calls one of them."""

    def made(visibility: str = "default", *words: str, source: str = CALLS) -> Path:
        shared = ("-shared", "-fPIC", f'-DVISIBILITY="{visibility}"', "-Wl,-soname,libllama.so.0", *words)
        library = build("libllama.so.0.9.1", LIBLLAMA, *shared)
        (library.parent / "libllama.so.0").symlink_to(library.name)
        allows = "-Wl,--unresolved-symbols=ignore-all"
        return build("server", source, "-Wl,--no-as-needed", library, f"-Wl,-rpath,{library.parent}", allows)

    return made


# -- what is executed --


def test_the_program_gets_the_variables_its_arguments_and_gives_its_status() -> None:
    code = f"{VARIABLES}; import sys; print(sys.argv[1:]); sys.exit(7)"
    done = lzs("--", sys.executable, "-c", code, "--preset", "-h", "--")
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout == f"{LIBRARY} {{\"version\": 1}}\n['--preset', '-h', '--']\n"


def test_two_dashes_may_be_left_out() -> None:
    done = lzs("--preset", "guard", "echo", "-n", "--dry-run")
    assert (done.returncode, done.stdout) == (0, "--dry-run")


def test_what_is_preloaded_already_stays_after_ours() -> None:
    other = "/nonexistent/other.so"
    done = lzs(sys.executable, "-c", VARIABLES, LD_PRELOAD=f"{other} {LIBRARY}", LZSAMPLER='{"penalty": 9}')
    assert done.stdout == f'{LIBRARY}:{other} {{"version": 1}}\n'


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--preset", "default", "--history", "generated"], {}),
        (["--preset", "paper"], {"preset": "paper"}),
        (["--lz-penalty", "0"], {"penalty": 0}),
        (["--lz-penalty", "0.25", "--lz-run-allowance", "131072"], {"penalty": 0.25, "run_allowance": 131072}),
        (["--lz-run-allowance", "0", "--history", "all"], {"run_allowance": 0, "history": "all"}),
        (["--strict", "--no-markers"], {"strict": True, "markers": False}),
    ],
)
def test_only_what_differs_from_the_defaults_is_set(options: list[str], settings: dict[str, Any]) -> None:
    done = lzs(*options, "--", sys.executable, "-c", VARIABLES)
    assert json.loads(done.stdout.split(" ", 1)[1]) == {"version": 1, **settings}


def test_v_prints_the_variables() -> None:
    done = lzs("-v", "--strict", "true")
    assert done.stderr == f'lzs: LD_PRELOAD={LIBRARY}\nlzs: LZSAMPLER={{"version": 1, "strict": true}}\n'


def test_lzs_becomes_the_program_and_signals_are_as_it_expects() -> None:
    """Python ignores SIGPIPE, and a program would inherit that: `yes | head` then complains."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = [LZS, "run", "sh", "-c", "echo $$; grep SigIgn /proc/$$/status"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    said = process.communicate(timeout=60)[0].split()
    assert int(said[0]) == process.pid
    assert not int(said[2], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


def test_a_script_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "a script"
    script.write_text("#!/bin/sh -e\necho $LZSAMPLER $1\n")
    script.chmod(0o755)
    assert lzs(script, "x").stdout == '{"version": 1} x\n'
    assert lzs("a script", "x", PATH=f"{tmp_path}:{os.environ['PATH']}").stdout == '{"version": 1} x\n'


# -- what is refused --


def refused(*arguments: object, **changed: str) -> str:
    done = lzs(*arguments, **changed)
    assert (done.returncode, done.stdout) == (2, "")
    said = done.stderr.removesuffix("Try 'lzs run --help' for help.\n")
    assert said.startswith("lzs: ")
    assert said.count("\n") == 1
    return said.removeprefix("lzs: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "lzs run takes a program: lzs run -- llama-server -m model.gguf"),
        (["--"], "lzs run takes a program: lzs run -- llama-server -m model.gguf"),
        ([""], "the program's name is empty: give a name on PATH, or a path"),
        (["llama-servr"], "llama-servr is not on PATH: give the path of the program"),
        (["./nosuch"], "./nosuch does not exist: give the path of a program"),
        (["/"], "/ is not a file: give the path of a program"),
        (["/etc/passwd"], "/etc/passwd is not executable: give the path of a program, or run chmod +x /etc/passwd"),
        (["--lz-penalty", "101", "true"], "--lz-penalty must be from 0 to 100, got 101.0"),
        (["--lz-penalty", "-0.1", "true"], "--lz-penalty must be from 0 to 100, got -0.1"),
        (["--lz-penalty", "nan", "true"], "--lz-penalty must be finite, got nan"),
        (["--lz-penalty", "much", "true"], "--lz-penalty must be a number, got 'much'"),
        (["--lz-run-allowance", "131073", "true"], "--lz-run-allowance must be from 0 to 131072, got 131073"),
        (["--lz-run-allowance", "1.5", "true"], "--lz-run-allowance must be a whole number, got '1.5'"),
        (["--lz-window", "9", "true"], "No such option '--lz-window'."),
        (["--stict", "true"], "No such option '--stict'. Did you mean '--strict'?"),
        (
            ["--preset", "paper", "--lz-run-allowance", "9", "true"],
            "--lz-run-allowance has no effect with --preset paper, which has another rule: leave it out",
        ),
        (
            ["--lz-penalty", "0", "--lz-run-allowance", "9", "true"],
            "--lz-run-allowance has no effect with --lz-penalty 0, which turns all penalties off: leave one out",
        ),
    ],
)
def test_wrong_arguments_have_one_line(arguments: list[str], said: str) -> None:
    assert refused(*arguments) == said


def test_a_preset_that_does_not_exist() -> None:
    assert refused("--preset", "none", "true").startswith("Invalid value for '--preset': 'none' is not one of ")


def test_a_static_program(build: Callable[..., Path]) -> None:
    try:
        program = build("program", "int main(void) { return 0; }", "-static")
    except subprocess.CalledProcessError:
        pytest.skip("no static libc")
    assert refused(program) == (
        f"{program} is linked statically, so no library can be preloaded: use a build with shared libraries "
        "(cmake -DBUILD_SHARED_LIBS=ON)"
    )
    assert refused("--dry-run", program) == refused(program)


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        ("/lib/ld-musl-x86_64.so.1", "and the library needs glibc: use a build for glibc"),
        ("/lib/ld-linux-nosuch.so.1", "which does not exist: use a build for this system"),
    ],
)
def test_another_loader(build: Callable[..., Path], loader: str, said: str) -> None:
    program = build("program", "int main(void) { return 0; }", f"-Wl,--dynamic-linker={loader}")
    assert refused(program) == f"{program} is loaded by {loader}, {said}"


@pytest.mark.parametrize("bit", [0o4000, 0o2000], ids=["setuid", "setgid"])
def test_a_setuid_program(tmp_path: Path, bit: int) -> None:
    program = tmp_path / "program"
    shutil.copy(shutil.which("true") or "", program)
    program.chmod(0o755 | bit)
    said = "is setuid or setgid, so Linux ignores LD_PRELOAD: start a copy without these bits"
    assert refused(program) == f"{program} {said}"
    script = tmp_path / "script"
    script.write_text(f"#!{program}\n")
    script.chmod(0o4755)  # Linux ignores the bit of a script
    assert refused(script) == f"{script} is a script, and its interpreter {program} {said}"
    script.write_text("#!/bin/sh\n")
    assert lzs(script).returncode == 0


def test_file_capabilities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lzsampler.serving.program import find_program

    program = tmp_path / "program"
    shutil.copy(shutil.which("true") or "", program)
    setcap = shutil.which("setcap", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if setcap and subprocess.run([setcap, "cap_net_bind_service=ep", program], capture_output=True).returncode == 0:
        said = refused(program)
    else:  # without root's rights
        monkeypatch.setattr(os, "getxattr", lambda *_: b"\x01")
        with pytest.raises(LzsError) as caught:
            find_program(str(program))
        said = str(caught.value)
    assert said == f"{program} has file capabilities, so Linux ignores LD_PRELOAD: start a copy without them"


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("#!/nosuch/sh\n", "is a script whose first line names /nosuch/sh, which does not exist: mend that line"),
        ("#!\n", "is a script whose first line names no interpreter: mend that line"),
        ("echo hi\n", "is neither a program that Linux can load nor a script that begins with #!: give another"),
        ("", "is neither a program that Linux can load nor a script that begins with #!: give another"),
        ("\x7fELF", "is neither a program that Linux can load nor a script that begins with #!: give another"),
    ],
)
def test_files_that_linux_does_not_execute(tmp_path: Path, first: str, said: str) -> None:
    program = tmp_path / "program"
    program.write_text(first)
    program.chmod(0o755)
    assert refused(program) == f"{program} {said}"


def test_scripts_that_interpret_each_other(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).write_text(f"#!{tmp_path / other}\n")
        (tmp_path / name).chmod(0o755)
    said = "is a script that a script interprets, and so on: Linux executes no such program"
    assert refused(tmp_path / "a").endswith(said)


def test_a_program_for_another_machine(tmp_path: Path) -> None:
    data = bytearray(Path(shutil.which("true") or "").read_bytes())
    data[18:20] = (183).to_bytes(2, "little")  # EM_AARCH64
    program = tmp_path / "program"
    program.write_bytes(data)
    program.chmod(0o755)
    if os.uname().machine == "x86_64":
        assert refused(program) == (
            f"{program} is for AArch64, 64 bits, and this lzsampler for x64, 64 bits: use a program for this machine"
        )


def test_damaged_programs_have_one_line(tmp_path: Path) -> None:
    """pyelftools raises whatever the damage leads to; an error of ours once blamed the preloaded library."""
    from lzsampler.serving.program import find_program

    whole = Path(shutil.which("true") or "").read_bytes()
    program = tmp_path / "program"
    program.touch(0o755)
    program.chmod(0o755)
    rng = random.Random(7)
    refusals = []
    for _ in range(300):
        data = bytearray(whole[: rng.choice([len(whole), rng.randrange(len(whole))])])
        for _ in range(rng.randrange(6)):
            if data:
                data[rng.randrange(min(len(data), 800))] = rng.randrange(256)
        program.write_bytes(data)
        try:
            find_program(str(program))
        except LzsError as error:
            refusals.append(str(error))
    assert 50 < len(refusals) < 300
    assert all(said.startswith(f"{program} ") for said in refusals)


def test_a_folder_that_ld_preload_cannot_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lzsampler.serving import preloading

    folder = tmp_path / "my programs"
    folder.mkdir()
    monkeypatch.setattr(_ffi, "__file__", str(folder / "_ffi.abi3.so"))
    with pytest.raises(LzsError, match=r"liblzsampler_preload\.so is missing, which needs Linux with glibc: install"):
        preloading.preload_library()
    (folder / LIBRARY.name).touch()
    with pytest.raises(LzsError, match=r"LD_PRELOAD cannot name .*: install lzsampler in a folder without spaces"):
        preloading.preload_library()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(LzsError, match=r"on Linux only: here use `lzs serve --server llama_cpp\.server`$"):
        preloading.preload_library()


def test_settings_are_checked_as_c_checks_them() -> None:
    from lzsampler.serving.preloading import PreloadSettings

    for wrong in ({"preset": "none"}, {"lz_penalty": 100.1}, {"lz_run_allowance": -1}):
        with pytest.raises(ArgumentError):
            PreloadSettings(**wrong)
    assert PreloadSettings(lz_penalty=0).keywords() == {"lz_penalty": 0, "lz_run_penalty": 0.0, "history": "generated"}


# -- --dry-run --


def rows(done: "subprocess.CompletedProcess[str]") -> dict[str, str]:
    assert done.stderr == ""
    *lines, last = done.stdout.splitlines()
    return {**dict(line.split("  ", 1) for line in lines), "last": last}


def test_dry_run_of_a_program_with_libllama(libllama: Callable[..., Path], tmp_path: Path) -> None:
    program = libllama()
    found = rows(done := lzs("--dry-run", "--preset", "guard", "--", program, "--port", "9"))
    assert done.returncode == 0
    assert {name: value.strip() for name, value in found.items()} == {
        "program": str(program),
        "dynamic loader": found["dynamic loader"].strip(),
        "LD_PRELOAD": str(LIBRARY),
        "LZSAMPLER": '{"version": 1, "preset": "guard"}',
        "libllama": str(tmp_path / "libllama.so.0.9.1"),
        "version": "0.9.1, with llama_version",
        "llama_sampler_init_dry": "can be replaced",
        "-Bsymbolic": "no",
        "called by": "server",
        "last": "works: its calls of llama_sampler_init_dry come to lzsampler",
    }
    assert lzs("-q", "--dry-run", program).stdout == f"{found['last']}\n"


def test_dry_run_does_not_run_the_program(build: Callable[..., Path], tmp_path: Path) -> None:
    made = tmp_path / "made"
    program = build("program", f'#include <stdio.h>\nint main(void) {{ fopen("{made}", "w"); return 0; }}')
    assert lzs("--dry-run", program).returncode == 1
    assert not made.exists()
    assert lzs(program).returncode == 0
    assert made.exists()


def test_bsymbolic_of_libllama_does_not_matter_to_its_callers(libllama: Callable[..., Path]) -> None:
    program = libllama("default", "-Wl,-Bsymbolic")
    found = rows(done := lzs("--dry-run", program))
    assert (done.returncode, found["-Bsymbolic"].strip()) == (0, "yes")


def cannot(program: object, **changed: str) -> str:
    done = lzs("--dry-run", program, **changed)
    assert (done.returncode, done.stderr) == (1, "")
    last = done.stdout.splitlines()[-1]
    assert last.startswith("cannot work: ")
    return last.removeprefix("cannot work: ")


def test_programs_that_would_have_no_penalties(
    libllama: Callable[..., Path], build: Callable[..., Path], tmp_path: Path
) -> None:
    not_linked = "it is not linked with libllama; programs that it starts may be: try those"
    assert cannot("true") == not_linked
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert cannot(script) == not_linked
    inside = build("inside", f'#define VISIBILITY "default"\n{LIBLLAMA}int main(void) {{ return 0; }}')
    said = "it has llama.cpp inside (linked statically): use a build with shared libraries"
    assert cannot(inside) == said
    assert cannot(build("exports", inside.with_suffix(".c").read_text(), "-rdynamic")) == said


def test_a_libllama_whose_function_is_hidden(libllama: Callable[..., Path]) -> None:
    assert cannot(libllama("hidden")) == (
        "this libllama has no llama_sampler_init_dry that other files can call: use another build of llama.cpp"
    )


def test_a_program_that_makes_no_chain(libllama: Callable[..., Path]) -> None:
    said = "nothing in it calls llama_sampler_init_dry, so its samplers have no place for penalties"
    assert cannot(libllama(source="int main(void) { return 0; }")) == said


def test_a_libllama_that_is_not_found(libllama: Callable[..., Path], tmp_path: Path) -> None:
    program = libllama()
    (tmp_path / "libllama.so.0").unlink()
    assert cannot(program) == "libllama.so.0 cannot be found: set LD_LIBRARY_PATH to its folder"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libllama.so.0").symlink_to(tmp_path / "libllama.so.0.9.1")
    found = rows(lzs("--dry-run", program, LD_LIBRARY_PATH=str(tmp_path / "lib"), LD_VERBOSE="1"))
    assert found["last"].startswith("works: ")


def test_a_library_that_the_loader_cannot_preload(
    libllama: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lzsampler.serving import linkage as module
    from lzsampler.serving.program import find_program

    program = find_program(str(libllama()))
    environment = {**os.environ, "LD_PRELOAD": "/nonexistent.so"}
    problem = module.linkage(program, environment).problem
    assert problem is not None
    assert problem.startswith("the loader does not preload the library: ERROR: ld.so: object '/nonexistent.so' from ")


def test_the_installed_libllama(build: Callable[..., Path]) -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    folder = Path(llama_cpp.__file__).with_name("lib")
    program = build("program", CALLS, f"-L{folder}", "-lllama", f"-Wl,-rpath,{folder}")
    found = rows(done := lzs("--dry-run", program))
    assert (done.returncode, found["called by"].strip()) == (0, "program")
    assert Path(found["libllama"].strip()).parent == folder.resolve()
