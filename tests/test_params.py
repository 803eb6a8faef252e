"""`Params`: its defaults, and that every field refuses what is not a value of it, with that value in the message."""

import dataclasses
import json
import math
import re
from dataclasses import replace
from typing import Any, get_type_hints

import numpy as np
import pytest

from cli.fields import declared_options
from cli.sampling import SamplingOptions
from lzsampler import STOP_ON_LOOP, STOP_ON_STUCK, Params, RepetitionDetection, Sampler
from lzsampler._ffi import ffi
from lzsampler.explanation import TokenExplanation
from lzsampler.params import (
    DETECTIONS,
    PENALTIES,
    PENALTY_FIELDS,
    PRESETS,
    SAMPLING_FIELDS,
    SEPARATORS,
    Penalty,
    PenaltyParts,
    PenaltySettings,
    changed,
    from_json,
    penalties_from,
    reach,
    to_json,
)
from samplers import after

DEFAULTS = {
    "lz_penalty": 0.0,
    "lz_window": 2048,
    "lz_min_match": 5,
    "lz_run_penalty": 0.0,
    "lz_run_allowance": 32,
    "lz_separators": b"",
    "lz_commas": b"",
    "lz_rule": "default",
    "lz_formula": "rate",
    "lz_buffer": 32,
    "repetition_penalty": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "penalty_window": 0,
    "history": "generated",
    "exempt": (),
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": -1,
    "dry_breakers": (),
    "logit_bias": (),
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "seed": 0,
    "repetition_method": "multiplicative",
    "frequency_method": "subtractive",
    "presence_method": "subtractive",
    "sign_aware": True,
    "temperature_last": False,
    "ties": "cut",
    "repetition_detection": None,
    "stuck_detection": None,
    "structure": "scale",
}
REALS = [
    "lz_penalty",
    "lz_run_penalty",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "dry_multiplier",
    "dry_base",
    "temperature",
    "top_p",
    "min_p",
]
METHODS = {f"{name}_penalty": f"{name}_method" for name in ("repetition", "frequency", "presence")}
INTEGERS = [
    "lz_window",
    "lz_buffer",
    "lz_min_match",
    "lz_run_allowance",
    "penalty_window",
    "dry_allowed_length",
    "top_k",
    "seed",
]
TOKENS = ["exempt", "dry_breakers", "logit_bias", *SEPARATORS]
NAMES = [
    "lz_rule",
    "lz_formula",
    "repetition_method",
    "frequency_method",
    "presence_method",
    "history",
    "structure",
    "ties",
]
FLAGS = ["sign_aware", "temperature_last"]


def test_defaults_are_pinned() -> None:
    assert dataclasses.asdict(Params()) == DEFAULTS
    assert set(REALS + INTEGERS + NAMES + FLAGS + TOKENS) | {"dry_penalty_last_n", *DETECTIONS} == DEFAULTS.keys()


def test_it_is_frozen_and_a_value() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Params().seed = 1  # type: ignore[misc]
    assert Params(exempt=(2, 1)) == Params(exempt=(1, 2, 2))
    assert hash(Params(top_k=3)) == hash(Params(top_k=3))


@pytest.mark.parametrize(
    ("field", "value", "range_"),
    [
        ("lz_penalty", -0.5, "at least 0"),
        ("lz_penalty", 1e40, r"from 0 to 3.4e+38"),
        ("dry_multiplier", 1e40, "from 0 to 3.4e+38"),
        ("dry_base", 0.5, "at least 1"),
        ("dry_base", 1e40, "from 1 to 3.4e+38"),
        ("frequency_penalty", -1e40, "from -3.4e+38 to 3.4e+38"),
        ("presence_penalty", 10**400, "from -3.4e+38 to 3.4e+38"),
        ("temperature", 2e6, "from 0 to 1e+06"),
        ("top_p", 1.5, "from 0 to 1"),
    ],
)
def test_a_refusal_names_the_bound_that_the_value_breaks(field: str, value: float, range_: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(f'{field} must be {range_}, got {value!r:.60}')}"):
        Params(**{field: value})  # type: ignore[arg-type]


