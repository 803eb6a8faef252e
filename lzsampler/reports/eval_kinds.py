"""`kind_in_words`: describes a kind of settings in an evaluation's report in one sentence."""

from typing import TYPE_CHECKING

from ..decoding.parts import PARTS
from ..params import PENALTIES, Params

if TYPE_CHECKING:
    from ..evaluation.grid import Setting

_FORMULAS = {
    "rate": "by the difference of the compression rate",
    "distance": "by how much nearer the match gets",
    "codelength": "by the bits of code that the token saves",
}
_PENALTIES = {
    "repetition": "the repetition penalty (arXiv 1909.05858): the logit of a token in the recent text is divided by "
    "the strength, or multiplied if it is negative",
    "frequency": "the frequency penalty: the strength is subtracted from a logit for each occurrence of the token",
    "presence": "the presence penalty: the strength is subtracted once from the logit of each token that occurred",
    "dry": "DRY: a token that would extend a repetition loses the strength times a power of its length",
}


def kind_in_words(settings: "list[Setting]") -> str:
    """Describe what the settings of a kind do, from their parameters, because users may choose any name for a kind."""
    params = [setting.params for setting in settings]
    said = [
        _lz(params) if penalty.name == "lz" else _PENALTIES.get(penalty.name, f"the penalty {penalty.name}")
        for penalty in PENALTIES
        if any(map(penalty.is_on, params))
    ]
    lists = {setting.dry_breakers for setting in settings if setting.dry_breakers is not None}
    said += [f"dry_breakers: {', '.join(map(repr, strings)) or 'none'}" for strings in sorted(lists)]
    scopes = {", ".join(scope) for setting in settings if (scope := setting.loops.penalty_scope or PARTS) != PARTS}
    said += [f"only in {' or '.join(sorted(scopes))}"] if scopes else []
    actions = sorted({setting.loops.action for setting in settings if setting.loops.action})
    said += [f"action on a loop: {', '.join(actions)}"] if actions else []
    told = "; ".join(said) or "no penalty"
    if any(each.min_p for each in params):
        told += f"; min-p {', '.join(f'{p:g}' for p in sorted({each.min_p for each in params}))}"
    return told[0].upper() + told[1:] + "."


def _lz(params: list[Params]) -> str:
    rules = {each.lz_rule: [other for other in params if other.lz_rule == each.lz_rule] for each in params}
    return "; or ".join(_RULES[rule](of) for rule, of in rules.items())


def _papers(params: list[Params]) -> str:
    how = " or ".join(_FORMULAS[name] for name in _FORMULAS if any(each.lz_formula == name for each in params))
    return (
        "the LZ penalty of the paper (arXiv 2504.20131): every token of the window loses the strength times what a "
        f"compressor would save with it, {how}, {_values(params, 'lz_window')} tokens back"
    )


def _default(params: list[Params]) -> str:
    phrases = [each for each in params if each.lz_penalty]
    runs = [each for each in params if each.lz_run_penalty]
    least, longest = _values(phrases, "lz_min_match"), _values(runs, "lz_run_allowance")
    costs = [f"a repetition of at least {least} tokens"] if phrases else []
    costs += [f"each further token once the text has copied itself for {longest}"] if runs else []
    return f"the LZ penalty, {_values(params, 'lz_window')} tokens back, penalizes {' and '.join(costs)}"


def _values(params: list[Params], field: str) -> str:
    return " or ".join(f"{value:,}" for value in sorted({getattr(each, field) for each in params}))


_RULES = {"default": _default, "paper": _papers}
