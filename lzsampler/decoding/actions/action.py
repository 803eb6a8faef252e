"""What an action on a loop is: `LoopAction`, the `LoopingText` that it sees, its `Decision`, and the record of it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from ..._values import counted
from ...detection import Loop, Stuck
from ...params import Params


@dataclass(frozen=True)
class LoopingText:
    """A text at the token that completes a loop.

    ``tokens``: the text so far. ``copy``: where the second copy of what was found begins. ``line`` and ``word``: where
    the first line that begins there does, or else the first sentence, and its first word; both are ``copy`` if there is
    neither. ``room``: the most tokens that the text can have. ``whole`` returns the first place, at or after another
    one, that is not inside a character. ``closing`` returns the tokens that end the thinking after so many tokens of
    the text, and none for a text that is not thinking.
    """

    tokens: Sequence[int]
    copy: int
    line: int
    word: int
    room: int
    whole: Callable[[int], int]
    closing: Callable[[int], Sequence[int]]

    def cut_at(self, place: int) -> int:
        """Return how many tokens stay where the text is cut there: one or more, up to the end of a character."""
        return min(len(self.tokens), self.whole(max(1, place)))


@dataclass(frozen=True)
class Decision:
    """What to do with a text: cut it to ``keep`` tokens, add those of ``write``, and ``end`` it or go on.

    ``forbidden``: the tokens that may not be picked at that place, the newest last.
    """

    keep: int
    write: tuple[int, ...] = ()
    forbidden: tuple[int, ...] = ()
    end: bool = False


@dataclass(frozen=True)
class Draw:
    """How the next token is drawn in place of the text's own settings: among the ``top_k`` likeliest tokens."""

    temperature: float
    top_k: int

    def params(self, params: Params) -> Params:
        """Return settings with this draw. The temperature comes first, or truncation would leave only the loop."""
        top_k = min(params.top_k or self.top_k, self.top_k)
        return replace(params, temperature=self.temperature, temperature_last=False, top_k=top_k)


@dataclass(frozen=True)
class ActionTaken:
    """What was done about a loop, a record of `Generation.actions`. Tokens are counted in the text as it was then.

    ``name``: that of the action; "stop" also if another one has come to its end. ``at``: how many tokens the text had.
    ``found``: the `Loop` or `Stuck`. ``keep``: how many tokens stayed, and ``cut``: those that did not. ``forbidden``:
    the tokens that could not be picked at this place, the newest last. ``written``: tokens that were written in the
    model's place. ``until``: how many tokens the text had when another draw was over; None if it ended before.
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
        """What was found, in words; tokens count from 0 at the first new one."""
        found = self.found
        if isinstance(found, Loop):
            return f"{found.count} copies of {counted(found.period, 'token')} from token {found.start}"
        return f"almost no new text from token {found.start} to {found.end}"

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON has it."""
        rule = "period" if isinstance(self.found, Loop) else "stuck"
        return {**asdict(self), "rule": rule, **{n: list(getattr(self, n)) for n in ("cut", "forbidden", "written")}}


class LoopAction:
    """What is done about the loops of one text.

    Of the class: ``name`` and ``help``, for the command line and messages; ``goes_on``, whether the text goes on after
    it; ``cuts``, whether it takes text back, so that no stream can have it; ``steers``, whether it changes how a later
    token is picked; ``random``, whether a text depends on the seed even at temperature 0; ``needs_template``, whether
    it writes what the chat template of the model has, which a grammar may refuse.

    Of the object: ``draws``, how the next token is drawn, None for the text's own settings; ``forbids``, whether
    `forbidden` may have tokens.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    goes_on: ClassVar[bool] = False
    cuts: ClassVar[bool] = False
    steers: ClassVar[bool] = False
    random: ClassVar[bool] = False
    needs_template: ClassVar[bool] = False

    def __init__(self, temperature: float) -> None:
        """``temperature``: that of the text's own settings."""
        self.temperature = temperature
        self.draws: Draw | None = None
        self.forbids = False

    def decide(self, text: LoopingText) -> Decision | None:
        """Return what to do about a loop; None if it can do nothing, which ends the text."""
        return None

    def follow(self, tokens: Sequence[int]) -> bool:
        """Take the next token of the text, while it `draws`; return False to end the text."""
        return True

    def forbidden(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens that may not come after those of a text."""
        return ()

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return in a line what was done, and where."""
        return f"a loop at token {taken.at}, {taken.loop}: {cls.help}"
