"""What a sequence has of its own: seed, settings, masks; and what clones, copies and rewinds make of them."""

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lzsampler import STOP_ON_LOOP, LzsError, Params, Sampler, sequence_seed
from samplers import after, assert_same, mask_of

HISTORY = [5, 6, 7, 5, 6, 7, 5, 6]

# ---- seeds ----


def test_a_clone_draws_the_same_until_it_has_a_seed_of_its_own() -> None:
    logits = np.random.default_rng(1).normal(size=500).astype(np.float32)
    origin = after(500, Params(seed=12), [1, 2, 3])
    same, other = origin.clone(), origin.clone()
    other.set_seed(sequence_seed(12, 1))
    assert (origin.params.seed, same.params.seed, other.params.seed) == (12, 12, sequence_seed(12, 1))
    texts: list[list[int]] = [[], [], []]
    for _ in range(100):
        for sampler, text in zip((origin, same, other), texts, strict=True):
            text.append(sampler.sample(logits))
            sampler.accept(text[-1])
    assert texts[0] == texts[1]
    assert sum(a == b for a, b in zip(texts[0], texts[2], strict=True)) < 10
    origin.set_seed(5)
    assert origin.sample(logits) == after(500, Params(seed=5), [0] * 103).sample(logits)


def test_seeds_of_sequences_differ_and_are_always_the_same() -> None:
    seeds = [sequence_seed(seed, i) for seed in (0, 1, 2**64 - 1) for i in (*range(1000), 2**32, 2**64 - 1)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert sequence_seed(7, 3) == sequence_seed(7, 3)
    bad: list[tuple[Any, Any, str]] = [(-1, 0, "seed"), (0, -1, "sequence"), (2**64, 0, "seed"), (0, 1.5, "sequence")]
    for seed, sequence, message in bad:
        with pytest.raises(ValueError, match=message):
            sequence_seed(seed, sequence)


# ---- copies ----


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
@pytest.mark.parametrize("history", ["generated", "all"])
@pytest.mark.parametrize("lz_penalty", [0.0, 0.5])
def test_a_copy_has_the_text_and_a_life_of_its_own(made: Any, history: Any, lz_penalty: float) -> None:
    """`copy.copy` shared the C sampler, so that what one accepted moved the other; the others failed."""
    params = Params(
        lz_rule="paper", lz_penalty=lz_penalty, lz_buffer=2, history=history, seed=3, repetition_detection=STOP_ON_LOOP
    )
    origin = Sampler(50, params)
    origin.prime([5, 6, 7])
    for token in [8, *HISTORY * 30]:
        origin.accept(token)
    origin.rewind(3)
    origin.set_seed(4)
    twin = made(origin)
    assert isinstance(twin, Sampler)
    logits = np.random.default_rng(1).normal(size=50).astype(np.float32)
    assert_same(twin, origin, logits)
    assert (twin.params, twin.n_vocab, twin.loop) == (origin.params, 50, origin.loop)
    twin.accept(1)
    assert (twin.position, origin.position) == (239, 238)


def test_a_copy_has_the_masks_and_a_pickle_refuses_them() -> None:
    origin = Sampler(50)
    origin.set_mask(mask_of(50, [7]))
    logits = np.zeros(50, np.float32)
    assert copy.copy(origin).sample(logits) == copy.deepcopy([origin])[0].sample(logits) == 7
    with pytest.raises(
        pickle.PicklingError, match="cannot be pickled while a mask or a grammar is set: remove it first"
    ):
        pickle.dumps(origin)
    origin.set_mask(None)
    assert pickle.loads(pickle.dumps(origin)).position == 0


class Named(Sampler):
    def __init__(self, name: list[str]) -> None:
        super().__init__(50, Params(seed=3))
        self.name = name


def test_a_copy_is_of_the_same_class_and_has_what_was_added() -> None:
    """They became plain samplers, without the attributes of the subclass."""
    origin = Named(["a"])
    origin.accept(7)
    origin.step(np.zeros(50, np.float32))
    for twin in copy.copy(origin), origin.clone(), copy.deepcopy(origin), pickle.loads(pickle.dumps(origin)):
        assert (type(twin), twin.name, twin.position) == (Named, ["a"], 2)
    assert copy.copy(origin).name is origin.name
    assert copy.deepcopy(origin).name is not origin.name
    pair = copy.deepcopy([origin, origin])
    assert pair[0] is pair[1]


def test_the_default_seed_is_one_that_can_be_reproduced() -> None:
    logits = np.random.default_rng(1).normal(size=500).astype(np.float32)
    assert Sampler(500).sample(logits) == Sampler(500).sample(logits) == Sampler(500, Params(seed=0)).sample(logits)
    assert "its own seed" in str(Sampler.__doc__)
    assert "is always 0 by default" in str(Params.__doc__)


# ---- settings between steps ----

BEFORE = Params(
    lz_rule="paper", lz_penalty=0.5, lz_buffer=2, presence_penalty=0.3, dry_multiplier=0.8, seed=4, logit_bias={3: 1.0}
)


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.3},
        {"temperature": 0.0},
        {"temperature_last": True, "temperature": 0.7, "top_p": 0.5},
        {"top_k": 3, "top_p": 0.9, "min_p": 0.1, "ties": "keep"},
        {"seed": 99},
        {"lz_penalty": 2.0, "lz_formula": "distance"},
        {"repetition_penalty": 1.5, "presence_penalty": 0.0, "presence_method": "multiplicative", "sign_aware": False},
        {"frequency_penalty": 0.5},
        {"dry_multiplier": 3.0, "dry_base": 1.1, "dry_allowed_length": 1},
    ],
)
def test_settings_that_change_between_steps(change: dict[str, Any]) -> None:
    """The sampler goes on as one that had the new settings from the beginning."""
    logits = np.random.default_rng(3).normal(size=50).astype(np.float32)
    after_change = replace(BEFORE, **change)
    sampler = after(50, BEFORE, HISTORY)
    sampler.sample(logits)
    sampler.set_params(after_change)
    fresh = after(50, after_change, HISTORY)
    assert sampler.params == after_change
    assert_same(sampler, fresh, logits)
    rows = [s.process(logits.copy()).tolist() for s in (sampler, after(50, BEFORE, HISTORY))]
    assert rows[0] != rows[1] or "seed" in change  # the change is one
    for token in (7, 2):
        sampler.accept(token)
        fresh.accept(token)
    assert_same(sampler, fresh, logits)
    sampler.set_params(BEFORE)
    assert_same(sampler, after(50, BEFORE, [*HISTORY, 7, 2]), logits)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"lz_window": 256}, "lz_window cannot change"),
        ({"lz_buffer": 3}, "lz_buffer cannot change"),
        ({"penalty_window": 5}, "penalty_window cannot change"),
        ({"history": "all"}, "history cannot change"),
        ({"exempt": (1,)}, "exempt cannot change"),
        ({"repetition_detection": {"max_pattern_size": 4, "min_count": 2}}, "repetition_detection cannot change"),
        ({"logit_bias": {3: 2.0}}, "logit_bias cannot change"),
        ({"dry_penalty_last_n": 64}, "dry_penalty_last_n cannot change"),
        ({"dry_breakers": (1,)}, "dry_breakers cannot change"),
        ({"lz_penalty": 0.0}, "lz_penalty cannot be switched on or off"),
        ({"dry_multiplier": 0.0}, "dry_multiplier cannot be switched on or off"),
        (
            {"presence_penalty": 0.0},
            "repetition_penalty, frequency_penalty and presence_penalty together cannot be switched on or off",
        ),
    ],
)
def test_settings_that_cannot_change(change: dict[str, Any], difference: str) -> None:
    sampler = after(50, BEFORE, HISTORY)
    with pytest.raises(ValueError, match=f"^{difference} between steps: make a new Sampler$"):
        sampler.set_params(replace(BEFORE, **change))
    other = Sampler(50, replace(BEFORE, **change))
    with pytest.raises(
        ValueError, match=rf"^{difference} by copying from another sampler: clone\(\) the other one instead$"
    ):
        sampler.copy_from(other)
    assert sampler.params == BEFORE
    assert_same(sampler, after(50, BEFORE, HISTORY), np.zeros(50, np.float32))


