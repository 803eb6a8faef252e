"""`lzs quantize`: files that llama.cpp's quantizer writes, and the values of MXFP6."""

import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lzsampler import LzsError
from lzsampler.llama import gguf
from lzsampler.models import default_draft, default_model
from lzsampler.quantizing.mxfp6 import BITS, rounded

pytest.importorskip("llama_cpp")

from lzsampler.quantizing import quantize as module
from lzsampler.quantizing.quantize import TYPES, Quantized, quantize

VOCABULARY = Path(__file__).with_name("vectors") / "ggml-vocab-llama-spm.gguf"
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # MX Specification 1.0, table 5


@pytest.fixture(scope="module")
def bf16(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bf16") / "bf16.gguf"
    quantize(default_model(), path, "bf16", requantize=True)
    return path


def weights(path: Path, name: str) -> npt.NDArray[np.float32]:
    """Return a matrix in BF16 or F32, [rows, columns]."""
    (tensor,) = (tensor for tensor in gguf.read(path).tensors if tensor.name == name)
    data = np.fromfile(path, np.uint8, tensor.bytes or 0, offset=tensor.offset)
    shape = tensor.shape[::-1]
    if tensor.type == "BF16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    assert tensor.type == "F32"
    return data.view(np.float32).reshape(shape)


# ---- MXFP6 ----


def values_of(element: str) -> list[float]:
    """Return the 32 magnitudes of a format in the order of their codes, from the fields of its bits."""
    exponents, mantissas, bias = {"e2m3": (4, 8, 1), "e3m2": (8, 4, 3)}[element]
    return [
        2.0 ** (max(exponent, 1) - bias) * ((exponent > 0) + mantissa / mantissas)
        for exponent, mantissa in itertools.product(range(exponents), range(mantissas))
    ]


def nearest(x: float, values: list[float]) -> float:
    """Return the value nearest to |x|, of two the one with an even code, with the sign of x."""
    code = min(range(len(values)), key=lambda code: (abs(abs(x) - values[code]), code % 2))
    return float(np.copysign(values[code], x))


@pytest.mark.parametrize(("element", "greatest", "power"), [("e2m3", 7.5, 2), ("e3m2", 28.0, 4)])
@given(block=st.lists(st.floats(-100, 100, width=32), min_size=32, max_size=32), shift=st.integers(-100, 100))
def test_values_of_mxfp6(element: str, greatest: float, power: int, block: list[float], shift: int) -> None:
    values = values_of(element)
    assert values[-1] == greatest
    array = np.ldexp(np.array(block, np.float32), shift)
    most = float(np.abs(array).max())
    scale = 2.0 ** (np.floor(np.log2(most)) - power) if most > 0 else 1.0
    if 0 < most < 2.0**-100:
        return  # where log2 of a denormal would have to be exact
    expected = np.array([scale * nearest(x / scale, values) for x in array.astype(np.float64)])
    assert np.array_equal(rounded(array, element), expected.astype(np.float32))


def test_mxfp6_at_its_edges() -> None:
    assert not rounded(np.zeros((2, 32), np.float32), "e2m3").any()
    tiny = np.full((1, 32), np.finfo(np.float32).smallest_subnormal, np.float32)
    assert (rounded(tiny, "e3m2") >= 0).all()
    huge = np.full((1, 32), np.finfo(np.float32).max, np.float32)
    assert np.isfinite(rounded(huge, "e2m3")).all()
    again = rounded(np.random.default_rng(1).normal(size=(4, 64)).astype(np.float32), "e2m3")
    assert np.array_equal(rounded(again, "e2m3"), again)
    assert not (again.view(np.uint32) & 0xFFFF).any()  # exact in BF16
    with pytest.raises(ValueError, match="rows must be a multiple of 32 weights, got 31"):
        rounded(np.zeros((2, 31), np.float32), "e2m3")
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="weights must be finite"):
            rounded(np.full(32, bad, np.float32), "e3m2")


# ---- files ----


def test_mxfp4(bf16: Path, tmp_path: Path) -> None:
    """Every matrix of the layers has the type, with weights on the grid of E2M1; what is left is Q8_0."""
    seen: list[tuple[int, int]] = []
    made = quantize(bf16, tmp_path / "mx.gguf", on_progress=lambda done, total: seen.append((done, total)))
    header = gguf.read(tmp_path / "mx.gguf")
    assert header.expected_bytes == header.file_bytes == made.size
    assert made.tensors == {"F32": 17, "Q8_0": 1, "MXFP4": 56}
    assert (made.was, made.computed_size, made.fallbacks) == (bf16.stat().st_size, None, ())
    assert all((tensor.type == "MXFP4") == (tensor.name.startswith("blk.") and len(tensor.shape) == 2)
               for tensor in header.tensors)  # fmt: skip
    assert seen == sorted(seen)
    assert seen[-1] == (74, 74)
    quantize(tmp_path / "mx.gguf", tmp_path / "back.gguf", "f32", requantize=True)
    name = "blk.3.ffn_down.weight"
    before, after = weights(bf16, name), weights(tmp_path / "back.gguf", name)
    assert 0.02 < np.linalg.norm(after - before) / np.linalg.norm(before) < 0.2
    blocks = np.abs(after.reshape(-1, 32)).astype(np.float64)
    exponents = np.log2(blocks.max(axis=1, where=blocks > 0, initial=2.0**-60) / 4)
    scales = 2.0 ** np.floor(exponents + 1e-9)  # a block's greatest is 4 or 6 times its scale, or less if none is near
    on_grid = [np.isin(blocks / (scales * factor)[:, None], E2M1).all(axis=1) for factor in (1, 0.5, 2)]
    assert np.logical_or.reduce(on_grid).mean() > 0.999


