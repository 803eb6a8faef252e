"""The options of speculative decoding, their checks, and the `Draft` that they describe."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from .console import console
from .fields import opt
from .help import AutoWhole, ModelFile, refuse_given

if TYPE_CHECKING:
    from lzsampler.decoding.draft import Draft
    from lzsampler.llama.gguf import Header
    from lzsampler.llama.model import Model

SpecMode = Literal["gumbel", "mrs", "match"]

_DRAFT = "Speculative decoding (docs/speculative.md)"
_LOOKUP = 3  # length, in tokens, of the shortest match of --draft lookup
_NAMES = {"flash_attn=True": "-fa on", "n_threads=1": "-t 1"}


@dataclass(frozen=True, kw_only=True)
class DraftOptions:
    """What proposes tokens, and how many tokens it proposes."""

    model_draft: Path | None = opt(
        _DRAFT, "-md", "--model-draft", type=ModelFile(), metavar="FILE",
        help="draft model, which proposes tokens: a smaller GGUF model with the same vocabulary, or the name tale-1m, "
        "the embedded draft",
    )  # fmt: skip
    draft_source: Literal["lookup"] | None = opt(
        _DRAFT, "--draft", metavar="lookup",
        help="find an earlier place of the last tokens in prompt or text, and propose the tokens that followed there; "
        "suits copies and edits; with -md, used only where it promises more than the draft model",
    )  # fmt: skip
    n_max: int | Literal["auto"] = opt(
        _DRAFT, "--spec-draft-n-max", type=AutoWhole(0), metavar="K", default="auto",
        help="propose at most K tokens at a time, 0 to 32; auto chooses the fastest number, which may be 0",
    )  # fmt: skip
    n_min: int = opt(_DRAFT, "--spec-draft-n-min", low=0, default=0, help="ignore proposals of fewer than N tokens")
    p_min: float = opt(
        _DRAFT, "--spec-draft-p-min", metavar="P", default=0.0,
        help="end a proposal when the draft gives its likeliest token a probability below P, 0 to 1",
    )  # fmt: skip
    require_exact: bool = opt(
        _DRAFT, "--require-exact",
        help="refuse a draft if the model's logits depend on how many tokens are decoded together, because the "
        "draft may then change the text (default: print a warning)",
    )  # fmt: skip

    @property
    def is_on(self) -> bool:
        """Whether anything proposes tokens."""
        return self.model_draft is not None or self.draft_source is not None


@dataclass(frozen=True, kw_only=True)
class JudgedDraftOptions(DraftOptions):
    """The options of a draft, and how its proposals are accepted."""

    spec_mode: SpecMode = opt(
        _DRAFT, "--spec-mode", default="gumbel",
        help="how proposals are accepted. gumbel, match: a seed gives the same text as without a draft. mrs: by "
        "rejection sampling, with which the draft changes the text of a seed",
    )  # fmt: skip


def check_draft(options: DraftOptions) -> None:
    """Raise a usage error for options of a draft that have no effect."""
    if not options.is_on:
        refuse_given(tuple(vars(options)), "without a draft: add -md FILE or --draft lookup")
        return
    if options.require_exact and isinstance(options, JudgedDraftOptions) and options.spec_mode == "mrs":
        raise click.UsageError(
            "--require-exact and --spec-mode mrs exclude each other: with mrs, the draft changes texts"
        )
    if options.model_draft is None:
        refuse_given(("p_min",), "without a draft model: add -md FILE, or leave it out")


def open_draft(
    stack: ExitStack, model: "Model", options: JudgedDraftOptions, *, n_threads: int | None
) -> "Draft | None":
    """Return the draft that the options describe, with the target's context size; None if they ask for no draft.

    ``stack`` closes the draft's model, and ends `rounding_said`. Errors of the draft are raised before anything is
    printed about the draft.
    """
    from lzsampler.decoding.draft import refuse_draft

    if not options.is_on:
        return None
    draft = _draft(stack, options, settings_of(model, n_threads), options.spec_mode)
    refuse_draft(model, draft)
    _say_if_large(model.header, draft)
    return draft


def open_draft_for(stack: ExitStack, target: "Header", options: DraftOptions, settings: Mapping[str, Any]) -> "Draft":
    """Return the draft that the options describe, for a target that is not open yet.

    ``settings``: the arguments of `Model` for the draft. ``stack``: as in `open_draft`.
    """
    draft = _draft(stack, options, settings)
    _say_if_large(target, draft)
    return draft


def _draft(stack: ExitStack, options: DraftOptions, settings: Mapping[str, Any], mode: SpecMode = "gumbel") -> "Draft":
    from lzsampler.decoding.draft import Draft
    from lzsampler.llama.model import Model

    opened = None
    if options.model_draft is not None:
        opened = stack.enter_context(Model(options.model_draft, **settings))
    stack.enter_context(rounding_said(refuses=options.require_exact))
    lookup = 0 if options.draft_source is None else _LOOKUP
    return Draft(opened, options.n_max, options.n_min, options.p_min, mode, lookup)


def in_flags(text: str) -> str:
    """Replace the names of arguments of `Model` by flags, in a message about rounding."""
    for argument, flag in _NAMES.items():
        text = text.replace(argument, flag)
    return text


@contextmanager
def rounding_said(*, refuses: bool = False) -> Iterator[None]:
    """Report once, also with -q, that texts may differ from texts without a draft. If ``refuses``, raise LzsError
    instead.
    """
    from lzsampler import LzsError
    from lzsampler.llama.rounding import RoundingWarning

    said = set()
    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *more: Any) -> None:
            if not issubclass(category, RoundingWarning):
                others(message, category, *more)
                return
            text = in_flags(str(message))
            if refuses:
                raise LzsError(f"{text} (--require-exact)")
            if text not in said:
                said.add(text)
                console.error(text)

        warnings.simplefilter("always", RoundingWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _say_if_large(target: "Header", draft: "Draft") -> None:
    if draft.model is not None:
        say_if_large(target, draft.model)


def say_if_large(target: "Header", draft: "Model") -> None:
    """Report if a draft is too large to be of use for its target."""
    from lzsampler.decoding.draft import too_large

    large = too_large(target, draft.header)
    if large is not None:
        console.note(large)


def settings_of(model: "Model", n_threads: int | None) -> dict[str, Any]:
    """Return the arguments of `Model` for the draft of the target ``model``."""
    same = ("n_ctx", "n_batch", "n_gpu_layers", "flash_attn")
    return {**{name: getattr(model, name) for name in same}, "n_threads": n_threads}
