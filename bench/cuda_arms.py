"""What `cuda.py` times on the same rows: one read of them, lzsampler, torch, and the samplers of FlashInfer and vLLM.

An arm is a function that gives one step over rows of logits, float32 or bfloat16[n, n_vocab] on the device, which it
does not change. All steps apply the repetition penalty of 1,024 tokens, a temperature and top-p, and draw a token;
only ours has LZ, which the others do not know. tests/engines/test_bench.py holds the calls against the real
signatures, and runs vLLM's kernels in Triton's interpreter.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lzsampler import Params
from lzsampler.cuda import Batch

TEMPERATURE, TOP_P, REPETITION, HISTORY = 0.7, 0.95, 1.1, 1024
LZ: dict[str, Any] = {"lz_penalty": 0.3, "lz_run_penalty": 0.5}

Step = Callable[[Any], Any]  # rows of logits -> tokens, of which "read" has none


@dataclass
class Case:
    """The batch that an arm is made for."""

    torch: Any
    n: int
    n_vocab: int
    device: str = "cuda"
    past: Any = field(init=False)  # int32[n, HISTORY], tokens of each sequence

    def __post_init__(self) -> None:
        shape = (self.n, min(HISTORY, self.n_vocab))
        self.past = self.torch.randint(0, self.n_vocab, shape, dtype=self.torch.int32, device=self.device)

    def full(self, value: float, dtype: str) -> Any:
        """Return a value for each row."""
        return self.torch.full((self.n,), value, dtype=getattr(self.torch, dtype), device=self.device)


Arm = Callable[[Case], Step]


def read(case: Case) -> Step:
    """The floor: the maxima of the rows, which is one read of them."""
    return lambda x: x.amax(-1)


def ours(case: Case, *, lz: bool = True) -> Step:
    """lzsampler's step."""
    params = Params(temperature=TEMPERATURE, top_p=TOP_P, repetition_penalty=REPETITION, **(LZ if lz else {}))
    batch = Batch(case.n_vocab, rows=case.n)
    for slot in range(case.n):
        batch.set_params(slot, params)
    lengths = case.full(case.past.shape[1], "int32")
    tokens, statuses = case.torch.empty_like(lengths), case.torch.empty_like(lengths)
    arrays = {"histories": case.past, "lengths": lengths, "positions": lengths.long()}

    def step(x: Any) -> Any:
        batch.sample(x, tokens, statuses, stream=case.torch.cuda.current_stream(), **arrays)
        return tokens

    return step


def penalized(case: Case) -> Step:
    """Logits with the repetition penalty, as they are written in most places."""
    ids = case.past.long()

    def step(x: Any) -> Any:
        seen = x.gather(1, ids).float()
        return x.float().scatter(1, ids, case.torch.where(seen > 0, seen / REPETITION, seen * REPETITION))

    return step


def torch_sort(case: Case) -> Step:
    """torch: a sort, a cumulative sum and multinomial."""
    edited = penalized(case)

    def step(x: Any) -> Any:
        values, ids = (edited(x) / TEMPERATURE).sort(dim=-1, descending=True)
        probabilities = values.softmax(-1)
        probabilities[probabilities.cumsum(-1) - probabilities > TOP_P] = 0
        return ids.gather(1, probabilities.multinomial(1)).view(-1)

    return step


def flashinfer(case: Case) -> Step:
    """FlashInfer: its softmax with temperature and its top-p by rejection. It has no penalty: that is torch's."""
    from flashinfer.sampling import softmax, top_p_sampling_from_probs

    edited = penalized(case)
    seed = case.torch.ones(1, dtype=case.torch.int64, device=case.device)  # numbers would be fixed in a CUDA graph
    temperature, top_p = case.full(TEMPERATURE, "float32"), case.full(TOP_P, "float32")
    return lambda x: top_p_sampling_from_probs(softmax(edited(x), temperature), top_p, seed=seed, offset=seed)


def vllm(case: Case) -> Step:
    """vLLM's Model Runner V2: its sampler's steps for requests with seeds, for which it uses no FlashInfer."""
    from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p
    from vllm.v1.worker.gpu.sample.gumbel import apply_temperature, gumbel_sample
    from vllm.v1.worker.gpu.sample.penalties import apply_penalties, bincount

    torch, n, device = case.torch, case.n, case.device
    rows = torch.arange(n, dtype=torch.int32, device=device)
    prompt = torch.zeros(n, (case.n_vocab + 31) // 32, dtype=torch.int32, device=device)
    counts = torch.zeros(n, case.n_vocab, dtype=torch.int32, device=device)
    none, length = case.full(0, "int32"), case.past.shape[1]
    bincount(rows, case.past, none, case.full(length, "int32"), prompt, counts, length)
    zero, temperature, top_p = case.full(0, "float32"), case.full(TEMPERATURE, "float32"), case.full(TOP_P, "float32")
    repetition, seeds, positions = case.full(REPETITION, "float32"), case.full(1, "int64"), case.full(length, "int64")

    def step(x: Any) -> Any:
        logits = torch.empty_like(x, dtype=torch.float32).copy_(x)
        apply_penalties(logits, rows, none, none, repetition, zero, zero, prompt, counts)
        apply_temperature(logits, rows, temperature)
        logits = apply_top_k_top_p(logits, None, top_p)
        return gumbel_sample(logits, rows, temperature, seeds, positions, apply_temperature=False, is_drafting=False)

    return step


PEERS: dict[str, Arm] = {"torch": torch_sort, "flashinfer": flashinfer, "vllm": vllm}


def peers(torch: Any, device: str = "cuda") -> dict[str, Arm]:
    """Return the arms of `PEERS` that work here, after a step of each; a line says which do not, and why."""
    found = {}
    for name, arm in PEERS.items():
        try:
            case = Case(torch, 2, 4096, device)
            tokens = arm(case)(torch.randn(2, 4096, device=device))
            if tokens.shape != (2,) or not ((tokens >= 0) & (tokens < 4096)).all():
                raise RuntimeError(f"its tokens are {tokens.tolist()}")
            found[name] = arm
        except Exception as error:  # whatever a package of others raises, the rest is measured
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            print(f"{name}: not measured: {why}", flush=True)
    return found
