"""How many tokens a server's frequency penalty looks at, from texts alone.

A text in which one token comes over and over is ended by a frequency penalty f after c tokens, when f * c is more than
what the token is ahead of the next one. A smaller f ends it later, and one that is so small that f times the window is
not enough never does: then the window is always full, and the penalty no longer grows. So the last place at which any f
ends it is the window. f is found by bisection.

What makes a server write one token over and over is a ``logit_bias`` for it, which any model obeys, so that the prompt
has no part in the count; or, where there is no ``logit_bias``, a prompt that does nothing else.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .client import Refused
from .finding import Verdict
from .texts import GREEDY, RUNS, Parameters, Texts, common_length, quoted

LONGEST = 256  # tokens of a run
STRONGEST = 2.0  # the most that OpenAI's interface allows
IDS = (1000, 500, 2000, 300, 100)  # tokens that may be biased: which, does not matter
_BIASES = (30, 60, 100)
_TRIED = 16  # tokens that show whether a run is one


@dataclass(frozen=True)
class Window:
    """``answer``: whether all of the text is counted; ``tokens``: how many are, at least, or exactly for "no"."""

    answer: Verdict
    tokens: int | None
    evidence: str


@dataclass(frozen=True)
class _Run:
    """A text of one token, ``n`` times; ``counted``: how often the prompt has it before, where prompts count."""

    name: str
    prompt: str
    parameters: Parameters
    text: str
    n: int
    counted: int = 0


def window(texts: Texts, *, bias: bool, prompt_counts: bool | None) -> Window:
    """Return how many tokens are counted. ``bias``: whether the server has `logit_bias`.

    ``prompt_counts``: whether the penalty counts the prompt, None where that is not known.
    """
    found: list[tuple[_Run, int]] = []
    for run in _runs(texts, bias=bias, prompt_counts=prompt_counts):
        measured = _measure(texts, run)
        if measured is None:
            continue
        width, ended = measured
        if not ended:
            said = f"{run.name} still ends where {width} tokens are counted, which is as far as was looked"
            return Window("yes", width, said)
        found.append((run, width))
        if len(found) == 2:
            break
    if not found:
        needed = "a model that repeats one token without end, or logit_bias"
        return Window("cannot tell", None, f"no text of one token for {LONGEST} tokens; {needed} would tell")
    widths = [width for _, width in found]
    low, high = min(widths), max(widths)
    names = " and ".join(run.name for run, _ in found)
    if len(found) < 2 or high - low > max(1, high // 50):
        each = " and ".join(map(str, widths))
        return Window("cannot tell", None, f"{names}: {each} tokens, which is not the same twice")
    said = f"{names}: a frequency_penalty ends it after at most {high} tokens, and a little smaller one never does"
    return Window("no", high, said)


def _runs(texts: Texts, *, bias: bool, prompt_counts: bool | None) -> Iterator[_Run]:
    if bias:
        for token in IDS:
            run = _forced(texts, token)
            if run is not None:
                yield run
        return
    for prompt, word in ((RUNS[0][:16], "1"), ("no no no no no no no no", "no")):
        if prompt_counts is None:
            return
        text = texts.ask(prompt, texts.neutral, GREEDY, LONGEST)
        if set(text.split()) == {word}:
            counted = _tokens_of(texts, prompt) if prompt_counts else 0
            if counted is not None:
                yield _Run(f"the run after {quoted(prompt, 16)}", prompt, {}, text, LONGEST, counted)


def _forced(texts: Texts, token: int) -> _Run | None:
    """Return a run that the smallest bias that is enough makes; None where none is, or the server refuses."""
    prompt = "Once upon a time"
    for size in _BIASES:
        parameters: dict[str, Any] = {"logit_bias": {str(token): size}}
        try:
            first = texts.ask(prompt, {**texts.neutral, **parameters}, GREEDY, _TRIED)
            if _copies(first) != _TRIED:
                continue
            text = texts.ask(prompt, {**texts.neutral, **parameters}, GREEDY, LONGEST)
        except Refused:
            return None
        if _copies(text) == LONGEST:
            return _Run(f"a run of token {token} (logit_bias {size})", prompt, parameters, text, LONGEST)
    return None


def _copies(text: str) -> int:
    """Return of how many copies of one piece a text consists; white space at its ends may be missing."""
    core = text.strip()
    if not core or "\ufffd" in core:
        return 0
    period = next(p for p in range(1, len(core) + 1) if core[p:] == core[: len(core) - p])
    return -(-len(core) // period)


def _tokens_of(texts: Texts, prompt: str) -> int | None:
    """Return how many tokens a prompt of copies has, without what a server puts around it; None when it says none."""
    once, twice = (texts.endpoint.ask(p, tokens=1, **GREEDY).prompt_tokens for p in (prompt, f"{prompt} {prompt}"))
    return None if once is None or twice is None else twice - once


def _measure(texts: Texts, run: _Run) -> tuple[int, bool] | None:
    """Return the last place where a penalty ends a run, in tokens counted, and whether it is an end; None: unknown."""

    def ends(f: float) -> int | None:
        parameters = {**texts.neutral, **run.parameters, "frequency_penalty": f}
        got = texts.ask(run.prompt, parameters, GREEDY, run.n)
        same = common_length(run.text, got)
        return None if same == len(run.text) else round(same * run.n / len(run.text))

    high = STRONGEST
    last = ends(high)
    if last is None:
        return None
    low = None
    while low is None:
        target = min(2 * max(last, 1), 0.9 * run.n)
        if last >= 0.9 * run.n - 1:
            return run.counted + last, False
        f = high * max(last, 1) / target
        at = ends(f)
        if at is None:
            low = f
        else:
            high, last = f, at
    while high / low > 1 + 0.5 / max(last, 1):
        f = math.sqrt(high * low)
        at = ends(f)
        if at is None:
            low = f
        else:
            high, last = f, at
    return run.counted + last, True
