"""lzsampler.cuda on a machine with a GPU and torch: difficult rows against the CPU, bit for bit; then times of a step.

    make cuda-check                     # both; prints "passed" or what differs, and writes build/cuda/table.json
    python bench/cuda.py --check-only   # --rows N: how many rows

Times are medians of CUDA graphs of up to 20 steps, each with another batch of rows, so that these do not stay in the
L2 cache. Beside ours: the maximum of the rows, which is one read of them, and torch's usual way (penalties by scatter,
sort, cumulative sum, multinomial). NOT YET RUN ON A GPU: without one, tests run the check alone (--twin).
"""

import argparse
import json
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lzsampler import LzsError, Params, Sampler
from lzsampler.cuda import Batch

SIZES = (1, 31, 777, 4096, 32000, 128256, 151936)
BATCHES = (1, 2, 7, 32, 131, 132, 133)
TIMED_SIZES, TIMED_BATCHES = (32000, 128256, 151936, 262144), (1, 8, 32, 64, 128, 256)
KINDS = ("normal", "tied", "flat", "holes", "nan", "huge", "infinite", "lone")
LZ: dict[str, Any] = {"lz_penalty": 0.3, "lz_min_match": 5, "lz_window": 2048, "lz_buffer": 2047}
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.0, "repetition_penalty": 1.2},
    {"temperature": 0.7, "top_p": 0.95, "top_k": 20, **LZ},
    {"top_p": 0.9, "lz_penalty": 0.15, "lz_window": 512, "lz_buffer": 32},
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
                sys.exit("cuda: torch with CUDA is needed here")
            if not torch.cuda.is_available():
                sys.exit("cuda: torch finds no CUDA device")
            self.torch = torch

    def put(self, array: npt.NDArray[Any]) -> Any:
        return self.torch.from_numpy(array.copy()).cuda() if self.torch else OnTwin(array)

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


def check(machine: Machine, n_rows: int, seed: int) -> int:
    """Compare at least ``n_rows`` rows; return how many there were. Exits with a line where one differs."""
    rng = np.random.default_rng(seed)
    done = step = 0
    while done < n_rows:
        n_vocab, n = SIZES[step % len(SIZES)], min(BATCHES[step // 3 % len(BATCHES)], n_rows - done)
        past = np.zeros((n, 96), np.int32)
        lengths = rng.integers(0, 96, n).astype(np.int32)
        for i in range(n):
            past[i, : lengths[i]] = history(rng, n_vocab, lengths[i])
        logits = np.stack([row(rng, n_vocab, KINDS[int(rng.integers(len(KINDS)))]) for _ in range(n)])
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
        rows = machine.put(logits)
        batch.sample(rows, tokens, statuses, **arrays)
        batch.close()
        found, said = machine.get(tokens), machine.get(statuses)
        for i in range(n):
            wanted = expected(settings[i], logits[i], past[i, : lengths[i]], masks[i])
            if found[i] != wanted or (said[i] == 0) != (wanted >= 0):
                what = f"row {i} of step {step}, V={n_vocab}, {settings[i]}"
                sys.exit(f"cuda: FAILED: {what}: {wanted} became {found[i]}, status {said[i]}")
        done += n
        step += 1
    return done


def torch_way(torch: Any, x: Any, past: Any, temperature: float, top_p: float) -> Any:
    """Return tokens by repetition penalty, temperature, top-p and a draw, as written in most places."""
    seen = x.gather(1, past)
    x = x.scatter(1, past, torch.where(seen > 0, seen / 1.1, seen * 1.1)) / temperature
    values, ids = x.sort(dim=-1, descending=True)
    probabilities = values.softmax(-1)
    probabilities[probabilities.cumsum(-1) - probabilities > top_p] = 0
    return ids.gather(1, probabilities.multinomial(1))


def timed(torch: Any, steps: list[Any]) -> float:
    """Return the median time of one of the steps in microseconds."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for step in steps:
            step(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for step in steps:
            step(stream)
    times = []
    for _ in range(30):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * start.elapsed_time(end) / len(steps))
    return float(statistics.median(times))


def table(torch: Any) -> list[dict[str, Any]]:
    made = []
    params = Params(temperature=0.7, top_p=0.95, repetition_penalty=1.1, **LZ)
    for n_vocab in TIMED_SIZES:
        for n in TIMED_BATCHES:
            copies = max(2, min(20, 2**31 // (4 * n * n_vocab)))
            logits = [3 * torch.randn(n, n_vocab, device="cuda") for _ in range(copies)]
            past = torch.randint(0, n_vocab, (n, 1024), dtype=torch.int32, device="cuda")
            ids, lengths = past.long(), torch.full((n,), 1024, dtype=torch.int32, device="cuda")
            tokens, statuses = torch.empty_like(lengths), torch.empty_like(lengths)
            batch = Batch(n_vocab, rows=n)
            for i in range(n):
                batch.set_params(i, params)
            torch.cuda.synchronize()
            arrays = {"histories": past, "lengths": lengths, "positions": lengths.long()}
            sample = partial(batch.sample, tokens=tokens, statuses=statuses, **arrays)
            usual = partial(torch_way, torch, past=ids, temperature=0.7, top_p=0.95)
            line: dict[str, Any] = {"V": n_vocab, "B": n}
            line["ours"] = timed(torch, [lambda stream, x=x, f=sample: f(x, stream=stream) for x in logits])
            line["read"] = timed(torch, [lambda stream, x=x: x.amax(-1) for x in logits])
            line["torch"] = timed(torch, [lambda stream, x=x, f=usual: f(x) for x in logits])
            batch.close()
            print(*(f"{k} {v:.1f}" if isinstance(v, float) else f"{k} {v}" for k, v in line.items()), flush=True)
            made.append(line)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="rows that are compared (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rows (default: %(default)s)")
    parser.add_argument("--check-only", action="store_true", help="take no times")
    parser.add_argument("--twin", action="store_true", help="the library of the tests, on the CPU")
    options = parser.parse_args()
    machine = Machine(options.twin)
    try:
        print("cuda: passed:", check(machine, options.rows, options.seed), "rows", flush=True)
    except LzsError as error:
        sys.exit(f"cuda: {error}")
    if options.twin or options.check_only:
        return
    print("microseconds for a step of B rows of V logits, device:", machine.torch.cuda.get_device_name())
    path = Path("build/cuda/table.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table(machine.torch), indent=1), encoding="utf-8")
    print("written:", path)


if __name__ == "__main__":
    main()
