"""`spec_check`: checks that a draft leaves texts and distribution unchanged, and counts the accepted tokens."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .._check import integer
from ..errors import ArgumentError
from ..llama.model import Messages, Model
from ..llama.rounding import Rounding, RoundingWarning, may_differ, rounding, what_it_means
from ..params import Params
from ..sampler import Sampler, sequence_seed
from .config import GenerationConfig
from .draft import Draft, DraftKind, Speculated, common_length, refuse_draft
from .generate import generate
from .generation import Generation
from .verification import SpecMode

LENGTHS = tuple(range(1, 9))  # lengths of blocks, in tokens
TEMPERATURES = (0.0, 0.8)
_SEED = 11
_IMPOSSIBLE = 1e-6  # less probable texts count as impossible
_LOW_P = 0.01  # if the p-value is smaller, more texts are drawn
_MORE = 4  # how many times as many texts are drawn the second time
_WRONG_P = 0.0001  # if the second p-value is smaller, the distribution is wrong
_LEAST_EXPECTED = 5.0  # the least expected count in a bin of the chi-square test
_CHOICES = Params(temperature=1.2, presence_penalty=1.0)  # the tokens with a presence penalty change inside a block
_LIKELY, _FAVOUR = 3, 30.0  # a bias of 30 for 3 tokens makes all other tokens practically impossible
_PASSAGE = (
    "On Monday the baker sold forty loaves of bread, nine cakes and a basket of apples. On Tuesday the rain kept "
    "everyone at home, and he sold nothing at all."
)
_STORY = "Once upon a time there was a king who"
_QUESTION = "What is 12 + 30?"


@dataclass(frozen=True)
class Kept:
    """How many drafted tokens were accepted in texts of one kind, over all lengths of blocks.

    ``text``: "story", "task" or "copy". ``draft``: "model" or "lookup". ``acceptance``: the share of drafted tokens
    that were accepted, None if nothing was drafted. ``tokens_per_call``: tokens that a call of the target added, on
    average.
    """

    text: str
    draft: DraftKind
    temperature: float
    acceptance: float | None
    tokens_per_call: float


@dataclass(frozen=True)
class Difference:
    """A text that differs from the text without a draft. ``at``: the number of the first token that differs, from 0."""

    text: str
    draft: DraftKind
    mode: SpecMode
    temperature: float
    n_max: int
    at: int


@dataclass(frozen=True)
class Fit:
    """Chi-square test of the first two tokens of ``runs`` texts in mode "mrs" against the target's probabilities."""

    draft: DraftKind
    runs: int
    chi2: float
    df: int
    p: float

    @property
    def wrong(self) -> bool:
        """Whether the distribution differs; by chance a fit is this bad once in 10,000 times."""
        return self.p < _WRONG_P


@dataclass(frozen=True)
class SpecCheck:
    """The result of `spec_check`.

    ``texts``: number of texts with a draft, which have ``tokens`` tokens together. ``differences``: the texts that
    differ from the texts without a draft. ``rounding``: how the target's logits depend on the number of tokens that are
    decoded together. ``why``: a sentence about this dependence; "" without a dependence.
    """

    texts: int
    tokens: int
    differences: tuple[Difference, ...]
    fits: tuple[Fit, ...]
    kept: tuple[Kept, ...]
    rounding: Rounding
    why: str

    @property
    def same(self) -> bool:
        """Whether all texts, distributions and logits agree.

        Equal logits mean that texts longer than the compared ones are equal too.
        """
        return not self.differences and not any(fit.wrong for fit in self.fits) and not self.why

    @property
    def verdict(self) -> str:
        """One line that says what was compared, or what differs and why."""
        if self.same:
            fits = ", ".join(f"{fit.p:.2f}" for fit in self.fits)
            return (
                f"no difference in {self.tokens + self.rounding.positions:,} positions: {self.texts} texts, and logits "
                f"of {self.rounding.positions}; the distribution fits (p = {fits})"
            )
        said = [
            f"the distribution with a {fit.draft} draft differs (p = {fit.p:.1g})" for fit in self.fits if fit.wrong
        ]
        if self.differences:
            first = self.differences[0]
            where = f"{first.text}, {first.draft}, mode {first.mode}, T {first.temperature:g}, K {first.n_max}"
            n = len(self.differences)
            said.insert(0, f"{n} of {self.texts} texts differ, the first ({where}) at token {first.at}")
        said.append(self.why or "the target's logits do not depend on the block, so this is a bug: please report it")
        return f"NOT the same: {'; '.join(said)}"

    def to_json(self) -> dict[str, Any]:
        """Return everything, with the verdict."""
        fields = {**asdict(self), "rounding": self.rounding._asdict()}
        return {"same": self.same, "verdict": self.verdict, **fields}


