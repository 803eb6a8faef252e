"""Turns the arguments of a request to a server into `Params`."""

import json
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from .._values import shown
from ..errors import ArgumentError
from ..params import DETECTIONS, PENALTY_FIELDS, PRESETS, SEPARATORS, Params, changed, sampling_fields, uses_separators

TokenSets = Mapping[str, bytes]  # field of `Params` -> bit set of tokens

NAME = "lzsampler"  # argument of a request that holds settings
PREFIX = "lz_"  # prefix of arguments of a request that are fields of `Params` themselves
_HOSTS_OWN = (*DETECTIONS, "logit_bias")  # fields that the server handles, or that a logits processor cannot apply
FIELDS = tuple(name for name in PENALTY_FIELDS if name not in _HOSTS_OWN)


def request_params(
    arguments: Mapping[str, Any] | None, host: str, usual: Callable[[], TokenSets] | None = None
) -> Params | None:
    """Return the settings in the arguments of a request; None if no argument is for lzsampler.

    ``arguments``: each name that begins with ``lz_`` is a field of `Params`. ``lzsampler`` is a dict of fields, a
    JSON text of a dict of fields (for servers that accept only numbers and strings), or the name of a preset of
    `lzsampler.params.PRESETS`. A request starts from ``PRESETS["default"]``, as in `lzsampler.attach`. The fields of
    ``lzsampler`` replace these values, and ``lz_`` arguments replace both. Other arguments are ignored. ``host``: the
    server's name, for messages. ``usual``: a function that returns the model's usual separators, as for
    `with_separators`.

    Values that `Params` refuses, unknown names, and settings that belong to the server (temperature, truncation, seed,
    logit_bias) raise a ValueError of one line that names the field.
    """
    arguments = arguments or {}
    flat = {name: value for name, value in arguments.items() if isinstance(name, str) and name.startswith(PREFIX)}
    if NAME not in arguments and not flat:
        return None
    given = arguments.get(NAME, {})
    preset = given if isinstance(given, str) and given in PRESETS else "default"
    fields = {**({} if given == preset else _fields(given)), **flat}
    for name in fields:
        if name in FIELDS:
            continue
        if name in PENALTY_FIELDS or name in Params.__dataclass_fields__:
            raise ArgumentError(f"lzsampler applies penalties only, and {host} does the rest: leave out {name}")
        close = get_close_matches(str(name), FIELDS, 1)
        raise ArgumentError(
            f"lzsampler has no setting {shown(name)}" + (f"; did you mean {close[0]!r}?" if close else "")
        )
    params = changed(Params(**PRESETS[preset]), fields)
    return params if usual is None else with_separators(params, fields, usual)


def _fields(value: object) -> dict[str, Any]:
    """Return the fields of `Params` that the argument ``lzsampler`` sets."""
    given = value
    if isinstance(value, str):
        try:
            given = json.loads(value)
        except (ValueError, RecursionError):
            given = None
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{NAME} must be a dict of settings, a JSON object, or one of {', '.join(PRESETS)}, got {shown(value)}"
        )
    return dict(given)


def with_separators(params: Params, arguments: Container[str], usual: Callable[[], TokenSets]) -> Params:
    """Return ``params`` with the model's separators, if separators have an effect and the caller gave none.

    ``arguments``: names of the given settings. ``usual``: returns the separators; it is called only if needed.
    """
    if not uses_separators(params) or any(field in arguments or getattr(params, field) for field in SEPARATORS):
        return params
    found: dict[str, Any] = {**usual()}
    return replace(params, **found)


def refuse_what_the_host_does(function: str, params: Params, host: str) -> None:
    """Raise a ValueError that names the settings of temperature, truncation, pick and detection, if any are set."""
    given = [f"{name}={getattr(params, name)!r}" for name in sampling_fields(params)]
    if given:
        raise ArgumentError(
            f"{function} applies penalties and logit_bias only and {host} does the rest: leave out {', '.join(given)}"
        )
    for field in DETECTIONS:
        if getattr(params, field) is not None:
            raise ArgumentError(f"{function} changes scores and cannot end a text: leave out {field}")
