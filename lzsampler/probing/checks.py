"""`Checks`: sends requests to an endpoint to answer each question of a probe, and yields the findings."""

from collections.abc import Callable, Iterator
from functools import partial
from math import exp
from typing import Any

from .client import Refused
from .endpoint import Answer, Endpoint
from .finding import PENALTIES, Finding, Verdict
from .server_texts import DRAWN, GREEDY, PROMPTS, RUNS, SEEDS, TOKENS, Difference, Texts, quoted, told_apart
from .window import IDS, window

_REPETITION = ("repetition_penalty", "repeat_penalty")
_OPENAI = ("frequency_penalty", "presence_penalty")  # penalties that every OpenAI-compatible server should apply
# Each filter has two values: one that keeps all tokens, and one that keeps only the likeliest token.
FILTERS: dict[str, tuple[float, float]] = {"top_k": (0, 1), "min_p": (0.0, 1.0)}
_COUNTS = "Does {} count the prompt?"
_ALL = "Is all of the text counted?"
UNKNOWN = "no_such_parameter"
COUNTING = ("repetition_penalty", "repeat_penalty", "frequency_penalty", "presence_penalty")
CHECKS = (  # the names of all findings
    *("unknown_parameters", "temperature_0", "seed", "default", "logprobs"),
    *(*PENALTIES, *FILTERS, "logit_bias"),
    *(*(f"{name}_prompt" for name in COUNTING), "window"),
)

# If a penalty applies by default, the texts are compared with texts under these strengths to find the default strength.
_STRENGTHS = {
    "repetition_penalty": (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5),
    "repeat_penalty": (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5),
    "frequency_penalty": (0.1, 0.2, 0.3, 0.5, 1.0, 1.5),
    "presence_penalty": (0.1, 0.3, 0.5, 1.0, 1.5),
    "dry_multiplier": (0.5, 0.8, 1.0),
    "lz_penalty": (0.1, 0.15, 0.2, 0.3),
}
_ONE_TOKEN_SEEDS = 16  # number of first tokens that are drawn for each prompt and temperature of _MIXED
# A penalty that counts the prompt changes some drawn tokens. If at least this many changes are expected and no token
# changes, the prompt is not counted. The error rate is e**-5.
_ENOUGH = 5.0
# With these prompts and temperatures, a model often, but not always, continues with a word of the prompt.
_COLOURS = "red blue green red green blue blue red green green blue red blue green red red blue"
_STORY = (
    "The king and the queen of the land were in the house, and the people of the land said to the king that he was "
    "not to go to the sea, but the king said that he was the king of the land and of the sea, and that"
)
_MIXED = ((_COLOURS, 1.0), (_STORY, 1.0), (_COLOURS, 2.0), (_STORY, 2.0))
_BEST = 5  # number of likeliest tokens to ask for, the maximum of OpenAI's completions
_CLOSE = 0.01  # nats; log-probabilities that differ by less count as equal
_BEHIND = 0.1  # nats; if another token is likelier by more than this, a penalty has moved the greedy choice


