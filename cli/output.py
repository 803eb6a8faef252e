"""The output of `lzs generate`: the text, printed while the model writes it, and a line of figures."""

import sys
from typing import TYPE_CHECKING, Any

from lzsampler._values import counted
from lzsampler.util.signals import uninterrupted

if TYPE_CHECKING:
    from lzsampler import LzsError
    from lzsampler.auditing.repetition import Repetition
    from lzsampler.decoding.config import GenerationConfig
    from lzsampler.decoding.generation import Generation
    from lzsampler.llama.model import Messages, Model
    from lzsampler.params import Params


class Output:
    """Prints a text to stdout in pieces. If that fails, it sets ``error``, and the generation ends without loss."""

    def __init__(self, *, live: bool) -> None:
        self.live = live
        self.error: OSError | None = None
        self._printed = 0  # number of printed characters
        self._is_stuck = False  # whether Ctrl-C came while stdout accepted no more bytes

    def write(self, text: str) -> bool:
        """Print a piece if ``live``. Return True if stdout cannot be written."""
        if self.live:
            self._print(text)
        return self.error is not None

    def finish(self, text: str) -> None:
        """Print what is not printed yet of the whole ``text``, and a line break."""
        self._print(text[self._printed :] + "\n")

    def _print(self, text: str) -> None:
        with uninterrupted():  # Ctrl-C must not come between writing and counting.
            sys.stdout.write(text)
            self._printed += len(text)
        if self._is_stuck:
            return
        try:
            sys.stdout.flush()
        except OSError as error:  # The reader is gone, or the disk is full.
            self.error = error
        except KeyboardInterrupt:  # Nobody reads stdout, so `finish` must not wait for a reader.
            self._is_stuck = True
            raise


def for_chat(what: str, how: str) -> str:
    """Return a hint that a chat model got plain text. ``how``: what the user can do to use the chat template."""
    return f"{what}; it is made for chat: {how} to ask it a question"


def repeats(figures: "Repetition") -> str:
    """Return, in words, whether a text loops, and its most repeated stretch."""
    run = figures.run
    if figures.loops:
        # The copies of a near loop differ a little, so there may be no exact repeat.
        return "near loop" if run is None else f"LOOP: {run.count:,} copies of {counted(run.period, 'character')}"
    return "no loop" if run is None else f"no loop ({run.count:,} copies of {counted(run.period, 'character')})"


def figures_of(generation: "Generation") -> "Repetition":
    """Return how much a text repeats itself."""
    from lzsampler.auditing.repetition import repetition

    return repetition(generation.text)


def transcript_of(
    model: "Model",
    asked: "str | Messages",
    config: "GenerationConfig",
    generation: "Generation | ValueError | LzsError",
    figures: "Repetition | None",
    dry_breakers: tuple[str, ...],
) -> dict[str, Any]:
    """Return the transcript of a generation or of a failed request. A failed request has no figures."""
    from lzsampler.decoding.transcript import record

    repetition = None if figures is None else figures.to_json()
    return record(model, asked, config, generation, repetition, dry_breakers=dry_breakers)


def summary(generation: "Generation", params: "Params", figures: "Repetition") -> str:
    """Return a generation's figures in one line, with the seed only if the text depends on the seed."""
    zlib = "" if figures.zlib_ratio is None else f", zlib {figures.zlib_ratio:.2f}"
    from lzsampler.decoding.actions import ACTIONS

    drew = params.temperature > 0 or any(ACTIONS[taken.name].random for taken in generation.actions)
    seed = f"seed {params.seed}; " if drew else ""
    where = " and in the graph" if generation.sampler == "graph" else ""
    return (
        f"{seed}{counted(generation.completion_tokens, 'token')}, {generation.tokens_per_second:.1f} tokens/s, "
        f"sampling {generation.sampling_microseconds:.1f} µs/token{where}; {repeats(figures)}, "
        f"rep-4 {figures.rep4:.3f}{zlib}"
    )
