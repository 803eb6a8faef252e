"""`spec_check` and lzs spec-check: a right draft changes nothing, and what changes a text is found and named."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lzsampler.models import default_draft, default_model

pytest.importorskip("llama_cpp")

from lzsampler.decoding import spec_check as module
from lzsampler.decoding.spec_check import Fit, SpecCheck, spec_check
from lzsampler.decoding.verification import Speculation, Verified
from lzsampler.llama.model import Model
from lzsampler.llama.rounding import Rounding

LZS = str(Path(sys.executable).with_name("lzs"))


@pytest.fixture(scope="module")
def target() -> Iterator[Model]:
    with Model(default_model(), n_threads=1, flash_attn=True) as model:
        yield model


@pytest.fixture(scope="module")
def small() -> Iterator[Model]:
    with Model(default_draft(), n_threads=1, flash_attn=True) as model:
        yield model


def test_no_difference_is_found_in_the_embedded_pair(target: Model, small: Model) -> None:
    steps: list[tuple[int, int]] = []
    checked = spec_check(target, small, max_tokens=12, runs=50, on_progress=lambda *step: steps.append(step))
    assert checked.same
    assert (checked.texts, checked.rounding, checked.differences) == (96, Rounding(0.0, 56), ())
    assert 96 < checked.tokens <= 96 * 12
    assert checked.verdict.startswith(
        f"no difference in {checked.tokens + 56:,} positions: 96 texts, and logits of 56; the distribution fits (p = 0."
    )
    assert {(row.text, row.draft, row.temperature) for row in checked.kept} == {
        (text, draft, t) for text in ("story", "task", "copy") for draft in ("model", "lookup") for t in (0.0, 0.8)
    }
    assert [fit.draft for fit in checked.fits] == ["model", "lookup"]
    assert steps[-1][0] == steps[-1][1] >= 96 + 100
    assert [done for done, _ in steps] == list(range(1, len(steps) + 1))


def test_a_verification_that_accepts_everything_is_found(
    target: Model, small: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What engines call lossless and is not: the texts differ, and so does the distribution."""
    right = Speculation.verify_at

    def careless(self: Speculation, rows: Any) -> Verified:
        drafted = self.drafted
        made = right(self, rows)
        if made.n_accepted == len(drafted) or not drafted:
            return made
        self.sampler.rewind(1)
        self.sampler.accept(drafted[made.n_accepted])
        return replace(made, tokens=(*made.tokens[:-1], drafted[made.n_accepted]))

    monkeypatch.setattr(Speculation, "verify_at", careless)
    monkeypatch.setattr(module, "LENGTHS", (2,))
    checked = spec_check(target, small, max_tokens=16, runs=50)
    assert not checked.same
    assert checked.differences
    assert any(fit.wrong for fit in checked.fits)
    assert "texts differ, the first (story, model, mode gumbel, T 0, K 2) at token " in checked.verdict
    assert "so this is a bug: please report it" in checked.verdict


def test_the_verdict_says_why() -> None:
    good, bad = Fit("model", 100, 5.0, 8, 0.75), Fit("lookup", 400, 80.0, 8, 1e-12)
    fine = SpecCheck(96, 2000, (), (good,), (), Rounding(0.0, 56), "")
    assert fine.verdict == (
        "no difference in 2,056 positions: 96 texts, and logits of 56; the distribution fits (p = 0.75)"
    )
    bug = "the target's logits do not depend on the block, so this is a bug: please report it"
    wrong = replace(fine, fits=(good, bad))
    assert wrong.verdict == f"NOT the same: the distribution with a lookup draft differs (p = 1e-12); {bug}"
    differs = module.Difference("task", "lookup", "match", 0.8, 5, 17)
    rounded = replace(fine, differences=(differs,), rounding=Rounding(0.0987, 17), why="the logits depend on it")
    assert rounded.verdict == (
        "NOT the same: 1 of 96 texts differ, the first (task, lookup, mode match, T 0.8, K 5) at token 17; "
        "the logits depend on it"
    )
    assert replace(rounded, differences=()).verdict == "NOT the same: the logits depend on it"
    assert json.loads(json.dumps(rounded.to_json()))["differences"][0]["at"] == 17


@pytest.mark.parametrize(("chi2", "df"), [(3.841, 1), (5.991, 2), (7.815, 3), (15.507, 8), (16.919, 9)])
def test_the_chance_of_a_chi_square(chi2: float, df: int) -> None:
    """Its 95th percentiles, as tables have them."""
    assert module._chance(chi2, df) == pytest.approx(0.05, abs=1e-4)


def test_what_is_refused(target: Model) -> None:
    with pytest.raises(ValueError, match="max_tokens must be from 2 to 4096, got 1"):
        spec_check(target, max_tokens=1)
    with pytest.raises(ValueError, match=r"runs must be from 50 to 100000, got 49"):
        spec_check(target, runs=49)
    with pytest.raises(ValueError, match="the draft is the target itself"):
        spec_check(target, target)


def lzs(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [LZS, "spec-check", "-t", "1", "-n", "8", "--runs", "50", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def test_the_command() -> None:
    done = lzs()
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows, verdict = done.stdout.splitlines()
    assert head.split() == ["text", "draft", "temp", "accepted", "tokens", "a", "call"]
    assert [row.split()[:3] for row in rows] == [
        [text, "lookup", t] for text in ("story", "task", "copy") for t in ("0.0", "0.8")
    ]
    assert verdict.startswith("no difference in ")
    quiet = lzs("-q", "--json")
    assert json.loads(quiet.stdout)["same"] is True
    larger = lzs("-m", "tale-1m", "-md", "tale-7m")
    assert larger.returncode == 0
    assert larger.stderr.count("is larger than tale-1m-q8_0.gguf: by their sizes, the speed is at most 0.") == 1


def test_texts_that_are_the_same_by_chance_are_not_enough() -> None:
    """Without flash attention the first 8 tokens of all texts are the same, and the command called that exact."""
    done = lzs("-fa", "off", "-q")
    assert done.returncode == 1
    assert done.stdout.startswith("NOT the same: the logits of tale-7m-q8_0.gguf depend on how many tokens are decoded")
    assert "; -fa on prevents it for weights such as Q8_0\n" in done.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("-n", "1"), "--n-predict must be at least 2, got 1"),
        (("-n", "5000"), "--n-predict must be from 2 to 4096, got 5000"),
        (("--runs", "9"), "--runs must be at least 50, got 9"),
        (("-md", "no.gguf"), "no.gguf"),
        (("-c", "12"), "--ctx-size must be at least "),
        (("-b", "1"), "--batch-size must be at least 2 with a draft"),
    ],
)
def test_what_the_command_refuses(flags: tuple[str, ...], message: str) -> None:
    done = lzs(*flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
