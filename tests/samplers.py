"""What tests of `Sampler` share: one that has a history, masks, bits of rows, and whether two samplers are alike."""

import numpy as np
import numpy.typing as npt

from lzsampler import Params, Sampler

Logits = npt.NDArray[np.float32]
Mask = npt.NDArray[np.uint32]


def after(n_vocab: int, params: Params | None = None, history: list[int] | None = None) -> Sampler:
    sampler = Sampler(n_vocab, params)
    for token in history or []:
        sampler.accept(token)
    return sampler


def mask_of(n_vocab: int, allowed: list[int]) -> Mask:
    words = np.zeros((n_vocab + 31) // 32, np.uint32)
    for token in allowed:
        words[token // 32] |= np.uint32(1 << (token % 32))
    return words


def bits_of(logits: Logits) -> list[int]:
    """The very bits: -0.0 is not 0.0 and a NaN is itself."""
    out: list[int] = logits.view(np.uint32).tolist()
    return out


def assert_same(a: Sampler, b: Sampler, logits: Logits) -> None:
    assert a.position == b.position
    for ours, theirs in zip(a.edits(), b.edits(), strict=True):
        assert ours.tolist() == theirs.tolist()
    for ours, theirs in zip(a.distribution(logits), b.distribution(logits), strict=True):
        assert ours.tolist() == theirs.tolist()
    assert a.sample(logits) == b.sample(logits)