def refuses(field: str, value: Any, **others: Any) -> None:
    with pytest.raises(ValueError, match=field) as caught:
        Params(**{field: value}, **others)
    assert f"{value!r:.60}" in str(caught.value)


@pytest.mark.parametrize("field", REALS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), "1", None, True, [1.0], 1j])
def test_reals(field: str, value: Any) -> None:
    if value is not None or field not in METHODS:
        refuses(field, value)


@pytest.mark.parametrize("field", INTEGERS)
@pytest.mark.parametrize("value", [-1, 2**64, 3.0, math.nan, "1", None, True, [64]])
def test_integers(field: str, value: Any) -> None:
    if value is not None or field not in ("lz_buffer", "lz_window"):
        refuses(field, value)


@pytest.mark.parametrize(
    "fields",
    [
        {"lz_penalty": "1"},
        {"lz_window": 3.0},
        {"sign_aware": 1},
        {"exempt": 5},
        {"exempt": ["a"]},
        {"dry_breakers": [1.5]},
        {"lz_separators": [1, 2]},
        {"lz_commas": np.zeros(1)},
        {"logit_bias": "ab"},
        {"logit_bias": {"1": 5}},
        {"logit_bias": [1]},
        {"repetition_detection": "yes"},
    ],
)
def test_a_wrong_type_is_a_type_error(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Params(**fields)


# ---- None: the value that goes with another field ----


@pytest.mark.parametrize("penalty", METHODS)
@pytest.mark.parametrize("method", ["multiplicative", "subtractive"])
def test_a_method_alone_switches_nothing_on(penalty: str, method: Any) -> None:
    """`Params(repetition_method="subtractive")` subtracted 1 from the logit of every token seen."""
    for fields in ({}, {penalty: None}):
        params = Params(**{METHODS[penalty]: method, **fields})
        assert getattr(params, penalty) == (1 if method == "multiplicative" and penalty == "repetition_penalty" else 0)
        assert len(after(8, params, [1, 2, 3]).edits()[0]) == 0
        assert replace(params, temperature=0.5) == Params(**{METHODS[penalty]: method}, temperature=0.5)


def test_the_buffer_fits_the_window() -> None:
    """`Params(lz_window=16)` was refused for a buffer that nobody had given."""
    for window, buffer in ((2, 1), (16, 15), (32, 31), (33, 32), (512, 32)):
        assert Params(lz_rule="paper", lz_window=window).lz_buffer == buffer
    with pytest.raises(ValueError, match=r"^lz_buffer must be below lz_window \(16\), got 32$"):
        Params(lz_rule="paper", lz_window=16, lz_buffer=32)


def test_changed_fits_what_was_not_given() -> None:
    assert changed(Params(), {"lz_window": 16}) == Params(lz_window=16)
    assert changed(Params(lz_window=16), {"lz_window": 2048}) == Params()
    assert changed(paper(lz_buffer=4), {"lz_window": 64}) == paper(lz_window=64, lz_buffer=4)
    assert changed(paper(lz_window=16), {"lz_window": 512}) == paper()
    assert changed(Params(), {"lz_min_match": 7}) == Params(lz_min_match=7)
    assert changed(Params(), {"repetition_method": "subtractive"}) == Params(repetition_method="subtractive")
    kept = changed(Params(repetition_penalty=1.2), {"repetition_method": "subtractive"})
    assert kept == Params(repetition_penalty=1.2, repetition_method="subtractive")
    with pytest.raises(ValueError, match="lz_buffer must be below lz_window"):
        changed(paper(lz_buffer=20), {"lz_window": 16})


def paper(**fields: Any) -> Params:
    return Params(lz_rule="paper", **fields)


def test_changed_lets_go_of_what_the_other_rule_has() -> None:
    """Settings for one call must not fail because those of the model are of the other rule."""
    bits = b"\x01\0\0\0"
    default = Params(**PRESETS["default"], lz_min_match=7, lz_run_allowance=9, lz_separators=bits, lz_commas=bits)
    assert changed(default, {"lz_rule": "paper"}) == paper(lz_penalty=0.15)
    assert changed(default, {"lz_rule": "default"}) == default
    assert changed(default, PRESETS["paper"]) == Params(**PRESETS["paper"])
    assert changed(replace(default, lz_window=300), {"lz_rule": "paper"}) == paper(lz_penalty=0.15, lz_window=300)
    own = paper(lz_penalty=0.2, lz_formula="distance", lz_buffer=8)
    changes: dict[str, Any] = {"lz_rule": "default", "lz_min_match": 3}
    assert changed(own, changes) == Params(**PRESETS["default"], lz_min_match=3)
    assert changed(own, {"lz_penalty": 0.1}) == replace(own, lz_penalty=0.1)
    for params, changes in ((default, {"lz_rule": "paper", "lz_min_match": 3}), (own, {"lz_run_penalty": 0.5})):
        with pytest.raises(ValueError, match="belongs to lz_rule='default', and the rule is 'paper': leave it out"):
            changed(params, changes)


def test_a_penalty_of_0_switches_the_runs_off_too() -> None:
    default = Params(**PRESETS["default"])
    assert changed(default, {"lz_penalty": 0}) == Params()
    assert changed(default, {"lz_penalty": 0.0, "lz_run_penalty": 0.7}) == Params(lz_run_penalty=0.7)
    assert changed(default, PRESETS["guard"]) == Params(**PRESETS["guard"])
    assert changed(Params(**PRESETS["guard"]), {"lz_run_allowance": 32}).lz_run_penalty == 0.5


# ---- the table of penalties ----

ON: dict[str, dict[str, Any]] = {
    "lz": {"lz_penalty": 0.15, "lz_window": 300},
    "repetition": {"repetition_penalty": 1.1, "penalty_window": 40},
    "frequency": {"frequency_penalty": 0.1, "penalty_window": 50},
    "presence": {"presence_penalty": -0.1},
    "dry": {"dry_multiplier": 0.8, "dry_penalty_last_n": 70},
}


def test_the_table_has_every_field_of_a_penalty() -> None:
    shared = {"penalty_window", "history", "structure", "exempt", "sign_aware", "dry_breakers", "logit_bias"}
    shared |= {*SEPARATORS, *DETECTIONS}
    owned = [field for penalty in PENALTIES for field in penalty.fields]
    assert len(owned) == len(set(owned))
    assert {*owned, *shared, *SAMPLING_FIELDS} == DEFAULTS.keys()
    assert {*owned, *shared} == set(PENALTY_FIELDS)
    types, keywords = get_type_hints(Params), get_type_hints(PenaltySettings)
    assert keywords == {name: types[name] for name in PENALTY_FIELDS if name not in ("exempt", "dry_breakers")}


def test_options_of_sampling_are_fields_that_begin_as_params_do() -> None:
    """A field that a preset sets has no default of its own, or --preset would not reach it."""
    starts = {"penalty_window": -1, "temperature": 0.0, "seed": -1}  # those of the command line
    for name, _, declared in declared_options(SamplingOptions):
        if name == "preset":
            continue
        default = declared.settings.get("default")
        assert default in (None, starts.get(name, getattr(Params(), name)))
        if name in PRESETS["default"]:
            assert default is None
            assert f"(default: {PRESETS['default'][name]}, or the value of --preset)" in declared.settings["help"]


def test_an_explanation_has_every_part_that_c_tells() -> None:
    told = {name.replace("_repeat", "_factor") for name in dir(ffi.new("lzs_explanation *"))}
    ours = {field.name.replace("_change", "_bias") for field in dataclasses.fields(TokenExplanation)}
    assert told - {"repeat", "bias"} == ours - {"text"}
    changes = [field.name for field in dataclasses.fields(PenaltyParts) if field.name.endswith("_change")]
    assert changes == ["lz_change", "count_change", "dry_change"]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: penalty.name)
