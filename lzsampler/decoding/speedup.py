"""`compare`: times the same texts written in several ways (`Way`), such as with and without a draft.

Other work on the machine slows all ways down. So the ways take turns. Each text is compared with the first way's text
of the same prompt and seed, written at about the same time. The two texts are a pair.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from time import perf_counter

from .._check import Tokens, integer
from ..errors import ArgumentError
from ..llama.binding import llama_cpp
from ..llama.model import Model, Prompt
from ..params import Params
from ..sampler import sequence_seed
from .config import GenerationConfig
from .draft import Draft, Speculated
from .generate import generate
from .generation import Generation

Quartiles = tuple[float, float, float]
"""(lower quartile, median, upper quartile)."""


class ClockedModel(Model):
    """A draft's `Model` that adds up the seconds of its decodes in ``decode_s``.

    The seconds do not include the sampling.
    """

    decode_s = 0.0

    def _decode(self, tokens: list[int], wanted: object = None) -> None:
        before = perf_counter()
        super()._decode(tokens, wanted)
        llama_cpp.llama_synchronize(self.llm.ctx)
        self.decode_s += perf_counter() - before


@dataclass(frozen=True)
class Way:
    """A way of writing texts: a model, settings of the sampler, and perhaps a draft.

    The draft's model should be a `ClockedModel`; otherwise the time of its decodes counts as ``other_share``.
    """

    model: Model
    params: Params
    draft: Draft | None = None


@dataclass(frozen=True)
class Timed:
    """Figures of one way over its texts. Figures with quartiles are computed over pairs.

    ``ms``: milliseconds a token, without the time of the prompt and the first token. ``ms_whole``: milliseconds a
    token, with the time of the prompt. ``speedup`` and ``speedup_whole``: tokens a second, as a multiple of the first
    way's tokens a second for the same prompt. ``tokens``: number of tokens of all texts. ``same``: the share of texts
    that equal the first way's text.

    ``acceptance`` and ``tokens_per_call``: as in `Speculated`; 0 and 1 without a draft. ``drafted_per_call``: tokens
    that the draft proposes for a call of the target. The last three fields are shares of the time after the target has
    decoded the prompt, as medians over texts. ``draft_share``: the draft's decodes, including the draft's decode of the
    prompt. ``other_share``: everything except decodes. ``target_share``: the remainder.
    """

    ms: Quartiles
    ms_whole: Quartiles
    speedup: Quartiles
    speedup_whole: Quartiles
    tokens: int
    same: float
    acceptance: float
    tokens_per_call: float
    drafted_per_call: float
    draft_share: float
    target_share: float
    other_share: float


def compare(
    ways: dict[str, Way],
    prompts: Sequence[Prompt],
    *,
    pairs: int = 20,
    max_tokens: int = 64,
    ignore_eos: bool = False,
    on_progress: Callable[[int, int], object] | None = None,
) -> dict[str, Timed]:
    """Write ``pairs`` texts in each of ``ways``, in turns, and return the figures of each way.

    Text i has prompt i (after the last prompt, the first prompt is used again) and the same seed in all ways.
    ``max_tokens``: the most tokens of a text, from 2. The model may end a text earlier, unless ``ignore_eos`` is true.
    ``on_progress`` is called with the number of written texts and the number of all texts. Each way writes one text
    before the first pair, to warm up caches and threads. Raises ValueError without ways or prompts and for numbers out
    of range; otherwise like `generate`.
    """
    check_counts(pairs, max_tokens)
    if not ways or not prompts:
        raise ArgumentError("compare needs ways and prompts: at least one of each")
    runs: dict[str, list[_Run]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(-1, pairs):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            way = ways[name]
            params = replace(way.params, seed=sequence_seed(way.params.seed, max(number, 0)))
            run = _run(replace(way, params=params), prompts[max(number, 0) % len(prompts)], max_tokens, ignore_eos)
            if number >= 0:
                runs[name].append(run)
            if on_progress is not None:
                on_progress(sum(map(len, runs.values())), pairs * len(names))
    return {name: _timed(runs[name], runs[names[0]]) for name in names}


def check_counts(pairs: int, max_tokens: int) -> None:
    """Raise ValueError for numbers that `compare` does not accept."""
    integer("pairs", pairs, 2, 10_000)
    integer("max_tokens", max_tokens, 2, 2**20)


@dataclass(frozen=True)
class _Run:
    tokens: tuple[int, ...]
    steps: int  # number of new tokens that were decoded
    whole: float  # seconds of the whole text; the next three fields are parts of this time
    prompt: float
    target: float
    draft: float
    figures: Speculated

    @property
    def seconds(self) -> float:
        """Seconds without the prompt."""
        return self.whole - self.prompt


def _run(way: Way, prompt: Prompt, max_tokens: int, ignore_eos: bool) -> _Run:
    draft = None if way.draft is None else way.draft.model
    clock = draft if isinstance(draft, ClockedModel) else None
    before = 0.0 if clock is None else clock.decode_s
    if draft is not None:
        draft.keep(0)  # empties the draft's context, which still has the prompt of the previous text
    config = GenerationConfig(way.params, max_tokens=max_tokens, ignore_eos=ignore_eos, draft=way.draft)
    made: Generation = generate(way.model, prompt, config)
    if made.finish_reason == "interrupted":
        raise KeyboardInterrupt
    figures, times = made.speculated or Speculated(), made.timings
    ended = made.finish_reason == "stop"  # the text's end token is not in ``made.tokens``
    return _Run(
        tokens=made.tokens,
        steps=max(len(made.tokens) - (not ended), 1),
        whole=times.total,
        prompt=times.prompt,
        target=times.decode - figures.draft_s,
        draft=0.0 if clock is None else clock.decode_s - before,
        figures=figures,
    )


def _timed(runs: list[_Run], base: list[_Run]) -> Timed:
    def ms(run: _Run) -> float:
        return 1e3 * run.seconds / run.steps

    def whole(run: _Run) -> float:
        return 1e3 * run.whole / max(len(run.tokens), 1)

    pairs = list(zip(runs, base, strict=True))
    drafted, accepted, blocks, tokens, plain = (
        sum(getattr(run.figures, name) for run in runs) for name in ("drafted", "accepted", "blocks", "tokens", "plain")
    )
    calls = blocks + plain
    draft = median(run.draft / run.seconds for run in runs)
    other = median(1 - (run.draft + run.target) / run.seconds for run in runs)
    return Timed(
        ms=_quartiles([ms(run) for run in runs]),
        ms_whole=_quartiles([whole(run) for run in runs]),
        speedup=_quartiles([ms(b) / ms(a) for a, b in pairs]),
        speedup_whole=_quartiles([whole(b) / whole(a) for a, b in pairs]),
        tokens=sum(len(run.tokens) for run in runs),
        same=sum(a.tokens == b.tokens for a, b in pairs) / len(pairs),
        acceptance=accepted / max(drafted, 1),
        tokens_per_call=(tokens + plain) / calls if calls else 1.0,
        drafted_per_call=drafted / calls if calls else 0.0,
        draft_share=draft,
        target_share=1 - draft - other,
        other_share=other,
    )


def _quartiles(values: list[float]) -> Quartiles:
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, median(values), high


@dataclass(frozen=True)
class Cost:
    """The times of a model's decodes.

    ``ms``: milliseconds of one token's decode, in quartiles. ``relative``: number of tokens decoded together -> the
    time of this decode as a multiple of one token's decode, in quartiles over rounds.
    """

    ms: Quartiles
    relative: dict[int, Quartiles]


def decode_cost(
    models: dict[str, Model], past: Tokens, sizes: Sequence[int] = (2, 4, 8), rounds: int = 20
) -> dict[str, Cost]:
    """Time decodes of one and of several tokens after ``past``. In each round all models and sizes take turns.

    ``sizes``: numbers of tokens to decode together, each at most the ``n_batch`` of the models. All rows of logits are
    computed, as when drafted tokens are verified. Raises like `Model.decode_rows`, and ValueError for fewer than 2
    rounds.
    """
    integer("rounds", rounds, 2, 10_000)
    every = (1, *sizes)
    for model in models.values():
        model.keep(0)
        model.decode(past)
    times: dict[tuple[str, int], list[float]] = {(name, size): [] for name in models for size in every}
    for number in range(-2, rounds):
        for size in every:
            for name, model in models.items():
                n_past = model.n_past
                before = perf_counter()
                model.decode_for_rows(list(model.past[-1:]) * size)
                if number >= 0:
                    times[name, size].append(perf_counter() - before)
                model.keep(n_past)
    return {
        name: Cost(
            _quartiles([1e3 * seconds for seconds in times[name, 1]]),
            {
                size: _quartiles([a / b for a, b in zip(times[name, size], times[name, 1], strict=True)])
                for size in sizes
            },
        )
        for name in models
    }
