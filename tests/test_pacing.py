"""The length of blocks that is chosen by itself, with costs and acceptance that are given: no clock runs here."""

import random
from collections import Counter

import pytest

from lzsampler.decoding.lookup import Lookup
from lzsampler.decoding.pacing import AUTO_MOST, Pace, SharedPace

# Seconds of a call with n tokens against one with 1, as measured on a CPU (docs/speculative.md has where).
BF16 = {1: 1.0, 2: 1.32, 3: 1.6, 4: 1.84, 5: 1.86, 8: 1.96, 17: 2.7}
Q8_0 = {1: 1.0, 2: 2.14, 4: 2.66, 5: 3.18, 8: 4.08, 17: 6.9}


def on_line(points: dict[int, float], n: int) -> float:
    low, high = max(m for m in points if m <= n), min(m for m in points if m >= n)
    return points[low] + (points[high] - points[low]) * (n - low) / max(high - low, 1)


class Run:
    """A text of made-up calls: each drafted token stands with one probability; now and then the machine is busy."""

    def __init__(
        self, cost: dict[int, float], share: float, draft_s: float, *, busy: float = 0.0, seed: int = 1
    ) -> None:
        self.pace, self.cost, self.share, self.draft_s, self.busy = Pace(AUTO_MOST), cost, share, draft_s, busy
        self.random = random.Random(seed)
        self.seconds, self.tokens, self.lengths, self.glances = 0.0, 0, Counter[int](), 0
        self.rest, self.rested = 0, 0

    def call(self, kind: int = 0, room: int = AUTO_MOST) -> None:
        if self.rest:  # a call that nobody times
            self.rest -= 1
            self.rested += 1
            self.lengths[0] += 1
            self.seconds += on_line(self.cost, 1)
            self.tokens += 1
            self.pace.passed()
            return
        k = self.pace.length(kind, room)
        assert 0 <= k <= room
        self.lengths[k] += 1
        slow = 9.0 if self.random.random() < self.busy else self.random.uniform(0.95, 1.05)
        took = slow * on_line(self.cost, k + 1)
        self.seconds += took + k * self.draft_s
        if k == 0:
            glance = self.pace.glance(kind, room)
            assert 0 <= glance <= room
            if glance:
                self.glances += 1
                self.seconds += glance * self.draft_s
                self.pace.glancing(kind, glance * self.draft_s)
                self.pace.glanced(kind, glance, self.stood(glance))
            self.pace.stepped(took)
            self.tokens += 1
            self.rest = self.pace.rest(kind)
            return
        accepted = self.stood(k)
        self.tokens += accepted + 1
        self.pace.judged(kind, k, accepted, accepted + 1, k * self.draft_s, took)

    def stood(self, k: int) -> int:
        return next((i for i in range(k) if self.random.random() >= self.share), k)

    def until(self, tokens: int) -> float:
        """Return how many times as fast as one token a call, which takes a second."""
        while self.tokens < tokens:
            self.call()
        return self.tokens / self.seconds


def best_speed(cost: dict[int, float], share: float, draft_s: float) -> float:
    def speed(k: int) -> float:
        return sum(share**i for i in range(k + 1)) / (on_line(cost, k + 1) + k * draft_s)

    return max(map(speed, range(AUTO_MOST + 1)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("cost", "share"), [(BF16, 0.7), (BF16, 0.9), (Q8_0, 0.9)])
def test_it_comes_near_the_best_length(cost: dict[int, float], share: float, seed: int) -> None:
    run = Run(cost, share, 0.05, seed=seed)
    assert run.until(2000) > 0.9 * best_speed(cost, share, 0.05) > 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("cost", "share", "draft_s"), [(Q8_0, 0.3, 0.05), (BF16, 0.7, 1.0), (Q8_0, 0.0, 0.0)])
def test_where_no_draft_pays_next_to_nothing_is_lost(
    cost: dict[int, float], share: float, draft_s: float, seed: int
) -> None:
    run = Run(cost, share, draft_s, seed=seed)
    assert run.until(512) > 0.95
    assert run.until(4000) > 0.97
    assert run.lengths[0] > 0.97 * run.lengths.total()
    assert run.pace._tokens == run.tokens == sum(run.pace._n_calls.values()) + run.tokens - run.lengths.total()
    assert 0.7 * run.tokens < run.rested < 0.8 * run.tokens  # six calls of eight ask for nothing
    assert run.pace.promised is not None
    assert run.pace.promised < 1


def test_the_next_text_begins_with_what_the_last_one_found_out() -> None:
    slow = Run(Q8_0, 0.3, 0.05)
    slow.until(64)
    worst = []
    for seed in range(20):  # texts of 64 tokens: few have a new try, and nothing is measured anew
        again = Run(Q8_0, 0.3, 0.05, seed=seed)
        again.pace = slow.pace.renewed()
        worst.append(again.until(64))
        slow = again
    assert sorted(worst)[5] > 0.98
    assert slow.pace.speed is not None
    assert slow.pace.promised is not None
    assert slow.pace.promised < 1
    fast = Run(BF16, 0.95, 0.05)
    fast.until(400)
    again = Run(BF16, 0.95, 0.05)
    again.pace = fast.pace.renewed()
    again.call()
    assert again.lengths[0] == 0
    assert max(again.lengths) > 3


