"""DRY: the slow twin against llama.cpp's own sampler, and the C core against the twin."""

import ctypes
import inspect
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import reference

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler import Params, Sampler  # noqa: E402
from lzsampler.llama.vocabulary import vocabulary  # noqa: E402 (needs llama_cpp)
from lzsampler.models import default_model  # noqa: E402
from lzsampler.params import History  # noqa: E402

VOCABULARY = vocabulary(default_model())
OLD = "n_ctx_train" in inspect.signature(llama_cpp._internals.LlamaSampler.add_dry).parameters
LONGEST = 4096  # the context of an older llama.cpp, which knows -1; newer ones take a number of tokens


def token_of(text: str) -> int:
    """Return the token that is this text and nothing else."""
    return next(t for t in range(VOCABULARY.n_vocab) if VOCABULARY._piece(t) == text.encode())


COLON, LETTERS = token_of(":"), [token_of(letter) for letter in "abcde"]


class LlamaDry:
    """llama.cpp's DRY sampler over the embedded model's vocabulary, asked about some candidates only."""

    def __init__(
        self, multiplier: float, base: float, allowed_length: int, last_n: int, breakers: Sequence[str] = ()
    ) -> None:
        strings = (ctypes.c_char_p * len(breakers))(*(breaker.encode() for breaker in breakers))
        more = (LONGEST,) if OLD else ()
        numbers = (multiplier, base, allowed_length, LONGEST if last_n == -1 else last_n)
        self._sampler = llama_cpp.llama_sampler_init_dry(
            VOCABULARY.pointer, *more, *numbers, strings, len(breakers)
        )  # fmt: skip

    def penalties(self, history: Sequence[int], candidates: Sequence[int]) -> dict[int, float]:
        """Return what it subtracts from the logits of those candidates that it changes."""
        llama_cpp.llama_sampler_reset(self._sampler)
        for token in history:
            llama_cpp.llama_sampler_accept(self._sampler, token)
        data = (llama_cpp.llama_token_data * len(candidates))(*((token, 0.0, 0.0) for token in candidates))
        array = llama_cpp.llama_token_data_array(data, len(candidates), -1, False)
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))
        return {data[i].id: -data[i].logit for i in range(len(candidates)) if data[i].logit != 0}

    def close(self) -> None:
        llama_cpp.llama_sampler_free(self._sampler)


def strings(alphabet: Sequence[int], longest: int) -> Iterator[tuple[int, ...]]:
    """Every string over an alphabet, up to a length."""
    for n in range(longest + 1):
        yield from itertools.product(alphabet, repeat=n)


def as_floats(penalties: dict[int, float]) -> dict[int, float]:
    return {token: float(np.float32(penalty)) for token, penalty in penalties.items()}


# ---- the twin against llama.cpp ----

ALPHABETS = [(LETTERS[:2], 10), (LETTERS[:3], 9), ([*LETTERS[:2], COLON], 9)]


@pytest.mark.parametrize(("alphabet", "longest"), ALPHABETS, ids=["two", "three", "with a breaker"])
@pytest.mark.parametrize(
    "numbers", [(1.0, 1.75, 2, -1), (0.8, 1.1, 1, -1), (2.0, 1.0, 3, 6), (1.0, 3.0, 1, 5), (1.0, 1.75, 4, 8)]
)
def test_the_twin_is_llama_cpp_on_all_short_strings(
    alphabet: list[int], longest: int, numbers: tuple[float, float, int, int]
) -> None:
    theirs = LlamaDry(*numbers, [":"])
    penalised = 0
    for history in strings(alphabet, longest):
        expected = theirs.penalties(history, alphabet)
        assert as_floats(reference.dry_penalties(history, *numbers, {COLON})) == expected, history
        penalised += bool(expected)
    assert penalised > 100
    theirs.close()


@pytest.mark.parametrize("n_letters", [1, 2, 3, 5])
@pytest.mark.parametrize("breakers", [[], [":"], ["a", ":"]])
def test_the_twin_is_llama_cpp_on_random_strings(n_letters: int, breakers: list[str]) -> None:
    rng = np.random.default_rng(n_letters)
    alphabet = [*LETTERS[:n_letters], COLON]
    ids = {token for token in alphabet if any(b.encode() in VOCABULARY._piece(token) for b in breakers)}
    for _ in range(60):
        numbers = (
            float(rng.choice([0.3, 0.8, 1.0, 5.0])),
            float(rng.choice([1.0, 1.1, 1.75, 2.0, 10.0])),
            int(rng.integers(1, 6)),
            int(rng.choice([-1, 1, 2, 3, 20, 64, 300])),
        )
        theirs = LlamaDry(*numbers, breakers)
        for _ in range(5):
            chances = rng.dirichlet(np.ones(len(alphabet)))
            history = rng.choice(alphabet, size=rng.integers(0, 200), p=chances).tolist()
            expected = theirs.penalties(history, alphabet)
            got = as_floats(reference.dry_penalties(history, *numbers, ids))
            assert {t: min(p, reference.FLOAT_MAX) for t, p in expected.items()} == got  # theirs may be infinite
        theirs.close()


