"""The options that commands share, with llama.cpp's names where it has them, and `Params` out of those for sampling."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import click

from lzsampler._values import counted
from lzsampler.decoding.actions import ACTIONS, Off, names
from lzsampler.errors import ArgumentError
from lzsampler.params import CHOICES, OF_RULE, PRESETS, Params, changed

from .flags import FLAGS, Flag
from .help import AutoWhole, ModelFile, Number, Whole, option, options, refuse_given

if TYPE_CHECKING:
    from lzsampler.constraint.grammar import Grammar
    from lzsampler.decoding.config import GenerationConfig
    from lzsampler.decoding.draft import Draft
    from lzsampler.decoding.policy import LoopPolicy
    from lzsampler.detection import RepetitionDetection
    from lzsampler.llama.model import Model

_DRAFT = "Speculative decoding (docs/speculative.md)"
_MODEL, _SAMPLING, _ACTION = "Model", "Sampling", "What to do about a loop (nothing by default)"

# Fields of Params that are token ids, and strings on the command line.
_STRINGS = ("exempt", "dry_breakers")
# Fields of RepetitionDetection and their flags.
LOOP_FLAGS = {
    "max_pattern_size": "--loop-max-pattern",
    "min_pattern_size": "--loop-min-pattern",
    "min_count": "--loop-min-count",
}
PARTS = click.Choice(["thinking", "answer", "tool"])


def whole(low: int | None = None) -> dict[str, Any]:
    """Return the settings of an option for a whole number, maybe of at least ``low``."""
    return {"type": Whole(low), "metavar": "N"}


def number(letter: str) -> dict[str, Any]:
    """Return the settings of an option for a number that is called by a letter."""
    return {"type": Number(), "metavar": letter}


_TYPES = get_type_hints(Params)


def flag(row: Flag) -> Callable[[Any], Any]:
    """Return a decorator that adds the option of a row of `FLAGS`; the type is that of the field."""
    kinds = get_args(_TYPES[row.field]) or (_TYPES[row.field],)
    settings: dict[str, Any] = {"default": row.default, "help": row.help, "metavar": row.metavar}
    if row.field in CHOICES:
        settings["type"] = click.Choice(row.choices or CHOICES[row.field])
    elif row.field in _STRINGS:
        settings["multiple"] = True
    elif bool not in kinds:
        settings["type"] = Whole(row.low) if int in kinds else Number()
    return option(row.group, *row.names, row.field, **settings)


def refused(*names: str, message: str, is_flag: bool = False) -> Callable[[Any], Any]:
    """Return a decorator that adds a hidden option of llama.cpp which lzs does not have: it says what to do instead."""

    def refuse(ctx: click.Context, _: click.Parameter, given: Any) -> None:
        if given and not ctx.resilient_parsing:
            raise click.UsageError(message.replace("OWNER/REPO", str(given).partition(":")[0]))

    return click.option(*names, hidden=True, expose_value=False, is_flag=is_flag, callback=refuse)


def flash_attn_option(group: str) -> Callable[[Any], Any]:
    """Return a decorator that adds -fa, whose value is that of ``flash_attn`` of `Model`."""
    return option(
        group, "-fa", "--flash-attn", "flash_attn", type=click.Choice(["auto", "on", "off"]), default="auto",
        callback=lambda _, __, given: given if given == "auto" else given == "on",
        help="flash attention; auto is on wherever model and device support it",
    )  # fmt: skip


refused_download = refused(
    "-hf",
    "-hfr",
    "--hf-repo",
    "-hff",
    "--hf-file",
    message="lzs does not download models: fetch a GGUF file first (pip install huggingface_hub; "
    "hf download OWNER/REPO FILE.gguf --local-dir .), then give it with -m FILE.gguf",
)

model_options = options(
    option(
        _MODEL, "-m", "--model", type=ModelFile(), metavar="FILE",
        help="GGUF model, or the name smollm2 (docs/install.md) (default: the embedded model, 8\xa0MB)",
    ),
    option(
        _MODEL, "-c", "--ctx-size", "n_ctx", **whole(0),
        help="context, tokens; 0 is all that the model was trained with (default: the same, up to 4096)",
    ),
    option(_MODEL, "-b", "--batch-size", "n_batch", **whole(1), default=512, help="prompt tokens decoded at once"),
    option(
        _MODEL, "-t", "--threads", "n_threads", **whole(1),
        help="CPU threads (default: physical cores, fewer for a small model)",
    ),
    option(
        _MODEL, "-ngl", "--n-gpu-layers", **whole(-1), default=-1,
        help="layers on the GPU, if llama-cpp-python supports one; -1\xa0is\xa0all",
    ),
    flash_attn_option(_MODEL),
    option(_MODEL, "--mlock", "use_mlock", is_flag=True, help="keep the model in RAM, so that it is never swapped out"),
    refused_download,
)  # fmt: skip

sampling_options = options(
    option(
        _SAMPLING, "--temp", "temperature", **number("T"), default=0.0,
        help="temperature, 1e-6 to 1e6; 0 always takes the likeliest token",
    ),
    option(_SAMPLING, "--top-k", **whole(), default=0, help="keep the N likeliest tokens; 0 is off"),
    option(
        _SAMPLING, "--top-p", **number("P"), default=1.0,
        help="keep the likeliest tokens whose probabilities sum to P, 0 to 1; 1 is off",
    ),
    option(
        _SAMPLING, "--min-p", **number("P"), default=0.0,
        help="keep tokens at least P times as likely as the likeliest, 0 to 1; 0 is off",
    ),
    option(_SAMPLING, "-s", "--seed", **whole(), default=-1, help="seed of the draws; -1 chooses one and prints it"),
    option(_SAMPLING, "--temp-last", "temperature_last", is_flag=True, help="apply the temperature last, as llama.cpp"),
    option(
        _SAMPLING, "--ties", type=click.Choice(["cut", "keep"]), default="cut",
        help="cut keeps exactly --top-k tokens, keep also those equal to the last",
    ),
    option(
        _SAMPLING, "--pick", type=click.Choice(["race", "llama"]), default="race",
        help="how a token is drawn; llama draws bit for bit as llama.cpp does",
    ),
    option(
        _SAMPLING, "-l", "--logit-bias", multiple=True, metavar="ID+BIAS",
        help="add BIAS to the logit of token ID: 15043+1, 15043-1; ID-inf forbids the token; repeatable",
    ),
    option(
        "LZ penalty", "--preset", type=click.Choice([*PRESETS]), default="default", metavar="NAME",
        help="LZ settings to start from. default: for models that loop; guard: for models that seldom do, JSON and "
        "tools, it leaves a text alone until that copies itself; paper: those of arXiv 2504.20131",
    ),
    *map(flag, FLAGS),
    refused("--samplers", message="lzs applies samplers in a fixed order (docs/command-line.md): leave --samplers out"),
    refused("--mirostat", message="lzs has no mirostat: use --temp with --top-p or --min-p"),
)  # fmt: skip


loop_options = options(
    option(
        _ACTION, "--on-loop", type=click.Choice([*ACTIONS]), default="off", metavar="ACTION",
        help="; ".join(f"{name} {action.help}" for name, action in ACTIONS.items()),
    ),
    option(
        _ACTION, "--loop-rule", type=click.Choice(["period", "stuck", "both"]), metavar="RULE",
        help="what counts: period, copies of one pattern; stuck, a long stretch with next to nothing new; or both "
        "(default: period)",
    ),
    option(
        _ACTION, "--max-recoveries", **whole(), default=3,
        help="how often an action that goes on may act before the text stops",
    ),
    option(
        _ACTION, "--loop-max-pattern", "max_pattern_size", **whole(), help="longest pattern, tokens (default: 512)"
    ),
    option(_ACTION, "--loop-min-pattern", "min_pattern_size", **whole(), help="shortest pattern, tokens (default: 8)"),
    option(_ACTION, "--loop-min-count", "min_count", **whole(), help="copies that make a loop (default: 8)"),
    option(
        _ACTION, "--loop-scope", type=PARTS, multiple=True, metavar="PART",
        help="act on loops only in thinking, answer or tool (a tool call); repeatable (default: everywhere)",
    ),
    option(
        _ACTION, "--penalty-scope", type=PARTS, multiple=True, metavar="PART",
        help="the same for all penalties: thinking leaves answers and tool calls as they are without a penalty",
    ),
    refused("--stop-on-loop", is_flag=True, message="--stop-on-loop has another name: use --on-loop stop"),
    refused("--trim-loop", is_flag=True, message="--trim-loop has another name: use --on-loop trim"),
)  # fmt: skip

draft_options = options(
    option(
        _DRAFT, "-md", "--model-draft", "model_draft", type=ModelFile(), metavar="FILE",
        help="smaller GGUF model of the same vocabulary that proposes tokens, or the name tale-1m, the embedded draft",
    ),
    option(
        _DRAFT, "--draft", "draft_source", type=click.Choice(["lookup"]), metavar="lookup",
        help="propose the tokens that followed when the end of the text occurred before, in it or in the prompt: for "
        "copies and edits; with -md, where that promises more than the draft model",
    ),
    option(
        _DRAFT, "--lookup-min", "lookup", **whole(1), default=3,
        help="shortest match of --draft lookup, tokens, 1 to 65535",
    ),
    option(
        _DRAFT, "--spec-draft-n-max", "n_max", type=AutoWhole(0), metavar="K", default="auto",
        help="most tokens proposed at a time, 0 to 32; auto chooses what is fastest, none included",
    ),
    option(
        _DRAFT, "--spec-draft-n-min", "n_min", **whole(0), default=0, help="do not use proposals of fewer tokens"
    ),
    option(
        _DRAFT, "--spec-draft-p-min", "p_min", **number("P"), default=0.0,
        help="stop proposing where the draft is less sure of its best token, 0 to 1",
    ),
    option(
        _DRAFT, "--require-exact", is_flag=True,
        help="refuse a draft where the model's logits depend on how many tokens are decoded together, so that a text "
        "may not be the one without a draft (default: a line says so)",
    ),
)  # fmt: skip

speculation_options = options(
    option(
        _DRAFT, "--spec-mode", type=click.Choice(["gumbel", "mrs", "match"]), default="gumbel",
        help="how a proposal is judged; only in mrs, rejection sampling, does the text of a seed depend on the draft",
    ),
    option(_DRAFT, "--spec-show", is_flag=True, help="print proposed tokens that were accepted in green"),
)  # fmt: skip

unsupported_options = options(
    refused("--lora", message="lzs loads no LoRA adapters: merge the adapter into the GGUF file first"),
)


def open_model(flags: Mapping[str, Any]) -> "Model":
    """Return the model that the flags of `model_options` describe, loaded."""
    from time import perf_counter

    from lzsampler.llama.model import Model
    from lzsampler.models import default_model

    from .console import console

    start = perf_counter()
    names = ("n_ctx", "n_batch", "n_threads", "n_gpu_layers", "flash_attn", "use_mlock")
    model = Model(flags["model"] or default_model(), **{name: flags[name] for name in names})
    console.detail(
        f"{model.path} loaded in {perf_counter() - start:.2f} s: vocabulary {model.n_vocab:,}, context {model.n_ctx:,} "
        f"tokens, batches of {model.n_batch}, {counted(model.n_threads, 'CPU thread')}"
    )
    return model


def config_from(
    params: Params, loops: "LoopPolicy", flags: Mapping[str, Any], grammar: "Grammar | None", draft: "Draft | None"
) -> "GenerationConfig":
    """Return what the flags of `lzs generate` ask of a text."""
    from lzsampler.decoding.config import GenerationConfig

    return GenerationConfig(
        params,
        max_tokens=flags["max_tokens"],
        stop=flags["stop"],
        ignore_eos=flags["ignore_eos"],
        grammar=grammar,
        grammar_scope=flags["grammar_scope"] or None,
        on_loop=loops,
        draft=draft,
        fast_forward=not flags["no_fast_forward"],
        sampler=flags["sampler"],
    )


def loops_from(flags: Mapping[str, Any]) -> "LoopPolicy":
    """Return what is to be done about loops, and in which parts of a text."""
    from lzsampler.decoding.policy import LoopPolicy

    if flags["on_loop"] == Off.name:
        for name, flag in (("loop_rule", "--loop-rule"), ("loop_scope", "--loop-scope")):
            if flags[name]:
                raise click.UsageError(f"{flag} has no effect without --on-loop: add --on-loop stop, or another action")
    if not ACTIONS[flags["on_loop"]].goes_on:
        refuse_given(("max_recoveries",), f"without an action that goes on: add --on-loop with {names('goes_on')}")
    scopes = {name: flags[name] or None for name in ("loop_scope", "penalty_scope")}
    return LoopPolicy(flags["on_loop"], flags["loop_rule"], flags["max_recoveries"], **scopes)


def cuts(flags: Mapping[str, Any]) -> bool:
    """Return whether a text may be cut, so that it cannot be printed as it comes."""
    return ACTIONS[flags["on_loop"]].cuts


def asked_with(text: str, flags: Mapping[str, Any]) -> "str | list[dict[str, str]]":
    """Return what a model is asked: the text, or with --chat or a system message a conversation for its template."""
    if not flags["chat"] and flags["system"] is None:
        return text
    system = [] if flags["system"] is None else [{"role": "system", "content": flags["system"]}]
    return [*system, {"role": "user", "content": text}]


def params_from(flags: dict[str, Any]) -> Params:
    """Take the fields of `Params` out of ``flags`` and return them; a seed of -1 becomes a random one.

    An option with the name of a field sets it, and one that was not given leaves that of --preset or of `Params`. The
    detector of loops is part of it where a command has `loop_options`. Raises ValueError for a value out of range.
    """
    names = [field.name for field in fields_of(Params) if field.name in flags and field.name not in _STRINGS]
    fields = {name: value for name in names if (value := flags.pop(name)) is not None}
    fields["logit_bias"] = [_bias(text) for text in fields["logit_bias"]]
    if "" in flags["exempt"]:
        raise click.UsageError("--exempt must not be empty")
    if "" in flags["dry_breakers"]:
        raise click.UsageError('--dry-sequence-breaker must not be empty; the word "none" means no tokens')
    if "none" in flags["dry_breakers"] and len(flags["dry_breakers"]) > 1:
        raise click.UsageError("--dry-sequence-breaker none means no tokens: leave the others out")
    preset = PRESETS[flags.pop("preset")]
    if preset.get("lz_rule") == "paper":
        refuse_given(OF_RULE["default"], "with --preset paper, whose rule is another one: leave it out")
    else:
        refuse_given(OF_RULE["paper"], "without the paper's rule: add --preset paper, or leave it out")
    detection = _detection({field: flags.pop(field, None) for field in LOOP_FLAGS}, flags)
    if fields["seed"] == -1:
        fields["seed"] = int.from_bytes(os.urandom(4), "little")
    made = {**fields, **_window(fields["penalty_window"]), "repetition_detection": detection}
    return changed(Params(**preset), made)


def _window(last_n: int) -> dict[str, Any]:
    """Return the fields that --repeat-last-n changes: 0 turns three penalties off, and -1 is no limit (0 in Params)."""
    if last_n == 0:
        off = {"repetition_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}
        return {"penalty_window": 0, "repetition_method": "multiplicative", **off}
    return {"penalty_window": max(last_n, 0)}


def _detection(given: dict[str, int | None], flags: Mapping[str, Any]) -> "RepetitionDetection | None":
    from lzsampler.detection import STOP_ON_LOOP

    fields = {field: value for field, value in given.items() if value is not None}
    if not fields:
        return None
    first = LOOP_FLAGS[next(iter(fields))]
    if flags.get("on_loop", "off") == "off":
        raise click.UsageError(f"{first} has no effect without --on-loop: add --on-loop stop, or another action")
    if flags["loop_rule"] == "stuck":
        raise click.UsageError(f"{first} has no effect with --loop-rule stuck: use --loop-rule period or both")
    longest = fields.get("max_pattern_size", STOP_ON_LOOP.max_pattern_size)
    if longest == 0:  # which is off in vLLM's terms
        raise ArgumentError("max_pattern_size must be at least 1, got 0")
    return replace(STOP_ON_LOOP, **{"min_pattern_size": min(STOP_ON_LOOP.min_pattern_size, longest), **fields})


def dry_breakers(flags: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the strings of the tokens that end a repetition of DRY."""
    from lzsampler.llama import DRY_BREAKERS

    given = flags["dry_breakers"]
    return () if given == ("none",) else tuple(map(_breaker, given)) or DRY_BREAKERS


