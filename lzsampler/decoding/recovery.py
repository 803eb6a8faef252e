"""What to do about a loop: `LoopPolicy`, and `Rescue`, which decides it token by token for whoever writes the text.

`Rescue` knows the tokens and what a sampler has found in them, and nothing of models and caches: `generate`,
`generate_many` and the drop-in carry out what it says. It draws nothing, so that a text depends on its seed alone.
"""

import codecs
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from .._check import integer
from .._values import shown
from ..detection import STOP_ON_LOOP, STOP_ON_STUCK, Loop, Stuck, StuckDetection
from ..errors import ArgumentError, ArgumentTypeError
from ..params import PENALTIES, Params, counts
from ..sampler import Sampler
from .parts import PARTS, Part, parts_of

OnLoop = Literal["off", "stop", "trim", "rewind", "close-think", "kick"]
LoopRule = Literal["period", "stuck", "both"]

MAX_RECOVERIES = 1000
# A kick ends with this many new tokens in a row; a token is new when the n-gram that it ends was not there before.
_NEW_TOKENS, _NGRAM = 16, 4
_CONTEXT = 8  # tokens after which a rewind forbids what led into a loop: or it would come back a copy later
_LONGEST_KICK = 256  # tokens; then the text ends
_KICK, _WARMER, _HOTTEST = 1.0, 0.25, 4.0  # temperatures: the lowest, what each token that repeats adds, the highest
KICK_TOP_K = 40  # so that the hottest draw still takes a word that the model thinks possible
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")
_NO_PRICE = 1e-45  # the smallest number that is not 0 in C: added to a logit that is not 0 it changes nothing


# How files and the command line call the fields of a `LoopPolicy`, which stand among those of `Params` there.
LOOP_KEYS = {
    "on_loop": "action",
    "loop_rule": "rule",
    "max_recoveries": "max_recoveries",
    "loop_scope": "loop_scope",
    "penalty_scope": "penalty_scope",
}


