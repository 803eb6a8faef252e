"""`generate`: a prompt, a model and a sampler make a text."""

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from .._check import INT32_MAX, Tokens, integer, token_array
from ..auditing.repetition import Repetition, repetition
from ..errors import LzsError
from ..llama.model import Model, Prompt
from ..params import Params
from ..sampler import Loop, Sampler
from ..util.reasoning import opened, split

FinishReason = Literal["stop", "repetition", "length", "context", "interrupted"]


@dataclass(frozen=True)
class Timings:
    """Seconds: ``prompt`` its decoding, ``decode`` that of the new tokens, ``sampling`` all picks, ``total`` all of it.

    A decode is over when its logits can be read, so work that llama.cpp does in the background is in it.
    """

    prompt: float
    decode: float
    sampling: float
    total: float


@dataclass(frozen=True)
class Generation:
    """What `generate` made.

    ``text``: everything written; ``reasoning`` and ``content``: the same, split at `<think>` and `</think>`, or what
    the model has in their place (reasoning is None without such a block, or with an empty one; one that was never
    closed reaches to the end). ``tokens``: the ids, without the EOG
    token and with those of a stop string. ``finish_reason``: "stop" (EOG, or ``stop_string``), "repetition" (``loop``),
    "length" (``n_predict``), "context" (it is full), "interrupted" (Ctrl-C, or ``on_text`` asked for it). ``loop``:
    the loop that ended it, in tokens; with ``trim_loop`` only its first copy is in ``tokens`` and ``text``.
    """

    text: str
    reasoning: str | None
    content: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason
    stop_string: str | None
    loop: Loop | None
    prompt_tokens: int
    timings: Timings
    repetition: Repetition

    @property
    def completion_tokens(self) -> int:
        """Number of new tokens: those of ``tokens`` and those that ``trim_loop`` cut off."""
        return len(self.tokens) if self.loop is None else self.loop.end

    @property
    def tokens_per_second(self) -> float:
        """New tokens a second, over everything but the prompt; 0 when there are none."""
        return self.completion_tokens / max(self.timings.total - self.timings.prompt, 1e-9)

    @property
    def sampling_microseconds(self) -> float:
        """Microseconds a token in the sampler: its pick and its accept."""
        return 1e6 * self.timings.sampling / max(self.completion_tokens, 1)


def generate(
    model: Model,
    prompt: Prompt,
    params: Params,
    *,
    n_predict: int = -1,
    stop: Sequence[str] = (),
    trim_loop: bool = False,
    on_text: Callable[[str], object] | None = None,
) -> Generation:
    """Continue a prompt until the model ends it, a stop string comes, it loops, or there is no room left.

    ``prompt``: text, messages ({"role", "content"} each) for the model's chat template, or tokens, int32[n], with all
    that the model wants around them. ``n_predict``: most new tokens; -1 is until the context is full. ``stop``: strings
    that end the text and are no part of it. With ``params.repetition_detection`` the text ends when it loops, and
    ``trim_loop`` cuts it after the loop's first copy (after the character in which that ends). ``on_text`` is called
    with each piece of text as it comes, never with part of a character; the pieces add up to ``text``, or to the text
    before the cut when a loop is trimmed (what was given out is not taken back). If it returns True the text ends
    there. A KeyboardInterrupt ends it too: what was written is returned.

    Raises ValueError for an empty prompt, one that does not fit in the context, ``trim_loop`` without detection, and
    arguments out of range; LzsError when the model or its template fails. The model's context is emptied first.
    """
    written = Text(model, prompt, params, n_predict=n_predict, stop=stop, on_text=on_text, trim_loop=trim_loop)
    start = perf_counter()
    try:
        model.keep(0)
        model.decode(written.prompt)
        logits = model.logits()
        written.prompt_s = perf_counter() - start
        while (token := written.take(logits, room=model.n_past < model.n_ctx)) is not None:
            before = perf_counter()
            model.decode((token,))
            logits = model.logits()
            written.decode_s += perf_counter() - before
    except KeyboardInterrupt:
        written.interrupt()
    finally:
        written.total_s = perf_counter() - start
    return written.generation()


