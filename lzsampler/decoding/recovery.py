"""`Recovery`: decides token by token what to do about the loops of a text.

`Recovery` uses the tokens and the loop that a sampler has found, but no model and no cache. `generate`, `generate_many`
and `lzsampler.dropin` carry out its decisions. `Recovery` draws no random numbers, so a text depends only on its seed.
"""

import codecs
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..detection import Loop, Stuck, StuckDetection
from ..params import Params
from ..sampler import Sampler
from .actions import ActionTaken, Decision, Draw, LoopingText, Stop
from .parts import PARTS, Part
from .policy import LoopPolicy

_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")


class Recovery:
    """Decides about the loops of one text, and keeps the state of its action.

    ``policy`` and ``params``: as `LoopPolicy.settled` returns them. ``temperature``: the temperature of the text's own
    settings. ``limit``: the most tokens that the text can have. ``whole``: takes a number of tokens and returns this
    number, or the next number at which the text is not inside a character. ``fresh``: the function `fresh_start` for
    the tokens of this text. ``closing``: takes a number of tokens and returns the tokens that end the thinking there,
    or no tokens outside of the thinking. ``spell``: takes words and returns the tokens that continue the text with
    these words.

    Call `step` after each token if `watching` is true or the sampler has found a loop. Between two tokens, `forbidden`
    holds the tokens that may not be picked next. `draws` tells how to draw the next token, if not by the text's own
    settings.
    """

    def __init__(
        self,
        policy: LoopPolicy,
        params: Params,
        n_vocab: int,
        *,
        temperature: float,
        limit: int,
        whole: Callable[[int], int] = lambda n: n,
        fresh: Callable[[int, int], tuple[int, int]] = lambda n, reach: (n, n),
        closing: Callable[[int], Sequence[int]] = lambda n: (),
        spell: Callable[[str], Sequence[int]] = lambda text: (),
    ) -> None:
        self.policy = policy
        self.actions: list[ActionTaken] = []
        self.forbidden: tuple[int, ...] = ()
        self.n_recoveries = 0
        self._action = policy.kind(temperature)
        self._limit, self.whole, self.fresh, self.closing, self.spell = limit, whole, fresh, closing, spell
        self._detect = Params(repetition_detection=params.repetition_detection, stuck_detection=params.stuck_detection)
        self._n_vocab = n_vocab
        # While the tokens of the first loop stay, the text's own sampler reports only that loop. This sampler detects
        # later loops.
        self._watch: Sampler | None = None
        self._watch_from = 0

    @property
    def draws(self) -> Draw | None:
        """How the next token is drawn; None for the text's own settings."""
        return self._action.draws

    @property
    def watching(self) -> bool:
        """Whether `step` must be called after the next token even if the sampler finds nothing."""
        return self._action.forbids or self._action.draws is not None or self._watch is not None

    def step(self, tokens: Sequence[int], found: Loop | Stuck | None, part: Part = "answer") -> Decision | None:
        """Return what to do after the last of ``tokens``; None to continue unchanged.

        ``found``: the loop that the text's sampler has found. ``part``: the part of the text in which the next token
        falls.
        """
        self.forbidden = self._action.forbidden(tokens)
        if self._action.draws is not None:
            return self._follow(tokens)
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
        """End the text, because only forbidden tokens could be picked, and record a "stop" action."""
        self._stop(tokens, self.actions[-1].found)

    def _act(self, tokens: Sequence[int], found: Loop | Stuck) -> Decision | None:
        action, n = self._action, len(tokens)
        may = not action.goes_on or self.n_recoveries < self.policy.max_recoveries
        made = action.decide(self._looping(tokens, found)) if may else None
        if made is None:
            return self._stop(tokens, found)
        cut = tuple(tokens[made.keep :])
        self.actions.append(ActionTaken(action.name, n, found, made.keep, cut, made.forbidden, made.write))
        if made.end:
            return made
        self.n_recoveries += 1
        if action.draws is not None:
            self._watch = None
            return None
        self._go_back(n, made.keep)
        if self._watch is not None:
            for token in made.write:
                self._watch.accept(token)
        self.forbidden = action.forbidden([*tokens[: made.keep], *made.write])
        return made

    def _looping(self, tokens: Sequence[int], found: Loop | Stuck) -> LoopingText:
        copy, reach = self._second_copy(tokens, found)
        line, word = self.fresh(copy, reach)
        return LoopingText(tokens, copy, line, word, self._limit, self.whole, self.closing, self.spell)

    def _second_copy(self, tokens: Sequence[int], found: Loop | Stuck) -> tuple[int, int]:
        """Return (the place where the second copy of the loop begins, the number of tokens of this copy)."""
        if isinstance(found, Loop):
            return found.start + found.period, found.period
        detection = self._detect.stuck_detection
        assert isinstance(detection, StuckDetection)
        # The stretch begins with the min_count-th occurrence of an n-gram.
        n, start = detection.ngram_size, found.start
        copies = [i for i in range(self._watch_from, start) if tokens[i : i + n] == tokens[start : start + n]]
        second = [*copies, start][-min(detection.min_count - 1, len(copies) + 1)]
        return second, max(n, start - second)

    def _follow(self, tokens: Sequence[int]) -> Decision | None:
        if not self._action.follow(tokens):
            return self._stop(tokens, self.actions[-1].found)
        if self._action.draws is None:
            self.actions[-1] = replace(self.actions[-1], until=len(tokens))
            self._look_from(len(tokens))
        return None

    def _stop(self, tokens: Sequence[int], found: Loop | Stuck) -> Decision:
        n = len(tokens)
        self.actions.append(ActionTaken(Stop.name, n, found, n))
        return Decision(n, end=True)

    # -- detecting loops after the first --

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


def spelled(text: str, tokenize: Callable[..., list[int]], piece: Callable[[int], bytes]) -> list[int]:
    """Return the tokens of ``text`` as the continuation of another text.

    ``tokenize``: the method `llama_cpp.Llama.tokenize`. For some vocabularies llama.cpp puts a space before a text.
    This space does not belong inside another text. ``piece``: returns the bytes of a token.
    """
    tokens = tokenize(text.encode("utf-8"), add_bos=False, special=False)
    has_space = bool(tokens) and piece(tokens[0]) == b" " and not text.startswith(" ")
    return tokens[1:] if has_space else tokens


def whole_character(tokens: Sequence[int], n: int, piece: Callable[[int], bytes]) -> int:
    """Return ``n``, or the next place up to three tokens later at which the text is not inside a character.

    If tokens are bytes, a copy of a loop may end inside a character, whose other bytes are in the next copy. A
    character has at most 4 bytes. ``piece``: returns the bytes of a token.
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
    """Return where a line, or else a sentence, begins within ``reach`` tokens from the ``n``-th token on.

    A text changes direction more easily at such a place than inside a sentence, where most loops are completed. The
    result is (the place before leading marks such as list marks, the place of the first word), or (n, n) if no line
    and no sentence begins there. ``piece``: returns the bytes of a token.
    """
    texts = [piece(token).decode("utf-8", "replace") for token in tokens[: n + reach]]
    begins, kind = 0, ""  # the latest line or sentence begins here; kind is "" after its first word
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
