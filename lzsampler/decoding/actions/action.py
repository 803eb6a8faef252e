"""`LoopAction`: what lzsampler does about a loop. An action gets a `LoopingText` and returns a `Decision`."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from ..._values import counted
from ...detection import Loop, Stuck
from ...params import Params


@dataclass(frozen=True)
class LoopingText:
    """A text at the token that completes a loop.

    ``tokens``: the text so far. A place is a number of tokens from the beginning of the text. ``copy``: where the
    second copy of the loop begins. ``line``: where the first line in the second copy begins, or else the first
    sentence in it. ``word``: where the first word of this line or sentence begins. If no line or sentence begins in the
    copy, ``line`` and ``word`` equal ``copy``. ``room``: the most tokens that the text can have. ``whole`` takes a
    place and returns the first place, from the given place on, that is not inside a character. ``closing`` takes a
    place and returns the tokens that end the thinking at this place. Outside of the thinking, ``closing`` returns no
    tokens. ``spell`` takes a str and returns its tokens as a continuation of the text.
    """

    tokens: Sequence[int]
    copy: int
    line: int
    word: int
    room: int
    whole: Callable[[int], int]
    closing: Callable[[int], Sequence[int]]
    spell: Callable[[str], Sequence[int]]

    def cut_at(self, place: int) -> int:
        """Return how many tokens stay if the text is cut at a place: at least one, and no half characters."""
        return min(len(self.tokens), self.whole(max(1, place)))


@dataclass(frozen=True)
class Decision:
    """What to do with a text: cut it to ``keep`` tokens, append the tokens ``write``, then ``end`` it or continue it.

    ``forbidden``: the tokens that the sampler may not pick after the cut, the newest last.
    """

    keep: int
    write: tuple[int, ...] = ()
    forbidden: tuple[int, ...] = ()
    end: bool = False


@dataclass(frozen=True)
class Draw:
    """How the next token is drawn after an action: at another ``temperature``, among the ``top_k`` likeliest tokens."""

    temperature: float
    top_k: int

    def params(self, params: Params) -> Params:
        """Return the given settings with this temperature and this top-k.

        The temperature is applied before the truncation. A truncation before the temperature would leave only the
        token that continues the loop.
        """
        top_k = min(params.top_k or self.top_k, self.top_k)
        return replace(params, temperature=self.temperature, temperature_last=False, top_k=top_k)


@dataclass(frozen=True)
class ActionTaken:
    """The record of an action on a loop, in `Generation.actions`. Places and counts are in tokens of the text at the
    time of the action.

    ``name``: the action's name, or "stop" if the policy's action could do nothing more. ``at``: how many tokens the
    text had. ``found``: the `Loop` or `Stuck`. ``keep``: how many tokens stayed. ``cut``: the tokens that were removed.
    ``forbidden``: the tokens that the sampler could not pick after the cut, the newest last. ``written``: tokens that
    lzsampler wrote instead of the model. ``until``: how many tokens the text had when the action stopped changing the
    draws; None if the text ended first.
    """

    name: str
    at: int
    found: Loop | Stuck
    keep: int
    cut: tuple[int, ...] = ()
    forbidden: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    until: int | None = None

    @property
    def loop(self) -> str:
        """The detected loop in words. Tokens count from 0 at the first new token."""
        found = self.found
        if isinstance(found, Loop):
            return f"{found.count} copies of {counted(found.period, 'token')} from token {found.start}"
        return f"almost no new text from token {found.start} to {found.end}"

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        rule = "period" if isinstance(self.found, Loop) else "stuck"
        return {**asdict(self), "rule": rule, **{n: list(getattr(self, n)) for n in ("cut", "forbidden", "written")}}


class LoopAction:
    """What lzsampler does about the loops of one text.

    Attributes of the class:

    - ``name`` and ``help``: for the command line and messages.
    - ``goes_on``: whether the text continues after the action.
    - ``cuts``: whether the action removes text that a stream may already have sent.
    - ``steers``: whether the action changes how a later token is picked.
    - ``random``: whether the text depends on the seed even at temperature 0.
    - ``writes``: whether the action writes tokens in the model's place, which a grammar may refuse.
    - ``needs_template``: whether the written tokens are the mark that ends the thinking, so that an answer follows.

    Attributes of an object:

    - ``draws``: how the next token is drawn; None for the text's own settings.
    - ``forbids``: whether `forbidden` may return tokens.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    goes_on: ClassVar[bool] = False
    cuts: ClassVar[bool] = False
    steers: ClassVar[bool] = False
    random: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    needs_template: ClassVar[bool] = False

    def __init__(self, temperature: float) -> None:
        """``temperature``: the temperature of the text's own settings."""
        self.temperature = temperature
        self.draws: Draw | None = None
        self.forbids = False

    def decide(self, text: LoopingText) -> Decision | None:
        """Return what to do about a loop; None if the action can do nothing. The text then ends."""
        return None

    def follow(self, tokens: Sequence[int]) -> bool:
        """Adapt `draws` to the newest token while `draws` is set; return False to end the text."""
        return True

    def forbidden(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens that may not come next in a text with these ``tokens``."""
        return ()

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return one line that says what the action did, and at which token."""
        return f"a loop at token {taken.at}, {taken.loop}: {cls.help}"
