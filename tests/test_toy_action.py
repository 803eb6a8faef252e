"""An action on a loop is a file of its own and a name in lzsampler/decoding/actions/__init__.py.

The toy goes back to half of the text and writes two letters, once. It ends the text at the next loop. `generate`, the
drop-in and the command line have it without another line.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler import GenerationConfig, LoopPolicy, Params, RepetitionDetection, attach, generate  # noqa: E402
from lzsampler.decoding import actions  # noqa: E402
from lzsampler.decoding.actions import ActionTaken, Decision, LoopAction, LoopingText, describe  # noqa: E402
from lzsampler.models import default_model  # noqa: E402
from scripted import Scripted, cycle  # noqa: E402

PROMPT = "Between Barton and Delaford, there was that"


class Halve(LoopAction):
    """Cuts half of the text, and writes two letters, once."""

    name = "halve"
    help = "cuts half of the text"
    goes_on = True
    cuts = True
    writes = True

    def __init__(self, temperature: float) -> None:
        super().__init__(temperature)
        self._done = False

    def decide(self, text: LoopingText) -> Decision | None:
        """Return that half of the text stays; None after the first time, and without room."""
        keep = text.cut_at(len(text.tokens) // 2)
        written = tuple(text.spell("pa"))
        if self._done or keep + len(written) >= text.room:
            return None
        self._done = True
        return Decision(keep, written)

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return in a line what was done."""
        return f"halved {taken.at} tokens"


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(actions.ACTIONS, "halve", Halve)


def test_generate_has_it() -> None:
    params = Params(temperature=0.0, repetition_detection=RepetitionDetection(8, 2, 3))
    model = Scripted([*"abcdefghijklmno", "pa"], cycle([0, 1, 2], 16), tokens_of={"pa": [15]})
    config = GenerationConfig(params, max_tokens=60, on_loop="halve")
    made = generate(model, np.array([15], np.int32), config)
    assert [(taken.name, taken.at, taken.keep) for taken in made.actions] == [("halve", 9, 4), ("stop", 14, 14)]
    assert made.actions[0].written == (15,)
    assert [describe(taken) for taken in made.actions] == [
        "halved 9 tokens",
        "stopped in a loop: " + made.actions[1].loop,
    ]
    assert made.finish_reason == "repetition"


def test_no_other_name_is_known() -> None:
    message = "^on_loop must be one of off, stop, trim, rewind, close-think, boost, halve, got 'quarter'$"
    with pytest.raises(ValueError, match=message):
        LoopPolicy("quarter")


def test_the_drop_in_has_it() -> None:
    llm = llama_cpp.Llama(str(default_model()), n_ctx=512, n_threads=1, verbose=False)
    detection = {"max_pattern_size": 64, "min_pattern_size": 4, "min_count": 3}
    with attach(llm, Params(repetition_detection=detection), on_loop="halve"):
        (choice,) = llm(PROMPT, max_tokens=200, temperature=0.0)["choices"]
        assert choice["lzsampler"]["actions"][0]["name"] == "halve"
        assert choice["lzsampler"]["actions"][0]["did"].startswith("halved")
        assert bytes(llm.detokenize(choice["lzsampler"]["actions"][0]["written"])) == b"pa"
        assert "pa" in choice["text"]
        with pytest.raises(ValueError, match="on_loop='halve' cannot take back text of a stream: use stream=False"):
            list(llm(PROMPT, stream=True))


def test_the_command_line_has_it() -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from test_toy_action import Halve; "
    code += "from lzsampler.decoding.actions import ACTIONS; ACTIONS['halve'] = Halve; "
    code += "from lzsampler.cli.main import main; main()"

    def lzs(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", code, "generate", *arguments], capture_output=True, text=True, timeout=120
        )

    assert "halve cuts half of the text" in " ".join(lzs("--help").stdout.split())
    flags = ("--lz-penalty", "0", "-n", "200", "--on-loop", "halve", "--loop-min-count", "4", "--json")
    done = lzs(*flags, PROMPT)
    assert json.loads(done.stdout)["actions"][0]["name"] == "halve", done.stderr
    assert "lzs: halved" in done.stderr
    refused = lzs("--regex", "[a-z ]*", "--on-loop", "halve", PROMPT)
    assert "--on-loop halve writes what --regex may forbid: use stop, trim, rewind or boost" in refused.stderr