@pytest.mark.parametrize(
    ("history", "numbers", "breakers", "after"),
    [  # tests/test-sampling.cpp of llama.cpp; all logits are equal before
        ([0, 1], (1.0, 1.1, 2, 4), (), [0.25] * 4),
        ([0, 1, 2, 0, 1], (1.0, 1.1, 2, 5), (), [0.296923, 0.296923, 0.109232, 0.296923]),
        ([0, 1, 3, 4, 0, 1], (1.0, 1.1, 2, 6), (3,), [0.2] * 5),
        ([0, 1, 2, 0, 1], (2.0, 1.1, 2, 5), (), [0.241818, 0.241818, 0.032727, 0.241818, 0.241818]),
        ([0, 1, 2, 3, 4, 0, 1], (1.0, 1.1, 4, 7), (), [0.2] * 5),
    ],
)
def test_published_cases(
    history: list[int], numbers: tuple[float, float, int, int], breakers: tuple[int, ...], after: list[float]
) -> None:
    penalties = reference.dry_penalties(history, *numbers, breakers)
    weights = [math.exp(-penalties.get(token, 0.0)) for token in range(len(after))]
    assert [w / sum(weights) for w in weights] == pytest.approx(after, abs=1e-5)


@pytest.mark.parametrize("off", [(0.0, 1.75, 2, -1), (1.0, 0.5, 2, -1), (1.0, 1.75, 2, 0)])
def test_off_is_off_in_both(off: tuple[float, float, int, int]) -> None:
    history = LETTERS[:2] * 5
    theirs = LlamaDry(*off)
    assert theirs.penalties(history, LETTERS) == reference.dry_penalties(history, *off) == {}
    theirs.close()


def test_an_allowed_length_of_0_differs_from_llama_cpp_in_matches_of_0_tokens() -> None:
    """There llama.cpp penalises every token of the window but the first, whether it continues anything or not."""
    theirs = LlamaDry(1.0, 2.0, 0, -1)
    for history in strings(LETTERS[:3], 6):
        expected = dict.fromkeys(history[1:], 1.0) | reference.dry_penalties(history, 1.0, 2.0, 0, -1)
        assert theirs.penalties(history, LETTERS) == expected
    theirs.close()


def test_long_repetitions_stay_finite() -> None:
    history = LETTERS[:1] * 500
    for multiplier in (1.0, 1e30):
        (penalty,) = reference.dry_penalties(history, multiplier, 1.75, 2, -1).values()
        assert 1e38 < penalty <= reference.FLOAT_MAX


# ---- the core against the twin ----

N_VOCAB = 6


def penalties_of(sampler: Sampler) -> dict[int, float]:
    tokens, repeat, bias = sampler.edits()
    assert (repeat == 1).all()
    return {int(token): -float(b) for token, b in zip(tokens, bias, strict=True)}


def twin_of(history: Sequence[int], params: Params) -> Any:
    """The twin's penalties; a power in float32 may differ from them by its rounding, and tokens by nothing."""
    edits = reference.edits(history, N_VOCAB, params)
    return pytest.approx({t: -edit.bias for t, edit in edits.items() if edit.bias}, rel=1e-6)


@pytest.mark.parametrize(("letters", "longest"), [(2, 11), (3, 9)])
@pytest.mark.parametrize(
    "fields",
    [
        {"dry_multiplier": 1.0},
        {"dry_multiplier": 0.8, "dry_base": 1.1, "dry_allowed_length": 1},
        {"dry_multiplier": 2.0, "dry_base": 1.0, "dry_allowed_length": 3},
        {"dry_multiplier": 1.0, "dry_allowed_length": 0},
        {"dry_multiplier": 1.0, "dry_allowed_length": 1, "dry_penalty_last_n": 5},
        {"dry_multiplier": 1.0, "dry_allowed_length": 1, "dry_breakers": (1,)},
        {"dry_multiplier": 1.0, "dry_allowed_length": 1, "dry_breakers": (5,), "exempt": (1,)},
    ],
)
def test_the_core_is_the_twin_on_all_short_strings(letters: int, longest: int, fields: dict[str, Any]) -> None:
    """Every string is reached by a walk through their tree, with a rewind for each step back."""
    params = Params(**fields)
    sampler = Sampler(N_VOCAB, params)
    history: list[int] = []
    penalised = 0

    def walk() -> None:
        nonlocal penalised
        expected = twin_of(history, params)
        assert penalties_of(sampler) == expected, history
        penalised += bool(expected.expected)
        if len(history) < longest:
            for token in range(letters):
                history.append(token)
                sampler.accept(token)
                walk()
                history.pop()
                sampler.rewind(1)

    walk()
    assert penalised > 100


