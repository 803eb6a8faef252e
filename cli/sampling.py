"""The options that set fields of `Params`, and the `Params` that they make."""

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from lzsampler.params import OF_RULE, PRESETS, Formula, History, Params, Structure, Ties, changed

from .fields import opt
from .help import refuse_given

if TYPE_CHECKING:
    from lzsampler.detection import RepetitionDetection

_SAMPLING, _LZ = "Sampling", "LZ penalty"
_OTHERS, _DRY = "Other penalties (off by default)", "DRY penalty (off by default)"


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """The settings of a sampler. Most fields have the name of the field of `Params` that they set.

    A field of None keeps the value of --preset or `Params`. Some spaces in the help are \\xa0, which is never wrapped.
    """

    temperature: float = opt(
        _SAMPLING, "--temp", metavar="T", default=0.0,
        help="temperature, 1e-6 to 1e6; 0 always takes the likeliest token",
    )  # fmt: skip
    top_k: int = opt(_SAMPLING, "--top-k", default=0, help="keep only the N likeliest tokens; 0 is off")
    top_p: float = opt(
        _SAMPLING, "--top-p", metavar="P", default=1.0,
        help="keep only the likeliest tokens whose probabilities sum to P, 0 to 1; 1 is off",
    )  # fmt: skip
    min_p: float = opt(
        _SAMPLING, "--min-p", metavar="P", default=0.0,
        help="keep only tokens at least P times as likely as the likeliest, 0 to 1; 0 is off",
    )  # fmt: skip
    seed: int = opt(_SAMPLING, "-s", "--seed", default=-1, help="random seed; -1 chooses a seed and prints it")
    temperature_last: bool = opt(
        _SAMPLING, "--temp-last", help="truncate first and apply the temperature last, as llama.cpp does"
    )
    ties: Ties = opt(
        _SAMPLING,
        "--ties",
        default="cut",
        help="cut keeps exactly --top-k tokens; keep also keeps tokens as likely as the last of these",
    )
    logit_bias: tuple[str, ...] = opt(
        _SAMPLING, "-l", "--logit-bias", metavar="ID+BIAS",
        help="add BIAS to the logit of token ID: 15043+1, 15043-1; ID-inf forbids the token; repeatable",
    )  # fmt: skip
    preset: str = opt(
        _LZ, "--preset", type=click.Choice([*PRESETS]), default="default", metavar="NAME",
        help="LZ settings to start from. default: for models that loop. guard: only long copies within the text, for "
        "JSON, tools and models that seldom loop. paper: as in arXiv 2504.20131",
    )  # fmt: skip
    lz_penalty: float | None = opt(
        _LZ, "--lz-penalty", metavar="A", help="logits per bit; 0 is off (default: 0.3, or the value of --preset)"
    )
    lz_min_match: int | None = opt(_LZ, "--lz-min-match", default=5, help="shortest repetition to penalize, in tokens")
    lz_run_penalty: float | None = opt(
        _LZ, "--lz-run-penalty", metavar="R",
        help="penalty in logits for each token that the text copies from itself beyond --lz-run-allowance; 0 is off "
        "(default: 0.5, or the value of --preset)",
    )  # fmt: skip
    lz_run_allowance: int | None = opt(
        _LZ, "--lz-run-allowance",
        help="tokens that the text may copy from itself before --lz-run-penalty applies, 16 times as many under a "
        "grammar (default: 32, or the value of --preset)",
    )  # fmt: skip
    lz_window: int | None = opt(
        _LZ, "--lz-window",
        help="how many tokens the LZ penalty looks back, 2 to 131072 (default: 2048, or the value of --preset)",
    )  # fmt: skip
    lz_formula: Formula = opt(
        _LZ, "--lz-formula", default="rate", metavar="NAME",
        help="penalty of a match under the paper's rule: rate, distance or codelength (docs/penalties.md)",
    )  # fmt: skip
    lz_buffer: int | None = opt(
        _LZ, "--lz-buffer", help="longest match under the paper's rule, 1 to 4096 tokens (default: 32)"
    )
    history: History = opt(
        _LZ, "--history", default="generated", metavar="WHAT",
        help="tokens that all penalties look at: generated, or all, which includes the prompt",
    )  # fmt: skip
    repetition_penalty: float | None = opt(
        _OTHERS, "--repeat-penalty", metavar="R",
        help="for tokens seen before, divide positive logits by R and multiply negative logits by R, above 0; 1 is off "
        "(default: off)",
    )  # fmt: skip
    frequency_penalty: float = opt(
        _OTHERS, "--frequency-penalty", metavar="F", default=0.0,
        help="subtract F from the logit of a token for each time it occurred; 0 is off",
    )  # fmt: skip
    presence_penalty: float = opt(
        _OTHERS, "--presence-penalty", metavar="F", default=0.0,
        help="subtract F once from the logit of every token seen before; 0 is off",
    )  # fmt: skip
    penalty_window: int = opt(
        _OTHERS, "--repeat-last-n", low=-1, default=-1,
        help="how many tokens the repeat, frequency and presence penalties look back; 0\xa0turns them off, "
        "-1\xa0is\xa0all",
    )  # fmt: skip
    dry_multiplier: float = opt(
        _DRY, "--dry-multiplier", metavar="A", default=0.0,
        help="strength in logits; 0 is off, 0.8 is usual; the LZ penalty stays on unless --lz-penalty\xa0is\xa00",
    )  # fmt: skip
    dry_base: float = opt(
        _DRY, "--dry-base", metavar="B", default=1.75, help="each further repeated token multiplies the penalty by B"
    )
    dry_allowed_length: int = opt(
        _DRY, "--dry-allowed-length", default=2, help="shortest repetition whose continuation is penalized, in tokens"
    )
    dry_penalty_last_n: int = opt(
        _DRY, "--dry-penalty-last-n", default=-1,
        help="how many tokens the DRY penalty looks back, up to 131072; 0 is off, -1\xa0is\xa0131072",
    )  # fmt: skip
    dry_breakers: tuple[str, ...] = opt(
        _DRY, "--dry-sequence-breaker", metavar="TEXT",
        help="end a repetition at a token that contains TEXT; repeatable; none removes all sequence breakers "
        "(default: line break, colon, double quote, asterisk)",
    )  # fmt: skip

    @property
    def breakers(self) -> tuple[str, ...]:
        """DRY's sequence breakers: strings whose tokens end a repetition."""
        from lzsampler.llama import DRY_BREAKERS

        return () if self.dry_breakers == ("none",) else tuple(map(_breaker, self.dry_breakers)) or DRY_BREAKERS


