"""`params_for`: the settings of a grid, which knows no vocabulary, for a model that has one."""

from collections.abc import Sequence
from dataclasses import replace

from ..llama import dry_breaker_ids
from ..llama.model import Model
from ..params import Params
from ..sampler import refuse_tokens_outside


def params_for(model: Model, name: str, params: Params, dry_breakers: Sequence[str] | None) -> Params:
    """Return ``params`` with DRY's breakers as tokens of a model; None stands for those of llama.cpp.

    ``name``: what an error calls the setting. ValueError for tokens and strings that the model does not have.
    """
    try:
        refuse_tokens_outside(params, model.n_vocab)
        if not params.dry_multiplier:
            return params
        return replace(params, dry_breakers=dry_breaker_ids(model.llm, dry_breakers))
    except ValueError as error:
        raise ValueError(f"the setting {name!r} does not fit {model.path.name}: {error}") from error
