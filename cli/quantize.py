"""`lzs quantize`: writes a model with fewer bits per weight."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lzsampler._values import counted
from lzsampler.util.harmless import harmless

from .console import console, general_options
from .fields import opt, takes
from .help import GroupedCommand, ModelFile
from .progress import progress

if TYPE_CHECKING:
    from lzsampler.quantizing.quantize import Quantized

_WHAT, _HOW, _OUTPUT = "What is written", "How", "Output"

_EPILOG = """\b
Types: mxfp4 and nvfp4 (for the layers' matrices; other matrices get Q8_0),
mxfp6-e2m3 and mxfp6-e3m2 (values rounded to MXFP6, but stored as BF16), and
llama.cpp's q8_0, q6_k, q5_k_m, q5_k_s, q5_0, q5_1, q4_k_m, q4_k_s, q4_0,
q4_1, q3_k_l, q3_k_m, q3_k_s, q2_k, iq4_nl, iq4_xs, bf16, f16, f32.
docs/quantize.md compares them.
\b
Exit status: 0 success; 2 an error; 130 Ctrl-C. OUT.gguf appears whole or not
at all."""


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """The options of `lzs quantize`."""

    kind: str = opt(_WHAT, "--type", default="mxfp4", metavar="TYPE", help="type of the weights, listed below")
    requantize: bool = opt(
        _WHAT, "--requantize", help="accept a file that is already quantized; its rounding errors remain"
    )
    overwrite: bool = opt(_WHAT, "--overwrite", help="replace OUT.gguf if it exists")
    n_threads: int | None = opt(_HOW, "-t", "--threads", low=1, help="CPU threads (default: physical cores)")
    as_json: bool = opt(_OUTPUT, "--json", help="print what was written as JSON")


@click.command("quantize", cls=GroupedCommand, epilog=_EPILOG)
@click.argument("source", type=ModelFile(), metavar="IN.gguf")
@click.argument("target", type=click.Path(path_type=Path), metavar="OUT.gguf")
@takes(QuantizeOptions)
@general_options(quiet="print errors only")
def quantize_command(options: QuantizeOptions, source: Path, target: Path) -> None:
    """Write a model with fewer bits per weight, by llama.cpp's own quantizer.

    IN.gguf is a file in BF16, F16 or F32, or the name of a model. lzs checks OUT.gguf: its size must be what its header
    says, and llama.cpp must decode a token with it.
    """
    from lzsampler.quantizing.quantize import quantize

    with progress("tensors") as bar:
        made = quantize(
            source,
            target,
            options.kind.lower(),
            requantize=options.requantize,
            overwrite=options.overwrite,
            n_threads=options.n_threads,
            on_progress=bar.update,
        )
    if options.as_json:
        click.echo(json.dumps(made.to_json()))
    elif not console.quiet:
        click.echo(_said(made))


def _said(made: "Quantized") -> str:
    types = ", ".join(f"{name} x {count}" for name, count in made.tensors.items())
    lines = [
        f"wrote {harmless(str(made.path))}: {_size(made.size)} of {_size(made.was)}, {made.size / made.was:.0%} "
        f"(tensors: {types})"
    ]
    if made.computed_size is not None:
        share = made.computed_size / made.was
        lines.append(
            f"in 6.25 bits per weight it would have {_size(made.computed_size)}, {share:.0%}, but no engine reads that"
        )
    if made.fallbacks:
        _, got, columns, block = made.fallbacks[0]
        number = counted(len(made.fallbacks), "matrix has", "matrices have")
        lines.append(f"{number} another type, such as {got}: rows of {columns} are not a multiple of {block}")
    return "\n".join(lines)


def _size(n: int) -> str:
    return f"{n / 1e9:.2f} GB" if n >= 1e9 else f"{n / 1e6:.1f} MB"
