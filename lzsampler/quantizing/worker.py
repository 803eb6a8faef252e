"""The process that runs llama.cpp's quantizer. `quantize` starts it with a job in JSON as its argument.

The quantizer needs its own process, because nothing can interrupt it and a failed check of ggml ends the process. Each
line of standard output is a JSON object. {"done", "total"} counts tensors. {"fallback"} reports a matrix that did not
get the requested type. {"missing"} means that llama-cpp-python is not installed. {"error"} comes last, and is "" if the
file is written.

Standard input is empty. If it closes, the caller has ended, and the worker ends too.
"""

import ctypes
import json
import os
import re
import sys
from contextlib import suppress
from threading import Thread
from typing import Any

import numpy as np

from ..errors import LzsError, MissingExtra

_PROGRESS = re.compile(r"\[\s*(\d+)/\s*(\d+)\]")
_FALLBACK = re.compile(r"warning:\s*(\S+)\s+- ncols\s+(\d+) not divisible by (\d+) .*falling back to\s+(\S+)")
_REASON = re.compile(r"(?:failed to quantize|error loading model|ERROR): (.*)")


def main() -> None:
    """Run the job on the command line, in JSON: source, target, ftype, overrides {pattern: ggml_type}, threads."""
    try:
        from ..llama.binding import llama_cpp
    except MissingExtra as missing:
        _say(missing=str(missing))
        return
    job = json.loads(sys.argv[1])
    Thread(target=_end_with_caller, args=(job["target"],), daemon=True).start()
    reasons: list[str] = []
    line = ""

    @llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
    def read(level: int, text: bytes, _: object) -> None:
        nonlocal line
        line += text.decode("utf-8", "replace")
        *whole, line = line.split("\n")
        for part in whole:
            _tell(part)
            if found := _REASON.search(part):
                reasons.append(found[1].strip())
        if found := _PROGRESS.match(line):  # This tensor is not finished, since its line is incomplete.
            _say(done=int(found[1]) - 1, total=int(found[2]))

    llama_cpp.llama_log_set(read, None)
    params = llama_cpp.llama_model_quantize_default_params()
    params.nthread, params.ftype, params.allow_requantize = job["threads"], job["ftype"], True
    overrides = (llama_cpp.llama_model_tensor_override * (len(job["overrides"]) + 1))()  # An empty entry ends the list.
    for override, (pattern, kind) in zip(overrides, job["overrides"].items(), strict=False):
        override.pattern, override.type = pattern.encode(), kind
    params.tt_overrides = ctypes.cast(overrides, type(params.tt_overrides))
    status = llama_cpp.llama_model_quantize(job["source"].encode(), job["target"].encode(), ctypes.byref(params))
    if status:
        _say(error=f"it does not quantize this model: {reasons[-1] if reasons else f'status {status}'}")
    else:
        _say(error=_load(job["target"]))


def _end_with_caller(target: str) -> None:
    """Wait until the caller has ended, then remove ``target`` and end this process, which nothing else can stop."""
    while os.read(0, 1):
        pass
    with suppress(OSError):
        os.unlink(target)
    os._exit(1)


def _load(path: str) -> str:
    """Return an error message for a file, or "" if llama.cpp loads it and decodes a token to finite logits."""
    from ..llama.model import Model

    try:
        with Model(path, n_ctx=32, n_batch=32, n_gpu_layers=0) as model:
            model.decode([0])
            finite = bool(np.isfinite(model.logits()).all())
    except LzsError as error:
        return f"it does not load what it wrote: {error}"
    return "" if finite else "the logits of what it wrote are not finite"


def _tell(line: str) -> None:
    if found := _PROGRESS.match(line):
        _say(done=int(found[1]), total=int(found[2]))
    elif found := _FALLBACK.match(line):
        _say(fallback={"tensor": found[1], "columns": int(found[2]), "block": int(found[3]), "type": found[4].upper()})


def _say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)
