"""Made-up audits: what the tests of the reports are given."""

from dataclasses import replace
from typing import Any

from lzsampler.auditing.records import Audited, BadRecord, Finding
from lzsampler.auditing.summary import Group, Summary, loops, wasted_tokens

HOSTILE = (
    "</script><script>document.documentElement.dataset.pwned=1;document.title='pwned'</script>",
    "<!--<script>",
    "<img src=x onerror=\"document.documentElement.dataset.pwned=1\">",
    "\u2028\u2029\x85\x00\x07\x1b[31m\x1b]0;pwned\x07\x9b2J\u202egnp.exe",
    "\ud800 lone \udc80",
    "]]>&lt;&amp;${1} $title $texts \\u003c/script>",
    '=HYPERLINK("http://example.com","x"),"quoted"\r\nnext',
    "{{7*7}}'\"><svg onload=document.documentElement.dataset.pwned=1>",
)  # fmt: skip


def finding(text: str, unit: str, **changed: Any) -> Finding:
    """A tail loop of characters: the run of ``unit`` in ``text``."""
    start = text.index(unit)
    end = start
    while text.startswith(unit, end):
        end += len(unit)
    made = Finding(
        "answer", "char", "LZR001", start, end, len(unit), (end - start) / len(unit), unit[:200], start / len(text),
        end == len(text), (end - start - len(unit)) // 4,
    )  # fmt: skip
    return replace(made, **changed)


def looping(number: int = 0, unit: str = "Wait, let me think. ", copies: int = 30, **changed: Any) -> Audited:
    text = f"Some text {number} before it. " + unit * copies
    groups = {"model": "small", "temperature": "0.6"}
    made = Audited(
        "runs/a.jsonl", number, f"id-{number}", groups, True, True, len(text),
        (finding(text, unit), finding(text, unit, rule="LZR020")), {"rep4": 0.9}, (("answer", text),),
    )  # fmt: skip
    return replace(made, **changed)


def clean(number: int) -> Audited:
    return Audited("runs/a.jsonl", number, f"id-{number}", {"model": "large"}, False, False, 100, (), {"rep4": 0.0})


def summary_of(audited: list[Audited], by: tuple[str, ...] = ("model",), bad: tuple[BadRecord, ...] = ()) -> Summary:
    made = Summary({"copies": 20, "length": 100, "levels": ("char", "word"), "tokenizer": None}, by)
    for record in audited:
        found = loops(record)
        values = tuple(record.groups.get(key, "") for key in by)
        for group in (made.total, made.groups.setdefault(values, Group())):
            group.records += 1
            group.looping += record.looping
            group.literal += record.literal
            group.stuck += record.stuck
            group.wasted_tokens += wasted_tokens(record)
            group.starts.extend(f.share for f in found[:1])
            group.periods.extend(f.period for f in found[:1])
        made.points.extend((f.period, f.copies) for f in found[:1])
        for rule in {f.rule for f in record.findings}:
            made.rule_counts[rule] = made.rule_counts.get(rule, 0) + 1
    made.worst = sorted((r for r in audited if r.looping), key=lambda r: -wasted_tokens(r))[:10]
    for unread in bad:
        made.add(unread)
    return made


def hostile() -> list[Audited]:
    """Records with hostile text in every place that a transcript or a file name can fill."""
    return [
        looping(i, unit=evil + " ", file=f"runs/{evil}.jsonl", id=evil, groups={"model": evil, evil: evil})
        for i, evil in enumerate(HOSTILE)
    ]


def hostile_summary() -> Summary:
    made = summary_of(hostile(), bad=tuple(BadRecord(evil, i, evil) for i, evil in enumerate(HOSTILE)))
    made.rules = {evil: evil for evil in HOSTILE}
    made.by = (HOSTILE[0],)
    return made
