"""`Placebo`: as many and as large changes as the penalty makes, on tokens that the penalty does not aim at."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lzsampler import Params, Sampler
from lzsampler.evaluation.placebo import Placebo

N = 300
TEXT = [5, 9, 7, 5, 9, 7, 5, 9, 200, 41] * 6


def logits(seed: int) -> Any:
    return np.random.default_rng(seed).normal(0, 3, N).astype(np.float32)


def changed(placebo: Placebo, row: Any) -> Any:
    """The row that the placebo draws from."""
    seen = []

    def draw(given: Any) -> int:
        seen.append(np.array(given))
        return 0

    placebo._draw.sample = draw  # type: ignore[method-assign, assignment]
    placebo.sample(row)
    return seen[0]


@pytest.mark.parametrize("penalty", [{"lz_penalty": 0.3}, {"repetition_penalty": 1.3}, {"dry_multiplier": 0.8}])
def test_changes_are_those_of_the_penalty_on_tokens_of_like_rank(penalty: dict[str, Any]) -> None:
    """Ranks 1 to 10, 11 to 100 and 101 to 300: in each band, the amounts are the same, on other tokens."""
    params = Params(**penalty, temperature=0.0, logit_bias={3: 50.0}, seed=7)
    row = logits(1)
    row[[200, 41, 5]] = 9.0, 8.5, 8.0  # what the text repeats is likely
    placebo, penalized = Placebo(N, params), Sampler(N, replace(params, logit_bias=()))
    for token in TEXT:
        placebo.accept(token)
        penalized.accept(token)
    tokens, repeat, bias = penalized.edits()
    made = changed(placebo, row)
    order = np.argsort(-row, kind="stable")
    bands = np.empty(N, int)
    for number, ranks in enumerate((order[:10], order[10:100], order[100:])):
        bands[ranks] = number
    hit = np.flatnonzero(made != row)
    assert hit.size == tokens.size > 0
    assert sorted(bands[hit]) == sorted(bands[tokens])
    assert set(hit) != set(tokens)
    if "lz_penalty" in penalty or "dry_multiplier" in penalty:  # amounts that do not depend on the logit
        assert (repeat == 1).all()
        assert sorted(made[hit] - row[hit]) == pytest.approx(sorted(bias), abs=1e-5)
        for band in range(3):
            mine, theirs = hit[bands[hit] == band], tokens[bands[tokens] == band]
            assert (made[mine] - row[mine]).sum() == pytest.approx(bias[np.isin(tokens, theirs)].sum(), abs=1e-4)
    assert Placebo(N, params).sample(row) == 3  # the bias stays where it is


def test_a_seed_gives_the_same_text_and_another_seed_another() -> None:
    params = Params(repetition_penalty=3.0, temperature=0.0, seed=1)

    def text(params: Params) -> list[int]:
        placebo, made = Placebo(N, params), []
        placebo.prime([1, 2])
        for step in range(60):
            made.append(placebo.sample(logits(step % 3)))
            placebo.accept(made[-1])
        return made

    assert text(params) == text(params)
    assert text(params) != text(replace(params, seed=2))
    plain = Sampler(N, replace(params, repetition_penalty=None))
    assert text(replace(params, repetition_penalty=1.0)) == [plain.sample(logits(step % 3)) for step in range(60)]


def test_wrong_logits_are_refused_as_by_the_sampler() -> None:
    placebo = Placebo(N, Params(lz_penalty=0.3, repetition_detection={"max_pattern_size": 2, "min_count": 3}))
    for token in [1, 2] * 40:
        placebo.accept(token)
    assert placebo.loop is not None
    row = logits(1)
    row[5] = np.nan
    with pytest.raises(ValueError, match=r"logits\[5\] is nan"):
        placebo.sample(row)