def test_the_table_says_what_is_on_and_how_far_it_looks(penalty: Penalty) -> None:
    on = Params(**ON[penalty.name])
    assert [row.name for row in PENALTIES if row.is_on(on)] == [penalty.name]
    expected = {"lz": 600, "repetition": 40, "frequency": 50, "presence": 2**31 - 1, "dry": 70}[penalty.name]
    assert reach(on) == expected
    assert (reach(Params()), reach(Params(dry_multiplier=1.0))) == (0, 131072)
    assert after(8, on, [1, 2, 3] * 20).edits()[0].size
    assert not after(8, Params(), [1, 2, 3] * 20).edits()[0].size


def edits_of(params: Params, text: list[int]) -> list[list[float]]:
    return [column.tolist() for column in after(4, params, text).edits()]


@pytest.mark.parametrize(
    "fields",
    [
        {"lz_rule": "paper", "lz_buffer": 4},
        {"lz_min_match": 2},
        {"lz_min_match": 3, "lz_separators": b"\x04\0\0\0"},
        {"lz_min_match": 3, "lz_commas": b"\x04\0\0\0"},
        {"lz_run_penalty": 1.0, "lz_run_allowance": 2},
    ],
    ids=str,
)
def test_tokens_further_back_than_the_reach_change_nothing(fields: dict[str, Any]) -> None:
    """A host such as transformers gives a sampler no more than these; matches reach beyond their window."""
    rng = np.random.default_rng(3)
    shorter_differs = 0
    params = Params(lz_penalty=1.0, lz_window=6, **fields)
    assert reach(params) == (6 if "lz_rule" in fields else 2**31 - 1 if "lz_commas" in fields else 12)
    for _ in range(400):
        text = rng.integers(0, 3, 40).tolist()
        whole, near, nearer = (edits_of(params, text[-n:]) for n in (40, reach(params), 6))
        assert near == whole
        shorter_differs += nearer != whole
    assert (shorter_differs > 0) == (params.lz_rule == "default")


