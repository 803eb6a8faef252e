"""The detector, which sees a text token by token, and the scanner, which sees all of it, agree on what is a loop.

Let [start, start + length) be a run of a text with the primitive period q. The text ends in `min_count` copies of a
pattern of p tokens exactly when p is a multiple of some such q and the run, cut off where the text ends, is at least
`min_count` p long: the root of the pattern is the period of a run, and a run repeats with every multiple of its period.
So a run completes a loop with its token start + min_count p, where p is the least multiple of q that is not below
`min_pattern_size`, unless p is above `max_pattern_size` or the run ends before. The first of these tokens, and of those
that it completes the one with the least p (two runs cannot have the same: a pattern has one root), is where the
detector has to say so, with the run's start and period. It has to say nothing before, nor if there is none.
"""

import json
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lzsampler import STOP_ON_LOOP, Params, RepetitionDetection, Sampler
from lzsampler.auditing.scan import Runs, runs
from lzsampler.decoding.config import GenerationConfig
from lzsampler.models import default_model, default_prompts
from words import fibonacci, thue_morse

N_VOCAB = 1000
# max_pattern_size, min_pattern_size, min_count
SETTINGS = [
    RepetitionDetection(*setting)
    for setting in [
        (1, 1, 2),
        (4, 1, 2),
        (9, 3, 2),
        (7, 7, 2),
        (12, 5, 3),
        (30, 1, 3),
        (24, 8, 4),
        (64, 1, 5),
        (16, 2, 8),
        (512, 8, 8),
        (40, 1, 20),
        (100, 4, 20),
    ]
]


class Found(NamedTuple):
    """What the detector reports, and at which token: ``n`` of them were accepted by then."""

    n: int
    start: int
    period: int
    copies: int


class Completed(NamedTuple):
    n: int
    pattern: int
    start: int
    period: int


