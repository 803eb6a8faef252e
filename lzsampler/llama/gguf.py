"""The header of a GGUF file: its metadata and its list of tensors, read without llama.cpp and without the weights.

Layout (little-endian, versions 2 and 3): magic, version, number of tensors, number of metadata pairs; the pairs (key,
type, value); a record for each tensor (name, shape, type, offset); padding to `general.alignment`; the weights. The
sizes in the header reveal an incomplete download before llama.cpp opens the file. The package gguf is not
used, because it cannot read an incomplete file.
"""

import mmap
import struct
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, LzsError
from ..models import NAMED_MODELS, find_model

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_DIMENSIONS = 4  # GGML_MAX_DIMS
_DEEPEST = 8  # the most levels of nested arrays; no known file has any

# Type number -> (name, weights per block, bytes per block), from ggml-common.h.
_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
    42: ("Q2_0", 64, 18),
}


@dataclass(frozen=True)
class Tensor:
    """One tensor of a GGUF file. ``shape``: fastest dimension first, as in the file. ``bytes``: size of the weights,
    None for an unknown type. ``offset``: the place of the weights in the file, in bytes.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    bytes: int | None
    offset: int

    @property
    def elements(self) -> int:
        """Number of weights."""
        return prod(self.shape)


@dataclass(frozen=True)
class Header:
    """A GGUF file without its weights. ``file_bytes`` is its size. ``expected_bytes`` is the end of the last tensor of
    a known type; it is more than ``file_bytes`` if the file is truncated.
    """

    path: Path
    version: int
    metadata: dict[str, Any]
    tensors: tuple[Tensor, ...]
    file_bytes: int
    expected_bytes: int

    @property
    def architecture(self) -> str:
        """`general.architecture`, or "" if the file has none."""
        return str(self.metadata.get("general.architecture", ""))

    @property
    def name(self) -> str:
        """`general.name`, or else the file's name without its suffix."""
        return str(self.metadata.get("general.name") or self.path.stem)

    @property
    def parameters(self) -> int:
        """Number of weights in this file; 0 for a file with a vocabulary only."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def quantization(self) -> str:
        """The type of most of the weights, such as "Q8_0"; "" for a file without weights."""
        weights: Counter[str] = Counter()
        for tensor in self.tensors:
            weights[tensor.type] += tensor.elements
        return max(weights, key=lambda name: weights[name]) if weights else ""

    @property
    def parts(self) -> int:
        """Number of files that the model was split into; 1 for a model in one file."""
        return int(self.metadata.get("split.count", 1)) or 1

    @property
    def vocabulary(self) -> list[str]:
        """The text of every token as the file spells it, [n_vocab]; empty if the file has no tokenizer."""
        tokens = self.metadata.get("tokenizer.ggml.tokens", [])
        return tokens if isinstance(tokens, list) else []

    @property
    def special_tokens(self) -> dict[str, tuple[int, str]]:
        """Role ("bos", "eos", "eot", "padding", ...) -> (token id, its text)."""
        texts, special = self.vocabulary, {}
        for key, value in self.metadata.items():
            role = key.removeprefix("tokenizer.ggml.").removesuffix("_token_id")
            if len(role) == len(key) - len("tokenizer.ggml._token_id") and isinstance(value, int):
                special[role] = (value, texts[value] if 0 <= value < len(texts) else "")
        return special

    @property
    def chat_template(self) -> str | None:
        """The model's Jinja2 chat template; None if the file has no template."""
        template = self.metadata.get("tokenizer.chat_template")
        return template if isinstance(template, str) and template.strip() else None

    def of_architecture(self, key: str) -> int | None:
        """Return an integer from the metadata of the file's architecture, such as "context_length"; None if it is
        missing.
        """
        value = self.metadata.get(f"{self.architecture}.{key}")
        return value if isinstance(value, int) else None


def describe(header: Header) -> dict[str, Any]:
    """Return the data that `lzs info` prints, ready for JSON: sizes in bytes, lengths in tokens, None if missing."""
    add_bos = header.metadata.get("tokenizer.ggml.add_bos_token")
    return {
        "file": header.path.name,
        "name": header.name,
        "architecture": header.architecture or None,
        "parameters": header.parameters,
        "quantization": header.quantization or None,
        "tensors": dict(Counter(tensor.type for tensor in header.tensors)),
        "size": header.file_bytes,
        "missing": max(0, header.expected_bytes - header.file_bytes),
        "parts": header.parts,
        "gguf_version": header.version,
        "context_length": header.of_architecture("context_length"),
        "embedding_length": header.of_architecture("embedding_length"),
        "layers": header.of_architecture("block_count"),
        "license": header.metadata.get("general.license"),
        "vocabulary": len(header.vocabulary) or header.of_architecture("vocab_size"),
        "tokenizer": header.metadata.get("tokenizer.ggml.model"),
        "pre_tokenizer": header.metadata.get("tokenizer.ggml.pre"),
        "add_bos": add_bos if isinstance(add_bos, bool) else None,
        "special_tokens": {
            role: {"id": token, "text": text} for role, (token, text) in sorted(header.special_tokens.items())
        },
        "chat_template": header.chat_template,
    }


