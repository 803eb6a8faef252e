"""Reads the transcripts in an evaluation's folder: each as a text with its findings, and as its `Outcome`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..auditing.findings import Tokenizer, audit_record
from ..auditing.metrics import token_figures
from ..auditing.records import Audited, Field, Record
from ..auditing.rules import Rules
from ..auditing.summary import loops, wasted_tokens
from .counts import Outcome
from .run_folder import TRANSCRIPTS, Key

_RULES = Rules(levels=("char", "word", "line"))


def outcome_of(key: Key, row: Mapping[str, Any], audited: Audited, timing: Mapping[str, Any] | None) -> Outcome:
    """Return the outcome for a transcript. ``timing``: the text's row of timings.jsonl; None if it has no row."""
    times = [] if timing is None else [timing.get(f"{part}_seconds") for part in ("sampling", "prompt", "decode")]
    seconds = [float(time) for time in times if isinstance(time, int | float)]
    known = len(seconds) == 3
    figures = token_figures(row["tokens"])
    return Outcome(
        *key,
        task=str(row["eval"]["task"]),
        looping=bool(row["repetition"]["loops"]),
        right=row["eval"]["right"],
        tokens=row["usage"]["completion_tokens"],
        wasted_tokens=min(wasted_tokens(audited), row["usage"]["completion_tokens"]),
        seconds=sum(seconds) if known else None,
        sampling_seconds=seconds[0] if known else None,
        finish=str(row.get("finish_reason")),
        first_loop=_first_loop(row, audited),
        **figures._asdict(),
    )


def audited_text(row: Mapping[str, Any], number: int) -> Audited:
    """Return a text with the findings of `audit`. If the transcript says that the text has no loop, skip the audit."""
    ours, answer = row["eval"], row["messages"][-1]
    texts = (("reasoning", answer.get("reasoning_content") or ""), ("answer", answer["content"]))
    groups = {
        "kind": ours["kind"], "setting": ours["setting"], "seed": ours["seed"], "task": ours["task"],
        "answer": ours["answer"], "right": {True: "yes", False: "no"}.get(ours["right"], ""),
        "finish reason": row.get("finish_reason"), "tokens": row["usage"]["completion_tokens"],
    }  # fmt: skip
    record = Record(
        file=TRANSCRIPTS,
        number=number,
        id=str(ours["prompt"]),
        fields=tuple(Field("reasoning" if name == "reasoning" else "answer", text) for name, text in texts if text),
        groups={name: str(value) for name, value in groups.items() if value not in (None, "")},
    )
    size = sum(len(field.text) for field in record.fields)
    if row["repetition"]["loops"]:
        return audit_record(record, _RULES, _even(row["usage"]["completion_tokens"] / max(size, 1)))
    return Audited(record.file, number, record.id, record.groups, False, False, size, (), {},
                   tuple((field.name, field.text) for field in record.fields))  # fmt: skip


def _first_loop(row: Mapping[str, Any], audited: Audited) -> int | None:
    """Return the number of tokens before the first loop of a text, estimated from its characters."""
    run = row["repetition"].get("run")
    if audited.looping:
        first = min(loops(audited), key=lambda finding: (finding.field == "answer", finding.start))
        before = first.start + (len(dict(audited.texts).get("reasoning", "")) if first.field == "answer" else 0)
    elif row["repetition"]["loops"] and isinstance(run, dict) and isinstance(run.get("start"), int):
        before = run["start"]  # the loop reaches from the reasoning into the answer
    else:
        return None
    tokens: int = row["usage"]["completion_tokens"]
    return min(tokens, before * tokens // max(audited.characters, 1))


def _even(tokens_per_character: float) -> Tokenizer:
    """Return a tokenizer that spreads tokens evenly over the text.

    To count wasted tokens, the audit needs their positions, but a transcript has only the number of tokens.
    """

    def tokenize(text: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        n = max(1, round(len(text) * tokens_per_character))
        return np.zeros(n, np.int32), np.arange(n, dtype=np.int64) * len(text) // n

    return tokenize
