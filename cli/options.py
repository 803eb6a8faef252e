"""The flags that commands share, with llama.cpp's names where it has them, and `Params` out of those for sampling."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .help import option, options

if TYPE_CHECKING:
    from lzsampler.params import Params, RepetitionDetection

_MODEL, _SAMPLING, _LOOPS, _PENALTIES = "Model", "Sampling", "LZ penalty", "Other penalties (off by default)"
_STOP, _DRY = "Stop on loop (off by default)", "DRY penalty (off by default)"

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
    "dry_multiplier": "--dry-multiplier",
    "dry_base": "--dry-base",
    "dry_allowed_length": "--dry-allowed-length",
    "dry_penalty_last_n": "--dry-penalty-last-n",
    "logit_bias": "--logit-bias",
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
    option(
        _SAMPLING,
        "-l",
        "--logit-bias",
        multiple=True,
        metavar="ID+BIAS",
        help="add to the logit of token ID, e.g. 15043+1 or 15043-1; may be repeated; ID-inf forbids it",
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
    option(
        _DRY,
        "--dry-multiplier",
        type=float,
        default=0.0,
        metavar="A",
        help="strength, logits; 0 is off, 0.8 usual; LZ stays on beside it unless --lz-penalty is 0",
    ),
    option(_DRY, "--dry-base", type=float, default=1.75, metavar="B", help="factor for each further token"),
    option(
        _DRY,
        "--dry-allowed-length",
        type=int,
        default=2,
        metavar="N",
        help="shortest repetition whose continuation is penalised, tokens",
    ),
    option(
        _DRY,
        "--dry-penalty-last-n",
        type=int,
        default=-1,
        metavar="N",
        help="tokens to look back at, up to 131072; 0 is off, -1 the maximum",
    ),
    option(
        _DRY,
        "--dry-sequence-breaker",
        "dry_breakers",
        multiple=True,
        metavar="TEXT",
        help="no repetition crosses a token that contains TEXT; may be repeated; replaces the default, which is a line "
        "break, colon, double quote and asterisk; the word none means no breakers",
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
    fields["logit_bias"] = [_bias(text) for text in fields["logit_bias"]]
    if "" in flags["exempt"]:
        raise click.UsageError("--exempt must not be empty")
    breakers = flags["dry_breakers"]
    if "" in breakers:
        raise click.UsageError("--dry-sequence-breaker must not be empty: the word none means no breakers")
    if "none" in breakers and len(breakers) > 1:
        raise click.UsageError("--dry-sequence-breaker none means no breakers: leave the others out")
    detection = {field: flags.pop(field, None) for field in LOOP_FLAGS}
    if fields["seed"] == -1:
        fields["seed"] = secrets.randbits(32)
    try:
        return Params(**fields, repetition_detection=_detection(flags.pop("stop_on_loop", False), detection))
    except ValueError as error:
        raise _with_flags(error) from error


def _with_flags(error: ValueError) -> click.UsageError:
    """Return the usage error that says the same of flags instead of fields.

    The message begins with a field. Further on, a word is taken for a field only if it has an underscore, since
    "history" or "seed" may be a word like any other.
    """
    flags = FLAGS | LOOP_FLAGS
    field, _, rest = str(error).partition(" ")
    return click.UsageError(
        f"{flags.get(field, field)} {re.sub(r'[a-z]+(?:_[a-z]+)+', lambda name: flags.get(name[0], name[0]), rest)}"
    )


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


def dry_breakers(params: "Params", flags: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the strings that end DRY's repetitions: the flag's, or llama.cpp's by default; () when DRY is off."""
    from lzsampler.llama import DRY_BREAKERS

    given: tuple[str, ...] = flags["dry_breakers"]
    if not params.dry_multiplier or given == ("none",):
        return ()
    return tuple(map(_unescaped, given)) or DRY_BREAKERS


def with_tokens(params: "Params", llm: Any, flags: Mapping[str, Any]) -> "Params":
    """Return settings with the token ids of the strings in ``flags``, which a model's vocabulary knows.

    Raises click.UsageError, naming the flag, for a token that the vocabulary does not have.
    """
    from lzsampler.llama import dry_breaker_ids, exempt_ids
    from lzsampler.sampler import refuse_tokens_outside

    try:
        refuse_tokens_outside(params, llm.n_vocab())
    except ValueError as error:
        raise _with_flags(error) from error

    strings = dry_breakers(params, flags)
    breakers = dry_breaker_ids(llm, strings if flags["dry_breakers"] else None) if strings else ()
    return replace(params, exempt=exempt_ids(llm, flags["exempt"]), dry_breakers=breakers)


def _bias(text: str) -> tuple[int, float]:
    """Return the token and the number of ``--logit-bias 15043+1``, the form of llama.cpp."""
    match = re.fullmatch(r"(\d+)([+-].+)", text)
    try:
        if match is None:
            raise ValueError
        return int(match[1]), float(match[2])
    except ValueError:
        raise click.UsageError(
            f"--logit-bias takes a token id and a signed number like 15043+1 or 15043-1, got {text!r}"
        ) from None


def _unescaped(text: str) -> str:
    """Return a breaker with line breaks and tabs in place of \\n and \\t, which are easier to give in a shell."""
    return text.replace("\\n", "\n").replace("\\t", "\t")
