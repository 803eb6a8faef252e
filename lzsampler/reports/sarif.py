"""`write_sarif`: findings in the format of code scanners for editors and forges (SARIF 2.1.0, OASIS 2020)."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .._values import noun
from ..auditing.records import LOOPING, RULES, Audited, Finding, Rule
from ..auditing.summary import Summary
from ..util.files import replacing
from ..util.json_text import json_html, scalar
from .audit_groups import turns_of
from .text import count, visible, whole

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_PAPER = "https://arxiv.org/abs/2504.20131"
_PLAIN = (".txt", ".md", ".text", ".log")  # formats in which the whole file is one text

_HELP: dict[Rule, str] = {
    "LZR001": "The text ends in copies of one unit: the model got stuck and never recovered. Decode with the LZ "
    "penalty (lzs generate has it by default) or stop on loops (--on-loop stop).",
    "LZR002": "The text contains copies of one unit, from which the model recovered.",
    "LZR003": "The same lines are repeated, ignoring white space at their ends.",
    "LZR004": "Copies that differ only in digits, case or white space, such as a running counter.",
    "LZR005": "The same words are repeated, with any white space between them.",
    "LZR006": "The same tokens are repeated.",
    "LZR010": "Many 4-grams of words are repeated without forming a loop: the text goes in circles.",
    "LZR011": "Over a long stretch hardly a word is new, though nothing repeats with a period: sentences return in "
    "another order, under rising numbers, or with a word changed. Equal cells and arrays in mid-text do not count.",
    "LZR012": "The same turns of a conversation are repeated: an agent calls the same tools with the same "
    "arguments, or a model gives the same answers to whatever is said.",
    "LZR020": "Any unit that occurs at least 20 times in a row, even white space or dashes (arXiv 2504.20131, "
    "footnote 7, taken literally). Ordinary source code and tables have such stretches; other rules leave them out.",
}


def write_sarif(path: str | Path, summary: Summary, audited: Iterable[Audited]) -> None:
    """Write a log with a result for each finding, in the order of the records; bad records become notifications.

    If a record is a line of its file, the region of a finding is this line. If the file is a plain text, the region is
    the loop. If neither is certain, there is no region. Memory does not grow with the number of findings. LzsError if
    the file cannot be written.
    """
    # The list of results comes last in the log, so that each result can be written as soon as it is known.
    head = json_html(_log(summary))
    end = b"]}]}"
    with replacing(path) as file:
        file.write(head.removesuffix(end))
        separator = b"\n"
        for record in audited:
            for finding in record.findings:
                file.write(separator + json_html(_result(record, finding)))
                separator = b",\n"
        file.write(b"\n" + end + b"\n")


def _log(summary: Summary) -> dict[str, Any]:
    from .. import __version__

    driver = {
        "name": "lzs audit",
        "semanticVersion": __version__,
        "informationUri": _PAPER,
        "rules": [_rule(code) for code in RULES],
    }
    notes = [
        {
            "level": "warning",
            "message": {"text": _plain(f"{bad.reason} (line {bad.line})" if bad.line else bad.reason)},
            "locations": [{"physicalLocation": _place(bad.file, bad.line)}],
        }
        for bad in summary.bad
    ]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "columnKind": "unicodeCodePoints",
        "properties": {
            "records": summary.total.records,
            "looping": summary.total.looping,
            "literal": summary.total.literal,
            "stuck": summary.total.stuck,
            "bad_records": summary.bad_records,
        },
        "results": [],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: Rule) -> dict[str, Any]:
    name = RULES[code]
    return {
        "id": code,
        "name": name.title().replace(" ", "").replace("-", ""),
        "shortDescription": {"text": name},
        "fullDescription": {"text": _HELP[code]},
        "help": {"text": _HELP[code]},
        "defaultConfiguration": {"level": _level(code)},
    }


def _level(code: Rule) -> str:
    return "warning" if code in LOOPING else "note"


def _result(record: Audited, finding: Finding) -> dict[str, Any]:
    where = _place(record.file, record.line)
    if record.file.lower().endswith(_PLAIN) and len(record.texts) == 1 and _is_all_of(record.file, record.texts[0][1]):
        where["region"] = _region(record.texts[0][1], finding)
    return {
        "ruleId": finding.rule,
        "ruleIndex": list(RULES).index(finding.rule),
        "level": _level(finding.rule),
        "message": {"text": _message(record, finding)},
        "locations": [
            {
                "physicalLocation": where,
                "logicalLocations": [
                    {"name": finding.field, "fullyQualifiedName": scalar(f"{record.id}/{finding.field}")}
                ],
            }
        ],
        "properties": {
            "record": record.number,
            "id": scalar(record.id),
            "field": finding.field,
            "level": finding.level,
            "start": finding.start,
            "end": finding.end,
            "period": finding.period,
            "copies": finding.copies,
            "share": finding.share,
            "wasted_tokens": finding.wasted_tokens,
        },
    }


def _message(record: Audited, finding: Finding) -> str:
    wasted = f"{count(finding.wasted_tokens)} {noun(finding.wasted_tokens, 'token')} wasted"
    if finding.field == "turns":
        return _plain(
            f"{RULES[finding.rule]}: {visible(finding.unit, 80)!r}, {turns_of(finding)} of the conversation of "
            f"record {visible(record.id, 80)}, {wasted}"
        )
    return _plain(
        f"{RULES[finding.rule]}: {visible(finding.unit, 80)!r} x {finding.copies:.4g} from {whole(finding.share)} of "
        f"the {finding.field} of record {visible(record.id, 80)}, characters {finding.start} to {finding.end}, "
        f"{wasted}"
    )


def _plain(text: str) -> str:
    """Return a text escaped for a message, in which [text](address) would be a link and {0} a placeholder."""
    return re.sub(r"[\\\[\]]", r"\\\g<0>", scalar(text)).replace("{", "{{").replace("}", "}}")


def _region(text: str, finding: Finding) -> dict[str, int]:
    region = {"charOffset": finding.start, "charLength": finding.end - finding.start}
    for name, offset in (("start", finding.start), ("end", finding.end)):
        region[f"{name}Line"] = text.count("\n", 0, offset) + 1
        region[f"{name}Column"] = offset - text.rfind("\n", 0, offset)
    return region


def _is_all_of(file: str, text: str) -> bool:
    """Return whether a text is the whole file. A file with reasoning, or in UTF-16, has a different size."""
    try:
        return os.path.getsize(file) == len(text.encode("utf-8", "surrogatepass"))
    except (OSError, ValueError):
        return False


def _place(file: str, line: int) -> dict[str, Any]:
    try:
        path = quote(os.fsencode(file.removeprefix("./")))
    except UnicodeEncodeError:  # the file system cannot have this name
        path = quote(scalar(file))
    place: dict[str, Any] = {"artifactLocation": {"uri": f"file://{path}" if path.startswith("/") else path}}
    if line:
        place["region"] = {"startLine": line}
    return place
