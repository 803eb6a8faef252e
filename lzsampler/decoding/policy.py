"""`LoopPolicy`: what counts as a loop, what to do about it, and in which parts of a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from .._check import integer
from .._values import shown
from ..detection import STOP_ON_LOOP, STOP_ON_STUCK
from ..errors import ArgumentError, ArgumentTypeError
from ..params import PENALTIES, Params, counts
from .actions import ACTIONS, LoopAction, Off, Stop, names
from .parts import PARTS, Part, parts_of

LoopRule = Literal["period", "stuck", "both"]

MAX_RECOVERIES = 1000
_NO_PRICE = 1e-45  # the smallest positive float32: adding it changes no logit except 0

# Key in files and on the command line -> field of `LoopPolicy`. No key is a field of `Params`.
LOOP_KEYS = {
    "on_loop": "action",
    "loop_rule": "rule",
    "max_recoveries": "max_recoveries",
    "loop_scope": "loop_scope",
    "penalty_scope": "penalty_scope",
}


@dataclass(frozen=True, repr=False)
class LoopPolicy:
    """What to do when a text loops, in which parts of a text to do so, and in which parts penalties apply.

    - ``action``: the name of an action, a key of `lzsampler.decoding.actions.ACTIONS`: "off", "stop", "trim", "rewind",
      "close-think" or "boost". The docstring of its class describes each action. None is "stop" if the `Params` have a
      detector, and "off" otherwise.
    - ``rule``: what counts as a loop. "period": copies of one pattern (``repetition_detection`` of `Params`, or
      `STOP_ON_LOOP` if this field is not set). "stuck": a stretch with almost no new text (``stuck_detection``, or
      `STOP_ON_STUCK` if this field is not set). The n-grams of the stretch occur for the third time. The second copy
      begins at the previous occurrence of the stretch's first n-gram. "both": a period or a stuck stretch, whichever is
      found first. None uses the detectors that the `Params` have, or "period" if the `Params` have no detector.
    - ``max_recoveries``: how many times an action may act on one text and let it continue, 0..1000. The next loop after
      that stops the text.
    - ``loop_scope`` and ``penalty_scope``: the parts of a text ("thinking", "answer", "tool" for tool calls) in which
      loops are acted on, and in which penalties apply; None is all parts.

    Raises ValueError for a value out of range; the message shows the value.
    """

    action: str | None = None
    rule: LoopRule | None = None
    max_recoveries: int = 3
    loop_scope: Sequence[Part] | None = None
    penalty_scope: Sequence[Part] | None = None

    def __post_init__(self) -> None:
        if self.action is not None and not (isinstance(self.action, str) and self.action in ACTIONS):
            raise ArgumentError(f"on_loop must be one of {', '.join(ACTIONS)}, got {self.action!r}")
        if self.rule is not None and not (isinstance(self.rule, str) and self.rule in get_args(LoopRule)):
            raise ArgumentError(f"loop_rule must be one of {', '.join(get_args(LoopRule))}, got {self.rule!r}")
        object.__setattr__(self, "max_recoveries", integer("max_recoveries", self.max_recoveries, 0, MAX_RECOVERIES))
        for name in ("loop_scope", "penalty_scope"):  # the only way to set a field of a frozen dataclass
            object.__setattr__(self, name, parts_of(name, getattr(self, name)))

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in LOOP_KEYS.values() if name != "action"}
        usual = {"rule": None, "max_recoveries": 3, "loop_scope": PARTS, "penalty_scope": PARTS}
        words = [repr(self.action), *(f"{name}={value!r}" for name, value in given.items() if value != usual[name])]
        return f"LoopPolicy({', '.join(words)})"

    @classmethod
    def of(cls, on_loop: "LoopPolicy | str | None") -> "LoopPolicy":
        """Return the given policy, or the policy for the name of an action."""
        if on_loop is None or isinstance(on_loop, str):
            return cls(on_loop)
        if not isinstance(on_loop, LoopPolicy):
            raise ArgumentTypeError(f"on_loop must be the name of an action or a LoopPolicy, got {shown(on_loop)}")
        return on_loop

    @property
    def kind(self) -> type[LoopAction]:
        """The class of the action."""
        return Off if self.action is None else ACTIONS[self.action]

    def refuse_beside_grammar(self) -> None:
        """Raise ValueError if the action writes tokens that a grammar may refuse."""
        if self.kind.writes:
            raise ArgumentError(
                f"on_loop={self.action!r} writes tokens that a grammar may refuse: use {names('writes', False)}"
            )

    def settled(self, params: Params) -> tuple["LoopPolicy", Params]:
        """Return the policy with action and rule set, and the settings with exactly the detectors that this policy
        needs.
        """
        own = params.repetition_detection, params.stuck_detection
        action = self.action or (Stop if any(own) else Off).name
        rule = self.rule or ("both" if all(own) else "stuck" if own[1] else "period")
        acts = ACTIONS[action] is not Off
        period = own[0] or STOP_ON_LOOP if acts and rule != "stuck" else None
        stuck = own[1] or STOP_ON_STUCK if acts and rule != "period" else None
        if (period, stuck) != own:
            params = replace(params, repetition_detection=period, stuck_detection=stuck)
        return replace(self, action=action, rule=rule), params

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values. The keys are the names in `LOOP_KEYS`."""
        values = {key: getattr(self, field) for key, field in LOOP_KEYS.items()}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "LoopPolicy":
        """Return the policy that `to_json` wrote. ``values`` may lack keys; a missing field keeps its default."""
        unknown = values.keys() - LOOP_KEYS.keys() if isinstance(values, Mapping) else {shown(values)}
        if unknown:
            raise ArgumentError(f"a policy has the keys {', '.join(LOOP_KEYS)}, got {min(unknown)}")
        return cls(**{LOOP_KEYS[key]: value for key, value in values.items()})


DEFAULT_POLICY = LoopPolicy()


def unpriced(params: Params) -> Params:
    """Return settings whose penalties stay on but change no logit.

    A sampler cannot switch a penalty on or off between steps, but it can change from ``params`` to these settings and
    back.
    """
    changes: dict[str, Any] = {
        penalty.strength: _NO_PRICE for penalty in PENALTIES if penalty.method is None and penalty.is_on(params)
    }
    if params.dry_multiplier:
        changes["dry_base"] = 1.0  # with a larger base, a long repetition would amplify the tiny multiplier
    if counts(params):
        changes |= {
            "repetition_penalty": None,
            "frequency_penalty": None,
            "presence_penalty": _NO_PRICE,
            "presence_method": "subtractive",
        }
    return replace(params, **changes)
