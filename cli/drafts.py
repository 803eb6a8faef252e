"""What the commands share that draft tokens: their options checked, and `Draft` out of them."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from .console import console
from .help import flag_of

if TYPE_CHECKING:
    from lzsampler.decoding.speculative import Draft
    from lzsampler.llama.gguf import Header
    from lzsampler.llama.model import Model

_OF_A_DRAFT = ("n_max", "n_min", "p_min", "spec_mode", "spec_show", "lookup")


def drafts(flags: Mapping[str, Any]) -> bool:
    """Return whether the flags of `draft_options` ask for a draft."""
    return flags["model_draft"] is not None or flags["draft_source"] is not None


def check_draft(flags: Mapping[str, Any]) -> None:
    """Raise a usage error for flags of `draft_options` and `speculation_options` that have no effect."""
    if not drafts(flags):
        _refuse_given(_OF_A_DRAFT, "without a draft: add -md FILE or --draft lookup")
        return
    if flags["draft_source"] is None:
        _refuse_given(("lookup",), "without --draft lookup: add it")
    if flags["model_draft"] is None:
        _refuse_given(("p_min",), "without a draft model: add -md FILE, or leave it out")


def _refuse_given(names: tuple[str, ...], why: str) -> None:
    context = click.get_current_context()
    for param in context.command.params:
        given = context.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
        if param.name in names and given:
            raise click.UsageError(f"{flag_of(param)} has no effect {why}")


def open_draft(stack: ExitStack, model: "Model", flags: Mapping[str, Any], **more: Any) -> "Draft | None":
    """Return the draft that the flags describe, with the context of the target; None where they ask for none.

    ``stack`` closes its model. ``more``: arguments of `Draft` beside those of `draft_options` and ``mode``.
    """
    if not drafts(flags):
        return None
    return open_draft_for(stack, model.header, flags, settings_of(model), mode=flags["spec_mode"], **more)


def open_draft_for(
    stack: ExitStack, target: "Header", flags: Mapping[str, Any], settings: Mapping[str, Any], **more: Any
) -> "Draft":
    """Return the draft that the flags describe, for a target that may not be open yet.

    ``settings``: the arguments of `Model` with which both are opened, but for the threads. ``stack`` and ``more``: as
    in `open_draft`.
    """
    from lzsampler.decoding.speculative import Draft

    opened = None
    if flags["model_draft"] is not None:
        opened = stack.enter_context(open_draft_model(target, flags, settings))
    if not settings["flash_attn"]:
        console.note("without -fa the text may differ from that without a draft, by llama.cpp's rounding")
    given = {name: flags[name] for name in ("n_max", "n_min", "p_min")}
    return Draft(opened, lookup=0 if flags["draft_source"] is None else flags["lookup"], **given, **more)


def settings_of(model: "Model") -> dict[str, Any]:
    """Return the arguments of `Model` with which the draft of a target is opened, but for the threads."""
    return {name: getattr(model, name) for name in ("n_ctx", "n_batch", "n_gpu_layers", "flash_attn")}


def open_draft_model(target: "Header", flags: Mapping[str, Any], settings: Mapping[str, Any]) -> "Model":
    """Return the draft model of -md, opened with ``settings``, arguments of `Model`, as its ``target`` is."""
    from lzsampler.decoding.speculative import too_large
    from lzsampler.llama.model import Model

    opened = Model(flags["model_draft"], n_threads=flags["n_threads"], **settings)
    large = too_large(target, opened.header)
    if large is not None:
        console.note(large)
    return opened
