"""The flags that commands share, with llama.cpp's names where it has them, and `Params` out of those for sampling."""

import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .help import option, options

if TYPE_CHECKING:
    from lzsampler.params import Params, RepetitionDetection

_MODEL, _SAMPLING, _LOOPS, _PENALTIES = "Model", "Sampling", "LZ penalty", "Other penalties (off by default)"
_STOP = "Stop on loop (off by default)"

# Field of Params -> the flag that sets it. A field that is not listed has no flag.
FLAGS = {
    "temperature": "--temp",
    "top_k": "--top-k",
    "top_p": "--top-p",
    "min_p": "--min-p",
    "ties": "--ties",
    "pick": "--pick",
    "temperature_last": "--temp-last",
    "seed": "--seed",
    "lz_penalty": "--lz-penalty",
    "lz_window": "--lz-window",
    "lz_buffer": "--lz-buffer",
    "lz_formula": "--lz-formula",
    "history": "--history",
    "repetition_penalty": "--repeat-penalty",
    "frequency_penalty": "--frequency-penalty",
    "presence_penalty": "--presence-penalty",
    "penalty_window": "--repeat-last-n",
    "repetition_method": "--repeat-method",
    "frequency_method": "--frequency-method",
    "presence_method": "--presence-method",
    "sign_aware": "--sign-aware",
}
# The same for RepetitionDetection.
LOOP_FLAGS = {
    "max_pattern_size": "--loop-max-pattern",
    "min_pattern_size": "--loop-min-pattern",
    "min_count": "--loop-min-count",
}
_METHODS = click.Choice(["multiplicative", "subtractive"])


def count(low: int) -> dict[str, Any]:
    """Return the settings of an option for a whole number of at least ``low``."""
    return {"type": click.IntRange(low), "metavar": "N"}


model_options = options(
    option(
        _MODEL, "-m", "--model", type=click.Path(path_type=Path), metavar="FILE", help="GGUF; default: the embedded"
    ),
    option(_MODEL, "-c", "--ctx-size", "n_ctx", **count(0), help="tokens; default: the model's, up to 4096; 0: all"),
    option(_MODEL, "-b", "--batch-size", "n_batch", **count(1), default=512, help="prompt tokens decoded at once"),
    option(_MODEL, "-t", "--threads", "n_threads", **count(1), help="default: by cores and size of the model"),
    option(_MODEL, "-ngl", "--n-gpu-layers", **count(-1), default=-1, help="-1 is all, where there is a GPU"),
)

