"""c/README.md and the README's section for C: every block runs as printed; the llama.cpp program writes our text."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

import numpy as np
import pytest

from native import PATH, ROOT, check_example, compiler, llama_include, run, tool, valgrind

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler import (  # noqa: E402 (needs llama_cpp)
    Params,
    Sampler,
    separators_of,
    sequence_seed,
)
from lzsampler.auditing.repetition import repetition  # noqa: E402
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402
from lzsampler.models import default_draft, default_model  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = re.search(r"^## In a C or C\+\+ program\n.*?(?=^## |\Z)", README, re.DOTALL | re.MULTILINE)
PAGES = {"c/README.md": (ROOT / "c" / "README.md").read_text(encoding="utf-8")}
if SECTION:
    PAGES["README.md"] = SECTION[0]

HEADERS = [ROOT / "c" / "include" / f"lzsampler{name}.h" for name in ("", "_grammar")]
HEADER = "".join(path.read_text(encoding="utf-8") for path in HEADERS)
PROGRAM = (ROOT / "c" / "llama_example.c").read_text(encoding="utf-8")
LOOP = "\n".join(line[7:] for line in re.findall(r"^ \*(?:     .*)$", HEADER.partition(" */")[0], re.MULTILINE)) + "\n"

LOOPING = "Still Sunday said nothing, but only"  # story-035 of lzsampler/models/prompts.jsonl
ENDING = "<|user|>What is 14 times 2?<|assistant|><think>"  # few tokens, then EOG
N_PREDICT = 256


class Block(NamedTuple):
    page: str
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The name in its first line, when the block is a file."""
        name = re.match(r"(?:/\*|//|#) ([\w/]+\.(?:c|cpp|txt))\b", self.text)
        return name[1] if name and self.language != "sh" else None