def read(path: str | Path) -> Header:
    """Read the header of a GGUF file, or of a model that `lzsampler.models.find_model` knows by name.

    Raises as `find_model`; ValueError if ``path`` does not exist or is a directory. LzsError if the file is not GGUF,
    has an unsupported version or byte order, is damaged, or ends inside its header. Missing weights raise nothing:
    compare ``expected_bytes`` with ``file_bytes``.
    """
    path = find_model(path)
    if path.is_dir():
        raise ArgumentError(f"{path} is a directory: give the .gguf file in it")
    if not path.exists():
        raise ArgumentError(f"{path} does not exist: give the path of a .gguf file, or {', '.join(NAMED_MODELS)}")
    if not path.is_file() or path.stat().st_size == 0:
        raise LzsError(f"{path} is {'empty' if path.is_file() else 'not a regular file'}: a GGUF model was expected")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:4] != b"GGUF":
            raise LzsError(f"{path} is not a GGUF file: it starts with {data[:4]!r}, not b'GGUF'")
        return _Reader(path, data).header()


class _Reader:
    """A position in the file. Every read is checked against the end of the file."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path, self.data, self.size, self.at = path, data, len(data), 4

    def header(self) -> Header:
        version = self.scalar("I")
        if version not in (2, 3):
            big_endian = int.from_bytes(version.to_bytes(4, "little"), "big") in (2, 3)
            what = "is a big-endian GGUF file" if big_endian else f"has GGUF version {version}"
            raise LzsError(f"{self.path} {what}: lzsampler reads little-endian versions 2 and 3")
        n_tensors, n_pairs = self.scalar("Q"), self.scalar("Q")
        metadata = {self.string(): self.value(self.scalar("I")) for _ in range(n_pairs)}
        records = []
        for _ in range(n_tensors):
            name, n_dimensions = self.string(), self.scalar("I")
            if n_dimensions > _MOST_DIMENSIONS:
                raise LzsError(f"{self.path} is damaged: a tensor has {n_dimensions:,} dimensions; fetch it again")
            shape = tuple(self.scalar("Q") for _ in range(n_dimensions))
            records.append((name, shape, self.scalar("I"), self.scalar("Q")))
        alignment = self.whole(metadata, "general.alignment", 32, least=1)
        self.whole(metadata, "split.count", 1, least=0)
        weights = -(-self.at // alignment) * alignment
        tensors, end = [], self.at
        for name, shape, number, offset in records:
            type_name, per_block, block_bytes = _TYPES.get(number, (f"type {number}", 1, 0))
            n_bytes = prod(shape) // per_block * block_bytes
            at = weights + offset
            tensors.append(Tensor(name, shape, type_name, n_bytes if block_bytes else None, at))
            end = max(end, at + n_bytes)
        return Header(self.path, version, metadata, tuple(tensors), self.size, end)

    def whole(self, metadata: dict[str, Any], key: str, default: int, least: int) -> int:
        value = metadata.get(key, default)
        if type(value) is not int or value < least:
            raise LzsError(f"{self.path} is damaged: {key} is {repr(value)[:40]}; fetch it again")
        return value

    def scalar(self, code: str) -> Any:
        at = self.skip(struct.calcsize(code))
        return struct.unpack_from("<" + code, self.data, at)[0]

    def string(self) -> str:
        length = self.scalar("Q")
        at = self.skip(length)
        return self.data[at : at + length].decode("utf-8", "replace")  # a byte-level token may be part of a character

    def strings(self, count: int) -> list[str]:
        # A vocabulary and its merges are half a million strings: this loop takes most of the time for a header.
        data, at, length_at, texts = self.data, self.at, struct.Struct("<Q").unpack_from, []
        try:
            for _ in range(count):
                (length,) = length_at(data, at)
                at += 8 + length
                texts.append(data[at - length : at].decode("utf-8", "replace"))
        except (struct.error, OverflowError):  # a length in a damaged file may lie past the end of the file
            at = self.size + 1
        self.skip(at - self.at)
        return texts

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            inner, count = self.scalar("I"), self.scalar("Q")
            if inner == _STRING:
                return self.strings(count)
            if inner not in _SCALARS:
                if depth == _DEEPEST:
                    raise LzsError(f"{self.path} is damaged: its metadata has arrays nested more than {_DEEPEST} deep")
                return [self.value(inner, depth + 1) for _ in range(count)]
            code = _SCALARS[inner]
            at = self.skip(count * struct.calcsize(code))
            return list(struct.unpack_from(f"<{count}{code}", self.data, at))
        if kind not in _SCALARS:
            raise LzsError(f"{self.path} is damaged: metadata of type {kind}")
        return self.scalar(_SCALARS[kind])

    def skip(self, n: int) -> int:
        at, self.at = self.at, self.at + n
        if self.at > self.size:
            raise LzsError(
                f"{self.path} is truncated: it ends inside its header, at {self.size:,} bytes; fetch it again"
            )
        return at