def test_glances_see_that_a_text_has_become_easy_to_draft() -> None:
    for seed in range(10):
        run = Run(Q8_0, 0.3, 0.02, seed=seed)
        run.until(1500)  # the next try of a block is up to 512 calls away
        assert run.glances > 30
        run.share = 0.97
        before = run.seconds, run.tokens
        run.until(2000)
        assert (run.tokens - before[1]) / (run.seconds - before[0]) > 1.2


def test_glances_take_half_a_percent() -> None:
    costly = Run(Q8_0, 0.3, 0.3)
    costly.until(5000)
    assert 0 < costly.pace._glanced < 0.006 * costly.seconds


def test_a_machine_that_becomes_slower_while_drafts_are_paused_starts_none() -> None:
    run = Run(Q8_0, 0.5, 0.01)
    run.until(400)
    blocks = run.lengths.total() - run.lengths[0]
    run.cost = {n: 1.7 * seconds for n, seconds in Q8_0.items()}
    run.until(1000)
    assert run.lengths.total() - run.lengths[0] < blocks + 8


def test_one_slow_call_at_the_beginning_is_no_measure() -> None:
    """The first calls without a draft can be slow, as weights come from disk, so they are soon repeated."""
    run = Run(Q8_0, 0.5, 0.01)
    for _ in range(2):
        run.pace.stepped(2.5)
    assert run.until(300) > 0.85


def test_a_renewed_pace_leaves_the_old_one_alone() -> None:
    old = Run(BF16, 0.8, 0.05)
    old.until(100)
    speed, promised = old.pace.speed, old.pace.promised
    new = Run(BF16, 0.1, 0.05)
    new.pace = old.pace.renewed()
    new.until(200)
    assert (old.pace.speed, old.pace.promised) == (speed, promised)


def test_long_blocks_are_tried_where_short_ones_stand_and_do_not_pay() -> None:
    steep = {1: 1.0, 2: 2.4, 4: 4.4, 7: 4.9, 9: 5.2, 17: 7.0}
    run = Run(steep, 0.99, 0.0)
    assert run.until(500) > 1.4
    never = Run({1: 1.0, **{n: n * 1.05 for n in (2, 4, 9, 17)}}, 0.99, 0.0)
    assert never.until(500) > 0.95


def test_drafts_that_come_to_nothing_are_paused() -> None:
    """As where the draft model is never sure enough: no block is judged, and its time is lost all the same."""
    pace, proposed = Pace(AUTO_MOST), 0
    for _ in range(1000):
        if pace.length(0, 8):
            pace.wasted(0, 0.3)
            proposed += 1
        pace.stepped(1.0)
    assert 10 < proposed < 100


def test_a_busy_machine_does_not_turn_it_off() -> None:
    run = Run(BF16, 0.8, 0.02, busy=0.1)
    run.until(3000)
    assert run.lengths[0] < 0.1 * run.lengths.total()


def test_it_goes_back_to_what_has_begun_to_pay() -> None:
    run = Run(Q8_0, 0.1, 0.02)
    run.until(1000)
    run.share, before = 0.95, run.lengths[0]
    run.until(4000)
    assert run.lengths[0] - before < 900
    assert run.pace.promised is not None
    assert run.pace.promised > 1.2
    run.share, before = 0.0, run.lengths[0]
    run.until(6000)
    assert run.lengths[0] - before > 1700


def test_kinds_are_judged_apart() -> None:
    """Of two kinds the one that stands is drafted, and promises more."""
    run = Run(BF16, 0.0, 0.0)
    for _ in range(300):
        run.share = 0.0
        run.call(1)
        run.share = 0.95
        run.call(5)
    assert run.pace.rate(5, 8) > 1.5
    assert run.pace.rate(1, 8) < 1
    assert run.pace.rate(2, 8) == float("inf")  # never tried


def test_the_room_and_a_fixed_length_are_kept_to() -> None:
    run = Run(BF16, 0.95, 0.0)
    for _ in range(200):
        run.call(room=2)
    assert max(run.lengths) == 2
    fixed = Pace(5, 5)
    assert [fixed.length(0, room) for room in (9, 5, 2, 0)] == [5, 5, 2, 0]
    assert fixed.speed is None
    fixed.judged(0, 5, 2, 3, 0.1, 1.0)
    assert fixed.speed is None  # against what is not known
    fixed.stepped(1.0)
    fixed.stepped(1.0)
    assert fixed.speed == pytest.approx(5 / 3.1)


