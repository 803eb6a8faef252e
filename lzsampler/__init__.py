"""A sampler for llama.cpp / GGUF models that stops small and reasoning models from looping.

The LZ penalty (Ginart et al. 2025, arXiv 2504.20131) and the sampler around it, numpy in and numpy out. What touches
llama.cpp is in `lzsampler.llama` and `lzsampler.generate`; importing this package loads numpy and nothing heavier.
"""

from ._check import LzsError
from .params import STOP_ON_LOOP, Params, RepetitionDetection
from .sampler import Loop, Sampler, lz_bits

__version__ = "0.1.0"

__all__ = [
    "STOP_ON_LOOP",
    "Loop",
    "LzsError",
    "Params",
    "RepetitionDetection",
    "Sampler",
    "__version__",
    "lz_bits",
]
