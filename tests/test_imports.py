"""Who may know whom: what `import lzsampler` loads, what it exports, and the layers of the source."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lzsampler

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "lzsampler").rglob("*.py"))
COMMANDS = sorted((ROOT / "cli").rglob("*.py"))
SOURCES = sorted(
    path
    for folder in ("c", "lzsampler", "cli", "tests", "bench")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".pyi", ".c", ".h", ".cpp", ".cu", ".cuh")
)
MAX_LINES = 1000


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def modules_after(code: str) -> set[str]:
    code = f"import sys, json; {code}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_import_loads_next_to_nothing() -> None:
    loaded = modules_after("import lzsampler")
    assert {name for name in loaded if name.startswith("lzsampler.")} == {
        "lzsampler._ffi", "lzsampler._ffi.lib", "lzsampler.errors"
    }  # fmt: skip
    assert "numpy" not in loaded


def test_a_sampler_loads_numpy_and_nothing_heavier() -> None:
    loaded = modules_after("from lzsampler import Params, Sampler")
    packages = {name.partition(".")[0] for name in loaded}
    assert "numpy" in packages
    assert not packages & {"click", "llama_cpp", "torch", "transformers", "scipy", "cffi", "pycparser", "ctypeslib"}
    assert not packages & {"rich", "jinja2", "markupsafe", "httpx"}
    inside = {name for name in loaded if name.startswith("lzsampler.")}
    core = ("_check", "_ffi", "_ffi.lib", "_values", "detection", "errors", "params", "sampler", "util", "util.in_use")
    assert inside == {f"lzsampler.{name}" for name in core}


def test_help_loads_no_numpy() -> None:
    loaded = modules_after("import lzsampler.cli.generate, lzsampler.cli.audit, lzsampler.cli.main")
    assert "lzsampler.params" in loaded
    assert not loaded & {"numpy", "rich", "jinja2", "markupsafe", "httpx"}


def test_every_penalty_of_c_is_in_the_list() -> None:
    """A file that is not named there would compile, and do nothing."""
    listed = re.findall(r"#define LZS_PENALTIES\(X\) (.*)", (ROOT / "c/penalty/penalty.h").read_text(encoding="utf-8"))
    defined = [
        name
        for path in sorted((ROOT / "c/penalty").glob("*.c"))
        for name in re.findall(
            r"^const lzs_penalty lzs_penalty_(\w+) = ", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert sorted(re.findall(r"X\((\w+)\)", listed[0])) == sorted(defined)


def test_exports_are_pinned() -> None:
    classes = [
        "Costs",
        "GenerationConfig",
        "Grammar",
        "Loop",
        "LoopPolicy",
        "LzsError",
        "Model",
        "Params",
        "RepetitionDetection",
        "Report",
        "Results",
        "Rules",
        "Sampler",
        "Spelling",
    ]
    classes += ["Stuck", "StuckDetection", "TokenBytes"]
    functions = ["attach", "audit", "audit_files", "audit_texts", "compare", "cost", "evaluate", "generate", "lz_bits"]
    functions += ["probe", "quantize", "save", "separators_of", "sequence_seed", "table"]
    assert lzsampler.__all__ == ["STOP_ON_LOOP", "STOP_ON_STUCK", *classes, "__version__", *functions]
    assert all(hasattr(lzsampler, name) for name in lzsampler.__all__)
    assert set(lzsampler.__all__) <= set(dir(lzsampler))
    assert issubclass(lzsampler.LzsError, RuntimeError)
    with pytest.raises(AttributeError, match="module 'lzsampler' has no attribute 'audits'"):
        _ = lzsampler.audits


def run(code: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_without_llama_cpp_every_name_can_be_looked_up_and_says_what_to_install(tmp_path: Path) -> None:
    """`hasattr`, `inspect.getmembers` and an import of all names raised LzsError."""
    code = """
import inspect, sys
sys.modules["llama_cpp"] = None
import lzsampler
from lzsampler import *
from lzsampler import attach
assert all(hasattr(lzsampler, name) for name in dir(lzsampler))
assert {"attach", "evaluate", "audit"} <= {name for name, _ in inspect.getmembers(lzsampler)}
assert not audit("abc " * 9).looping and Results.__name__ == "Results"
for name in ("Model", "attach", "evaluate", "generate"):
    try:
        getattr(lzsampler, name)("model.gguf")
    except ImportError as error:
        assert isinstance(error, LzsError)
        print(error)
