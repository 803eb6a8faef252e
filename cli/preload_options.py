"""The settings of a preloaded lzsampler, for `lzs run` and `lzs serve`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lzsampler.params import OF_RULE, History

from .fields import opt, same_as
from .help import refuse_given
from .sampling import SamplingOptions

if TYPE_CHECKING:
    from lzsampler.serving.preloading import PreloadSettings

_LZ = "LZ penalty"


@dataclass(frozen=True, kw_only=True)
class PreloadOptions:
    """Fields of `PreloadSettings`."""

    preset: str = same_as(SamplingOptions, "preset")
    lz_penalty: float | None = same_as(SamplingOptions, "lz_penalty")
    lz_run_allowance: int | None = opt(
        _LZ, "--lz-run-allowance",
        help="tokens that the text may copy from itself before each more costs 0.5 logits (default: 32, or that of "
        "--preset)",
    )  # fmt: skip
    history: History = same_as(SamplingOptions, "history")
    strict: bool = opt(_LZ, "--strict", help="end the program if its llama.cpp is one that lzsampler does not know")
    no_markers: bool = opt(
        _LZ, "--no-markers", help="ignore the settings that a request brings in its dry_sequence_breakers"
    )

    def settings(self) -> "PreloadSettings":
        """Return the settings; a usage error for an option without effect, ArgumentError for a value out of range."""
        from lzsampler.serving.preloading import PreloadSettings

        if self.preset == "paper":
            refuse_given(OF_RULE["default"], "with --preset paper, which has another rule: leave it out")
        if self.lz_penalty == 0:
            refuse_given(("lz_run_allowance",), "with --lz-penalty 0, which turns all penalties off: leave one out")
        return PreloadSettings(
            preset=self.preset,
            lz_penalty=self.lz_penalty,
            lz_run_allowance=self.lz_run_allowance,
            history=self.history,
            markers=not self.no_markers,
            strict=self.strict,
        )
