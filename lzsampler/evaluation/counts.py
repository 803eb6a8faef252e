"""`Outcome`: the result of one text of an evaluation. `Counts`: sums over some outcomes, with their rates."""

from dataclasses import dataclass, fields
from typing import Any

from ..util.stats import Interval, wilson

CAPPED = ("length", "context")  # finish reasons of texts that a limit ended
ENDED = "stop"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one text.

    ``task``: the kind of task. ``right``: whether the answer is correct; None if the row has no answer.
    ``wasted_tokens``: number of tokens in copies of loops, except the first copy of each loop. ``seconds``: time for
    prompt, decoding and sampling. ``sampling_seconds``: time for sampling. Both times are None if no timing is known.
    ``finish``: why the text ended (docs/transcript.md). ``first_loop``: the number of tokens before the first loop,
    estimated from characters with the mean length of the text's tokens. It is None without a loop, or if the position
    of the loop is unknown. The other fields are as in `lzsampler.auditing.metrics.TokenFigures`.
    """

    setting: str
    prompt: str
    seed: int
    task: str
    looping: bool
    right: bool | None
    tokens: int
    wasted_tokens: int
    seconds: float | None = None
    sampling_seconds: float | None = None
    finish: str = ""
    first_loop: int | None = None
    rep4: float = 0.0
    tail_rep4: float = 0.0
    extensible: int = 0
    extended: int = 0
    frequent: bool = False


@dataclass
class Counts:
    """Numbers of texts of several types, and sums over texts. ``answered``: texts whose answers were compared.

    ``right``: texts with a correct answer. ``looping``: texts that loop. ``answered_looping``: texts whose answers were
    compared and that loop. ``right_looping``: texts with a correct answer that loop; a text may answer before it loops.
    ``timed_tokens``, ``seconds`` and ``sampling_seconds`` cover the texts with known timings. ``capped``: texts that
    hit the token limit or filled the context. ``capped_looping``: capped texts that loop. ``ended``: texts that the
    model ended. ``ended_looping``: ended texts that loop. ``frequent``: texts with a 30-gram of tokens that occurs 20
    times or more.
    """

    texts: int = 0
    looping: int = 0
    answered: int = 0
    right: int = 0
    answered_looping: int = 0
    right_looping: int = 0
    tokens: int = 0
    wasted_tokens: int = 0
    timed_tokens: int = 0
    seconds: float = 0.0
    sampling_seconds: float = 0.0
    capped: int = 0
    capped_looping: int = 0
    ended: int = 0
    ended_looping: int = 0
    frequent: int = 0
    extensible: int = 0
    extended: int = 0
    rep4_sum: float = 0.0
    tail_rep4_sum: float = 0.0

    @property
    def loop_rate(self) -> float:
        """Share of the texts that loop, 0..1; 0 if there are no texts."""
        return self.looping / self.texts if self.texts else 0.0

    @property
    def loop_interval(self) -> Interval:
        """Wilson's 95 % interval of the loop rate."""
        return wilson(self.looping, self.texts)

    @property
    def accuracy(self) -> float | None:
        """Share of the answers to tasks that are correct, 0..1; None without answers."""
        return self.right / self.answered if self.answered else None

    @property
    def accuracy_interval(self) -> Interval:
        """Wilson's 95 % interval of the accuracy."""
        return wilson(self.right, self.answered)

    @property
    def capped_share(self) -> float:
        """Share of the texts that hit the token limit or filled the context, 0..1."""
        return self.capped / self.texts if self.texts else 0.0

    @property
    def capped_loop_rate(self) -> float | None:
        """Share of the capped texts that loop, 0..1; None without capped texts."""
        return self.capped_looping / self.capped if self.capped else None

    @property
    def ended_loop_rate(self) -> float | None:
        """Share of loops among the texts that the model ended, 0..1; None if the model ended no text."""
        return self.ended_looping / self.ended if self.ended else None

    @property
    def frequent_rate(self) -> float:
        """Share of the texts with a 30-gram that occurs 20 times or more, 0..1 (arXiv 2512.12895)."""
        return self.frequent / self.texts if self.texts else 0.0

    @property
    def frequent_interval(self) -> Interval:
        """Wilson's 95 % interval of `frequent_rate`."""
        return wilson(self.frequent, self.texts)

    @property
    def rep4(self) -> float:
        """Mean of the texts' rep-4 over tokens, 0..1 (arXiv 1908.04319)."""
        return self.rep4_sum / self.texts if self.texts else 0.0

    @property
    def tail_rep4(self) -> float:
        """Mean of the texts' rep-4 over their last 512 tokens, 0..1."""
        return self.tail_rep4_sum / self.texts if self.texts else 0.0

    @property
    def ser4(self) -> float | None:
        """Suffix-extension rate: ``extended`` / ``extensible`` of `TokenFigures`, 0..1; None if ``extensible`` is 0."""
        return self.extended / self.extensible if self.extensible else None

    @property
    def wasted_share(self) -> float:
        """Share of the tokens that are in a copy of a loop after the first copy, 0..1."""
        return self.wasted_tokens / self.tokens if self.tokens else 0.0

    @property
    def sampling_share(self) -> float | None:
        """Sampling overhead: the share of the time that sampling took, 0..1; None if no timings are known."""
        return self.sampling_seconds / self.seconds if self.seconds else None

    @property
    def sampling_microseconds(self) -> float | None:
        """Mean time for sampling one token, in microseconds; None if no timings are known."""
        return 1e6 * self.sampling_seconds / self.timed_tokens if self.timed_tokens else None

    def add(self, outcome: Outcome) -> None:
        """Add the result of one text."""
        self.texts += 1
        self.looping += outcome.looping
        self.answered += outcome.right is not None
        self.right += outcome.right is True
        self.answered_looping += outcome.right is not None and outcome.looping
        self.right_looping += outcome.right is True and outcome.looping
        self.tokens += outcome.tokens
        self.wasted_tokens += outcome.wasted_tokens
        self.capped += outcome.finish in CAPPED
        self.capped_looping += outcome.finish in CAPPED and outcome.looping
        self.ended += outcome.finish == ENDED
        self.ended_looping += outcome.finish == ENDED and outcome.looping
        self.frequent += outcome.frequent
        self.extensible += outcome.extensible
        self.extended += outcome.extended
        self.rep4_sum += outcome.rep4
        self.tail_rep4_sum += outcome.tail_rep4
        if outcome.seconds is not None and outcome.sampling_seconds is not None:
            self.timed_tokens += outcome.tokens
            self.seconds += outcome.seconds
            self.sampling_seconds += outcome.sampling_seconds

    def merge(self, other: "Counts") -> None:
        """Add the counts of other texts."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def to_json(self) -> dict[str, Any]:
        """Return everything except timings, which differ between two runs of one grid."""
        return {
            "texts": self.texts,
            "looping": self.looping,
            "loop_rate": self.loop_rate,
            "loop_interval": list(self.loop_interval),
            "answered": self.answered,
            "right": self.right,
            "accuracy": self.accuracy,
            "accuracy_interval": list(self.accuracy_interval) if self.answered else None,
            "answered_looping": self.answered_looping,
            "right_looping": self.right_looping,
            "tokens": self.tokens,
            "wasted_tokens": self.wasted_tokens,
            "frequent_30_gram": self.frequent,
            "frequent_30_gram_rate": self.frequent_rate,
            "frequent_30_gram_interval": list(self.frequent_interval),
            "rep4": round(self.rep4, 6),
            "tail_rep4": round(self.tail_rep4, 6),
            "extensible": self.extensible,
            "extended": self.extended,
            "ser4": self.ser4,
            "capped": self.capped,
            "capped_looping": self.capped_looping,
            "capped_loop_rate": self.capped_loop_rate,
            "ended": self.ended,
            "ended_looping": self.ended_looping,
            "ended_loop_rate": self.ended_loop_rate,
        }
