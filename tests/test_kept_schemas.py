"""The parts of the schemas that were translated last are kept: what is refused without them is refused with them."""

from typing import Any

import numpy as np
import pytest

from lzsampler import Grammar
from schemas import TOKENS


def test_a_schema_of_parts_that_occur_again_and_again_is_refused() -> None:
    """Written out, it would be endless; Python has each part once."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        schema = {"allOf": [schema, schema]}
    with pytest.raises(ValueError, match="at most 1,000,000 values"):
        Grammar.json_schema(schema, TOKENS)


def test_what_is_refused_does_not_depend_on_what_was_translated_before() -> None:
    three = np.float64(3.0)
    assert Grammar.json_schema({"type": "number", "minimum": three}, TOKENS).match("3") == "yes"
    with pytest.raises(ValueError, match="is not a value of JSON"):
        Grammar.json_schema({"type": "number", "minimum": three.tobytes()}, TOKENS)