def test_clocks_that_stand_still_or_go_back_do_no_harm() -> None:
    for seconds in (0.0, -1.0):
        pace = Pace(AUTO_MOST)
        for _ in range(600):
            k = pace.length(0, 8)
            if k:
                pace.judged(0, k, k, k + 1, seconds, seconds)
            else:
                pace.stepped(seconds)
        assert pace.speed is not None
        assert pace.promised is not None


# ---- what a lookup finds ----


def test_a_lookup_finds_what_followed() -> None:
    lookup = Lookup()
    lookup.append([1, 2, 3, 4, 5, 9, 2, 3, 7, 1, 2, 3])
    assert lookup.find(1, 4) == (3, [4, 5, 9, 2])
    assert lookup.find(3, 12) == (3, [4, 5, 9, 2, 3, 7, 1, 2, 3, 4, 5, 9])  # it goes on with itself
    assert lookup.find(4, 1) == (0, [])
    lookup.rewind(4)
    assert lookup.n == 8
    assert lookup.find(2, 2) == (2, [4, 5])
    lookup.append([4] * 3)
    assert lookup.find(2, 3) == (2, [4, 4, 4])
    near = Lookup(window=3)
    near.append([1, 2, 3, 4, 1, 2])
    assert near.find(1, 1) == (0, [])


def test_what_a_lookup_refuses() -> None:
    lookup = Lookup()
    lookup.append([1, 2])
    for refused, message in (
        (lambda: Lookup(0), "window must be from 1"),
        (lambda: lookup.rewind(3), "n must be from 0 to 2, the number of tokens, got 3"),
        (lambda: lookup.find(0, 1), "least must be from 1 to 65535, got 0"),
        (lambda: lookup.find(1, 0), "n must be from 1"),
    ):
        with pytest.raises(ValueError, match=message):
            refused()


# ---- several texts in one call ----


class SharedRun:
    """Texts that are decoded in one call, which takes a fixed time and one for each of its tokens."""

    def __init__(self, n_texts: int, each: float, share: float, draft_s: float = 0.0, seed: int = 1) -> None:
        self.n_texts, self.each, self.share, self.draft_s = n_texts, each, share, draft_s
        self.pace = SharedPace(AUTO_MOST, None, n_texts * (1 + AUTO_MOST))
        self.random = random.Random(seed)
        self.seconds, self.tokens, self.lengths, self.glances = 0.0, 0, Counter[int](), 0

    def call(self) -> None:
        k = self.pace.shared_length([(0, AUTO_MOST)] * self.n_texts, self.n_texts)
        self.lengths[k] += 1
        rows = self.n_texts * (k + 1)
        took = self.random.uniform(0.95, 1.05) * (1 + self.each * (rows - 1))
        self.seconds += took + self.n_texts * k * self.draft_s
        if k == 0:
            self.tokens += self.n_texts
            self.pace.went(self.n_texts, took)
            return
        stood = [next((i for i in range(k) if self.random.random() >= self.share), k) for _ in range(self.n_texts)]
        added = sum(stood) + self.n_texts
        self.tokens += added
        blocks = [(0, k, n) for n in stood]
        self.pace.judged_together(self.n_texts, rows, blocks, {0: self.n_texts * k * self.draft_s}, added, took)

    def speed(self, calls: int = 300) -> float:
        """Return how many times as fast as one token a call for each text."""
        while sum(self.lengths.values()) < calls:
            self.call()
        return self.tokens / self.n_texts * (1 + self.each * (self.n_texts - 1)) / self.seconds


def test_blocks_shrink_with_the_number_of_texts() -> None:
    """Where a call takes longer with every token of it, as on a processor."""
    usual = []
    for n_texts in (1, 4, 16, 64):
        run = SharedRun(n_texts, each=0.15, share=0.7, draft_s=0.005)
        assert run.speed() > 0.97
        usual.append(run.lengths.most_common(1)[0][0])
    assert usual == sorted(usual, reverse=True)
    assert usual[0] >= 3
    assert usual[-1] == 0


@pytest.mark.parametrize("n_texts", [1, 3, 16])
def test_where_tokens_of_a_call_are_free_blocks_are_long(n_texts: int) -> None:
    run = SharedRun(n_texts, each=0.0, share=0.8)
    assert run.speed() > 3
    assert run.pace.speed == pytest.approx(run.speed(), rel=0.1)
    assert run.pace.promised is not None
    assert run.pace.promised > 3


@pytest.mark.parametrize("share", [0.05, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_a_draft_that_does_not_pay_costs_next_to_nothing(share: float, seed: int) -> None:
    assert SharedRun(8, each=0.3, share=share, draft_s=0.01, seed=seed).speed() > 0.97


def test_a_call_has_no_more_rows_than_there_are() -> None:
    pace = SharedPace(8, 8, 24)
    assert pace.shared_length([(0, 8)] * 5, 5) == 3
    assert pace.shared_length([(0, 2)] * 5, 5) == 2
    assert pace.shared_length([], 5) == 0
    assert pace.shared_length([(0, 8)] * 24, 24) == 0
