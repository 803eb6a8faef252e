"""`Pace`: computes how many tokens to draft, from measured times and from the numbers of accepted tokens.

`Pace` reads no clock: its callers pass the times.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

AUTO_MOST = 16
"""The longest block that `Pace` chooses."""

_TIMES = 15  # number of latest measurements that count
_FEW = 3  # with fewer measurements the shortest counts, because other processes may have slowed the rest
_MEMORY = 0.97  # each judged token multiplies the weight of earlier tokens at its position of a block by this factor
_HOPE = (1.4, 2.0)  # (accepted tokens, judged tokens), assumed before the first measurement
_FIRST = 3  # length limit of the first block; later blocks may be twice as long as the longest so far
_PLAIN_FIRST = 2  # calls without a draft before the first block, to measure their time
_PLAIN_AGAIN = 4, 64  # blocks until the next call without a draft: 4, doubled each time up to 64
_NEIGHBOUR = 32  # every 32nd block tries a length next to the best length
_AGED = 4.0  # when a paused draft is tried again, its earlier judgements count as at most this many tokens
_CREDIT = 4  # drafting pauses once drafts that gave no block have taken the time of 4 calls without a draft
_MARGIN = 1.05  # a gain in speed by a smaller factor may be noise, and does not count
_TINY = 1e-12  # the least time in seconds, which avoids a division by 0
# A draft that does not pay is tried again after `_PAUSE` calls. Each try doubles the pause, up to `_LONGEST_PAUSE`.
_PAUSE, _LONGEST_PAUSE = 512, 1024
_PAUSE_TOGETHER, _LONGEST_TOGETHER = 32, 512  # the same numbers for texts that are decoded together
_GLANCE = 8  # calls without a draft between two glances (defined in `Pace`)
_GLANCING = 0.005  # the most time of glances, as a share of the time of calls without a draft


@dataclass
class _Kind:
    """The measurements of one kind of draft."""

    # Numbers of accepted and of judged tokens at each position of a block. Newer tokens have more weight.
    stood: list[float] = field(default_factory=list)
    judged: list[float] = field(default_factory=list)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=_TIMES))  # latest seconds per drafted token
    seconds: float = 0.0  # median of ``times``, or their minimum while there are few
    wasted: float = 0.0  # seconds of all drafts that gave no block
    owed: float = 0.0  # seconds of drafts that gave no block, since the last block or the last new try
    lost: float = 0.0  # like ``owed``, but a new try lowers ``lost`` only to the limit at which drafting pauses
    drafted: int = 0
    blocks: int = 0
    longest: int = 0  # tokens of the longest block
    all_stood: bool = False  # whether all tokens of the last block were accepted
    waited: int = 0
    pause: int = _PAUSE
    glances_stood: int = 0  # number of consecutive glances whose tokens all appeared in the text
    glanced: float = 0.0  # seconds of glances
    plain: float = 0.0  # seconds of calls without a draft

    def took(self, drafted: int, seconds: float) -> None:
        """Record the time of drafting tokens that will be judged."""
        self.drafted += drafted
        self.times.append((seconds + self.owed) / drafted)
        self.wasted -= self.owed  # because ``times`` now contains these seconds
        self.owed = self.lost = 0.0
        self.seconds = _typical(self.times)

    def tried(self, drafted: int, accepted: int) -> None:
        """Record how many tokens of a block were accepted."""
        self.longest = max(self.longest, drafted)
        self.all_stood = accepted == drafted
        self.saw(drafted, accepted)

    def saw(self, drafted: int, accepted: int) -> None:
        """Record how many tokens of a block or of a glance appeared in the text."""
        while len(self.judged) < drafted:
            self.stood.append(_HOPE[0])
            self.judged.append(_HOPE[1])
        for i in range(min(accepted + 1, drafted)):
            self.stood[i] = _MEMORY * self.stood[i] + (i < accepted)
            self.judged[i] = _MEMORY * self.judged[i] + 1

    def chances(self, n: int) -> Iterator[float]:
        """Yield, for each of the first n positions of a block, the probability that all tokens up to there are
        accepted.
        """
        chance, share = 1.0, _HOPE[0] / _HOPE[1]
        for i in range(n):
            if i < len(self.judged):  # a position without judgements gets the share of the position before it
                share = self.stood[i] / self.judged[i]
            chance *= share
            yield chance

    def age(self) -> None:
        """Lower the weight of old judgements, so that new ones count more."""
        for i, judged in enumerate(self.judged):
            if judged > _AGED:
                self.stood[i] *= _AGED / judged
                self.judged[i] = _AGED

    def renewed(self) -> "_Kind":
        """Return a copy for the next text: the measurements stay, and the statistics of a text are 0 again."""
        known = _Kind(self.stood[:], self.judged[:], deque(self.times, _TIMES), self.seconds, longest=self.longest)
        known.waited, known.pause = self.waited, self.pause
        known.glanced, known.plain = self.glanced, self.plain
        known.age()
        return known


class Pace:
    """Chooses the length of blocks that adds the most tokens a second; the length may be 0.

    A block of k tokens adds E(k) = 1 + a1 + a1 a2 + ... + a1 ... ak tokens on average. a_i is the probability that the
    token at position i is accepted if all tokens before it are. A call of the target with n tokens takes v(n) seconds,
    and a draft takes d seconds a token. So the block takes v(k + 1) + k d seconds. a_i, v and d are running estimates
    (Leviathan et al. 2023, arXiv 2211.17192, section 3.3, but with measured costs and a probability for each position).

    While drafting does not pay, a block is tried now and then. While it pays, a call without a draft is made now and
    then. Between two tried blocks there are glances. A glance drafts tokens, which takes little time, and compares them
    with the tokens that the text gets without a draft. So a glance shows how many tokens would have been accepted,
    without an extra call of the target.

    ``most``: the longest block. ``fixed``: a fixed length of blocks; only `speed` then uses the measurements. Each
    draft has a kind, any int. All kinds share the times of the target's calls. All other measurements are separate for
    each kind. ``rows``: the most tokens of a call; None is ``most`` + 1.
    """

    def __init__(self, most: int, fixed: int | None = None, rows: int | None = None) -> None:
        self.most, self.fixed, self._rows = most, fixed, most + 1 if rows is None else rows
        self._calls: dict[int, deque[float]] = {}  # number of tokens in a call -> seconds of such calls
        self._typical: dict[int, float] = {}  # number of tokens in a call -> typical seconds (`_typical`)
        self._n_calls: Counter[int] = Counter()
        self._costs: list[float] = []  # element n: seconds of a call with n tokens; empty if outdated
        self._tokens = 0
        self._blocks = 0
        self._plain_at = 0  # number of blocks at the last call without a draft
        self._plain_again = _PLAIN_AGAIN[0]  # number of blocks between two calls without a draft
        self._in_row = 0  # calls without a draft since the last block
        self._drift = 1.0  # factor by which calls without a draft slowed down since the last block; used for all calls
        self._glanced = 0.0  # seconds of glances
        self._kinds: dict[int, _Kind] = {}

    def renewed(self) -> "Pace":
        """Return a pace for the next text: the measurements stay, and the statistics of a text are 0 again."""
        pace = Pace(self.most, self.fixed, self._rows)
        pace._calls = {n: deque(times, _TIMES) for n, times in self._calls.items()}
        pace._typical = dict(self._typical)
        pace._plain_again, pace._in_row, pace._drift = self._plain_again, self._in_row, self._drift
        pace._kinds = {kind: of.renewed() for kind, of in self._kinds.items()}
        return pace

    # -- recording what happened --

    def stepped(self, seconds: float) -> None:
        """Record the time of a call of the target without drafted tokens, sampling included."""
        before = self._typical.get(1)
        self._called(1, seconds)
        self._in_row += 1
        if before is not None and self._in_row > _TIMES // 2:  # most counted times were measured after the last block
            self._drift *= self._typical[1] / max(before, _TINY)
        self._tokens += 1
        self._plain_at = self._blocks
        for of in self._kinds.values():
            of.plain += seconds

    def passed(self) -> None:
        """Record an untimed call without drafted tokens. The call counts with the typical time."""
        self._tokens += 1
        self._n_calls[1] += 1
        for of in self._kinds.values():
            of.plain += self._typical[1]

    def judged(self, kind: int, drafted: int, accepted: int, tokens: int, draft_s: float, seconds: float) -> None:
        """Record a block that added ``tokens`` tokens. ``draft_s``: seconds of the draft. ``seconds``: seconds
        of the target's call and the picks.
        """
        of = self._kinds.setdefault(kind, _Kind())
        if self._drift != 1:
            for n, times in self._calls.items():
                if n > 1:
                    self._calls[n] = deque((time * self._drift for time in times), _TIMES)
                    self._typical[n] *= self._drift
        self._in_row, self._drift = 0, 1.0
        self._called(drafted + 1, seconds)
        self._tokens += tokens
        self._blocks += 1
        of.blocks += 1
        of.took(drafted, draft_s)
        of.tried(drafted, accepted)
        if of.all_stood and of.pause > _PAUSE and self._pays(of, drafted, drafted):
            of.waited = of.pause  # try again at once, because this block did pay

    def glanced(self, kind: int, drafted: int, accepted: int) -> None:
        """Record how many of the ``drafted`` tokens of a `glance` appeared in the text."""
        of = self._kinds[kind]
        of.saw(drafted, accepted)
        of.glances_stood = of.glances_stood + 1 if accepted == drafted else 0
        seconds = self._cost(of, drafted)
        # A single glance with only right tokens may be luck.
        if of.glances_stood > 1 and (drafted + 1) * self._typical.get(1, 0.0) > _MARGIN * seconds:
            of.waited = of.pause

    def glancing(self, kind: int, seconds: float) -> None:
        """Record the whole time of drafting for a `glance`."""
        self._kinds[kind].glanced += seconds
        self._glanced += seconds

    def wasted(self, kind: int, seconds: float) -> None:
        """Record the time of a draft that gave too few tokens for a block."""
        of = self._kinds.setdefault(kind, _Kind())
        of.wasted += seconds
        of.owed += seconds
        of.lost += seconds

    def _called(self, n: int, seconds: float) -> None:
        times = self._calls.setdefault(n, deque(maxlen=_TIMES))
        times.append(seconds)
        self._typical[n] = _typical(times)
        self._n_calls[n] += 1
        self._costs = []

    # -- choosing what to do --

    def length(self, kind: int, room: int) -> int:
        """Return how many tokens to draft now, from 0 to ``room``."""
        if self.fixed is not None:
            return min(self.fixed, room)
        if not self._compares:
            return 0
        if self._blocks - self._plain_at >= self._plain_again:
            self._plain_again = min(2 * self._plain_again, _PLAIN_AGAIN[1])
            return 0
        of = self._kinds.setdefault(kind, _Kind())
        if of.waited % _GLANCE and of.waited < of.pause:  # drafting pauses
            of.waited += 1
            return 0
        room = min(room, self.most, max(2 * of.longest, _FIRST))
        if room < 1:
            return 0
        best, rate = self._best(of, room)
        if rate * self._typical[1] <= _MARGIN or of.lost > _CREDIT * self._typical[1]:
            if of.all_stood and room > of.longest and self._pays(of, room, of.longest):
                return room  # may pay: with 4-bit weights a call of 9 tokens may take little longer than a call of 4
            of.waited += 1
            if of.waited <= of.pause:
                return 0
            of.waited, of.pause = 0, min(2 * of.pause, _LONGEST_PAUSE)
            of.age()
            of.owed, of.lost = 0.0, min(of.lost, _CREDIT * self._typical[1])
            return self._surest(of, min(room, _FIRST))
        of.waited, of.pause = 0, _PAUSE
        if of.blocks % _NEIGHBOUR == _NEIGHBOUR - 1:
            beside = [k for k in (best - 1, best + 1) if 1 <= k <= room]
            return min(beside, key=lambda k: self._n_calls[k + 1], default=best)
        return best

    def glance(self, kind: int, room: int) -> int:
        """Return how many tokens, 0 to ``room``, to draft for a glance (defined in `Pace`).

        Call this method after `length` has returned 0.
        """
        of = self._kinds.get(kind)
        if self.fixed is not None or of is None or not of.judged or not of.waited or of.waited % _GLANCE:
            return 0
        if of.glanced > _GLANCING * of.plain:
            return 0
        room = min(room, of.longest)
        return self._surest(of, room) if room > 0 else 0

    def rest(self, kind: int) -> int:
        """Return for how many of the next calls the caller can skip `length`, because drafting pauses.

        The caller reports each of these calls to `passed`.
        """
        of = self._kinds.get(kind)
        if self.fixed is not None or of is None or of.waited % _GLANCE == 0:
            return 0
        # `- 1` leaves one call without a draft before the next glance, because `length` must precede a glance.
        n = min(_GLANCE - 1 - of.waited % _GLANCE, of.pause - of.waited)
        n = max(n, 0)
        of.waited += n
        return n

    def rate(self, kind: int, room: int) -> float:
        """Return the most tokens a second that a kind of draft promises, in blocks of 1 to ``room`` tokens.

        The rate of a kind that was never judged is infinite, so that each kind is tried.
        """
        of = self._kinds.get(kind)
        return self._best(of, min(room, self.most))[1] if of is not None and of.judged else float("inf")

    @property
    def _compares(self) -> bool:
        """Whether enough calls without a draft were timed for a comparison."""
        return len(self._calls.get(1, ())) >= _PLAIN_FIRST

    def _best(self, of: _Kind, room: int) -> tuple[int, float]:
        """Return (length, tokens a second) for the fastest of the block lengths 1 to ``room``."""
        expected, best, most = 1.0, 1, 0.0
        for k, chance in enumerate(of.chances(room), 1):
            expected += chance
            rate = expected / self._cost(of, k)
            if rate > most:
                best, most = k, rate
        return best, most

    def _pays(self, of: _Kind, k: int, as_long_as: int) -> bool:
        """Return whether a fully accepted block of k tokens pays.

        Its call is assumed to take as long as the call for a block of ``as_long_as`` tokens.
        """
        seconds = self._typical[as_long_as + 1] + k * of.seconds
        return (k + 1) * self._typical.get(1, 0.0) > _MARGIN * seconds

    def _surest(self, of: _Kind, room: int) -> int:
        """Return the length of blocks that would pay most if all their tokens were accepted."""
        return max(range(1, room + 1), key=lambda k: (k + 1) / self._cost(of, k))

    def _cost(self, of: _Kind, k: int) -> float:
        """Return the estimated seconds of a block of k tokens."""
        costs = self._costs = self._costs or self._line()
        return max(costs[k + 1] + k * of.seconds, _TINY)

    def _line(self) -> list[float]:
        """Return a list whose element n is the time of a call with n tokens, in seconds.

        Times between measured calls are interpolated. Larger calls lie on the line through the two largest
        measured calls, or cost as much as the largest if this line falls. With a single measurement, all calls cost the
        same.
        """
        times = {n: time * (self._drift if n > 1 else 1.0) for n, time in sorted(self._typical.items())}
        costs = [next(iter(times.values()))] * (self._rows + 1)
        for low, high in pairwise(times):
            slope = (times[high] - times[low]) / (high - low)
            for n in range(low, high):
                costs[n] = times[low] + slope * (n - low)
            for n in range(high, self._rows + 1):
                costs[n] = times[high] + max(slope, 0.0) * (n - high)
        return costs

    # -- results --

    @property
    def speed(self) -> float | None:
        """The speed as a multiple of the speed without a draft, computed from the typical time of each kind of call.

        None if this text and the texts before it had fewer than two timed calls without a draft, or no timed block.
        """
        if not self._compares or not self._judged:
            return None
        seconds = sum(count * self._typical[n] for n, count in self._n_calls.items())
        seconds += sum(of.drafted * of.seconds + of.wasted for of in self._kinds.values()) + self._glanced
        return self._tokens * self._typical[1] / max(seconds, _TINY)

    @property
    def promised(self) -> float | None:
        """The speed that the best length of blocks would have now, as a multiple of the speed without a draft.

        A draft pays if this multiple is above 1. None whenever `speed` is None.
        """
        if not self._compares or not self._judged:
            return None
        return max(self._best(of, of.longest)[1] for of in self._judged) * self._typical[1]

    @property
    def _judged(self) -> list[_Kind]:
        """The kinds of draft with a judged block, in this text or in earlier texts."""
        return [of for of in self._kinds.values() if of.judged]


class SharedPace(Pace):
    """Chooses one length for the blocks of several texts that are decoded in one call; the length may be 0.

    In a call every sequence gets the same number of tokens, because llama.cpp computes sequences of different lengths
    one after the other. With n texts, a call with blocks of k tokens takes v(n (k + 1)) seconds (v as in `Pace`),
    however few texts have drafted tokens. The more texts there are, the shorter are the blocks; with enough texts
    nothing is drafted. ``rows``: the most tokens of a call.
    """

    def __init__(self, most: int, fixed: int | None, rows: int) -> None:
        super().__init__(most, fixed, rows)
        self._baseline = 0.0  # seconds that the tokens so far would have taken without a draft
        self._waited, self._pause = 0, _PAUSE_TOGETHER
        self._promise: float | None = None  # speed of the best block as a multiple of the speed without a draft

    def went(self, n_texts: int, seconds: float) -> None:
        """Record the time of a call without drafted tokens. The call added one token to each text."""
        self._called(n_texts, seconds)
        self._plain_at = self._blocks
        self._added(n_texts, n_texts)

    def judged_together(
        self, n_texts: int, rows: int, blocks: Sequence[tuple[int, int, int]], draft_s: Mapping[int, float],
        tokens: int, seconds: float,
    ) -> None:  # fmt: skip
        """Record a call with drafted tokens, and its time.

        ``rows``: tokens of the call. ``blocks``: (kind, drafted, accepted) of each text that had drafted tokens.
        ``draft_s``: kind -> seconds of drafting these tokens. ``tokens``: tokens that the call added to all texts.
        """
        self._called(rows, seconds)
        self._blocks += 1
        for kind in {kind for kind, _, _ in blocks}:
            drafted = sum(n for of, n, _ in blocks if of == kind)
            self._kinds.setdefault(kind, _Kind()).took(drafted, draft_s.get(kind, 0.0))
        for kind, drafted, accepted in blocks:
            self._kinds[kind].tried(drafted, accepted)
        self._added(tokens, n_texts)

    def _added(self, tokens: int, n_texts: int) -> None:
        self._costs = self._costs or self._line()
        self._tokens += tokens
        self._baseline += tokens * self._costs[n_texts] / n_texts

    def shared_length(self, asked: Sequence[tuple[int, int]], n_texts: int) -> int:
        """Return how many tokens to draft now for each text that can have drafted tokens. The call then has at most
        ``rows`` tokens.

        ``asked``: (kind of draft, most tokens) for each of these texts. ``n_texts``: number of texts that are decoded,
        1 or more.
        """
        room = min(max((room for _, room in asked), default=0), self.most, self._rows // n_texts - 1)
        if room < 1:
            return 0
        if self.fixed is not None:
            return min(self.fixed, room)
        if self._n_calls[n_texts] < _PLAIN_FIRST or self._blocks - self._plain_at >= self._plain_again:
            self._plain_again = min(2 * self._plain_again, _PLAIN_AGAIN[1])
            return 0
        kinds = [self._kinds.setdefault(kind, _Kind()) for kind, _ in asked]
        room = min(room, max(max(2 * of.longest, _FIRST) for of in kinds))
        rates = self._rates([(of, most) for of, (_, most) in zip(kinds, asked, strict=True)], n_texts, room)
        best = max(range(1, room + 1), key=lambda k: rates[k])
        self._promise = rates[best] / rates[0]
        owed = max(of.lost for of in kinds)
        if self._promise <= _MARGIN or owed > _CREDIT * self._typical[n_texts]:
            self._waited += 1
            if self._waited <= self._pause:
                return 0
            self._waited, self._pause = 0, min(2 * self._pause, _LONGEST_TOGETHER)
            for of in kinds:
                of.age()
                of.owed = of.lost = 0.0
            return min(best, _FIRST)
        self._waited, self._pause = 0, _PAUSE_TOGETHER
        if self._blocks % _NEIGHBOUR == _NEIGHBOUR - 1:
            beside = [k for k in (best - 1, best + 1) if 1 <= k <= room]
            return min(beside, key=lambda k: self._n_calls[n_texts * (k + 1)], default=best)
        return best

    def _rates(self, asked: Sequence[tuple[_Kind, int]], n_texts: int, room: int) -> list[float]:
        """Return, for blocks of 0 to ``room`` tokens, the tokens a second of all texts together."""
        costs = self._costs = self._costs or self._line()
        gains, draft_s = [0.0] * (room + 1), [0.0] * (room + 1)
        for of, most in asked:
            for k, chance in enumerate(of.chances(min(most, room)), 1):
                gains[k] += chance
                draft_s[k] += of.seconds
        added = zip(accumulate(gains), accumulate(draft_s), strict=True)
        return [
            (n_texts + more) / max(costs[n_texts * (k + 1)] + seconds, _TINY) for k, (more, seconds) in enumerate(added)
        ]

    @property
    def speed(self) -> float | None:
        """The speed as a multiple of the speed without a draft.

        None until calls with and without a draft were timed.
        """
        if not self._blocks or sum(self._n_calls.values()) == self._blocks:
            return None
        seconds = sum(count * self._typical[n] for n, count in self._n_calls.items())
        seconds += sum(of.drafted * of.seconds + of.wasted for of in self._kinds.values())
        return self._baseline / max(seconds, _TINY)

    @property
    def promised(self) -> float | None:
        """The speed of the best block length at the last choice, as a multiple of the speed without a draft.

        None before a length was chosen.
        """
        return self._promise


def _typical(times: Collection[float]) -> float:
    """Return the median of times, or their minimum if there are few times."""
    ordered, n = sorted(times), len(times)
    return ordered[0] if n < _FEW else (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
