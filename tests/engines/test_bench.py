"""The arms of bench/cuda.py and the real packages: FlashInfer's signatures, and vLLM's kernels in Triton's interpreter.

Run by itself (`make engines`): Triton is told before it is imported.
"""

import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

os.environ["TRITON_INTERPRET"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # vLLM then keeps Triton, though there is no driver
torch: Any = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import cuda_arms  # noqa: E402

N, V = 3, 4096


@pytest.fixture
def case() -> cuda_arms.Case:
    torch.manual_seed(5)
    return cuda_arms.Case(torch, N, V, "cpu")


def allowed(case: cuda_arms.Case, logits: Any) -> list[set[int]]:
    """The tokens of each row that top-p leaves."""
    x = cuda_arms.penalized(case)(logits) / cuda_arms.TEMPERATURE
    values, ids = x.softmax(-1).sort(dim=-1, descending=True)
    return [set(i[s - v <= cuda_arms.TOP_P].tolist()) for v, i, s in zip(values, ids, values.cumsum(-1), strict=True)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["torch", "vllm"])
def test_tokens_are_those_that_the_settings_leave(
    name: str, dtype: str, case: cuda_arms.Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "vllm":
        ops = pytest.importorskip("vllm.v1.sample.ops.topk_topp_sampler", exc_type=ImportError)
        if not pytest.importorskip("vllm.triton_utils").HAS_TRITON:
            pytest.skip("this vLLM does without Triton")
        # The interpreter lacks what its kernel of top-p needs; this one takes the same arguments.
        monkeypatch.setattr(ops, "apply_top_k_top_p", ops.apply_top_k_top_p_pytorch)
    logits = (4 * torch.randn(N, V)).to(getattr(torch, dtype))
    before = logits.clone()
    step = cuda_arms.PEERS[name](case)
    for _ in range(2):
        tokens = step(logits)
        assert tokens.shape == (N,)
        assert all(int(token) in left for token, left in zip(tokens, allowed(case, logits), strict=True))
    assert torch.equal(logits, before)


def test_flashinfer_takes_these_arguments(case: cuda_arms.Case, monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = pytest.importorskip("flashinfer.sampling", exc_type=ImportError)
    softmax = create_autospec(
        sampling.softmax, side_effect=lambda x, temperature: (x / temperature[:, None]).softmax(-1)
    )
    drawn = create_autospec(sampling.top_p_sampling_from_probs, side_effect=lambda p, top_p, **_: p.argmax(-1).int())
    monkeypatch.setattr(sampling, "softmax", softmax)
    monkeypatch.setattr(sampling, "top_p_sampling_from_probs", drawn)
    logits = torch.randn(N, V)
    assert cuda_arms.flashinfer(case)(logits).tolist() == cuda_arms.penalized(case)(logits).argmax(-1).tolist()
    (probabilities, top_p), named = drawn.call_args
    assert (probabilities.dtype, top_p.shape) == (torch.float32, (N,))
    assert {name: seed.dtype for name, seed in named.items()} == {"seed": torch.int64, "offset": torch.int64}
