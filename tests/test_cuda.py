"""`lzsampler.cuda` on a machine without a GPU: its library is built with the twin, which runs the kernels on the CPU.

Device memory is then the memory of numpy arrays, which `OnDevice` shows as arrays on a device.
"""

import ctypes
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lzsampler import LzsError, Params, Sampler
from lzsampler.cuda import Batch, library
from native import ROOT, compiler, run
from samplers import mask_of

V = 500


class OnDevice:
    """A numpy array that says it is on a device."""

    def __init__(self, array: npt.NDArray[Any], **changes: object) -> None:
        interface = {"shape": array.shape, "strides": array.strides, "typestr": array.dtype.str, "version": 3}
        self.__cuda_array_interface__ = {**interface, "data": (array.ctypes.data, False), **changes}
        self.array = array


class OnDeviceByDlpack:
    """The same by DLPack, which knows the device."""

    def __init__(self, array: npt.NDArray[Any], device: tuple[int, int] = (2, 0)) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, *, stream: int | None = None) -> object:
        assert stream == -1
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sys.platform == "win32":
        pytest.skip("the twin needs GCC or Clang")
    path = tmp_path_factory.mktemp("cuda") / library.NAME
    sources = [
        path
        for folder in ("state", "penalty", "constraint", "plan", "backend", "verify")
        for path in (ROOT / "c" / folder).glob("*.c")
    ]
    sources += [ROOT / "c/sampler.c", *(ROOT / "c/backend/cuda").glob("*.c"), ROOT / "tests/c/cuda_machine.c"]
    flags = ["-std=c11", "-O1", "-shared", "-fPIC", "-Ic", "-Ic/include", "-Itests/c"]
    run([compiler(), *flags, *sources, "-lm", "-o", path], ROOT)
    return path


