"""`window`: finds out from texts alone how many of the last tokens a server's penalties count (the window).

**The clock** needs a repetition penalty and ``logit_bias``. Two tokens, X and Y, get such a strong bias that the model
writes nothing else. X has a little more bias than Y, but the penalty outweighs the difference. So after the first X,
the model writes Y once. Now both tokens are penalised, and the model writes X repeatedly. When Y has left the window, Y
is not penalised any more, and the model writes Y once more. So every (window + 1)-th token is Y, whatever the model is,
and whether or not the prompt is counted.

**The run** needs only a frequency penalty. A run is a text that repeats one token, because of ``logit_bias`` or because
the prompt repeats the token. The lead is the token's logit minus the logit of the next likeliest token. A penalty of
strength f ends the run after c tokens, when f * c exceeds the lead. A weaker penalty ends the run later. If f times the
window is less than the lead, the run never ends. Bisection finds the smallest f that ends the run. The lead changes
along the text, so the width of the window is known only roughly.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .._values import counted
from .client import Refused
from .finding import Verdict
from .server_texts import GREEDY, RUNS, Parameters, Texts, common_length, quoted

LONGEST = 256  # maximum length of a text in tokens
IDS = (1000, 500, 2000, 300, 100)  # ids of arbitrary tokens to bias
_PROMPT = "Once upon a time"
_TRIED = 16  # number of copies of a biased token that the server writes to show the token's text

# Without a penalty, the logit of X is 25 above that of Y. If both are penalised (halved), X is 12.5 above Y. If only X
# is penalised, Y is 25 above X. So the model's own logits of X and Y may differ by about 12. Halved logits are still
# above the logits of all other tokens.
_CLOCK_BIASES = (100, 75)
_CLOCK_PENALTY = 2.0

_BIASES = (12, 20, 30, 60, 100)
_STRONGEST = 2.0  # maximum frequency_penalty of OpenAI's interface
_FAR = 0.9  # If a penalty ends a run this late, as a share of its length, the run shows no window.
_FEWEST = 2  # minimum number of counted tokens in a run; at its first token, the lead is still small
_UNEVEN = 1.5  # maximum ratio of the lead at the end of a run to the lead at its beginning, if there is no window


@dataclass(frozen=True)
class Window:
    """``answer``: whether all tokens of a text are counted. ``tokens``: how many tokens are counted; None if unknown.

    If the answer is "yes", ``tokens`` is the length that was tested.
    """

    answer: Verdict
    tokens: int | None
    evidence: str


def window(texts: Texts, *, repetition: str | None, frequency: bool, bias: bool, prompt_counts: bool | None) -> Window:
    """Return how many tokens a server's penalties count.

    ``repetition``: the server's name for its repetition penalty; None if the server has none. ``frequency``: whether
    the server applies frequency_penalty. ``bias``: whether the server applies logit_bias. ``prompt_counts``: whether
    the frequency penalty counts the prompt; None if unknown.
    """
    if repetition is not None and bias:
        found = _by_clock(texts, repetition)
        if found is not None:
            return found
    if frequency:
        found = _by_runs(texts, bias=bias, prompt_counts=prompt_counts)
        if found is not None:
            return found
    needed = "a repetition or frequency penalty with logit_bias, or a model that repeats one word without end"
    return Window("cannot tell", None, f"this test needs {needed}")


def _copies(text: str) -> tuple[str, int]:
    """Return the shortest string whose copies make up a text, and the number of copies.

    White space at the ends of the text is ignored.
    """
    core = text.strip()
    if not core or "\ufffd" in core:
        return "", 0
    period = next(p for p in range(1, len(core) + 1) if core[p:] == core[: len(core) - p])
    return core[:period], -(-len(core) // period)


# -- the clock --


def _by_clock(texts: Texts, repetition: str) -> Window | None:
    """Return the result if the clocks of two pairs of tokens agree, else None."""
    known = [(token, piece) for token in IDS if (piece := _piece(texts, token))]
    readings: list[tuple[int, bool]] = []
    for first, second in pairwise(known):
        read = _clock(texts, repetition, first, second)
        if read is not None:
            readings.append(read)
        if len(readings) == 2:
            break
    if len(readings) < 2 or readings[0][1] != readings[1][1]:
        return None
    width = min(width for width, _ in readings)
    if not readings[0][1]:
        tokens = counted(width, "token")
        shown = f"a token that has come once stays penalised by {repetition} for {tokens}, the whole length tested"
        return Window("yes", width, shown)
    if readings[0][0] != readings[1][0]:
        return None
    shown = f"a token that has come once is penalised by {repetition} for {counted(width, 'token')}, and then no more"
    return Window("no", width, f"{shown} (two pairs of biased tokens)")


def _piece(texts: Texts, token: int) -> str:
    """Return the text of a token without white space at its ends; "" if the server does not show it."""
    parameters = {**texts.neutral, "logit_bias": {str(token): _CLOCK_BIASES[0]}}
    try:
        piece, n = _copies(texts.ask(_PROMPT, parameters, GREEDY, _TRIED))
    except Refused:
        return ""
    return piece.strip() if n == _TRIED else ""


def _clock(texts: Texts, repetition: str, first: tuple[int, str], second: tuple[int, str]) -> tuple[int, bool] | None:
    """Return (window in tokens, True), or (tested length in tokens, False) if no window was found.

    ``first`` and ``second``: id and text of the tokens X and Y. None if the text is not that of a clock.
    """
    (x, x_piece), (y, y_piece) = first, second
    bias = dict(zip((str(x), str(y)), _CLOCK_BIASES, strict=True))
    parameters = {**texts.neutral, "logit_bias": bias, repetition: _CLOCK_PENALTY}
    written = _spelt(texts.ask(_PROMPT, parameters, GREEDY, LONGEST), x_piece, y_piece)
    if len(written) != LONGEST:
        return None
    at = [i for i, piece in enumerate(written) if piece == y_piece]
    gaps = {b - a for a, b in pairwise(at)}
    if len(gaps) == 1:
        return gaps.pop() - 1, True
    if len(at) == 1 and at[0] < 2:
        return LONGEST - 1 - at[0], False
    return None


def _spelt(text: str, *pieces: str) -> list[str]:
    """Split a text into copies of ``pieces``, with or without white space between. [] if this is impossible."""
    found, at = [], 0
    longest_first = sorted(pieces, key=len, reverse=True)
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        piece = next((piece for piece in longest_first if rest.startswith(piece)), None)
        if piece is None:
            return []
        found.append(piece)
        at += len(piece)
    return found


# -- the run --


@dataclass(frozen=True)
class _Run:
    """A text that consists of ``n`` copies of one token.

    ``counted``: the number of the token's copies in the prompt, or 0 if the penalty does not count the prompt.
    """

    name: str
    prompt: str
    parameters: Parameters
    text: str
    n: int
    counted: int = 0


def _by_runs(texts: Texts, *, bias: bool, prompt_counts: bool | None) -> Window | None:
    """Return the window from two runs, or from one run that shows no window. None if there are too few runs."""
    found: list[tuple[str, int]] = []
    for run in _runs(texts, bias=bias, prompt_counts=prompt_counts):
        measured = _measure(texts, run)
        if measured is None:
            continue
        width, ended = measured
        if not ended:
            return Window(
                "yes",
                width,
                f"a frequency_penalty ends {run.name} after {counted(width, 'token')}, the whole length tested",
            )
        found.append((run.name, width))
        if len(found) == 2:
            break
    if len(found) < 2:
        return None
    names = " and ".join(name for name, _ in found)
    (_, a), (_, b) = found
    ends = f"{counted(a, 'token')} at the most" if a == b else f"{a} and {b} tokens at the most"
    shown = f"a frequency_penalty ends {names} after {ends}, and a slightly weaker one never does"
    if abs(a - b) > 1:
        return Window("no", None, f"{shown}: about this many tokens are counted")
    return Window("no", min(a, b), shown)


def _runs(texts: Texts, *, bias: bool, prompt_counts: bool | None) -> Iterator[_Run]:
    if bias:
        for token in IDS:
            run = _forced(texts, token)
            if run is not None:
                yield run
        return
    for prompt, word in ((RUNS[0][:15], "1"), ("no no no no no no no no", "no")):
        if prompt_counts is None:
            return
        text = texts.ask(prompt, texts.neutral, GREEDY, LONGEST)
        if set(text.split()) == {word}:
            counted = _tokens_of(texts, prompt) if prompt_counts else 0
            if counted is not None:
                yield _Run(f"the run after {quoted(prompt, 16)}", prompt, {}, text, LONGEST, counted)


def _forced(texts: Texts, token: int) -> _Run | None:
    """Return a run of a token with the smallest bias that suffices.

    None if no bias suffices, or if the server refuses a bias.
    """
    for size in _BIASES:
        parameters: dict[str, Any] = {"logit_bias": {str(token): size}}
        try:
            first = texts.ask(_PROMPT, {**texts.neutral, **parameters}, GREEDY, _TRIED)
            if _copies(first)[1] != _TRIED:
                continue
            text = texts.ask(_PROMPT, {**texts.neutral, **parameters}, GREEDY, LONGEST)
        except Refused:
            return None
        if _copies(text)[1] == LONGEST:
            return _Run(f"a run of token {token} (logit_bias {size})", _PROMPT, parameters, text, LONGEST)
    return None


def _tokens_of(texts: Texts, prompt: str) -> int | None:
    """Return how many tokens a prompt has, without tokens that the server adds. None if the server reports no count."""
    once, twice = (texts.endpoint.ask(p, tokens=1, **GREEDY).prompt_tokens for p in (prompt, f"{prompt} {prompt}"))
    return None if once is None or twice is None else twice - once


def _measure(texts: Texts, run: _Run) -> tuple[int, bool] | None:
    """Return (the largest number of counted tokens after which a penalty ends the run, whether there is a window).

    None if the run decides nothing.
    """

    def ends(f: float) -> int | None:
        parameters = {**texts.neutral, **run.parameters, "frequency_penalty": f}
        got = texts.ask(run.prompt, parameters, GREEDY, run.n)
        same = common_length(run.text, got)
        return None if same == len(run.text) else round(same * run.n / len(run.text))

    high = _STRONGEST
    last = ends(high)
    if last is None or run.counted + last < _FEWEST:
        return None
    ahead = high * max(run.counted + last, 1)  # estimate of the lead
    low = None
    while low is None:
        if last >= _FAR * run.n - 1:
            # If there were a window, the penalty would be smaller than assumed here, so the lead would seem larger.
            return (run.counted + last, False) if high * (run.counted + last) <= _UNEVEN * ahead else None
        counted = max(run.counted + last, 1)
        f = high * counted / (run.counted + min(2 * max(last, 1), _FAR * run.n))
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
