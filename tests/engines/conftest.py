"""What the engines need where there is no GPU: a model in transformers' format, and a torchvision that loads."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("sglang") and find_spec("torchvision"):  # SGLang imports it
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:  # its usual build has operators for torch with CUDA only, and asks for them all the same
        operators = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


@pytest.fixture(scope="session")
def smollm2_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of SmolLM2's GGUF file, whose package is of the index, in transformers' own format."""
    from lzsampler.errors import MissingExtra
    from lzsampler.models import find_model

    transformers: Any = pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    try:
        path = find_model("smollm2")
    except MissingExtra as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("smollm2")
    transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
    model.hf_quantizer = None  # the weights are float32 now, which transformers does not notice
    del model.config.quantization_config
    model.save_pretrained(folder)
    return folder
