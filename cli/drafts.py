"""What the commands share that draft tokens: their options checked, and `Draft` out of them."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from .console import console
from .help import refuse_given

if TYPE_CHECKING:
    from lzsampler.decoding.draft import Draft
    from lzsampler.llama.gguf import Header
    from lzsampler.llama.model import Model

_OF_A_DRAFT = ("n_max", "n_min", "p_min", "spec_mode", "spec_show", "lookup", "require_exact")
_FLAGS = {"flash_attn=True": "-fa on", "n_threads=1": "-t 1"}


def drafts(flags: Mapping[str, Any]) -> bool:
    """Return whether the flags of `draft_options` ask for a draft."""
    return flags["model_draft"] is not None or flags["draft_source"] is not None


def check_draft(flags: Mapping[str, Any]) -> None:
    """Raise a usage error for flags of `draft_options` and `speculation_options` that have no effect."""
    if not drafts(flags):
        refuse_given(_OF_A_DRAFT, "without a draft: add -md FILE or --draft lookup")
        return
    if flags["require_exact"] and flags.get("spec_mode") == "mrs":
        raise click.UsageError("--require-exact and --spec-mode mrs exclude each other: in mrs other tokens are drawn")
    if flags["draft_source"] is None:
        refuse_given(("lookup",), "without --draft lookup: add it")
    if flags["model_draft"] is None:
        refuse_given(("p_min",), "without a draft model: add -md FILE, or leave it out")


def open_draft(stack: ExitStack, model: "Model", flags: Mapping[str, Any], **more: Any) -> "Draft | None":
    """Return the draft that the flags describe, with the context of the target; None where they ask for none.

    ``stack`` closes its model, and `rounding_said` holds until then. ``more``: arguments of `Draft` beside those of
    `draft_options` and ``mode``. What is wrong with it is raised before anything is said about it.
    """
    from lzsampler.decoding.draft import refuse_draft

    if not drafts(flags):
        return None
    draft = _draft(stack, flags, settings_of(model), mode=flags["spec_mode"], **more)
    refuse_draft(model, draft)
    _say_if_large(model.header, draft)
    return draft


def open_draft_for(
    stack: ExitStack, target: "Header", flags: Mapping[str, Any], settings: Mapping[str, Any]
) -> "Draft":
    """Return the draft that the flags describe, for a target that is not open yet.

    ``settings``: the arguments of `Model` with which both are opened, but for the threads. ``stack``: as in
    `open_draft`.
    """
    draft = _draft(stack, flags, settings)
    _say_if_large(target, draft)
    return draft


def _draft(stack: ExitStack, flags: Mapping[str, Any], settings: Mapping[str, Any], **more: Any) -> "Draft":
    from lzsampler.decoding.draft import Draft

    opened = None
    if flags["model_draft"] is not None:
        opened = stack.enter_context(open_draft_model(flags, settings))
    given = {name: flags[name] for name in ("n_max", "n_min", "p_min")}
    stack.enter_context(rounding_said(refuses=flags["require_exact"]))
    return Draft(opened, lookup=0 if flags["draft_source"] is None else flags["lookup"], **given, **more)


def in_flags(text: str) -> str:
    """Return what is said of a difference with flags in the place of arguments of `Model`."""
    for argument, flag in _FLAGS.items():
        text = text.replace(argument, flag)
    return text


@contextmanager
def rounding_said(*, refuses: bool = False) -> Iterator[None]:
    """Say once, also with -q, that texts may differ from those without a draft; or refuse them, by an LzsError."""
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
    """Say that a draft is too large for its target to be of use, where it is."""
    from lzsampler.decoding.draft import too_large

    large = too_large(target, draft.header)
    if large is not None:
        console.note(large)


def settings_of(model: "Model") -> dict[str, Any]:
    """Return the arguments of `Model` with which the draft of a target is opened, but for the threads."""
    return {name: getattr(model, name) for name in ("n_ctx", "n_batch", "n_gpu_layers", "flash_attn")}


def open_draft_model(flags: Mapping[str, Any], settings: Mapping[str, Any]) -> "Model":
    """Return the draft model of -md, opened with ``settings``, arguments of `Model`, as its target is."""
    from lzsampler.llama.model import Model

    return Model(flags["model_draft"], n_threads=flags["n_threads"], **settings)
