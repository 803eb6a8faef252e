"""`Boost`: the temperature rises until the text no longer repeats."""

from collections.abc import Sequence

from .action import ActionTaken, Decision, Draw, LoopAction, LoopingText

# A boost ends after this many consecutive new tokens. A token is new if the n-gram that it completes did not occur
# before.
_NEW_TOKENS, _NGRAM = 16, 4
_LONGEST = 256  # the most tokens of a boost; the text ends if the boost has not ended by then
_COLDEST, _WARMER, _HOTTEST = 1.0, 0.25, 4.0  # lowest temperature, step for each repeated token, highest temperature
_TOP_K = 40  # so few that a draw at the highest temperature still gives a plausible word


class Boost(LoopAction):
    """Raises the temperature until the text no longer repeats, and removes no text.

    The temperature rises to 1.0, or stays at the temperature of the settings if that is higher. Each token that repeats
    adds 0.25, up to 4.0; a new token resets the temperature. The draw is among the 40 likeliest tokens. The boost ends
    when each of the last 16 tokens completed a 4-gram that had not occurred before. A boost that does not end within
    256 tokens ends the text.
    """

    name = "boost"
    help = "raises the temperature until the text is new"
    goes_on = True
    steers = True
    random = True

    def __init__(self, temperature: float) -> None:
        super().__init__(temperature)
        self._coldest = max(_COLDEST, temperature)
        self._n = self._new = 0
        self._seen: set[tuple[int, ...]] = set()

    def decide(self, text: LoopingText) -> Decision:
        """Begin to draw at a higher temperature."""
        tokens = text.tokens
        self._n = self._new = 0
        self._seen = {tuple(tokens[i : i + _NGRAM]) for i in range(len(tokens) - _NGRAM + 1)}
        self.draws = Draw(self._coldest, _TOP_K)
        return Decision(len(tokens))

    def follow(self, tokens: Sequence[int]) -> bool:
        """Adapt the temperature to the newest token; return False to end the text after too many tokens."""
        assert self.draws is not None
        ngram = tuple(tokens[-_NGRAM:])
        self._n += 1
        if ngram in self._seen:
            self._new = 0
            hotter = max(self._coldest, min(self.draws.temperature + _WARMER, _HOTTEST))
            self.draws = Draw(hotter, _TOP_K)
        else:
            self._new += 1
            self._seen.add(ngram)
            self.draws = Draw(self._coldest, _TOP_K)
        if self._new >= _NEW_TOKENS:
            self.draws = None
        return self.draws is None or self._n < _LONGEST

    @classmethod
    def describe(cls, taken: ActionTaken) -> str:
        """Return one line that says how long the temperature was raised."""
        until = "the end" if taken.until is None else f"token {taken.until}"
        return f"a loop at token {taken.at}, {taken.loop}: drew at a higher temperature until {until}"
