"""What CONTRIBUTING.md says of additions holds: each is made in a copy of the package, in the files that it names.

The toy penalty of C has a file of its own: tests/test_toy_penalty.py.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import lzsampler._ffi

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# A checkout shadows an installed lzsampler with its import hooks.
LZS = "sys.argv = ['lzs', *{!r}]; from lzsampler.cli.main import main; main()"
BEGIN = "import sys; sys.meta_path[:] = sys.meta_path[-3:]; sys.path.insert(0, {folder!r})\n"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A package of its own, with the command line and the built extension in it."""
    ignored = shutil.ignore_patterns("__pycache__", "*.gguf")
    shutil.copytree(ROOT / "lzsampler", tmp_path / "lzsampler", ignore=ignored)
    shutil.copytree(ROOT / "cli", tmp_path / "lzsampler/cli", ignore=ignored)
    extension = Path(lzsampler._ffi.__file__ or "")
    shutil.copy(extension, tmp_path / "lzsampler" / extension.name)
    return tmp_path


def run(copy: Path, code: str) -> str:
    code = BEGIN.format(folder=str(copy)) + code
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files_of(addition: str) -> set[str]:
    """The code files that the guide names for an addition, NAME for the new one."""
    section = GUIDE.split(f"**{addition}")[1].split("\n**")[0]
    assert f"{len(set(re.findall(FILE, section)))} code file" in section.split("\n")[0]
    return set(re.findall(FILE, section))


FILE = r"`((?:lzsampler|cli)/[\w/]+\.(?:py|html))`"


def edited(copy: Path, changes: dict[str, Callable[[str], str]], addition: str) -> None:
    """Make the changes, which must be of the files that the guide names."""
    assert {re.sub(r"\btoy\b", "NAME", name) for name in changes} == files_of(addition)
    for name, change in changes.items():
        path = copy / name.replace("cli/", "lzsampler/cli/", 1) if name.startswith("cli/") else copy / name
        path.write_text(change(path.read_text(encoding="utf-8") if path.exists() else ""), encoding="utf-8")


def put(before: str, new: str) -> Callable[[str], str]:
    """Put new lines before a line that is there once."""

    def change(text: str) -> str:
        assert text.count(before) == 1, before
        return text.replace(before, new + before)

    return change


def test_a_format(copy: Path) -> None:
    module = '''
"""Toys."""

from collections.abc import Iterator
from typing import Any

from ..reading.format import Format, Message, Source


def matches(row: Any) -> bool:
    """Recognise a toy."""
    return isinstance(row, dict) and "toy" in row


def messages(row: Any, source: Source) -> Iterator[Message]:
    """Yield what the model wrote."""
    yield Message(row["toy"]["said"])


FORMAT = Format("toy", "toys", matches, messages)
'''
    registry = "lzsampler/auditing/formats/__init__.py"

    def named(text: str) -> str:
        text = put("    textgen_webui,\n", "    toy,\n")(text)
        return put("    lzs.FORMAT,\n", "    toy.FORMAT,\n")(text)

    edited(
        copy,
        {"lzsampler/auditing/formats/toy.py": lambda _: module, registry: named},
        "A format that `lzs audit` reads",
    )
    (copy / "toys.jsonl").write_text(json.dumps({"toy": {"said": "and so on, " * 40}}) + "\n")
    code = """
from lzsampler import audit_files
from lzsampler.auditing.formats import FORMATS
with audit_files("toys.jsonl", workers=1) as audit:
    print(audit.summary.total.looping, FORMATS["toy"])
"""
    assert run(copy, code) == "1 toys\n"


def test_a_report(copy: Path) -> None:
    module = '''
"""Toys."""

from pathlib import Path
from typing import Any

from ..util.files import replacing


def write_toy(path: Path, audit: Any) -> None:
    """Write the number of loops."""
    with replacing(path) as file:
        file.write(str(audit.summary.total.looping).encode())
'''

    def named(text: str) -> str:
        function = "def _toy(path: Path, audit: Any) -> None:\n    from .toy import write_toy\n\n"
        function += "    write_toy(path, audit)\n\n\n"
        text = put("AUDIT: Mapping[str, Writer] = {\n", function)(text)
        return put('    ".sarif": Writer(', '    ".toy": Writer(_toy, "a toy"),\n')(text)

    edited(copy, {"lzsampler/reports/toy.py": lambda _: module, "lzsampler/reports/save.py": named}, "A report")
    (copy / "texts.jsonl").write_text(json.dumps({"text": "and so on, " * 40}) + "\n")
    run(copy, LZS.format(["audit", "texts.jsonl", "-q", "-o", "loops.toy"]))
    assert (copy / "loops.toy").read_text() == "1"
    help_text = run(copy, LZS.format(["audit", "--help"]))
    assert ".toy (a toy)" in " ".join(help_text.split())


