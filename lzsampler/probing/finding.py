"""The findings of a probe: answers with their evidence, and the verdict on a server."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["yes", "no", "cannot tell"]
# Name -> (the value that switches it off, a strong value, a value too weak to move a token far down the list). The
# first two are names of one penalty.
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

    ``check`` names the question, and ``question`` is its text. ``evidence`` is one line: the request and the result.
    ``wrong``: the server accepts a request but does something else. ``value``: the measured number, if there is one
    (`window`: tokens).
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
    """The result of `lzsampler.probe`. ``url``: up to ``/v1``. ``requests``: number of requests that were sent."""

    url: str
    model: str | None
    requests: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no finding is wrong: the server applies everything that was requested, and nothing else."""
        return not self.wrong

    @property
    def told(self) -> bool:
        """Whether the probe could decide, for at least one penalty, whether the server applies it."""
        return any(f.check in PENALTIES and f.answer != "cannot tell" for f in self.findings)

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The wrong findings."""
        return tuple(finding for finding in self.findings if finding.wrong)

    def find(self, check: str, endpoint: str | None = None) -> Finding:
        """Return the finding of a check. ``endpoint``: None is the first with this check. KeyError if there is none."""
        for finding in self.findings:
            if finding.check == check and endpoint in (None, finding.endpoint):
                return finding
        raise KeyError(f"{check} of {endpoint or 'any endpoint'}")

    def to_json(self) -> dict[str, Any]:
        """Return everything as an object for JSON."""
        return {"version": 1, **asdict(self), "findings": [asdict(found) for found in self.findings], "ok": self.ok}
