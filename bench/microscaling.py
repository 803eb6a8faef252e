"""What fewer bits cost in quality: nats a token and perplexity in types that `lzs quantize` writes.

    python bench/microscaling.py IN.gguf TEXTS... [--types mxfp4 ...] [--max-tokens 400] [--json]

IN.gguf should be in BF16, F16 or F32. One in another type is converted to BF16 first, so that its own errors are in
every row. Each type is written to a temporary file, and the texts are given to the model as `lzs cost` does. "extra" is
what a token costs more than with the first type.
"""

import argparse
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lzsampler import Params, cost, quantize
from lzsampler.evaluation.grid import Grid, Setting
from lzsampler.models import find_model
from measure import report

NONE = Grid("none", (Setting("none", "none", Params(temperature=0.0)),))
TYPES = ("bf16", "q8_0", "q6_k", "mxfp6-e2m3", "mxfp6-e3m2", "q4_0", "nvfp4", "mxfp4")


def results(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for each type."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.gguf"
        quantize(arguments.source, source, "bf16", requantize=True)
        full = 0.0
        for kind in arguments.types:
            path = Path(folder) / f"{kind}.gguf"
            made = quantize(source, path, kind)
            size = made.computed_size or made.size
            scored = cost(path, arguments.texts, grid=NONE, max_tokens=arguments.max_tokens, n_ctx=1024)
            path.unlink()
            nats = scored.base().nats
            full = full or nats
            yield {
                "type": kind,
                "MB": size / 1e6,
                "of BF16": size / source.stat().st_size,
                "fallbacks": len(made.fallbacks),
                "tokens": str(scored.base().tokens),
                "nats a token": nats,
                "extra": nats - full,
                "perplexity": math.exp(nats),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=find_model, metavar="IN.gguf")
    parser.add_argument("texts", nargs="+", help="files and folders of texts that are right, as for lzs cost")
    parser.add_argument("--types", nargs="+", default=TYPES)
    parser.add_argument("--max-tokens", type=int, default=400, help="of each text")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report(list(results(arguments)), arguments.json)


if __name__ == "__main__":
    main()