def test_an_engine(copy: Path) -> None:
    module = '''
"""Toys."""

import numpy as np

from ..params import Params
from .history import Request


class ToyProcessor:
    """The penalties in an engine that shows the tokens of each row."""

    def __init__(self, n_vocab: int, params: Params) -> None:
        self.request = Request(n_vocab, params)

    def __call__(self, tokens: list[int], row: "np.ndarray") -> "np.ndarray":
        """Return a row, float32[n_vocab], with the penalties."""
        self.request.follow(tokens)
        made = row.copy()
        for token, repeat, bias in self.request.edits():
            made[token] = (made[token] * repeat if made[token] <= 0 else made[token] / repeat) + bias
        return made
'''
    edited(copy, {"lzsampler/integrations/toy.py": lambda _: module}, "An engine")
    code = """
import numpy as np
from lzsampler import Params, Sampler
from lzsampler.integrations.toy import ToyProcessor
params, row = Params(presence_penalty=2.0), np.arange(-5, 5, dtype=np.float32)
toy, sampler = ToyProcessor(10, params), Sampler(10, params)
for token in (1, 7, 1): sampler.accept(token)
assert (toy([1, 7, 1], row) == sampler.process(row)).all() and (toy([1, 7, 1], row) != row).sum() == 2
"""
    run(copy, code)


def test_a_chart(copy: Path) -> None:
    def drawn(text: str) -> str:
        chart = (
            'def toy(rate: float) -> Markup:\n    """Return a toy."""\n    return tag("svg", f"toy of {rate}")\n\n\n'
        )
        return put("IN_TEMPLATES = (", chart)(text).replace("IN_TEMPLATES = (", "IN_TEMPLATES = (toy, ")

    changes = {
        "lzsampler/reports/charts.py": drawn,
        "lzsampler/reports/templates/audit.html": put('<div class="rates">', "{{ toy(total.looping) }}\n"),
    }
    edited(copy, changes, "A chart")
    (copy / "texts.jsonl").write_text(json.dumps({"text": "and so on, " * 40}) + "\n")
    run(copy, LZS.format(["audit", "texts.jsonl", "-q", "-o", "report.html"]))
    assert "<svg>toy of 1</svg>" in (copy / "report.html").read_text(encoding="utf-8")


def test_an_option(copy: Path) -> None:
    """The file that has no model is enough: the option is read before one is opened."""
    options = put(
        '    save: Path | None = opt(_OUTPUT, "--save"', '    toy: bool = opt(_OUTPUT, "--toy", help="a toy")\n'
    )
    used = put("    policy = policy_from(options.loops)\n", "    print('toy', options.output.toy)\n")
    edited(copy, {"cli/generate_options.py": options, "cli/generate.py": used}, "An option of `lzs generate`")
    code = "try:\n    {}\nexcept SystemExit as end:\n    print(end.code)"
    done = run(copy, code.format(LZS.format(["generate", "--toy", "-m", "none.gguf", "x"])))
    assert done.startswith("toy True\n")
    assert "--toy" in run(copy, LZS.format(["generate", "--help"]))


def test_an_action(copy: Path) -> None:
    """What such an action does is tried in tests/test_toy_action.py."""
    module = '''
"""Toys."""

from .action import Decision, LoopAction, LoopingText


class Toy(LoopAction):
    """Ends the text."""

    name = "toy"
    help = "ends the text as toys do"

    def decide(self, text: LoopingText) -> Decision:
        """Return that the text ends."""
        return Decision(text.n, end=True)
'''
    registry = "lzsampler/decoding/actions/__init__.py"

    def named(text: str) -> str:
        text = put("from .trim import Trim\n", "from .toy import Toy\n")(text)
        assert text.count("(Off, Stop, ") == 1
        return text.replace("(Off, Stop, ", "(Off, Stop, Toy, ")

    edited(copy, {"lzsampler/decoding/actions/toy.py": lambda _: module, registry: named}, "An action on a loop")
    assert (
        run(copy, "from lzsampler import LoopPolicy; print(LoopPolicy('toy').kind.help)")
        == "ends the text as toys do\n"
    )
    help_text = run(copy, LZS.format(["generate", "--help"]))
    assert "toy ends the text as toys do" in " ".join(help_text.split())