@dataclass(frozen=True, repr=False)
class LoopPolicy:
    """What is done when a text loops, and in which parts of a text this and the penalties apply.

    - ``action``: "off" does nothing, "stop" ends the text, "trim" ends it and cuts it before the second copy of the
      loop. "rewind" cuts it in the second copy, before the first word of the first line that begins there, or else of
      the first sentence; it forbids the word, there and wherever the 8 tokens before are the same, and goes on.
      "close-think" cuts it after the line or sentence before, writes the mark that ends the model's thinking, and goes
      on with the answer; it stops a text that is not thinking. "kick" cuts nothing and raises the temperature until the
      text is new: to 1.0, or the setting's own if that is higher, and by 0.25 more, up to 4.0, with each token
      that repeats, among the 40 likeliest tokens. New means that each of the last 16 tokens ended a 4-gram that had not
      occurred before. None is "stop" where `Params` have a detector, and else "off".
    - ``rule``: what counts as a loop. "period": copies of one pattern (``repetition_detection`` of `Params`, or
      `STOP_ON_LOOP` where they have none); "stuck": a stretch with next to nothing new in it (``stuck_detection``, or
      `STOP_ON_STUCK`), whose n-grams are there for the third time: the second copy begins where the first of them was
      before; "both": the one that is found first. None is the detectors that the `Params` have, and "period" if they
      have none.
    - ``max_recoveries``: how often an action that goes on may act on one text, 0..1000; after that the text stops. A
      kick that does not end within 256 tokens stops it too.
    - ``loop_scope`` and ``penalty_scope``: the parts of a text ("thinking", "answer", "tool" for tool calls) in which
      loops are acted on, and in which penalties apply; None is all of them.

    Raises ValueError, with the value, for what is out of range.
    """

    action: str | None = None
    rule: LoopRule | None = None
    max_recoveries: int = 3
    loop_scope: Sequence[Part] | None = None
    penalty_scope: Sequence[Part] | None = None

    def __post_init__(self) -> None:
        for name, key, names in (("action", "on_loop", get_args(OnLoop)), ("rule", "loop_rule", get_args(LoopRule))):
            given = getattr(self, name)
            if given is not None and given not in names:
                raise ArgumentError(f"{key} must be one of {', '.join(names)}, got {given!r}")
        object.__setattr__(self, "max_recoveries", integer("max_recoveries", self.max_recoveries, 0, MAX_RECOVERIES))
        for name in ("loop_scope", "penalty_scope"):  # the dataclass is frozen; this is its construction
            object.__setattr__(self, name, parts_of(name, getattr(self, name)))

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in LOOP_KEYS.values() if name != "action"}
        usual = {"rule": None, "max_recoveries": 3, "loop_scope": PARTS, "penalty_scope": PARTS}
        words = [repr(self.action), *(f"{name}={value!r}" for name, value in given.items() if value != usual[name])]
        return f"LoopPolicy({', '.join(words)})"

    @classmethod
    def of(cls, on_loop: "LoopPolicy | str | None") -> "LoopPolicy":
        """Return the policy that was given, or that of an action's name."""
        if on_loop is None or isinstance(on_loop, str):
            return cls(on_loop)
        if not isinstance(on_loop, LoopPolicy):
            raise ArgumentTypeError(f"on_loop must be the name of an action or a LoopPolicy, got {shown(on_loop)}")
        return on_loop

    def refuse_beside_grammar(self) -> None:
        """Raise ValueError for an action that writes what a grammar may refuse."""
        if self.action == "close-think":
            raise ArgumentError("on_loop='close-think' writes a mark that a grammar may refuse: use another action")

    def settled(self, params: Params) -> tuple["LoopPolicy", Params]:
        """Return the policy without None, and the settings with the detectors that it needs and no other."""
        own = params.repetition_detection, params.stuck_detection
        action = self.action or ("stop" if any(own) else "off")
        rule = self.rule or ("both" if all(own) else "stuck" if own[1] else "period")
        period = own[0] or STOP_ON_LOOP if action != "off" and rule != "stuck" else None
        stuck = own[1] or STOP_ON_STUCK if action != "off" and rule != "period" else None
        if (period, stuck) != own:
            params = replace(params, repetition_detection=period, stuck_detection=stuck)
        return replace(self, action=action, rule=rule), params

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them, by the names of `LOOP_KEYS`."""
        values = {key: getattr(self, field) for key, field in LOOP_KEYS.items()}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "LoopPolicy":
        """Return the policy of some fields by the names of `LOOP_KEYS`, as `to_json` has them."""
        return cls(**{LOOP_KEYS[key]: value for key, value in values.items()})


DEFAULT_POLICY = LoopPolicy()


@dataclass(frozen=True)
class Action:
    """What was done about a loop, a record of `Generation.actions`. Tokens are counted in the text as it was then.

    ``name``: an ``on_loop``; "stop" also where another one has come to its end. ``at``: how many tokens the text
    had. ``found``: the `Loop` or `Stuck`. ``keep``: how many tokens stayed, and ``cut``: those that did not.
    ``forbidden``: the tokens that could not be picked at this place, the newest last; empty but for a rewind.
    ``written``: tokens that were written in the model's place. ``until``: where a kick ended; None if the text
    ended before.
    """

    name: OnLoop
    at: int
    found: Loop | Stuck
    keep: int
    cut: tuple[int, ...] = ()
    forbidden: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    until: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON has it."""
        rule = "period" if isinstance(self.found, Loop) else "stuck"
        return {**asdict(self), "rule": rule, **{n: list(getattr(self, n)) for n in ("cut", "forbidden", "written")}}


@dataclass(frozen=True)
class Order:
    """What is to be done with a text: cut it to ``keep`` tokens, add those of ``write``, and go on or ``end`` it."""

    keep: int
    write: tuple[int, ...] = ()
    end: bool = False