def test_a_comma_depends_on_all_that_came_before() -> None:
    """A list in a sentence has no separators, however long it is, and one that begins a line has."""
    params = Params(lz_penalty=1.0, lz_min_match=3, lz_window=8, lz_commas=b"\x04\0\0\0")
    items = [0, 2] * 40
    assert edits_of(params, [1, 1, 1, *items])[0]
    assert not edits_of(params, items)[0]


def test_hosts_share_one_rule_for_their_settings() -> None:
    def made(params: Any = None, **settings: Any) -> Params:
        return penalties_from("attach", params, settings, ("params", "trim"))

    default = Params(lz_penalty=0.3, lz_run_penalty=0.5)
    assert made() == default
    assert (made().lz_window, made(lz_rule="paper").lz_window) == (2048, 512)
    assert made(history="all", lz_window=16) == dataclasses.replace(
        default, history="all", lz_window=16, lz_buffer=None
    )
    assert made(lz_penalty=0.15, lz_rule="paper") == made(**PRESETS["paper"]) == paper(lz_penalty=0.15)
    assert made(lz_penalty=0.0) == Params()
    assert made(Params()) == Params()
    assert made(Params(lz_penalty=0.3, exempt=(1,)), exempt=[2]) == Params(lz_penalty=0.3, exempt=(2,))
    assert made(Params(history="all"), lz_penalty=0.0) == Params(history="all")
    with pytest.raises(TypeError, match=r"params must be a Params, got 0\.3"):
        made(0.3)
    for name, message in (
        ("lz_penalti", "; did you mean 'lz_penalty'?"),
        ("trimm", "; did you mean 'trim'?"),
        ("x", ""),
    ):
        with pytest.raises(TypeError) as error:
            made(**{name: 1})
        assert str(error.value) == f"attach() got an unexpected keyword argument {name!r}{message}"


