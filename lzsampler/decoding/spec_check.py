"""`spec_check`: whether a draft leaves the texts and the distribution of a model as they are, and how much of it stands."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np

from .._check import integer
from ..llama.model import Messages, Model
from ..params import Params
from ..sampler import Sampler, sequence_seed
from .generate import common_length, generate
from .speculative import Draft, DraftKind, refuse_draft
from .verification import SpecMode

LENGTHS = tuple(range(1, 9))  # of blocks
TEMPERATURES = (0.0, 0.8)
_SEED = 11
_LOW_P = 0.01  # a distribution that fits so badly is drawn anew
_MORE = 4  # times as often
_WRONG_P = 0.0001  # and, if it then fits as badly as this, is another one
_LEAST_EXPECTED = 5.0  # of a bin of the chi-square
_CHOICES = {"temperature": 1.2, "top_k": 3, "presence_penalty": 1.0}  # few texts, and a penalty that a block changes
_PASSAGE = (
    "On Monday the baker sold forty loaves of bread, nine cakes and a basket of apples. On Tuesday the rain kept "
    "everyone at home, and he sold nothing at all."
)
_STORY = "Once upon a time there was a king who"
_QUESTION = "What is 12 + 30?"


@dataclass(frozen=True)
class Kept:
    """What stood of a draft in texts of one kind, over all lengths of blocks.

    ``text``: "story", "task" or "copy". ``draft``: "model" or "lookup". ``acceptance``: the share of its tokens that
    stood, None where there were none; ``tokens_per_call``: what a call of the target added on average.
    """

    text: str
    draft: DraftKind
    temperature: float
    acceptance: float | None
    tokens_per_call: float


@dataclass(frozen=True)
class Difference:
    """A text that is not the one without a draft; ``at``: its first token that differs, from 0."""

    text: str
    draft: DraftKind
    mode: SpecMode
    temperature: float
    n_max: int
    at: int


@dataclass(frozen=True)
class Fit:
    """Chi-square of the first two tokens of ``runs`` texts in mode "mrs" against the target's probabilities."""

    draft: DraftKind
    runs: int
    chi2: float
    df: int
    p: float

    @property
    def wrong(self) -> bool:
        """Whether it is another distribution: so bad a fit comes once in 10,000 times by chance."""
        return self.p < _WRONG_P


@dataclass(frozen=True)
class SpecCheck:
    """What `spec_check` found. ``texts``: number of texts with a draft; ``differences``: those that are not the same.

    ``rounding``: the largest difference of a logit of the target between tokens that were decoded one by one and
    those in blocks of 2 to 9; 0 where all have the same bits.
    """

    texts: int
    differences: tuple[Difference, ...]
    fits: tuple[Fit, ...]
    kept: tuple[Kept, ...]
    rounding: float

    @property
    def exact(self) -> bool:
        """Whether no text differs and no distribution is another one."""
        return not self.differences and not any(fit.wrong for fit in self.fits)

    @property
    def verdict(self) -> str:
        """One line: what holds, or what does not and why."""
        if self.exact:
            fits = ", ".join(f"{fit.p:.2f}" for fit in self.fits)
            return f"exact: {self.texts} texts are those without a draft, and the distribution fits (p = {fits})"
        wrong = [fit for fit in self.fits if fit.wrong]
        if not self.differences:
            return f"NOT exact: the distribution with a {wrong[0].draft} draft is another one (p = {wrong[0].p:.1g})"
        first = self.differences[0]
        where = f"{first.text}, {first.draft}, mode {first.mode}, T {first.temperature:g}, K {first.n_max}"
        found = (
            f"NOT exact: {len(self.differences)} of {self.texts} texts differ, the first ({where}) at token {first.at}"
        )
        if self.rounding:
            return (
                f"{found}; the target's logits depend on how many tokens are decoded together, by up to "
                f"{self.rounding:.2g}: decode with flash attention (-fa on), and weights such as Q8_0"
            )
        return f"{found}; the target's logits do not depend on the block, so this is a bug: please report it"

    def to_json(self) -> dict[str, Any]:
        """Return everything, with the verdict."""
        return {"exact": self.exact, "verdict": self.verdict, **asdict(self)}


def spec_check(
    target: Model,
    model: Model | None = None,
    *,
    lookup: int = 2,
    n_predict: int = 24,
    runs: int = 150,
    on_progress: Callable[[int, int], object] | None = None,
) -> SpecCheck:
    """Compare texts and distributions with and without a draft: of a draft model, if there is one, and of `lookup`.

    A story, a task and a passage that is copied, of ``n_predict`` (2..4096) tokens at temperature 0 and 0.8 with the
    default penalty, in modes "gumbel" and "match" by turns, must be those without a draft for each length of blocks
    from 1 to 8. ``runs`` (50..100,000) texts of three tokens in mode "mrs" must have the target's distribution: where
    they fit badly, they are drawn anew, four times as many. ``on_progress`` is called with texts that are done, and of
    how many. The contexts are emptied. Raises as `generate`.
    """
    n_predict, runs = integer("n_predict", n_predict, 2, 4096), integer("runs", runs, 50, 100_000)
    sources: list[dict[str, Any]] = [] if model is None else [{"model": model}]
    sources.append({"lookup": lookup})
    for source in sources:
        refuse_draft(target, Draft(**source, n_max=max(LENGTHS)))
    texts = _texts(target)
    total = len(texts) * len(TEMPERATURES) * (1 + len(sources) * len(LENGTHS)) + len(sources) * runs
    done = 0

    def count(n: int = 1) -> None:
        nonlocal done
        done += n
        if on_progress is not None:
            on_progress(min(done, total), total)

    differences: list[Difference] = []
    kept: list[Kept] = []
    rounding = 0.0
    for name, prompt in texts.items():
        asked = target.tokenize(prompt if isinstance(prompt, str) else target.chat_prompt(prompt))
        for temperature in TEMPERATURES:
            params = target.params(temperature=temperature, seed=_SEED)
            alone = _written(target, asked, params, n_predict)
            count()
            rounding = max(rounding, _rounding(target, [*asked, *alone], len(asked)))
            for source in sources:
                made = []
                for n_max in LENGTHS:
                    mode: SpecMode = "match" if n_max % 2 else "gumbel"
                    draft = Draft(**source, n_max=n_max, mode=mode)
                    made.append(_drafted(target, asked, params, n_predict, draft))
                    if made[-1].tokens != alone:
                        at = common_length(made[-1].tokens, alone)
                        differences.append(Difference(name, draft.kind, mode, temperature, n_max, at))
                    count()
                kept.append(_kept(name, draft.kind, temperature, [one.speculated for one in made]))
    fits = []
    for source in sources:
        draft = Draft(**source, n_max=2, mode="mrs")
        fits.append(_fit(target, target.tokenize(_PASSAGE[:60]), draft, runs, count))
    n_texts = len(texts) * len(TEMPERATURES) * len(sources) * len(LENGTHS)
    return SpecCheck(n_texts, tuple(differences), tuple(fits), tuple(kept), rounding)
