"""`quantize`: uses llama.cpp's own quantizer to write a model file with fewer bits per weight.

In microscaling types, blocks of 32 weights share a scale (Open Compute Project, MX Specification 1.0). By default,
llama.cpp writes MXFP4 only for the experts of a mixture. Here all matrices of the layers get MXFP4. Embeddings and
output get Q8_0, because fewer bits there harm a small model. MXFP6 types only serve to judge the quality of the format
(`mxfp6`).
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._check import boolean, integer
from .._values import counted
from ..errors import ArgumentError, LzsError, MissingExtra
from ..llama import gguf
from ..util.cores import physical_cores
from ..util.files import remove_leftovers, take_place, unfinished
from .mxfp6 import BITS, BLOCK, ELEMENTS, rounded

# Name -> number of llama.cpp's file type (llama_ftype). Types that need an importance matrix are missing.
_FILE_TYPES = {
    "f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 10, "q3_k_s": 11, "q3_k_m": 12,
    "q3_k_l": 13, "q4_k_s": 14, "q4_k_m": 15, "q5_k_s": 16, "q5_k_m": 17, "q6_k": 18, "iq4_nl": 25, "iq4_xs": 30,
    "bf16": 32,
}  # fmt: skip
_VALUES_ONLY = {f"mxfp6-{name}": name for name in ELEMENTS}
# Name -> ggml_type of the layers' matrices; all other matrices are Q8_0. BF16 can represent all values of MXFP6.
_LAYER_TYPES = {"mxfp4": 39, "nvfp4": 40, **dict.fromkeys(_VALUES_ONLY, 30)}
TYPES = (*_LAYER_TYPES, *_FILE_TYPES)
_IN_LAYERS = r"^blk\.[0-9]+\.(attn|ffn)_.*\.weight$"  # also matches norms and routers, which llama.cpp leaves alone
_FULL = {"F32", "F16", "BF16"}
_NEEDS_IMATRIX = re.compile(r"iq[123]_")
_ROUNDED_AT_ONCE = 2**20  # number of weights; each needs 50 bytes for intermediate values
_LINES_KEPT = 3  # the error shows this many last lines of a dead worker's stderr

OnProgress = Callable[[int, int], object]
Fallback = tuple[str, str, int, int]


@dataclass(frozen=True)
class Quantized:
    """A file that `quantize` wrote and read back.

    ``size``, ``was``: bytes of the new file and of the source. ``computed_size``: for MXFP6, the bytes that the file
    would have if llama.cpp had the type; None for other types. ``tensors``: number of tensors of each type.
    ``fallbacks``: a tuple (name, actual type, columns of a row, columns of a block) for each matrix whose rows do not
    fit the requested type.
    """

    path: Path
    type: str
    size: int
    was: int
    computed_size: int | None
    tensors: dict[str, int]
    fallbacks: tuple[Fallback, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {**vars(self), "path": str(self.path), "fallbacks": [list(fallback) for fallback in self.fallbacks]}


def quantize(
    source: str | Path,
    target: str | Path,
    type: str = "mxfp4",
    *,
    requantize: bool = False,
    overwrite: bool = False,
    n_threads: int | None = None,
    on_progress: OnProgress | None = None,
) -> Quantized:
    """Write a GGUF model with the weights of another model in fewer bits, and return a description of the new file.

    ``source``: a GGUF file, or the name of a model (`lzsampler.models`). ``type``: one of `TYPES`. "mxfp4" and "nvfp4"
    are the type of the layers' matrices; embeddings and output get Q8_0. "mxfp6-e2m3" and "mxfp6-e3m2" store the
    layers' matrices as BF16, with the values that MXFP6 would keep. Any other name is llama.cpp's type of that name.

    ``requantize``: allow a source that is already quantized. Its rounding errors stay in the weights. ``overwrite``:
    allow a ``target`` that exists. ``n_threads``: None means a thread for each physical core. ``on_progress``: called
    with the number of finished tensors and the number of all tensors.

    ``target`` appears whole or not at all. Before it appears, lzsampler compares the size of the new file with its
    header, and llama.cpp loads the file and decodes a token. Raises ValueError for bad arguments or an impossible
    target. Raises an LzsError of one line for an unusable source, a full disk, or a refusal of llama.cpp. Raises
    ImportError without llama-cpp-python.
    """
    if type not in TYPES:
        raise ArgumentError(_unknown(type))
    boolean("requantize", requantize)
    boolean("overwrite", overwrite)
    threads = physical_cores() if n_threads is None else integer("n_threads", n_threads, 1, 512)
    target = Path(target)
    remove_leftovers(target.parent)  # `_check_room` counts the space that this frees.
    header = gguf.read(source)
    _check_source(header, requantize)
    _check_target(header, target, overwrite)
    _check_room(header, target, type)
    with unfinished(target) as part:
        fallbacks = _write(header, part, type, threads, on_progress)
        made = _read_back(part, header, type)
        take_place(part, target)
    return Quantized(
        path=target,
        type=type,
        size=made.file_bytes,
        was=header.file_bytes,
        computed_size=_computed_size(made) if type in _VALUES_ONLY else None,
        tensors=dict(Counter(tensor.type for tensor in made.tensors)),
        fallbacks=fallbacks,
    )


def _unknown(type: str) -> str:
    if _NEEDS_IMATRIX.match(str(type)):
        return f"llama.cpp writes {type} only with an importance matrix, which lzs does not make: use llama-quantize"
    return f"type must be one of {', '.join(TYPES)}, got {type!r}, which llama.cpp does not write"


def _check_source(header: gguf.Header, requantize: bool) -> None:
    if not header.tensors:
        raise LzsError(f"{header.path} has a vocabulary and no weights: there is nothing to quantize")
    if header.expected_bytes > header.file_bytes:
        missing = header.expected_bytes - header.file_bytes
        raise LzsError(
            f"{header.path} is truncated: {counted(missing, 'byte is', 'bytes are')} missing; fetch it again"
        )
    if header.parts > 1:
        raise LzsError(f"{header.path} is one of {header.parts} parts: merge them with llama-gguf-split first")
    quantized = sorted({tensor.type for tensor in header.tensors} - _FULL)
    if quantized and not requantize:
        raise LzsError(
            f"{header.path} is quantized already ({', '.join(quantized)}), and its errors would stay in the weights:"
            " give the BF16, F16 or F32 file of the model, or allow it with --requantize"
        )


def _check_target(header: gguf.Header, target: Path, overwrite: bool) -> None:
    if target.is_dir():
        raise ArgumentError(f"{target} is a folder: name the file to write")
    if not target.parent.is_dir():
        raise ArgumentError(f"there is no folder {target.parent}: make it first")
    if target.exists() and target.samefile(header.path):
        raise ArgumentError(f"{target} is the source itself: name another file")
    if target.exists() and not target.is_file():
        raise ArgumentError(f"{target} is not a regular file: name another one")
    if target.suffix.lower() != ".gguf":
        raise ArgumentError(f"{target} does not end in .gguf, by which programs recognise a model: add it to the name")
    if target.exists() and not overwrite:
        raise ArgumentError(f"{target} exists: name another file, or allow it with --overwrite")


def _check_room(header: gguf.Header, target: Path, type: str) -> None:
    beside = header.file_bytes - sum(tensor.bytes or 0 for tensor in header.tensors)
    need = beside + sum(int(_least_bits(tensor, type) * tensor.elements / 8) for tensor in header.tensors)
    if type in _VALUES_ONLY:  # An intermediate F32 file needs space, too.
        need += beside + 4 * header.parameters
    free = shutil.disk_usage(target.parent).free
    if need > free:
        raise LzsError(
            f"{target} needs {need / 1e6:,.0f} MB, but only {free / 1e6:,.0f} MB of the disk are free: make room"
        )


def _least_bits(tensor: gguf.Tensor, type: str) -> float:
    """Return the least number of bits that a weight of a tensor takes in the file."""
    if len(tensor.shape) == 1:
        return 32
    if type in _LAYER_TYPES:
        return (16 if type in _VALUES_ONLY else 4.25) if _in_layers(tensor) else 8.5
    return {"f32": 32, "f16": 16, "bf16": 16, "q8_0": 8.5}.get(type, 2.5)


def _in_layers(tensor: gguf.Tensor) -> bool:
    return len(tensor.shape) > 1 and re.match(_IN_LAYERS, tensor.name) is not None and "gate_inp" not in tensor.name


def _computed_size(made: gguf.Header) -> int:
    """Return the size that a file with MXFP6 values would have if each value took 6.25 bits."""
    return made.file_bytes - sum(
        int(tensor.elements * (16 - BITS) / 8) for tensor in made.tensors if _in_layers(tensor)
    )


def _write(
    header: gguf.Header, part: Path, type: str, threads: int, on_progress: OnProgress | None
) -> tuple[Fallback, ...]:
    ftype = _FILE_TYPES.get(type, _FILE_TYPES["q8_0"])
    overrides = {_IN_LAYERS: _LAYER_TYPES[type]} if type in _LAYER_TYPES else {}
    if type not in _VALUES_ONLY:
        return _run(header.path, part, ftype, overrides, threads, on_progress)
    with unfinished(part) as full:  # an F32 file, to round weights only once
        _run(header.path, full, _FILE_TYPES["f32"], {}, threads, on_progress)
        _round(gguf.read(full), _VALUES_ONLY[type])
        return _run(full, part, ftype, overrides, threads, on_progress)


def _round(header: gguf.Header, element: str) -> None:
    """Round the layers' matrices of an F32 file to the values of MXFP6, in place."""
    weights = np.memmap(header.path, np.uint8, "r+")
    for tensor in header.tensors:
        if not _in_layers(tensor):
            continue
        if tensor.shape[0] % BLOCK:
            raise LzsError(
                f"{tensor.name} has rows of {tensor.shape[0]} weights, which are not whole blocks of {BLOCK}"
            )
        data = weights[tensor.offset : tensor.offset + 4 * tensor.elements].view(np.float32)
        for start in range(0, data.size, _ROUNDED_AT_ONCE):
            piece = data[start : start + _ROUNDED_AT_ONCE]
            piece[:] = rounded(piece, element)
    weights.flush()


