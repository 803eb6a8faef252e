"""Arrays on a device from any library (torch, CuPy, Numba, JAX), without an import of that library.

`device_array` reads the address, shape and strides of an array through DLPack (``__dlpack__``, which reports bfloat16
and the device) or ``__cuda_array_interface__``. The caller must keep the array alive until the kernels have run.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError

_DEVICES = {2, 13}  # kDLCUDA, kDLCUDAManaged
_KINDS = {
    (0, 32): "int32",
    (0, 64): "int64",
    (1, 32): "uint32",
    (2, 16): "float16",
    (2, 32): "float32",
    (4, 16): "bfloat16",
}
_TYPES = {"<i4": "int32", "<i8": "int64", "<u4": "uint32", "<f2": "float16", "<f4": "float32"}
_SIZES = {"int32": 4, "int64": 8, "uint32": 4, "float16": 2, "float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class DeviceArray:
    """An array in device memory: ``stride`` counts items of the first dimension; the last dimension is contiguous."""

    address: int
    shape: tuple[int, ...]
    stride: int
    dtype: str


class _Tensor(ctypes.Structure):  # DLTensor of dlpack.h
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def device_array(
    name: str, value: object, shape: tuple[int | None, ...], dtypes: tuple[str, ...], device: int
) -> DeviceArray:
    """Return the address and layout of ``value``. ``shape``: the shape that ``value`` must have; None allows any size.

    TypeError if ``value`` is not an array on a device or has another dtype. ValueError for another shape, layout or
    device.
    """
    interface = getattr(value, "__cuda_array_interface__", None) if not hasattr(value, "__dlpack__") else None
    if interface is None and not hasattr(value, "__dlpack__"):
        kind = type(value).__name__
        raise ArgumentTypeError(f"{name} must be an array on a CUDA device (torch, CuPy, Numba, DLPack), got {kind}")
    found, strides = _by_interface(name, interface) if interface is not None else _by_dlpack(name, value, device)
    if found.dtype not in dtypes:
        raise ArgumentTypeError(f"{name} must be {' or '.join(dtypes)}, got {found.dtype}")
    wanted = "(" + ", ".join("n" if n is None else str(n) for n in shape) + ")"
    if len(found.shape) != len(shape) or any(n not in (None, m) for n, m in zip(shape, found.shape, strict=True)):
        raise ArgumentError(f"{name} must have shape {wanted}, got {found.shape}")
    if 0 in found.shape:
        return found
    if found.shape[-1] > 1 and strides[-1] != 1:
        raise ArgumentError(f"{name} must be contiguous in its last dimension, got strides {strides}")
    if len(shape) > 1 and found.shape[0] > 1 and strides[0] < found.shape[-1]:
        raise ArgumentError(f"the rows of {name} must not overlap, got strides {strides}")
    return found


def _by_dlpack(name: str, value: Any, device: int) -> tuple[DeviceArray, tuple[int, ...]]:
    kind, number = (int(part) for part in value.__dlpack_device__())
    if kind not in _DEVICES:
        raise ArgumentTypeError(
            f"{name} must be an array on a CUDA device, but this {type(value).__name__} is not on one"
        )
    if number != device:
        raise ArgumentError(f"{name} must be on device {device} of the batch, but is on device {number}")
    try:
        capsule = value.__dlpack__(stream=-1)  # no synchronization: the kernels run in the caller's stream
    except (BufferError, RuntimeError) as error:
        raise ArgumentError(f"{name} cannot be shared with the kernels: {error}") from None
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    t = _Tensor.from_address(pointer_of(capsule, b"dltensor"))
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else _contiguous(shape)
    dtype = _KINDS.get((t.code, t.bits), f"type {t.code} of {t.bits} bits") if t.lanes == 1 else "vectors"
    found = DeviceArray((t.data or 0) + t.byte_offset, shape, strides[0] if strides else 1, dtype)
    del capsule
    return found, strides


def _by_interface(name: str, interface: dict[str, Any]) -> tuple[DeviceArray, tuple[int, ...]]:
    shape = tuple(int(n) for n in interface["shape"])
    dtype = _TYPES.get(interface["typestr"], str(interface["typestr"]))
    strides = _contiguous(shape)
    if interface.get("strides") is not None:
        size = _SIZES.get(dtype, 1)
        if any(stride % size for stride in interface["strides"]):
            raise ArgumentError(f"{name} has strides that are not multiples of its items: {interface['strides']}")
        strides = tuple(int(stride) // size for stride in interface["strides"])
    return DeviceArray(int(interface["data"][0]), shape, strides[0] if strides else 1, dtype), strides


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)
