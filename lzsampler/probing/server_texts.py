"""`Texts`: compares the texts that a server writes with some parameters and with neutral parameters.

If the server writes a greedy text twice, or draws a text twice with one seed, the texts are compared exactly. A single
difference is proof if the server repeats the difference. If the server repeats no text, a permutation test compares the
shares of repeated words. The test can show that a penalty applies, but not that no penalty applies.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from .._values import counted
from .endpoint import Endpoint
from .finding import Verdict

Parameters = Mapping[str, Any]

# A model continues the repetition of RUNS. After the other prompts, any model writes some words repeatedly.
RUNS = ("1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "A B C D A B C D A B C D A B C D A B C D")
PROMPTS = (
    RUNS[0],
    RUNS[1],
    "the cat sat on the mat, the cat sat on the mat, the cat sat on the mat,",
    "Once upon a time there was a king who had three sons, and",
    "The house stood at the end of the road, and the road",
)
TOKENS = 64
SEEDS = (11, 12)
DRAWN: Parameters = {"temperature": 1.0, "top_p": 1.0}
GREEDY: Parameters = {"temperature": 0.0}

_FEWEST_REPEATS = 20  # If the texts have fewer repeated words, unchanged texts prove nothing.
_SAMPLES = 8  # number of texts on each side of the permutation test
_ALPHA = 0.001  # significance level, small because several penalties are tested


@dataclass(frozen=True)
class Difference:
    """Whether texts with two sets of parameters differ. ``evidence``: the reason in one line.

    ``prompt`` and ``sampling``: prompt and sampling parameters of the first text that differs.
    """

    answer: Verdict
    evidence: str
    prompt: str = ""
    sampling: Parameters = field(default_factory=dict)


class Texts:
    """The texts that a server writes with neutral penalties.

    ``greedy``: the greedy text of each prompt, if the server wrote it twice. ``drawn``: the drawn text of each (prompt,
    seed), if the server wrote it twice. ``once``: pairs of different greedy texts that the server wrote for equal
    requests. ``drawn_once``: such pairs of drawn texts.
    """

    def __init__(self, endpoint: Endpoint, neutral: Parameters) -> None:
        self.endpoint = endpoint
        self.neutral = dict(neutral)
        self.greedy: dict[str, str] = {}
        self.drawn: dict[tuple[str, int], str] = {}
        self.once: list[tuple[str, str]] = []
        self.drawn_once: list[tuple[str, str]] = []
        self.unused: dict[str, str] = {}  # the first greedy text of each prompt, even if the server did not repeat it

    def ask(self, prompt: str, parameters: Parameters, sampling: Parameters, tokens: int = TOKENS) -> str:
        """Return the server's continuation of a prompt."""
        return self.endpoint.ask(prompt, tokens=tokens, **{**parameters, **sampling}).text

    def prepare(self, *, seeds: bool) -> None:
        """Ask for each text twice. ``seeds``: whether to ask for drawn texts, too."""
        self.ask(PROMPTS[0], self.neutral, GREEDY, 8)  # The first request may differ, since the server fills caches.
        for prompt in PROMPTS:
            first, second = (self.ask(prompt, self.neutral, GREEDY) for _ in range(2))
            self.unused[prompt] = first
            if first == second:
                self.greedy[prompt] = first
            else:
                self.once.append((first, second))
        for prompt in PROMPTS[2:] if seeds else ():
            for seed in SEEDS:
                sampling = {**DRAWN, "seed": seed}
                first, second = (self.ask(prompt, self.neutral, sampling) for _ in range(2))
                if first == second:
                    self.drawn[prompt, seed] = first
                else:
                    self.drawn_once.append((first, second))

    @property
    def seed_repeats(self) -> bool:
        """Whether a seed gives the same text each time, and another seed gives a different text."""
        pairs = [(self.drawn.get((prompt, SEEDS[0])), self.drawn.get((prompt, SEEDS[1]))) for prompt in PROMPTS[2:]]
        return not self.drawn_once and any(a is not None and b is not None and a != b for a, b in pairs)

    def cases(self) -> Iterator[tuple[str, Parameters, str]]:
        """Yield (prompt, sampling parameters, text) for every text that the server wrote twice."""
        for prompt, text in self.greedy.items():
            yield prompt, GREEDY, text
        if self.seed_repeats:
            for (prompt, seed), text in self.drawn.items():
                yield prompt, {**DRAWN, "seed": seed}, text

    def compare(self, parameters: Parameters, named: str) -> Difference:
        """Compare texts with some parameters to the neutral texts. ``named``: how the evidence names the parameters.

        Raises `Refused` if the server refuses the parameters.
        """
        cases = list(self.cases())
        if not cases:
            return self._by_chance(parameters, named)
        steady = True
        for prompt, sampling, text in cases:
            got = self.ask(prompt, parameters, sampling)
            if got == text:
                continue
            again = self.ask(prompt, parameters, sampling), self.ask(prompt, self.neutral, sampling)
            if again == (got, text):
                return Difference("yes", f"{named}: {told_apart(prompt, text, got)}", prompt, sampling)
            steady = False
        if not steady:  # A text changed without a cause, so the server had repeated its texts only by chance.
            return self._by_chance(parameters, named)
        texts = [text for _, _, text in cases]
        if len(set(texts)) < 2:
            return Difference("cannot tell", f"{named}: every prompt gets the same text, {quoted(texts[0])}")
        repeats = sum(map(repeated_words, texts))
        if repeats < _FEWEST_REPEATS:
            few = f"the texts are too short: only {counted(repeats, 'word is', 'words are')} repeated in them"
            return Difference("cannot tell", f"{named}: nothing changes, but {few}")
        return Difference(
            "no", f"{named}: {len(texts)} texts are the same with and without, {counted(repeats, 'repeated word')}"
        )

    def _by_chance(self, parameters: Parameters, named: str) -> Difference:
        """Compare the shares of repeated words. Requests without and with the parameters alternate."""
        without, with_it = [], []
        for i in range(_SAMPLES):
            prompt = PROMPTS[i % len(PROMPTS)]
            without.append(share_repeated(self.ask(prompt, self.neutral, DRAWN)))
            with_it.append(share_repeated(self.ask(prompt, parameters, DRAWN)))
        p = permutation_p(without, with_it)
        shares = f"{100 * sum(without) / _SAMPLES:.0f} % of words are repeated, {100 * sum(with_it) / _SAMPLES:.0f} %"
        shown = f"{named}: {shares} with it ({_SAMPLES} texts each, permutation test p = {p:.2g})"
        if p < _ALPHA:
            return Difference("yes", shown)
        needed = "this server does not repeat texts; a seed or temperature 0 that repeats would decide"
        return Difference("cannot tell", f"{shown}; {needed}")