class Rescue:
    """The state of what is done about the loops of one text.

    ``policy`` and ``params``: as `LoopPolicy.settled` returns them. ``limit``: the most tokens that the text can have.
    ``whole``: the first place at or after a number of tokens that is not inside a character. ``fresh``: `fresh_start`
    for its text. ``closing``: the tokens that end the thinking after so many tokens of the text, none where it is not
    thinking.

    After each token for which `watching` or something was found, call `step`. Between two tokens, `forbidden` are the
    tokens that may not be picked next, and `temperature` is what to draw with instead of the setting's own, if any.
    """

    def __init__(
        self,
        policy: LoopPolicy,
        params: Params,
        n_vocab: int,
        *,
        limit: int,
        whole: Callable[[int], int] = lambda n: n,
        fresh: Callable[[int, int], tuple[int, int]] = lambda n, reach: (n, n),
        closing: Callable[[int], Sequence[int]] = lambda n: (),
    ) -> None:
        self.policy = policy
        self.actions: list[Action] = []
        self.forbidden: tuple[int, ...] = ()
        self.temperature: float | None = None
        self._limit, self.whole, self.fresh, self.closing = limit, whole, fresh, closing
        self._coldest = max(_KICK, params.temperature)
        self._detect = Params(repetition_detection=params.repetition_detection, stuck_detection=params.stuck_detection)
        self._n_vocab = n_vocab
        self._rescues = 0
        self._closed = False
        self._refused: dict[tuple[int, ...], list[int]] = {}  # last tokens of a text: those that may not come next
        # The text's own sampler finds one loop, and no other as long as its tokens stay: this one looks on from there.
        self._watch: Sampler | None = None
        self._watch_from = 0
        self._kick: _Kick | None = None

    @property
    def watching(self) -> bool:
        """Whether `step` is needed after the next token whatever the sampler finds."""
        return bool(self._refused) or self._kick is not None or self._watch is not None

    def step(self, tokens: Sequence[int], found: Loop | Stuck | None, part: Part = "answer") -> Order | None:
        """Return what to do after the last of ``tokens``; None to go on as it is.

        ``found``: what the text's sampler has found. ``part``: the part of the text in which the next token falls.
        """
        self.forbidden = self._refused_after(tokens)
        if self._kick is not None:
            return self._kicked(self._kick, tokens)
        if self._watch is not None:
            self._watch.accept(tokens[-1])
            found = self._seen(self._watch)
        if found is None:
            return None
        if part not in (self.policy.loop_scope or PARTS):
            self._look_from(len(tokens))
            return None
        return self._act(tokens, found)

    def give_up(self, tokens: Sequence[int]) -> None:
        """Record that nothing can be picked but what is forbidden, which ends the text."""
        self._record("stop", tokens, self.actions[-1].found, len(tokens))

    # -- actions --

    def _act(self, tokens: Sequence[int], found: Loop | Stuck) -> Order | None:
        n, action = len(tokens), self.policy.action
        copy, reach = self._second_copy(tokens, found)
        end, word = self.fresh(copy, reach)
        place = word if action == "rewind" else end if action == "close-think" else copy
        keep = min(n, self.whole(max(1, place)))
        if action == "trim":
            self._record("trim", tokens, found, keep)
            return Order(keep, end=True)
        if action == "kick" and self._rescues < self.policy.max_recoveries:
            self._rescues += 1
            self._watch = None
            self._kick = _Kick(tokens, self._coldest)
            self.temperature = self._kick.temperature
            self._record("kick", tokens, found, n)
            return None
        if action == "rewind" and keep < n and self._rescues < self.policy.max_recoveries:
            self._rescues += 1
            self._refused.setdefault(_context(tokens[:keep]), []).append(tokens[keep])
            self.forbidden = self._refused_after(tokens[:keep])
            self._record("rewind", tokens, found, keep, forbidden=self.forbidden)
            self._go_back(n, keep)
            return Order(keep)
        # Once: where the model shows nothing for its mark, the text still looks as if it was thinking.
        written = tuple(self.closing(keep)) if action == "close-think" and not self._closed else ()
        if written and keep + len(written) < self._limit:
            self._closed = True
            self._record("close-think", tokens, found, keep, written=written)
            self._go_back(n, keep)
            if self._watch is not None:
                for token in written:
                    self._watch.accept(token)
            self.forbidden = ()
            return Order(keep, written)
        self._record("stop", tokens, found, n)
        return Order(n, end=True)

    def _second_copy(self, tokens: Sequence[int], found: Loop | Stuck) -> tuple[int, int]:
        """Return where the second copy of what was found begins, and how many tokens it has."""
        if isinstance(found, Loop):
            return found.start + found.period, found.period
        detection = self._detect.stuck_detection
        assert isinstance(detection, StuckDetection)
        # The stretch begins with an n-gram that is there for the min_count-th time.
        n, start = detection.ngram_size, found.start
        copies = [i for i in range(self._watch_from, start) if tokens[i : i + n] == tokens[start : start + n]]
        second = [*copies, start][-min(detection.min_count - 1, len(copies) + 1)]
        return second, max(n, start - second)

    def _refused_after(self, tokens: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._refused.get(_context(tokens), ())) if self._refused else ()

    def _kicked(self, kick: "_Kick", tokens: Sequence[int]) -> Order | None:
        kick.add(tokens)
        self.temperature = kick.temperature
        if kick.new >= _NEW_TOKENS:
            self._kick = self.temperature = None
            self.actions[-1] = replace(self.actions[-1], until=len(tokens))
            self._look_from(len(tokens))
        elif kick.n >= _LONGEST_KICK:
            self._record("stop", tokens, self.actions[-1].found, len(tokens))
            return Order(len(tokens), end=True)
        return None

    def _record(self, name: OnLoop, tokens: Sequence[int], found: Loop | Stuck, keep: int, **more: Any) -> None:
        self.actions.append(Action(name, len(tokens), found, keep, tuple(tokens[keep:]), **more))

    # -- looking on where the text's sampler does not --

    def _look_from(self, n: int) -> None:
        if self._watch is None:
            self._watch = Sampler(self._n_vocab, self._detect)
        self._watch.reset()
        self._watch_from = n

    def _seen(self, watch: Sampler) -> Loop | Stuck | None:
        loop, stuck, n = watch.loop, watch.stuck, self._watch_from
        if loop is not None:
            return replace(loop, start=loop.start + n)
        return None if stuck is None else Stuck(stuck.start + n, stuck.end + n)

    def _go_back(self, n: int, keep: int) -> None:
        if self._watch is not None and keep >= self._watch_from:
            self._watch.rewind(n - keep)
        elif self._watch is not None:
            self._look_from(keep)