def test_settings_that_do_nothing_are_told() -> None:
    """`attach(llm, Params(history="all"))` attached nothing, without a word."""
    with pytest.warns(UserWarning, match="^these params set penalty_window, history but switch no penalty on"):
        penalties_from("attach", Params(history="all", penalty_window=8), {}, ())
    for params in (Params(), Params(temperature=0.5), Params(history="all", lz_penalty=0.1)):
        penalties_from("attach", params, {}, ())  # a warning would be an error
    penalties_from("attach", Params(exempt=(1,), logit_bias={1: 1.0}), {}, ())
    penalties_from("attach", Params(lz_window=64, repetition_detection=STOP_ON_LOOP), {}, ())


@pytest.mark.parametrize("field", NAMES)
@pytest.mark.parametrize("value", ["", "Rate", "rates", 0, None, math.nan, ["rate"]])
def test_names(field: str, value: Any) -> None:
    refuses(field, value)


@pytest.mark.parametrize("field", FLAGS)
@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_flags(field: str, value: Any) -> None:
    refuses(field, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lz_penalty", -0.1),
        ("lz_penalty", 1e39),
        ("lz_window", 1),
        ("lz_window", 131073),
        ("lz_buffer", 0),
        ("lz_buffer", 4097),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", -1.5),
        ("repetition_penalty", 1e39),
        ("frequency_penalty", -1e39),
        ("presence_penalty", 1e39),
        ("penalty_window", 2**31),
        ("temperature", -1.0),
        ("temperature", 9e-7),
        ("temperature", 1.1e6),
        ("top_k", 2**31),
        ("top_p", -0.01),
        ("top_p", 1.01),
        ("min_p", -0.01),
        ("min_p", 1.01),
        ("dry_multiplier", -0.1),
        ("dry_base", 0.99),
        ("dry_base", 1e39),
        ("dry_penalty_last_n", -2),
        ("dry_penalty_last_n", 131073),
        ("dry_penalty_last_n", 1.5),
    ],
)
def test_ranges(field: str, value: Any) -> None:
    refuses(field, value)


@pytest.mark.parametrize("field", ["frequency_penalty", "presence_penalty", "repetition_penalty"])
def test_factors_are_positive(field: str) -> None:
    method = field.replace("penalty", "method")
    refuses(field, -0.5, **{method: "multiplicative"})
    fields: dict[str, Any] = {field: -0.5, method: "subtractive"}
    assert getattr(Params(**fields), field) == -0.5


@pytest.mark.parametrize("value", [1e-60, 1e-46])
def test_factors_too_small_for_a_float32_are_refused_with_their_value(value: float) -> None:
    with pytest.raises(ValueError, match=f"repetition_penalty .*{value!r}"):
        Sampler(8, Params(repetition_penalty=value))


@pytest.mark.parametrize(
    "value", ["ab", b"ab", 5, None, [-1], [1.5], [True], [2**31], ["a"], [None], [[1]], np.array([0.5])]
)
@pytest.mark.parametrize("field", ["exempt", "dry_breakers"])
def test_token_ids(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field) as caught:
        Params(**{field: value})
    shown = value if isinstance(value, str | bytes | int | None) else value[0]
    assert repr(shown) in str(caught.value)


@pytest.mark.parametrize(
    ("field", "function"),
    [
        ("exempt", "exempt_ids"),
        ("dry_breakers", "dry_breaker_ids"),
    ],
)
def test_strings_for_token_ids_are_refused_with_the_function_that_makes_them(field: str, function: str) -> None:
    with pytest.raises(ValueError, match=rf"lzsampler\.llama\.{function}\(llm, \['\*'\]\)"):
        Params(**{field: ["*"]})  # type: ignore[arg-type]