class TextSampler(Protocol):
    """What a text needs of a sampler: `Sampler`, or another."""

    @property
    def loop(self) -> Loop | None:
        """The loop that the accepted tokens end in."""

    def prime(self, tokens: Tokens) -> None:
        """Take the prompt."""

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Pick a token; ValueError when these are no logits."""

    def accept(self, token: int) -> None:
        """Take a token into the text."""


class Text:
    """One text while it is written: prompt, sampler, and what it has come to, so that an interrupt loses nothing.

    Whoever decodes gives the logits after the prompt, and then after each token, to `take`, and sets the times.
    Arguments as of `generate`, which says what is raised; ``sampler``: one at its beginning, in the place of that of
    ``params``.
    """

    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        params: Params,
        *,
        n_predict: int = -1,
        stop: Sequence[str] = (),
        on_text: Callable[[str], object] | None = None,
        trim_loop: bool = False,
        sampler: TextSampler | None = None,
    ) -> None:
        n_predict = integer("n_predict", n_predict, -1, INT32_MAX)
        if isinstance(stop, str) or not all(isinstance(string, str) and string for string in stop):
            raise ValueError(f"stop must be strings that are not empty, got {stop!r}")
        if not isinstance(trim_loop, bool | np.bool_):
            raise ValueError(f"trim_loop must be True or False, got {trim_loop!r}")
        if trim_loop and params.repetition_detection is None:
            raise ValueError("trim_loop needs loops to be looked for: set repetition_detection in Params")
        text = ""
        if isinstance(prompt, np.ndarray):
            self.prompt = token_array("prompt", prompt, model.n_vocab).tolist()
        else:
            text = prompt if isinstance(prompt, str) else model.chat_prompt(prompt)
            if not text:
                raise ValueError("the prompt is empty: give the beginning of a text")
            self.prompt = model.tokenize(text)
        if not self.prompt:
            raise ValueError("the prompt is empty: it has no tokens")
        if len(self.prompt) > model.n_ctx:
            raise ValueError(
                f"the prompt has {len(self.prompt)} tokens, the context {model.n_ctx}: "
                "shorten the prompt or raise the context"
            )
        self.model, self.on_text, self.trim_loop = model, on_text, trim_loop
        self.n_predict = n_predict if n_predict >= 0 else INT32_MAX
        self.sampler = Sampler(model.n_vocab, params) if sampler is None else sampler
        self.sampler.prime(self.prompt)
        self.tokens: list[int] = []
        self.written: list[str] = []
        self.finish_reason: FinishReason = "interrupted"
        self.loop: Loop | None = None
        self.prompt_s = self.decode_s = self.sampling_s = self.total_s = 0.0
        self._opened = opened(text)
        self._stream = _TextStream(stop)

    def take(self, logits: npt.NDArray[np.float32], *, room: bool) -> int | None:
        """Pick the next token from logits, float32[n_vocab], and return it to be decoded; None when the text is over.

        ``room``: whether the context has a place for one more token.
        """
        token, reason = self._step(logits, room)
        if reason is not None:
            self._finish(reason)
            return None
        return token

    def _step(self, logits: npt.NDArray[np.float32], room: bool) -> tuple[int, FinishReason | None]:
        if self.n_predict == 0:
            return -1, "length"
        before = perf_counter()
        token = self._pick(logits)
        self.sampling_s += perf_counter() - before
        if self.model.is_eog(token):
            return token, "stop"
        self.tokens.append(token)
        wants_end = self._write(self._stream.feed(self.model.piece(token)))
        if self._stream.found is not None:
            return token, "stop"
        if wants_end:
            return token, "interrupted"
        self.loop = self.sampler.loop
        if self.loop is not None:
            return token, "repetition"
        if len(self.tokens) >= self.n_predict:
            return token, "length"
        return token, None if room else "context"

    def interrupt(self) -> None:
        """End the text where it is."""
        self._finish("interrupted")

    def generation(self) -> Generation:
        """Return what was written."""
        tokens, text = tuple(self.tokens), "".join(self.written)
        if self.trim_loop and self.loop is not None:
            tokens, text = _first_copy(tokens, self.loop, self.model)
        reasoning, content = split_reasoning(text, self._opened)
        return Generation(
            text=text,
            reasoning=reasoning,
            content=content,
            tokens=tokens,
            finish_reason=self.finish_reason,
            stop_string=self._stream.found,
            loop=self.loop,
            prompt_tokens=len(self.prompt),
            timings=Timings(self.prompt_s, self.decode_s, self.sampling_s, self.total_s),
            repetition=repetition(text),
        )

    def _finish(self, reason: FinishReason) -> None:
        self.finish_reason = reason
        self._write(self._stream.end())

    def _pick(self, logits: npt.NDArray[np.float32]) -> int:
        try:
            token = self.sampler.sample(logits)
        except ValueError as error:  # not an argument of the user's but a model that broke
            raise LzsError(f"the model failed after {len(self.tokens)} tokens: {error}") from error
        self.sampler.accept(token)
        return token

    def _write(self, text: str) -> bool:
        if not text:
            return False
        self.written.append(text)
        return self.on_text is not None and self.on_text(text) is True


class _TextStream:
    """Bytes of tokens in, text out: whole characters, and nothing that may turn out to be part of a stop string."""

    def __init__(self, stop: Sequence[str]) -> None:
        self.stop = tuple(stop)
        self.found: str | None = None
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""

    def feed(self, piece: bytes) -> str:
        """Return the text that is certain now; `found` is the stop string when one is complete."""
        self._held += self._decode(piece)
        return self._release(final=False)

    def end(self) -> str:
        """Return what was held back when no more comes; half a character becomes U+FFFD."""
        self._held += self._decode(b"", True)
        return self._release(final=True)

    def _release(self, *, final: bool) -> str:
        if self.found is not None:
            return ""
        places = [(at, string) for string in self.stop if (at := self._held.find(string)) >= 0]
        if places:
            at, self.found = min(places)
            return self._held[:at]
        held = 0 if final else max((_overlap(self._held, string) for string in self.stop), default=0)
        out, self._held = self._held[: len(self._held) - held], self._held[len(self._held) - held :]
        return out


def _first_copy(tokens: tuple[int, ...], loop: Loop, model: Model) -> tuple[tuple[int, ...], str]:
    """Return tokens and text up to the end of a loop's first copy, or of the character in which that ends.

    Where tokens are bytes a copy may end inside a character, which the beginning of the next one completes.
    """
    end, text = loop.start + loop.period, ""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for n, token in enumerate(tokens, 1):
        text += decoder.decode(model.piece(token))
        if n >= end and (not decoder.getstate()[0] or n == end + 3):  # a character has 4 bytes at most
            break
    return tokens[:n], text + decoder.decode(b"", True)


def _overlap(text: str, string: str) -> int:
    """Return the length of the longest end of ``text`` that ``string`` begins with, less than all of ``string``."""
    return next((n for n in range(min(len(text), len(string) - 1), 0, -1) if text.endswith(string[:n])), 0)


def split_reasoning(text: str, opened: str = "") -> tuple[str | None, str]:
    """Return (reasoning, content) as `reasoning.split` tells them, both without white space around them."""
    reasoning, answer = split(text, opened)
    return None if reasoning is None else reasoning.strip(), (answer or "").strip()
