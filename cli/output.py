"""The output of `lzs generate`: the text as it grows, and the line of figures at the end."""

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
    """Text on stdout; if it cannot be written (``error``), the generation ends, but no text is lost."""

    def __init__(self, *, live: bool) -> None:
        self.live = live
        self.error: OSError | None = None
        self._printed = 0  # characters
        self._is_stuck = False  # whether Ctrl-C came while stdout accepted no more bytes

    def write(self, text: str) -> bool:
        """Print a piece as it comes; return True if it cannot be printed."""
        if self.live:
            self._print(text)
        return self.error is not None

    def finish(self, text: str) -> None:
        """Print the rest of the text, and end the line; Ctrl-C may have come between two pieces."""
        self._print(text[self._printed :] + "\n")

    def _print(self, text: str) -> None:
        with uninterrupted():  # so that printed text is always counted
            sys.stdout.write(text)
            self._printed += len(text)
        if self._is_stuck:
            return
        try:
            sys.stdout.flush()
        except OSError as error:  # the reader is gone, or the disk is full
            self.error = error
        except KeyboardInterrupt:  # there is no reader: the end of the text must not wait again
            self._is_stuck = True
            raise


def for_chat(what: str, how: str) -> str:
    """Return the hint that a model got plain text although it has a chat template, which ``how`` would use."""
    return f"{what}; it is made for chat: {how} to ask it a question"


def repeats(figures: "Repetition") -> str:
    """Return whether a text loops, and the stretch that is repeated most."""
    run = figures.run
    if figures.loops:
        # A near loop has no exact repeat, because its copies differ a little.
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
    """Return the transcript of a generation, or of a request that failed, which has no figures."""
    from lzsampler.decoding.transcript import record

    repetition = None if figures is None else figures.to_json()
    return record(model, asked, config, generation, repetition, dry_breakers=dry_breakers)


def summary(generation: "Generation", params: "Params", figures: "Repetition") -> str:
    """Return a generation's figures in one line; the seed is included only if the text depends on it."""
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