def with_tokens(params: Params, llm: Any, flags: Mapping[str, Any]) -> Params:
    """Return settings with the separators of a model's vocabulary, and the token ids of the strings in ``flags``.

    Raises ValueError for a token that the vocabulary does not have.
    """
    from lzsampler.llama import exempt_ids
    from lzsampler.llama.vocabulary import with_token_classes
    from lzsampler.sampler import refuse_tokens_outside

    refuse_tokens_outside(params, llm.n_vocab())
    # Of the usual strings a vocabulary may lack some; of those that were given it may not.
    strings = dry_breakers(flags) if flags["dry_breakers"] else None
    return with_token_classes(llm, replace(params, exempt=exempt_ids(llm, flags["exempt"])), strings)


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


def _breaker(text: str) -> str:
    """Return a breaker with line breaks and tabs in place of \\n and \\t, which are easier to give in a shell."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def is_broken(text: str) -> bool:
    """Return whether a text has lone surrogates, as from bytes that are not UTF-8: no model can be given it."""
    return any("\ud800" <= character <= "\udfff" for character in text)


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def unescaped(text: str) -> str:
    r"""Return a text with what llama.cpp's -e takes for escape sequences replaced: \n \r \t \' \" \\ and \xHH."""
    return re.sub(
        r"\\(?:x([0-9a-fA-F]{2})|([nrt\\'\"]))", lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES[m[2]], text
    )
