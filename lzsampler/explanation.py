"""`Explanation`: why one step of a `Sampler` changes the logits."""

import math
from dataclasses import dataclass, field, fields
from typing import Any

from .params import REASONS, PenaltyParts


@dataclass(frozen=True)
class _Logits:
    """The fields of a `TokenExplanation` that come before the fields of the penalties."""

    token: int
    logit: float
    edited: float
    after: float
    allowed: bool
    exempt: bool
    free_share: float


@dataclass(frozen=True)
class TokenExplanation(PenaltyParts, _Logits):
    """What one step does to the logit of one token, and why. Distances and lengths are in tokens, changes in logits.

    ``logit``: the model's logit. ``edited``: the logit after the penalties and ``logit_bias``. ``after``: the logit
    after temperature and truncation too, as `Sampler.process` returns it; -inf if the token was removed.

    ``allowed``: whether the masks allow the token. ``exempt``: whether `Params.exempt` contains it; then all changes
    except ``logit_bias`` are 0. ``free_share``: the share (0..1) of the token's bytes that a grammar leaves free, 1
    without a grammar. Each penalty is multiplied by this share (`Params.structure`). The fields of the penalties hold
    the values before the multiplication.

    `lzsampler.params.PenaltyParts` describes the fields of the penalties: ``lz_length``, ``lz_distance``, ``lz_run``,
    ``lz_bits``, ``lz_change``; ``count``, ``count_factor``, ``count_change``; ``dry_length``, ``dry_distance``,
    ``dry_change``. ``logit_bias``: the number that `Params.logit_bias` adds.

    ``text``: the token's text if the caller knows it (`lzsampler.decoding.generate` does), else None.
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
        """Return the changes of the logit as phrases, in the order in which they apply; empty without a change.

        "removed" means that truncation removed the token or, at temperature 0, that another token is the best.
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
    """What one step does to some logits, and why.

    ``position``: number of tokens accepted before the step. ``token``: the token that you asked about, or else the
    picked token. ``others``: the other tokens with the model's highest logits, best first.
    """

    position: int
    token: TokenExplanation
    others: tuple[TokenExplanation, ...]

    def __str__(self) -> str:
        return "\n".join([f"position {self.position}: {self.token}", *(f"  beside {other}" for other in self.others)])


def explained(made: Any) -> TokenExplanation:
    """Return the `TokenExplanation` of an ``lzs_explanation``.

    The C fields ``*_bias`` and ``*_repeat`` become ``*_change`` and ``*_factor``.
    """
    names = [part.name for part in fields(TokenExplanation) if part.name != "text"]
    values = {name: getattr(made, name.replace("_change", "_bias").replace("_factor", "_repeat")) for name in names}
    return TokenExplanation(**{**values, "allowed": made.allowed != 0, "exempt": made.exempt != 0})


def _number(x: float, *, sign: bool = False) -> str:
    return "-inf" if x == -math.inf else f"{x:+.3f}" if sign else f"{x:.3f}"