sampling_options = options(
    option(_SAMPLING, "--temp", "temperature", type=float, default=0.0, metavar="T", help="0 is greedy; 1e-6 to 1e6"),
    option(_SAMPLING, "--top-k", type=int, default=0, metavar="K", help="keep the K likeliest tokens; 0 is off"),
    option(
        _SAMPLING, "--top-p", type=float, default=1.0, metavar="P", help="keep the likeliest that sum to P; 1 is off"
    ),
    option(_SAMPLING, "--min-p", type=float, default=0.0, metavar="P", help="keep those P times as likely as the best"),
    option(_SAMPLING, "-s", "--seed", type=int, default=-1, metavar="N", help="-1 is random, and printed"),
    option(_SAMPLING, "--temp-last", "temperature_last", is_flag=True, help="truncate first, as llama.cpp does"),
    option(
        _SAMPLING,
        "--ties",
        type=click.Choice(["cut", "keep"]),
        default="cut",
        help="exactly K tokens, or all that equal the last one",
    ),
    option(
        _SAMPLING,
        "--pick",
        type=click.Choice(["race", "llama"]),
        default="race",
        help="llama draws as llama.cpp's dist does, bit for bit",
    ),
    option(_LOOPS, "--lz-penalty", type=float, default=0.15, metavar="A", help="strength, logits per bit; 0 is off"),
    option(_LOOPS, "--lz-window", type=int, default=512, metavar="N", help="tokens looked back at, 2 to 131072"),
    option(_LOOPS, "--lz-buffer", type=int, default=32, metavar="N", help="longest match, tokens, 1 to 4096"),
    option(
        _LOOPS,
        "--lz-formula",
        type=click.Choice(["rate", "distance", "codelength"]),
        default="rate",
        help="what a match costs (docs/penalties.md)",
    ),
    option(
        _LOOPS,
        "--history",
        type=click.Choice(["generated", "all"]),
        default="generated",
        help="what every penalty looks at; all includes the prompt",
    ),
    option(
        _LOOPS,
        "--exempt",
        multiple=True,
        metavar="TEXT",
        help="no penalty for the tokens of TEXT; may be repeated",
    ),
    option(_PENALTIES, "--repeat-penalty", "repetition_penalty", type=float, default=1.0, metavar="R", help="1 is off"),
    option(
        _PENALTIES, "--frequency-penalty", type=float, default=0.0, metavar="F", help="for each occurrence; 0 is off"
    ),
    option(_PENALTIES, "--presence-penalty", type=float, default=0.0, metavar="F", help="once a token; 0 is off"),
    option(
        _PENALTIES,
        "--repeat-last-n",
        "penalty_window",
        type=int,
        default=0,
        metavar="N",
        help="tokens these three look back at; 0 is all (llama.cpp: off)",
    ),
    option(_PENALTIES, "--repeat-method", "repetition_method", type=_METHODS, default="multiplicative"),
    option(_PENALTIES, "--frequency-method", type=_METHODS, default="subtractive"),
    option(_PENALTIES, "--presence-method", type=_METHODS, default="subtractive"),
    option(
        _PENALTIES,
        "--sign-aware/--no-sign-aware",
        default=True,
        help="multiply negative logits instead of dividing them",
    ),
)


loop_options = options(
    option(_STOP, "--stop-on-loop", is_flag=True, help="end a text whose last tokens are copies of one pattern"),
    option(
        _STOP, "--loop-max-pattern", "max_pattern_size", type=int, metavar="N", help="its longest, tokens, default: 512"
    ),
    option(_STOP, "--loop-min-pattern", "min_pattern_size", type=int, metavar="N", help="and its shortest, default: 8"),
    option(_STOP, "--loop-min-count", "min_count", type=int, metavar="N", help="copies that make a loop, default: 8"),
    option(_STOP, "--trim-loop", is_flag=True, help="keep the first copy only; the text comes when it is complete"),
)


def params_from(flags: dict[str, Any]) -> "Params":
    """Take the fields of `Params` out of ``flags`` and return them; a seed of -1 becomes a random one.

    Stopping on loops is one of them where a command has `loop_options`.

    Raises click.UsageError, naming the flag, for a value out of range.
    """
    from lzsampler.params import Params

    fields = {field: flags.pop(field) for field in FLAGS}
    detection = {field: flags.pop(field, None) for field in LOOP_FLAGS}
    if fields["seed"] == -1:
        fields["seed"] = secrets.randbits(32)
    try:
        return Params(**fields, repetition_detection=_detection(flags.pop("stop_on_loop", False), detection))
    except ValueError as error:
        field, _, rest = str(error).partition(" ")
        raise click.UsageError(f"{(FLAGS | LOOP_FLAGS).get(field, field)} {rest}") from error


def _detection(stop_on_loop: bool, given: dict[str, int | None]) -> "RepetitionDetection | None":
    from lzsampler.params import STOP_ON_LOOP

    fields = {field: value for field, value in given.items() if value is not None}
    if stop_on_loop:
        longest = fields.get("max_pattern_size", STOP_ON_LOOP.max_pattern_size)
        if longest == 0:  # which is off in vLLM's terms
            raise ValueError("max_pattern_size must be at least 1, got 0")
        return replace(STOP_ON_LOOP, **{"min_pattern_size": min(STOP_ON_LOOP.min_pattern_size, longest), **fields})
    if fields:
        raise click.UsageError(f"{LOOP_FLAGS[next(iter(fields))]} says what to stop on: add --stop-on-loop")
    return None
