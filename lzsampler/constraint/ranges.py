"""Regular expressions for the decimal numbers between two bounds, digit by digit."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import inf, nextafter

INTEGER_DIGITS = 18  # most digits of an integer without bounds: all integers of 18 digits fit into 64 bits
FRACTION_DIGITS = 17
EXACT_DIGITS = 15  # most digits of a number with bounds: different numbers of 15 digits are different doubles
_WHOLE = Context(prec=2000, Emax=10**6, Emin=-(10**6))

INTEGER = rf"0|-?[1-9]\d{{0,{INTEGER_DIGITS - 1}}}"
NUMBER = rf"-?(0|[1-9]\d{{0,{INTEGER_DIGITS - 1}}})(\.\d{{1,{FRACTION_DIGITS}}})?([eE][+-]?\d{{1,2}})?"

Bound = tuple[Decimal, bool]  # (value, whether the value itself is excluded)


def integers(low: Bound | None, high: Bound | None, step: int = 1) -> str | None:
    """Return the pattern for the multiples of ``step``, a power of ten, between two bounds; None if no number fits.

    If a bound is missing, numbers have up to `INTEGER_DIGITS` digits, or up to the number of digits of the other bound.
    """
    scale = len(str(step)) - 1
    first, last = _scaled(low, ROUND_CEILING, -scale), _scaled(high, ROUND_FLOOR, -scale)
    digits = max(INTEGER_DIGITS - scale, *(len(str(abs(bound))) for bound in (first, last, 0) if bound is not None))
    first = 1 - 10**digits if first is None else first
    last = 10**digits - 1 if last is None else last
    zeros = "0" * scale
    parts = []
    if first < 0 and first <= last:
        parts.append(f"-(?:{_between(max(1, -last), -first)}){zeros}")
    if first <= 0 <= last:
        parts.append("0")
    if last > 0 and first <= last:
        parts.append(f"(?:{_between(max(1, first), last)}){zeros}")
    return "|".join(parts) or None


def numbers(low: Bound | None, high: Bound | None) -> str | None:
    """Return the pattern for the decimal numbers between two bounds, without exponents; None if no number fits.

    The numbers have at most `EXACT_DIGITS` digits in all, so that different numbers are different doubles. If the
    bounds have more digits after the point, the numbers may have more, too. No number equals an excluded bound
    after both are rounded to doubles.
    """
    bounds = [abs(bound[0]) for bound in (low, high) if bound is not None]
    widest = max(len(str(int(bound))) for bound in bounds)
    digits = widest if len(bounds) == 2 else max(widest, 9)
    behind = max(-int(bound.normalize(_WHOLE).as_tuple().exponent) for bound in bounds)
    places = max(0, EXACT_DIGITS - digits, behind)
    low, high = _apart(low, inf), _apart(high, -inf)
    first, last = _scaled(low, ROUND_CEILING, places), _scaled(high, ROUND_FLOOR, places)
    first = 1 - 10 ** (digits + places) if first is None else first
    last = 10 ** (digits + places) - 1 if last is None else last
    parts = []
    if first < 0 and first <= last:
        parts.append(f"-(?:{_decimals(max(1, -last), -first, places)})")
    if last >= 0 and first <= last:
        parts.append(_decimals(max(0, first), last, places))
    return "|".join(parts) or None


def _apart(bound: Bound | None, towards: float) -> Bound | None:
    """Return a bound. Move an excluded bound so that it excludes every number that rounds to the same double."""
    if bound is None or not bound[1]:
        return bound
    read = float(bound[0])
    return _WHOLE.divide(_WHOLE.add(Decimal(read), Decimal(nextafter(read, towards))), Decimal(2)), True


def _scaled(bound: Bound | None, rounding: str, places: int) -> int | None:
    """Return the integer n nearest to the bound for which n * 10**-places is within the bound."""
    if bound is None:
        return None
    value, excluded = bound
    exact = value.scaleb(places, _WHOLE)
    whole = int(exact.to_integral_value(rounding, _WHOLE))
    step = 1 if rounding == ROUND_CEILING else -1
    return whole + step if excluded and whole == exact else whole


def _range(low: int, high: int) -> str:
    return str(low) if low == high else r"\d" if (low, high) == (0, 9) else f"[{low}-{high}]"


def _free(low: int, high: int) -> str:
    """Return the pattern for ``low`` to ``high`` arbitrary digits."""
    return "" if high == 0 else rf"\d{{{low},{high}}}" if low < high else r"\d" if low == 1 else rf"\d{{{low}}}"


def _between(low: int, high: int) -> str:
    """Return the pattern for the integers low to high, 1 <= low <= high."""
    parts = []
    short, long = len(str(low)), len(str(high))
    if short == long:
        return _same_length(str(low), str(high))
    parts.append(_same_length(str(low), "9" * short))
    if short + 1 < long:
        parts.append("[1-9]" + _free(short, long - 2))
    parts.append(_same_length("1" + "0" * (long - 1), str(high)))
    return "|".join(parts)


def _same_length(low: str, high: str) -> str:
    """Return the pattern for the digit strings between two strings of the same length."""
    n = len(low)
    same = next((i for i in range(n) if low[i] != high[i]), n)
    if same == n:
        return low
    a, b = int(low[same]), int(high[same])
    parts = [f"{a}{_beyond(low[same + 1 :], up=True)}", f"{b}{_beyond(high[same + 1 :], up=False)}"]
    if b - a > 1:
        parts.append(_range(a + 1, b - 1) + _free(n - same - 1, n - same - 1))
    if not low[same + 1 :].strip("0") and not high[same + 1 :].strip("9"):
        parts = [_range(a, b) + _free(n - same - 1, n - same - 1)]
    return f"{low[:same]}(?:{'|'.join(parts)})"


def _beyond(bound: str, up: bool) -> str:
    """Return the pattern for digit strings with the length of ``bound`` that are >= ``bound`` if ``up``, else <=
    ``bound``.
    """
    rest = ""
    for i in range(len(bound) - 1, -1, -1):
        digit, behind = int(bound[i]), len(bound) - i - 1
        if not bound[i:].strip("0" if up else "9"):
            rest = _free(behind + 1, behind + 1)
        elif digit == (9 if up else 0):
            rest = f"{digit}{rest}"
        else:
            others = _range(digit + 1, 9) if up else _range(0, digit - 1)
            rest = f"(?:{digit}{rest}|{others}{_free(behind, behind)})"
    return rest


def _decimals(low: int, high: int, places: int) -> str:
    """Return the pattern for all x with 0 <= low <= x * 10**places <= high and at most ``places`` decimals."""
    (first, low_rest), (last, high_rest) = divmod(low, 10**places), divmod(high, 10**places)
    if places == 0:
        return _whole(first, last)
    low_digits, high_digits = f"{low_rest:0{places}}", f"{high_rest:0{places}}"
    if first == last:
        return f"{first}{_fraction(low_digits, high_digits)}"
    parts = [f"{first}{_fraction(low_digits, None)}", f"{last}{_fraction(None, high_digits)}"]
    if last - first > 1:
        parts.append(rf"(?:{_whole(first + 1, last - 1)})(?:\.\d{{1,{places}}})?")
    return "|".join(parts)


def _whole(low: int, high: int) -> str:
    return _between(low, high) if low else "0" if high == 0 else f"0|{_between(1, high)}"


def _fraction(low: str | None, high: str | None) -> str:
    """Return the pattern for a point and decimals that, padded with zeros, are between two strings of digits.

    If all decimals may be zero, the point and the decimals are optional.
    """
    places = len(low or high or "")
    tails = _tails(low, high, 0, places)
    return rf"(?:\.(?:{tails}))?" if low is None or not low.strip("0") else rf"\.(?:{tails})"


def _tails(low: str | None, high: str | None, at: int, places: int) -> str:
    """Return the pattern for one or more decimals from place ``at`` on, up to ``places`` decimals in all."""
    low = None if low is None or not low[at:].strip("0") else low
    high = None if high is None or not high[at:].strip("9") else high
    if low is None and high is None:
        return rf"\d{{1,{places - at}}}"
    first, last = int(low[at]) if low else 0, int(high[at]) if high else 9
    if first == last:
        return f"{first}{_behind(low, high, at + 1, places)}"
    parts = [f"{first}{_behind(low, None, at + 1, places)}"] if low else []
    if high:
        parts.append(f"{last}{_behind(None, high, at + 1, places)}")
    first, last = first + bool(low), last - bool(high)
    if first <= last:
        parts.append(_range(first, last) + _free(0, places - at - 1))
    return "|".join(parts)


def _behind(low: str | None, high: str | None, at: int, places: int) -> str:
    if at == places:
        return ""
    must_go_on = low is not None and low[at:].strip("0")
    return f"(?:{_tails(low, high, at, places)}){'' if must_go_on else '?'}"
