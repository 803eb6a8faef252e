"""The results of a probe: a `Finding` for each question about a server, and the `Probe` with all findings."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["yes", "no", "cannot tell"]
# Each penalty has three values: one that switches the penalty off, a strong one, and one so weak that a penalised token
# stays among the likeliest. repetition_penalty and repeat_penalty are two names of one penalty.
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
    """The answer to one question about one endpoint of a server.

    ``check``: the name of the question. ``question``: the text of the question. ``evidence``: the request and the
    result, in one line. ``wrong``: whether the server accepts a request but does something else. ``value``: the
    measured number of tokens for the check "window", else None.
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
    """The result of `lzsampler.probe`. ``url``: the address of the server, up to ``/v1``."""

    url: str
    model: str | None
    requests: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether the server applied everything that was requested, and nothing else: no finding is wrong."""
        return not self.wrong

    @property
    def told(self) -> bool:
        """Whether the probe could decide for at least one penalty whether the server applies the penalty."""
        return any(f.check in PENALTIES and f.answer != "cannot tell" for f in self.findings)

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The wrong findings."""
        return tuple(finding for finding in self.findings if finding.wrong)

    def find(self, check: str, endpoint: str | None = None) -> Finding:
        """Return the finding of a check. If ``endpoint`` is None, any endpoint counts. KeyError if there is none."""
        for finding in self.findings:
            if finding.check == check and endpoint in (None, finding.endpoint):
                return finding
        raise KeyError(f"{check} of {endpoint or 'any endpoint'}")

    def to_json(self) -> dict[str, Any]:
        """Return the probe as an object, ready for json.dumps."""
        return {"version": 1, **asdict(self), "findings": [asdict(found) for found in self.findings], "ok": self.ok}
