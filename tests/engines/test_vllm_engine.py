"""A whole engine of vLLM on the CPU, with SmolLM2. `make engines` runs it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lzsampler import audit

pytest.importorskip("vllm", exc_type=ImportError)

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # in this process, which logs are taken from
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
PROMPTS = ["The history of tea", "Once upon a time", "My shopping list:\n- apples\n- bread\n-"]


@pytest.fixture(scope="module")
def llm(smollm2_folder: Path) -> Iterator[Any]:
    from vllm import LLM
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        pytest.skip("this vLLM is not one for the CPU")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield LLM(
            str(smollm2_folder),
            dtype="float32",
            max_model_len=1024,
            enforce_eager=True,
            logits_processors=["lzsampler.integrations.vllm:LZProcessor"],
        )


def test_requests_with_and_without_it_in_one_batch(llm: Any) -> None:
    from vllm import SamplingParams

    def params(arguments: dict[str, Any] | None) -> SamplingParams:
        return SamplingParams(temperature=0, max_tokens=200, extra_args=arguments)

    requests: list[tuple[str, dict[str, Any] | None]]
    requests = [*((prompt, None) for prompt in PROMPTS), *((prompt, {"lzsampler": {}}) for prompt in PROMPTS)]
    answers = llm.generate([prompt for prompt, _ in requests], [params(arguments) for _, arguments in requests])
    texts = [answer.outputs[0].text for answer in answers]
    print(*texts, sep="\n---\n")
    looping = [audit(text).looping for text in texts]
    assert sum(looping[:3]) >= 2
    assert not any(looping[3:5])  # the default spares lists of few words a line, as the third is


def test_bad_settings_are_refused_when_the_request_comes(llm: Any) -> None:
    from vllm import SamplingParams
    from vllm.exceptions import VLLMValidationError

    with pytest.raises(VLLMValidationError, match="lz_penalty must be at least 0, got -1"):
        llm.generate("a", SamplingParams(extra_args={"lz_penalty": -1}))
