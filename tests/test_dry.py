"""DRY: the slow twin against llama.cpp's own sampler, and the C core against the twin."""

import ctypes
import inspect
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import reference

llama_cpp = pytest.importorskip("llama_cpp")

from lzsampler.llama.vocabulary import vocabulary  # noqa: E402 (needs llama_cpp)
from lzsampler.models import default_model  # noqa: E402

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
            VOCABULARY._vocab, *more, *numbers, strings, len(breakers)
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
