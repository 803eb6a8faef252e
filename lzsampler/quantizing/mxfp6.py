"""Rounds weights to the values that MXFP6, the 6-bit microscaling formats, can store.

OCP Microscaling Formats (MX) Specification 1.0, sections 5.3.2 and 6.3: blocks of 32 numbers share a scale. The scale
is 2^(e - emax), where e is the exponent of the block's greatest magnitude and emax the exponent of the format's
greatest number. Each number is divided by the scale and rounded to the nearest value of the format, ties to even. A
number beyond the greatest value becomes the greatest value. llama.cpp has no such type, so this module shows the
quality of the format but not its speed.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError

BLOCK = 32
BITS = 6 + 8 / BLOCK  # bits per weight, including its share of the bits of the scale
_LEAST_SCALE, _GREATEST_SCALE = -127, 127  # range of the exponents of a scale (E8M0)


class Element(NamedTuple):
    """A 6-bit float format. ``mantissa``: number of mantissa bits. ``least_exponent``: exponent of the least normal
    number. ``greatest_exponent``: exponent of the greatest number. ``greatest``: the greatest number.
    """

    mantissa: int
    least_exponent: int
    greatest_exponent: int
    greatest: float


ELEMENTS = {"e2m3": Element(3, 0, 2, 7.5), "e3m2": Element(2, -2, 4, 28.0)}


def rounded(weights: npt.NDArray[np.float32], element: str) -> npt.NDArray[np.float32]:
    """Return weights, float32[..., a multiple of 32], after a round trip through MXFP6.

    ``element``: "e2m3" or "e3m2". BF16 can represent every result exactly. Raises ValueError if the rows are not whole
    blocks, and for NaN and infinities, for which the specification has no rule.
    """
    form = ELEMENTS[element]
    if weights.shape[-1] % BLOCK:
        raise ArgumentError(f"rows must be a multiple of {BLOCK} weights, got {weights.shape[-1]}")
    if not np.isfinite(weights).all():
        raise ArgumentError("weights must be finite")
    blocks = weights.reshape(-1, BLOCK).astype(np.float64)
    exponent = np.frexp(np.abs(blocks).max(axis=1, keepdims=True))[1] - 1  # frexp's fraction is in [0.5, 1)
    scale = np.ldexp(1.0, np.clip(exponent - form.greatest_exponent, _LEAST_SCALE, _GREATEST_SCALE))
    scaled = blocks / scale
    step = np.ldexp(1.0, np.maximum(np.frexp(np.abs(scaled))[1] - 1, form.least_exponent) - form.mantissa)
    nearest = np.clip(np.rint(scaled / step) * step, -form.greatest, form.greatest)
    values: npt.NDArray[np.float32] = (nearest * scale).astype(np.float32).reshape(weights.shape)
    return values
