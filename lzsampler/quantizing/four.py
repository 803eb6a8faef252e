"""`four`: compares four ways to run a model: as it is, in MXFP4, with a draft, and with both (`lzs bench --four`).

A post on speculative decoding and microscaling formats (docs/sources.md) compares these ways on an accelerator, in its
Figures 7 and 8. The post's models have 7 billion weights, and its drafts 350 and 115 million. The post uses blocks of 7
tokens, MXFP6 for the target, and FP16 as the base. `ARTICLE` has the post's figures.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from .._check import integer
from ..decoding.draft import N_MAX, Draft, refuse_draft, too_large
from ..decoding.speedup import ClockedModel, Timed, Way, check_counts, compare
from ..decoding.verification import MAX_DRAFT
from ..errors import ArgumentError
from ..llama import gguf
from ..llama.attention import FlashAttention
from ..llama.model import Model, Prompt
from ..params import Params
from ..util.files import TemporaryFolder
from .quantize import quantize

WAYS = ("base", "MX", "speculation", "both")
MICROSCALED = "mxfp4"
ARTICLE = {"base": (1.0, 1.0), "MX": (2.0, 2.0), "speculation": (1.5, 2.0), "both": (4.0, 4.0)}
"""Approximate speed of each way in the post, relative to the base: (lowest, highest) over the post's models."""

_FULL = ("BF16", "F16")
_READ_BYTES = 64 << 20  # bytes that each thread reads, more than a cache holds
_READS = 8

OnProgress = Callable[[str, int, int], object]


