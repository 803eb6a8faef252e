"""The penalties as edits: methods, signs, windows, scopes, folding, and the published numbers."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import reference
from lz_settings import either_rule
from lzsampler import LzsError, Params, Sampler
from lzsampler.params import Method
from reference import FLOAT_MAX, FLOAT_TINY, Edit

VECTORS = Path(__file__).parent / "vectors"
HF: list[dict[str, Any]] = [
    json.loads(line) for line in (VECTORS / "hf_processors_shared.jsonl").read_text().splitlines()
]
WORKED: dict[str, dict[str, Any]] = json.loads((VECTORS / "worked_examples.json").read_text())

Logits = npt.NDArray[np.float32]


def after(n_vocab: int, params: Params, history: list[int], prompt: list[int] | None = None) -> Sampler:
    """A sampler that has been primed with `prompt` and has accepted `history`."""
    sampler = Sampler(n_vocab, params)
    sampler.prime(prompt or [])
    for token in history:
        sampler.accept(token)
    return sampler


def edits_of(sampler: Sampler) -> dict[int, Edit]:
    return {int(t): Edit(float(r), float(b)) for t, r, b in zip(*sampler.edits(), strict=True)}


def penalized(n_vocab: int, params: Params, history: list[int], logits: list[float]) -> list[float]:
    """Logits after the penalties alone: nothing of `process` but the edits is on."""
    row = np.array(logits, np.float32)
    out: list[float] = after(n_vocab, params, history).process(row).tolist()
    return out


def kept(sampler: Sampler, logits: Logits) -> list[int]:
    ids: list[int] = sampler.distribution(logits)[0].tolist()
    return ids


# ---- published numbers ----


def article(**more: Any) -> Params:
    config = WORKED["three_penalties"]["config"]
    fields: dict[str, Any] = {"sign_aware": False}
    for name in ("repetition", "frequency", "presence"):
        fields |= {f"{name}_penalty": config[name]["value"], f"{name}_method": config[name]["method"]}
    return Params(**fields, **more)


def article_history() -> list[int]:
    case = WORKED["three_penalties"]
    return [case["tokens"].index(word) for word in case["history"]]


def test_three_penalties_article() -> None:
    case = WORKED["three_penalties"]
    config, words = case["config"], case["tokens"]
    logits, history = case["logits"], article_history()
    n = len(words)

    assert penalized(n, article(), history, logits) == pytest.approx(case["after_penalties"], abs=0.02)
    warm = article(temperature=config["temperature"])
    assert penalized(n, warm, history, logits) == pytest.approx(case["after_temperature"], abs=0.02)

    row = np.array(logits, np.float32)
    top_k = article(temperature=config["temperature"], top_k=config["top_k"])
    assert {words[t] for t in kept(after(n, top_k, history), row)} == set(case["after_top_k"])
    order = sorted(range(n), key=lambda t: -case["after_temperature"][t])
    assert [words[t] for t in order[: config["top_k"]]] == case["after_top_k"]
    top_p = article(temperature=config["temperature"], top_k=config["top_k"], top_p=config["top_p"])
    assert {words[t] for t in kept(after(n, top_p, history), row)} == set(case["after_top_p"])


def test_repetition_sign_note() -> None:
    case = WORKED["repetition_sign"]
    params = Params(repetition_penalty=case["repetition"])
    assert penalized(3, params, case["history"], case["logits"]) == pytest.approx(case["expected"], abs=1e-6)


def test_top_p_note() -> None:
    case = WORKED["top_p_shift"]
    logits = np.log(np.array(case["probabilities"], np.float32))
    assert kept(Sampler(len(logits), Params(top_p=case["top_p"])), logits) == case["kept_by_code"]


@pytest.mark.parametrize("number", range(len(HF)))
def test_transformers(number: int) -> None:
    case = HF[number]
    logits = np.array(case["logits"], np.float32)
    expected = np.array([-math.inf if x is None else x for x in case["expected"]])
    sampler = after(len(logits), Params(**case["config"], ties="keep"), case["history"])

    ids, probabilities = sampler.distribution(logits)
    assert ids.tolist() == np.flatnonzero(expected > -math.inf).tolist()
    assert probabilities == pytest.approx(np.array(case["expected_probs"])[ids], abs=1e-5)
    assert np.sum(np.delete(case["expected_probs"], ids)) == 0

    processed = sampler.process(logits.copy())
    assert np.flatnonzero(processed > -math.inf).tolist() == ids.tolist()
    assert processed[ids] == pytest.approx(expected[ids], rel=1e-5, abs=1e-5)


# ---- one penalty at a time ----

HISTORY = [5, 6, 5, 7, 5, 7]  # counts: 5 three times, 6 once, 7 twice
COUNTS = {5: 3, 6: 1, 7: 2}
STRENGTHS = [("multiplicative", 1.5), ("multiplicative", 0.5), ("subtractive", 1.5), ("subtractive", -0.7)]


@pytest.mark.parametrize("sign_aware", [True, False])
@pytest.mark.parametrize("x", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("penalty", ["repetition", "frequency", "presence"])
@pytest.mark.parametrize(("method", "p"), STRENGTHS)
def test_one_penalty(penalty: str, method: Method, p: float, x: float, sign_aware: bool) -> None:
    fields: dict[str, Any] = {f"{penalty}_penalty": p, f"{penalty}_method": method, "sign_aware": sign_aware}
    out = penalized(10, Params(**fields), HISTORY, [x] * 10)
    for token in range(10):
        count = COUNTS.get(token, 0)
        expected = x
        if count and method == "subtractive":
            expected = x - (p * count if penalty == "frequency" else p)
        elif count:
            factor = p**count if penalty == "frequency" else p
            expected = x * factor if x < 0 and sign_aware else x / factor
        assert out[token] == pytest.approx(expected, rel=1e-6)


def test_off_is_off() -> None:
    for params in (
        Params(),
        Params(repetition_method="subtractive", repetition_penalty=0.0),
        Params(frequency_method="multiplicative", presence_method="multiplicative"),
        Params(lz_formula="distance", lz_rule="paper", lz_buffer=1, lz_window=4),
    ):
        assert edits_of(after(10, params, HISTORY)) == {}


def test_the_default_methods_are_those_of_llama_cpp_and_vllm() -> None:
    params = Params(repetition_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25)
    assert edits_of(after(10, params, HISTORY)) == {5: (2.0, -1.75), 6: (2.0, -0.75), 7: (2.0, -1.25)}


def test_folding_multiplies_factors_then_adds_biases_then_lz() -> None:
    params = Params(
        repetition_penalty=0.5,
        repetition_method="subtractive",
        frequency_penalty=2.0,
        frequency_method="multiplicative",
        presence_penalty=0.25,
        lz_penalty=1.0,
        lz_window=8,
        lz_rule="paper",
        lz_buffer=5,
    )
    # the LZ window 5 6 5 7 5 | 7 has one position, the last 7: d = 1, L = 1, which costs 1 bit of the 5 of 32 tokens
    assert edits_of(after(32, params, HISTORY)) == {5: (8.0, -0.75), 6: (2.0, -0.75), 7: (4.0, -0.75 - 4.0)}
    logits = [0.0] * 5 + [16.0, -16.0, 16.0] + [0.0] * 24
    assert penalized(32, params, HISTORY, logits)[5:8] == [16 / 8 - 0.75, -16.0 * 2 - 0.75, 16 / 4 - 4.75]


# ---- windows, scopes, exemptions ----


@pytest.mark.parametrize("window", [1, 2, 3, 5, 6, 7, 2**31 - 1, 0])
def test_penalty_window(window: int) -> None:
    sampler = after(10, Params(frequency_penalty=1.0, penalty_window=window), HISTORY)
    seen = HISTORY[-window:] if window else HISTORY
    assert edits_of(sampler) == {t: (1.0, -float(seen.count(t))) for t in set(seen)}
    sampler.rewind(2)
    seen = HISTORY[:-2][-window:] if window else HISTORY[:-2]
    assert edits_of(sampler) == {t: (1.0, -float(seen.count(t))) for t in set(seen)}


def test_history_scope() -> None:
    prompt, text = [1, 2, 3, 1, 2, 3, 1], [2, 3]
    for kind in (
        {"presence_penalty": 1.0},
        {"lz_rule": "paper", "lz_penalty": 1.0, "lz_window": 6, "lz_buffer": 1},
        {"repetition_penalty": 1.5, "penalty_window": 5},
    ):
        generated: dict[str, Any] = {**kind, "history": "generated"}
        everything: dict[str, Any] = {**kind, "history": "all"}
        only_text = edits_of(after(10, Params(**generated), text))
        assert edits_of(after(10, Params(**generated), text, prompt)) == only_text
        assert edits_of(after(10, Params(**everything), text, prompt)) == edits_of(
            after(10, Params(**generated), prompt + text)
        )
        assert edits_of(after(10, Params(**everything), text, prompt)) != only_text


def test_a_prompt_given_in_pieces_and_an_empty_one() -> None:
    params = Params(frequency_penalty=1.0, lz_rule="paper", lz_penalty=1.0, lz_buffer=2, history="all")
    whole = after(10, params, [4], HISTORY)
    pieces = Sampler(10, params)
    for piece in ([], HISTORY[:1], HISTORY[1:4], [], HISTORY[4:]):
        pieces.prime(piece)
    pieces.accept(4)
    assert edits_of(pieces) == edits_of(whole)


def test_exempt() -> None:
    fields: dict[str, Any] = {
        "frequency_penalty": 1.0,
        "lz_rule": "paper",
        "lz_penalty": 0.5,
        "lz_buffer": 1,
        "lz_window": 8,
    }
    everything = edits_of(after(10, Params(**fields), HISTORY))
    assert everything.keys() == {5, 6, 7}
    for exempt in [(5,), (7, 6), (9, 5, 7, 0, 6), (), (5, 5)]:
        sampler = after(10, Params(**fields, exempt=exempt), HISTORY)
        assert edits_of(sampler) == {t: e for t, e in everything.items() if t not in exempt}
        assert edits_of(sampler.clone()) == edits_of(sampler)


@pytest.mark.parametrize(
    "tokens", [[7, 5], {5, 7}, np.array([5, 7, 5]), range(5, 8, 2), iter([5, 7]), (t for t in (7, 5))]
)
def test_exempt_takes_any_iterable(tokens: Any) -> None:
    assert Params(exempt=tokens).exempt == (5, 7)


# ---- logit_bias ----


def test_logit_bias_is_there_from_the_first_token_on_and_no_penalty() -> None:
    table = {1: 2.5, 5: -1.0, 9: -math.inf}
    for history in ([], HISTORY):
        sampler = after(10, Params(logit_bias=table, exempt=(5, 9)), history)
        assert edits_of(sampler) == {t: (1.0, bias) for t, bias in table.items()}
    both = edits_of(after(10, Params(logit_bias=table, presence_penalty=0.5, repetition_penalty=2.0), HISTORY))
    assert both == {1: (1.0, 2.5), 5: (2.0, -1.5), 6: (2.0, -0.5), 7: (2.0, -0.5), 9: (1.0, -math.inf)}


def test_a_forbidden_token_is_never_picked() -> None:
    logits = np.array([9.0, 1.0, math.inf, -2.0], np.float32)
    sampler = Sampler(4, Params(logit_bias={0: -math.inf, 2: -math.inf}))
    assert kept(sampler, logits) == [1, 3]
    assert sampler.process(logits).tolist() == [-math.inf, 1.0, -math.inf, -2.0]
    every = Sampler(4, Params(logit_bias=dict.fromkeys(range(4), -math.inf)))
    with pytest.raises(LzsError, match="no token is allowed"):
        every.sample(logits)


@pytest.mark.parametrize("value", [FLOAT_MAX, -FLOAT_MAX])
def test_a_large_bias_stays_finite(value: float) -> None:
    params = Params(
        logit_bias={0: value}, presence_penalty=FLOAT_MAX, lz_rule="paper", lz_penalty=FLOAT_MAX, lz_buffer=1
    )
    sampler = after(3, params, [0, 0, 1, 0])
    assert np.isfinite(sampler.edits()[2]).all()
    assert np.isfinite(sampler.process(np.array([FLOAT_MAX, 0.0, -FLOAT_MAX], np.float32))).all()


# ---- against the twin ----


def penalty_params() -> st.SearchStrategy[Params]:
    def values(off: float) -> st.SearchStrategy[float]:
        return st.just(off) | st.sampled_from([0.5, 1.1, 1.25, 2.0])

    def made(lz: dict[str, Any], **others: Any) -> Params:
        return Params(**lz, **others)

    methods = st.sampled_from(["multiplicative", "subtractive"])
    return st.builds(
        made,
        lz=either_rule(40),
        repetition_penalty=values(1.0),
        frequency_penalty=values(0.0),
        presence_penalty=values(0.0),
        repetition_method=methods,
        frequency_method=methods,
        presence_method=methods,
        sign_aware=st.booleans(),
        penalty_window=st.sampled_from([0, 0, 1, 3, 20]),
        history=st.sampled_from(["generated", "all"]),
        exempt=st.lists(st.integers(0, 6), max_size=2).map(tuple),
        dry_multiplier=st.sampled_from([0.0, 0.8]),
        dry_allowed_length=st.sampled_from([1, 2, 3]),
        dry_penalty_last_n=st.sampled_from([-1, 0, 5, 30]),
        dry_breakers=st.lists(st.integers(0, 6), max_size=2).map(tuple),
        logit_bias=st.dictionaries(st.integers(0, 39), st.sampled_from([-math.inf, -1.5, 2.0]), max_size=2),
    )


@settings(derandomize=True, max_examples=400, deadline=None)
@given(penalty_params(), st.lists(st.integers(0, 6), max_size=60), st.lists(st.integers(0, 6), max_size=60))
@example(Params(), [], [])
def test_edits_equal_the_twin(params: Params, prompt: list[int], text: list[int]) -> None:
    sampler = after(40, params, text, prompt)
    seen = prompt + text if params.history == "all" else text
    expected = reference.edits(seen, 40, params)
    ours = edits_of(sampler)
    # a token whose bits are 0 but for rounding may be left out on either side
    for token in ours.keys() | expected.keys():
        repeat, bias = ours.get(token, (1.0, 0.0))
        assert repeat == pytest.approx(expected.get(token, Edit(1.0, 0.0)).repeat, rel=1e-5)
        assert bias == pytest.approx(expected.get(token, Edit(1.0, 0.0)).bias, rel=1e-6, abs=2e-5)

    logits = np.random.default_rng(len(seen)).normal(scale=4, size=40).astype(np.float32)
    row = reference.row(logits, seen, params)
    assert sampler.process(logits) == pytest.approx(row.logits, rel=1e-5, abs=1e-4)


# ---- extreme values ----

EXTREME = [FLOAT_MAX, 1e30, 1e-30, FLOAT_TINY, -1e30, -FLOAT_MAX]


@pytest.mark.parametrize("temperature", [1e-6, 0.5, 1.0, 1e6])
@pytest.mark.parametrize("value", EXTREME)
def test_extreme_penalties_stay_finite(value: float, temperature: float) -> None:
    """A penalty makes a token unlikely, never impossible, and never a NaN."""
    logits = np.array([3.0, -3.0, 0.0, 1e-30, FLOAT_MAX, -FLOAT_MAX, 1.0], np.float32)
    history = [0, 1, 2, 3, 4, 5] * 20
    for method in ("multiplicative", "subtractive"):
        if value <= 0 and method == "multiplicative":
            continue
        for name in ("repetition", "frequency", "presence"):
            fields: dict[str, Any] = {f"{name}_penalty": value, f"{name}_method": method, "temperature": temperature}
            sampler = after(7, Params(**fields), history)
            _, repeat, bias = sampler.edits()
            assert np.isfinite(repeat).all()
            assert (repeat > 0).all()
            assert np.isfinite(bias).all()
            ids, probabilities = sampler.distribution(logits)
            assert ids.tolist() == list(range(7))
            assert np.isfinite(probabilities).all()
            assert math.isclose(math.fsum(probabilities), 1.0, rel_tol=1e-6)
            assert 0 <= sampler.sample(logits) < 7


def test_extreme_lz_stays_finite() -> None:
    sampler = after(50_000, Params(lz_rule="paper", lz_penalty=FLOAT_MAX, lz_buffer=1), [1, 1, 2, 1, 1])
    _, _, bias = sampler.edits()
    assert np.isfinite(bias).all()
    assert (bias < -1e30).all()


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_process_keeps_what_distribution_keeps(temperature: float) -> None:
    """Also at the edge of the float range, where dividing by the temperature would leave it."""
    logits = np.array([0.0, -1.0, -FLOAT_MAX, 0.7 * FLOAT_MAX], np.float32)
    sampler = after(4, Params(presence_penalty=FLOAT_MAX, temperature=temperature), [1])
    ids = kept(sampler, logits)
    assert ids == [0, 1, 2, 3]
    assert np.isfinite(sampler.process(logits)).all()


def test_infinite_logits_are_left_alone() -> None:
    params = Params(repetition_penalty=2.0, frequency_penalty=1.0, lz_rule="paper", lz_penalty=1.0, lz_buffer=1)
    logits = [math.inf, -math.inf, 0.0]
    assert penalized(3, params, [0, 1, 0, 1], logits) == logits
