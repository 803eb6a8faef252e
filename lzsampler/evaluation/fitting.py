"""`params_for`: adapts the parameters of a grid to the vocabulary of a model."""

from collections.abc import Sequence

from ..errors import ArgumentError
from ..llama.model import Model
from ..llama.vocabulary import with_token_classes
from ..params import Params
from ..sampler import refuse_tokens_outside


def params_for(model: Model, name: str, params: Params, dry_breakers: Sequence[str] | None) -> Params:
    """Return ``params`` with the separators of a model, and with ``dry_breakers`` as tokens of the model.

    ``name``: the name of the setting, for errors. ValueError for tokens and strings that the model does not have.
    """
    try:
        refuse_tokens_outside(params, model.n_vocab)
        return with_token_classes(model.llm, params, dry_breakers)
    except ValueError as error:
        raise ArgumentError(f"the setting {name!r} does not fit {model.path.name}: {error}") from error