def spec_check(
    target: Model,
    model: Model | None = None,
    *,
    lookup: int = 2,
    max_tokens: int = 64,
    runs: int = 150,
    on_progress: Callable[[int, int], object] | None = None,
) -> SpecCheck:
    """Compare texts and distributions without a draft, with a draft model (if given) and with a lookup.

    The texts are a story, a task and a copied passage, of ``max_tokens`` (2..4096) tokens each, at temperatures 0 and
    0.8, with the default penalty. For each length of blocks from 1 to 8, in modes "gumbel" and "match" by turns, the
    texts must equal those without a draft. Longer texts are equal only if the target's logits do not depend on how many
    tokens are decoded together. So this dependence is checked too (`rounding`).

    ``runs`` (50..100,000) texts of three tokens in mode "mrs" must have the target's distribution. If the fit is bad,
    four times as many texts are drawn. ``on_progress`` is called with the number of finished texts and the number of
    all texts. The models' contexts are emptied. Raises like `generate`.
    """
    max_tokens, runs = integer("max_tokens", max_tokens, 2, 4096), integer("runs", runs, 50, 100_000)
    sources: list[dict[str, Any]] = [] if model is None else [{"model": model}]
    sources.append({"lookup": lookup})
    texts = _texts(target)
    needed = max_tokens + max(len(target.tokenize(_as_text(target, prompt))) for prompt in texts.values())
    if target.n_ctx < needed:
        raise ArgumentError(f"n_ctx must be at least {needed} for the texts of this check, got {target.n_ctx}")
    for source in sources:
        refuse_draft(target, Draft(**source, n_max=max(LENGTHS)))
    n_texts = len(texts) * len(TEMPERATURES) * len(sources) * len(LENGTHS)
    progress = _Progress(on_progress, n_texts + len(sources) * runs)
    differences: list[Difference] = []
    kept: list[Kept] = []
    tokens = 0
    found = rounding(target.llm, max(LENGTHS) + 1, target.n_ctx)
    for name, prompt in texts.items():
        for temperature in TEMPERATURES:
            params = Params.recommended(target, temperature=temperature, seed=_SEED)
            alone = _written(target, prompt, GenerationConfig(params, max_tokens=max_tokens))
            for source in sources:
                made = []
                for n_max in LENGTHS:
                    draft = Draft(**source, n_max=n_max, mode="match" if n_max % 2 else "gumbel")
                    config = GenerationConfig(params, max_tokens=max_tokens, draft=draft)
                    made.append(_written(target, prompt, config))
                    tokens += len(made[-1].tokens)
                    if made[-1].tokens != alone.tokens:
                        at = common_length(made[-1].tokens, alone.tokens)
                        differences.append(Difference(name, draft.kind, draft.mode, temperature, n_max, at))
                    progress.step()
                kept.append(_kept(name, draft.kind, temperature, made))
    fits = tuple(_fit(target, Draft(**source, n_max=2, mode="mrs"), runs, progress) for source in sources)
    why = what_it_means(target.llm, target.path.name, found) if may_differ(target.llm, found) else ""
    return SpecCheck(n_texts, tokens, tuple(differences), fits, tuple(kept), found, why)


class _Progress:
    def __init__(self, on_progress: Callable[[int, int], object] | None, total: int) -> None:
        self._on_progress, self._done, self._total = on_progress, 0, total

    def more(self, n: int) -> None:
        self._total += n

    def step(self) -> None:
        self._done += 1
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)


def _texts(target: Model) -> dict[str, str | Messages]:
    """Return a prompt for each kind of text."""
    chats = target.header.chat_template is not None
    task: str | Messages = [{"role": "user", "content": _QUESTION}] if chats else f"Question: {_QUESTION}\nAnswer:"
    return {"story": _STORY, "task": task, "copy": f"{_PASSAGE}\n\n{_PASSAGE[:44]}"}


