"""The options that several commands share, with llama.cpp's names if llama.cpp has them."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lzsampler._values import counted
from lzsampler.decoding.actions import ACTIONS, Off
from lzsampler.errors import ArgumentError

from .fields import opt
from .help import ModelFile, options

if TYPE_CHECKING:
    from lzsampler.decoding.policy import LoopPolicy
    from lzsampler.detection import RepetitionDetection
    from lzsampler.llama.model import Model

_MODEL, _OUTPUT = "Model", "Output"
_ACTION = "What to do about a loop (nothing by default)"
MODEL_HELP = "GGUF model, or the name smollm2 (docs/install.md) (default: the embedded model, 8\xa0MB)"
THREADS_HELP = "CPU threads (default: physical cores, fewer for a small model)"

FlashAttention = bool | Literal["auto"]
Part = Literal["thinking", "answer", "tool"]


def flash_attn_option(group: str) -> Any:
    """Return the field of the option -fa. Its value is the argument ``flash_attn`` of `Model`."""
    return opt(
        group, "-fa", "--flash-attn", type=click.Choice(["auto", "on", "off"]), default="auto",
        callback=lambda _, __, given: given if given == "auto" else given == "on",
        help="flash attention; auto turns it on if model and device support it",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model to load, and how."""

    path: Path | None = opt(_MODEL, "-m", "--model", type=ModelFile(), metavar="FILE", help=MODEL_HELP)
    n_ctx: int | None = opt(
        _MODEL, "-c", "--ctx-size", low=0,
        help="context size in tokens; 0 is the size that the model was trained with (default: this size, but at most "
        "4096)",
    )  # fmt: skip
    n_batch: int = opt(_MODEL, "-b", "--batch-size", low=1, default=512, help="prompt tokens decoded together")
    n_threads: int | None = opt(_MODEL, "-t", "--threads", low=1, help=THREADS_HELP)
    n_gpu_layers: int = opt(
        _MODEL, "-ngl", "--n-gpu-layers", low=-1, default=-1,
        help="layers on the GPU, if llama-cpp-python supports one; -1\xa0is\xa0all",
    )  # fmt: skip
    flash_attn: FlashAttention = flash_attn_option(_MODEL)
    use_mlock: bool = opt(_MODEL, "--mlock", help="keep the model in RAM, so that it is never swapped out")


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """What ends a text: arguments of `generate`."""

    max_tokens: int = opt(
        _OUTPUT, "-n", "--n-predict", low=-1, default=512, help="write at most N tokens; -1 is no limit"
    )
    stop: tuple[str, ...] = opt(
        _OUTPUT, "-r", "--reverse-prompt", metavar="TEXT", help="end the text before TEXT; repeatable"
    )
    ignore_eos: bool = opt(_OUTPUT, "--ignore-eos", help="keep generating past the end-of-text token")


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """What to do about loops, and in which parts of a text penalties apply."""

    on_loop: str = opt(
        _ACTION, "--on-loop", type=click.Choice([*ACTIONS]), default=Off.name, metavar="ACTION",
        help="; ".join(f"{name} {action.help}" for name, action in ACTIONS.items()),
    )  # fmt: skip
    loop_rule: Literal["period", "stuck", "both"] | None = opt(
        _ACTION, "--loop-rule", metavar="RULE",
        help="what counts as a loop. period: copies of one pattern. stuck: a long stretch with almost no new text. "
        "both: either of them (default: period)",
    )  # fmt: skip
    max_pattern_size: int | None = opt(_ACTION, "--loop-max-pattern", help="longest pattern, in tokens (default: 512)")
    min_pattern_size: int | None = opt(_ACTION, "--loop-min-pattern", help="shortest pattern, in tokens (default: 8)")
    min_count: int | None = opt(_ACTION, "--loop-min-count", help="copies that make a loop (default: 8)")
    loop_scope: tuple[Part, ...] = opt(
        _ACTION, "--loop-scope", metavar="PART",
        help="act on loops only in thinking, answer or tool (tool calls); repeatable (default: everywhere)",
    )  # fmt: skip
    penalty_scope: tuple[Part, ...] = opt(
        _ACTION, "--penalty-scope", metavar="PART",
        help="apply penalties only in thinking, answer or tool (tool calls); repeatable (default: everywhere)",
    )  # fmt: skip

    @property
    def cuts(self) -> bool:
        """Whether a text may be cut. Such a text is printed only after its end."""
        return ACTIONS[self.on_loop].cuts


