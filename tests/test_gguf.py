"""The GGUF header reader: real files, files made here, and damaged ones."""

import ctypes
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from lzsampler import LzsError
from lzsampler.llama import gguf
from lzsampler.models import default_draft, default_model

VOCABULARY = Path(__file__).with_name("vectors") / "ggml-vocab-llama-spm.gguf"


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def pair(key: str, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


def tiny(version: int = 3, weights: int = 68) -> bytes:
    """A file with one Q8_0 tensor of 64 weights (68 bytes)."""
    pairs = [
        pair("general.architecture", 8, string("llama")),
        pair("llama.context_length", 4, struct.pack("<I", 128)),
        pair("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 3) + string("<s>") + string("é") + string("</s>")),
        pair("tokenizer.ggml.scores", 9, struct.pack("<IQ3f", 6, 3, 0.0, -1.0, 0.5)),
        pair("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 2)),
        pair("tokenizer.ggml.add_bos_token", 7, b"\1"),
        pair("nested", 9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ2B", 0, 2, 7, 8)),
    ]
    tensor = string("token_embd.weight") + struct.pack("<IQQIQ", 2, 32, 2, 8, 0)
    header = b"GGUF" + struct.pack("<IQQ", version, 1, len(pairs)) + b"".join(pairs) + tensor
    return header + bytes(-len(header) % 32) + bytes(weights)


def read(tmp_path: Path, data: bytes) -> gguf.Header:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    return gguf.read(path)


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_made_by_hand(tmp_path: Path, version: int) -> None:
    header = read(tmp_path, tiny(version))
    assert (header.version, header.architecture, header.name) == (version, "llama", "m")
    assert header.vocabulary == ["<s>", "é", "</s>"]
    assert header.metadata["tokenizer.ggml.scores"] == [0.0, -1.0, 0.5]
    assert header.metadata["nested"] == [[7, 8]]
    assert header.special_tokens == {"eos": (2, "</s>")}
    assert header.of_architecture("context_length") == 128
    weights = header.file_bytes - 68
    assert header.tensors == (gguf.Tensor("token_embd.weight", (32, 2), "Q8_0", 68, weights),)
    assert (header.parameters, header.quantization, header.chat_template) == (64, "Q8_0", None)
    assert header.expected_bytes == header.file_bytes


def test_missing_weights_are_counted(tmp_path: Path) -> None:
    header = read(tmp_path, tiny(weights=28))
    assert header.expected_bytes - header.file_bytes == 40
    assert gguf.describe(header)["missing"] == 40


@pytest.mark.parametrize(("path", "parameters"), [(default_model(), 7_475_456), (default_draft(), 1_127_296)])
def test_embedded_models(path: Path, parameters: int) -> None:
    header = gguf.read(path)
    assert header.parameters == parameters
    assert header.expected_bytes == header.file_bytes == path.stat().st_size
    assert header.special_tokens["eos"] == (0, "<|endoftext|>")
    assert "<think>" in (header.chat_template or "")
    facts = gguf.describe(header)
    assert (facts["vocabulary"], facts["context_length"], facts["license"]) == (4096, 1024, "CC0-1.0")


def test_vocabulary_only() -> None:
    header = gguf.read(VOCABULARY)
    assert (header.parameters, header.quantization, len(header.vocabulary)) == (0, "", 32_000)
    assert header.special_tokens["bos"] == (1, "<s>")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"PK\3\4 a zip", "is not a GGUF file"),
        (b"GGUF", "is truncated"),
        (b"GGUF" + struct.pack("<I", 1), "has GGUF version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair("k", 77, b""), "metadata of type 77"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**63), "is truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair("k", 9, struct.pack("<IQ", 8, 2**40)), "is truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair("k", 9, struct.pack("<IQ", 10, 2**60)), "is truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair("general.alignment", 4, bytes(4)), "alignment is 0"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair("split.count", 8, string("a\nbc")),
            r"split.count is 'a\\nbc'; fetch",
        ),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair("split.count", 5, struct.pack("<i", -2)), "split.count is -2;"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair("k", 9, struct.pack("<IQ", 9, 1) * 5000),
            "arrays nested more than",
        ),
    ],
)
def test_what_is_no_model(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(LzsError, match=message) as error:
        read(tmp_path, data)
    assert "\n" not in str(error.value)


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a directory"):
        gguf.read(tmp_path)
    with pytest.raises(ValueError, match="does not exist"):
        gguf.read(tmp_path / "nothing.gguf")


def test_every_cut_of_a_header_is_an_error_of_ours(tmp_path: Path) -> None:
    whole = tiny(weights=0).rstrip(b"\0")
    for end in range(1, len(whole) - 8):  # the last 8 bytes are an offset of zeros
        with pytest.raises(LzsError):
            read(tmp_path, whole[:end])


@pytest.mark.parametrize("length", [-5, 2**31])
def test_a_context_length_that_is_nonsense_is_the_files_fault(tmp_path: Path, length: int) -> None:
    """And not that of the n_ctx that the user gave, or did not give."""
    model = pytest.importorskip("lzsampler.llama.model").Model
    key, trained = string("llama.context_length"), default_model().read_bytes()
    at = trained.index(key) + len(key)
    assert trained[at : at + 8] == struct.pack("<II", 4, 1024)
    if length < 0:
        damaged = trained[:at] + struct.pack("<Ii", 5, length) + trained[at + 8 :]
    else:
        damaged = trained[:at] + struct.pack("<II", 4, length) + trained[at + 8 :]
    (tmp_path / "m.gguf").write_bytes(damaged)
    for n_ctx in (None, 64):
        with pytest.raises(LzsError, match=rf"is damaged: llama.context_length is {length}; fetch it again"):
            model(tmp_path / "m.gguf", n_ctx=n_ctx)


def block_bytes() -> dict[str, tuple[int, int]]:
    """Weights and bytes of a block of each type, added up from the fields of the structs in ggml-common.h.

    d and m: a half-precision scale or minimum; the rest are bytes of scales, of high bits and of quantised weights.
    """
    d = m = 2
    return {
        "F32": (1, 4),
        "F16": (1, 2),
        "BF16": (1, 2),
        "F64": (1, 8),
        "I8": (1, 1),
        "I16": (1, 2),
        "I32": (1, 4),
        "I64": (1, 8),
        "Q4_0": (32, d + 32 // 2),
        "Q4_1": (32, d + m + 32 // 2),
        "Q5_0": (32, d + 4 + 32 // 2),
        "Q5_1": (32, d + m + 4 + 32 // 2),
        "Q8_0": (32, d + 32),
        "Q8_1": (32, d + 2 + 32),
        "Q2_K": (256, 256 // 16 + 256 // 4 + d + m),
        "Q3_K": (256, 256 // 8 + 256 // 4 + 12 + d),
        "Q4_K": (256, d + m + 12 + 256 // 2),
        "Q5_K": (256, d + m + 12 + 256 // 8 + 256 // 2),
        "Q6_K": (256, 256 // 2 + 256 // 4 + 256 // 16 + d),
        "Q8_K": (256, 4 + 256 + 2 * 256 // 16),
        "IQ1_S": (256, d + 256 // 8 + 2 * 256 // 32),
        "IQ1_M": (256, 256 // 8 + 256 // 16 + 256 // 32),
        "IQ2_XXS": (256, d + 2 * 256 // 8),
        "IQ2_XS": (256, d + 2 * 256 // 8 + 256 // 32),
        "IQ2_S": (256, d + 256 // 4 + 256 // 32 + 256 // 32),
        "IQ3_XXS": (256, d + 3 * 256 // 8),
        "IQ3_S": (256, d + 256 // 4 + 256 // 32 + 256 // 8 + 256 // 64),
        "IQ4_NL": (32, d + 32 // 2),
        "IQ4_XS": (256, d + 2 + 256 // 64 + 256 // 2),
        "TQ1_0": (256, (256 - 4 * 256 // 64) // 5 + 256 // 64 + d),
        "TQ2_0": (256, 256 // 4 + d),
        "MXFP4": (32, 1 + 32 // 2),
        "NVFP4": (64, 4 + 64 // 2),
        "Q1_0": (128, d + 128 // 8),
        "Q2_0": (64, d + 64 // 4),
    }


def test_the_types_are_those_of_ggml() -> None:
    assert {name: (weights, n) for name, weights, n in gguf._TYPES.values()} == block_bytes()


def test_the_types_have_the_numbers_and_sizes_that_llama_cpp_has() -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    libraries = sorted((Path(llama_cpp.__file__).parent / "lib").glob("*ggml-base.*"))
    if not libraries:
        pytest.skip("llama-cpp-python has no ggml-base of its own")
    ggml = ctypes.CDLL(str(libraries[0]))
    ggml.ggml_type_name.restype = ctypes.c_char_p
    ggml.ggml_blck_size.restype = ctypes.c_int64
    ggml.ggml_type_size.restype = ctypes.c_size_t
    for number in range(40):  # of MXFP4; newer ones are not in every version
        if number in gguf._TYPES:
            name, weights, n = gguf._TYPES[number]
            assert ggml.ggml_type_name(number).decode().upper() == name
            assert (ggml.ggml_blck_size(number), ggml.ggml_type_size(number)) == (weights, n), name


def test_a_tensor_of_many_dimensions_is_damage(tmp_path: Path) -> None:
    """The product of thousands of sizes took half a minute, and printing it failed."""
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + string("w") + struct.pack("<I", 300)
    path = tmp_path / "m.gguf"
    path.write_bytes(header + struct.pack("<300Q", *[2**64 - 1] * 300) + struct.pack("<IQ", 0, 0))
    with pytest.raises(LzsError, match=r"is damaged: a tensor has 300 dimensions"):
        gguf.read(path)


def test_damaged_headers_raise_nothing_else(tmp_path: Path) -> None:
    rng, whole, refused = random.Random(1), tiny(), 0
    for _ in range(500):
        data: Any = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        try:
            gguf.describe(read(tmp_path, bytes(data)))
        except LzsError:
            refused += 1
    assert 50 < refused < 500