def _as_text(target: Model, prompt: str | Messages) -> str:
    return prompt if isinstance(prompt, str) else target.chat_prompt(prompt)


def _written(*arguments: Any, **more: Any) -> Generation:
    """Call `generate` without its `RoundingWarning`, which the verdict replaces. An interrupted text raises
    KeyboardInterrupt.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundingWarning)
        made = generate(*arguments, **more)
    if made.finish_reason == "interrupted":
        raise KeyboardInterrupt
    return made


def _kept(text: str, draft: DraftKind, temperature: float, made: Sequence[Generation]) -> Kept:
    of = [one.speculated or Speculated() for one in made]
    drafted, calls = sum(one.drafted for one in of), sum(one.blocks + one.plain for one in of)
    share = sum(one.accepted for one in of) / drafted if drafted else None
    return Kept(text, draft, temperature, share, sum(one.tokens + one.plain for one in of) / max(calls, 1))


def _fit(target: Model, draft: Draft, runs: int, progress: _Progress) -> Fit:
    """Compare the first two tokens of texts written with a draft to the target's distribution."""
    asked = target.tokenize(_STORY)
    target.keep(0)
    target.decode(asked)
    likely = np.argsort(-target.logits(), kind="stable")
    few = [token for token in likely[: 10 * _LIKELY].tolist() if not target.is_eog(token)][:_LIKELY]
    params = replace(_CHOICES, logit_bias=dict.fromkeys(few, _FAVOUR))
    asked = [*few, *asked]  # a lookup then finds the tokens that continue the text
    if draft.lookup:
        draft = replace(draft, lookup=1)
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(2):
        law = {text: p for before, share in law.items() for text, p in _next(target, params, asked, before, share)}
    prompt, done = np.array(asked, np.int32), 0
    while True:
        counts = Counter[tuple[int, ...]]()
        for _ in range(runs):
            seeded = replace(params, seed=sequence_seed(_SEED, done))
            config = GenerationConfig(seeded, max_tokens=3, draft=draft)
            counts[_written(target, prompt, config, reuse_context=True).tokens[:2]] += 1
            done += 1
            progress.step()
        fit = _chi_square(counts, law, runs, draft.kind)
        if fit.p >= _LOW_P or done > runs:
            return fit
        runs *= _MORE
        progress.more(runs)


def _next(
    target: Model, params: Params, asked: list[int], text: tuple[int, ...], share: float
) -> list[tuple[tuple[int, ...], float]]:
    """Return each text that continues ``text`` by one token, with its probability."""
    target.keep(0)
    target.decode([*asked, *text])
    sampler = Sampler(target.n_vocab, params)
    for token in text:
        sampler.accept(token)
    ids, shares = sampler.distribution(target.logits())
    return [((*text, t), share * p) for t, p in zip(ids.tolist(), shares.tolist(), strict=True) if p > _IMPOSSIBLE]


def _chi_square(counts: Counter[tuple[int, ...]], law: dict[tuple[int, ...], float], n: int, draft: DraftKind) -> Fit:
    """Compare counts of texts with their expected distribution; rare texts share a bin."""
    bins = [(counts[text], n * p) for text, p in law.items() if n * p >= _LEAST_EXPECTED]
    rest = n - sum(expected for _, expected in bins)
    if rest >= 1:
        bins.append((n - sum(count for count, _ in bins), rest))
    chi2 = sum((count - expected) ** 2 / expected for count, expected in bins)
    if not set(counts) <= set(law):  # some text has probability 0
        chi2 = math.inf
    df = max(len(bins) - 1, 1)
    return Fit(draft, n, chi2, df, _chance(chi2, df))


def _chance(chi2: float, df: int) -> float:
    """Return the probability that chi-square is at least ``chi2`` (Abramowitz and Stegun, 26.4.4 and 26.4.5)."""
    half = chi2 / 2
    if math.isinf(half):
        return 0.0
    term = math.exp(-half) if df % 2 == 0 else math.exp(-half) * math.sqrt(half) / math.gamma(1.5)
    total = 0.0 if df % 2 == 0 else math.erfc(math.sqrt(half))
    at = 1.0 if df % 2 == 0 else 1.5
    for _ in range(df // 2):
        total += term
        term *= half / at
        at += 1
    return total
