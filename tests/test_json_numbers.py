"""Numbers of JSON Schema as grammars: bounds, digits, and what readers make of them."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lzsampler.constraint.ranges import integers, numbers
from schemas import grammar_of

_BOUNDS = st.none() | st.tuples(st.decimals(-2000, 2000, places=2), st.booleans())


@settings(deadline=None, max_examples=300)
@given(_BOUNDS, _BOUNDS, st.sampled_from([1, 1, 10, 100]), st.lists(st.decimals(-3000, 3000, places=3), max_size=20))
def test_numbers_between_bounds(low: Any, high: Any, step: int, others: list[Decimal]) -> None:
    def within(value: Decimal) -> bool:
        above = low is None or value > low[0] or (value == low[0] and not low[1])
        return above and (high is None or value < high[0] or (value == high[0] and not high[1]))

    if low is None and high is None:
        return
    near = [
        bound[0] + change
        for bound in (low, high)
        if bound
        for change in (-1, 0, 1, Decimal("0.001"), Decimal("-0.001"))
    ]
    whole, any_number = integers(low, high, step), numbers(low, high)
    for value in (*others, *near):
        integer = value.to_integral_value()
        found = whole is not None and re.fullmatch(whole, str(int(integer))) is not None
        assert found == (within(integer) and integer % step == 0), (integer, whole)
        text = format(value, "f")
        for form in {text, text + "0", text.rstrip("0").rstrip(".")}:
            if Decimal(form) or not form.startswith("-"):
                found = any_number is not None and re.fullmatch(any_number, form) is not None
                assert found == within(value), (form, any_number)


def test_numbers_have_bounded_digits() -> None:
    """So that no model writes digits for ever, and every reader reads the same number."""
    number, whole = grammar_of({"type": "number"}), grammar_of({"type": "integer"})
    assert [whole.match(text) for text in ("9" * 18, "9" * 19, "-0", "01", "1.0", "1e5")] == ["yes"] + ["no"] * 5
    texts = ("0.1e-07", "1" * 18 + "." + "1" * 17 + "E+99", "1." + "1" * 18, "1e100", "-0.5", ".5", "1.")
    assert [number.match(text) for text in texts] == ["yes", "yes", "no", "no", "yes", "no", "beginning"]
    strict = grammar_of({"type": "number", "exclusiveMinimum": 100})
    assert strict.match("100.000001") == "yes"
    assert strict.match("100.00000000000000001") == "no"  # a double would be 100
    far = grammar_of({"type": "integer", "minimum": 10**20, "maximum": 10**20 + 5})
    assert [far.match(str(10**20 + i)) for i in (-1, 0, 5, 6)] == ["no", "yes", "yes", "no"]


def test_bounds_of_many_digits_are_exact_and_no_reader_rounds_to_an_excluded_one() -> None:
    """A schema's text has numbers of any length, which doubles would round."""
    long = grammar_of('{"type": "number", "minimum": 0.12345678901234567891, "maximum": 0.12345678901234567893}')
    texts = [f"0.123456789012345678{i}" for i in (90, 91, 92, 93, 94)]
    assert [long.match(text) for text in texts] == ["no", "yes", "yes", "yes", "no"]
    sum_of_doubles = grammar_of({"type": "number", "minimum": 0.1 + 0.2, "maximum": 0.1 + 0.2})
    assert [sum_of_doubles.match(text) for text in ("0.30000000000000004", "0.3", "0.31")] == ["yes", "beginning", "no"]
    for bound in ("0.12345678901234567891", "9007199254740995.5", "100000000000000000000", "0.1", "-7.25", "0"):
        for keyword, beyond in (("exclusiveMinimum", 1), ("exclusiveMaximum", -1)):
            grammar = grammar_of(f'{{"type": "number", "{keyword}": {bound}}}')
            places = len(bound.partition(".")[2])
            near = [Decimal(bound) + beyond * Decimal(k).scaleb(-places) for k in (0, 1, 2, 5, 500, 10_000, 100_000)]
            for value in near:
                found = grammar.match(format(value, "f")) == "yes"
                assert found == (beyond * float(value) > beyond * float(bound)), (keyword, bound, value)
    tenths = grammar_of('{"enum": [0.1, 0.10000000000000000001], "exclusiveMinimum": 0.1}')
    assert [tenths.match(text) for text in ("0.1", "0.10000000000000000001")] == ["beginning", "yes"]
    assert json.dumps(dict(tenths.source)) == '{"json_schema": {"enum": [0.1, 0.1], "exclusiveMinimum": 0.1}}'
    assert grammar_of('{"const": 1.00000000000000000001, "type": "number"}').match("1.00000000000000000001") == "yes"
    with pytest.raises(ValueError, match="at #/const: nothing can meet the schema"):
        grammar_of('{"const": 1.00000000000000000001, "type": "integer"}')
