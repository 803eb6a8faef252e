"""How much more a model loops when its weights are coarser, without and with the LZ penalty.

    python bench/coarser_weights.py FOLDER [--model smollm2] [--prompts FILE] [--limit N] [-n 256] [--variants NAME ...]

Needs the package `gguf` (pip install gguf). Of a model in GGUF it makes variants in FOLDER, which llama.cpp must load:

- `as it is`: the model's own file;
- `Q4_0`, `MXFP4`: its quantised matrices in these types of llama.cpp;
- `3 bits`, `2 bits`: their weights rounded to 8 or 4 evenly spaced values between the least and the greatest of each
  block of 32, and stored as Q8_0, which keeps them to 0.4 % of a block's greatest. llama.cpp's own types of so few bits
  need rows of a multiple of 256 weights, and a width of 576 is none.

All are made of the weights as the file has them, so errors of its own type are in each. The matrix of the embeddings
stays as it is; in small models it is also the output. Then `lzsampler.evaluate` writes a greedy text for every prompt
without and with the penalty of the package's defaults: FOLDER has a work folder for each variant.
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from gguf.quants import dequantize, quantize

from lzsampler import Model, Params, evaluate
from lzsampler.evaluation.grid import Grid, Setting
from lzsampler.models import find_model
from lzsampler.params import penalties_from
from measure import report

Weights = npt.NDArray[np.float32]
BLOCK = 32
EMBEDDINGS = "token_embd.weight"
AS_IT_IS = "as it is"
ROUNDED = {"3 bits": 3, "2 bits": 2}
VARIANTS = (AS_IT_IS, "Q4_0", "MXFP4", *ROUNDED)
QUESTIONS = (
    "Write a recipe for onion soup.",
    "Plan a week in Rome, day by day.",
    "Write a bedtime story about a snail.",
    "Explain quantum mechanics to a child.",
)


def rounded(weights: Weights, bits: int) -> Weights:
    """Return weights with 2**bits evenly spaced values in each block of 32, from its least to its greatest weight."""
    blocks = weights.reshape(-1, BLOCK)
    least = blocks.min(axis=1, keepdims=True)
    step = (blocks.max(axis=1, keepdims=True) - least) / (2**bits - 1)
    steps = np.divide(blocks - least, step, out=np.zeros_like(blocks), where=step > 0)
    values: Weights = (least + np.rint(steps) * step).astype(np.float32).reshape(weights.shape)
    return values


def coarser(weights: Weights, variant: str) -> tuple[npt.NDArray[Any], gguf.GGMLQuantizationType]:
    """Return the bytes of a matrix in a variant, and their type."""
    if variant in ROUNDED:
        weights, kind = rounded(weights, ROUNDED[variant]), gguf.GGMLQuantizationType.Q8_0
    else:
        kind = gguf.GGMLQuantizationType[variant]
    return quantize(weights, kind), kind


def write(source: Path, target: Path, variant: str) -> float:
    """Write a variant of a GGUF file; return the error of its weights, the root mean square as a share of theirs."""
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture, endianess=reader.endianess)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    errors, total = 0.0, 0.0
    for tensor in reader.tensors:
        data, kind = tensor.data, tensor.tensor_type
        if kind not in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16) and tensor.name != EMBEDDINGS:
            weights = dequantize(data, kind)
            data, kind = coarser(weights, variant)
            errors += float(np.square(dequantize(data, kind) - weights).sum())
            total += float(np.square(weights).sum())
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if not total:
        raise SystemExit(f"{source} has no quantised matrices, of which coarser ones could be made")
    return math.sqrt(errors / total)


def results(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for each variant."""
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    prompts = arguments.prompts
    if prompts is None:
        prompts = folder / "prompts.jsonl"
        rows = [
            {"id": f"question-{i}", "messages": [{"role": "user", "content": question}]}
            for i, question in enumerate(QUESTIONS)
        ]
        prompts.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    settings = (
        Setting("none", "none", Params(temperature=0.0)),
        Setting("lz", "lz", penalties_from("coarser_weights", None, {"temperature": 0.0}, ())),
    )
    grid = Grid("coarser weights", settings, max_tokens=arguments.n)
    for variant in arguments.variants:
        name = variant.replace(" ", "-")
        path, error = arguments.model, 0.0
        if variant != AS_IT_IS:
            path = folder / f"{arguments.model.stem}-{name}.gguf"
            error = write(arguments.model, path, variant)
        with Model(path, n_ctx=64) as model:  # whether llama.cpp loads it
            model.decode([0])
            finite = bool(np.isfinite(model.logits()).all())
        if not finite:
            raise SystemExit(f"{path}: the logits are not finite")
        made = evaluate(
            path, folder / name, prompts=prompts, grid=grid, limit=arguments.limit, n_threads=arguments.threads
        )
        counts = {setting.name: made.counts(kind=setting.kind) for setting in settings}
        yield {
            "weights": variant,
            "MB": path.stat().st_size / 1e6,
            "error of the weights": error,
            **{f"loop, {name}": f"{c.looping} of {c.texts}" for name, c in counts.items()},
            **{f"tokens, {name}": c.tokens for name, c in counts.items()},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the variants and their texts go; must not exist")
    parser.add_argument("--model", type=find_model, default="smollm2")
    parser.add_argument("--prompts", type=Path, help="JSON Lines, as for lzs eval")
    parser.add_argument("--limit", type=int, help="N of the prompts, spread evenly (default: all)")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("-n", type=int, default=256, help="tokens of a text")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.folder.exists():
        raise SystemExit(f"{arguments.folder} exists: name another folder")
    report(list(results(arguments)), arguments.json)


if __name__ == "__main__":
    main()