def test_logit_bias_is_a_value_however_it_is_given() -> None:
    expected = ((2, -1.5), (7, -math.inf))
    forms: list[Any] = [
        {7: -math.inf, 2: -1.5},
        [(7, -math.inf), (2, -1.5)],
        iter([[2, -1.5], (7, -math.inf)]),
        expected,
    ]
    for form in forms:
        assert Params(logit_bias=form).logit_bias == expected
    assert hash(Params(logit_bias={2: 1})) == hash(Params(logit_bias=[(2, 1.0)]))
    assert Params(logit_bias={}) == Params(logit_bias=()) == Params()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1: math.nan}, "logit_bias must be finite, or -inf to forbid the token, got nan"),
        ({1: math.inf}, "logit_bias must be finite, or -inf to forbid the token, got inf"),
        ({1: 1e39}, "logit_bias must be from -3.4e+38 to 3.4e+38, got 1e+39"),
        ({1: "5"}, "logit_bias must be a number, got '5'"),
        ({1: True}, "logit_bias must be a number, got True"),
        ({"1": 5}, "logit_bias takes token ids, got '1'"),
        ({-1: 5}, "logit_bias must be from 0 to 2147483647, got -1"),
        ({1.0: 5}, "logit_bias must be an integer, got 1.0"),
        ([(1, 2.0), (1, 3.0)], "logit_bias must have one number for each token, got two for 1"),
        ([1, 2], "logit_bias must be pairs of a token id and a number, got 1"),
        ([(1, 2, 3)], "logit_bias must be pairs of a token id and a number, got (1, 2, 3)"),
        (["ab"], "logit_bias must be pairs of a token id and a number, got 'ab'"),
        ("ab", "logit_bias must be a dict of token ids and numbers, got 'ab'"),
        (5, "logit_bias must be a dict of token ids and numbers, got 5"),
    ],
)
def test_bad_logit_bias(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message).replace(r"\.\*", ".*")):
        Params(logit_bias=value)


def test_json_and_back() -> None:
    params = Params(
        exempt=(1, 2),
        dry_breakers=(5,),
        logit_bias={3: -math.inf, 1: 0.5},
        repetition_detection=STOP_ON_LOOP,
        stuck_detection=STOP_ON_STUCK,
        lz_penalty=0.3,
        lz_min_match=6,
        lz_run_penalty=0.5,
        lz_run_allowance=64,
        lz_separators=bytes(range(8)),
        lz_commas=b"\xff" * 8,
    )
    text = json.dumps(to_json(params), allow_nan=False)
    assert json.loads(text)["logit_bias"] == [[1, 0.5], [3, False]]
    assert from_json(json.loads(text)) == params
    for preset in PRESETS.values():
        made = Params(**preset)
        assert from_json(json.loads(json.dumps(to_json(made)))) == made
    assert from_json(json.loads(json.dumps(to_json(Params())))) == Params()


SIZES = {"max_pattern_size": 20, "min_pattern_size": 3, "min_count": 4}


