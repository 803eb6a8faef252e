"""llama-cpp-python's own tests with `LZLlama` (`.ci/peers`): a plugin of pytest, which makes their files ready, too.

LZS_PEERS names what their `Llama` is: plain, off (`LZLlama` with penalties off) or default. LZS_PEERS_FOLDER is where
the outcomes go, and the answers of the plain model. Models of a hub are SmolLM2, or a small one with random weights.
"""

import ast
import builtins
import json
import os
import sys
import types
from collections import defaultdict
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

import random_models
from lzsampler.dropin import LZLlama
from lzsampler.models import find_model

_KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (llama_cpp.Llama, {}),
    "off": (LZLlama, {"lz_penalty": 0.0}),
    "default": (LZLlama, {}),
}


def stand_in(kind: Any, ours: dict[str, Any]) -> type:
    """Return the class that is `Llama` for their tests."""

    class Llama(kind):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            given = {"flash_attn": False, **ours, **settings}
            if given.get("embedding"):  # of a text, as models for embeddings have it, and not of each token
                given.setdefault("pooling_type", llama_cpp.LLAMA_POOLING_TYPE_MEAN)
            super().__init__(*arguments, **given)

    return Llama


class Relaxed(ast.NodeTransformer):
    """Tests of a hub's model expect its texts and tokens: here those of the plain model that stands for it."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Visit a test only if a model of a hub is its argument."""
        if any(argument.arg.endswith("model_path") for argument in node.args.args):
            self.generic_visit(node)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """Take ``assert found == <a text or list>`` as ``assert found == as_plain(found)``."""
        match node.test:
            case ast.Compare(left=found, ops=[ast.Eq()], comparators=[ast.Constant(value=str()) | ast.List()]):
                node.test.comparators = [ast.Call(ast.Name("as_plain"), [found], [])]
        return node


class Run:
    """One run of their tests."""

    def __init__(self) -> None:
        self.name, self.folder = os.environ["LZS_PEERS"], Path(os.environ["LZS_PEERS_FOLDER"])
        self.outcomes: dict[str, str] = {}
        self._file = self.folder / "answers.json"
        self.answers: dict[str, list[Any]] = defaultdict(list)
        if self.name != "plain":
            self.answers = json.loads(self._file.read_text("utf-8"))

    def download(self, repository: str, _: str) -> str:
        """Return the file of the model that stands for one of a hub."""
        for name, make in (("mamba", random_models.mamba), ("falcon-h1", random_models.jamba)):
            if name in repository.lower():
                path = self.folder / f"{name}.gguf"
                return str(path if path.exists() else make(path))
        return str(find_model("smollm2"))

    def as_plain(self, found: Any) -> Any:
        """Return what the plain model has answered at this place of this test."""
        test = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
        if self.name == "plain":
            self.answers[test].append(found)
            return found
        return self.answers[test].pop(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep an outcome."""
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        """Write the outcomes, and the answers of the plain model."""
        lines = [f"{test} {outcome}\n" for test, outcome in sorted(self.outcomes.items())]
        (self.folder / f"{self.name}.txt").write_text("".join(lines), "utf-8")
        if self.name == "plain":
            self._file.write_text(json.dumps(self.answers), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Put what stands for `Llama` and for the hub into their places."""
    run = Run()
    config.pluginmanager.register(run)
    vars(llama_cpp).update(Llama=stand_in(*_KINDS[run.name]))
    sys.modules["huggingface_hub"] = types.SimpleNamespace(hf_hub_download=run.download)  # type: ignore[assignment]
    vars(builtins).update(as_plain=run.as_plain)


if __name__ == "__main__":
    for file in Path(sys.argv[1]).glob("test_*.py"):
        tree = Relaxed().visit(ast.parse(file.read_text("utf-8")))
        file.write_text(ast.unparse(ast.fix_missing_locations(tree)), "utf-8")