@pytest.mark.parametrize("element", ["e2m3", "e3m2"])
def test_mxfp6(bf16: Path, tmp_path: Path, element: str) -> None:
    """The file has exactly the values of the round trip, and the size is computed."""
    made = quantize(bf16, tmp_path / "mx.gguf", f"mxfp6-{element}")
    assert made.tensors == {"F32": 17, "Q8_0": 1, "BF16": 56}
    for name in ("blk.0.attn_q.weight", "blk.7.ffn_up.weight"):
        assert np.array_equal(weights(tmp_path / "mx.gguf", name), rounded(weights(bf16, name), element))
    norm = "blk.5.attn_norm.weight"
    assert np.array_equal(weights(tmp_path / "mx.gguf", norm), weights(bf16, norm))
    layers = sum(tensor.elements for tensor in gguf.read(bf16).tensors if len(tensor.shape) == 2) - 256 * 4096
    assert made.computed_size == made.size - layers * (16 - BITS) / 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mx.gguf"]


def test_types_of_llama_cpp(bf16: Path, tmp_path: Path) -> None:
    """A number of the table that is another type's would show here."""
    for kind in ("nvfp4", "q2_k", "q3_k_m", "q4_0", "q5_1", "q6_k", "iq4_nl", "f16"):
        made = quantize(bf16, tmp_path / "x.gguf", kind, overwrite=True, n_threads=1)
        assert max(made.tensors, key=lambda name: made.tensors[name]).lower() == kind.partition("_m")[0]
    assert len(set(module._FILE_TYPES.values())) == len(module._FILE_TYPES)


def test_a_fallback_is_told(tmp_path: Path) -> None:
    """Types in blocks of 256 do not fit the narrow rows of the draft model."""
    made = quantize(default_draft(), tmp_path / "x.gguf", "q4_k_m", requantize=True)
    assert made.fallbacks
    for name, kind, columns, block in made.fallbacks:
        (tensor,) = (tensor for tensor in gguf.read(tmp_path / "x.gguf").tensors if tensor.name == name)
        assert (tensor.type, tensor.shape[0], block) == (kind, columns, 256)
        assert columns % block


# ---- what goes wrong ----


def test_arguments(bf16: Path, tmp_path: Path) -> None:
    (tmp_path / "there.gguf").write_bytes(b"kept")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(bf16.read_bytes()[:-1000])
    target = tmp_path / "x.gguf"
    bad: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: quantize(bf16, target, "mxfp8"), ValueError, "got 'mxfp8', which llama.cpp does not write"),
        (lambda: quantize(bf16, target, "iq2_xxs"), ValueError, "iq2_xxs only with an importance matrix"),
        (lambda: quantize(bf16, target, None), ValueError, "type must be one of"),  # type: ignore[arg-type]
        (lambda: quantize(bf16, target, n_threads=0), ValueError, "n_threads must be from 1 to 512, got 0"),
        (lambda: quantize(bf16, bf16, overwrite=True), ValueError, "is the source itself: name another file"),
        (lambda: quantize(bf16, tmp_path), ValueError, "is a folder: name the file to write"),
        (lambda: quantize(bf16, tmp_path / "no" / "x.gguf"), ValueError, "there is no folder .*no: make it first"),
        (lambda: quantize(bf16, tmp_path / "there.gguf"), ValueError, "exists: name another file, or allow it with"),
        (lambda: quantize(bf16, tmp_path / "x.bin"), ValueError, "x.bin does not end in .gguf"),
        (lambda: quantize(bf16, "/dev/null"), ValueError, "is not a regular file"),
        (lambda: quantize(tmp_path / "none.gguf", target), ValueError, "none.gguf does not exist"),
        (lambda: quantize(default_model(), target), LzsError, "is quantized already \\(Q8_0\\).*--requantize"),
        (lambda: quantize(cut, target), LzsError, r"cut\.gguf is truncated: 1,000 bytes are missing; fetch it again"),
        (lambda: quantize(VOCABULARY, target), LzsError, "has a vocabulary and no weights"),
        (lambda: quantize(Path(__file__), target), LzsError, "is not a GGUF file"),
    ]  # fmt: skip
    for call, error, message in bad:
        with pytest.raises(error, match=message):
            call()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.gguf", "there.gguf"]
    assert (tmp_path / "there.gguf").read_bytes() == b"kept"


