"""Small GGUF files with random weights and the embedded model's vocabulary, of architectures that it is not."""

import mmap
import struct
from pathlib import Path

import numpy as np

from lzsampler.llama import gguf
from lzsampler.models import default_model

UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9  # numbers of GGUF
EMBEDDING, INNER, STATE, CONVOLUTION, RANK, WIDE, HEADS = 32, 64, 16, 4, 2, 48, 2
ALIGNMENT = 32
Shapes = dict[str, tuple[int, ...]]


def mamba(path: Path) -> Path:
    """Write a recurrent model."""
    return write(path, "mamba", {"feed_forward_length": 0, "attention.head_count": 0}, [mamba_block()] * 2)


def jamba(path: Path) -> Path:
    """Write a hybrid model: a recurrent block, and one with attention."""
    norms = {"ssm_dt_norm.weight": (RANK,), "ssm_b_norm.weight": (STATE,), "ssm_c_norm.weight": (STATE,)}
    wide = {"ffn_norm.weight": (EMBEDDING,), "ffn_gate.weight": (EMBEDDING, WIDE), "ffn_up.weight": (EMBEDDING, WIDE)}
    wide["ffn_down.weight"] = (WIDE, EMBEDDING)
    attention = {f"attn_{name}.weight": (EMBEDDING, EMBEDDING) for name in ("q", "k", "v", "output")}
    blocks = [{**mamba_block(), **norms, **wide}, {"attn_norm.weight": (EMBEDDING,), **attention, **wide}]
    heads: dict[str, int | tuple[int, ...]] = {"attention.head_count": HEADS, "attention.head_count_kv": (0, HEADS)}
    return write(path, "jamba", {"feed_forward_length": WIDE, **heads}, blocks)


def mamba_block() -> Shapes:
    return {
        "attn_norm.weight": (EMBEDDING,),
        "ssm_in.weight": (EMBEDDING, 2 * INNER),
        "ssm_conv1d.weight": (CONVOLUTION, INNER),
        "ssm_conv1d.bias": (INNER,),
        "ssm_x.weight": (INNER, RANK + 2 * STATE),
        "ssm_dt.weight": (RANK, INNER),
        "ssm_dt.bias": (INNER,),
        "ssm_a": (STATE, INNER),
        "ssm_d": (INNER,),
        "ssm_out.weight": (INNER, EMBEDDING),
    }


def write(path: Path, architecture: str, numbers: dict[str, int | tuple[int, ...]], blocks: list[Shapes]) -> Path:
    sizes = {"conv_kernel": CONVOLUTION, "inner_size": INNER, "state_size": STATE, "time_step_rank": RANK}
    every = {"context_length": 512, "embedding_length": EMBEDDING, "block_count": len(blocks), **numbers}
    every |= {f"ssm.{name}": size for name, size in sizes.items()}
    pairs = [text("general.architecture") + struct.pack("<I", STRING) + text(architecture)]
    for name, number in every.items():
        kind = struct.pack("<II", UINT32, number) if isinstance(number, int) else array(number)
        pairs.append(text(f"{architecture}.{name}") + kind)
    epsilon = text(f"{architecture}.attention.layer_norm_rms_epsilon")
    pairs += [epsilon + struct.pack("<If", FLOAT32, 1e-5), *vocabulary()]
    n_vocab = len(gguf.read(default_model()).vocabulary)
    shapes: Shapes = {"token_embd.weight": (EMBEDDING, n_vocab), "output_norm.weight": (EMBEDDING,)}
    for number, block in enumerate(blocks):
        shapes |= {f"blk.{number}.{name}": shape for name, shape in block.items()}
    generator, records, weights, offset = np.random.default_rng(1), [], [], 0
    for name, shape in shapes.items():
        values = generator.normal(0, 0.3, int(np.prod(shape))).astype(np.float32)
        if name.endswith("ssm_a"):
            values = -np.abs(values)  # or the state would grow without end
        content = values.tobytes()
        records.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset))
        weights.append(content + bytes(-len(content) % ALIGNMENT))
        offset += len(weights[-1])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(records), len(pairs)) + b"".join(pairs) + b"".join(records)
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + b"".join(weights))
    return path


def text(string: str) -> bytes:
    return struct.pack("<Q", len(string)) + string.encode()


def array(numbers: tuple[int, ...]) -> bytes:
    return struct.pack(f"<IIQ{len(numbers)}i", ARRAY, INT32, len(numbers), *numbers)


def vocabulary() -> list[bytes]:
    """Return the pairs of the embedded model's metadata that are about its tokens."""
    source = default_model()
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        reader = gguf._Reader(source, data)
        reader.at = 16  # behind magic, version and number of tensors
        pairs = []
        for _ in range(reader.scalar("Q")):
            start = reader.at
            key = reader.string()
            reader.value(reader.scalar("I"))
            if key.startswith("tokenizer."):
                pairs.append(data[start : reader.at])
        return pairs