# Fields that `params_from` does not copy: it computes some, and the others need a vocabulary.
_OTHERWISE = ("preset", "dry_breakers", "logit_bias", "penalty_window", "seed")


def params_from(
    sampling: SamplingOptions,
    *,
    structure: Structure = "scale",
    detection: "RepetitionDetection | None" = None,
) -> Params:
    """Return the `Params` that the options describe. A seed of -1 becomes a random seed.

    Raises ArgumentError for a value out of range.
    """
    if "" in sampling.dry_breakers:
        raise click.UsageError('--dry-sequence-breaker must not be empty; the word "none" removes all of them')
    if "none" in sampling.dry_breakers and len(sampling.dry_breakers) > 1:
        raise click.UsageError("--dry-sequence-breaker none removes all of them: leave the others out")
    preset = PRESETS[sampling.preset]
    if preset.get("lz_rule") == "paper":
        refuse_given(OF_RULE["default"], "with --preset paper, which has another rule: leave it out")
    else:
        refuse_given(OF_RULE["paper"], "without the paper's rule: add --preset paper, or leave it out")
    given = {name: value for name, value in vars(sampling).items() if name not in _OTHERWISE and value is not None}
    computed: dict[str, Any] = {
        "seed": int.from_bytes(os.urandom(4), "little") if sampling.seed == -1 else sampling.seed,
        "logit_bias": [_bias(text) for text in sampling.logit_bias],
        **_window(sampling.penalty_window),
    }
    return changed(Params(**preset), {**given, **computed, "structure": structure, "repetition_detection": detection})


def _window(last_n: int) -> dict[str, Any]:
    """Return the fields that --repeat-last-n sets: 0 turns three penalties off; -1 is no limit (0 in `Params`)."""
    if last_n == 0:
        off = {"repetition_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}
        return {"penalty_window": 0, **off}
    return {"penalty_window": max(last_n, 0)}


def with_tokens(params: Params, llm: Any, sampling: SamplingOptions) -> Params:
    """Return settings with the separators of a model's vocabulary, and the token ids of DRY's sequence breakers.

    Raises ArgumentError for a token that is not in the vocabulary.
    """
    from lzsampler.llama.vocabulary import with_token_classes
    from lzsampler.sampler import refuse_tokens_outside

    refuse_tokens_outside(params, llm.n_vocab())
    # The vocabulary may lack default breakers. If it lacks a breaker that the user gave, that is an error.
    return with_token_classes(llm, params, sampling.breakers if sampling.dry_breakers else None)


def _bias(text: str) -> tuple[int, float]:
    """Return the token id and the bias in a text such as 15043+1, which is llama.cpp's form."""
    match = re.fullmatch(r"(\d+)([+-].+)", text)
    try:
        if match is None:
            raise ValueError
        return int(match[1]), float(match[2])
    except ValueError:
        raise click.UsageError(
            f"--logit-bias takes a token id and a signed number like 15043+1 or 15043-1, got {text!r}"
        ) from None


def _breaker(text: str) -> str:
    """Return a sequence breaker with line breaks and tabs in place of \\n and \\t."""
    return text.replace("\\n", "\n").replace("\\t", "\t")