def test_a_full_disk_is_seen_before_the_work(bf16: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("usage", (), {"free": 2_000_000})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(LzsError, match=r"x\.gguf needs \d+ MB, but only 2 MB of the disk are free: make room"):
        quantize(bf16, tmp_path / "x.gguf")
    assert not list(tmp_path.iterdir())


def test_a_disk_that_gets_full_leaves_nothing(bf16: Path, tmp_path: Path) -> None:
    """llama.cpp leaves a file that is cut off."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000));"
    code = f"{limit} from lzsampler.cli.main import main; main()"
    command = [sys.executable, "-c", code, "quantize", str(bf16), str(tmp_path / "x.gguf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    limit_reached = "a quota or a limit on the size of files is reached"
    assert done.stderr == f"lzs: llama.cpp cannot write to {tmp_path}: {limit_reached}\n"
    assert not list(tmp_path.iterdir())
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1_000_000


def test_ctrl_c_leaves_nothing(bf16: Path, tmp_path: Path) -> None:
    calls = itertools.count()

    def interrupt(done: int, total: int) -> None:
        if next(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quantize(bf16, tmp_path / "x.gguf", on_progress=interrupt)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="no locks that the system gives up")
def test_what_a_killed_one_left_is_removed_by_the_next(bf16: Path, tmp_path: Path) -> None:
    """By one that is refused, too."""
    code = """
import os, signal, sys
from lzsampler import quantize
quantize(sys.argv[1], sys.argv[2], "mxfp6-e2m3", on_progress=lambda *_: os.killpg(0, signal.SIGKILL))
"""
    command = [sys.executable, "-c", code, str(bf16), str(tmp_path / "x.gguf")]
    for _ in range(3):
        killed = subprocess.run(command, timeout=120, start_new_session=True)
        assert killed.returncode == -signal.SIGKILL
        assert [path.suffix for path in tmp_path.iterdir()] == [".tmp"] * 2
    with pytest.raises(ValueError, match="add it to the name"):
        quantize(bf16, tmp_path / "y")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="no locks that the system gives up")
def test_the_worker_of_a_killed_one_ends(bf16: Path, tmp_path: Path) -> None:
    """It went on, and made its file anew when the next run had removed it."""
    code = """
import os, signal, sys
from lzsampler import quantize
quantize(sys.argv[1], sys.argv[2], on_progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
"""
    command = [sys.executable, "-c", code, str(bf16), str(tmp_path / "x.gguf")]
    with subprocess.Popen(command, start_new_session=True) as killed:
        killed.wait(120)
        for _ in range(3000):
            try:
                os.killpg(killed.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.01)
        else:
            pytest.fail("the worker goes on")
    assert not list(tmp_path.iterdir())


def test_a_worker_that_dies_is_one_line(bf16: Path, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        for child in psutil.Process().children():
            if not killed:
                killed.append(child.pid)
                child.kill()

    with pytest.raises(LzsError, match=r"llama\.cpp's quantizer was ended by SIGKILL"):
        quantize(bf16, tmp_path / "x.gguf", on_progress=kill)
    assert killed
    assert not list(tmp_path.iterdir())


# ---- the command ----


def lzs(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "lzsampler", "quantize", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command(bf16: Path, tmp_path: Path) -> None:
    target = tmp_path / "mx.gguf"
    done = lzs(bf16, target, "--type", "MXFP4")
    assert (done.returncode, done.stderr) == (0, "")
    share = target.stat().st_size / bf16.stat().st_size
    size = f"{target.stat().st_size / 1e6:.1f} MB of {bf16.stat().st_size / 1e6:.1f} MB, {share:.0%}"
    assert done.stdout == f"wrote {target}: {size} (tensors: F32 x 17, Q8_0 x 1, MXFP4 x 56)\n"
    done = lzs(bf16, target, "--type", "mxfp6-e2m3", "--overwrite", "--json")
    facts = json.loads(done.stdout)
    assert (facts["type"], facts["size"]) == ("mxfp6-e2m3", target.stat().st_size)
    assert set(facts) == set(Quantized.__dataclass_fields__)
    done = lzs(bf16, target)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"lzs: {target} exists: name another file, or allow it with --overwrite\n"
    assert lzs(bf16, tmp_path / "q.gguf", "-q").stdout == ""


def test_the_help_names_every_type() -> None:
    words = lzs("--help").stdout.replace(",", " ").replace(".", " ").split()
    assert set(TYPES) <= set(words)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_terminal_s_ctrl_c(bf16: Path, tmp_path: Path, number: int, status: int) -> None:
    """Both processes get the signal; what was begun is gone, and nobody is left behind."""
    command = [sys.executable, "-m", "lzsampler", "quantize", str(bf16), str(tmp_path / "x.gguf"), "--type", "f32"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        while process.poll() is None and not list(tmp_path.iterdir()):
            time.sleep(0.001)
        os.killpg(process.pid, number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, status)  # 0 where it had ended first
    assert b"Traceback" not in errors
    assert process.returncode == 0 or not list(tmp_path.iterdir())
