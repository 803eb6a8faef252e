"""Records after an audit, made up: what the tests of summaries, folders and comparisons are about."""

from typing import Any

from lzsampler.records import Audited, Finding


def finding(**changes: Any) -> Finding:
    fields: dict[str, Any] = {
        "field": "answer",
        "level": "char",
        "rule": "LZR001",
        "start": 30,
        "end": 130,
        "period": 5,
        "copies": 20.0,
        "unit": "ab cd",
        "share": 0.23,
        "tail": True,
        "wasted_tokens": 24,
    }
    return Finding(**{**fields, **changes})


def audited(number: int = 0, *findings: Finding, **changes: Any) -> Audited:
    fields: dict[str, Any] = {
        "file": "a.jsonl",
        "id": f"r{number}",
        "groups": {"model": f"m{number % 2}", "temperature": "0.6"},
        "looping": any(f.rule != "LZR010" and f.rule != "LZR020" for f in findings),
        "literal": any(f.rule == "LZR020" for f in findings),
        "characters": 130,
        "metrics": {"rep4": 0.1 * number, "zlib_ratio": 1.5},
        "texts": (("answer", "x" * 130),) if findings else (),
    }
    return Audited(number=number, findings=findings, **{**fields, **changes})
