"""Runs of one character, of a few, or of one token: what models write that break down, and what people write."""

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[1] / "bench"
sys.path.append(str(BENCH))

from audit_rates import is_covered  # noqa: E402
from clean import packed  # noqa: E402
from corpora import PROSE, transcript  # noqa: E402
from lzsampler import Params, Sampler, audit  # noqa: E402
from lzsampler.auditing.repetition import repetition  # noqa: E402
from lzsampler.detection import STOP_ON_LOOP, STOP_ON_STUCK  # noqa: E402
from planted import RUNS, planted_runs  # noqa: E402

LZS = str(Path(sys.executable).with_name("lzs"))
BROKEN = {"!": "!" * 1000, "G": "G" * 1000, "0.3": "The result is 0." + "3" * 984, "line breaks": "\n" * 4000}
ANSWERS = 400
BEFORE, AFTER = PROSE[:1500], PROSE[3000:4500]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [piece.text for piece in packed()]


@pytest.mark.parametrize("character", ["!", "G", "3", "-", "\n", " ", "\t", "\u200b", "\ufffd", "\U0001f600", "。"])
def test_how_long_a_run_of_one_character_is_a_loop(character: str) -> None:
    for n, looping in ((99, False), (100, True)):
        assert audit(BEFORE + "x" + character * n).looping == looping  # at the end
        assert audit("x" + character * n + "x").looping == looping  # half of the text
    for n, looping in ((399, False), (400, True)):
        assert audit(BEFORE + "x" + character * n + "x" + AFTER).looping == looping  # in the middle


@pytest.mark.parametrize(
    "text",
    [
        "-" * 80 + "\n" + AFTER,
        "A title\n" + "=" * 99,
        " " * 300 + "x = 1\n" + AFTER,  # far to the right
        "\n".join("|" + " " * 120 + "|" for _ in range(3)) + AFTER,
        "1" + "0" * 99,  # a googol, but for a digit
        f"{10**99} is a one with {'noughts'!r}. {AFTER}",
        "0x" + "f" * 64,
        f"sha512: {'0' * 128} {AFTER}",  # of a file that is not there
        "Chapter 1 " + "." * 98 + " 7\n" + AFTER,
        "Contents " + ". " * 60 + "7\n" + AFTER,
        "0 " * 300 + AFTER,  # a row of a matrix
        "0,0,0," * 100 + AFTER,
        "data:image/png;base64,iVBORw0KGgo" + "A" * 300 + "SUVORK5CYII= " + AFTER,
    ],
)
def test_what_people_and_programs_write_is_none(text: str) -> None:
    assert not audit(text).looping


def test_runs_of_twelve_kinds_in_real_texts_are_found(texts: list[str]) -> None:
    n = 25 * len(RUNS)
    missed = Counter(
        run.text[run.start : run.end][: run.period] for run in planted_runs(texts, 31, n) if not is_covered(run)
    )
    assert missed.total() <= 0.01 * n, missed


@pytest.mark.parametrize("text", BROKEN.values(), ids=list(BROKEN))
def test_the_line_of_figures_names_the_run(text: str) -> None:
    made = repetition(text)
    assert made.loops
    assert made.run is not None
    assert (made.run.period, made.run.length) == (1, made.run.count)


@pytest.mark.parametrize("kind", BROKEN)
def test_audit_and_diff_say_so(kind: str, tmp_path: Path, texts: list[str]) -> None:
    """400 broken answers beside 400 good ones, with the exit status of each command."""
    some = random.Random(5).sample(texts, ANSWERS + 20)
    good = [text for text in some if not audit(text).looping][:ANSWERS]
    for name, answers in (("good", good), ("broken", [BROKEN[kind]] * ANSWERS)):
        rows = (transcript(i, answer) for i, answer in enumerate(answers))
        (tmp_path / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8")

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run([LZS, *arguments, "--json"], capture_output=True, cwd=tmp_path, timeout=300)
        return done.returncode, json.loads(done.stdout)

    for name, status, rate in (("good", 0, 0.0), ("broken", 1, 1.0)):
        code, summary = run("audit", f"{name}.jsonl", "--fail-over", "loop_rate=1%")
        assert (code, summary["loop_rate"]) == (status, rate)
    code, compared = run("diff", "good.jsonl", "broken.jsonl")
    assert (code, compared["verdict"], compared["difference"]) == (1, "worse", 1.0)
    code, compared = run("diff", "broken.jsonl", "good.jsonl")
    assert (code, compared["verdict"]) == (0, "better")


def test_one_token_is_a_loop_while_it_is_written() -> None:
    sampler = Sampler(100, Params(repetition_detection=STOP_ON_LOOP, stuck_detection=STOP_ON_STUCK))
    for n in range(1, 65):
        sampler.accept(7)
        assert (sampler.loop is not None) == (n == 64)
