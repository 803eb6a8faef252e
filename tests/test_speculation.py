"""Speculation is exact: by enumeration, against its twin, and for a seed against decoding without a draft."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import determinism
import reference
from lzsampler import LzsError, Params, RepetitionDetection, Sampler
from lzsampler.decoding.verification import MAX_DRAFT, SPEC_MODES, SpecMode, Speculation, Verified
from reference_speculative import WRONG, Pair, Text, Twin
from samplers import assert_same, mask_of

Row = npt.NDArray[np.float32]
SHARED_NOISE: tuple[SpecMode, ...] = ("gumbel", "match")  # for these a draft changes no text


# ---- pairs of models ----


@cache
def random_row(n: int, spread: float, *what: int) -> Row:
    """Return random logits that depend on ``what``; they are not to be written."""
    row = np.random.default_rng(what).uniform(0, spread, n).astype(np.float32)
    row.flags.writeable = False
    return row


def words_of(n: int, allowed: list[int]) -> tuple[int, ...]:
    return tuple(mask_of(n, allowed).tolist())


def toy(n_draft: int = 5) -> Pair:
    """Five tokens: the last two decide the logits, and every other position forbids one token."""

    @cache
    def draft_row(last: Text) -> Row:
        other = random_row(n_draft, 3, 2, *last).copy()
        other[:5] += random_row(5, 3, 1, *last)[:n_draft]
        return other

    @cache
    def all_but(forbidden: int) -> tuple[int, ...]:
        return words_of(5, [t for t in range(5) if t != forbidden])

    def mask(text: Text) -> tuple[int, ...] | None:
        return all_but(sum(text) % 5) if len(text) % 2 else None

    return Pair(5, lambda text: random_row(5, 3, 1, *text[-2:]), lambda text: draft_row(text[-2:]), mask)


TOY = Params(
    temperature=0.9, top_k=4, top_p=0.92, presence_penalty=0.7, repetition_penalty=1.2, lz_penalty=0.3, lz_window=8,
    lz_rule="paper", lz_buffer=1,
)  # fmt: skip
LENGTH, K = 4, 3


def put_mask(sampler: Sampler, pair: Pair, text: Text) -> None:
    words = pair.mask(text)
    sampler.set_mask(None if words is None else np.array(words, np.uint32))


def run_block(speculation: Speculation, pair: Pair, text: Text, k: int) -> Verified:
    sampler, rows = speculation.sampler, []
    for _ in range(k):
        now = (*text, *speculation.drafted)
        put_mask(sampler, pair, now)
        rows.append(pair.target(now))
        assert speculation.draft(pair.draft(now)) is not None
    now = (*text, *speculation.drafted)
    put_mask(sampler, pair, now)
    return speculation.verify([*rows, pair.target(now)])


def speculated(speculation: Speculation, pair: Pair, length: int, k: int, seed: int) -> Text:
    speculation.sampler.reset()
    speculation.sampler.set_seed(seed)
    text: Text = ()
    while len(text) < length:
        made = run_block(speculation, pair, text, min(k, length - len(text) - 1))
        text += made.tokens
        if made.ended or made.looping:
            break
    return text


def plain(sampler: Sampler, pair: Pair, length: int, seed: int) -> Text:
    sampler.reset()
    sampler.set_seed(seed)
    text: Text = ()
    while len(text) < length:
        put_mask(sampler, pair, text)
        text += (sampler.step(pair.target(text)),)
    return text


# ---- exact enumeration ----


def exact(pair: Pair, params: Params, length: int) -> dict[Text, float]:
    """The probability of each text, by the twin in double precision, which knows nothing of drafts."""
    texts: dict[Text, float] = {(): 1.0}
    for _ in range(length):
        longer: dict[Text, float] = {}
        for text, probability in texts.items():
            words = pair.mask(text)
            row = reference.row(pair.target(text), text, params, None if words is None else np.array(words, np.uint32))
            low, high = row.kept
            assert low == high  # no rounding decides
            kept = row.order[:low]
            for token, share in zip(kept, row.probabilities(kept).tolist(), strict=True):
                longer[(*text, token)] = probability * share
        texts = longer
    return texts


def distance(texts: list[Text], law: dict[Text, float]) -> tuple[float, float, float]:
    """(z of chi-square, total variation, the total variation that as many true texts have on average)."""
    n, counts = len(texts), Counter(texts)
    expected = {text: n * p for text, p in law.items()}
    bins = [(counts[text], e) for text, e in expected.items() if e >= 8]
    rest = sum(e for e in expected.values() if e < 8)
    if rest > 1:
        bins.append((n - sum(count for count, _ in bins), rest))
    chi2 = sum((count - e) ** 2 / e for count, e in bins)
    df = len(bins) - 1
    variation = sum(abs(counts[text] / n - law.get(text, 0.0)) for text in {*counts, *law}) / 2
    noise = sum(math.sqrt(2 * p * (1 - p) / (math.pi * n)) for p in law.values()) / 2
    return (chi2 - df) / math.sqrt(2 * df), variation, noise


@pytest.fixture(scope="module")
def law() -> dict[Text, float]:
    law = exact(toy(), TOY, LENGTH)
    assert 30 < len(law) < 625
    assert sum(law.values()) == pytest.approx(1)
    return law


@pytest.mark.parametrize("mode", SPEC_MODES)
def test_every_text_has_its_probability(mode: SpecMode, law: dict[Text, float]) -> None:
    """Stateful penalties, a mask and truncation; the draft is another model."""
    pair = toy()
    speculation = Speculation(Sampler(5, TOY), mode=mode, max_draft=K)
    texts = [speculated(speculation, pair, LENGTH, K, seed) for seed in range(5000)]
    z, variation, noise = distance(texts, law)
    assert set(texts) <= set(law)
    assert abs(z) < 4
    assert variation < 1.3 * noise


@pytest.mark.parametrize("mode", SPEC_MODES)
def test_the_library_is_its_twin(mode: SpecMode) -> None:
    pair, twin = toy(), Twin(toy(), TOY, mode)
    speculation = Speculation(Sampler(5, TOY), mode=mode, max_draft=8)
    for seed in range(200):
        k = seed % 6
        assert speculated(speculation, pair, LENGTH + k, k, seed) == twin.text(LENGTH + k, k, seed)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_wrong_speculation_is_found_out(wrong: type[Twin], law: dict[Text, float]) -> None:
    """With as many texts as the right one passes with, below."""
    twin = wrong(toy(), TOY, "mrs")
    texts = [twin.text(LENGTH, K, seed) for seed in range(1000)]
    z, variation, noise = distance(texts, law)
    assert z > 8 or not set(texts) <= set(law)
    assert variation > 2 * noise


def test_right_speculation_is_not(law: dict[Text, float]) -> None:
    twin = Twin(toy(), TOY, "mrs")
    z, variation, noise = distance([twin.text(LENGTH, K, seed) for seed in range(1000)], law)
    assert abs(z) < 4
    assert variation < 1.3 * noise


# ---- Figure 10 of the post on speculative decoding ----

FIGURE: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors" / "worked_examples.json").read_text(encoding="utf-8")
)["speculative_toy"]


def test_figure_10() -> None:
    """Its acceptance, its residual and its result, to three standard deviations of 10,000 draws."""
    n = 10_000
    with np.errstate(divide="ignore"):
        draft, target = (np.log(np.array(FIGURE[name], np.float32)) for name in ("draft", "target"))
    speculation = Speculation(Sampler(4), mode="mrs", max_draft=1)
    drafted, accepted, out, replaced = (Counter[int]() for _ in range(4))
    for seed in range(n):
        speculation.sampler.reset()
        speculation.sampler.set_seed(seed)
        token = speculation.draft(draft)
        assert token is not None
        made = speculation.verify([target, target])
        drafted[token] += 1
        accepted[token] += made.n_accepted
        out[made.tokens[0]] += 1
        if not made.n_accepted:
            replaced[made.tokens[0]] += 1

    def near(count: int, of: int, p: float) -> bool:
        return abs(count - of * p) <= 3 * math.sqrt(of * p * (1 - p))

    for t in range(4):
        assert near(drafted[t], n, FIGURE["draft"][t])
        assert near(accepted[t], drafted[t], FIGURE["accept"][t])
        assert near(out[t], n, FIGURE["expected_output"][t])
        assert near(replaced[t], replaced.total(), FIGURE["residual"][t])
    assert near(accepted.total(), n, FIGURE["acceptance_rate"])


# ---- the same seed, the same text ----


def larger(kind: str) -> Pair:
    """A hundred tokens, of which some come again and again."""

    def target(text: Text) -> Row:
        row = random_row(100, 6, 3, *text[-1:]).copy()
        for token in text[-8:-4]:
            row[token] += 2
        row[99] = 3.5
        return row

    def draft(text: Text) -> Row:
        other = random_row(100, 6, 4, *text[-1:])
        return {"equal": target(text), "good": target(text) + 0.3 * other, "garbage": other}[kind]

    masks = [words_of(100, [t for t in range(100) if (t + rest) % 9]) for rest in range(9)]
    return Pair(100, target, draft, lambda text: masks[len(text) % 9])


SETTINGS = {
    "default": Params(temperature=0.8),
    "top-p": Params(temperature=0.8, top_p=0.9, repetition_penalty=1.1, lz_penalty=0.15),
    "greedy": Params(temperature=0, presence_penalty=0.5, dry_multiplier=0.8),
    "min-p": Params(temperature=0.7, min_p=0.05, frequency_penalty=0.2),
    "last": Params(temperature=1.3, temperature_last=True, top_k=12, ties="keep", lz_penalty=0.3, lz_min_match=3),
}


@pytest.mark.parametrize("kind", ["equal", "good", "garbage"])
@pytest.mark.parametrize("params", SETTINGS.values(), ids=SETTINGS)
def test_a_draft_changes_no_text(params: Params, kind: str) -> None:
    pair = larger(kind)
    alone = Sampler(100, params)
    text = plain(alone, pair, 40, seed=8)
    for mode, k in itertools.product(SHARED_NOISE, range(1, 9)):
        speculation = Speculation(Sampler(100, params), mode=mode, max_draft=k)
        assert speculated(speculation, pair, 40, k, seed=8) == text
        put_mask(alone, pair, text)
        put_mask(speculation.sampler, pair, text)
        assert_same(speculation.sampler, alone, pair.target(text))


@pytest.mark.parametrize("mode", SPEC_MODES)
def test_the_twin_on_more_tokens(mode: SpecMode) -> None:
    for i, params in enumerate(p for name, p in SETTINGS.items() if name != "llama"):
        pair = larger("good")
        twin = Twin(pair, params, mode, ends=[99])
        speculation = Speculation(Sampler(100, params), mode=mode, max_draft=5, ends=[99])
        for seed in range(3):
            assert speculated(speculation, pair, 30, 5 - i, seed) == twin.text(30, 5 - i, seed)


@pytest.mark.parametrize("n_draft", [1, 3, 5, 6, 40])
@pytest.mark.parametrize("mode", SPEC_MODES)
def test_vocabularies_of_two_sizes(mode: SpecMode, n_draft: int) -> None:
    pair, twin = toy(n_draft), Twin(toy(n_draft), TOY, mode)
    if n_draft < 5:  # else the mask may leave the draft nothing
        pair, twin.pair = (Pair(5, p.target, p.draft) for p in (pair, twin.pair))
    speculation = Speculation(Sampler(5, TOY), mode=mode, max_draft=3, n_draft_vocab=n_draft)
    for seed in range(100):
        assert speculated(speculation, pair, 6, 3, seed) == twin.text(6, 3, seed)


# ---- what ends a block ----


def follow(n: int, successor: Callable[[int], int]) -> Pair:
    """A model that is all but certain of the successor of the last token."""

    def row(text: Text) -> Row:
        out = np.zeros(n, np.float32)
        out[successor(text[-1] if text else 0)] = 60
        return out

    return Pair(n, row, row)


@pytest.mark.parametrize("mode", SPEC_MODES)
def test_an_end_token_ends_a_block(mode: SpecMode) -> None:
    pair = follow(10, lambda token: token + 1)
    speculation = Speculation(Sampler(10), mode=mode, max_draft=8, ends=[4])
    assert run_block(speculation, pair, (), 8) == Verified((1, 2, 3, 4), 4, ended=True, looping=False)
    speculation.sampler.reset()
    assert run_block(speculation, pair, (), 3) == Verified((1, 2, 3, 4), 3, ended=True, looping=False)
    assert speculation.sampler.position == 4
    speculation.sampler.reset()
    assert run_block(speculation, pair, (), 2) == Verified((1, 2, 3), 2, ended=False, looping=False)


@pytest.mark.parametrize("mode", SPEC_MODES)
def test_a_loop_ends_a_block(mode: SpecMode) -> None:
    """At the very token that completes it, as a loop over `step` that stops would; a loop found before does not."""
    pair = follow(10, lambda token: (token + 1) % 3)
    params = Params(repetition_detection=RepetitionDetection(max_pattern_size=5, min_pattern_size=1, min_count=3))
    speculation = Speculation(Sampler(10, params), mode=mode, max_draft=8)
    sampler = speculation.sampler
    first = run_block(speculation, pair, (), 7)
    assert first == Verified((1, 2, 0, 1, 2, 0, 1, 2), 7, ended=False, looping=False)
    second = run_block(speculation, pair, first.tokens, 8)
    assert second == Verified((0,), 1, ended=False, looping=True)
    assert sampler.loop is not None
    assert sampler.position == sampler.loop.end == 9
    third = run_block(speculation, pair, (*first.tokens, 0), 4)
    assert third == Verified((1, 2, 0, 1, 2), 4, ended=False, looping=True)


# ---- arguments ----


def test_what_it_is_made_of_is_checked() -> None:
    sampler = Sampler(10)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"mode": "eagle"}, "mode must be one of gumbel, mrs, match, got 'eagle'"),
        ({"max_draft": -1}, "max_draft must be from 0 to 32, got -1"),
        ({"max_draft": 33}, "max_draft must be from 0 to 32, got 33"),
        ({"max_draft": 2.5}, "max_draft must be an integer"),
        ({"n_draft_vocab": 0}, "n_draft_vocab must be from 1 to"),
        ({"ends": [10]}, r"ends\[0\] = 10 is not a token of a vocabulary of 10"),
    ]
    for settings, message in refused:
        with pytest.raises(ValueError, match=message):
            Speculation(sampler, **settings)
    with pytest.raises(TypeError, match="sampler must be a Sampler, got None"):
        Speculation(None)  # type: ignore[arg-type]
    assert MAX_DRAFT == 32
    dense = Speculation(sampler, mode="mrs", max_draft=32)
    assert dense.memory > Speculation(sampler, max_draft=32).memory > Speculation(sampler, max_draft=0).memory > 0


@pytest.mark.parametrize("mode", SPEC_MODES)
def test_refusals_change_nothing(mode: SpecMode) -> None:
    sampler = Sampler(4, Params(repetition_penalty=1.2))
    speculation = Speculation(sampler, mode=mode, max_draft=2, n_draft_vocab=5)
    good, nan, nothing = np.zeros(5, np.float32), np.full(5, np.nan, np.float32), np.full(5, -np.inf, np.float32)
    for n in range(3):
        before, drafted = sampler.edits(), speculation.drafted
        zeros = np.zeros((n + 1, 5), np.float32)
        first_nan, first_masked = zeros[:, :4].copy(), zeros[:, :4].copy()
        first_nan[0], first_masked[0] = np.nan, -np.inf
        shape = rf"rows must have shape \({n + 1}, 4\)"
        full = r"the block has max_draft \(2\) tokens: verify\(\) it"
        calls: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = [
            (speculation.draft, (good[:4],), ValueError, r"logits must have shape \(5,\), got \(4,\)"),
            (speculation.draft, (good, 1.5), ValueError, "p_min must be from 0 to 1, got 1.5"),
            (speculation.draft, (good, float("nan")), ValueError, "p_min must be from 0 to 1, got nan"),
            (speculation.draft_token, (4,), ValueError, "token must be from 0 to 3, got 4"),
            (speculation.verify, (np.zeros((9, 4)),), ValueError, shape),
            (speculation.verify, (zeros,), ValueError, shape),
            (speculation.verify, (first_nan,), ValueError, r"the target's logits\[0\] is nan \(4 of 4 are\)"),
            (speculation.verify, (first_masked,), LzsError, "no token is allowed: the target's logits are"),
        ]
        if n == 2:
            calls += [(speculation.draft, (good,), ValueError, full), (speculation.draft_token, (1,), ValueError, full)]
        else:
            calls.append((speculation.draft, (nan,), ValueError, r"the draft's logits\[0\] is nan \(5 of 5 are\)"))
            calls.append((speculation.draft, (nothing,), LzsError, "no token is allowed: the draft's logits are"))
        for call, arguments, error, message in calls:
            with pytest.raises(error, match=message):
                call(*arguments)
            assert speculation.drafted == drafted
            assert [a.tolist() for a in sampler.edits()] == [a.tolist() for a in before]
        if n < 2:
            assert speculation.draft(good) is not None
    sampler.accept(1)
    with pytest.raises(ValueError, match=r"the sampler was changed since the last draft: discard\(\) the block"):
        speculation.verify(np.zeros((3, 4)))
    speculation.discard()
    assert speculation.drafted == ()
    assert sampler.position == 3


def test_a_draft_that_is_not_sure_drafts_nothing() -> None:
    speculation = Speculation(Sampler(3), max_draft=4)
    row = np.array([1, 0, 0], np.float32)  # e / (e + 2) = .576
    assert speculation.draft(row, 0.58) is None
    assert speculation.drafted == ()
    assert speculation.draft(row, 0.57) is not None


@pytest.mark.parametrize("mode", SPEC_MODES)
def test_tokens_found_elsewhere(mode: SpecMode) -> None:
    """They are accepted as often as the target draws them, and the text has its distribution."""
    target = np.log(np.array([0.1, 0.2, 0.7], np.float32))
    speculation = Speculation(Sampler(3), mode=mode, max_draft=1)
    out, accepted = Counter[int](), 0
    for seed in range(4000):
        speculation.sampler.reset()
        speculation.sampler.set_seed(seed)
        speculation.draft_token(1)
        made = speculation.verify([target, target])
        out[made.tokens[0]] += 1
        accepted += made.n_accepted
        if mode != "mrs":
            assert made.tokens[0] == Sampler(3, Params(seed=seed)).sample(target)
    assert abs(accepted - 800) < 3 * math.sqrt(4000 * 0.2 * 0.8)
    for t, p in enumerate((0.1, 0.2, 0.7)):
        assert abs(out[t] - 4000 * p) < 3 * math.sqrt(4000 * p * (1 - p))


def test_discarded_drafts_leave_no_trace() -> None:
    params = Params(lz_penalty=0.3, repetition_penalty=1.2, stuck_detection=None)
    sampler, other = Sampler(50, params), Sampler(50, params)
    speculation = Speculation(sampler, max_draft=5)
    row = random_row(50, 4, 1)
    for sequence in range(20):
        for _ in range(sequence % 6):
            speculation.draft(row)
        speculation.discard()
        assert sampler.step(row) == other.step(row)
        assert_same(sampler, other, row)


def test_the_twins_uniforms() -> None:
    numbers = [determinism.uniform(3, position, domain) for position in range(500) for domain in (2, 3)]
    assert len(set(numbers)) == 1000
    assert 0 <= min(numbers) < 0.01
    assert 0.99 < max(numbers) < 1
    assert np.mean(numbers) == pytest.approx(0.5, abs=0.03)
