"""What the commands share that draft tokens: their options checked, and `Draft` out of them."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from .console import console
from .help import flag_of

if TYPE_CHECKING:
    from lzsampler.decoding.speculative import Draft
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
    opened = None if flags["model_draft"] is None else open_draft_model(model, flags)
    draft = draft_of(opened, flags, model.flash_attn, mode=flags["spec_mode"], **more)
    if opened is not None:
        stack.callback(opened.close)
    return draft


def draft_of(opened: "Model | None", flags: Mapping[str, Any], flash_attn: bool, **more: Any) -> "Draft":
    """Return the draft that the flags of `draft_options` describe, with its model; closes that where it raises."""
    from lzsampler.decoding.speculative import Draft

    if not flash_attn:
        console.note("without -fa the text may differ from that without a draft, by llama.cpp's rounding")
    given = {name: flags[name] for name in ("n_max", "n_min", "p_min")}
    lookup = 0 if flags["draft_source"] is None else flags["lookup"]
    try:
        return Draft(opened, lookup=lookup, **given, **more)
    except ValueError:
        if opened is not None:
            opened.close()
        raise


def open_draft_model(model: "Model", flags: Mapping[str, Any]) -> "Model":
    """Return the draft model of -md, opened as its target is."""
    from lzsampler.decoding.speculative import too_large
    from lzsampler.llama.model import Model

    opened = Model(
        flags["model_draft"],
        n_ctx=model.n_ctx,
        n_batch=model.n_batch,
        n_threads=flags["n_threads"],
        n_gpu_layers=model.n_gpu_layers,
        flash_attn=model.flash_attn,
    )
    large = too_large(model.header, opened.header)
    if large is not None:
        console.note(large)
    return opened
