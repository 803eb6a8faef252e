"""`Explanation`: why a step of a `Sampler` changes the logits that it changes."""

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TokenExplanation:
    """What a step does to the logit of one token, and why. Distances and lengths are in tokens, changes in logits.

    ``logit``: as the model gave it; ``edited``: after the penalties and ``logit_bias``; ``after``: as `Sampler.process`
    leaves it, so after temperature and truncation too, and -inf where the token was removed. ``allowed``: whether the
    masks allow it; ``exempt``: whether `Params.exempt` spares it, and then all changes below but ``logit_bias`` are 0.

    LZ: the match that set the price has ``lz_length`` tokens, this one included, and lies ``lz_distance`` tokens back
    (1 is the last token; 0 is no match). It saves ``lz_bits``, for which the token loses ``lz_change``.
    Repetition, frequency and presence: the token came ``count`` times within ``penalty_window`` (0 where all three are
    off); together they divide its logit by ``count_factor`` (or multiply it, as ``sign_aware`` has it) and then add
    ``count_change``. DRY: the token would extend a repetition of ``dry_length`` tokens that lies ``dry_distance``
    tokens back, and loses ``dry_change``. ``logit_bias``: the addend of `Params.logit_bias`.

    ``text``: the token's text where the caller knows it (`lzsampler.decoding.generate` does), else None.
    """

    token: int
    logit: float
    edited: float
    after: float
    allowed: bool
    exempt: bool
    lz_length: int
    lz_distance: int
    lz_bits: float
    lz_change: float
    count: int
    count_factor: float
    count_change: float
    dry_length: int
    dry_distance: int
    dry_change: float
    logit_bias: float
    text: str | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        name = f"{self.token}" if self.text is None else f"{self.token} {self.text!r}"
        return f"{name}: {self.logit:.3f} -> {_number(self.edited)}: {'; '.join(self.reasons()) or 'unchanged'}"

    def reasons(self) -> list[str]:
        """Return what happens to the logit, one phrase each, in the order in which it does; empty when nothing does.

        "removed" is by truncation, or at temperature 0 for not being the best token.
        """
        spared = " (exempt)" if self.exempt else ""
        found = []
        if self.count and (self.count_factor != 1 or self.count_change != 0 or self.exempt):
            parts = [f"factor {self.count_factor:.4g}"] if self.count_factor != 1 else []
            parts += [f"{self.count_change:+.3f}"] if self.count_change else []
            parts += ["exempt"] if self.exempt else []
            times = "once" if self.count == 1 else f"{self.count} times"
            found.append(f"occurred {times} ({', '.join(parts)})")
        if self.lz_length:
            tokens = "1 token" if self.lz_length == 1 else f"{self.lz_length} tokens"
            match = f"match of {tokens}, {self.lz_distance} back, {self.lz_bits:.2f} bits"
            found.append(f"LZ {self.lz_change:+.3f} ({match}){spared}")
        if self.dry_length:
            match = f"repetition of {self.dry_length} tokens, {self.dry_distance} back"
            found.append(f"DRY {self.dry_change:+.3f} ({match}){spared}")
        if self.logit_bias:
            found.append(f"logit_bias {_number(self.logit_bias, sign=True)}")
        if not self.allowed:
            found.append("not allowed by a mask")
        elif self.after == -math.inf and self.edited > -math.inf:
            found.append("removed")
        elif self.after != self.edited:
            found.append(f"{self.after:.3f} after the temperature")
        return found


@dataclass(frozen=True)
class Explanation:
    """What one step does. ``position``: number of tokens accepted before it. ``token``: the token asked about, or the
    one that is picked; ``others``: the tokens that the model itself liked best, best first, without that one.
    """

    position: int
    token: TokenExplanation
    others: tuple[TokenExplanation, ...]

    def __str__(self) -> str:
        return "\n".join([f"position {self.position}: {self.token}", *(f"  beside {other}" for other in self.others)])


def explained(made: Any) -> TokenExplanation:
    """Return an ``lzs_explanation`` of C as a `TokenExplanation`."""
    return TokenExplanation(
        token=made.token,
        logit=made.logit,
        edited=made.edited,
        after=made.after,
        allowed=made.allowed != 0,
        exempt=made.exempt != 0,
        lz_length=made.lz_length,
        lz_distance=made.lz_distance,
        lz_bits=made.lz_bits,
        lz_change=made.lz_bias,
        count=made.count,
        count_factor=made.count_repeat,
        count_change=made.count_bias,
        dry_length=made.dry_length,
        dry_distance=made.dry_distance,
        dry_change=made.dry_bias,
        logit_bias=made.logit_bias,
    )


def _number(x: float, *, sign: bool = False) -> str:
    return "-inf" if x == -math.inf else f"{x:+.3f}" if sign else f"{x:.3f}"
