"""The two rules of the LZ penalty in `Params`: presets, and fields that belong to one of them."""

import re
from typing import Any

import numpy as np
import pytest

from lzsampler import Params, Sampler, separators_of
from lzsampler.integrations.request_settings import request_params
from lzsampler.integrations.tokenizer import fitted
from lzsampler.params import OF_RULE, PRESETS, SEPARATORS, changed, uses_separators


def test_the_presets() -> None:
    assert PRESETS["default"] == {"lz_penalty": 0.3, "lz_run_penalty": 0.5}
    assert PRESETS["guard"] == {"lz_penalty": 0.0, "lz_run_penalty": 0.5, "lz_run_allowance": 64}
    assert Params(**PRESETS["paper"]) == Params(lz_rule="paper", lz_penalty=0.15)  # the rule's defaults are the paper's
    assert PRESETS.keys() == {"default", "guard", "paper"}


def test_separators_are_used_by_the_default_rule_alone() -> None:
    assert uses_separators(Params(**PRESETS["default"]))
    for off in (Params(), Params(**PRESETS["guard"]), Params(**PRESETS["paper"])):  # runs have no separators
        assert not uses_separators(off)


BITS = b"\x01\0\0\0"
OF_THE_OTHERS: list[tuple[Any, dict[str, Any]]] = [
    ("paper", {"lz_min_match": 3}),
    ("paper", {"lz_run_penalty": 0.5}),
    ("paper", {"lz_run_allowance": 64}),
    ("paper", {"lz_separators": BITS}),
    ("paper", {"lz_commas": BITS}),
    ("default", {"lz_formula": "distance"}),
    ("default", {"lz_buffer": 8}),
]


@pytest.mark.parametrize(("rule", "fields"), OF_THE_OTHERS, ids=str)
def test_each_rule_refuses_the_fields_of_the_other(rule: Any, fields: dict[str, Any]) -> None:
    (field,) = fields
    assert {name for _, given in OF_THE_OTHERS for name in given} == {*OF_RULE["default"], *OF_RULE["paper"]}
    owner: Any = "default" if rule == "paper" else "paper"
    message = f"{field} belongs to lz_rule={owner!r}, and the rule is {rule!r}: leave it out"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Params(lz_rule=rule, **fields)
    Params(lz_rule=owner, **fields)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lz_min_match": 0}, "lz_min_match must be from 1 to 2048, the lz_window, got 0"),
        ({"lz_min_match": 65, "lz_window": 64}, "lz_min_match must be from 1 to 64, the lz_window, got 65"),
        ({"lz_min_match": 65536, "lz_window": 131072}, "lz_min_match must be from 1 to 65535, got 65536"),
        ({"lz_window": 4}, "lz_min_match must be from 1 to 4, the lz_window, got 5"),
        ({"lz_run_penalty": -0.5}, "lz_run_penalty must be at least 0, got -0.5"),
        ({"lz_run_allowance": 131073}, "lz_run_allowance must be from 0 to 131072, got 131073"),
        ({"lz_separators": b"\x01"}, "lz_separators must be whole words of 4 bytes, got 1 byte"),
        ({"lz_commas": "ab"}, "lz_commas must be bytes or an array of uint32 words, got 'ab'"),
        (
            {"lz_commas": np.zeros(2, np.int64)},
            "lz_commas must be bytes or an array of uint32 words, got array([0, 0])",
        ),
        ({"lz_rule": "new"}, "lz_rule must be one of default, paper, got 'new'"),
    ],
)
def test_the_default_rule_refuses_what_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Params(**settings)
    Params(lz_min_match=64, lz_window=64)
    Params(lz_rule="paper", lz_window=2)  # it has no shortest match


@pytest.mark.parametrize("field", SEPARATORS)
@pytest.mark.parametrize("words", [1, 3])
def test_a_sampler_refuses_a_bit_set_of_another_size(field: str, words: int) -> None:
    fields: dict[str, Any] = {field: np.zeros(words, np.uint32)}
    with pytest.raises(ValueError, match=f"{field} .*{words}"):
        Sampler(33, Params(lz_penalty=0.3, **fields))
    assert Params(**{field: np.full(2, 5, np.uint32)}) == Params(**{field: b"\x05\0\0\0" * 2})  # type: ignore[arg-type]


def test_a_rule_that_is_changed_has_its_own_strength() -> None:
    default, paper = Params(**PRESETS["default"]), Params(**PRESETS["paper"])
    assert changed(default, {"lz_rule": "paper"}) == paper
    assert changed(paper, {"lz_rule": "default"}) == default
    assert changed(default, {"lz_rule": "paper", "lz_penalty": 0.2, "lz_window": 99}).lz_penalty == 0.2
    assert changed(Params(), {"lz_rule": "paper"}) == Params(lz_rule="paper")
    off = changed(paper, {"lz_rule": "default", "lz_penalty": 0})
    assert (off.lz_penalty, off.lz_run_penalty) == (0, 0)


@pytest.mark.parametrize("preset", ["default", "guard", {}])
def test_a_request_switches_the_penalty_off(preset: object) -> None:
    made = request_params({"lzsampler": preset, "lz_penalty": 0}, "a server")
    assert made is not None
    assert (made.lz_penalty, made.lz_run_penalty) == (0, 0)


@pytest.mark.parametrize("n_vocab", [64, 65, 200])
def test_separators_fit_rows_of_another_size(n_vocab: int) -> None:
    """A tokenizer may know more or fewer tokens than there are logits."""
    Sampler(n_vocab, fitted(Params(lz_penalty=0.3, **separators_of(["a"] * 100)), n_vocab))
