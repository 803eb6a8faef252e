"""lzsampler.cuda on a machine with a GPU and torch: difficult rows against the CPU, bit for bit; then times of a step.

    make cuda-check                     # all of it: prints "cuda: pass" or what fails, and writes build/cuda/table.json
    python bench/cuda.py --check-only   # --rows N: how many rows

First the rows, also under compute-sanitizer where it is installed. Times are medians of CUDA graphs of up to 20
steps, each with another batch of rows, which the L2 cache does not hold when a graph begins. Beside ours: the maximum
of the rows, which is one read of them, torch's usual way (penalties by scatter, sort, cumulative sum, multinomial),
and FlashInfer's and vLLM's samplers where these packages work; a line says which do not, and why. Nsight Compute
counts the bytes of memory where it is installed.

Exit status: 0 when rows and aims hold; 1 when a row differs, a tool finds something or an aim is missed; 2 when
nothing could be checked, because torch, a GPU or the library is missing, which one line says. Without a GPU, tests run
the check of the rows alone (--twin).
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cuda_arms import LZ
from cuda_table import add_traffic, judged, launch_all, table
from lzsampler import LzsError, Params, Sampler
from lzsampler.cuda import Batch

SIZES = (1, 31, 777, 4096, 32000, 128256, 151936, 262144)
DTYPES = ("float32", "float16", "bfloat16")
BATCHES = (1, 2, 7, 32, 131, 132, 133)
KINDS = ("normal", "tied", "flat", "holes", "nan", "huge", "infinite", "lone")
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.0, "repetition_penalty": 1.2},
    {"temperature": 0.7, "top_p": 0.95, "top_k": 20, **LZ},
    {"top_p": 0.9, "lz_rule": "paper", "lz_penalty": 0.15, "lz_window": 512, "lz_buffer": 32},
    {"top_p": 0.999, "temperature": 5.0, "ties": "keep"},
    {"top_k": 3000, "min_p": 0.01, "temperature_last": True},
    {"min_p": 0.05, "dry_multiplier": 0.8, "frequency_penalty": 0.2},
    {"temperature": 1e-6, "presence_penalty": 1.0, "top_k": 1},
)


class OnTwin:
    """A numpy array, shown as one on the device of the tests."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = np.ascontiguousarray(array)
        self.__cuda_array_interface__ = {**self.array.__array_interface__, "version": 3}


class Machine:
    """Moves arrays to the device and back: by torch, or, for tests, not at all."""

    def __init__(self, twin: bool) -> None:
        self.torch: Any = None
        if not twin:
            here = Path(__file__).resolve().parent  # of a file with the name of a package that torch looks for
            sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]
            try:
                import torch
            except ImportError:
                cannot("torch with CUDA is needed, and it is not installed for this Python")
            if not torch.cuda.is_available():
                cannot("torch finds no CUDA device")
            self.torch = torch

    def put(self, array: npt.NDArray[Any], dtype: str | None = None) -> Any:
        """Return an array on the device. ``dtype``: what its items are, where numpy has no such type."""
        if not self.torch:
            return OnTwin(array)
        tensor = self.torch.from_numpy(array.copy()).cuda()
        return tensor.view(getattr(self.torch, dtype)) if dtype else tensor

    def get(self, array: Any) -> npt.NDArray[Any]:
        return np.asarray(array.cpu().numpy() if self.torch else array.array)


def row(rng: np.random.Generator, n_vocab: int, kind: str) -> npt.NDArray[np.float32]:
    x = rng.normal(0, 3, n_vocab).astype(np.float32)
    if kind == "tied":
        x = np.round(x)
    elif kind == "flat":
        x[:] = -1.5
    elif kind == "holes":
        x[rng.random(n_vocab) < 0.5] = -np.inf
    elif kind == "nan":
        x[rng.integers(n_vocab)] = np.nan
    elif kind == "huge":
        x *= np.float32(2.0) ** rng.integers(-140, 120, n_vocab).astype(np.float32)
    elif kind == "infinite":
        x[rng.integers(n_vocab, size=3)] = np.inf
    elif kind == "lone":
        x[:] = -np.inf
        x[rng.integers(n_vocab)] = 0
    return x


def half(logits: npt.NDArray[np.float32], dtype: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """Return logits in 16 bits, bfloat16 as uint16, and the float32 that they are."""
    with np.errstate(over="ignore"):
        if dtype == "float16":
            short = logits.astype(np.float16)
            return short, short.astype(np.float32)
    bits = (logits.view(np.uint32) >> 16).astype(np.uint16)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32)


def history(rng: np.random.Generator, n_vocab: int, n: int) -> npt.NDArray[np.int32]:
    period = int(rng.integers(1, 40))
    tokens = rng.integers(0, n_vocab, n).astype(np.int32)
    for i in range(period, n):
        if rng.random() < 0.97:
            tokens[i] = tokens[i - period]
    return tokens


def expected(
    params: Params, x: npt.NDArray[np.float32], past: npt.NDArray[np.int32], mask: npt.NDArray[np.uint32]
) -> int:
    sampler = Sampler(x.size, params)
    for token in past:
        sampler.accept(int(token))
    sampler.set_mask(mask)
    try:
        return sampler.sample(x)
    except (ValueError, LzsError):
        return -1


