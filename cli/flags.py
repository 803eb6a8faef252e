"""`FLAGS`: the options of the command line that set fields of `Params`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Flag:
    """An option of the command line that sets a field of `Params`: a row of `FLAGS`.

    ``names``: as click takes them; ``group``: the title it is listed under. ``default``: what it starts from, which the
    help shows; None leaves that of `Params` and shows nothing. ``low``: the least that a whole number may be, if the
    option itself is to say so. ``choices``: the names in the order of errors, where `CHOICES` has another one.
    """

    field: str
    group: str
    names: tuple[str, ...]
    metavar: str | None
    default: float | str | None
    help: str
    low: int | None = None
    choices: tuple[str, ...] = ()


_LZ, _OTHERS, _DRY = "LZ penalty", "Other penalties (off by default)", "DRY penalty (off by default)"
_METHODS = ("multiplicative", "subtractive")

# All fields that are no sampling fields, in the order of the help. Some of the spaces must not be broken: \xa0.
FLAGS = (
    Flag("lz_penalty", _LZ, ("--lz-penalty",), "A", None,
         "strength, logits per bit; 0 is off (default: 0.3, or that of --preset)"),
    Flag("lz_min_match", _LZ, ("--lz-min-match",), "N", 5, "shortest repetition that costs, tokens"),
    Flag("lz_run_penalty", _LZ, ("--lz-run-penalty",), "R", None,
         "logits for each token by which the text has copied itself too long; 0 is off "
         "(default: 0.5, or that of --preset)"),
    Flag("lz_run_allowance", _LZ, ("--lz-run-allowance",), "N", None,
         "tokens that the text may copy itself for nothing, 16 times as many under a grammar (default: 32, or that of "
         "--preset)"),
    Flag("lz_window", _LZ, ("--lz-window",), "N", None,
         "how far back it looks, 2 to 131072 tokens (default: 2048, or that of --preset)"),
    Flag("lz_formula", _LZ, ("--lz-formula",), "NAME", "rate",
         "of the paper's rule, what a match costs: rate, distance or codelength (docs/penalties.md)"),
    Flag("lz_buffer", _LZ, ("--lz-buffer",), "N", None,
         "of the paper's rule, the longest match, 1 to 4096 tokens (default: 32)"),
    Flag("history", _LZ, ("--history",), "WHAT", "generated",
         "what all penalties look at: generated tokens, or all, with the prompt"),
    Flag("structure", _LZ, ("--structure",), "WHAT", "scale",
         "what all penalties make of a grammar: scale multiplies the penalty of a token by the share of its bytes that "
         "the grammar leaves free; free does that too, and leaves the tokens that are forced as a whole out of the "
         "history; off does neither"),
    Flag("exempt", _LZ, ("--exempt",), "TEXT", None, "apply no penalty to the tokens of TEXT; repeatable"),
    Flag("repetition_penalty", _OTHERS, ("--repeat-penalty",), "R", None,
         "divide the logits of tokens seen before by R, above 0; 1 is off (default: off)"),
    Flag("frequency_penalty", _OTHERS, ("--frequency-penalty",), "F", 0.0,
         "subtract F from a logit for each occurrence; 0 is off"),
    Flag("presence_penalty", _OTHERS, ("--presence-penalty",), "F", 0.0,
         "subtract F once from the logit of every token seen before; 0 is off"),
    Flag("penalty_window", _OTHERS, ("--repeat-last-n",), "N", -1,
         "tokens these three look back at; 0\xa0turns them off, -1\xa0is all", low=-1),
    Flag("repetition_method", _OTHERS, ("--repeat-method",), "M", "multiplicative",
         "multiplicative or subtractive", choices=_METHODS),
    Flag("frequency_method", _OTHERS, ("--frequency-method",), "M", "subtractive",
         "the same for --frequency-penalty", choices=_METHODS),
    Flag("presence_method", _OTHERS, ("--presence-method",), "M", "subtractive",
         "the same for --presence-penalty", choices=_METHODS),
    Flag("sign_aware", _OTHERS, ("--sign-aware/--no-sign-aware",), None, True,
         "multiply negative logits by R instead of dividing them (default: yes)"),
    Flag("dry_multiplier", _DRY, ("--dry-multiplier",), "A", 0.0,
         "strength, logits; 0 is off, 0.8 is usual; LZ stays on unless --lz-penalty\xa00"),
    Flag("dry_base", _DRY, ("--dry-base",), "B", 1.75, "factor for each further token of a repetition"),
    Flag("dry_allowed_length", _DRY, ("--dry-allowed-length",), "N", 2,
         "shortest repetition whose continuation is penalised, tokens"),
    Flag("dry_penalty_last_n", _DRY, ("--dry-penalty-last-n",), "N", -1,
         "tokens it looks back at, up to 131072; 0 is off, -1\xa0is\xa0131072"),
    Flag("dry_breakers", _DRY, ("--dry-sequence-breaker",), "TEXT", None,
         "no repetition crosses a token that contains TEXT; repeatable; none is no breakers (default: line break, "
         "colon, double quote, asterisk)"),
)  # fmt: skip
