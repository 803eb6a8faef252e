"""Bytes of a sequence, of a backend that sequences share, of a clone, and of the stack that a call needs.

    python bench/memory.py [--vocab 151936] [--json]

A sampler keeps its text, so its bytes are given after 700 and after 5,000 tokens. A clone has a backend of its own and
shares the lists of its settings (tests/c/test_alloc.c counts the bytes): those of the default penalty, as long as a
large vocabulary has them. `us` is the median time of `lzs_sampler_clone` while all clones are kept, so that the system
has yet to give the memory. The stack is measured by stack.c, which is built with $CC (cc) and -O2 and run with every
table of kernels that this CPU has; shown is the deepest call over its settings.
"""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from lzsampler import Params, Sampler
from lzsampler._check import check
from lzsampler._ffi import ffi, lib
from lzsampler.params import PRESETS, SEPARATORS
from lzsampler.sampler import c_params
from measure import report
from sampler import CHAIN, LZ, PENALTIES, history

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ["sampler.c", "state/*.c", "penalty/*.c", "constraint/*.c", "plan/*.c", "backend/*.c", "verify/*.c"]
KERNELS = ("scalar", "avx2", "avx512", "neon")
N_EDITS = 512
SEQUENCES: dict[str, dict[str, Any]] = {
    "nothing on": {},
    "LZ 512/32": LZ,
    "LZ 512/32, penalties 512, top-k 40": {**CHAIN, **PENALTIES, **LZ},
    "LZ 4,096/256": {**LZ, "lz_window": 4096, "lz_buffer": 256},
    "DRY 1,024": {"dry_multiplier": 0.8, "dry_penalty_last_n": 1024},
}


def sequence(n_vocab: int, params: Params, n_tokens: int) -> int:
    """Return the bytes of a sampler that uses a backend of others, after n_tokens tokens."""
    p, arrays = c_params(params)
    out, backend = ffi.new("lzs_sampler **"), ffi.new("lzs_backend **")
    check(lib.lzs_backend_new(n_vocab, lib.lzs_edits_max(p, n_vocab), backend))
    check(lib.lzs_sampler_new_shared(n_vocab, p, backend[0], out))
    del arrays
    for token in history(n_vocab, n_tokens):
        check(lib.lzs_accept(out[0], token))
    held = int(lib.lzs_memory(out[0]))
    lib.lzs_sampler_free(out[0])
    lib.lzs_backend_free(backend[0])
    return held


def heap(n_vocab: int) -> list[dict[str, Any]]:
    """Return what sequences and backends hold."""
    out = ffi.new("lzs_backend **")
    check(lib.lzs_backend_new(n_vocab, N_EDITS, out))
    results = [{"bytes of": f"a backend, V = {n_vocab}, {N_EDITS} edits", "bytes": int(lib.lzs_backend_memory(out[0]))}]
    for name, fields in SEQUENCES.items():
        for n in (700, 5000):
            held = sequence(n_vocab, Params(**fields), n)
            results.append({"bytes of": f"a sequence of {n} tokens, {name}", "bytes": held})
    lib.lzs_backend_free(out[0])
    return results


def clones(n_vocab: int) -> list[dict[str, Any]]:
    """Return what a clone takes, in bytes and in microseconds."""
    sets: dict[str, Any] = {name: bytes((n_vocab + 31) // 32 * 4) for name in SEPARATORS}
    results = []
    for n in (700, 5000):
        sampler = Sampler(n_vocab, Params(**PRESETS["default"], **sets))
        without = Sampler(n_vocab, Params(**PRESETS["default"]))
        for token in history(n_vocab, n):
            sampler.accept(token)
            without.accept(token)
        made, us = ffi.new("lzs_sampler *[]", 200), np.empty(200)
        for i in range(us.size):
            start = perf_counter_ns()
            lib.lzs_sampler_clone(sampler.handle, made + i)
            us[i] = (perf_counter_ns() - start) / 1000
        for one in made:
            lib.lzs_sampler_free(one)
        shared = sampler.memory - without.memory
        what = f"a clone of {n} tokens, the default, V = {n_vocab}, beside {shared} of shared sets"
        results.append({"bytes of": what, "bytes": sampler.clone().memory - shared, "us": float(np.median(us))})
    return results


def stack() -> list[dict[str, Any]]:
    """Return how deep each call goes with each table of kernels."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "stack"
        files = [str(path) for pattern in SOURCES for path in sorted((ROOT / "c").glob(pattern))]
        # -z now: the dynamic linker resolves functions before they are called, and not on their stack
        command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-pthread", f"-I{ROOT / 'c' / 'include'}"]
        command += [str(Path(__file__).with_name("stack.c")), *files, "-lm", "-Wl,-z,now", "-o", str(program)]
        subprocess.run(command, check=True)
        for kernels in KERNELS:
            done = subprocess.run(
                [program], env={**os.environ, "LZS_KERNELS": kernels}, check=True, capture_output=True, text=True
            )
            in_use, *lines = done.stdout.splitlines()
            if in_use != kernels:  # this CPU does not run them
                continue
            deepest: dict[str, int] = {}
            for line in lines:
                _, call, depth = line.split()
                deepest[call] = max(int(depth), deepest.get(call, 0))
            results += [{"bytes of": f"stack of {call}, {kernels}", "bytes": n} for call, n in deepest.items()]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", type=int, default=151936)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report(heap(arguments.vocab) + clones(arguments.vocab) + stack(), arguments.json)


if __name__ == "__main__":
    main()