@dataclass(frozen=True)
class Four:
    """Figures of four ways to run a model. The keys of its dicts are `WAYS`.

    ``target``, ``draft``: names of the files. ``type``: type of the base's weights. ``converted``: whether the weights
    were converted to this type. ``n_max``: largest number of tokens in a block. ``texts``: number of texts in each way.

    ``weights``: bytes that one decode of the target reads, for each way. ``draft_weights``: bytes that one decode of
    the draft reads. ``bandwidth``: measured bytes per second that ``n_threads`` threads read from memory. ``bounds``:
    tokens per second that this bandwidth allows if a decode reads every weight once and nothing else takes time.
    """

    target: str
    draft: str
    type: str
    converted: bool
    n_max: int
    n_threads: int
    texts: int
    bandwidth: float
    draft_weights: int
    weights: dict[str, int]
    ways: dict[str, Timed]
    bounds: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return the fields, and the figures of the post (`ARTICLE`), ready for JSON."""
        return {**asdict(self), "article": {name: list(given) for name, given in ARTICLE.items()}}


def four(
    target: str | Path,
    draft: str | Path,
    prompts: Sequence[Prompt],
    params: Params | None = None,
    *,
    n_max: int = N_MAX,
    max_tokens: int = 128,
    pairs: int = 10,
    n_ctx: int | None = None,
    n_batch: int = 512,
    n_threads: int | None = None,
    n_gpu_layers: int = -1,
    flash_attn: FlashAttention = "auto",
    on_progress: OnProgress | None = None,
    on_note: Callable[[str], object] | None = None,
) -> Four:
    """Write texts with a model as it is, in MXFP4, with a draft, and with both, and compare the times.

    ``target``: a GGUF file in BF16 or F16, or the name of a model; lzsampler first converts other types to BF16.
    ``draft``: a smaller model with the same vocabulary. ``params``: None means greedy texts with the default penalty.
    ``n_max``: largest number of tokens in a block, 1..32. ``prompts`` and ``pairs``: see
    `lzsampler.decoding.speedup.compare`. ``max_tokens``: number of tokens of every text. Texts continue past an end
    token: otherwise the texts of the base and of MXFP4 would have different lengths. ``n_ctx`` to ``flash_attn``: see
    `Model`; all ways share these arguments. ``on_progress``: called with the name of the step, the finished amount of
    work and the total amount of work. ``on_note``: called with a warning before the measurement if the draft is at
    least as large as a target. Intermediate files are in the system's folder for temporary files and are removed at the
    end.

    Raises the errors of `quantize`, `Model` and `generate` before it measures anything, and LzsError if no matrix of
    the target can have type MXFP4.
    """
    n_max = integer("n_max", n_max, 1, MAX_DRAFT)
    check_counts(pairs, max_tokens)
    say = on_progress or (lambda *_: None)
    header = gguf.read(target)
    opened: dict[str, Any] = {"n_batch": n_batch, "n_gpu_layers": n_gpu_layers, "flash_attn": flash_attn}
    with ExitStack() as stack:
        small = stack.enter_context(ClockedModel(draft, n_ctx=n_ctx, n_threads=n_threads, **opened))
        folder = stack.enter_context(TemporaryFolder()).path
        source, converted = header.path, header.quantization not in _FULL
        if converted:
            source = folder / "base.gguf"
            quantize(header.path, source, "bf16", requantize=True, on_progress=_staged(say, "writing BF16"))
        base = stack.enter_context(Model(source, n_ctx=n_ctx, n_threads=n_threads, **opened))
        refuse_draft(base, Draft(small, n_max=n_max))
        _check_prompts(base, prompts, max_tokens)
        scaled = folder / "mx.gguf"
        quantize(source, scaled, MICROSCALED, on_progress=_staged(say, "writing MXFP4"))
        mx = stack.enter_context(Model(scaled, n_ctx=base.n_ctx, n_threads=base.n_threads, **opened))
        large = too_large(base.header, small.header, f"{header.path.name} in {base.header.quantization}")
        large = large or too_large(mx.header, small.header, f"{header.path.name} in MXFP4")
        if on_note is not None and large is not None:
            on_note(large)
        for path in {source, scaled} - {header.path}:  # llama.cpp has loaded these files, so they can be removed.
            with suppress(OSError):  # Some systems do not remove open files. Such files are removed with their folder.
                path.unlink()
        params = Params.recommended(base, temperature=0.0) if params is None else params
        drafting = Draft(small, n_max=n_max)
        ways = {
            "base": Way(base, params),
            "MX": Way(mx, params),
            "speculation": Way(base, params, drafting),
            "both": Way(mx, params, drafting),
        }
        say("measuring the memory", 0, 1)
        bandwidth = memory_bandwidth(base.n_threads)
        timed = compare(
            ways, prompts, pairs=pairs, max_tokens=max_tokens, ignore_eos=True, on_progress=_staged(say, "texts")
        )
        bandwidth = max(bandwidth, memory_bandwidth(base.n_threads))  # The first measurement may be too low.
        weights = {name: read_bytes(way.model.header) for name, way in ways.items()}
        of_draft = read_bytes(small.header)
        return Four(
            target=header.path.name,
            draft=small.path.name,
            type=base.header.quantization,
            converted=converted,
            n_max=n_max,
            n_threads=base.n_threads,
            texts=pairs,
            bandwidth=bandwidth,
            draft_weights=of_draft,
            weights=weights,
            ways=timed,
            bounds={
                name: bandwidth * made.tokens_per_call / (weights[name] + made.drafted_per_call * of_draft)
                for name, made in timed.items()
            },
        )


def read_bytes(header: gguf.Header) -> int:
    """Return the number of bytes of weights that a decode of one token reads.

    A decode reads one row of the embeddings, but all rows if the embeddings are also the output. In a mixture of
    experts, it reads only the used experts.
    """
    experts, used = (header.of_architecture(key) or 1 for key in ("expert_count", "expert_used_count"))
    own_output = any(tensor.name == "output.weight" for tensor in header.tensors)
    total = 0.0
    for tensor in header.tensors:
        if not (own_output and tensor.name == "token_embd.weight"):
            total += (tensor.bytes or 0) * (used / experts if "_exps." in tensor.name else 1)
    return round(total)


def memory_bandwidth(n_threads: int) -> float:
    """Return the bytes per second that all threads together read from memory.

    Each thread reads 64 MiB several times; the shortest time counts.
    """
    integer("n_threads", n_threads, 1, 512)
    parts = [np.ones(_READ_BYTES // 8, np.int64) for _ in range(n_threads)]
    best = float("inf")
    with ThreadPoolExecutor(n_threads) as pool:
        for _ in range(_READS):
            before = perf_counter()
            list(pool.map(np.max, parts))
            best = min(best, perf_counter() - before)
    return n_threads * _READ_BYTES / best


def _staged(say: OnProgress, stage: str) -> Callable[[int, int], object]:
    return lambda done, total: say(stage, done, total)


def _check_prompts(model: Model, prompts: Sequence[Prompt], max_tokens: int) -> None:
    for prompt in prompts:
        length = len(model.asked(prompt)[0])
        if length > model.n_ctx - max_tokens:
            raise ArgumentError(
                f"a prompt of {length} tokens and {max_tokens} more do not fit in the context of {model.n_ctx}: "
                "shorten the prompt, make fewer tokens or enlarge the context"
            )