def test_params_are_those_in_force() -> None:
    """`params` has what was set last, so that settings made from it keep everything else, the seed too."""
    logits = np.random.default_rng(3).normal(size=50).astype(np.float32)
    given = Params(seed=1)
    sampler = after(50, given, HISTORY)
    sampler.set_seed(5)
    assert (sampler.params, given.seed) == (Params(seed=5), 1)
    sampler.set_params(replace(sampler.params, temperature=0.5))
    assert sampler.params == Params(seed=5, temperature=0.5)
    assert_same(sampler, after(50, Params(seed=5, temperature=0.5), HISTORY), logits)
    sampler.set_params(Params(temperature=2.0, seed=9))
    assert sampler.params == Params(seed=9, temperature=2.0)
    assert_same(sampler, after(50, Params(seed=9, temperature=2.0), HISTORY), logits)


# ---- copies ----


def test_a_copy_is_the_other_in_all_that_it_has() -> None:
    logits = np.random.default_rng(3).normal(size=50).astype(np.float32)
    origin = after(50, Params(lz_rule="paper", lz_penalty=0.5, lz_buffer=2, seed=3), HISTORY)
    origin.set_mask(mask_of(50, list(range(9))))
    copy = after(50, Params(lz_rule="paper", lz_penalty=0.1, lz_buffer=2, temperature=0.5), [1] * 40)
    copy.copy_from(origin)
    assert copy.params == origin.params
    assert_same(copy, origin, logits)
    copy.accept(1)
    origin.rewind(3)
    assert (copy.position, origin.position) == (9, 5)
    origin.set_mask(None)
    assert_same(origin, after(50, origin.params, HISTORY[:5]), logits)
    with pytest.raises(ValueError, match="n_vocab of the other sampler must be 50, got 51"):
        copy.copy_from(Sampler(51, origin.params))
    with pytest.raises(ValueError, match="other must be a Sampler, got None"):
        copy.copy_from(None)  # type: ignore[arg-type]


