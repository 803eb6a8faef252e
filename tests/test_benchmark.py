"""`benchmark` and `lzs bench`: figures that fit together. How large they are is no test's business."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lzsampler import Params, generate

pytest.importorskip("llama_cpp")

from lzsampler.decoding.benchmark import benchmark
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.many import _Context
from lzsampler.llama.model import Model
from lzsampler.models import default_model

LZS = Path(sys.executable).with_name("lzs")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=128) as opened:
        yield opened


@pytest.mark.parametrize("batch", [1, 3])
def test_figures_fit_together(model: Model, batch: int) -> None:
    greedy = Params(temperature=0.0, lz_penalty=0.15)
    result = benchmark(model, "Once upon a time", greedy, tokens=20, rounds=3, batch=batch)
    assert (result.tokens, result.rounds, result.batch) == (20, 3, batch)
    assert min(result.decode_ms, result.sampling_us, result.sampling_lz_us, result.sampling_llama_us or 0) > 0
    assert result.tokens_per_second == pytest.approx(1e3 * batch / result.latency_ms)
    token_us = 1e3 * result.decode_ms / batch + result.sampling_us
    assert result.added_percent == pytest.approx(100 * (result.sampling_lz_us - result.sampling_us) / token_us)
    assert result.quartiles[0] <= result.slowdown_percent <= result.quartiles[1]
    assert result.quartiles_llama is not None
    assert result.slowdown_llama_percent is not None
    assert result.quartiles_llama[0] <= result.slowdown_llama_percent <= result.quartiles_llama[1]


def test_every_way_writes_its_own_text(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of `generate` for settings with LZ and without, from the likeliest tokens on; llama.cpp is greedy."""
    from lzsampler.decoding import benchmark as module

    written: dict[int, list[list[int]]] = {}
    step = module._Texts.step

    def recorded(self: Any) -> tuple[float, float]:
        written.setdefault(id(self), []).append(list(self._tokens))
        return step(self)

    monkeypatch.setattr(module._Texts, "step", recorded)
    prompt = "Instantly she was whirling through the"
    lz = Params(temperature=0.0, lz_rule="paper", lz_penalty=0.3, lz_buffer=1, history="all")
    benchmark(model, prompt, lz, tokens=60, rounds=2, batch=2)
    plain, with_lz, llama = ([list(text) for text in zip(*steps[-60:], strict=True)] for steps in written.values())
    assert plain == llama
    assert plain != with_lz
    for settings, texts in ((replace(lz, lz_penalty=0.0), plain), (lz, with_lz)):
        ids = model.tokenize(prompt)
        model.keep(0)
        model.decode(ids)
        best = np.argsort(-model.logits(), kind="stable")[:2]
        assert [text[0] for text in texts] == best.tolist()
        made = generate(model, prompt, GenerationConfig(settings, max_tokens=60, ignore_eos=True))
        assert list(made.tokens) == texts[0]


def test_cpu_time_does_not_count_waiting(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    decode = _Context._decode

    def waits(self: Any, batch: Any, *, wanted: int) -> Any:
        time.sleep(0.05)
        return decode(self, batch, wanted=wanted)

    monkeypatch.setattr(_Context, "_decode", waits)
    lz = Params(temperature=0.0, lz_penalty=0.15)
    passed, computed = (benchmark(model, "Once", lz, tokens=2, rounds=2, cpu_time=cpu) for cpu in (False, True))
    assert passed.decode_ms >= 50 > computed.decode_ms


def test_llama_is_left_out_where_it_would_compute_something_else(model: Model) -> None:
    both = Params(lz_penalty=0.15, frequency_penalty=0.1)
    result = benchmark(model, "Once", both, tokens=3, rounds=2)
    assert (result.sampling_llama_us, result.slowdown_llama_percent, result.quartiles_llama) == (None, None, None)
    drawn = Params(lz_penalty=0.15, temperature=0.7, top_k=40, top_p=0.9, min_p=0.05)
    assert benchmark(model, "Once", drawn, tokens=3, rounds=2).sampling_llama_us


def test_refusals(model: Model) -> None:
    lz = Params(lz_penalty=0.15)
    with pytest.raises(ValueError, match="lz_penalty must be above 0"):
        benchmark(model, "Once", Params())
    with pytest.raises(ValueError, match="prompt is empty"):
        benchmark(model, "", lz)
    with pytest.raises(ValueError, match="128 more do not fit in the context of 128"):
        benchmark(model, "Once", lz, tokens=128)
    with pytest.raises(ValueError, match="rounds must be from 2"):
        benchmark(model, "Once", lz, rounds=1)
    with pytest.raises(ValueError, match="cpu_time must be True or False"):
        benchmark(model, "Once", lz, cpu_time=1)  # type: ignore[arg-type]
    with (
        Model(default_model(), n_ctx=64, n_threads=2) as two,
        pytest.raises(ValueError, match="cpu_time needs a model with n_threads=1, got 2"),
    ):
        benchmark(two, "Once", lz, tokens=2, cpu_time=True)
    with pytest.raises(ValueError, match="batch must be from 1 to 256, got 257"):
        benchmark(model, "Once", lz, batch=257)


def lzs_bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(LZS), "bench", "-n", "10", "--rounds", "2", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_command() -> None:
    done = lzs_bench("--json", "--batch", "1,4")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["batch"] for row in found] == [1, 4]
    assert {row["n_vocab"] for row in found} == {4096}
    assert [found[0]["params"][name] for name in ("lz_penalty", "lz_run_penalty")] == [0.3, 0.5]
    assert found[0]["params"]["lz_separators"]
    guard, paper = (json.loads(lzs_bench("--json", "--preset", name).stdout)["params"] for name in ("guard", "paper"))
    assert (guard["lz_run_allowance"], paper["lz_rule"]) == (64, "paper")
    assert "--lz-penalty must be above 0" in lzs_bench("--lz-penalty", "0").stderr
    assert found[0]["decode_ms"] > 0
    done = lzs_bench("--batch", "1,4")
    about, *head, one, four = done.stdout.splitlines()
    assert "2 rounds of 10 tokens a text" in about
    assert [row.split()[0] for row in (one, four)] == ["1", "4"]
    assert lzs_bench("-q").stdout.splitlines()[:2] == head
    assert max(map(len, head)) <= 90


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lz-penalty", "0"], "--lz-penalty must be above 0"),
        *(
            (["--batch", sizes], f"--batch must be numbers from 1 to 256 and commas, such as 1,8,32, got '{sizes}'")
            for sizes in ("1,x", "", "0", "1,257", "-1", "1,,2", "1.5", "\u00b2")
        ),
    ],
)
def test_bad_arguments_of_the_command(arguments: list[str], said: str) -> None:
    done = lzs_bench(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"lzs: {said}")
