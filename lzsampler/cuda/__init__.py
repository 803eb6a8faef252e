"""Batches of rows on a CUDA device: the tokens of `Sampler`, bit for bit. Not yet run or measured on a GPU.

The kernels are a library of their own, which ``make cuda`` builds; importing this package needs neither it nor a GPU.
docs/cuda.md has the details.
"""

from .batch import Batch

__all__ = ["Batch"]