for statement in ("from lzsampler.dropin import attach", "import lzsampler.dropin.attachment"):
    try:
        exec(statement)
    except ImportError as error:
        print(error)
"""
    done = run(
        code, tmp_path
    )  # from there the lzsampler that is installed is imported, also where the checkout has no extension
    assert done.returncode == 0, done.stderr
    assert done.stdout == "llama-cpp-python is needed for this: pip install llama-cpp-python\n" * 6


def test_without_the_extension_one_line_says_what_to_run(tmp_path: Path) -> None:
    """A checkout shadows an installed lzsampler: the error was "No module named 'lzsampler._ffi'"."""
    package = tmp_path / "lzsampler"
    package.mkdir()
    for path in (ROOT / "lzsampler").glob("*.py"):
        (package / path.name).write_bytes(path.read_bytes())
    done = run(
        f"import sys; sys.meta_path[:] = sys.meta_path[-3:]; sys.path[:0] = [{str(tmp_path)!r}]; import lzsampler"
    )
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: the C extension of lzsampler is not built in {tmp_path}: run `pip install -e .` there, "
        "or start Python in another folder to use the lzsampler that is installed"
    )


def test_versions_agree() -> None:
    from lzsampler._ffi import ffi, lib

    assert ffi.string(lib.lzs_version()).decode() == lzsampler.__version__
    numbers = (lib.LZS_VERSION_MAJOR, lib.LZS_VERSION_MINOR, lib.LZS_VERSION_PATCH)
    assert ".".join(map(str, numbers)) == lzsampler.__version__
    assert f'\nversion = "{lzsampler.__version__}"\n' in (ROOT / "pyproject.toml").read_text()
    assert f"project(lzsampler VERSION {lzsampler.__version__} " in (ROOT / "CMakeLists.txt").read_text()


def imported(nodes: list[ast.stmt]) -> Iterator[str]:
    """Modules that statements import where they stand: in if and try too, in functions not."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level
            yield from [dots + node.module] if node.module else [dots + alias.name for alias in node.names]
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imported([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)])


def imports_of(path: Path, everywhere: bool) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if everywhere:
        return {name for node in ast.walk(tree) if isinstance(node, ast.stmt) for name in imported([node])}
    return set(imported(tree.body))


def test_the_scan_sees_what_it_should(tmp_path: Path) -> None:
    module = tmp_path / "m.py"
    module.write_text(
        "import a\nif a:\n  from b.c import d\ntry:\n  from .e import f\nfinally:\n  0\ndef g():\n  import h\n"
    )
    assert imports_of(module, everywhere=False) == {"a", "b.c", ".e"}
    assert imports_of(module, everywhere=True) == {"a", "b.c", ".e", "h"}


@pytest.mark.parametrize(
    ("package", "owner"),
    [
        ("llama_cpp", "llama/binding"),
        ("torch", "integrations/hf"),
        ("transformers", None),
        ("httpx", "probing/client"),
        ("jinja2", "reports/page"),
        ("elftools", None),
        ("vllm", "integrations/vllm"),
        ("sglang", "integrations/sglang"),
    ],
)
@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_only_one_file_imports_an_extra_at_top_level(path: Path, package: str, owner: str | None) -> None:
    names = imports_of(path, everywhere=False)
    assert relative(path) == f"lzsampler/{owner}.py" or not any(name.partition(".")[0] == package for name in names)


