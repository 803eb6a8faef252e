"""The stretched target of the benches: the function of the embedded model, in a file of another size."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llama_cpp")

sys.path.append(str(Path(__file__).parents[1] / "bench"))

from lzsampler import Params, generate, quantize
from lzsampler.llama import gguf
from lzsampler.llama.model import Model
from lzsampler.models import default_model
from stretched import NARROW, Stretch, stretched

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
        texts = [generate(one, PROMPT, Params(temperature=0.0), n_predict=100) for one in (model, wide)]
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
        assert len(generate(model, PROMPT, Params(temperature=0.0), n_predict=10).tokens) == 10
