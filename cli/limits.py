"""The limits of --fail-over. If a result exceeds a limit, the command ends with status 1."""

import math
import operator
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import click

from .help import flag_of

RATES = ("loop_rate", "stuck_rate", "literal_rate", "bad_rate", "turn_loop_rate", "accuracy", "cost", "lost")
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.gt,  # loop_rate=1% is exceeded above 1 %
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_SIDES = {"=": "over", ">": "over", ">=": "not below", "<": "below", "<=": "not over"}
_LIMIT = re.compile(
    rf"\s*(?:(?P<group>.+?)\.)?(?P<rate>{'|'.join(RATES)})\s*(?P<sign><=|>=|=|<|>)\s*(?P<number>[-+.0-9eE]*)\s*(?P<percent>%?)\s*"
)


@dataclass(frozen=True)
class Limit:
    """A limit of --fail-over, as in "GROUP.loop_rate > 0.01".

    ``text``: the limit as it was given. ``group``: a group, or None for everything. ``number``: 0..1, or nats for cost.
    """

    text: str
    group: str | None
    rate: str
    sign: str
    number: float

    def is_exceeded(self, rate: float) -> bool:
        """Return whether a measured rate, 0..1 or in nats, exceeds the limit."""
        return _COMPARISONS[self.sign](rate, self.number)

    def said(self, rate: float, name: str) -> str:
        """Return a line that says that a measured rate exceeds the limit."""
        value = "infinite" if math.isinf(rate) else f"{rate:.4g}"
        return f"{name} {value} is {_SIDES[self.sign]} {self.number:g}"


def limits(rates: Sequence[str]) -> Callable[[click.Context, click.Parameter, Sequence[str]], tuple[Limit, ...]]:
    """Return the callback of an option whose values are limits for the given rates."""

    def parse(_: click.Context, param: click.Parameter, given: Sequence[str]) -> tuple[Limit, ...]:
        return tuple(_limit(text, rates, flag_of(param)) for text in given)

    return parse


def _limit(text: str, rates: Sequence[str], flag: str) -> Limit:
    match = _LIMIT.fullmatch(text)
    try:
        if match is None or match["rate"] not in rates:
            raise ValueError
        number = float(Decimal(match["number"]) / (100 if match["percent"] else 1))  # Decimal makes 0.7 % exactly 0.007
        if not 0 <= number <= (sys.float_info.max if match["rate"] == "cost" else 1):
            raise ValueError
    except (ValueError, ArithmeticError):
        nats = " (cost: in nats a token)" if "cost" in rates else ""
        share = next(rate for rate in rates if rate != "cost")
        raise click.UsageError(
            f'{flag} takes a limit from 0 to 1 or in percent{nats}, such as {share}=1% or "{rates[0]} > 0.01" '
            f"(the rates are {', '.join(rates)}), got {text!r}"
        ) from None
    return Limit(text, match["group"], match["rate"], match["sign"], number)