@pytest.mark.parametrize("field", SIZES)
@pytest.mark.parametrize("value", [-1, 131073, 2**40, 3.0, math.nan, math.inf, "4", None, True, [4]])
def test_repetition_detection(field: str, value: Any) -> None:
    for make in (RepetitionDetection, lambda **fields: Params(repetition_detection=fields)):
        with pytest.raises(ValueError, match=field) as caught:
            make(**{**SIZES, field: value})
        assert f"{value!r:.60}" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"min_pattern_size": 21}, "min_pattern_size must be at most max_pattern_size (20), got 21"),
        ({"min_count": 1}, "min_count must be from 2 to 131072, got 1"),
        ({"min_count": 0}, "min_count must be from 2 to 131072, got 0"),
        ({"max_pattern_size": 65537}, "max_pattern_size must be from 0 to 65536, got 65537"),
        ({"min_count": 6554}, "max_pattern_size * min_count must be at most 131072 tokens, got 20 * 6554"),
    ],
)
def test_repetition_detection_ranges(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        RepetitionDetection(**{**SIZES, **fields})


@pytest.mark.parametrize("value", ["yes", True, 8, math.nan, (20, 3, 4), [SIZES]])
def test_repetition_detection_is_one_or_a_dict(value: Any) -> None:
    refuses("repetition_detection", value)
    with pytest.raises(ValueError, match="takes max_pattern_size, min_pattern_size, min_count, got 'max_size'"):
        Params(repetition_detection={"max_size": 3})


def test_repetition_detection_is_vllms() -> None:
    assert Params(repetition_detection=SIZES).repetition_detection == RepetitionDetection(20, 3, 4)
    assert RepetitionDetection(20, 0, np.int64(4)) == RepetitionDetection(20, 1, 4)  # type: ignore[arg-type]
    assert RepetitionDetection(max_pattern_size=20, min_count=4).min_pattern_size == 1
    for off in (None, {}, {"max_pattern_size": 0}, RepetitionDetection()):
        assert Params(repetition_detection=off) == Params()
    with pytest.raises(ValueError, match="min_count must be from 2"):
        Params(repetition_detection={"max_pattern_size": 20})
    assert len({Params(repetition_detection=SIZES), Params(repetition_detection=SIZES), Params()}) == 2
    assert RepetitionDetection(512, 8, 8) == STOP_ON_LOOP


@pytest.mark.parametrize(
    "fields",
    [
        {"repetition_detection": {"max_pattern_size": 65536, "min_pattern_size": 65536, "min_count": 2}},
        {"repetition_detection": {"max_pattern_size": 1, "min_count": 131072}},
        {"lz_rule": "paper", "lz_window": 131072, "lz_buffer": 4096},
        {"lz_rule": "paper", "lz_window": 2, "lz_buffer": 1},
        {"lz_window": 131072, "lz_min_match": 65535, "lz_run_penalty": 3.4e38, "lz_run_allowance": 131072},
        {"lz_window": 2, "lz_min_match": 1, "lz_run_penalty": 0.5, "lz_run_allowance": 0},
        {"lz_penalty": 1, "lz_separators": np.full(1, -1, np.int32), "lz_commas": np.array([2], np.uint32)},
        {"temperature": 0},
        {"temperature": 1e-6},
        {"temperature": 1e6},
        {"top_p": 0, "min_p": 1},
        {"top_k": 2**31 - 1, "penalty_window": 2**31 - 1, "seed": 2**64 - 1},
        {"repetition_penalty": 3.4e38, "frequency_penalty": -3.4e38, "lz_penalty": 3.4e38},
        {"frequency_penalty": 0.0, "frequency_method": "multiplicative"},
        {"repetition_penalty": -1, "repetition_method": "subtractive"},
        {"top_k": np.int64(3), "seed": np.uint64(2**64 - 1), "lz_window": np.int32(64)},
        {"temperature": np.float32(0.5), "top_p": np.float64(0.5), "lz_penalty": np.int16(1)},
        {"sign_aware": np.bool_(False), "temperature_last": np.bool_(True)},
        {"exempt": np.array([3, 1], np.int64)},
        {"dry_multiplier": 3.4e38, "dry_base": 3.4e38, "dry_allowed_length": 0, "dry_penalty_last_n": 131072},
        {"dry_multiplier": 1, "dry_base": 1, "dry_allowed_length": 65535, "dry_penalty_last_n": 1},
        {"dry_multiplier": 1, "dry_penalty_last_n": 0, "dry_breakers": np.array([3, 1])},
        {"logit_bias": {np.int64(7): np.float32(-3.4e38), 0: 3.4e38, 1: -math.inf}},
    ],
)
def test_the_ends_of_the_ranges_and_numpy_values_reach_the_core(fields: dict[str, Any]) -> None:
    sampler = Sampler(8, Params(**fields))
    assert 0 <= sampler.sample(np.zeros(8, np.float32)) < 8
