"""`benchmark` and `lzs bench`: figures that fit together. How large they are is no test's business."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lzsampler import Params

pytest.importorskip("llama_cpp")

from lzsampler.decoding.benchmark import benchmark
from lzsampler.llama.model import Model
from lzsampler.models import default_model

LZS = Path(sys.executable).with_name("lzs")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=128) as opened:
        yield opened


def test_figures_fit_together(model: Model) -> None:
    result = benchmark(model, "Once upon a time", Params(temperature=0.0, lz_penalty=0.15), tokens=20, pairs=3)
    assert (result.tokens, result.pairs) == (20, 3)
    assert min(result.decode_ms, result.sampling_us, result.sampling_lz_us) > 0
    seconds = 1e-6 * result.sampling_lz_us
    assert result.share == pytest.approx(seconds / (seconds + 1e-3 * result.decode_ms))
    assert result.quartiles[0] <= result.slowdown_percent <= result.quartiles[1]


def test_refusals(model: Model) -> None:
    lz = Params(lz_penalty=0.15)
    with pytest.raises(ValueError, match="lz_penalty must be above 0"):
        benchmark(model, "Once", Params())
    with pytest.raises(ValueError, match="prompt is empty"):
        benchmark(model, "", lz)
    with pytest.raises(ValueError, match="128 more do not fit in the context of 128"):
        benchmark(model, "Once", lz, tokens=128)
    with pytest.raises(ValueError, match="pairs must be from 2"):
        benchmark(model, "Once", lz, pairs=1)


def test_command() -> None:
    command = [str(LZS), "bench", "-n", "10", "--pairs", "2"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["n_vocab"] == 4096
    assert found["params"]["lz_penalty"] == 0.15
    assert found["decode_ms"] > 0
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "LZ slowdown" in done.stdout
    done = subprocess.run([*command, "--lz-penalty", "0"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "--lz-penalty must be above 0" in done.stderr
