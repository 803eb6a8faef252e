"""A target of the size of a real model that writes the texts of the embedded one: for speculative decoding.

    python bench/stretched.py [FOLDER] [--types bf16 q8_0 mxfp4] [--blocks 8] [--width 5376] [--json]

Behind the 8 blocks of the embedded model come as many whose output projections (attn_output, ffn_down) are zero, so
that they add nothing to what the others computed. The embedding has 1,024 dimensions in place of 256, and the feed-
forward layers are so wide that reading and multiplying matrices is nearly all of the time; zeros fill up what the
embedded model has. So the function is the embedded model's, bit for bit in Q8_0, and the cost is that of a model of 286
million weights. In another type the blocks of the embedded model are converted as well.

The files are kept in FOLDER, by default the system's for temporary files, and are used again while the embedded model
and the numbers are the same. Printed are their sizes, and the share of a decode that is the matrix products of the wide
layers: a twin whose feed-forward layers are as narrow as those of the embedded model shows what the rest takes.
"""

import argparse
import hashlib
import mmap
import re
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lzsampler import quantize
from lzsampler.decoding.speedup import decode_cost
from lzsampler.llama import gguf
from lzsampler.llama.model import Model
from lzsampler.models import default_model
from lzsampler.util.files import replacing
from measure import report

VERSION = 2  # of what is written here
TYPES = ("bf16", "q8_0", "mxfp4")
NARROW, EMBEDDING = 704, 256  # of the embedded model
HEAD = 32  # dimensions of a head, of 8
WIDE = 1024  # dimensions: 4 ** n times as many, so that the root mean square changes by a power of 2, which is exact
PROMPT = "Once upon a time there was a king who had a daughter"
BLOCK, BLOCK_BYTES = 32, 34  # of Q8_0
ALIGNMENT = 32  # of the tensors in a file
Q8_0, F32, UINT32, FLOAT32 = 8, 0, 4, 6  # numbers of GGUF
KINDS = {"Q8_0": Q8_0, "F32": F32}
Weights = tuple[str, tuple[int, ...], int, bytes]


@dataclass(frozen=True)
class Stretch:
    """How many blocks are appended, and the width of all feed-forward layers, a multiple of 32 and at least 704."""

    blocks: int = 8
    width: int = 5_376


def stretched(kind: str, stretch: Stretch = Stretch(), folder: Path | None = None) -> Path:
    """Return the file of the stretched model in a type, made if it is not there yet."""
    digest = hashlib.sha256(default_model().read_bytes())
    digest.update(repr((VERSION, stretch)).encode())
    folder = (folder or Path(tempfile.gettempdir())) / f"lzs-stretched-{digest.hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"stretched-{kind}.gguf"
    if not path.exists():
        if kind == "q8_0":
            write(path, stretch)
        elif kind == "bf16":
            quantize(stretched("q8_0", stretch, folder.parent), path, "bf16", requantize=True)
        else:
            quantize(stretched("bf16", stretch, folder.parent), path, kind)
    return path


def write(path: Path, stretch: Stretch) -> None:
    """Write the stretched model in Q8_0."""
    source = gguf.read(default_model())
    with source.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        own = source.of_architecture("block_count") or 0
        changed = {
            "block_count": own + stretch.blocks,
            "feed_forward_length": stretch.width,
            "embedding_length": WIDE,
            "attention.key_length": HEAD,
            "attention.value_length": HEAD,
        }
        epsilon = "attention.layer_norm_rms_epsilon"
        pairs = [
            content
            for key, content in metadata(source.path, data)
            if key.removeprefix("llama.") not in (*changed, epsilon)
        ]
        pairs += [text(f"llama.{key}") + struct.pack("<II", UINT32, value) for key, value in changed.items()]
        least = source.metadata[f"llama.{epsilon}"] * EMBEDDING / WIDE  # it is added to the mean square
        pairs.append(text(f"llama.{epsilon}") + struct.pack("<If", FLOAT32, least))
        tensors = list(weights(source, data, own, stretch))
    records, offset = [], 0
    for name, shape, kind, content in tensors:
        records.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
        offset += len(content) + -len(content) % ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs) + b"".join(records)
    with replacing(path, durable=False) as out:
        out.write(head + bytes(-len(head) % ALIGNMENT))
        for _, _, _, content in tensors:
            out.write(content)
            out.write(bytes(-len(content) % ALIGNMENT))


def text(string: str) -> bytes:
    return struct.pack("<Q", len(string)) + string.encode("ascii")