def test_without_torch_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    def error(code: str) -> str:
        command = [sys.executable, "-c", f"import sys; {code}; import lzsampler.integrations.hf"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return done.stderr.splitlines()[-1]

    message = "MissingExtra: torch and transformers are needed for this: pip install torch transformers"
    assert error("sys.modules['torch'] = None") == f"lzsampler.errors.{message}"
    (tmp_path / "torch.py").write_text("import no_such_library\n")
    broken = "MissingExtra: torch does not load: No module named 'no_such_library'"
    assert error(f"sys.path.insert(0, {str(tmp_path)!r})") == f"lzsampler.errors.{broken}"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_the_library_does_not_know_the_command_line(path: Path) -> None:
    names = imports_of(path, everywhere=True)
    assert not any(name.partition(".")[0] == "click" or "cli" in name.split(".") for name in names)


# The rooms of the house and whom each may know, besides itself and the core (the modules beside the packages).
LAYERS = {
    "util": set(),
    "models": set(),
    "cuda": set(),
    "constraint": {"util"},
    "llama": {"util", "models", "constraint"},
    "decoding": {"util", "constraint", "llama"},
    "dropin": {"util", "models", "constraint", "llama", "decoding"},
    "quantizing": {"util", "llama", "decoding"},
    "auditing": {"util", "models", "llama", "decoding"},
    "evaluation": {"util", "llama", "decoding", "auditing"},
    "reports": {"util", "constraint", "decoding", "quantizing", "auditing", "evaluation"},
    "probing": {"util"},
    "integrations": {"util"},
    "serving": {"dropin"},
}


def rooms_known(path: Path) -> set[str]:
    """The packages of lzsampler that a module imports, wherever in it; "core" for the modules beside them."""
    package = path.relative_to(ROOT).parent.parts[1:]
    known = set()
    for name in imports_of(path, everywhere=True):
        dots = len(name) - len(name.lstrip("."))
        if dots:
            full = (*package[: len(package) - dots + 1], *name.lstrip(".").split("."))
        elif name.partition(".")[0] == "lzsampler":
            full = tuple(name.split(".")[1:])
        else:
            continue
        known.add(full[0] if full and full[0] in LAYERS else "core")
    return known


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_room_knows_only_those_below_it(path: Path) -> None:
    room, *rest = path.relative_to(ROOT / "lzsampler").with_suffix("").as_posix().split("/")
    module = "/".join([room, *rest])
    core = {"core", "util", "constraint"} if module != "__init__" else {"core", *LAYERS}
    assert rooms_known(path) <= (LAYERS[room] | {room, "core"} if rest else core)


def modules_known(path: Path) -> set[str]:
    """The modules of lzsampler and of the command line that a module imports, wherever in it, for types too."""
    name = name_of(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    known = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            known |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            known |= {f"{module}.{alias.name}" for alias in node.names}
            known |= {module} if any(f"{module}.{alias.name}" not in NAMES for alias in node.names) else set()
    return {module for module in known if module in NAMES and module != name}


def name_of(path: Path) -> str:
    """The name by which a module is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("lzsampler", *parts) if parts[0] == "cli" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in (*MODULES, *COMMANDS)}


def test_no_circle_of_imports() -> None:
    """Nor one of types alone: who knows whom has an order."""
    left = {name: modules_known(path) for name, path in NAMES.items()}
    left = {name: known for name, known in left.items() if name != "lzsampler"}  # whose names load late
    assert sum(map(len, left.values())) > 500
    while free := [name for name, known in left.items() if not known & left.keys()]:
        for name in free:
            del left[name]
    assert not left


def test_a_name_of_a_module_stands_for_one_thing() -> None:
    """A command and the module that does its work may have the same one."""
    names = [path.name for path in MODULES if path.name != "__init__.py"]
    assert sorted(names) == sorted(set(names))


def test_the_rooms_are_all_there() -> None:
    folders = {path.name for path in (ROOT / "lzsampler").iterdir() if (path / "__init__.py").exists()}
    assert folders == set(LAYERS)
    assert (
        len([path for path in (ROOT / "lzsampler").iterdir() if path.is_file() and path.suffix in (".py", ".pyi")])
        <= 12
    )


@pytest.mark.parametrize("path", COMMANDS, ids=relative)
def test_the_command_line_knows_the_library_only(path: Path) -> None:
    names = imports_of(path, everywhere=True)
    assert not any(name.partition(".")[0] in ("llama_cpp", "cffi") or name.endswith("_ffi") for name in names)


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_file_fits_in_a_head(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_the_scans_found_their_files() -> None:
    assert {"lzsampler/sampler.py", "c/sampler.c", "tests/test_imports.py"} <= {relative(path) for path in SOURCES}
    assert len(MODULES) > 4
    assert COMMANDS