def completed(found: Runs, setting: RepetitionDetection) -> Found | None:
    """What the runs of a text say about it: the loop that is complete first."""
    loops = []
    for start, length, period in zip(*(column.tolist() for column in found), strict=True):
        pattern = -(-setting.min_pattern_size // period) * period
        n = start + setting.min_count * pattern
        if pattern <= setting.max_pattern_size and n <= start + length:
            loops.append(Completed(n, pattern, start, period))
    first = min(loops, default=None)
    if first is None:
        return None
    return Found(first.n, first.start, first.period, (first.n - first.start) // first.period)


def scanned(tokens: Sequence[int], setting: RepetitionDetection) -> Runs:
    return runs(
        np.array(tokens, np.int32), min_copies=setting.min_count, min_length=0, max_period=setting.max_pattern_size
    )


def detected(sampler: Sampler, tokens: Sequence[int]) -> Found | None:
    """What the detector says about all of a text, and when it did so first."""
    sampler.reset()
    said = None
    for n, token in enumerate(tokens, 1):
        sampler.accept(token)
        loop = sampler.loop
        if loop is not None and said is None:
            said = Found(n, loop.start, loop.period, loop.count)
    return said


def detecting(setting: RepetitionDetection, n_vocab: int = N_VOCAB) -> Sampler:
    return Sampler(n_vocab, Params(repetition_detection=setting))


def with_loops(rng: random.Random, size: int, setting: RepetitionDetection) -> list[int]:
    """Noise with runs planted in it: of any period, about as many copies as count or far fewer, a token of some wrong,
    some of them cut by the next one, copies of copies."""
    letters = rng.choice((1, 2, 3, 4, 10, N_VOCAB))
    tokens: list[int] = []
    while len(tokens) < size:
        tokens += rng.choices(range(letters), k=rng.choice((0, 1, rng.randrange(20))))
        unit = rng.choices(range(letters), k=rng.randint(1, min(setting.max_pattern_size + 2, 2 ** rng.randint(1, 7))))
        if rng.random() < 0.2:
            unit = unit * rng.randint(2, 4) + unit[: rng.randrange(2)]
        most = setting.min_count * max(1, -(-setting.min_pattern_size // len(unit)))
        length = max(
            1, int(len(unit) * most * rng.choice((rng.random(), rng.uniform(0.9, 1.1), 1.0))) - rng.randrange(2)
        )
        run = (unit * (length // len(unit) + 1))[:length]
        if rng.random() < 0.3:
            run[rng.randrange(length)] = rng.randrange(letters)
        tokens += run
    return tokens[:size]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_texts_with_loops_planted_in_them(setting: RepetitionDetection) -> None:
    rng = random.Random(str(setting))
    sampler = detecting(setting)
    loops = 0
    for _ in range(300):
        tokens = with_loops(rng, rng.choice((rng.randrange(40), rng.randrange(400), 1500)), setting)
        said = detected(sampler, tokens)
        assert said == completed(scanned(tokens, setting), setting), (tokens, setting)
        loops += said is not None
    assert 30 < loops < 300


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_every_beginning_of_a_text(setting: RepetitionDetection) -> None:
    """The scanner is given what the detector has seen, and nothing more."""
    rng = random.Random(str(setting))
    sampler = detecting(setting)
    loops = 0
    for _ in range(60):
        tokens = with_loops(rng, rng.randrange(2 * setting.min_count * setting.min_pattern_size + 80), setting)
        sampler.reset()
        for n in range(1, len(tokens) + 1):
            sampler.accept(tokens[n - 1])
            loop = sampler.loop
            said = None if loop is None else Found(n, loop.start, loop.period, loop.count)
            assert said == completed(scanned(tokens[:n], setting), setting)
            if said is not None:
                loops += 1
                break
    assert loops > 5


@given(
    st.lists(st.integers(0, 2), max_size=60),
    st.integers(1, 12).flatmap(
        lambda longest: st.builds(RepetitionDetection, st.just(longest), st.integers(1, longest), st.integers(2, 5))
    ),
)
def test_any_text(tokens: list[int], setting: RepetitionDetection) -> None:
    assert detected(detecting(setting), tokens) == completed(scanned(tokens, setting), setting)


@pytest.mark.parametrize("min_pattern_size", [1, 2, 5, 10, 30, 100])
@pytest.mark.parametrize("min_count", [2, 3, 4])
def test_words_of_theory(min_pattern_size: int, min_count: int) -> None:
    setting = RepetitionDetection(500, min_pattern_size, min_count)
    sampler = detecting(setting)
    for word in (fibonacci(3000), thue_morse(3000), [0] * 500, [0] * 99 + [1] + [0] * 500):
        for tokens in (word, word[::-1], word[7:]):
            assert detected(sampler, tokens) == completed(scanned(tokens, setting), setting)


@pytest.mark.parametrize("period", [1, 3, 8, 100, 511, 512, 513])
def test_a_long_text_with_one_loop(period: int) -> None:
    rng = np.random.default_rng(period)
    unit = rng.permutation(N_VOCAB)[:period].tolist()
    for extra in (0, 3, 40):
        tokens = [*rng.integers(0, N_VOCAB, 9000 + extra).tolist(), *unit * (70 if period < 8 else 9)]
        said = detected(detecting(STOP_ON_LOOP), tokens)
        assert said == completed(scanned(tokens, STOP_ON_LOOP), STOP_ON_LOOP)
        assert (said is None) == (period > 512)


def test_texts_of_the_embedded_model() -> None:
    pytest.importorskip("llama_cpp")
    from lzsampler.decoding.generate import generate
    from lzsampler.llama.model import Model

    loops = 0
    with Model(default_model(), n_threads=1) as model:
        for line in default_prompts().read_text(encoding="utf-8").splitlines()[:6]:
            prompt = json.loads(line)["prompt"]
            tokens = generate(model, prompt, GenerationConfig(Params(temperature=0.0), max_tokens=400)).tokens
            for setting in [STOP_ON_LOOP, *SETTINGS]:
                said = detected(detecting(setting, model.n_vocab), tokens)
                assert said == completed(scanned(tokens, setting), setting)
                loops += said is not None
    assert loops > 10