def metadata(path: Path, data: mmap.mmap) -> Iterator[tuple[str, bytes]]:
    """Yield the key and the bytes of each pair of metadata."""
    reader = gguf._Reader(path, data)
    reader.at = 16  # behind magic, version and number of tensors
    for _ in range(reader.scalar("Q")):
        start = reader.at
        key = reader.string()
        reader.value(reader.scalar("I"))
        yield key, data[start : reader.at]


def weights(source: gguf.Header, data: mmap.mmap, own: int, stretch: Stretch) -> Iterator[Weights]:
    """Yield name, shape, type and bytes of each tensor."""
    noise = random_weights(stretch.width * WIDE)
    for tensor in source.tensors:
        yield tensor.name, shape_of(tensor, stretch), KINDS[tensor.type], filled(tensor, stretch, data)
    for number in range(own, own + stretch.blocks):
        for tensor in source.tensors:
            prefix, _, name = tensor.name.partition(f"blk.{number % own}.")
            if prefix or not name:
                continue
            content = noise if name in ("ffn_gate.weight", "ffn_up.weight") else filled(tensor, stretch, data)
            if name in ("attn_output.weight", "ffn_down.weight"):
                content = bytes(len(content))
            yield f"blk.{number}.{name}", shape_of(tensor, stretch), KINDS[tensor.type], content


def shape_of(tensor: gguf.Tensor, stretch: Stretch) -> tuple[int, ...]:
    """Return the columns and rows of a tensor in the stretched model; the heads of the attention stay as they are."""
    sizes = {EMBEDDING: WIDE, NARROW: stretch.width}
    columns, *rows = (sizes.get(n, n) for n in tensor.shape)
    if ".attn_output." in tensor.name:
        columns = EMBEDDING
    elif re.search(r"\.attn_[qkv]\.", tensor.name):
        rows = [EMBEDDING]
    return columns, *rows


def filled(tensor: gguf.Tensor, stretch: Stretch, data: mmap.mmap) -> bytes:
    """Return the bytes of a tensor that zeros fill up to its shape in the stretched model."""
    assert tensor.bytes is not None
    content = np.frombuffer(data[tensor.offset : tensor.offset + tensor.bytes], np.uint8)
    columns, *rows = shape_of(tensor, stretch)
    if not rows:  # of a norm: the root mean square is that much smaller
        scale = np.float32((EMBEDDING / WIDE) ** 0.5)
        return np.pad(content.view(np.float32) * scale, (0, columns - tensor.shape[0])).tobytes()
    given = content.reshape(tensor.shape[1], -1)
    larger = np.zeros((rows[0], columns // BLOCK * BLOCK_BYTES), np.uint8)
    larger[: given.shape[0], : given.shape[1]] = given
    return larger.tobytes()


def random_weights(n: int) -> bytes:
    """Return n weights in Q8_0, from -0.02 to 0.02."""
    blocks = np.zeros(n // BLOCK, np.dtype([("scale", "<f2"), ("values", "i1", BLOCK)]))
    blocks["scale"] = 0.02 / 127
    blocks["values"] = np.random.default_rng(1).integers(-127, 128, (n // BLOCK, BLOCK), np.int8)
    return blocks.tobytes()


def results(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for each type."""
    for kind in arguments.types:
        paths = {
            "wide": stretched(kind, Stretch(arguments.blocks, arguments.width), arguments.folder),
            "narrow": stretched(kind, Stretch(arguments.blocks, NARROW), arguments.folder),
        }
        with (
            Model(paths["wide"], n_ctx=256, n_threads=arguments.threads, flash_attn=True) as wide,
            Model(paths["narrow"], n_ctx=256, n_threads=arguments.threads, flash_attn=True) as narrow,
        ):
            cost = decode_cost({"wide": wide, "narrow": narrow}, wide.tokenize(PROMPT), rounds=arguments.rounds)
        ms, rest = cost["wide"].ms[1], cost["narrow"].ms[1]
        size = paths["wide"].stat().st_size
        yield {
            "type": kind,
            "MB": size / 1e6,
            "ms a token": ms,
            "GB/s": size / ms / 1e6,
            "wide matrix products": f"{1 - rest / ms:.1%}",
            **{f"v({n})": cost["wide"].relative[n][1] for n in (2, 4, 8)},
            "file": str(paths["wide"]),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--types", nargs="+", default=TYPES)
    parser.add_argument("--blocks", type=int, default=Stretch.blocks)
    parser.add_argument("--width", type=int, default=Stretch.width, help="a multiple of 32")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report(list(results(arguments)), arguments.json)


if __name__ == "__main__":
    main()
