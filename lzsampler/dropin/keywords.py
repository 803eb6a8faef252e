"""The keywords of an attached model's calls: lzsampler's keywords, and the `Settings` that they make."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from .._check import unknown_keyword
from ..constraint.grammar import Grammar
from ..errors import ArgumentError, ArgumentTypeError
from ..llama.binding import llama_cpp
from ..llama.vocabulary import dry_breaker_ids, exempt_ids, lz_separators
from ..params import PENALTY_FIELDS, PRESETS, SEPARATORS, Params, changed, uses_separators
from .response import refuse_other_vocabulary
from .settings import FLAGS, OURS, Settings

TOKENS_OF: dict[str, Callable[[Any, Any], tuple[int, ...]]] = {  # fields that may hold strings as well as ids
    "exempt": exempt_ids,
    "dry_breakers": dry_breaker_ids,
}


@cache
def ours_beside(method: str) -> tuple[str, ...]:
    """Return lzsampler's keywords for a method of `Llama`: all except the names that the method already has."""
    theirs = inspect.signature(getattr(llama_cpp.Llama, method)).parameters
    return tuple(name for name in OURS if name not in theirs)


def refuse_unknown(name: str, method: Callable[..., Any], keywords: Iterable[str]) -> None:
    """Raise TypeError for a keyword that a method of a model does not take, and suggest the keyword that is meant."""
    theirs = _keywords_of(getattr(method, "__func__", method))
    for given in keywords if theirs else ():
        if given not in theirs:
            raise unknown_keyword(f"Llama.{name}", given, (*ours_beside(name), *theirs))


@cache
def _keywords_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's arguments; empty if it takes any keyword, as a subclass's method may."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters
    if any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return ()
    return tuple(parameters)


def taken(keywords: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Remove some names from a call's keywords, and return them with their values."""
    return {name: keywords.pop(name) for name in names if name in keywords}


def taken_grammar(keywords: dict[str, Any]) -> dict[str, Any]:
    """Remove a `Grammar` from a call's keywords, and return it as a keyword; a `LlamaGrammar` stays."""
    grammar = keywords.get("grammar")
    if isinstance(grammar, str | bytes):
        how = "Grammar.regex(...) of lzsampler, or LlamaGrammar.from_string(...)"
        raise ArgumentTypeError(f"grammar must be a grammar and not a text, got {grammar!r:.50}: give {how}")
    return taken(keywords, ["grammar"]) if isinstance(grammar, Grammar) else {}


def with_token_ids(llm: Any, fields: Mapping[str, Any], params: Params | None) -> dict[str, Any]:
    """Return ``fields`` of `Params`, with token ids in place of strings, to replace fields of ``params``.

    If ``fields`` switch DRY on and no sequence breakers are set, llama.cpp's breakers are added. If ``fields`` switch
    the LZ penalty on, the separators of the vocabulary are added. Without ``params``, the separators are added unless
    ``fields`` switch the LZ penalty off.
    """
    made = dict(fields)
    for name, tokens_of in TOKENS_OF.items():
        given = made.get(name, ())
        if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
            raise ArgumentTypeError(f"{name} must be a sequence of token ids and strings, got {given!r}")
        if name in made:
            tokens = list(given)
            strings = [token for token in tokens if isinstance(token, str)]
            if "" in strings:
                raise ArgumentError(f"{name} must be token ids and non-empty strings, got ''")
            ids = tokens_of(llm, strings) if strings else ()
            made[name] = (*(token for token in tokens if not isinstance(token, str)), *ids)
    if made.get("dry_multiplier") and "dry_breakers" not in made and not (params and params.dry_breakers):
        made["dry_breakers"] = dry_breaker_ids(llm)
    known = {name: value for name, value in made.items() if name in PENALTY_FIELDS}
    after = changed(Params(**PRESETS["default"]) if params is None else params, known)
    if (
        uses_separators(after)
        and (params is None or not uses_separators(params))
        and made.keys().isdisjoint(SEPARATORS)
    ):
        made.update(lz_separators(llm))
    return made


def merged(llm: Any, before: Settings, ours: Mapping[str, Any]) -> Settings:
    """Return the settings of one call: ``before``, with the values of the keywords ``ours``."""
    flags = {name: ours[name] for name in FLAGS if name in ours}
    refuse_other_vocabulary(llm, flags.get("grammar"))
    params = ours.get("params", before.params)
    fields = {name: ours[name] for name in PENALTY_FIELDS if name in ours}
    if isinstance(params, Params):
        params = changed(params, with_token_ids(llm, fields, params))
    return dataclasses.replace(before, params=params, **flags)