@pytest.mark.parametrize("window", [*range(1, 21), -1])
def test_every_window(window: int) -> None:
    rng = np.random.default_rng(window + 1)
    for _ in range(12):
        params = Params(
            dry_multiplier=1.0,
            dry_allowed_length=int(rng.integers(1, 4)),
            dry_penalty_last_n=window,
            dry_breakers=tuple(rng.choice(4, size=rng.integers(0, 2)).tolist()),
            history="all",
        )
        history = rng.integers(0, rng.integers(1, 5), size=60).tolist()
        prompt = int(rng.integers(0, 40))
        sampler = Sampler(N_VOCAB, params)
        sampler.prime(history[:prompt])
        for n in range(prompt, 60):
            assert penalties_of(sampler) == twin_of(history[:n], params)
            sampler.accept(history[n])
        for _ in range(10):
            n = int(rng.integers(0, sampler.position + 1))
            sampler.rewind(n)
            del history[len(history) - n :]
            assert penalties_of(sampler) == twin_of(history, params)
            more = rng.integers(0, 3, size=rng.integers(0, 8)).tolist()
            for token in more:
                sampler.accept(token)
            history += more
            assert penalties_of(sampler.clone()) == twin_of(history, params)
        sampler.reset()
        assert penalties_of(sampler) == {}


@pytest.mark.parametrize(("history", "expected"), [("all", {2: 1.0}), ("generated", {})])
def test_the_prompt_counts_with_history_all_only(history: History, expected: dict[int, float]) -> None:
    sampler = Sampler(N_VOCAB, Params(dry_multiplier=1.0, history=history))
    sampler.prime([0, 1, 2, 5])
    sampler.accept(0)
    sampler.accept(1)
    assert penalties_of(sampler) == expected


def test_dry_beside_the_other_penalties() -> None:
    params = Params(
        dry_multiplier=0.8, dry_allowed_length=1, dry_breakers=(3,), lz_rule="paper", lz_penalty=0.3, lz_window=12,
        lz_buffer=2, repetition_penalty=1.2, frequency_penalty=0.1, presence_penalty=0.2, penalty_window=9, exempt=(1,),
        logit_bias={0: 0.5, 1: -2.0, 4: -math.inf},
    )  # fmt: skip
    rng = np.random.default_rng(5)
    history: list[int] = []
    sampler = Sampler(N_VOCAB, params)
    for _ in range(300):
        tokens, repeat, bias = sampler.edits()
        expected = reference.edits(history, N_VOCAB, params)
        assert tokens.tolist() == sorted(t for t, edit in expected.items() if edit != (1.0, 0.0))
        for token, r, b in zip(tokens.tolist(), repeat.tolist(), bias.tolist(), strict=True):
            assert (r, b) == pytest.approx(expected[token], rel=1e-5, abs=1e-5)
        history.append(int(rng.choice([0, 0, 0, 1, 2, 3, 5])))
        sampler.accept(history[-1])


@pytest.mark.parametrize("base", [1.0, 1.0000001, 1.000002, 1.1, 1.75, 2.0, 10.0, 1e30])
@pytest.mark.parametrize("multiplier", [1e-30, 0.8, 1e30])
def test_long_repetitions_are_penalised_as_far_as_a_float_goes(base: float, multiplier: float) -> None:
    sampler = Sampler(N_VOCAB, Params(dry_multiplier=multiplier, dry_base=base, dry_allowed_length=1))
    exact = float(np.float32(base)), float(np.float32(multiplier))
    for n in range(1, 400):
        sampler.accept(0)
        ours = penalties_of(sampler)
        if n > 1:
            logarithm, most = (n - 2) * math.log(exact[0]), math.log(reference.FLOAT_MAX)
            if abs(logarithm - most) > 1e-4:
                power = exact[0] ** (n - 2) if logarithm < most else reference.FLOAT_MAX
                assert ours == pytest.approx({0: min(exact[1] * power, reference.FLOAT_MAX)}, rel=5e-6)


def test_repetitions_beyond_the_64_tokens_of_llama_cpp_are_seen() -> None:
    rng = np.random.default_rng(0)
    passage = rng.integers(0, 1000, size=5000).tolist()
    sampler = Sampler(1000, Params(dry_multiplier=0.8))
    for token in [*passage, *passage[:70]]:
        sampler.accept(token)
    tokens, _, bias = sampler.edits()
    worst = int(tokens[bias.argmin()])
    assert worst == passage[70]
    assert -float(bias.min()) == pytest.approx(0.8 * 1.75**68, rel=1e-6)
