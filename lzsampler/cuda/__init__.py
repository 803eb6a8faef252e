"""Sampling for batches of rows on a CUDA device: the same tokens as `Sampler`, bit for bit. Never yet run on a GPU.

``make cuda`` builds the kernels into a library of their own. Importing this package needs neither that library nor a
GPU. docs/cuda.md has the details.
"""

from .batch import Batch

__all__ = ["Batch"]