class Checks:
    """All checks of one endpoint.

    `run` yields the findings. ``on_step`` is called with the name of each step before the step.
    """

    def __init__(self, endpoint: Endpoint, on_step: Callable[[str], object]) -> None:
        self.endpoint = endpoint
        self._on_step = on_step
        self._refused: dict[str, str] = {}  # the server's message for each refused parameter
        self._shows: str | None = None  # log-probabilities are from "before" or "after" the penalties
        self._differences: dict[str, Difference] = {}
        self.texts = Texts(endpoint, {})

    def run(self) -> Iterator[Finding]:
        """Yield the findings."""
        self._step("unknown parameters")
        yield self._unknown()
        self._step("texts without penalties")
        neutral = {name: off for name, (off, _, _) in PENALTIES.items() if self._takes(name, off)}
        seeds = self._takes("seed", SEEDS[0])
        self.texts = Texts(self.endpoint, neutral)
        self.texts.prepare(seeds=seeds)
        yield self._greedy()
        yield self._seed()
        self._step("defaults")
        yield self._default()
        for name in PENALTIES:
            self._step(name)
            self._differences[name] = self._difference(name)
        self._step("logprobs")
        yield self._logprobs()
        yield from self._penalties()
        for name in FILTERS:
            self._step(name)
            yield self._filter(name)
        self._step("logit_bias")
        bias = self._bias()
        yield bias
        counts: dict[str, Verdict] = {}
        for name in COUNTING:
            if self._differences[name].answer == "yes":
                self._step(f"{name} and the prompt")
                finding = self._unless_refused(f"{name}_prompt", _COUNTS.format(name), partial(self._prompt, name))
                counts[name] = finding.answer
                yield finding
        self._step("window")
        biased, prompt = bias.answer == "yes", counts.get("frequency_penalty")
        yield self._unless_refused("window", _ALL, partial(self._window, biased, prompt))

    def _unless_refused(self, check: str, question: str, find: Callable[[], Finding]) -> Finding:
        """Return the finding of ``find``. If the server refuses a request, the finding says so."""
        try:
            return find()
        except Refused as error:
            return self._finding(check, question, "cannot tell", f"refused: {error}")

    def _step(self, what: str) -> None:
        self._on_step(f"{self.endpoint.kind}: {what}")

    def _finding(
        self, check: str, question: str, answer: Verdict, evidence: str, *, wrong: bool = False, value: Any = None
    ) -> Finding:
        return Finding(self.endpoint.kind, check, question, answer, evidence, wrong, value)

    def _takes(self, name: str, value: float) -> bool:
        """Return whether the server accepts a parameter.

        An accepted parameter may have no effect. The message of a refusal is kept.
        """
        try:
            self.endpoint.ask(PROMPTS[0], tokens=1, **{**GREEDY, name: value})
        except Refused as error:
            self._refused[name] = str(error)
            return False
        return True

    # -- the server as it is --

    def _unknown(self) -> Finding:
        question = "Is an unknown parameter refused?"
        if self._takes(UNKNOWN, 1):
            return self._finding("unknown_parameters", question, "no", f"{UNKNOWN}=1 is silently ignored")
        return self._finding("unknown_parameters", question, "yes", f"{UNKNOWN}=1: {self._refused[UNKNOWN]}")

    def _greedy(self) -> Finding:
        question = "Does temperature 0 repeat a text?"
        texts = self.texts
        if not texts.once:
            shown = f"{len(texts.greedy)} of {len(PROMPTS)} texts of up to {TOKENS} tokens are repeated"
            return self._finding("temperature_0", question, "yes", shown)
        first, second = texts.once[0]
        shown = f"{len(texts.once)} of {len(PROMPTS)} texts are not repeated: {quoted(first)}, then {quoted(second)}"
        return self._finding("temperature_0", question, "no", shown, wrong=True)

    def _seed(self) -> Finding:
        question = "Does a seed repeat a drawn text?"
        texts = self.texts
        if "seed" in self._refused:
            return self._finding("seed", question, "no", f"refused: {self._refused['seed']}")
        asked = len(texts.drawn) + len(texts.drawn_once)
        if texts.drawn_once:
            first, second = texts.drawn_once[0]
            shown = f"{len(texts.drawn_once)} of {asked} texts are not repeated with their seed: "
            shown += f"{quoted(first)}, then {quoted(second)}"
            return self._finding("seed", question, "no", shown, wrong=True)
        if texts.seed_repeats:
            return self._finding("seed", question, "yes", f"{asked} texts are repeated, and two seeds give two texts")
        differs = [text for (prompt, _), text in texts.drawn.items() if text != texts.unused[prompt]]
        if differs:
            shown = f"seeds {SEEDS[0]} and {SEEDS[1]} give one text, {quoted(differs[0])}, which is not the greedy one"
            return self._finding("seed", question, "no", shown, wrong=True)
        shown = "at temperature 1 every text is the greedy one, so a seed has nothing to repeat"
        return self._finding("seed", question, "cannot tell", shown)

    def _default(self) -> Finding:
        question = "Is no penalty applied by default?"
        difference = self.texts.compare({}, "no parameters")
        if difference.answer == "no":
            moved = self._moved_choice()
            if moved:
                return self._finding("default", question, "no", moved, wrong=True)
        if difference.answer != "yes":
            answer: Verdict = "yes" if difference.answer == "no" else "cannot tell"
            return self._finding("default", question, answer, difference.evidence)
        if not difference.prompt:  # A permutation test found the difference.
            return self._finding("default", question, "no", difference.evidence, wrong=True)
        shown = f"{self._culprit(difference)}; {difference.evidence}"
        return self._finding("default", question, "no", shown, wrong=True)

    def _moved_choice(self) -> str:
        """Return evidence of a greedy choice that is not the likeliest token although all penalties are off. "" if
        there is no such choice. If the server's log-probabilities are from before the penalties, this reveals a penalty
        that cannot be switched off.
        """
        for prompt in () if self.texts.once else self.texts.greedy:
            try:
                answer = self.endpoint.ask(prompt, tokens=TOKENS, logprobs=_BEST, **self.texts.neutral, **GREEDY)
            except Refused:
                return ""
            for (token, n), best in zip(answer.chosen or (), answer.best or (), strict=True):
                likeliest = max(best, key=lambda other: best[other])
                if best[likeliest] > n + _BEHIND:
                    behind = f"{quoted(likeliest, 12)} is {best[likeliest] - n:.2f} nats likelier"
                    chosen = f"at temperature 0 {quoted(token, 12)} is chosen, though {behind}"
                    return f"with every penalty switched off, {chosen}: something applies that was not asked for"
        return ""

    def _culprit(self, difference: Difference) -> str:
        """Return evidence of which penalty applies by default, and which of its strengths give the default texts."""
        prompt, sampling = difference.prompt, difference.sampling
        for name, off in self.texts.neutral.items():
            if self.texts.ask(prompt, {name: off}, sampling) == self.texts.ask(prompt, self.texts.neutral, sampling):
                break
        else:
            return "several penalties apply together"
        cases = [(prompt, how, self.texts.ask(prompt, {}, how)) for prompt, how, _ in self.texts.cases()]
        same = [
            f"{strength:g}"
            for strength in _STRENGTHS[name]
            if all(self.texts.ask(prompt, {name: strength}, how) == text for prompt, how, text in cases)
        ]
        if not same:
            return f"{name} applies, with none of the strengths {', '.join(f'{s:g}' for s in _STRENGTHS[name])}"
        return f"{name} {' or '.join(same)}: {len(cases)} texts are the same with that and with no parameters"

    # -- penalties --

    def _difference(self, name: str) -> Difference:
        off, strong, _ = PENALTIES[name]
        named = f"{name}={strong:g}"
        if name in self._refused:
            return Difference("no", f"{name}={off:g} is refused: {self._refused[name]}")
        try:
            return self.texts.compare({**self.texts.neutral, name: strong}, named)
        except Refused as error:
            self._refused[name] = str(error)
            return Difference("no", f"{named} is refused: {error}")

    def _penalties(self) -> Iterator[Finding]:
        repetition = [name for name in _REPETITION if self._differences[name].answer == "yes"]
        for name, found in self._differences.items():
            shown = found.evidence
            silent = found.answer == "no" and name not in self._refused
            if found.answer == "yes" and self._shows == "after":
                shown += self._measured(name)
            if silent and name in _REPETITION and repetition:
                shown += f"; this server calls it {repetition[0]}"
            elif silent and UNKNOWN not in self._refused:
                shown += "; the server silently accepts unknown parameters"
            expected = name in _OPENAI or (name in _REPETITION and not repetition)
            yield self._finding(name, f"Is {name} applied?", found.answer, shown, wrong=silent and expected)

    def _logprobs(self) -> Finding:
        """Find out whether the server sends log-probabilities, and whether penalties change them."""
        question = "Are there logprobs with the penalties in them?"
        try:
            answer = self.endpoint.ask(PROMPTS[-1], tokens=8, logprobs=_BEST, **self.texts.neutral, **GREEDY)
        except Refused as error:
            return self._finding("logprobs", question, "no", f"none: {error}")
        if answer.best is None or answer.chosen is None:
            return self._finding("logprobs", question, "no", f"the server sends none for logprobs={_BEST}")
        for name, found in self._differences.items():
            if found.answer == "yes" and found.prompt:
                moved = self._moved(name, PENALTIES[name][1], found.prompt)
                if moved is None:
                    continue
                self._shows = "after" if moved >= 0 else "before"
                if self._shows == "after":
                    return self._finding("logprobs", question, "yes", f"{name} moves them")
                shown = f"{name} changes the text but not the logprobs: they are from before the penalties"
                return self._finding("logprobs", question, "no", shown)
        return self._finding(
            "logprobs", question, "cannot tell", "the server sends logprobs, but no penalty changes a text"
        )

    def _moved(self, name: str, strength: float, prompt: str) -> int | None:
        """Return the result of `_first_moved` for the greedy texts without and with a penalty."""
        return _first_moved(*self._with_and_without(name, strength, prompt))

    def _with_and_without(self, name: str, strength: float, prompt: str) -> tuple[Answer, Answer]:
        """Return the greedy texts without and with a penalty, both with log-probabilities."""
        without, with_it = (
            self.endpoint.ask(prompt, tokens=TOKENS, logprobs=_BEST, **{**self.texts.neutral, **extra}, **GREEDY)
            for extra in ({}, {name: strength})
        )
        return without, with_it

    def _measured(self, name: str) -> str:
        """Return evidence of how far a weak penalty lowers a token relative to other tokens; "" if it lowers none."""
        weak, prompt = PENALTIES[name][2], self._differences[name].prompt
        steps, _ = _together(*self._with_and_without(name, weak, prompt)) if prompt else ([], False)
        for i, (a, b) in enumerate(steps):
            shift = {token: b[token] - a[token] for token in a if token in b}
            token, least = min(shift.items(), key=lambda pair: pair[1], default=("", 0.0))
            by = least - max(shift.values(), default=0.0)
            if by < -_CLOSE:  # If all of the likeliest tokens are penalised alike, no difference is visible.
                return f"; {name}={weak:g} moves {quoted(token, 12)} by {by:.2f} at token {i}"
        return ""

    def _filter(self, name: str) -> Finding:
        """Find out whether a filter is applied: drawn texts must be equal if only the likeliest token is kept."""
        question = f"Is {name} applied?"
        off, only = FILTERS[name]
        prompt = PROMPTS[-1]
        try:
            free, filtered = (
                [
                    self.texts.ask(prompt, {**self.texts.neutral, name: value}, {**DRAWN, "temperature": 1.5}, 16)
                    for _ in range(3)
                ]
                for value in (off, only)
            )
        except Refused as error:
            return self._finding(name, question, "no", f"refused: {error}")
        shown = f"at temperature 1.5, {_alike(filtered)} with {name}={only:g}, and {_alike(free)} with {name}={off:g}"
        if len(set(filtered)) > 1:
            return self._finding(name, question, "no", shown)
        if len(set(free)) > 1:
            return self._finding(name, question, "yes", shown)
        return self._finding(name, question, "cannot tell", shown)

    def _bias(self) -> Finding:
        question = "Is logit_bias applied?"
        prompt = PROMPTS[-1]
        shown = ""
        for token in IDS:
            bias = {"logit_bias": {str(token): 100}}
            try:
                got = self.texts.ask(prompt, {**self.texts.neutral, **bias}, GREEDY, 8)
            except Refused as error:
                shown = f"refused: {error}"
                continue
            text = self.texts.ask(prompt, self.texts.neutral, GREEDY, 8)
            if got != text:
                return self._finding("logit_bias", question, "yes", f"{bias}: {told_apart(prompt, text, got)}")
            shown = f"{bias} changes nothing"
        return self._finding("logit_bias", question, "no", shown)

    # -- which tokens a penalty counts --

    def _prompt(self, name: str) -> Finding:
        """Find out whether a penalty counts the prompt: whether it changes the first generated token.

        If log-probabilities include penalties, they decide. Otherwise the first token is chosen at temperature 0, after
        prompts that repeat a word. If this decides nothing, the first token is drawn at random with several seeds,
        after prompts whose words a model often repeats. A penalty on these words then changes some of the drawn tokens.
        """
        check, question = f"{name}_prompt", _COUNTS.format(name)
        strong = {**self.texts.neutral, name: PENALTIES[name][1]}
        runs = [prompt for prompt in RUNS if prompt in self.texts.greedy]
        same = 0
        for prompt in runs if self._shows == "after" else ():
            moved = self._moved(name, PENALTIES[name][1], prompt)
            if moved == 0:
                shown = f"the logprobs of the first token after {quoted(prompt, 12)} move"
                return self._finding(check, question, "yes", f"{name}={PENALTIES[name][1]:g}: {shown}")
            if moved is not None and moved > 0:
                shown = f"after {quoted(prompt, 12)} the logprobs move at token {moved}, and not before"
                return self._finding(check, question, "no", f"{shown}: generated tokens only")
        for prompt in runs:
            first, got = (self.texts.ask(prompt, how, GREEDY, 1) for how in (self.texts.neutral, strong))
            if first != got:
                again = self.texts.ask(prompt, strong, GREEDY, 1), self.texts.ask(prompt, self.texts.neutral, GREEDY, 1)
                if again == (got, first):
                    shown = f"the first token after {quoted(prompt, 12)} is {quoted(got)}, not {quoted(first)}"
                    return self._finding(check, question, "yes", f"{name}={PENALTIES[name][1]:g}: {shown}")
            same += first == got and _in(first, prompt)
        if same and name != "presence_penalty":  # presence_penalty is too weak to move a word that the prompt repeats.
            shown = f"{name}={PENALTIES[name][1]:g} does not move the word that a prompt repeats from the first place"
            return self._finding(check, question, "no", f"{shown}: generated tokens only")
        if not self.texts.seed_repeats:
            needed = (
                "the first token does not change at temperature 0, and this server's seeds do not repeat drawn tokens"
            )
            return self._finding(check, question, "cannot tell", needed)
        expected = 0.0
        for prompt, temperature in _MIXED:
            seen = 0
            for seed in range(1, _ONE_TOKEN_SEEDS + 1):
                how = {**DRAWN, "temperature": temperature, "seed": seed}
                first, got = (self.texts.ask(prompt, parameters, how, 1) for parameters in (self.texts.neutral, strong))
                if first != got:
                    shown = f"seed {seed} draws {quoted(got)} first, not {quoted(first)}, after {quoted(prompt, 14)}"
                    return self._finding(check, question, "yes", f"{name}={PENALTIES[name][1]:g}: {shown}")
                seen += _in(first, prompt)
            share = seen / _ONE_TOKEN_SEEDS
            weaker = share * exp(-2 / temperature)  # presence_penalty subtracts at most 2 from a logit.
            expected += _ONE_TOKEN_SEEDS * (share - weaker / (weaker + 1 - share)) if share else 0
        return self._no_prompt(name, expected)

    def _no_prompt(self, name: str, expected: float) -> Finding:
        """Return the finding if no drawn token changed.

        ``expected``: how many changes to expect if the prompt is counted.
        """
        check, question = f"{name}_prompt", _COUNTS.format(name)
        drawn = len(_MIXED) * _ONE_TOKEN_SEEDS
        shown = f"none of {drawn} first tokens drawn with fixed seeds changes with {name}={PENALTIES[name][1]:g}"
        if expected >= _ENOUGH:
            also = f"{expected:.0f} would if the prompt were counted"
            return self._finding(check, question, "no", f"{shown}, where {also}: generated tokens only")
        needed = f"only {expected:.1f} would if the prompt were counted; a model that repeats words would decide"
        return self._finding(check, question, "cannot tell", f"{shown}, but {needed}")

    def _window(self, bias: bool, prompt: Verdict | None) -> Finding:
        question = _ALL
        if not self.texts.greedy:
            return self._finding(
                "window", question, "cannot tell", "this test needs a server that repeats its texts at temperature 0"
            )
        applied = [name for name in (*_REPETITION, "frequency_penalty") if self._differences[name].answer == "yes"]
        found = window(
            self.texts,
            repetition=next((name for name in applied if name in _REPETITION), None),
            frequency="frequency_penalty" in applied,
            bias=bias,
            prompt_counts={"yes": True, "no": False}.get(prompt or ""),
        )
        return self._finding("window", question, found.answer, found.evidence, value=found.tokens)