def blocks(page: str, text: str) -> list[Block]:
    return [Block(page, *found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]


BLOCKS = [block for page, text in PAGES.items() for block in blocks(page, text)]
COMMANDS = [block for block in BLOCKS if block.language == "sh"]
CODE = [block for block in BLOCKS if block.language not in ("sh", "text")]  # "text" is a picture


def environment(tmp: Path) -> dict[str, str]:
    """With an installed llama.cpp in $LLAMA: the libraries that llama_cpp loads, and their headers."""
    prefix = tmp / "llama"
    if not prefix.exists():
        spec = importlib.util.find_spec("llama_cpp")
        assert spec
        assert spec.origin
        include = llama_include()
        prefix.mkdir()
        (prefix / "include").symlink_to(include)
        (prefix / "lib").symlink_to(Path(spec.origin).parent / "lib")
    # one thread: the model is too small for more, and libgomp's threads outlive main, which valgrind calls a leak
    return {**os.environ, "PATH": PATH, "LLAMA": str(prefix), "OMP_THREAD_LIMIT": "1"}


def tools(commands: str) -> set[str]:
    """What commands need that a machine may lack."""
    return {"cc", "c++", "cmake", "pkg-config"} & set(re.split(r"[\s$()]+", commands))


class Reader:
    """Somebody who follows the pages from the top, in a copy of the tree, and gives no command twice."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._done: dict[str, subprocess.CompletedProcess[bytes]] = {}
        shutil.copytree(ROOT / "c", tree / "c")
        shutil.copytree(ROOT / "tests" / "c", tree / "tests" / "c")
        shutil.copy(ROOT / "CMakeLists.txt", tree)
        (tree / "lzsampler").symlink_to(ROOT / "lzsampler")
        for block in BLOCKS:
            if block.file:
                (tree / block.file).parent.mkdir(exist_ok=True)
                (tree / block.file).write_text(block.text, encoding="utf-8")

    def run(self, block: Block) -> subprocess.CompletedProcess[bytes]:
        """Run those above this block that have not run, then this block; skip the test where a tool is missing."""
        for text in dict.fromkeys(command.text for command in COMMANDS):
            if text == block.text:
                for name in tools(text):
                    tool(name)
            if text not in self._done and all(shutil.which(name, path=PATH) for name in tools(text)):
                self._done[text] = subprocess.run(
                    ["sh", "-eu", "-c", text],
                    cwd=self.tree,
                    env=environment(self.tree),
                    capture_output=True,
                    timeout=300,
                )
            if text == block.text:
                break
        return self._done[block.text]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def ours() -> Iterator[Callable[[str, float], str]]:
    """What `lzsampler.generate` writes: (prompt, LZ strength) -> text.

    With flash attention, which sums in another order, where llama.cpp turns it on by itself: llama-cpp-python does not.
    """
    flash = getattr(llama_cpp.llama_context_default_params(), "flash_attn_type", 0) != 0
    with Model(default_model(), n_threads=1, flash_attn=flash) as model:

        @cache
        def text(prompt: str, strength: float) -> str:
            params = Params(temperature=0.0, lz_penalty=strength)
            return generate(model, prompt, GenerationConfig(params, max_tokens=N_PREDICT)).text

        yield text


def test_the_blocks_are_found() -> None:
    assert LOOP.startswith("lzs_params params;")
    assert LOOP.endswith("lzs_sampler_free(sampler);\n")
    assert len(COMMANDS) >= 7


def texts_of_single_calls() -> str:
    """What batch.c of the page prints, from samplers with backends of their own that are asked one row at a time."""
    lines = []
    for i in range(3):
        params = Params(lz_penalty=0.15, history="all", top_k=20, seed=sequence_seed(42, i))
        sampler = Sampler(40, params)
        sampler.prime([3, 1, 4, 1, 5])
        tokens = [5]
        for _ in range(12):
            tokens.append(sampler.sample(((np.arange(40) * 7 + tokens[-1] * 11) % 40 / 8).astype(np.float32)))
            sampler.accept(tokens[-1])
        lines.append(" ".join(map(str, tokens[1:])) + "\n")
    assert len(set(lines)) == 3
    return "".join(lines)


@pytest.mark.parametrize("block", COMMANDS, ids=lambda b: f"{b.page}-{b.text.splitlines()[-1][:40]}")
def test_commands(block: Block, reader: Reader, ours: Callable[[str, float], str]) -> None:
    done = reader.run(block)
    output = done.stdout.decode()
    assert done.returncode == 0, output + done.stderr.decode()
    program = next(word for word in block.text.splitlines()[-1].split() if "=" not in word).split("/")[-1]
    if program == "example":
        check_example("\n".join(output.splitlines()[-2:]))
    elif program == "llama_example":
        assert output == ours(LOOPING, 0.15)
    elif "./repeats" in block.text:
        assert output == " on and on and on and on\n"
    elif program == "batch":
        assert output == texts_of_single_calls()
    elif program == "replay":
        written, read = output.splitlines()
        assert written == read
        assert int(written) in range(1000)
        assert (reader.tree / "step.plan").stat().st_size > 250  # it has edits
    elif program == "pick":
        tokens = output.split()
        assert len(tokens) == 8
        assert set(tokens) == {"1", "2"}


@pytest.mark.parametrize("block", CODE, ids=lambda b: b.text.splitlines()[0])
def test_code(block: Block) -> None:
    """A block of code is a file that a command builds, or an excerpt of one that is built."""
    if block.file:
        words = " ".join(b.text for b in COMMANDS if b.page == block.page)
        assert block.file.removesuffix("/CMakeLists.txt") in words
    else:
        assert block.text == LOOP or indent(block.text, "    ") in PROGRAM


@pytest.mark.parametrize("page", PAGES)
def test_links(page: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGES[page]):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name
        assert path.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles], target


FLAGS = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'c' / 'include'}"]
FOLDERS = ("state", "penalty", "constraint", "plan", "backend", "verify")  # of the sampler's library
SOURCES = [ROOT / "c" / "sampler.c", *(path for name in FOLDERS for path in sorted((ROOT / "c" / name).glob("*.c")))]


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The library, compiled as its files stand."""
    folder = tmp_path_factory.mktemp("objects")
    run([compiler(), *FLAGS, "-c", *SOURCES], folder)
    return list(folder.glob("*.o"))


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast"])
def test_fast_math_is_refused(flag: str, tmp_path: Path) -> None:
    """In every file that computes: the page promises an error of the compiler."""
    files = [path for path in SOURCES if path.parent.name == "backend" and path.name not in ("dispatch.c", "sort.c")]
    assert len(files) > 5
    for path in files:
        command = [compiler(), *FLAGS[:1], flag, "-Wno-deprecated", FLAGS[-1], "-fsyntax-only", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode != 0, path
        assert "lzsampler needs IEEE arithmetic" in done.stderr


def run_driver(source: str, folder: Path, *more: Path) -> None:
    """Build and run a program of the tests' own, around code of the page."""
    (folder / "driver.c").write_text(source, encoding="utf-8")
    run([compiler(), *FLAGS, "driver.c", *more, "-lm", "-o", "driver"], folder)
    run([folder / "driver"], folder)


def test_the_loop_runs(objects: list[Path], tmp_path: Path) -> None:
    """Over a model that fails, by a NaN, when it is asked for its 60th row."""
    source = f"""
#include <math.h>
#include <lzsampler.h>
static int rows;
static const float *next_logits(void) {{
    static float row[8];
    for (int t = 0; t < 8; t++) row[t] = (float)t;
    if (++rows == 60) row[0] = NAN;
    return row;
}}
static int decode(int32_t n_vocab) {{
{LOOP}
    return 0;
}}
int main(void) {{ return decode(8) || rows != 60; }}
"""
    run_driver(source, tmp_path, *objects)


PIECES = ["a", " b", "\n", "(", "9", ",", " .", '",', "),", " ", "", "é", "-", "d,", "==", "''", "7,"]


def test_the_default_is_python_s(objects: list[Path], tmp_path: Path) -> None:
    """Its separators are those of Python, and a text of one pattern is found to loop."""
    default = next(block for block in BLOCKS if block.file == "default.c")
    (tmp_path / "default.c").write_text(default.text, encoding="utf-8")
    sets = separators_of(PIECES)
    separators, commas = (int.from_bytes(sets[name], "little") for name in ("lz_separators", "lz_commas"))
    source = f"""
#include <lzsampler.h>
lzs_status new_default(int32_t n_vocab, const char *const *pieces, lzs_sampler **sampler);
int main(void) {{
    static const char *const pieces[] = {{{", ".join(json.dumps(piece, ensure_ascii=False) for piece in PIECES)}}};
    lzs_sampler *sampler;
    if (new_default({len(PIECES)}, pieces, &sampler) != LZS_OK) return 1;
    lzs_params params;
    lzs_params_init(&params);
    if (lzs_sampler_params(sampler, &params) != LZS_OK || params.n_lz_separators != 1) return 2;
    if (params.lz_separators[0] != {separators}u || params.lz_commas[0] != {commas}u) return 3;
    lzs_loop loop;
    for (int i = 0; i < 200; i++) lzs_accept(sampler, i % 8);
    if (!lzs_loop_found(sampler, &loop) || loop.period != 8) return 4;
    lzs_sampler_free(sampler);
    return 0;
}}
"""
    run_driver(source, tmp_path, tmp_path / "default.c", *objects)


def test_edits_are_the_penalties(objects: list[Path], tmp_path: Path) -> None:
    """penalize() of the page leaves the row that lzs_process leaves at temperature 1."""
    edits = next(block for block in BLOCKS if block.file == "edits.c")
    (tmp_path / "edits.c").write_text(edits.text, encoding="utf-8")
    source = """
#include <string.h>
#include <lzsampler.h>
void penalize(lzs_sampler *sampler, float *row);
int main(void) {
    enum { N = 100 };
    lzs_params params;
    lzs_params_init(&params);
    params.lz_penalty = 0.15f;
    params.repetition_penalty = 1.3f;
    params.frequency_penalty = 0.2f;
    lzs_sampler *sampler;
    if (lzs_sampler_new(N, &params, &sampler) != LZS_OK) return 1;
    for (int i = 0; i < 90; i++) lzs_accept(sampler, i * i % 31);
    float as_came[N], one[N], other[N];
    for (int t = 0; t < N; t++) as_came[t] = one[t] = other[t] = (float)(t * 37 % N) / 8 - 5;
    penalize(sampler, one);
    if (lzs_process(sampler, other, other) != LZS_OK) return 2;
    lzs_sampler_free(sampler);
    if (memcmp(one, as_came, sizeof one) == 0) return 3;
    return memcmp(one, other, sizeof one) != 0;
}
"""
    run_driver(source, tmp_path, Path("edits.c"), *objects)


def test_a_mask_allows_some_tokens(objects: list[Path], tmp_path: Path) -> None:
    """allow_only() of the page leaves the tokens that it was given, and takes over from the mask before it."""
    mask = next(block for block in BLOCKS if block.file == "mask.c")
    (tmp_path / "mask.c").write_text(mask.text, encoding="utf-8")
    source = """
#include <lzsampler.h>
lzs_status allow_only(lzs_sampler *sampler, const int32_t *tokens, size_t n);
int main(void) {
    enum { N = 100 };
    static const int32_t some[] = {0, 31, 32, 99}, one[] = {64};
    lzs_params params;
    lzs_params_init(&params);
    lzs_sampler *sampler;
    if (lzs_sampler_new(N, &params, &sampler) != LZS_OK) return 1;
    float row[N] = {0}, probabilities[N];
    int32_t ids[N];
    size_t n;
    if (allow_only(sampler, some, 4) != LZS_OK) return 2;
    if (lzs_distribution(sampler, row, ids, probabilities, N, &n) != LZS_OK || n != 4) return 3;
    for (int i = 0; i < 4; i++) {
        if (ids[i] != some[i] || probabilities[i] != 0.25f) return 4;
    }
    if (allow_only(sampler, one, 1) != LZS_OK) return 5;
    if (lzs_distribution(sampler, row, ids, probabilities, N, &n) != LZS_OK || n != 1 || ids[0] != 64) return 6;
    if (allow_only(sampler, one, 0) != LZS_OK || lzs_sample(sampler, row, ids) != LZS_EMASKED) return 7;
    lzs_sampler_free(sampler);
    return 0;
}
"""
    run_driver(source, tmp_path, Path("mask.c"), *objects)


# ---- the llama.cpp program ----


@pytest.mark.parametrize("command", [["cc", "-std=c11"], ["c++", "-x", "c++", "-std=c++11"]], ids=lambda c: c[0])
def test_the_program_is_c_and_cxx(command: list[str], tmp_path: Path) -> None:
    includes = [f"-I{ROOT / 'c' / 'include'}", "-isystem", str(llama_include())]
    run(
        [
            tool(command[0]),
            *command[1:],
            "-Wall",
            "-Wextra",
            "-Werror",
            *includes,
            "-fsyntax-only",
            ROOT / "c" / "llama_example.c",
        ],
        tmp_path,
    )


@pytest.fixture(scope="module")
def program(reader: Reader) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Runs what the page's own command built; `under` goes before it."""
    reader.run(next(block for block in COMMANDS if "c/llama_example.c" in block.text))

    def start(*arguments: object, under: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
        command = [*under, "./llama_example", *map(str, arguments)]
        return subprocess.run(command, cwd=reader.tree, env=environment(reader.tree), capture_output=True, timeout=300)

    return start


Program = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.mark.parametrize("strength", [0.0, 0.15])
@pytest.mark.parametrize("prompt", [LOOPING, ENDING], ids=["looping", "ending"])
def test_same_text_as_ours(prompt: str, strength: float, program: Program, ours: Callable[[str, float], str]) -> None:
    done = program(default_model(), prompt, strength)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    text = done.stdout.decode()
    assert text
    assert text == ours(prompt, strength)
    if prompt == LOOPING:
        assert repetition(text).loops == (strength == 0.0)


def test_the_penalty_is_on_by_default(program: Program, ours: Callable[[str, float], str]) -> None:
    assert program(default_model(), LOOPING).stdout.decode() == ours(LOOPING, 0.15)


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        ([], 2, "usage: "),
        (["model.gguf"], 2, "usage: "),
        (["model.gguf", "x", "0.1", "more"], 2, "usage: "),
        (["model.gguf", "x", ""], 2, "usage: "),
        (["model.gguf", "x", "0.1x"], 2, "usage: "),
        (["model.gguf", "x", "-1"], 2, "usage: "),
        (["model.gguf", "x", "nan"], 2, "usage: "),
        (["model.gguf", "x", "inf"], 2, "usage: "),
        (["nowhere.gguf", "x"], 1, "cannot load the model"),
        (["CMakeLists.txt", "x"], 1, "cannot load the model"),
        ([ROOT / "tests" / "vectors" / "ggml-vocab-llama-spm.gguf", "x"], 1, "cannot load the model"),
        ([default_draft(), ""], 1, "the prompt has no tokens"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[object], status: int, complaint: str, program: Program) -> None:
    done = program(*arguments)
    assert done.returncode == status
    assert done.stdout == b""
    assert complaint in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_text_that_cannot_be_written(program: Program) -> None:
    done = program(default_draft(), "x", under=("sh", "-c", '"$@" > /dev/full', "sh"))
    assert done.returncode == 1
    assert done.stderr == b"llama_example: the text cannot be written\n"


@pytest.mark.parametrize("prompt", [ENDING, ""], ids=["ending", "no prompt"])
@pytest.mark.usefixtures("program")
def test_valgrind(prompt: str, reader: Reader) -> None:
    """No error and no leak, with a text and where it fails half-way."""
    command: list[str | Path] = ["./llama_example", default_draft(), prompt, "0.15"]
    done = valgrind(command, "--error-exitcode=99", "--leak-check=full", cwd=reader.tree, **environment(reader.tree))
    assert done.returncode == (0 if prompt else 1), done.stderr