def told_apart(prompt: str, text: str, got: str) -> str:
    """Describe in one line where two texts of a prompt diverge."""
    at = common_length(text, got)
    start = max(0, at - 8)
    dots = "..." if start else ""
    return (
        f"after {quoted(prompt, 24)} comes {quoted(dots + got[start:], 28)} "
        f"instead of {quoted(dots + text[start:], 28)} (from character {at})"
    )


def quoted(text: str, longest: int = 40) -> str:
    """Return the beginning of a text as a JSON string."""
    return json.dumps(text if len(text) <= longest else text[:longest] + "...", ensure_ascii=False)


def common_length(a: str, b: str) -> int:
    """Return the length of the longest common prefix of two texts, in characters."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def repeated_words(text: str) -> int:
    """Return how many words of a text occurred earlier in the text."""
    words = text.split()
    return len(words) - len(set(words))


def share_repeated(text: str) -> float:
    """Return the share of the words of a text that occurred earlier in the text, 0..1; 0 without words."""
    return repeated_words(text) / max(1, len(text.split()))


def permutation_p(a: list[float], b: list[float]) -> float:
    """Return the two-sided p of a difference of means, by an exact permutation test."""
    everything = [*a, *b]
    total, n = sum(everything), len(a)
    expected = total * n / len(everything)
    seen = abs(sum(a) - expected)
    ways = [abs(sum(chosen) - expected) >= seen - 1e-12 for chosen in combinations(everything, n)]
    return sum(ways) / len(ways)
