"""The stretched target of the benches: the function of the embedded model, in a file of another size."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llama_cpp")

BENCH = Path(__file__).parents[1] / "bench"
sys.path.append(str(BENCH))

from lzsampler import Params, generate, quantize  # noqa: E402
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.llama import gguf  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402
from lzsampler.models import default_draft, default_model  # noqa: E402
from speculative import accepted  # noqa: E402
from stretched import NARROW, Stretch, stretched  # noqa: E402

SMALL = Stretch(blocks=2, width=768)
PROMPT = "Once upon a time there was a king"


def opened(path: Path, **settings: Any) -> Model:
    return Model(path, n_ctx=256, n_threads=1, flash_attn=True, **settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stretched")


@pytest.mark.parametrize("kind", ["q8_0", "bf16"])
def test_the_function_is_that_of_the_embedded_model(folder: Path, kind: str) -> None:
    """Bit for bit, and so the greedy text; in BF16 that of the embedded model in BF16."""
    source = default_model()
    if kind != "q8_0":
        source = folder / "embedded.gguf"
        quantize(default_model(), source, kind, requantize=True)
    with opened(source) as model, opened(stretched(kind, SMALL, folder)) as wide:
        assert (wide.header.of_architecture("block_count"), wide.header.quantization) == (10, kind.upper())
        assert wide.header.of_architecture("feed_forward_length") == SMALL.width > NARROW
        ids = model.tokenize(PROMPT)
        for one in (model, wide):
            one.decode(ids)
        assert np.array_equal(model.logits(), wide.logits())
        texts = [
            generate(one, PROMPT, GenerationConfig(Params(temperature=0.0), max_tokens=100)) for one in (model, wide)
        ]
    assert texts[0].tokens == texts[1].tokens
    assert len(texts[0].tokens) == 100


def test_files_are_kept_and_made_anew_for_other_numbers(folder: Path) -> None:
    first = stretched("q8_0", SMALL, folder)
    written = first.stat().st_mtime_ns
    assert stretched("q8_0", SMALL, folder) == first
    assert first.stat().st_mtime_ns == written
    assert stretched("q8_0", Stretch(blocks=1, width=768), folder) != first


def test_microscaling(folder: Path) -> None:
    header = gguf.read(stretched("mxfp4", SMALL, folder))
    assert header.quantization == "MXFP4"
    with opened(header.path) as model:
        assert len(generate(model, PROMPT, GenerationConfig(Params(temperature=0.0), max_tokens=10)).tokens) == 10


def test_the_bench_of_speculation_runs(folder: Path) -> None:
    command = [sys.executable, "bench/speculative.py", "--quick", "--threads", "1", "--folder", str(folder), "--json"]
    done = subprocess.run(
        [*command, "--llama", str(folder / "none")], capture_output=True, text=True, timeout=500, cwd=BENCH.parent
    )
    assert done.returncode == 0, done.stderr
    assert "llama: left out, there is no" in done.stderr
    found = json.loads(done.stdout)["results"]
    assert {name: len(rows) for name, rows in found.items()} == {
        "acceptance": 16, "cost": 1, "two": 32, "one": 24, "llama": 0
    }  # fmt: skip
    assert {row["same"] for row in found["two"]} == {"1.00"}
    assert {row["K"] for row in found["two"]} == {"none", "0", "2", "auto"}
    lookups = {"BF16, lookup 4", "BF16, lookup 8", "BF16, lookup auto", "MXFP4, lookup auto"}
    assert {row["way"] for row in found["one"]} == {"BF16", "MXFP4", *lookups}
    for row in found["acceptance"]:
        assert 0 <= float(row["accepted"]) <= 1
        if row["penalty"] == "none":
            assert row["accepted"] == row["draft without penalty"]


def test_what_a_draft_without_the_penalty_guesses() -> None:
    """With a penalty that forbids what came before, the draft that has it, too, guesses more."""
    params = Params(temperature=0.0, presence_penalty=8.0)
    with opened(default_model()) as target, opened(default_draft()) as draft:
        both, alone, common, tokens = accepted(target, draft, PROMPT, params, Params(temperature=0.0), 60)
    assert tokens == 60
    assert 0 < alone < both < 60
    assert common == both  # greedy: the distributions have one token each
