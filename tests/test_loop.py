"""The loop detector: what it finds, and when, against the twin that looks at every pattern after every token."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lzsampler import STOP_ON_LOOP, Loop, Params, RepetitionDetection, Sampler
from reference import Run, loop_at_end
from words import fibonacci, thue_morse

N_VOCAB = 1000
# (max_pattern_size, min_pattern_size, min_count)
SETTINGS = [
    (1, 1, 2),
    (3, 1, 2),
    (8, 1, 2),
    (8, 3, 2),
    (8, 5, 3),
    (6, 6, 2),
    (12, 1, 4),
    (20, 7, 3),
    (16, 2, 8),
    (40, 1, 3),
]


def detecting(*setting: int, **others: Any) -> Sampler:
    return Sampler(N_VOCAB, Params(repetition_detection=RepetitionDetection(*setting), **others))


def found(sampler: Sampler) -> Run | None:
    loop = sampler.loop
    return None if loop is None else Run(loop.start, loop.period, loop.count)


def follow(sampler: Sampler, tokens: list[int], setting: tuple[int, ...]) -> Run | None:
    """Accept tokens, comparing after each with what the twin found first; return that."""
    expected = None
    for n, token in enumerate(tokens, 1):
        sampler.accept(token)
        expected = expected or loop_at_end(tokens[:n], *setting)
        assert found(sampler) == expected, (tokens[:n], setting)
    return expected


def with_runs(rng: random.Random, n: int, letters: int, longest: int = 22, copies: int = 8) -> list[int]:
    """Random tokens in which runs of many periods begin and break off, some of more than ``copies``."""
    tokens: list[int] = []
    while len(tokens) < n:
        pattern = rng.choices(range(letters), k=rng.randint(1, longest + 2))
        tokens += rng.choices(range(letters), k=rng.randint(0, 5))
        length = int(len(pattern) * rng.uniform(0.5, copies + 1))
        tokens += (pattern * (copies + 1))[:length]
    return tokens[:n]


# -- against the twin --


@pytest.mark.parametrize("setting", SETTINGS)
def test_random_strings(setting: tuple[int, ...]) -> None:
    rng = random.Random(str(setting))
    sampler, loops = detecting(*setting), 0
    for _ in range(400):
        sampler.reset()
        n, letters = rng.randint(1, 80), rng.choice((1, 2, 2, 3, 5))
        tokens = rng.choices(range(letters), k=n) if rng.random() < 0.4 else with_runs(rng, n, letters)
        loops += follow(sampler, tokens, setting) is not None
    assert loops > 20


@given(
    st.lists(st.integers(0, 2), max_size=40),
    st.integers(1, 12).flatmap(lambda longest: st.tuples(st.just(longest), st.integers(1, longest), st.integers(2, 5))),
)
def test_any_string(tokens: list[int], setting: tuple[int, ...]) -> None:
    follow(detecting(*setting), tokens, setting)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_words_that_are_full_of_repetitions(count: int) -> None:
    setting = (100, 1, count)
    assert (follow(detecting(*setting), thue_morse(400), setting) is None) == (count > 2)  # it has no cube
    assert (follow(detecting(*setting), fibonacci(400), setting) is None) == (count > 3)  # and that one no 4th power
    longer = (100, 10, count)  # squares all the same, of long patterns
    follow(detecting(*longer), thue_morse(300), longer)
    follow(detecting(*longer), fibonacci(300), longer)


@pytest.mark.parametrize("setting", SETTINGS)
def test_rewinds_and_clones(setting: tuple[int, ...]) -> None:
    rng = random.Random(str(setting))
    sampler, tokens, loops = detecting(*setting), list[int](), 0
    ends: list[Run | None] = []  # the loop that each token completes
    source = with_runs(rng, 6000, 3, setting[0], setting[2])
    while source:
        action = rng.random()
        if action < 0.9:
            tokens.append(source.pop())
            sampler.accept(tokens[-1])
            ends.append(loop_at_end(tokens, *setting))
        elif action < 0.98:
            n = rng.randint(0, min(len(tokens), 150 if rng.random() < 0.05 else 3))
            sampler.rewind(n)
            if rng.random() < 0.8:  # and the same once more
                source += reversed(tokens[len(tokens) - n :])
            del tokens[len(tokens) - n :], ends[len(tokens) :]
        else:
            other, sampler = sampler, sampler.clone()
            for _ in range(10):
                other.accept(0)  # which the clone does not see
        expected = next(filter(None, ends), None)
        assert found(sampler) == expected
        loops += expected is not None
        if expected is not None and rng.random() < 0.1:
            sampler.reset()
            tokens, ends = [], []
            assert sampler.loop is None
    assert loops > 20


@pytest.mark.parametrize("history", ["all", "generated"])
def test_the_prompt_does_not_count(history: Any) -> None:
    sampler = detecting(
        4, 1, 3, history=history, lz_rule="paper", lz_penalty=0.15, lz_window=16, lz_buffer=4, presence_penalty=0.1
    )
    sampler.prime([7, 8] * 10)
    assert follow(sampler, [7, 8, 7, 8, 7], (4, 1, 3)) is None
    sampler.accept(8)
    assert sampler.loop == Loop(0, 2, 3)
    sampler.rewind(6)
    assert follow(sampler, [1, 2, 3, 3, 3], (4, 1, 3)) == (2, 1, 3)


# -- by hand --


def test_it_stays_until_its_last_token_is_taken_back() -> None:
    sampler = detecting(3, 1, 3)
    for token in (9, 1, 2, 1, 2, 1, 2):
        assert sampler.loop is None
        sampler.accept(token)
    loop = Loop(start=1, period=2, count=3)
    assert (sampler.loop, loop.end, sampler.position) == (loop, 7, 7)
    for token in (1, 2, 5, 5, 5, 5):
        sampler.accept(token)
    assert sampler.loop == sampler.clone().loop == loop  # as it was when it was found
    sampler.rewind(6)
    assert sampler.loop == loop
    sampler.rewind(1)
    assert sampler.loop is None
    sampler.accept(2)
    assert sampler.loop == loop


def test_a_pattern_of_copies_is_reported_by_its_root() -> None:
    setting = (10, 4, 2)
    assert follow(detecting(*setting), [9, *[1, 2] * 4], setting) == (1, 2, 4)
    assert follow(detecting(*setting), [1] * 8, setting) == (0, 1, 8)
    assert follow(detecting(*setting), [0, 1, 2] * 4, setting) == (0, 3, 4)  # "012012" twice
    assert follow(detecting(5, 4, 2), [0, 1, 2] * 20, (5, 4, 2)) is None  # no pattern of 4 or 5 tokens repeats


def test_the_shortest_of_those_that_one_token_completes() -> None:
    tokens = [1, 2, 3, 3, 1, 2, 3, 3]
    assert follow(detecting(4, 2, 2), tokens, (4, 2, 2)) == (0, 4, 2)
    assert follow(detecting(4, 1, 2), tokens, (4, 1, 2)) == (2, 1, 2)


@pytest.mark.parametrize("period", [1, 7, 63, 64, 65, 511, 512, 513])
def test_the_safe_setting(period: int) -> None:
    sampler = Sampler(N_VOCAB, Params(repetition_detection=STOP_ON_LOOP))
    text = list(np.random.default_rng(1).permutation(N_VOCAB - period)[:300] + period)
    length = next(n * period * 8 for n in range(1, 65) if n * period >= 8)  # 8 copies, and 64 tokens
    for token in [*text, *(list(range(period)) * 64)[: length - 1]]:
        sampler.accept(int(token))
        assert sampler.loop is None
    sampler.accept(period - 1)
    assert sampler.loop == (None if period > 512 else Loop(300, period, length // period))


def test_it_changes_no_token_and_needs_little() -> None:
    plain, looking = (
        Sampler(50, Params(lz_penalty=0.15)),
        Sampler(50, Params(lz_penalty=0.15, repetition_detection=STOP_ON_LOOP)),
    )
    rng = np.random.default_rng(3)
    for _ in range(100):
        logits = rng.normal(0, 3, 50).astype(np.float32)
        token = plain.sample(logits)
        assert looking.sample(logits) == token
        plain.accept(token)
        looking.accept(token)
    assert 0 < looking.memory - plain.memory < 8 * 1024
    assert plain.loop is None
