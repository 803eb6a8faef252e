"""The detector of stuck texts: what it finds, and when, against the twin that looks at all n-grams each time."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lzsampler import STOP_ON_STUCK, Params, Sampler, Stuck, StuckDetection
from reference import Stretch, first_stuck

N_VOCAB = 1000
# (threshold, ngram_size, min_count, weight, window)
SETTINGS = [
    (1, 1, 2, 1, 1),
    (3, 2, 2, 1, 8),
    (10, 3, 3, 2, 40),
    (12, 4, 2, 0, 25),
    (20, 3, 3, 4, 131072),
    (16, 8, 2, 1, 64),
    (30, 5, 4, 3, 200),
    (9, 2, 3, 9, 30),
]


def detecting(*setting: int, **others: Any) -> Sampler:
    return Sampler(N_VOCAB, Params(stuck_detection=StuckDetection(*setting), **others))


def found(sampler: Sampler) -> Stretch | None:
    stuck = sampler.stuck
    return None if stuck is None else Stretch(stuck.start, stuck.end)


def near_copies(rng: random.Random, n: int, letters: int) -> list[int]:
    """Random tokens, in which sentences come again, often with other tokens in places, as in lists."""
    tokens: list[int] = []
    while len(tokens) < n:
        sentence = rng.choices(range(letters), k=rng.randint(1, 14))
        tokens += rng.choices(range(letters), k=rng.randint(0, 6))
        for _ in range(rng.randint(1, 9)):
            tokens += [rng.randrange(letters) if rng.random() < 0.05 else token for token in sentence]
    return tokens[:n]


def first(tokens: list[int], setting: tuple[int, ...]) -> Stretch | None:
    """What the twin finds; it is asked about all of the tokens once, since it answers for the first place."""
    return first_stuck(tokens, *setting)


# -- against the twin --


@pytest.mark.parametrize("setting", SETTINGS)
def test_random_strings(setting: tuple[int, ...]) -> None:
    rng = random.Random(str(setting))
    sampler, stuck = detecting(*setting), 0
    for _ in range(60):
        sampler.reset()
        letters = rng.choice((2, 3, 5, 30))
        tokens = near_copies(rng, rng.randint(1, 130), letters)
        expected = first(tokens, setting)
        for n, token in enumerate(tokens, 1):
            sampler.accept(token)
            assert found(sampler) == (expected if expected and n >= expected.end else None), (tokens[:n], setting)
        stuck += expected is not None
    assert stuck > 5


@given(
    st.lists(st.integers(0, 2), max_size=40),
    st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(2, 4), st.integers(0, 4), st.integers(1, 40)),
)
def test_any_string(tokens: list[int], setting: tuple[int, ...]) -> None:
    sampler = detecting(*setting)
    for token in tokens:
        sampler.accept(token)
    assert found(sampler) == first(tokens, setting)


@pytest.mark.parametrize("setting", SETTINGS)
def test_rewinds_and_clones(setting: tuple[int, ...]) -> None:
    """After any mixture of them the sampler finds what a new one finds in the tokens that are left, and so on."""
    rng = random.Random(str(setting))
    sampler, tokens, stuck = detecting(*setting), list[int](), 0
    source = near_copies(rng, 5000, 6)
    while source:
        action = rng.random()
        if action < 0.9:
            tokens.append(source.pop())
            sampler.accept(tokens[-1])
        elif action < 0.98:
            n = rng.randint(0, min(len(tokens), 900 if rng.random() < 0.05 else 5))
            sampler.rewind(n)
            if rng.random() < 0.8:  # and the same once more
                source += reversed(tokens[len(tokens) - n :])
            del tokens[len(tokens) - n :]
        else:
            other, sampler = sampler, sampler.clone()
            for _ in range(10):
                other.accept(0)  # which the clone does not see
        if rng.random() < 0.05 or not source:
            fresh = detecting(*setting)
            for token in tokens:
                fresh.accept(token)
            assert found(sampler) == found(fresh)
            stuck += fresh.stuck is not None
            if fresh.stuck is not None or len(tokens) > 1200:
                if rng.random() < 0.3:
                    sampler.reset()
                    tokens = []
                else:
                    n = rng.randint(1, len(tokens))
                    sampler.rewind(n)
                    del tokens[len(tokens) - n :]
                assert sampler.position == len(tokens)
    assert stuck > 3


@pytest.mark.parametrize("taken_back", [1, 511, 512, 513, 700, 1500])
def test_what_is_taken_back_leaves_no_trace(taken_back: int) -> None:
    """Rewinds shorter and longer than what can be taken back token by token, and then the same text again."""
    rng, setting = random.Random(taken_back), (200, 4, 3, 1, 300)
    before = rng.choices(range(N_VOCAB), k=400)
    text = [*before, *before[:150], *rng.choices(range(N_VOCAB), k=900)]
    after = [*before[:40] * 12]
    sampler, fresh = detecting(*setting), detecting(*setting)
    for token in [*text, *rng.choices(range(5), k=taken_back)]:
        sampler.accept(token)
    sampler.rewind(taken_back)
    for token in text:
        fresh.accept(token)
    for token in after:
        sampler.accept(token)
        fresh.accept(token)
        assert found(sampler) == found(fresh)
    assert found(fresh) is not None


# -- by hand --


def rising(sentence: int, copies: int, first_number: int = 500) -> list[int]:
    """The same sentence of so many tokens again and again, each copy with a number of its own in the middle."""
    half = sentence // 2
    return [
        token
        for i in range(copies)
        for token in [*range(half), first_number + i, *range(half, sentence - 1)]
    ]  # fmt: skip


def test_a_sentence_under_rising_numbers() -> None:
    """The third copy begins the stretch. In a copy 19 tokens count 1 and the number -4: 15 copies do it."""
    prose = list(range(300, 400))
    sampler = detecting(225, 8, 3, 4, 4096, repetition_detection={"max_pattern_size": 512, "min_count": 2})
    for token in [*prose, *rising(20, 60)]:
        sampler.accept(token)
    assert sampler.loop is None
    assert sampler.stuck is not None
    assert sampler.stuck.start == 100 + 2 * 20
    assert 100 + (2 + 14) * 20 < sampler.stuck.end <= 100 + (2 + 15) * 20 + 8


def test_one_copy_of_a_long_text_is_not_stuck() -> None:
    text = np.random.default_rng(1).integers(0, N_VOCAB, 1000).tolist()
    sampler = Sampler(N_VOCAB, Params(stuck_detection=STOP_ON_STUCK))
    for token in [*text, *text]:
        sampler.accept(token)
    assert sampler.stuck is None
    for token in text[: STOP_ON_STUCK.threshold]:
        assert sampler.stuck is None
        sampler.accept(token)
    assert sampler.stuck == Stuck(2000, 2000 + STOP_ON_STUCK.threshold)


def test_what_left_the_window_is_forgotten() -> None:
    unit, other = list(range(100)), np.random.default_rng(2).integers(200, N_VOCAB, 400).tolist()
    for window, stuck in ((499, None), (500, Stuck(500, 580))):
        sampler = detecting(80, 4, 2, 1, window)
        for token in [*unit, *other, *unit]:
            sampler.accept(token)
        assert sampler.stuck == stuck


def test_a_list_of_short_lines_is_not_stuck() -> None:
    """Line N: item number N. Every n-gram of 8 tokens contains a number that was not there before."""
    sampler = Sampler(N_VOCAB, Params(stuck_detection=STOP_ON_STUCK))
    for i in range(200):
        for token in (1, 300 + i, 2, 3, 4, 300 + i, 5):
            sampler.accept(token)
    assert sampler.stuck is None


@pytest.mark.parametrize("history", ["all", "generated"])
def test_the_prompt_does_not_count(history: Any) -> None:
    sampler = detecting(6, 2, 2, 1, 50, history=history, lz_rule="paper", lz_penalty=0.15, lz_window=16, lz_buffer=4)
    sampler.prime([7, 8] * 10)
    for token in (7, 8, 7, 8, 7, 8, 7):
        sampler.accept(token)
        assert sampler.stuck is None or sampler.position == 8
    sampler.accept(8)
    assert sampler.stuck == Stuck(2, 8)


def test_it_stays_until_its_last_token_is_taken_back() -> None:
    sampler = detecting(4, 2, 2, 1, 50)
    for token in (9, 1, 2, 3, 4, 1, 2, 3):
        assert sampler.stuck is None
        sampler.accept(token)
    sampler.accept(4)
    stuck = Stuck(start=5, end=9)
    assert sampler.stuck == stuck
    for token in range(600, 620):
        sampler.accept(token)
    assert sampler.stuck == sampler.clone().stuck == stuck
    sampler.rewind(20)
    assert sampler.stuck == stuck
    sampler.rewind(1)
    assert sampler.stuck is None
    sampler.accept(4)
    assert sampler.stuck == stuck
    sampler.reset()
    assert sampler.stuck is None


def test_step_tells_of_it() -> None:
    sampler = Sampler(3, Params(temperature=0, stuck_detection={"threshold": 4, "ngram_size": 2, "min_count": 2}))
    row = np.array([1, 3, 2], np.float32)
    pointer = sampler._row(row)
    assert [sampler.step_at(pointer)[1] for _ in range(6)] == [False] * 4 + [True] * 2
    assert sampler.stuck == Stuck(1, 5)


def test_it_changes_no_token_and_its_memory_does_not_grow() -> None:
    plain, looking = (
        Sampler(50, Params(lz_penalty=0.15)),
        Sampler(50, Params(lz_penalty=0.15, stuck_detection=STOP_ON_STUCK)),
    )
    rng = np.random.default_rng(3)
    memory = looking.memory - plain.memory
    for _ in range(200):
        logits = rng.normal(0, 3, 50).astype(np.float32)
        token = plain.sample(logits)
        assert looking.sample(logits) == token
        plain.accept(token)
        looking.accept(token)
        assert looking.memory - plain.memory == memory
    assert 0 < memory < 64 * 1024
    assert plain.stuck is None


# -- settings --


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"threshold": -1}, "threshold must be from 0 to 131072"),
        ({"threshold": 131073}, "threshold must be"),
        ({"threshold": 9, "ngram_size": 0}, "ngram_size must be from 1 to 64"),
        ({"threshold": 9, "ngram_size": 65}, "ngram_size must be"),
        ({"threshold": 9, "min_count": 1}, "min_count must be from 2 to"),
        ({"threshold": 9, "weight": -1}, "weight must be"),
        ({"threshold": 9, "window": 0}, "window must be"),
        ({"threshold": 9, "window": 131073}, "window must be"),
        ({"threshold": 1.5}, "threshold"),
    ],
)
def test_ranges(fields: dict[str, Any], message: str) -> None:
    for make in (lambda: StuckDetection(**fields), lambda: Params(stuck_detection=fields)):
        with pytest.raises(ValueError, match=message):
            make()


def test_it_is_one_or_a_dict() -> None:
    assert Params(stuck_detection={"threshold": 128}) == Params(stuck_detection=STOP_ON_STUCK)
    for off in (None, {}, {"threshold": 0}, StuckDetection(weight=9)):
        assert Params(stuck_detection=off).stuck_detection is None
    with pytest.raises(ValueError, match="stuck_detection takes threshold, ngram_size"):
        Params(stuck_detection={"size": 3})
    value: Any = "yes"
    with pytest.raises(TypeError, match="stuck_detection must be a StuckDetection, a dict or None, got 'yes'"):
        Params(stuck_detection=value)


def test_it_cannot_change_between_steps() -> None:
    sampler = Sampler(9, Params(stuck_detection=STOP_ON_STUCK))
    with pytest.raises(ValueError, match="stuck_detection cannot change"):
        sampler.set_params(Params())