def check(machine: Machine, n_rows: int, seed: int, largest: int) -> int:
    """Compare ``n_rows`` rows of at most ``largest`` logits; return how many there were.

    Exits with a line where one differs.
    """
    rng = np.random.default_rng(seed)
    done = step = 0
    sizes = [n for n in SIZES if n <= largest]
    dtypes = DTYPES if machine.torch else DTYPES[:2]  # numpy has no bfloat16
    while done < n_rows:
        n_vocab, n = sizes[step % len(sizes)], min(BATCHES[step // 3 % len(BATCHES)], n_rows - done)
        past = np.zeros((n, 96), np.int32)
        lengths = rng.integers(0, 96, n).astype(np.int32)
        for i in range(n):
            past[i, : lengths[i]] = history(rng, n_vocab, lengths[i])
        logits = np.stack([row(rng, n_vocab, KINDS[int(rng.integers(len(KINDS)))]) for _ in range(n)])
        dtype = dtypes[step // 2 % len(dtypes)]
        given, logits = (logits, logits) if dtype == "float32" else half(logits, dtype)
        masks = rng.integers(0, 2**32, (n, (n_vocab + 31) // 32), dtype=np.uint32)
        if step % 2:
            masks[:] = 0xFFFFFFFF
        settings = [
            Params(seed=int(rng.integers(2**62)), **SETTINGS[int(rng.integers(len(SETTINGS)))]) for _ in range(n)
        ]
        order = rng.permutation(n).astype(np.int32)  # the slot of each row
        batch = Batch(n_vocab, rows=n)
        for i in range(n):
            batch.set_params(int(order[i]), settings[i])
        tokens, statuses = machine.put(np.full(n, -7, np.int32)), machine.put(np.full(n, -7, np.int32))
        arrays = {
            "slots": machine.put(order),
            "histories": machine.put(past),
            "lengths": machine.put(lengths),
            "positions": machine.put(lengths.astype(np.int64)),
            "masks": machine.put(masks.view(np.int32)),
        }
        rows = machine.put(given, dtype if dtype == "bfloat16" else None)
        batch.sample(rows, tokens, statuses, **arrays)
        batch.close()
        found, said = machine.get(tokens), machine.get(statuses)
        for i in range(n):
            wanted = expected(settings[i], logits[i], past[i, : lengths[i]], masks[i])
            if found[i] != wanted or (said[i] == 0) != (wanted >= 0):
                what = f"row {i} of step {step}, V={n_vocab}, {dtype}, {settings[i]}"
                sys.exit(f"cuda: fail: {what}: {wanted} became {found[i]}, status {said[i]}")
        done += n
        step += 1
    return done


def sanitized() -> list[str]:
    """Return what the tools of compute-sanitizer find in a small check of its own, a line each."""
    tool = shutil.which("compute-sanitizer")
    if not tool:
        print("compute-sanitizer: not found: memory, races and barriers are not checked", flush=True)
        return []
    problems = []
    for name in ("memcheck", "racecheck", "synccheck", "initcheck"):
        command = [tool, "--tool", name, "--error-exitcode", "9", sys.executable]
        command += [__file__, "--check-only", "--rows", "64", "--largest", "5000"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(f"compute-sanitizer {name}:", "clean" if done.returncode == 0 else "FAILED", flush=True)
        if done.returncode:
            problems.append(f"compute-sanitizer {name}")
            print(done.stdout[-4000:], done.stderr[-4000:], sep="\n")
    return problems


def cannot(why: str) -> NoReturn:
    """Exit with status 2: nothing could be checked."""
    print(f"cuda: not checked: {why}", file=sys.stderr)
    raise SystemExit(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="rows that are compared (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rows (default: %(default)s)")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="logits of a row (default: %(default)s)")
    parser.add_argument("--check-only", action="store_true", help="take no times")
    parser.add_argument("--launch", action="store_true", help="only run the steps that are timed, once, for a profiler")
    parser.add_argument("--twin", action="store_true", help="the library of the tests, on the CPU")
    options = parser.parse_args()
    machine = Machine(options.twin)
    try:
        Batch(1, rows=1).close()
    except LzsError as error:
        cannot(str(error))
    if options.launch:
        launch_all(machine.torch)
        return
    print("rows that are the CPU's:", check(machine, options.rows, options.seed, options.largest), flush=True)
    if options.twin or options.check_only:
        print("cuda: pass")
        return
    failed = sanitized()
    print("microseconds of a step of B rows of V logits, device:", machine.torch.cuda.get_device_name(), flush=True)
    lines = table(machine.torch)
    print(add_traffic(lines, Path(__file__)))
    path = Path("build/cuda/table.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(lines, indent=1), encoding="utf-8")
    print("written:", path)
    for met, line in judged(lines):
        print("met:   " if met else "MISSED:", line)
        failed += [] if met else [line]
    print("cuda: fail:" if failed else "cuda: pass", "; ".join(failed))
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