def _context(tokens: Sequence[int]) -> tuple[int, ...]:
    return tuple(tokens[-_CONTEXT:])


class _Kick:
    """A kick: how hot the next draw is, and how many tokens in a row were new."""

    def __init__(self, tokens: Sequence[int], coldest: float) -> None:
        self.n = self.new = 0
        self.temperature = self._coldest = coldest
        self._seen = {tuple(tokens[i : i + _NGRAM]) for i in range(len(tokens) - _NGRAM + 1)}

    def add(self, tokens: Sequence[int]) -> None:
        """Take the last of ``tokens``."""
        ngram = tuple(tokens[-_NGRAM:])
        self.n += 1
        if ngram in self._seen:
            self.new = 0
            self.temperature = max(self._coldest, min(self.temperature + _WARMER, _HOTTEST))
        else:
            self.new += 1
            self.temperature = self._coldest
            self._seen.add(ngram)


def whole_character(tokens: Sequence[int], n: int, piece: Callable[[int], bytes]) -> int:
    """Return ``n``, or the next place up to three tokens later at which the text is not inside a character.

    Where tokens are bytes a copy of a loop may end inside a character, which the beginning of the next one completes; a
    character has 4 bytes at most. ``piece``: the bytes of a token.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for token in tokens[:n]:
        decoder.decode(piece(token))
    for later in range(min(3, len(tokens) - n)):
        if not decoder.getstate()[0]:
            return n + later
        decoder.decode(piece(tokens[n + later]))
    return min(n + 3, len(tokens))


def fresh_start(tokens: Sequence[int], n: int, reach: int, piece: Callable[[int], bytes]) -> tuple[int, int]:
    """Return where a line begins, or else a sentence, within ``reach`` tokens from the ``n``-th on; else (n, n).

    There a text can go elsewhere more easily than in the middle of a sentence, which is where most loops are closed.
    The second place is that of its first word, the first one comes before the marks in front of it, such as those of a
    list. ``piece``: the bytes of a token.
    """
    texts = [piece(token).decode("utf-8", "replace") for token in tokens[: n + reach]]
    begins, kind = 0, ""  # the place after what ended last with no word since, and what it was
    sentence = None
    for at, text in enumerate(texts):
        if any(map(str.isalpha, text)):
            if at >= n and kind == "line":
                return max(begins, 1), at
            if at >= n and kind == "sentence" and sentence is None:
                sentence = max(begins, 1), at
            kind = ""
        if "\n" in text:
            begins, kind = at + 1, "line"
        elif kind != "line" and text.rstrip("\"')*_ ").endswith(_SENTENCE_ENDS):
            begins, kind = at + 1, "sentence"
    return sentence or (n, n)


def kicked(params: Params, temperature: float) -> Params:
    """Return the settings of a draw during a kick: the temperature first, or truncation would leave only the loop."""
    top_k = min(params.top_k or KICK_TOP_K, KICK_TOP_K)
    return replace(params, temperature=temperature, temperature_last=False, top_k=top_k)


def unpriced(params: Params) -> Params:
    """Return settings whose penalties change no logit but are not off, so that a sampler can go back to ``params``."""
    changes: dict[str, Any] = {
        penalty.strength: _NO_PRICE for penalty in PENALTIES if penalty.method is None and penalty.is_on(params)
    }
    if params.dry_multiplier:
        changes["dry_base"] = 1.0  # or a long repetition would make something of it
    if counts(params):
        changes |= {
            "repetition_penalty": None,
            "frequency_penalty": None,
            "presence_penalty": _NO_PRICE,
            "presence_method": "subtractive",
        }
    return replace(params, **changes)