def _in(token: str, prompt: str) -> bool:
    """Return whether a token is a word of the prompt, or white space."""
    return token.strip() in (*prompt.split(), "")


def _alike(texts: list[str]) -> str:
    return f"{len(texts)} texts are {'the same' if len(set(texts)) == 1 else 'not all the same'}"


def _together(without: Answer, with_it: Answer) -> tuple[list[tuple[dict[str, float], dict[str, float]]], bool]:
    """Return (likeliest tokens of both texts at each position, whether the texts differ).

    The last position is the first at which the texts differ.
    """
    if without.best is None or with_it.best is None or without.chosen is None or with_it.chosen is None:
        return [], False
    same = [a[0] == b[0] for a, b in zip(without.chosen, with_it.chosen, strict=False)]
    end = same.index(False) + 1 if False in same else len(same)
    return list(zip(without.best[:end], with_it.best[:end], strict=True)), False in same


def _first_moved(without: Answer, with_it: Answer) -> int | None:
    """Return the index of the first token whose log-probabilities differ.

    -1 if only the texts differ; None if nothing differs or log-probabilities are missing.
    """
    steps, parted = _together(without, with_it)
    for i, (a, b) in enumerate(steps):
        if set(a) != set(b) or any(abs(b[token] - a[token]) > _CLOSE for token in a):
            return i
    return -1 if parted else None