def open_model(options: ModelOptions) -> "Model":
    """Load and return the model that the options describe."""
    from time import perf_counter

    from lzsampler.llama.model import Model
    from lzsampler.models import default_model

    from .console import console

    start = perf_counter()
    model = Model(
        options.path or default_model(),
        n_ctx=options.n_ctx,
        n_batch=options.n_batch,
        n_threads=options.n_threads,
        n_gpu_layers=options.n_gpu_layers,
        flash_attn=options.flash_attn,
        use_mlock=options.use_mlock,
    )
    console.detail(
        f"{model.path} loaded in {perf_counter() - start:.2f} s: vocabulary {model.n_vocab:,}, context {model.n_ctx:,} "
        f"tokens, batches of {model.n_batch}, {counted(model.n_threads, 'CPU thread')}"
    )
    return model


def policy_from(options: LoopOptions) -> "LoopPolicy":
    """Return the loop policy that the options describe. Raise a usage error for an option that has no effect."""
    from lzsampler.decoding.policy import LoopPolicy

    if options.on_loop == Off.name:
        for given, flag in ((options.loop_rule, "--loop-rule"), (options.loop_scope, "--loop-scope")):
            if given:
                raise click.UsageError(f"{flag} has no effect without --on-loop: add --on-loop stop, or another action")
    return LoopPolicy(
        options.on_loop,
        options.loop_rule,
        loop_scope=options.loop_scope or None,
        penalty_scope=options.penalty_scope or None,
    )


# Fields of RepetitionDetection and their flags.
_DETECTION = {
    "max_pattern_size": "--loop-max-pattern",
    "min_pattern_size": "--loop-min-pattern",
    "min_count": "--loop-min-count",
}


def detection_from(options: LoopOptions) -> "RepetitionDetection | None":
    """Return the loop detector that the options describe, or None for the default of the loop policy."""
    from lzsampler.detection import STOP_ON_LOOP

    given: dict[str, int] = {name: size for name in _DETECTION if (size := getattr(options, name)) is not None}
    if not given:
        return None
    first = _DETECTION[next(iter(given))]
    if options.on_loop == Off.name:
        raise click.UsageError(f"{first} has no effect without --on-loop: add --on-loop stop, or another action")
    if options.loop_rule == "stuck":
        raise click.UsageError(f"{first} has no effect with --loop-rule stuck: use --loop-rule period or both")
    longest = given.get("max_pattern_size", STOP_ON_LOOP.max_pattern_size)
    if longest == 0:  # In `RepetitionDetection`, 0 would turn the detection off.
        raise ArgumentError("max_pattern_size must be at least 1, got 0")
    return replace(STOP_ON_LOOP, **{"min_pattern_size": min(STOP_ON_LOOP.min_pattern_size, longest), **given})


# -- options of llama.cpp that lzs does not have --


def _refused(*names: str, message: str) -> Callable[[Any], Any]:
    """Return a decorator that adds a hidden option of llama.cpp that lzs lacks. The option raises ``message``."""

    def refuse(ctx: click.Context, _: click.Parameter, given: Any) -> None:
        if given and not ctx.resilient_parsing:
            raise click.UsageError(message.replace("OWNER/REPO", str(given).partition(":")[0]))

    return click.option(*names, hidden=True, expose_value=False, callback=refuse)


refused_download = _refused(
    "-hf",
    "-hfr",
    "--hf-repo",
    "-hff",
    "--hf-file",
    message="lzs does not download models: fetch a GGUF file first (pip install huggingface_hub; "
    "hf download OWNER/REPO FILE.gguf --local-dir .), then give it with -m FILE.gguf",
)
refused_samplers = options(
    _refused(
        "--samplers", message="lzs applies samplers in a fixed order (docs/command-line.md): leave --samplers out"
    ),
    _refused("--mirostat", message="lzs has no mirostat: use --temp with --top-p or --min-p"),
)
refused_lora = _refused("--lora", message="lzs loads no LoRA adapters: merge the adapter into the GGUF file first")
accepted_already = click.option(  # Command lines for llama-cli may have these options. lzs always behaves as they ask.
    "--jinja", "--no-display-prompt", hidden=True, is_flag=True, expose_value=False
)


# -- texts of the command line --


def is_broken(text: str) -> bool:
    """Return whether a text has lone surrogates, which come from bytes that are not UTF-8. No model accepts them."""
    return any("\ud800" <= character <= "\udfff" for character in text)


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def unescaped(text: str) -> str:
    r"""Return a text with the escape sequences of llama.cpp's -e replaced: \n \r \t \' \" \\ and \xHH."""
    return re.sub(
        r"\\(?:x([0-9a-fA-F]{2})|([nrt\\'\"]))", lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES[m[2]], text
    )