def _run(
    source: Path, target: Path, ftype: int, overrides: dict[str, int], threads: int, on_progress: OnProgress | None
) -> tuple[Fallback, ...]:
    """Run llama.cpp's quantizer in another process, and return the fallbacks."""
    job = {
        "source": str(source), "target": str(target), "ftype": ftype, "overrides": overrides, "threads": threads
    }  # fmt: skip
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__package__}.worker import main; main()"
    fallbacks: list[Fallback] = []
    error = None
    with (
        tempfile.TemporaryFile() as said,  # A pipe could fill up, since nothing reads it while the worker runs.
        subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(job)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,  # The worker ends when stdin closes.
        ) as worker,
    ):  # fmt: skip
        try:
            assert worker.stdout is not None
            for line in worker.stdout:
                message = json.loads(line)
                if "missing" in message:
                    raise MissingExtra(message["missing"])
                if "done" in message and on_progress is not None:
                    on_progress(message["done"], message["total"])
                if fallback := message.get("fallback"):
                    fallbacks.append((fallback["tensor"], fallback["type"], fallback["columns"], fallback["block"]))
                error = message.get("error", error)
        except BaseException:
            worker.kill()
            raise
        status = worker.wait()
        said.seek(0)
        last = said.read().decode("utf-8", "replace").strip().splitlines()[-_LINES_KEPT:]
    if error is None:
        how = f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        raise LzsError(f"llama.cpp's quantizer was {how}{': ' if last else ''}{' '.join(last)}")
    if error:
        if shutil.disk_usage(target.parent).free < 2**20:
            raise LzsError(f"no space is left on the disk of {target.parent}")
        if "iostream error" in error:  # C++ has only this message for a failed write.
            limit = "a quota or a limit on the size of files is reached"
            raise LzsError(f"llama.cpp cannot write to {target.parent}: {limit}")
        raise LzsError(f"llama.cpp cannot quantize {source.name}: {error}")
    return tuple(fallbacks)


def _read_back(part: Path, source: gguf.Header, type: str) -> gguf.Header:
    made = gguf.read(part)
    if made.expected_bytes > made.file_bytes or len(made.tensors) != len(source.tensors):
        raise LzsError(f"llama.cpp wrote {made.file_bytes:,} of {made.expected_bytes:,} bytes: is the disk full?")
    expected = "BF16" if type in _VALUES_ONLY else type.upper()
    if type in _LAYER_TYPES and not any(tensor.type == expected for tensor in made.tensors):
        raise LzsError(f"no matrix of {source.path.name} can have type {type}: its rows are not whole blocks")
    return made
