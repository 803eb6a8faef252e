"""liblzsampler_preload.so in programs that link to the installed libllama, and in programs that do not."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import Params, Sampler, _ffi
from lzsampler.llama.vocabulary import Vocabulary, with_token_classes
from lzsampler.models import default_model
from lzsampler.params import PRESETS
from native import ROOT, compiler, llama_cpp_version, llama_include, run
from reference_lz import tokens_in

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="LD_PRELOAD of glibc")

SPM = ROOT / "tests" / "vectors" / "ggml-vocab-llama-spm.gguf"
UNIT = [1000, 1001, 1002, 1003, 1004, 1005, 1006]
HISTORY = [*UNIT, *UNIT, *UNIT[:-1]]
ON = "lzsampler: on: preset default, penalty 0.3, run penalty 0.5 after 32 tokens, history generated; llama.cpp "


@pytest.fixture(scope="session")
def library() -> Path:
    path = Path(str(_ffi.__file__)).parent / "liblzsampler_preload.so"
    assert path.exists()
    return path


@pytest.fixture(scope="session")
def folder() -> Path:
    """The folder of the installed libllama.so."""
    llama_cpp_version()
    import llama_cpp

    return Path(llama_cpp.__file__).parent / "lib"


def build(source: Path, to: Path, *words: str | Path) -> Path:
    run([compiler(), "-D_GNU_SOURCE", "-Wall", "-Wextra", "-g", source, "-o", to, *words], to.parent)
    return to


@pytest.fixture(scope="session")
def program(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("preload") / "program"
    words = [f"-I{llama_include()}", f"-L{folder}", "-lllama", f"-Wl,-rpath,{folder}", "-lpthread"]
    return build(ROOT / "tests" / "c" / "preload_program.c", to, *words)


class Runs:
    """Runs programs with the library preloaded."""

    def __init__(self, library: Path, program: Path) -> None:
        self.library, self.program = library, program

    def __call__(self, *commands: str, settings: Any = None, words: list[str] | None = None, **more: str) -> Any:
        environment = {**os.environ, "LD_PRELOAD": str(self.library), **more}
        environment.pop("LZSAMPLER", None)
        if settings is not None:
            environment["LZSAMPLER"] = settings if isinstance(settings, str) else json.dumps(settings)
        command = words or [str(self.program), str(SPM), *commands]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def preloaded(library: Path, program: Path) -> Runs:
    return Runs(library, program)


def accept(tokens: list[int]) -> str:
    return "accept=" + ",".join(map(str, tokens))


def rows(text: str) -> list[dict[int, float]]:
    *lines, last = text.splitlines()
    assert last == "done"
    return [{int(token): float(x) for token, x in (pair.split(":") for pair in line.split())} for line in lines]


def edits(
    accepted: list[int], vocabulary: Path = SPM, prompt: list[int] | None = None, **settings: Any
) -> dict[int, float]:
    """What `Sampler` does to logits of 0."""
    source = Vocabulary(vocabulary)
    params = with_token_classes(source, Params(**settings))
    sampler = Sampler(source.n_vocab, params)
    if prompt:
        sampler.prime(prompt)
    for token in accepted:
        sampler.accept(token)
    x = sampler.process(np.zeros(source.n_vocab, np.float32))
    return {int(token): float(x[token]) for token in np.flatnonzero(x)}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("history", ["generated", "all"])
def test_the_penalties_are_those_of_the_sampler(preloaded: Runs, preset: str, history: str) -> None:
    long = HISTORY * 12
    done = preloaded(
        "new=x", accept(long[:50]), "apply", accept(long[50:]), "apply", settings={"preset": preset, "history": history}
    )
    prompt, both = rows(done.stdout)
    settings = {**PRESETS[preset], "history": history}
    assert prompt == edits([], prompt=long[:50], **settings)
    assert both == edits(long[50:], prompt=long[:50], **settings)
    assert both


def test_numbers_of_the_process_and_of_a_request(preloaded: Runs) -> None:
    def one(marker: str, settings: Any = None) -> dict[int, float]:
        done = preloaded(f"new=x;{marker}", "apply", accept(HISTORY), "apply", settings=settings)
        return rows(done.stdout)[1]

    plain = edits(HISTORY, **PRESETS["default"])
    assert one("") == plain
    twice = edits(HISTORY, lz_penalty=0.6, lz_run_penalty=0.5)
    assert one("", {"penalty": 0.6}) == one('lzs:{"penalty": 0.6}') == twice
    assert one('lzs:{"preset": "default"}', {"version": 1, "penalty": 0.6}) == plain
    assert one('lzs:{"penalty": 0}') == one("", {"penalty": 0}) == {}
    long = HISTORY * 6
    done = preloaded("new=x", "apply", accept(long), "apply", settings={"preset": "guard", "run_allowance": 3})
    assert rows(done.stdout)[1] == edits(long, **{**PRESETS["guard"], "lz_run_allowance": 3})


def test_all_samplers_are_of_one_kind(preloaded: Runs) -> None:
    """llama.cpp copies state between samplers of one kind only."""
    done = preloaded("new=x", "name", 'new=lzs:{"penalty": 0}', "name", "copy", "name", "dry=0.8", "new=x", "name")
    assert done.stdout.split() == [*["dry+lz"] * 4, "done"]


@pytest.mark.parametrize("marker", ['{"penalty": 0}', '{"preset": "paper"}', '{"history": "all"}', '{"penalty": 2}'])
def test_a_copy_also_has_the_settings(preloaded: Runs, marker: str) -> None:
    made = [f"new=lzs:{marker}", accept(UNIT), "apply", accept(HISTORY), "apply"]
    done = preloaded(*made, "copy", "apply", accept(UNIT), "apply")
    again = preloaded(*made, accept(UNIT), "apply")
    first, second, copied, later = rows(done.stdout)
    assert [first, second, later] == rows(again.stdout)
    assert copied == second


@pytest.mark.parametrize("settings", ['{"strict": true, "presets": "guard"}', '{"strict": 1}'])
def test_strict_ends_a_program_whose_settings_cannot_be_read(preloaded: Runs, settings: str) -> None:
    done = preloaded("new=x", settings=settings)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith('; "strict" ends the program\n')


def test_a_request_cannot_forge_lines_of_the_log(preloaded: Runs) -> None:
    done = preloaded('new=lzs:{"\nlzsampler: off": 1}', 'new=lzs:{"\x1b[31mred": 1}')
    assert done.stderr.count("\n") == 3
    assert "\x1b" not in done.stderr


def test_no_breakers(preloaded: Runs) -> None:
    done = preloaded("new=", "apply", accept(HISTORY), "apply")
    assert rows(done.stdout)[1] == edits(HISTORY, **PRESETS["default"])


def test_clones_copies_and_resets(preloaded: Runs) -> None:
    commands = [
        "new=x",
        "apply",
        accept(HISTORY),
        "clone",
        "apply",
        "copy",
        "apply",
        "reset",
        "apply",
        accept(HISTORY),
        "apply",
    ]
    after = edits(HISTORY, **PRESETS["default"])
    assert rows(preloaded(*commands).stdout) == [{}, after, after, {}, after]
    assert rows(preloaded("dry=0.8", *commands).stdout) == [
        {},
        after,
        after,
        {},
        after,
    ]  # DRY's clone calls the same function


def test_dry_keeps_its_breakers_and_its_penalty(preloaded: Runs, library: Path) -> None:
    commands = ["dry=0.8", "new=x;y", "apply", accept(HISTORY), "apply"]
    plain = rows(
        subprocess.run([preloaded.program, SPM, *commands], capture_output=True, text=True, check=True).stdout
    )[1]
    both = rows(preloaded(*commands, settings={"penalty": 1}).stdout)[1]
    ours = edits(HISTORY, lz_penalty=1, lz_run_penalty=0.5)
    assert both == {
        token: pytest.approx(plain.get(token, 0) + ours.get(token, 0), abs=1e-5) for token in {*plain, *ours}
    }


def test_another_model_has_other_separators(preloaded: Runs) -> None:
    tale = default_model()
    spm_set, tale_set = (
        tokens_in(with_token_classes(Vocabulary(path), Params(lz_penalty=1)).lz_separators) for path in (SPM, tale)
    )
    letters = [token for token in range(300, 400) if token not in spm_set | tale_set][:6]
    breaks = min(token for token in tale_set - spm_set if token >= 200)  # in the second vocabulary only
    unit = [*letters[:3], breaks, *letters[3:]]
    history = [*unit, *unit, *unit[:-1]]
    made = ["new=x", "apply", accept(history), "apply"]
    expected = edits(history, tale, **PRESETS["default"])
    commands = [*made, f"model={tale}", *made, f"model={SPM}", *made]
    spm = edits(history, **PRESETS["default"])
    assert rows(preloaded(*commands).stdout) == [{}, spm, {}, expected, {}, spm]
    assert spm != expected


def test_threads(preloaded: Runs) -> None:
    assert rows(preloaded("threads=8").stdout) == []


def test_a_child_does_not_wait_for_a_thread_of_its_parent(preloaded: Runs) -> None:
    assert preloaded("forks=60").returncode == 0


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ("", "it is not a JSON object"),
        ("x", "it is not a JSON object"),
        ('{"markers": false', "it is not a JSON object"),
        ('{"penalty": 1} x', "it is not a JSON object"),
        ('{"penalty": NaN}', "it is not a JSON object"),
        ('{"penalty": [1]}', "it is not a JSON object"),
        ('{"penalty": 1,}', "it is not a JSON object"),
        ({"version": 2}, "version must be 1"),
        ({"preset": "strong"}, 'preset must be "default", "guard" or "paper"'),
        ({"preset": 1}, 'preset must be "default", "guard" or "paper"'),
        ({"history": "some"}, 'history must be "generated" or "all"'),
        ({"penalty": -1}, "penalty must be a number from 0 to 100"),
        ({"penalty": 1e5}, "penalty must be a number from 0 to 100"),
        ({"run_allowance": 1.5}, "run_allowance must be a whole number from 0 to 131072"),
        ({"strength": 1}, "strength is not a key: use preset, penalty, run_allowance, history, markers, strict"),
        ({"a" * 5000: 1}, "it is not a JSON object"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_read_switch_it_off(preloaded: Runs, settings: Any, line: str) -> None:
    done = preloaded("new=x", "apply", accept(HISTORY), "apply", settings=settings)
    assert rows(done.stdout) == [{}, {}]
    assert done.stderr.startswith(f"lzsampler: off: LZSAMPLER: {line}")
    assert done.stderr.count("\n") == 1


def test_a_marker_that_cannot_be_read_leaves_the_settings_of_the_process(preloaded: Runs) -> None:
    for marker, line in [
        ("lzs:", "it is not a JSON object of strings, numbers, true and false"),
        ('lzs:{"penalty": 101}', "penalty must be a number from 0 to 100"),
        ('lzs:{"strict": true}', "strict is not a key: use preset, penalty, run_allowance, history"),
    ]:
        done = preloaded(f"new={marker}", "apply", accept(HISTORY), "apply")
        assert rows(done.stdout)[1] == edits(HISTORY, **PRESETS["default"])
        assert done.stderr.splitlines()[1] == f"lzsampler: a request's marker was ignored: {line}"
    done = preloaded('new=lzs:{"penalty": 0}', "apply", accept(HISTORY), "apply", settings={"markers": False})
    assert rows(done.stdout)[1] == edits(HISTORY, **PRESETS["default"])
    assert '"markers": false' in done.stderr


def test_a_decimal_comma_of_the_program_does_not_matter(preloaded: Runs) -> None:
    done = preloaded("new=x", "apply", accept(HISTORY), "apply", settings={"penalty": 0.6}, LC_ALL="de_DE.UTF-8")
    assert rows(done.stdout)[1] == edits(HISTORY, lz_penalty=0.6, lz_run_penalty=0.5)


# ---- programs that it must not touch ----


@pytest.mark.parametrize("bind", ["", "1"])
@pytest.mark.parametrize(
    "words", [["sh", "-c", "echo $0"], ["python3", "-c", "print(1)"], ["git", "--version"], ["true"]], ids=str
)
def test_programs_without_llama_cpp_do_not_notice(preloaded: Runs, words: list[str], bind: str) -> None:
    if not shutil.which(words[0]):
        pytest.skip(f"no {words[0]}")
    plain = subprocess.run(words, capture_output=True, text=True, check=True)
    done = preloaded(words=words, settings="x", **({"LD_BIND_NOW": bind} if bind else {}))
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr)


def test_it_needs_the_c_library_alone_and_shows_one_function(library: Path) -> None:
    nm = shutil.which("nm")
    if not nm:
        pytest.skip("no nm")
    symbols = [line.split() for line in run([nm, "-D", library], library.parent).splitlines()]
    assert [name for *_, kind, name in symbols if kind in "TDBVi"] == ["llama_sampler_init_dry"]
    undefined = [name for *_, kind, name in symbols if kind == "U"]
    assert undefined
    assert all("@GLIBC_" in name for name in undefined), undefined


def test_a_program_that_makes_no_dry_sampler_says_so(preloaded: Runs) -> None:
    done = preloaded()
    assert done.stdout == "done\n"
    assert done.stderr == (
        "lzsampler: no penalties: llama.cpp was loaded, but this process made no chain with DRY. "
        "Leave dry in --samplers\n"
    )
    assert preloaded("new=x").stderr.startswith(ON)


# ---- other libllamas ----

OTHER = r"""
#include <stddef.h>
#include <stdlib.h>
struct sampler { const void *iface; void *ctx; };
struct sampler *llama_sampler_init_dry(const void *v, float m, float b, int a, int p, const char **s, size_t n) {
    (void)v, (void)m, (void)b, (void)a, (void)p, (void)s, (void)n;
    return calloc(1, sizeof(struct sampler));
}
"""
CALLER = r"""
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
void *llama_sampler_init_dry(const void *v, float m, float b, int a, int p, const char **s, size_t n);
int main(void) {
    const char *breakers[] = {"x"};
    printf("%s\n", llama_sampler_init_dry(breakers, 0, 0, 0, 0, breakers, 1) ? "made" : "none");
    return 0;
}
"""


def test_a_libllama_that_lacks_functions_switches_it_off(preloaded: Runs, tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text(OTHER, encoding="utf-8")
    (tmp_path / "caller.c").write_text(CALLER, encoding="utf-8")
    build(tmp_path / "other.c", tmp_path / "libllama.so", "-shared", "-fPIC")
    caller = build(tmp_path / "caller.c", tmp_path / "caller", tmp_path / "libllama.so", f"-Wl,-rpath,{tmp_path}")
    done = preloaded(words=[str(caller)])
    why = "this llama.cpp lacks functions that lzsampler needs: it is too old or too new"
    assert (done.returncode, done.stdout, done.stderr) == (0, "made\n", f"lzsampler: off: {why}\n")
    done = preloaded(words=[str(caller)], settings={"strict": True})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f'lzsampler: {why}; "strict" ends the program\n'


THROWS = r"""
#include <cstddef>
extern "C" void *llama_sampler_init_dry(const void *, float, float, int, int, const char **, size_t) { throw 7; }
"""
CATCHES = r"""
#include <cstddef>
#include <cstdio>
extern "C" void *llama_sampler_init_dry(const void *, float, float, int, int, const char **, size_t);
int main() {
    const char *breakers[] = {"x"};
    try {
        llama_sampler_init_dry(nullptr, 0, 0, 0, 0, breakers, 1);
    } catch (int caught) {
        std::printf("%d\n", caught);
    }
}
"""


def test_an_exception_of_llama_cpp_passes(preloaded: Runs, tmp_path: Path) -> None:
    cxx = shutil.which("c++") or shutil.which("g++") or pytest.skip("no c++")
    (tmp_path / "throws.cpp").write_text(THROWS, encoding="utf-8")
    (tmp_path / "catches.cpp").write_text(CATCHES, encoding="utf-8")
    run([cxx, "-shared", "-fPIC", tmp_path / "throws.cpp", "-o", tmp_path / "libllama.so"], tmp_path)
    run(
        [cxx, tmp_path / "catches.cpp", tmp_path / "libllama.so", f"-Wl,-rpath,{tmp_path}", "-o", tmp_path / "catches"],
        tmp_path,
    )
    done = preloaded(words=[str(tmp_path / "catches")])
    assert (done.returncode, done.stdout) == (0, "7\n")


PLUGIN_HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return puts(dlerror()), 1;
    return ((int (*)(int, char **))dlsym(plugin, "plugin_main"))(argc - 1, argv + 1);
}
"""


def test_a_plugin_that_links_to_llama_cpp(preloaded: Runs, folder: Path, tmp_path: Path) -> None:
    """libllama is not among the libraries of the program itself."""
    (tmp_path / "host.c").write_text(PLUGIN_HOST, encoding="utf-8")
    words = [
        f"-I{llama_include()}",
        f"-L{folder}",
        "-lllama",
        f"-Wl,-rpath,{folder}",
        "-lpthread",
        "-Dmain=plugin_main",
    ]
    plugin = build(ROOT / "tests" / "c" / "preload_program.c", tmp_path / "plugin.so", "-shared", "-fPIC", *words)
    host = build(tmp_path / "host.c", tmp_path / "host", "-ldl")
    done = preloaded(words=[str(host), str(plugin), str(SPM), "new=x", "apply", accept(HISTORY), "clone", "apply"])
    assert rows(done.stdout)[1] == edits(HISTORY, **PRESETS["default"])