@pytest.fixture
def built(twin: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(library.VARIABLE, str(twin))
    return twin


def blocks_held(path: Path) -> int:
    """Blocks of device memory that are not freed."""
    return ctypes.c_int.in_dll(library._loaded(str(path)), "the_cuda_machine").value


SETTINGS = [
    Params(
        seed=1,
        temperature=0.8,
        top_p=0.9,
        lz_penalty=0.3,
        lz_min_match=3,
        lz_run_penalty=0.4,
        lz_run_allowance=6,
        lz_separators=mask_of(V, [1, 2]).tobytes(),
        lz_commas=mask_of(V, [4]).tobytes(),
    ),
    Params(seed=2, top_k=20, lz_rule="paper", lz_penalty=1.0, lz_formula="codelength", lz_window=40),
    Params(seed=3, temperature=0.0, repetition_penalty=1.3, dry_multiplier=0.8, exempt=(3,)),
    Params(seed=4, min_p=0.1, presence_penalty=0.5, logit_bias={5: -1.0, 6: -np.inf}, ties="keep"),
]


@pytest.mark.parametrize("planned", [False, True])
def test_texts_are_those_of_samplers(built: Path, planned: bool) -> None:
    rng = np.random.default_rng(7)
    samplers = [Sampler(V, params) for params in SETTINGS]
    batch = Batch(V, rows=4, slots=5)
    assert batch.memory > 0
    histories = np.zeros((4, 64), np.int32)
    n = np.zeros(4, np.int32)
    for i, params in enumerate(SETTINGS):
        batch.set_params(i + 1, params)
    for _ in range(40):
        order = rng.permutation(4)[: rng.integers(1, 5)].astype(np.int32)
        logits = rng.normal(size=(len(order), V)).astype(np.float32)
        logits[:, :6] += 3
        mask = rng.integers(0, 2**32, (len(order), 16), dtype=np.uint32) | np.uint32(0x3F)
        tokens, statuses = np.full(len(order), -7, np.int32), np.full(len(order), -7, np.int32)
        for i in order[planned * -1 :] if planned else []:
            batch.set_plan(int(i) + 1, samplers[i])
        batch.sample(
            OnDeviceByDlpack(logits),
            OnDevice(tokens),
            OnDevice(statuses),
            slots=OnDevice(order + np.int32(1)),
            histories=OnDevice(histories[order]),
            lengths=OnDevice(n[order]),
            positions=OnDevice(n[order].astype(np.int64)),
            masks=OnDevice(mask),
        )
        assert not statuses.any()
        for row, i in enumerate(order):
            samplers[i].set_mask(mask[row])
            assert samplers[i].sample(logits[row]) == tokens[row]
            samplers[i].accept(int(tokens[row]))
            histories[i, n[i]] = tokens[row]
            n[i] += 1
        if planned:  # it stays in force: the next step of this slot has to be planned again
            batch.set_params(int(order[-1]) + 1, SETTINGS[order[-1]])
    batch.close()
    batch.close()
    with pytest.raises(ValueError, match="this batch is closed"):
        batch.set_params(0, SETTINGS[0])
    assert blocks_held(built) == 0


def test_float16_rows_with_strides(built: Path) -> None:
    logits = np.random.default_rng(1).normal(size=(3, V + 12)).astype(np.float16)[:, :V]
    batch = Batch(V, rows=3)
    tokens, statuses = np.zeros(3, np.int32), np.ones(3, np.int32)
    params = Params(seed=9)
    for i in range(3):
        batch.set_params(i, replace(params, seed=i))
    for wrapped in (OnDevice(logits), OnDeviceByDlpack(logits)):
        batch.sample(
            wrapped, OnDevice(tokens), OnDevice(statuses), positions=OnDevice(np.full(3, 0, np.int64)), stream=0
        )
        expected = [Sampler(V, replace(params, seed=i)).sample(logits[i].astype(np.float32)) for i in range(3)]
        assert tokens.tolist() == expected
        assert not statuses.any()


def test_a_row_that_fails_disturbs_no_other(built: Path) -> None:
    batch = Batch(V, rows=3)
    batch.set_params(0, Params())
    batch.set_params(1, Params())
    logits = np.zeros((3, V), np.float32)
    logits[1, 7] = np.nan
    tokens, statuses = np.zeros(3, np.int32), np.ones(3, np.int32)
    batch.sample(OnDevice(logits), OnDevice(tokens), OnDevice(statuses), positions=OnDevice(np.zeros(3, np.int64)))
    assert tokens[0] == Sampler(V).sample(logits[0])
    assert statuses.tolist() == [0, -4, -1]  # fine, NaN, no settings
    assert tokens[1:].tolist() == [-1, -1]


def rows(n: int = 2, width: int = V, dtype: str = "f4") -> OnDevice:
    return OnDevice(np.zeros((n, width), dtype))


def ints(n: int = 2) -> OnDevice:
    return OnDevice(np.zeros(n, np.int32))


TRANSPOSED = np.zeros((V, 2), np.float32).T


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (np.zeros((2, V), np.float32), ints(), ints()),
            TypeError,
            "logits must be .* on a CUDA device, but this ndarray is not",
        ),
        (([[0.0] * V], ints(), ints()), TypeError, "logits must be an array on a CUDA device .* got list"),
        ((rows(dtype="f8"), ints(), ints()), TypeError, "logits must be float32 or bfloat16 or float16, got <f8"),
        ((rows(width=V - 1), ints(), ints()), ValueError, rf"logits must have shape \(n, {V}\), got \(2, {V - 1}\)"),
        ((ints(), ints(), ints()), TypeError, "got int32"),
        ((rows(3), ints(3), ints(3)), ValueError, "the number of rows must be from 1 to 2, got 3"),
        ((rows(0), ints(0), ints(0)), ValueError, "the number of rows must be from 1 to 2, got 0"),
        ((OnDevice(TRANSPOSED), ints(), ints()), ValueError, "contiguous in its last dimension"),
        (
            (OnDeviceByDlpack(np.zeros((2, V), np.float32), (2, 1)), ints(), ints()),
            ValueError,
            "on device 0 .* on device 1",
        ),
        ((rows(), ints(3), ints()), ValueError, r"tokens must have shape \(2\), got \(3,\)"),
        ((rows(), OnDevice(np.zeros(2, np.int64)), ints()), TypeError, "tokens must be int32, got int64"),
    ],
)
def test_wrong_arrays_are_named(built: Path, arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    batch = Batch(V, rows=2)
    with pytest.raises(error, match=message):
        batch.sample(*arguments)


def test_an_array_that_is_not_shared_says_why(built: Path) -> None:
    logits = np.zeros((1, V), np.float32)
    logits.flags.writeable = False  # which NumPy does not export; torch refuses tensors with a gradient
    batch = Batch(V, rows=1)
    with pytest.raises(ValueError, match=r"^logits cannot be shared with the kernels: "):
        batch.sample(OnDeviceByDlpack(logits), ints(1), ints(1))


@pytest.mark.parametrize("name", ["slots", "histories", "lengths", "starts", "positions", "masks"])
def test_wrong_optional_arrays_are_named(built: Path, name: str) -> None:
    batch = Batch(V, rows=2)
    with pytest.raises(ValueError, match=f"{name} must be|{name} must have"):
        batch.sample(rows(), ints(), ints(), **{name: OnDevice(np.zeros((2, 2, 2), np.float32))})


def test_wrong_arguments(built: Path) -> None:
    for arguments in ({"rows": 0}, {"rows": 1, "slots": 0}, {"rows": 1, "max_edits": V + 1}, {"rows": 1, "device": -1}):
        with pytest.raises(ValueError, match=f"{list(arguments)[-1]} must be"):
            Batch(V, **arguments)
    with pytest.raises(LzsError, match="no CUDA device of this number"):
        Batch(V, rows=1, device=3)
    batch = Batch(V, rows=1, max_listed=2)
    with pytest.raises(TypeError, match="params must be a Params"):
        batch.set_params(0, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="slot must be from 0 to 0, got 1"):
        batch.set_params(1, Params())
    with pytest.raises(ValueError, match="have more than max_listed items together"):
        batch.set_params(0, Params(exempt=(1, 2, 3)))
    with pytest.raises(ValueError, match="token"):
        batch.set_params(0, Params(exempt=(V,)))
    with pytest.raises(TypeError, match="sampler must be a Sampler"):
        batch.set_plan(0, Params())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_vocab of the plan"):
        batch.set_plan(0, Sampler(V + 1))
    with pytest.raises(ValueError, match="stream must be"):
        batch.sample(rows(1), ints(1), ints(1), stream="first")
    with pytest.raises(ValueError, match="lengths is NULL"):
        batch.sample(rows(1), ints(1), ints(1), histories=OnDevice(np.zeros((1, 4), np.int32)))


def test_a_device_that_fails_is_one_line_and_leaves_the_batch_usable(built: Path) -> None:
    """As with a stream that was destroyed."""
    machine = (ctypes.c_int * 3).in_dll(
        library._loaded(str(built)), "the_cuda_machine"
    )  # blocks, calls, the one that fails
    batch = Batch(V, rows=1)
    tokens, statuses = np.full(1, -7, np.int32), np.full(1, -7, np.int32)
    step = (rows(1), OnDevice(tokens), OnDevice(statuses))
    machine[2] = machine[1] + 1
    with pytest.raises(LzsError, match=r"^the device failed$"):
        batch.set_params(0, Params(temperature=0.0))
    batch.set_params(0, Params(temperature=0.0))
    machine[2] = machine[1] + 1
    with pytest.raises(LzsError, match=r"^the device failed$"):
        batch.sample(*step, positions=OnDevice(np.zeros(1, np.int64)))
    assert (tokens[0], statuses[0]) == (-7, -7)
    batch.sample(*step, positions=OnDevice(np.zeros(1, np.int64)))
    assert (tokens[0], statuses[0]) == (0, 0)
    batch.close()
    assert blocks_held(built) == 0
    machine[2] = machine[1] + 1
    with pytest.raises(LzsError, match=r"^the device failed$"):
        Batch(V, rows=1)
    assert blocks_held(built) == 0


def test_without_the_library_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(library.VARIABLE, raising=False)
    monkeypatch.setattr(library, "places", lambda: [tmp_path / library.NAME])
    with pytest.raises(LzsError, match=r"^the CUDA kernels are not built: run `make cuda` in a checkout, or set "):
        Batch(V, rows=1)
    (tmp_path / library.NAME).write_text("not a library")
    with pytest.raises(LzsError, match=f"{library.NAME} is not the CUDA library of this lzsampler: "):
        Batch(V, rows=1)
    monkeypatch.setenv(library.VARIABLE, str(tmp_path / "missing.so"))
    with pytest.raises(LzsError, match=r"missing\.so is not the CUDA library"):
        Batch(V, rows=1)


def test_importing_loads_no_library_and_nothing_heavy() -> None:
    code = "import lzsampler.cuda, sys; print(sorted({'torch', 'cupy', 'numba'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, library.VARIABLE: "/nowhere"}, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
