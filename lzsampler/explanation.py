"""`Explanation`: why a step of a `Sampler` changes the logits that it changes."""

import math
from dataclasses import dataclass, field, fields
from typing import Any

from .params import REASONS, PenaltyParts


@dataclass(frozen=True)
class _Logits:
    """What a `TokenExplanation` says before the penalties."""

    token: int
    logit: float
    edited: float
    after: float
    allowed: bool
    exempt: bool
    free_share: float


@dataclass(frozen=True)
class TokenExplanation(PenaltyParts, _Logits):
    """What a step does to the logit of one token, and why. Distances and lengths are in tokens, changes in logits.

    ``logit``: as the model gave it; ``edited``: after the penalties and ``logit_bias``; ``after``: as `Sampler.process`
    leaves it, so after temperature and truncation too, and -inf where the token was removed. ``allowed``: whether the
    masks allow it; ``exempt``: whether `Params.exempt` spares it, and then all changes but ``logit_bias`` are 0.
    ``free_share``: the share of its bytes that a grammar leaves free, 0..1, by which the penalties are multiplied
    (`Params.structure`); 1 without a grammar. The changes below are those before this multiplication.

    The fields of the penalties are those of `lzsampler.params.PenaltyParts`: ``lz_length``, ``lz_distance``,
    ``lz_run``, ``lz_bits``, ``lz_change``; ``count``, ``count_factor``, ``count_change``; ``dry_length``,
    ``dry_distance``, ``dry_change``. ``logit_bias``: the addend of `Params.logit_bias`.

    ``text``: the token's text where the caller knows it (`lzsampler.decoding.generate` does), else None.
    """

    logit_bias: float
    text: str | None = field(default=None, kw_only=True)

    @property
    def is_penalised(self) -> bool:
        """Whether a penalty changes the logit."""
        return self.free_share > 0 and any(
            getattr(self, part.name) != (1 if part.name.endswith("_factor") else 0)
            for part in fields(PenaltyParts)
            if part.name.endswith(("_change", "_factor"))
        )

    def __str__(self) -> str:
        name = f"{self.token}" if self.text is None else f"{self.token} {self.text!r}"
        return f"{name}: {self.logit:.3f} -> {_number(self.edited)}: {'; '.join(self.reasons()) or 'unchanged'}"

    def reasons(self) -> list[str]:
        """Return what happens to the logit, one phrase each, in the order in which it does; empty when nothing does.

        "removed" is by truncation, or at temperature 0 for not being the best token.
        """
        found = [reason for of in REASONS if (reason := of(self, self.exempt))]
        if found and self.free_share < 1 and not self.exempt:
            why = "part of its bytes is forced" if self.free_share else "the grammar forces it"
            found.append(f"times {self.free_share:.3g} ({why})")
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
    """Return an ``lzs_explanation`` of C, which calls a change ``_bias`` and a factor ``_repeat``."""
    names = [part.name for part in fields(TokenExplanation) if part.name != "text"]
    values = {name: getattr(made, name.replace("_change", "_bias").replace("_factor", "_repeat")) for name in names}
    return TokenExplanation(**{**values, "allowed": made.allowed != 0, "exempt": made.exempt != 0})


def _number(x: float, *, sign: bool = False) -> str:
    return "-inf" if x == -math.inf else f"{x:+.3f}" if sign else f"{x:.3f}"
