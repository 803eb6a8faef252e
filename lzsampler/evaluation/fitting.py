"""`params_for`: the settings of a grid, which knows no vocabulary, for a model that has one."""

from collections.abc import Sequence

from ..errors import ArgumentError
from ..llama.model import Model
from ..llama.vocabulary import with_token_classes
from ..params import Params
from ..sampler import refuse_tokens_outside


def params_for(model: Model, name: str, params: Params, dry_breakers: Sequence[str] | None) -> Params:
    """Return ``params`` with the separators of a model, and with ``dry_breakers`` as tokens of it.

    ``name``: what an error calls the setting. ValueError for tokens and strings that the model does not have.
    """
    try:
        refuse_tokens_outside(params, model.n_vocab)
        return with_token_classes(model.llm, params, dry_breakers)
    except ValueError as error:
        raise ArgumentError(f"the setting {name!r} does not fit {model.path.name}: {error}") from error
