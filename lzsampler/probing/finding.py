"""What a probe finds: answers with their evidence, and what they come to."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["yes", "no", "cannot tell"]
# Name: the value that switches it off, a strong one, and one that is too weak to move a token far down the list. The
# first two are two names of one penalty.
PENALTIES: dict[str, tuple[float, float, float]] = {
    "repetition_penalty": (1.0, 2.0, 1.05),
    "repeat_penalty": (1.0, 2.0, 1.05),
    "frequency_penalty": (0.0, 2.0, 0.05),
    "presence_penalty": (0.0, 2.0, 0.5),
    "dry_multiplier": (0.0, 5.0, 0.1),
    "lz_penalty": (0.0, 1.0, 0.05),
}


@dataclass(frozen=True)
class Finding:
    """One question about one endpoint of a server.

    ``check`` names the question, ``question`` says it; ``evidence`` is one line: what was asked and what came.
    ``wrong``: the server says yes to a request and does something else. ``value``: the number that was measured, where
    there is one (`window`: tokens).
    """

    endpoint: str
    check: str
    question: str
    answer: Verdict
    evidence: str
    wrong: bool = False
    value: float | None = None


@dataclass(frozen=True)
class Probe:
    """What `lzsampler.probe` returns. ``url``: up to ``/v1``; ``requests``: how many were sent."""

    url: str
    model: str | None
    requests: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found that is wrong: all that was asked is applied, and nothing else."""
        return not self.wrong

    @property
    def told(self) -> bool:
        """Whether it could be told of any penalty that it is applied, or that it is not."""
        return any(f.check in PENALTIES and f.answer != "cannot tell" for f in self.findings)

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The findings that are wrong."""
        return tuple(finding for finding in self.findings if finding.wrong)

    def find(self, check: str, endpoint: str | None = None) -> Finding:
        """Return the finding of a check, of the first endpoint unless one is named; KeyError when there is none."""
        for finding in self.findings:
            if finding.check == check and endpoint in (None, finding.endpoint):
                return finding
        raise KeyError(f"{check} of {endpoint or 'any endpoint'}")

    def to_json(self) -> dict[str, Any]:
        """Return everything as an object for JSON."""
        return {"version": 1, **asdict(self), "findings": [asdict(found) for found in self.findings], "ok": self.ok}