# ---- masks ----


def test_a_token_is_allowed_when_both_masks_allow_it() -> None:
    sampler = Sampler(40)
    logits = np.zeros(40, np.float32)

    def kept() -> list[int]:
        ids: list[int] = sampler.distribution(logits)[0].tolist()
        return ids

    sampler.set_mask(mask_of(40, [3, 5, 35]))
    sampler.set_mask(mask_of(40, [5, 35, 36]), owner="grammar")
    assert kept() == [5, 35]
    assert sampler.clone().distribution(logits)[0].tolist() == [5, 35]
    sampler.set_mask(None)
    assert kept() == [5, 35, 36]
    sampler.set_mask(mask_of(40, [1]))
    with pytest.raises(LzsError, match="no token is allowed"):
        sampler.sample(logits)
    sampler.set_mask(None, owner="grammar")
    assert kept() == [1]


def test_masks_rewind_with_the_text() -> None:
    sampler = Sampler(64)
    logits = np.zeros(64, np.float32)
    for position in range(60):
        sampler.set_mask(mask_of(64, [position]))
        assert sampler.sample(logits) == position
        sampler.accept(position)
    for position in range(59, 29, -1):
        sampler.rewind(1)
        assert sampler.sample(logits) == position
    sampler.rewind(30)
    with pytest.raises(LzsError, match="is not known after the rewind"):
        sampler.sample(logits)
    sampler.set_mask(None)
    assert len(sampler.distribution(logits)[0]) == 64
